"""Compaction: a snapshot of a run, checked before it is kept; a hard gate where it does not hold (CS-08)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from muniment.core.ports.engine import Lock
from muniment.core.ports.rows import by_ids, insert, texts
from muniment.core.ports.schema import ENTRIES, LINKS, PARTS, PartRow
from muniment.core.scope import LEDGER_CORPUS
from muniment.errors import Conflict, MunimentError, RunFinished, StoreDamaged
from muniment.memory.patches import draft_patch
from muniment.runs.compaction.snapshots import snapshot_id_of, snapshot_of, snapshots_id
from muniment.runs.compaction.transitions import Started, started_by
from muniment.runs.compaction.tree import Split, head_digest, split
from muniment.runs.compaction.triggers import due
from muniment.runs.compaction.validation import Known, entries_named, validate, validation_of
from muniment.runs.resuming import Loaded, count_tail, is_whole, load_log, load_snapshot, run_item, tail_of
from muniment.runs.steps import ENDS
from muniment.store.append import append_in, locked
from muniment.store.items import Change, latest, lock_memory, write_changes
from muniment.store.ledger import COUNTED_EVENTS, RUN_LOCKED, RUN_UNLOCKED, SNAPSHOT_TAKEN, EntryDraft, entry_of_row
from muniment.store.turns import text_of

if TYPE_CHECKING:
    from muniment.contracts.snapshot import CompactionSnapshot, SnapshotCheck, SnapshotValidation
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.ports.schema import EntryRow
    from muniment.core.scope import Scope
    from muniment.memory.patches import Writer
    from muniment.runs.records import RunLog
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = ["check_snapshot", "compact", "compact_if_due", "due_in", "unlock"]

TRIES = 3


class _Made(NamedTuple):
    """A snapshot about to be kept."""

    snapshot: CompactionSnapshot
    before: Loaded
    created_at: str
    salt: bytes
    stored: Split


def due_in(writer: Writer) -> str | None:
    """Why the next snapshot is due; None while it is not."""
    policy = writer.ctx.policy.compaction
    log = writer.ctx.engine.read(writer.scope.tenant_id, lambda reader: count_tail(reader, writer.scope, policy))
    return due(log, policy)


def compact_if_due(writer: Writer) -> CompactionSnapshot | None:
    try:
        is_due = due_in(writer) is not None
    except StoreDamaged:  # an entry that would tell is damaged: the gate says which
        is_due = True
    return compact(writer) if is_due else None


def compact(writer: Writer, *, unlocks: str | None = None) -> CompactionSnapshot:
    """Snapshot the run as it stands. Of two at once one wins, and both answer with what it kept.

    Everything is read, built and validated without a lock; only what changed is written under one.
    """
    ctx, tenant_id = writer.ctx, writer.scope.tenant_id
    for _ in range(TRIES):
        reads = ctx.engine.read(tenant_id, lambda reader: _read(writer, reader))
        if reads.previous is not None and unlocks is None and reads.tail <= 1:
            return reads.previous  # nothing happened since but that it was taken
        made, checks = ctx.engine.read(tenant_id, lambda reader, at=reads: _make(writer, reader, at, "NONE"))  # type: ignore[misc]
        if made is None:  # once more, from the same inputs, read anew
            made, checks = ctx.engine.read(
                tenant_id,
                lambda reader, at=reads: _make(writer, reader, _read_again(writer, reader, at), "RETRY"),  # type: ignore[misc]
            )
        if made is None:
            _lock(writer, validation_of(checks, "SYSTEM_ERROR"))
        kept = _keep(writer, made, unlocks)
        if kept is not None:
            return kept
    raise Conflict(f"the run {writer.scope.run_id} changed while it was compacted", path="$.run_id", hint="try again")


def _read(writer: Writer, reader: Reader) -> Loaded:
    """The run as it stands; one that is locked is for repairs alone."""
    run = run_item(reader, writer.scope.run_id)
    if run.status == "locked" and not writer.repairs:
        raise locked(run)
    return load_log(reader, writer.scope, writer.ctx.policy.compaction)


def _read_again(writer: Writer, reader: Reader, reads: Loaded) -> Loaded:
    """Read the inputs of a snapshot once more, as they were, whatever was written or snapshot meanwhile."""
    policy, sequence = writer.ctx.policy.compaction, reads.sequence
    loaded = load_log(reader, writer.scope, policy, reads.log.seq, before=sequence + 1)
    log = loaded.log.model_copy(update={"sequence": sequence})
    # An entry whose place was altered may stand beyond what is read again.
    return replace(loaded, log=log, sequence=sequence, damaged={**reads.damaged, **loaded.damaged})


# -- building and checking ----------------------------------------------------------------------------


def _make(
    writer: Writer, reader: Reader, loaded: Loaded, action: Literal["NONE", "RETRY"]
) -> tuple[_Made | None, list[SnapshotCheck]]:
    """Build the snapshot that follows, validate it, and take it apart for keeping."""
    ctx, scope = writer.ctx, writer.scope
    now = max(ctx.now(), loaded.wire["created_at"] if loaded.wire else "")  # the clock may have stepped back a little
    snapshot = snapshot_of(
        loaded.log,
        snapshot_id=snapshot_id_of(scope.run_id, loaded.sequence + 1),
        created_at=now,
        previous=loaded.previous,
        policy_ref=ctx.policy.digest,
        retrieval_diagnostics=_diagnostics(loaded),
        validation=validation_of([], "NONE"),
    )
    checks = validate(snapshot, _known(reader, scope, loaded), ctx.policy.compaction)
    if any(check.status == "FAIL" for check in checks):
        return None, checks
    kept = snapshot.model_copy(update={"validation": validation_of(checks, action)})
    salt = loaded.salt or ctx.ids.salts(1)[0]
    return _Made(kept, loaded, now, salt, split(kept.to_wire(), salt)), checks


def _diagnostics(loaded: Loaded) -> dict[str, Any]:
    """What the run looked at, in numbers and pointers."""
    log = loaded.log
    return {
        "chunks_seen": len(log.coverage.chunk_ids_seen),
        "chunks_cited": len(log.coverage.chunk_ids_cited),
        "manifests": len(log.manifest_ids),
        "folded_entries": loaded.tail,
        "rejected_snapshots": [{"snapshot_id": each.snapshot_id, "reason": each.reason} for each in loaded.rejected],
    }


def _known(reader: Reader, scope: Scope, loaded: Loaded) -> Known:
    """What the snapshot is checked against, read afresh from the store."""
    log = loaded.log
    stock = _Stock(reader, scope, log)
    counted, steps = _recount(reader, scope, loaded)
    return Known(
        started=_started(reader, scope),
        previous=loaded.previous,
        last_sequence=loaded.sequence,
        events_since=counted,
        steps_since=steps,
        entries={entry.id: entry for entry in _entries(reader, scope, entries_named(log))},
        chunk=stock.chunk,
        standing=stock.standing,
        folded=log,
        damaged=tuple(loaded.damaged.values()),
    )


def _recount(reader: Reader, scope: Scope, loaded: Loaded) -> tuple[int, int]:
    """Counted events and steps since the predecessor, counted without the fold."""
    log = loaded.log
    if loaded.previous is None:
        return len(log.counted_since), len(log.steps_since)
    before = loaded.base
    assert before is not None
    rows = tail_of(reader, scope, before.seq, log.seq, ("step",))
    told = [entry.step for entry in _undamaged(scope, rows)]
    ended = [step for step in told if step is not None and step.event in ENDS]
    counted, steps, current = sum(step.event in COUNTED_EVENTS for step in ended), 0, before.step
    for step in ended:
        if step.step is None:  # not numbered, so not told by `run.log.step`: only the fold can place it
            return counted, len(log.steps_since)
        if step.step > current:
            steps, current = steps + 1, step.step
    return counted, steps


def _started(reader: Reader, scope: Scope) -> Started | None:
    """What the run's first entry pinned; None where it was forgotten."""
    sources = texts(reader, LINKS, "source_id", (("item_id", "=", scope.run_id),))
    entries = sorted(_entries(reader, scope, sources), key=lambda entry: entry.seq)
    return next((told for told in map(started_by, entries) if told is not None), None)


