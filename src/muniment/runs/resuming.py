"""A run's log: from the latest snapshot that holds and the entries after it, or from the whole ledger (CS-12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.snapshot import CompactionSnapshot
from muniment.core.ports.engine import Condition, Count
from muniment.core.ports.rows import by_ids, get, stream, texts
from muniment.core.ports.schema import ENTRIES, LINKS, PARTS, EntryRow
from muniment.errors import IntegrityFailure, InvalidInput, MunimentError, NotFound, StoreDamaged
from muniment.runs.compaction.folding import RunFold
from muniment.runs.compaction.snapshots import log_of_wire, snapshot_id_of, snapshots_id
from muniment.runs.compaction.tree import head_digest, join
from muniment.store.chain import Head, link_fault
from muniment.store.items import Item, get_version, latest
from muniment.store.ledger import SNAPSHOT_TAKEN, check_header, entry_of_row

if TYPE_CHECKING:
    from muniment.core.policy import CompactionPolicy
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.runs.records import RunLog

__all__ = ["Loaded", "Rejected", "count_tail", "is_whole", "load_log", "load_snapshot", "run_item", "tail_of"]

_COUNTING = ("step", "state_patch")
"""Entries that tell of steps and of snapshots; what is said in between makes no difference (CS-10)."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A snapshot that was passed over, and why."""

    snapshot_id: str
    reason: str


class _Head(NamedTuple):
    """What the item of a snapshot holds."""

    head: dict[str, Any]
    salt: bytes
    entry_id: str


@dataclass(frozen=True)
class Loaded:
    """A run's log, and what it was read from."""

    log: RunLog
    wire: dict[str, Any] | None
    """The snapshot it starts from, in its plain form; None where the whole ledger was folded."""
    tail: int
    """How many entries were folded on top."""
    sequence: int
    """The number of the last snapshot there was, whether or not it holds."""
    rejected: tuple[Rejected, ...]
    live: int
    """How many of them were not forgotten."""
    base: RunLog | None
    """The log as it stood at that snapshot."""
    salt: bytes | None
    """What the parts of the run's last snapshot are hashed under; None where it does not hold."""
    damaged: Mapping[str, str]
    """Entries after that snapshot that are not as they were written and would have told of the run, with what is so."""

    @cached_property
    def snapshot(self) -> CompactionSnapshot | None:
        return None if self.wire is None else CompactionSnapshot.from_wire(self.wire)

    @property
    def previous(self) -> CompactionSnapshot | None:
        """The last snapshot there was, where it holds: what the next one follows."""
        return self.snapshot if self.wire is not None and self.wire["sequence"] == self.sequence else None

    def unless_damaged(self, *, repairs: bool) -> Loaded:
        """This log, which a damaged entry may have told more of: then it is for repairs alone."""
        if self.damaged and not repairs:
            entry_id, why = next(iter(self.damaged.items()))
            raise StoreDamaged(why, details={"id": entry_id})
        return self


def run_item(reader: Reader, run_id: str, user_id: str | None = None) -> Item:
    """The run with this id; one of another user does not exist (LG-02)."""
    item = latest(reader, run_id)
    if item is None or item.kind != "run" or (user_id is not None and item.user_id != user_id):
        raise NotFound(f"no run {run_id!r:.80} in this store", path="$.run_id", hint="mem.runs() lists those there are")
    return item


def _newest_own(reader: Reader, scope: Scope) -> Item | None:
    """The latest snapshot of the run; None where another user has the id, and took it after this scope was made."""
    item = latest(reader, snapshots_id(scope.run_id))
    return None if item is None or item.user_id != scope.user_id else item


