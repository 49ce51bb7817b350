"""Compaction: a snapshot of a run, checked before it is kept; a hard gate if it is invalid (CS-08).

Everything is read, built and validated without a lock; only the changes are written under one. A snapshot is due after
a number of counted events, or steps, since the last one (CS-10). Verbose events make no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from muniment.core.policy import CompactionPolicy
from muniment.core.ports.engine import Lock
from muniment.core.ports.rows import by_ids, texts
from muniment.core.ports.schema import ENTRIES, LINKS
from muniment.core.scope import LEDGER_CORPUS
from muniment.core.scope import corpus_of as corpus_id_of
from muniment.errors import Conflict, MunimentError, RunFinished, StoreDamaged
from muniment.memory.patches import draft_patch
from muniment.runs._validation import SnapshotContext, changed_since, entries_named, validate, validation_of
from muniment.runs.fold import Started, corpus_of, started_by
from muniment.runs.snapshots import (
    Loaded,
    count_tail,
    get_run,
    get_snapshot,
    is_whole,
    limits_of,
    load_log,
    load_snapshot,
    log_of,
    policies_of,
    run_item,
    snapshot_body,
    snapshot_digest,
    snapshot_id_of,
    snapshot_of,
    snapshots_id,
    tail_of,
)
from muniment.runs.steps import ENDS
from muniment.store.append import append_in, locked
from muniment.store.items import Change, latest, lock_memory, write_changes
from muniment.store.ledger import COUNTED_EVENTS, RUN_LOCKED, RUN_UNLOCKED, SNAPSHOT_TAKEN, EntryDraft, entry_of_row
from muniment.store.turns import text_of

if TYPE_CHECKING:
    from muniment.contracts.snapshot import CompactionSnapshot, EvidencePointer, SnapshotCheck, SnapshotValidation
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.ports.schema import EntryRow
    from muniment.core.scope import Scope
    from muniment.memory.patches import Writer
    from muniment.runs.records import RunLog
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = ["check_snapshot", "compact", "compact_if_due", "due", "due_in", "unlock"]

TRIES = 3


class _Made(NamedTuple):
    """A snapshot to be kept."""

    snapshot: CompactionSnapshot
    before: Loaded
    created_at: str


def due_in(writer: Writer) -> str | None:
    """The reason the next snapshot is due; None if it is not."""
    policy = writer.ctx.policy.compaction
    log = writer.ctx.engine.read(writer.scope.tenant_id, lambda reader: count_tail(reader, writer.scope, policy))
    return due(log, policy)


def due(log: RunLog, policy: CompactionPolicy) -> str | None:
    """The reason a snapshot is due; None if it is not."""
    counted, steps = len(log.counted_since), len(log.steps_since)
    if counted >= policy.event_threshold:
        return _many(counted, "counted event")
    return _many(steps, "step") if steps >= policy.step_fallback else None


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def compact_if_due(writer: Writer) -> CompactionSnapshot | None:
    try:
        is_due = due_in(writer) is not None
    except StoreDamaged:  # the gate reports the damaged entry
        is_due = True
    return compact(writer) if is_due else None


def compact(writer: Writer, *, unlocks: str | None = None) -> CompactionSnapshot:
    """Snapshot the current run. Of two concurrent calls one wins, and both return its snapshot."""
    ctx, tenant_id = writer.ctx, writer.scope.tenant_id
    for _ in range(TRIES):
        reads = ctx.engine.read(tenant_id, lambda reader: _read(writer, reader))
        if reads.previous is not None and unlocks is None and reads.tail <= 1:
            return reads.previous  # nothing happened since the last snapshot
        made, checks = ctx.engine.read(tenant_id, partial(_make, writer, reads, "NONE", is_whole=unlocks is not None))
        if made is None:  # once more, with the same inputs read again
            made, checks = ctx.engine.read(tenant_id, partial(_make_again, writer, reads))
        if made is None:
            _lock(writer, validation_of(checks, "SYSTEM_ERROR"))
        kept = _keep(writer, made, unlocks)
        if kept is not None:
            return kept
    raise Conflict(f"the run {writer.scope.run_id} changed while it was compacted", path="$.run_id", hint="try again")


def _read(writer: Writer, reader: Reader) -> Loaded:
    """Load the current run; a locked one is only for repairs."""
    run = run_item(reader, writer.scope.run_id)
    if run.status == "locked" and not writer.repairs:
        raise locked(run)
    return load_log(reader, writer.scope, writer.ctx.policy.compaction)


def _make_again(writer: Writer, reads: Loaded, reader: Reader) -> tuple[_Made | None, list[SnapshotCheck]]:
    return _make(writer, _read_again(writer, reader, reads), "RETRY", reader, is_whole=True)


def _read_again(writer: Writer, reader: Reader, reads: Loaded) -> Loaded:
    """Read the inputs of a snapshot again at the same position, despite later writes or snapshots."""
    policy, sequence = writer.ctx.policy.compaction, reads.sequence
    loaded = load_log(reader, writer.scope, policy, reads.log.seq, before=sequence + 1)
    log = loaded.log.model_copy(update={"sequence": sequence})
    # An entry with an altered position may be beyond the range read again.
    return replace(loaded, log=log, sequence=sequence, damaged={**reads.damaged, **loaded.damaged})


# -- building and checking ----------------------------------------------------------------------------


def _make(
    writer: Writer, loaded: Loaded, action: Literal["NONE", "RETRY"], reader: Reader, *, is_whole: bool
) -> tuple[_Made | None, list[SnapshotCheck]]:
    """Build the next snapshot and validate its changes since the predecessor, or all of it."""
    ctx, scope = writer.ctx, writer.scope
    now = max(ctx.now(), loaded.wire["created_at"] if loaded.wire else "")  # the clock may have gone back a little
    snapshot = snapshot_of(
        loaded.log,
        snapshot_id=snapshot_id_of(scope.run_id, loaded.sequence + 1),
        created_at=now,
        previous=loaded.previous,
        policy_ref=ctx.policy.digest,
        limits=limits_of(loaded.wire, ctx.policy.compaction),
        retrieval_diagnostics=_diagnostics(loaded),
        validation=validation_of([], "NONE"),
    )
    context = _context(reader, scope, loaded, loaded.log, is_whole=is_whole or loaded.previous is None)
    checks = validate(snapshot, context, ctx.policy.compaction)
    if any(check.status == "FAIL" for check in checks):
        return None, checks
    kept = snapshot.model_copy(update={"validation": validation_of(checks, action)})
    return _Made(kept, loaded, now), checks


def _diagnostics(loaded: Loaded) -> dict[str, Any]:
    """The numbers and pointers that the run examined."""
    log = loaded.log
    return {
        "chunks_seen": len(log.coverage.chunk_ids_seen),
        "chunks_cited": len(log.coverage.chunk_ids_cited),
        "manifests": len(log.manifest_ids),
        "folded_entries": loaded.tail,
        "rejected_snapshots": [{"snapshot_id": each.snapshot_id, "reason": each.reason} for each in loaded.rejected],
    }


def _context(reader: Reader, scope: Scope, loaded: Loaded, log: RunLog, *, is_whole: bool) -> SnapshotContext:
    """The data to check the snapshot of `log` against, freshly read from the store."""
    before = loaded.base if loaded.previous is not None else None
    fresh = log if is_whole else changed_since(log, before)
    chunks = _ChunkReader(reader, scope, log, fresh)
    counted, steps = _recount(reader, scope, loaded)
    return SnapshotContext(
        started=_started(reader, scope),
        previous=loaded.previous,
        before=before,
        last_sequence=loaded.sequence,
        events_since=counted,
        steps_since=steps,
        entries={entry.id: entry for entry in _entries(reader, scope, entries_named(fresh))},
        chunk=chunks.read,
        standing=chunks.standing,
        is_whole=is_whole,
        folded=loaded.log,
        damaged=tuple(loaded.damaged.values()),
    )


def _recount(reader: Reader, scope: Scope, loaded: Loaded) -> tuple[int, int]:
    """The counted events and steps since the predecessor, independent of the fold."""
    log = loaded.log
    if loaded.previous is None:
        return len(log.counted_since), len(log.steps_since)
    before = loaded.base
    assert before is not None
    rows = tail_of(reader, scope, before.seq, log.seq, ("step",))
    steps_of = [entry.step for entry in _undamaged(scope, rows)]
    ended = [step for step in steps_of if step is not None and step.event in ENDS]
    counted, steps, current = sum(step.event in COUNTED_EVENTS for step in ended), 0, before.step
    for step in ended:
        if step.step is None:  # not numbered, so not written by `run.log.step`: only the fold can assign it
            return counted, len(log.steps_since)
        if step.step > current:
            steps, current = steps + 1, step.step
    return counted, steps


def _started(reader: Reader, scope: Scope) -> Started | None:
    """The pins of the run's first entry; None if it was forgotten."""
    sources = texts(reader, LINKS, "source_id", (("item_id", "=", scope.run_id),))
    entries = sorted(_entries(reader, scope, sources), key=lambda entry: entry.seq)
    return next((started for started in map(started_by, entries) if started is not None), None)


