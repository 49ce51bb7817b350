"""What a forget does outside: rows say what is due while the store forgets, and it is deleted after that.

Whatever cannot be deleted then stays due under its receipt, which says so, and a scrub tries again. So an object store
that is down, or a bucket that keeps what it has, never keeps the store itself from forgetting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.ports.engine import Condition, Count, Delete, KeyTaken, Patch, Reader, Transaction
from muniment.core.ports.objects import ObjectRow
from muniment.core.ports.rows import by_ids, chunked, get, insert, select
from muniment.core.ports.schema import ENTRIES, OBJECTS
from muniment.errors import MunimentError, NoObjectsKey, ObjectsRefused, StorageBusy, StorageFailure
from muniment.store.objects.archives import MARK, ArchivedEntries, archive_row, marker_of, read_archive
from muniment.store.objects.view import near

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.objects.outside import Outside

__all__ = [
    "MOVED",
    "Cleared",
    "Silence",
    "announce",
    "clear_outside",
    "clear_unneeded",
    "give_back",
    "note_outside",
    "of_receipt",
    "retire",
    "take_up",
]

MOVED = "moved"
"""What stands for the receipt of an object that is due because its content moved, or because whoever put it ended."""

GOING = "going"
"""The use of an object that somebody deletes."""
_DUE = ("due", GOING)

_NOT_OPENED = "the store was opened without its objects"

_NOT_COPIED = "the replica has not applied yet what makes it needless"
"""Were it to take over, contents would be gone that nobody forgot."""


class _Copies:
    """Whether the replica has what was committed; one that lags is waited for once."""

    def __init__(self, ctx: Context) -> None:
        self._engine = ctx.engine
        self._lags = False

    def are_there(self) -> bool:
        self._lags = self._lags or not self._engine.is_copied()
        return not self._lags


class Cleared(NamedTuple):
    """What became of what is due under one receipt."""

    removed: int = 0
    """Objects that are gone, and archives that were written anew without what was forgotten."""
    left: int = 0
    """Objects of which something is still there."""
    reason: str = ""
    """Why, of one of them."""

    def counted(self, counts: Mapping[str, int]) -> dict[str, int]:
        """The counts of a receipt with these: objects that are gone, and those of which something is still there."""
        told = {**counts, "objects": counts.get("objects", 0) + self.removed, "left_objects": self.left}
        return {name: count for name, count in told.items() if count}

    def note(self) -> str:
        """What a receipt says of it; "" where nothing is left."""
        if not self.left:
            return ""
        named = f"{self.left} {'object' if self.left == 1 else 'objects'}"
        return f"; outside the store {named} could not be deleted yet ({self.reason})"


def of_receipt(done: Mapping[str, Cleared], receipt_id: str) -> Cleared:
    """What became of what is due under a receipt. What moved and could not be deleted may hold it too: nobody knows."""
    own, moved = done.get(receipt_id, Cleared()), done.get(MOVED, Cleared())
    return own._replace(left=own.left + moved.left, reason=own.reason or moved.reason)


class _Written(NamedTuple):
    id: str
    body: str | None


def note_outside(tx: Transaction, entry_ids: Sequence[str], receipt_id: str) -> None:
    """Before these entries are emptied: what lies outside of them is due from now on, under this receipt."""
    for portion in chunked(entry_ids):
        where: tuple[Condition, ...] = (("use", "=", "blob"), ("subject", "in", portion))
        tx.do(Patch("objects", where, {"use": "due", "subject": receipt_id}))
    written = by_ids(near(tx), ENTRIES, entry_ids, into=_Written)
    markers = [marker_of(row.body) for row in written if row.body is not None and row.body.startswith(MARK)]
    names = sorted({marker.name for marker in markers if marker is not None})
    for row in by_ids(tx, OBJECTS, names, column="name", where=(("use", "in", ("archive", "rewrite")),)):
        receipts = "\n".join([*row.subject.split(), receipt_id])
        tx.do(Patch("objects", (("name", "=", row.name),), {"use": "rewrite", "subject": receipts}))


def announce(ctx: Context, tenant_id: str, rows: Sequence[ObjectRow]) -> list[ObjectRow]:
    """Before content is put outside: it is due until somebody takes it up.

    So neither a crash nor a repeat leaves anything that outlives a forget unseen.
    """
    due = _announced(ctx, rows)
    if due:
        ctx.engine.write(tenant_id, lambda tx: _put_due(tx, due))
    return due


def give_back(ctx: Context, tenant_id: str, rows: Iterable[ObjectRow]) -> None:
    """Of these that were announced, delete what no row has taken up. What cannot be deleted now stays due.

    Whoever forgot meanwhile may have cleared an announcement before its object was there: it is due once more until it
    is gone. Asked where rows are written: a replica may not know yet what was taken up.
    """
    outside, rows = ctx.outside, list(rows)
    if outside is None or not rows:
        return
    with suppress(StorageFailure, NoObjectsKey, KeyTaken):  # it stays due; or whoever took it up has just written so
        clear_unneeded(ctx, outside, tenant_id, rows)


def clear_unneeded(ctx: Context, outside: Outside, tenant_id: str, rows: Sequence[ObjectRow]) -> list[str]:
    """Delete those of these objects that no row needs; answers of each why something is left, "" where nothing is.

    Raises `KeyTaken` where one of them was taken up at this moment.
    """
    unneeded = ctx.engine.write(tenant_id, lambda tx: _unneeded(ctx, tx, rows))
    return [_remove(ctx, outside, tenant_id, row) for row in unneeded]


def _unneeded(ctx: Context, tx: Transaction, rows: Sequence[ObjectRow]) -> list[ObjectRow]:
    """Those of these objects that no row needs, each with a row by which it is due."""
    known = {row.held_at: row for row in by_ids(tx, OBJECTS, [row.held_at for row in rows], column="held_at")}
    unnamed = _announced(ctx, [row for row in rows if row.held_at not in known])
    insert(tx, OBJECTS, unnamed)
    return [*(row for row in known.values() if row.use in _DUE and row.subject == MOVED), *unnamed]


def _announced(ctx: Context, rows: Sequence[ObjectRow]) -> list[ObjectRow]:
    return [row._replace(name=ctx.ids.salts(1)[0], use="due", subject=MOVED, sealed_by=None) for row in rows]


def _put_due(tx: Transaction, due: Sequence[ObjectRow]) -> None:
    for row in due:
        take_up(tx, row.held_at)
    insert(tx, OBJECTS, due)


def take_up(tx: Transaction, held_at: str) -> bool:
    """What was announced is due no longer, since the caller's transaction names it; was it still there?

    What is `going` is not: somebody deletes it now.
    """
    where: tuple[Condition, ...] = (("held_at", "=", held_at), ("use", "=", "due"))
    return tx.do(Delete("objects", where)) > 0


def retire(ctx: Context, tx: Transaction, row: ObjectRow, receipt_id: str) -> None:
    """An object that no row needs any more is due; under another name, since its name may have been its salt."""
    tx.do(Delete("objects", (("name", "=", row.name),)))
    insert(tx, OBJECTS, [row._replace(name=ctx.ids.salts(1)[0], use="due", subject=receipt_id, sealed_by=None)])


@dataclass(slots=True)
class Silence:
    """Why an object store is not asked any more, for as long as this is handed on; "" while it answers."""

    reason: str = ""


def clear_outside(
    ctx: Context, tenant_id: str, receipt_ids: Iterable[str] | None = None, silence: Silence | None = None
) -> dict[str, Cleared]:
    """Delete outside what is due, under these receipts or all; answers by receipt what came of it.

    The first answer that does not come ends the attempt for the rest, and for whoever has the same `silence`: a server
    that is down is not asked for each.
    """
    wanted = None if receipt_ids is None else frozenset(receipt_ids)
    done: dict[str, Cleared] = {}
    silence = silence or Silence()
    if ctx.outside is None:
        silence.reason = _NOT_OPENED
    copies = _Copies(ctx)
    for row in ctx.engine.read(tenant_id, _all_due):
        receipts = row.subject.split()
        if wanted is not None and wanted.isdisjoint(receipts):
            continue
        reason = silence.reason
        if ctx.outside is not None and not reason:
            try:
                reason = _settle(ctx, ctx.outside, tenant_id, row, copies)
            except (ObjectsRefused, StorageBusy, NoObjectsKey) as error:  # of this object alone
                reason = _said(error)
            except StorageFailure as error:
                reason = silence.reason = _said(error)
        for receipt_id in receipts:
            before = done.get(receipt_id, Cleared())
            after = before._replace(removed=before.removed + 1)
            done[receipt_id] = before._replace(left=before.left + 1, reason=reason) if reason else after
    return done


def _said(error: MunimentError) -> str:
    return error.message.rstrip(".")


def _all_due(reader: Reader) -> list[ObjectRow]:
    return select(reader, OBJECTS, (("use", "in", ("rewrite", *_DUE)),))


def _settle(ctx: Context, outside: Outside, tenant_id: str, row: ObjectRow, copies: _Copies) -> str:
    """Do what is due of one object; answers why something is left, "" where nothing is."""
    if row.use in _DUE:
        # a blob under a receipt was its event's alone; an archive may have held what others said
        others = MOVED in row.subject.split() or "/archives/" in row.held_at
    else:
        left = _rewrite(ctx, outside, tenant_id, row)
        if left is None:
            return "an archive that is missing or was altered"
        others = left > 0
    if others and not copies.are_there():
        return _NOT_COPIED
    return _remove(ctx, outside, tenant_id, row)


def _remove(ctx: Context, outside: Outside, tenant_id: str, old: ObjectRow) -> str:
    """Delete an object that is due; answers why something is left. Claimed first: whoever is slow to take it up finds
    that it is going, and what was taken up meanwhile is left alone."""
    held: Condition = ("held_at", "=", old.held_at)
    claim = Patch("objects", (held, ("use", "in", _DUE)), {"use": GOING})
    if not ctx.engine.write(tenant_id, lambda tx: tx.do(claim)):
        return ""
    gone = outside.store.remove(old.held_at)
    if gone.left:
        versions = f"{gone.left} {'version' if gone.left == 1 else 'versions'}"
        return f"{versions} of {outside.store.location}: {gone.reason}"
    ctx.engine.write(tenant_id, lambda tx: tx.do(Delete("objects", (held, ("use", "=", GOING)))))
    return ""


def _rewrite(ctx: Context, outside: Outside, tenant_id: str, row: ObjectRow) -> int | None:
    """Write an archive anew without what was forgotten of it; the old one is due now. How many events are in the new.

    None where it cannot be read and something is still in it. The new object is put first: a crash leaves it due, and
    the old one in force.
    """
    held = _held_of(ctx, outside, tenant_id, row)
    outside.fetched.clear()
    if held is None:
        return None
    ids = [id_ for id_, _ in held.values()]
    live = ctx.engine.read(tenant_id, lambda reader: _standing_for(near(reader), row.name, ids))
    left = {number: each for number, each in held.items() if each[0] in live}
    new: ObjectRow | None = None
    if left:
        new, data = archive_row(outside, tenant_id, row.name, ctx.ids.salts(1)[0], left)
        announce(ctx, tenant_id, [new])
        outside.store.put(new.held_at, data)

    def change(tx: Transaction) -> None:
        if get(tx, OBJECTS, (row.name,)) != row or (new is not None and not take_up(tx, new.held_at)):
            raise StorageBusy("this archive was changed meanwhile")
        retire(ctx, tx, row, row.subject)
        if new is not None:
            insert(tx, OBJECTS, [new])

    try:
        ctx.engine.write(tenant_id, change)
    except StorageBusy:
        if new is not None:
            give_back(ctx, tenant_id, [new])
        raise
    return len(left)


def _held_of(ctx: Context, outside: Outside, tenant_id: str, row: ObjectRow) -> ArchivedEntries | None:
    """What an archive holds: nothing, where it cannot be read and no entry needs it any more."""
    try:
        held = read_archive(outside, tenant_id, row)
    except NoObjectsKey:
        if ctx.engine.read(tenant_id, lambda reader: _is_needed(near(reader), row.name)):
            raise
        return {}
    if held is None and not ctx.engine.read(tenant_id, lambda reader: _is_needed(near(reader), row.name)):
        return {}
    return held


def _is_needed(reader: Reader, name: bytes) -> bool:
    """Does the body of any entry lie in this archive? Looks through the tenant: for archives that cannot be read."""
    start = f"{MARK}{name.hex()}"
    where: tuple[Condition, ...] = (("body", ">=", f"{start}:"), ("body", "<", f"{start};"))
    return reader.do(Count("entries", where)) > 0


def _standing_for(reader: Reader, name: bytes, ids: Sequence[str]) -> set[str]:
    """Those of these entries whose body lies in this archive."""
    start = f"{MARK}{name.hex()}:"
    rows = by_ids(reader, ENTRIES, ids, into=_Written)
    return {row.id for row in rows if row.body is not None and row.body.startswith(start)}