def load_log(
    reader: Reader, scope: Scope, policy: CompactionPolicy, upto: int | None = None, before: int | None = None
) -> Loaded:
    """The log of a run as of now (or of the entry `upto`), from the latest snapshot that holds.

    With `before`, from one of a lower number alone; so `before=1` folds the whole ledger.
    """
    newest = _newest_own(reader, scope)
    rejected: list[Rejected] = []
    wire = None
    start = newest.version if newest else 0
    for version in range(start if before is None else min(start, before - 1), 0, -1):
        item = newest if newest is not None and version == newest.version else _version(reader, scope.run_id, version)
        if item is None or item.body is None:
            break  # forgotten, and so is all that came before
        try:
            wire = _read(reader, scope.tenant_id, item)
            break
        except MunimentError as error:
            rejected.append(Rejected(snapshot_id_of(scope.run_id, version), error.message))
    log = None if wire is None else log_of_wire(wire)
    fold = RunFold(scope.run_id, policy, log)
    tail = live = 0
    damaged: dict[str, str] = {}
    for row in tail_of(reader, scope, 0 if log is None else log.seq, upto):
        try:
            fold.see(entry_of_row(scope.tenant_id, row))
        except StoreDamaged as error:
            if _is_missed(fold, scope.tenant_id, row):
                damaged[row.id] = error.message
        tail += 1
        live += row.receipt_id is None
    if damaged:  # the entry that seals a snapshot tells nothing of the run, and the snapshot itself is passed over
        for entry_id in texts(reader, LINKS, "source_id", (("item_id", "=", snapshots_id(scope.run_id)),)):
            damaged.pop(entry_id, None)
    told = fold.log().model_copy(update={"sequence": start})
    # Under a fresh salt no part is shared with a snapshot that was altered on disk.
    salt = _salt(newest) if newest is not None and wire is not None and wire["sequence"] == start else None
    return Loaded(told, wire, tail, start, tuple(rejected), live, log, salt, damaged)


def _is_missed(fold: RunFold, tenant_id: str, row: EntryRow) -> bool:
    """Count an entry that is not as it was written; does the fold miss what it said?"""
    is_missed = type(row.seq) is not int or fold.miss(row.seq, row.kind)
    try:
        check_header(tenant_id, row)
    except StoreDamaged:  # nobody can tell what it was
        return True
    return is_missed


def is_whole(reader: Reader, scope: Scope, loaded: Loaded) -> bool:
    """Was nothing of what this log was folded from forgotten since?

    A forget that takes an entry of a run takes its snapshots: so there is the snapshot, and the entries after it.
    """
    after = 0
    if loaded.wire is not None:
        item = _version(reader, scope.run_id, loaded.wire["sequence"])
        if item is None or item.body is None:
            return False
        after = loaded.wire["cursor"]["seq"]
    where = (*_of_run(scope, after, loaded.log.seq), ("receipt_id", "=", None))
    return reader.do(Count("entries", where)) == loaded.live


def count_tail(reader: Reader, scope: Scope, policy: CompactionPolicy) -> RunLog:
    """Steps after the latest snapshot, and nothing else of the log: enough to tell whether the next one is due."""
    newest = _newest_own(reader, scope)
    start = None if newest is None or newest.body is None else _start_after(reader, scope, policy, newest)
    fold = RunFold(scope.run_id, policy, start)
    for row in tail_of(reader, scope, 0 if start is None else start.seq, kinds=_COUNTING):
        fold.see(entry_of_row(scope.tenant_id, row))
    return fold.log()


def _start_after(reader: Reader, scope: Scope, policy: CompactionPolicy, item: Item) -> RunLog:
    """Where the run stood at a snapshot, and nothing else of it; the whole log where the head does not hold."""
    try:
        cursor = _head(reader, scope.tenant_id, item).head["document"]["cursor"]
    except MunimentError:
        return load_log(reader, scope, policy).log
    known = {name: cursor[name] for name in ("seq", "step", "phase")}
    return RunFold(scope.run_id, policy).log().model_copy(update=known | {"sequence": item.version})