def _entries(reader: Reader, scope: Scope, ids: Sequence[str]) -> Iterable[LedgerEntry]:
    return _undamaged(scope, (row for row in by_ids(reader, ENTRIES, ids) if row.user_id == scope.user_id))


def _undamaged(scope: Scope, rows: Iterable[EntryRow]) -> Iterator[LedgerEntry]:
    """The intact entries among these rows; records that rest on others are invalid."""
    for row in rows:
        try:
            yield entry_of_row(scope.tenant_id, row)
        except StoreDamaged:
            continue


class _ChunkReader:
    """The stored bytes behind a log's pointers, each chunk read once, on demand."""

    def __init__(self, reader: Reader, scope: Scope, log: RunLog, fresh: RunLog) -> None:
        from muniment.memory.corpus import standing_of

        self._reader, self._scope = reader, scope
        self._rows = {row.id: row for row in by_ids(reader, ENTRIES, sorted(set(_chunks(fresh))))}
        documents = list(_chunks(log, of_documents=True))
        self._standing = standing_of(reader, scope.tenant_id, list(dict.fromkeys(documents)))

    def read(self, corpus_id: str, chunk_id: str) -> bytes | str:
        """The bytes of a chunk, or a text with the reason they are missing."""
        row = self._rows.get(chunk_id)
        if row is None or (corpus_id == LEDGER_CORPUS and row.user_id != self._scope.user_id):
            return "it is not in the store"
        if corpus_id != LEDGER_CORPUS and corpus_id_of(row.user_id, self._scope.user_id) != corpus_id:
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


