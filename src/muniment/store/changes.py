"""What changed in a user's scope after a position: found by where sessions end and by the newest items, never by a walk
over what is there. Tells ids and kinds; content is read where it always is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, cast

from muniment.core.canonical import read_canonical
from muniment.core.owners.reserved import is_reserved
from muniment.core.ports.engine import Condition, Get, Reader, Row, Select
from muniment.core.record import ValidationError, issues_of
from muniment.errors import InvalidInput, InvalidRecord
from muniment.store.context import Context
from muniment.store.items import latest
from muniment.store.positions import (
    SEEN_MAX,
    Read,
    Standpoint,
    Tail,
    Who,
    read_heads,
    read_tail,
    restore,
    seal,
    stand,
)
from muniment.store.reports import Appended, Built, Changes

__all__ = ["begin", "changes_after", "look", "whose"]

ENTRIES_MAX = 256
"""So many entries are told of at once; then there is more."""
_ERASED_LOOKED_AT = 32
_SELF_TOLD = ("system", "state_patch")
"""Kinds of entries in which a run speaks of itself, and says of what."""


def whose(tenant_id: str, user_id: str) -> Who:
    """The user whose changes are asked for, where there can be one of that name."""
    who = Who(tenant_id, user_id)
    try:
        names = who.owners
    except ValidationError as error:
        raise InvalidRecord("not a valid scope", issues_of(error, who._asdict())) from None
    if is_reserved(names[0]):
        raise InvalidInput("that is not the name of a user", path="$.user_id")
    return who


def changes_after(ctx: Context, who: Who, position: str | None) -> Changes:
    """What was committed after the position; without one, where things are now."""
    return ctx.engine.read(who.tenant_id, lambda reader: begin(reader, who, position)[1])


def begin(reader: Reader, who: Who, position: str | None) -> tuple[Standpoint, Changes]:
    """Take up at a position, or here."""
    if position is None:
        here = stand(reader, who)
        return here, _changes(who, here, {})
    at = restore(reader, who, position)
    return _reset(reader, who) if at is None else look(reader, who, at)


def look(reader: Reader, who: Who, at: Standpoint) -> tuple[Standpoint, Changes]:
    """What there is beyond a standpoint, and the standpoint after that."""
    heads, found = dict(at.heads), list[Appended]()
    room = ENTRIES_MAX
    is_more = False
    for name, head in read_heads(reader, who):
        read = heads.get(name, Read(0, ""))
        if head.seq == read.seq:
            continue
        rows = _new_entries(reader, name, read.seq, room) if room else []
        if room and not rows:  # the session is shorter than it was: a backup was put in the store's place
            return _reset(reader, who)
        room -= len(rows)
        is_more = is_more or not rows or cast("int", rows[-1][0]) < head.seq
        if rows:
            heads[name] = Read(cast("int", rows[-1][0]), cast("str", rows[-1][3]))
            found += _appended(reader, who, name, rows)
    builds, made = _new_items(reader, who, "build", at.builds)
    receipts, issued = _new_items(reader, who, "receipt", at.receipts)
    if max(len(made), len(issued)) == SEEN_MAX:  # and who knows how many more
        return _reset(reader, who)
    told: dict[str, Any] = {
        "entries": tuple(found),
        "builds": tuple(_built(row) for row in made),
        "receipts": tuple(_of_user(reader, who, issued)),
        "more": is_more,
    }
    then = Standpoint(heads, builds, receipts)
    return then, _changes(who, then, {name: value for name, value in told.items() if value})


def _reset(reader: Reader, who: Who) -> tuple[Standpoint, Changes]:
    """Where things are now, for somebody who cannot be told what came before."""
    here = stand(reader, who)
    return here, _changes(who, here, {"reset": True})


def _changes(who: Who, at: Standpoint, told: dict[str, Any]) -> Changes:
    return Changes(position=seal(who, at), **told)


def _new_entries(reader: Reader, name: tuple[str, str], after_seq: int, limit: int) -> list[Row]:
    where: tuple[Condition, ...] = (("user_id", "=", name[0]), ("session_id", "=", name[1]))
    columns = ("seq", "run_id", "kind", "recorded_at")
    return reader.do(Select("entries", where, ("seq",), (after_seq,), limit=limit, columns=columns))


def _appended(reader: Reader, who: Who, name: tuple[str, str], rows: list[Row]) -> Iterator[Appended]:
    owner, session_id = name
    names = _names(reader, name, rows)
    for run_id, group in groupby(rows, key=lambda row: cast("str", row[1])):
        of_run = cast("list[tuple[int, str, str, str]]", list(group))
        yield Appended(
            ledger="user" if owner == who.user_id else "bank",
            session_id=session_id,
            run_id=run_id,
            first_seq=of_run[0][0],
            last_seq=of_run[-1][0],
            events=tuple(dict.fromkeys(names.get(seq, kind) for seq, _, kind, _ in of_run)),
        )


def _names(reader: Reader, name: tuple[str, str], rows: list[Row]) -> dict[int, str]:
    """What the entries in which a run speaks of itself are called, by their numbers."""
    if not any(row[2] in _SELF_TOLD for row in rows):
        return {}
    where: tuple[Condition, ...] = (
        ("user_id", "=", name[0]),
        ("session_id", "=", name[1]),
        ("seq", ">=", rows[0][0]),
        ("seq", "<=", rows[-1][0]),
        ("kind", "in", _SELF_TOLD),
    )
    bodies = cast("list[tuple[int, str | None]]", reader.do(Select("entries", where, columns=("seq", "body"))))
    told = {seq: (read_canonical(body).get("metadata") or {}).get("event") for seq, body in bodies if body is not None}
    return {seq: event for seq, event in told.items() if isinstance(event, str)}


def _new_items(reader: Reader, who: Who, kind: str, tail: Tail) -> tuple[Tail, list[Row]]:
    """Items that were not there before, oldest first."""
    rows = read_tail(reader, who, kind)
    new = [row for row in reversed(rows) if row[:3] not in tail.newest]
    newest = frozenset(cast("tuple[str, str, int]", row[:3]) for row in rows)
    return Tail(tail.count + len(new), newest), new


def _built(row: Row) -> Built:
    return Built(build_id=cast("str", row[1]), session_id=cast("str", row[3]), run_id=cast("str", row[4]))


def _of_user(reader: Reader, who: Who, receipts: list[Row]) -> Iterator[str]:
    """Those of the tenant's new receipts that tell of something of this user's."""
    for _, receipt_id, version, _, _ in receipts:
        item = latest(reader, cast("str", receipt_id))
        if version == 1 and item is not None and _concerns(reader, who, item.plain()):
            yield item.id


def _concerns(reader: Reader, who: Who, receipt: dict[str, Any]) -> bool:
    if receipt["selector"].get("user_id") == who.user_id:
        return True
    erased = receipt["erased"][:_ERASED_LOOKED_AT]
    return any(_owner(reader, each["kind"], each["id"]) in who.owners for each in erased)


def _owner(reader: Reader, kind: str, id_: str) -> str | None:
    if kind == "event":
        row = reader.do(Get("entries", (id_,)))
        return None if row is None else cast("str", row[1])
    item = latest(reader, id_)
    return None if item is None else item.user_id