def tail_of(
    reader: Reader, scope: Scope, after: int, upto: int | None = None, kinds: tuple[str, ...] = ()
) -> Iterator[EntryRow]:
    """The run's entries after a place in its session, in order; all of them, or those of some kinds."""
    where = _of_run(scope, after, upto)
    if kinds:
        where = (*where, ("kind", "in", kinds))
    return stream(reader, ENTRIES, where, order=("user_id", "session_id", "seq"))


def _of_run(scope: Scope, after: int, upto: int | None) -> tuple[Condition, ...]:
    where: tuple[Condition, ...] = (
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
        ("seq", ">", after),
        ("run_id", "=", scope.run_id),
    )
    return where if upto is None else (*where, ("seq", "<=", upto))


def _salt(item: Item) -> bytes | None:
    try:
        return None if item.body is None else bytes.fromhex(item.plain()["salt"])
    except (KeyError, TypeError, ValueError):
        return None


# -- snapshots ----------------------------------------------------------------------------------------


def load_snapshot(reader: Reader, tenant_id: str, run_id: str, sequence: int | None = None) -> CompactionSnapshot:
    """A kept snapshot, by default the latest; raises where it is not what was sealed in the ledger."""
    item = latest(reader, snapshots_id(run_id)) if sequence is None else _version(reader, run_id, sequence)
    if item is None:
        which = "no snapshot" if sequence is None else f"no snapshot {sequence}"
        raise NotFound(f"{which} of the run {run_id!r:.80}", path="$.sequence", hint="run.log.compact() takes one")
    return CompactionSnapshot.from_wire(_read(reader, tenant_id, item))


def _version(reader: Reader, run_id: str, version: int) -> Item | None:
    return get_version(reader, snapshots_id(run_id), version)


def _read(reader: Reader, tenant_id: str, item: Item) -> dict[str, Any]:
    """A snapshot put together again, each part and the whole checked against its hash, the hash against the chain."""
    sealed = _head(reader, tenant_id, item)
    return join(sealed.head, sealed.salt, lambda hashes: _parts(reader, item.id, hashes))


def _head(reader: Reader, tenant_id: str, item: Item) -> _Head:
    """The head of a snapshot, which is what the ledger says."""
    try:
        body = item.plain()
        found = _Head(body["head"], bytes.fromhex(body["salt"]), body["entry_id"])
        digest = head_digest(found.head, found.salt)
    except (KeyError, TypeError, ValueError, InvalidInput):
        raise IntegrityFailure(
            f"the snapshot {item.id}.{item.version} is not one that was written here",
            hint="it was altered on disk; the ledger still has what it was made of",
        ) from None
    _check_anchor(reader, tenant_id, item, found.entry_id, digest)
    return found


def _check_anchor(reader: Reader, tenant_id: str, item: Item, entry_id: str, digest: str) -> None:
    name = f"{item.id}.{item.version}"
    row = get(reader, ENTRIES, (entry_id,))
    if row is None or row.receipt_id is not None:
        raise IntegrityFailure(f"the ledger does not hold the entry of snapshot {name}", hint="run `muniment verify`")
    fault = link_fault(tenant_id, row, Head(row.seq - 1, row.prev_hash, row.recorded_at))
    said = {} if fault is not None else entry_of_row(tenant_id, row).metadata
    sealed = (said.get("event"), said.get("id"), said.get("sequence"), said.get("digest"))
    if sealed != (SNAPSHOT_TAKEN, item.id, item.version, digest):
        raise IntegrityFailure(
            f"the snapshot {name} is not what the ledger says: {fault or 'its digest differs'}",
            hint="it was altered on disk; the ledger still has what it was made of",
            details={"snapshot_id": name, "entry_id": entry_id},
        )


class _Part(NamedTuple):
    hash: bytes
    body: str | None


def _parts(reader: Reader, owner: str, hashes: Sequence[bytes]) -> Mapping[bytes, str]:
    parts = by_ids(reader, PARTS, hashes, column="hash", where=(("owner", "=", owner),), into=_Part)
    return {part.hash: part.body for part in parts if part.body is not None}