def _chunks(log: RunLog, *, of_documents: bool = False) -> Iterator[str]:
    """The chunks cited by a log's claims and conflicts; optionally only those of documents, which may be retracted."""
    for claim in log.claims:
        yield from _of((*claim.evidence_refs, *(claim.refuted_by or ())), of_documents=of_documents)
    for conflict in log.conflicts:
        yield from _of((*conflict.side_a_refs, *conflict.side_b_refs), of_documents=of_documents)


def _of(refs: Iterable[EvidencePointer], *, of_documents: bool) -> Iterator[str]:
    return (ref.chunk_id for ref in refs if not of_documents or corpus_of(ref) != LEDGER_CORPUS)


# -- keeping ------------------------------------------------------------------------------------------


def _keep(writer: Writer, made: _Made, unlocks: str | None) -> CompactionSnapshot | None:
    """Seal the snapshot in the ledger and store its new parts, or return the one that another call sealed first.

    None if one of its inputs was forgotten meanwhile: then nothing of it is kept (LG-07).
    """
    ctx, scope = writer.ctx, writer.scope
    owner = snapshots_id(scope.run_id)
    entry_id = ctx.ids.new("evt")
    document, salt = made.snapshot.to_wire(), ctx.ids.salts(1)[0]
    digest = snapshot_digest(document, salt)

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
            "step": made.before.log.step,
            "phase": made.before.log.phase,
            "digest": digest,
        }
        drafts = [draft_patch(SNAPSHOT_TAKEN, "assistant", said).model_copy(update={"id": entry_id})]
        if unlocks is not None:
            drafts = [_system(RUN_UNLOCKED, {"reason": unlocks}), *drafts]
        append_in(ctx, tx, scope, drafts, writer.opening, "", repairs=writer.repairs)
        body = snapshot_body(document, salt, entry_id)
        write_changes(tx, [_change(scope, owner, body, made.created_at, entry_id)])
        return "kept"

    done = ctx.write(scope.tenant_id, work)
    if done == "second":
        return ctx.engine.read(scope.tenant_id, lambda reader: load_snapshot(reader, scope.tenant_id, scope.run_id))
    return made.snapshot if done == "kept" else None


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
    """Stop the run with SYSTEM_ERROR and the failed checks. Stored data is untouched."""
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


def check_snapshot(ctx: Context, tenant_id: str, run_id: str, sequence: int | None) -> SnapshotValidation:
    """Validate a kept snapshot again from the current store, and compare it with a replay of the whole ledger.

    Uses the limits it was made with, since today's policy does not apply to it.
    """
    asked = get_snapshot(ctx, tenant_id, run_id, sequence)
    scope = get_run(ctx, tenant_id, run_id).scope

    def work(reader: Reader) -> SnapshotValidation:
        snapshot = load_snapshot(reader, tenant_id, run_id, asked.sequence)
        wire = snapshot.to_wire()
        (_, first), *later = policies_of(wire, ctx.policy.compaction)
        upto = wire["cursor"]["seq"]
        replayed = load_log(reader, scope, first, upto, before=1, later=later)
        before = load_log(reader, scope, first, upto, before=snapshot.sequence)
        loaded = replace(replayed, wire=before.wire, base=before.base, sequence=snapshot.sequence - 1)
        context = _context(reader, scope, loaded, log_of(snapshot), is_whole=True)
        return validation_of(validate(snapshot, context, later[-1][1] if later else first), "NONE")

    return ctx.engine.read(tenant_id, work)


def unlock(writer: Writer, reason: str) -> CompactionSnapshot:
    """Unlock a locked run, only if its snapshot is now valid."""
    state = writer.ctx.engine.read(writer.scope.tenant_id, lambda reader: run_item(reader, writer.scope.run_id))
    if state.status != "locked":
        raise Conflict(f"the run {writer.scope.run_id} is not locked", path="$.run_id")
    return compact(writer, unlocks=reason)