def _entries(reader: Reader, scope: Scope, ids: Sequence[str]) -> Iterable[LedgerEntry]:
    return _undamaged(scope, (row for row in by_ids(reader, ENTRIES, ids) if row.user_id == scope.user_id))


def _undamaged(scope: Scope, rows: Iterable[EntryRow]) -> Iterator[LedgerEntry]:
    """The entries of these rows that are as they were written; what rests on another one does not hold."""
    for row in rows:
        try:
            yield entry_of_row(scope.tenant_id, row)
        except StoreDamaged:
            continue


class _Stock:
    """The stored bytes that a log's pointers point into, each read once."""

    def __init__(self, reader: Reader, scope: Scope, log: RunLog) -> None:
        from muniment.memory.corpus import standing_of

        ids = list(log.coverage.chunk_ids_cited)
        self._reader, self._scope = reader, scope
        self._rows = {row.id: row for row in by_ids(reader, ENTRIES, ids)}
        self._standing = standing_of(reader, scope.tenant_id, ids)

    def chunk(self, corpus_id: str, chunk_id: str) -> bytes | str:
        """The bytes of a chunk, or in words why there are none."""
        from muniment.core.scope import corpus_of

        row = self._rows.get(chunk_id)
        if row is None or (corpus_id == LEDGER_CORPUS and row.user_id != self._scope.user_id):
            return "it is not in the store"
        if corpus_id != LEDGER_CORPUS and corpus_of(row.user_id, self._scope.user_id) != corpus_id:
            return f"it is not of the corpus {corpus_id}"
        try:
            entry = entry_of_row(self._scope.tenant_id, row)
            if entry.body is None:
                return f"it was forgotten, receipt {entry.receipt_id}"
            return text_of(self._reader, entry).encode()
        except MunimentError as error:
            return error.message

    def standing(self, _corpus_id: str, chunk_id: str) -> str:
        return self._standing.get(chunk_id, "live")


# -- keeping ------------------------------------------------------------------------------------------


def _keep(writer: Writer, made: _Made, unlocks: str | None) -> CompactionSnapshot | None:
    """Seal the snapshot in the ledger and keep what of it is new, unless another was first: then that one.

    None where something of what it was made of was forgotten meanwhile: then it is kept nowhere (LG-07).
    """
    ctx, scope = writer.ctx, writer.scope
    owner = snapshots_id(scope.run_id)
    entry_id = ctx.ids.new("evt")
    digest = head_digest(made.stored.head, made.salt)

    def work(tx: Transaction) -> Literal["kept", "second", "outdated"]:
        tx.do(Lock(("session", scope.user_id, scope.session_id)))
        lock_memory(tx, scope.user_id)
        newest = latest(tx, owner)
        if newest is not None and newest.version != made.before.sequence:
            return "outdated" if unlocks else "second"
        if not is_whole(tx, scope, made.before):
            return "outdated"
        said = {
            "id": owner,
            "snapshot_id": made.snapshot.snapshot_id,
            "sequence": made.snapshot.sequence,
            "upto": made.before.log.seq,
            "digest": digest,
        }
        drafts = [draft_patch(SNAPSHOT_TAKEN, "assistant", said).model_copy(update={"id": entry_id})]
        if unlocks is not None:
            drafts = [_system(RUN_UNLOCKED, {"reason": unlocks}), *drafts]
        append_in(ctx, tx, scope, drafts, writer.opening, "", repairs=writer.repairs)
        body = {"head": made.stored.head, "salt": made.salt.hex(), "entry_id": entry_id}
        write_changes(tx, [_change(scope, owner, body, made.created_at, entry_id)])
        _insert_parts(tx, owner, made.stored.parts)
        return "kept"

    done = ctx.write(scope.tenant_id, work)
    if done == "second":
        return ctx.engine.read(scope.tenant_id, lambda reader: load_snapshot(reader, scope.tenant_id, scope.run_id))
    return made.snapshot if done == "kept" else None


class _PartHash(NamedTuple):
    hash: bytes


def _insert_parts(tx: Transaction, owner: str, parts: dict[bytes, str]) -> None:
    known = by_ids(tx, PARTS, list(parts), column="hash", where=(("owner", "=", owner),), into=_PartHash)
    here = {part.hash for part in known}
    insert(tx, PARTS, [PartRow(owner, hash_, body, None) for hash_, body in parts.items() if hash_ not in here])


def _change(scope: Scope, owner: str, body: dict[str, Any], created_at: str, entry_id: str) -> Change:
    return Change(
        id=owner,
        kind="snapshot",
        status="valid",
        body=body,
        created_at=created_at,
        trust="assistant",
        sources=(entry_id,),
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        session_id=scope.session_id,
        run_id=scope.run_id,
    )


def _system(event: str, said: dict[str, Any]) -> EntryDraft:
    return EntryDraft(kind="system", role="system", content="", metadata={"event": event} | said)


def _lock(writer: Writer, validation: SnapshotValidation) -> NoReturn:
    """Stop the run with SYSTEM_ERROR and say what does not hold. Nothing that was stored is touched."""
    ctx, scope = writer.ctx, writer.scope

    def work(tx: Transaction) -> MunimentError:
        tx.do(Lock(("session", scope.user_id, scope.session_id)))
        run = run_item(tx, scope.run_id)
        if run.status == "finished":
            return RunFinished(f"the run {scope.run_id} has ended", path="$.run_id")
        diagnosis = validation.to_wire()
        if run.status != "locked" or run.plain().get("diagnosis") != diagnosis:
            append_in(ctx, tx, scope, [_system(RUN_LOCKED, {"diagnosis": diagnosis})], writer.opening, "", repairs=True)
        return locked(run_item(tx, scope.run_id))

    raise ctx.write(scope.tenant_id, work)


def check_snapshot(ctx: Context, scope: Scope, sequence: int | None) -> SnapshotValidation:
    """A kept snapshot validated again from the store as it is now, and compared with a replay of the whole ledger."""
    policy = ctx.policy.compaction

    def work(reader: Reader) -> SnapshotValidation:
        snapshot = load_snapshot(reader, scope.tenant_id, scope.run_id, sequence)
        upto = snapshot.to_wire()["cursor"]["seq"]
        replayed = load_log(reader, scope, policy, upto, before=1)
        before = load_log(reader, scope, policy, upto, before=snapshot.sequence)
        loaded = replace(replayed, wire=before.wire, base=before.base, sequence=snapshot.sequence - 1)
        checks = validate(snapshot, _known(reader, scope, loaded), policy)
        return validation_of(checks, "NONE")

    return ctx.engine.read(scope.tenant_id, work)


def unlock(writer: Writer, reason: str) -> CompactionSnapshot:
    """Open a locked run again: only if its snapshot now holds."""
    state = writer.ctx.engine.read(writer.scope.tenant_id, lambda reader: run_item(reader, writer.scope.run_id))
    if state.status != "locked":
        raise Conflict(f"the run {writer.scope.run_id} is not locked", path="$.run_id")
    return compact(writer, unlocks=reason)
