"""Validate a snapshot, recomputing every check from what the runtime read from the store (CS-08, CS-09).

The snapshot's own `validation` block is ignored. All checks run, in a fixed order and under fixed names; each names the
first offenders and their number.

Records unchanged since the sealed predecessor were validated when that was sealed, so a compaction checks only new and
changed claims and conflicts. `is_whole` checks everything: after a failure, and on request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from muniment.contracts.semantics import RunInvariants, check_snapshot
from muniment.contracts.snapshot import CompactionSnapshot, EvidencePointer, SnapshotCheck, SnapshotValidation
from muniment.core.instants import parse_rfc3339
from muniment.core.policy import CompactionPolicy
from muniment.core.scope import Span, derive_evidence_id, quote_hash
from muniment.errors import InvalidRecord
from muniment.runs.fold import Started, claim_after, conflict_after, corpus_of
from muniment.runs.records import RunClaim, RunConflict, RunLog
from muniment.runs.snapshots import NEXT_ACTIONS_MAX, log_of_wire, snapshot_id_of
from muniment.store.ledger import LedgerEntry

__all__ = ["CHECKS", "SnapshotContext", "changed_since", "entries_named", "validate", "validation_of"]

CHECKS = (
    "shape",
    "sequence",
    "objective_pinned",
    "claims_in_ledger",
    "verified_cited",
    "pointers_resolve",
    "sources_stand",
    "conflicts_two_sided",
    "pointers_only",
    "counts",
    "coverage",
    "next_actions",
)
_NAMED_MAX = 3
"""Maximum number of offenders named in a message."""
_POINTER_EXTRAS = {"corpus_id", "quote_hash"}


@dataclass(frozen=True)
class SnapshotContext:
    """Freshly read data and counts to compare one snapshot with."""

    started: Started | None
    """The pins of the run's first entry (`fold.started_by`); None if it was forgotten."""
    previous: CompactionSnapshot | None
    """The sealed predecessor; None for the first one, and if the earlier ones were forgotten."""
    before: RunLog | None
    """The log of `previous`."""
    last_sequence: int
    """The number of the run's last snapshot ever, forgotten or not; 0 if there was none."""
    events_since: int
    steps_since: int
    entries: Mapping[str, LedgerEntry]
    """All entries that `entries_named` lists for the checked records, if present and intact."""
    chunk: Callable[[str, str], bytes | str]
    """The stored bytes of (corpus_id, chunk_id), or a text with the reason they are missing."""
    standing: Callable[[str, str], str]
    """The standing of the source of (corpus_id, chunk_id): live, superseded or retracted."""
    is_whole: bool = True
    """True to check every claim and conflict, including those unchanged since the predecessor."""
    folded: RunLog | None = None
    """The fold of the ledger, if the snapshot is to be compared with it."""
    damaged: tuple[str, ...] = ()
    """Descriptions of damaged entries among those it was folded from."""


def changed_since(log: RunLog, before: RunLog | None) -> RunLog:
    """The log with only the claims and conflicts that differ from `before`."""
    if before is None:
        return log
    claims = {each.claim_id: each for each in before.claims}
    conflicts = {each.conflict_id: each for each in before.conflicts}
    return log.model_copy(
        update={
            "claims": tuple(each for each in log.claims if claims.get(each.claim_id) != each),
            "conflicts": tuple(each for each in log.conflicts if conflicts.get(each.conflict_id) != each),
        }
    )


def entries_named(log: RunLog) -> list[str]:
    """The entries that made and changed the log's claims and conflicts, deduplicated, in order."""
    records: Iterable[RunClaim | RunConflict] = (*log.claims, *log.conflicts)
    return list(dict.fromkeys(id_ for record in records for id_ in record.entry_ids))


def validate(snapshot: CompactionSnapshot, context: SnapshotContext, policy: CompactionPolicy) -> list[SnapshotCheck]:
    """Every check, in the order of `CHECKS`; then `replay`, if there is a fold to compare with."""
    wire = snapshot.to_wire()
    try:
        log = log_of_wire(CompactionSnapshot.from_wire(wire).to_wire())
    except InvalidRecord as error:
        unread = "not checked: the snapshot does not have the shape of one"
        first = _check("shape", [f"{issue.path}: {issue.message}" for issue in error.issues], "")
        return [first, *(_check(name, [unread], "") for name in CHECKS[1:])]
    fresh = log if context.is_whole else changed_since(log, context.before)
    claims = [claim.claim_id for claim in fresh.claims]
    conflicts = [conflict.conflict_id for conflict in fresh.conflicts]
    issues = check_snapshot(
        wire | {"state": wire["state"] | {"claims": _wires(fresh.claims), "conflicts": _wires(fresh.conflicts)}}
    )
    found: dict[str, Iterable[str]] = {
        "shape": _shape(snapshot, log),
        "sequence": _sequence(snapshot, log, context),
        "objective_pinned": _objective(snapshot, context),
        "claims_in_ledger": _in_ledger(fresh, context),
        "verified_cited": _issues_by_id(issues, "CS-06", claims),
        "pointers_resolve": _unresolved(fresh, context),
        "sources_stand": _fallen(log, context),
        "conflicts_two_sided": _issues_by_id(issues, "CS-07", conflicts),
        "pointers_only": _too_long(fresh, wire, context.before, policy.claim_chars_max),
        "counts": _miscounts(snapshot, log, context),
        "coverage": _coverage(log, policy),
        "next_actions": _actions(wire),
    }
    words = _check_words(log, fresh)
    checks = [_check(name, list(found[name]), words.get(name, "holds")) for name in CHECKS]
    return checks if context.folded is None else [*checks, _replay(log, context.folded, context.damaged)]


def validation_of(
    checks: Iterable[SnapshotCheck], action: Literal["NONE", "RETRY", "SYSTEM_ERROR"]
) -> SnapshotValidation:
    """The contract's validation block of these checks."""
    held = tuple(checks)
    status: Literal["PASS", "FAIL"] = "PASS" if all(check.status == "PASS" for check in held) else "FAIL"
    return SnapshotValidation(status=status, checks=held, failure_action_taken=action)


def _check(name: str, faults: list[str], held: str) -> SnapshotCheck:
    if not faults:
        return SnapshotCheck(name=name, status="PASS", message=held)
    return SnapshotCheck(name=name, status="FAIL", message=_first_of(faults))


def _first_of(faults: list[str]) -> str:
    more = len(faults) - _NAMED_MAX
    return "; ".join(faults[:_NAMED_MAX]) + (f"; and {more} more" if more > 0 else "")


def _check_words(log: RunLog, fresh: RunLog) -> dict[str, str]:
    """A description of the scope of each passed check."""
    relied = _relied(fresh)
    refs = sum(1 for _ in _cited(relied))
    kept = len(log.claims) + len(log.conflicts) - len(fresh.claims) - len(fresh.conflicts)
    rest = f"; {kept} are as the previous snapshot has them" if kept else ""
    return {
        "claims_in_ledger": f"{len(fresh.claims)} claims and {len(fresh.conflicts)} conflicts are what their entries "
        f"say{rest}",
        "verified_cited": f"{len(relied.claims)} verified claims have evidence",
        "pointers_resolve": f"{refs} pointers resolve to the stored bytes",
        "sources_stand": f"{len(_relied(log).claims)} verified claims rest on sources that stand",
        "conflicts_two_sided": f"{len(fresh.conflicts)} conflicts have evidence on both sides",
    }


def _wires(records: Iterable[RunClaim | RunConflict]) -> list[Any]:
    return [record.to_wire() for record in records]


# -- shape, sequence, pins ------------------------------------------------------------------------------


def _shape(snapshot: CompactionSnapshot, log: RunLog) -> Iterator[str]:
    if parse_rfc3339(snapshot.created_at) is None:
        yield f"created_at is no date-time: {snapshot.created_at!r:.60}"
    named = {
        "claim": [claim.claim_id for claim in log.claims],
        "conflict": [conflict.conflict_id for conflict in log.conflicts],
        "failure": [failure.failure_id for failure in log.failures],
        "question": [question.question_id for question in log.open_questions],
    }
    for kind, ids in named.items():
        yield from (f"the {kind} {id_} is listed more than once" for id_ in _repeated(ids))


def _repeated(ids: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return list(dict.fromkeys(id_ for id_ in ids if id_ in seen or seen.add(id_)))  # type: ignore[func-returns-value]


def _sequence(snapshot: CompactionSnapshot, log: RunLog, context: SnapshotContext) -> Iterator[str]:
    previous, before = context.previous, context.before
    if snapshot.sequence != context.last_sequence + 1:
        yield f"wanted the sequence {context.last_sequence + 1}, found {snapshot.sequence}"
    if snapshot.snapshot_id != snapshot_id_of(snapshot.run_id, snapshot.sequence):
        yield f"{snapshot.snapshot_id!r:.80} is not the id of snapshot {snapshot.sequence} of the run"
    wanted = None if previous is None else previous.snapshot_id
    if (snapshot.model_extra or {}).get("previous_snapshot_id") != wanted:
        yield f"wanted {wanted} as previous_snapshot_id"
    if before is None:
        return
    if before.run_id != snapshot.run_id:
        yield f"the previous snapshot is one of the run {before.run_id}"
    if log.seq < before.seq:
        yield f"it goes up to entry {log.seq}, the previous one to {before.seq}"
    for noun, gone in (
        ("claim", {each.claim_id for each in before.claims} - {each.claim_id for each in log.claims}),
        ("conflict", {each.conflict_id for each in before.conflicts} - {each.conflict_id for each in log.conflicts}),
    ):
        yield from (f"the {noun} {id_} of the previous snapshot is missing" for id_ in sorted(gone))


def _objective(snapshot: CompactionSnapshot, context: SnapshotContext) -> Iterator[str]:
    """CS-05: compare with the run's first entry and the predecessor, by the rule of the contract."""
    rule = RunInvariants()
    fixed = {"run_id": snapshot.run_id}
    if context.started is not None:
        rule.add(0, fixed | {"sequence": -1} | context.started._asdict())
    for index, one in ((1, context.previous), (2, snapshot)):
        if one is not None:
            said = {"objective": one.objective, "done_definition": one.done_definition}
            rule.add(index, fixed | {"sequence": index} | said)
    for issue in rule.issues().get(2, ()):
        yield f"{issue.path.removeprefix('$.')} is not what the run started with"


# -- claims and conflicts -----------------------------------------------------------------------------


def _in_ledger(log: RunLog, context: SnapshotContext) -> Iterator[str]:
    """CS-02: the entries that a claim or conflict names, applied in order, must reproduce it."""
    for claim in log.claims:
        fault = _replayed(claim, log.run_id, context.entries, claim_after)
        if fault is not None:
            yield f"the claim {claim.claim_id} {fault}"
    for conflict in log.conflicts:
        fault = _replayed(conflict, log.run_id, context.entries, conflict_after)
        if fault is not None:
            yield f"the conflict {conflict.conflict_id} {fault}"


def _replayed(
    record: RunClaim | RunConflict, run_id: str, entries: Mapping[str, LedgerEntry], after: Any
) -> str | None:
    made: Any = None
    for entry_id in record.entry_ids:
        entry = entries.get(entry_id)
        if entry is None or entry.is_forgotten or entry.scope.run_id != run_id:
            return f"names the entry {entry_id}, which the run's ledger does not hold as it was written"
        made = after(entry, made)
        if made is None:
            return f"names the entry {entry_id}, which says no such thing"
    if made == record:
        return None
    wire, replayed = record.to_wire(), made.to_wire()
    differs = sorted(name for name in wire.keys() | replayed.keys() if wire.get(name) != replayed.get(name))
    return f"is not what its entries say: {', '.join(differs)}"


def _issues_by_id(issues: Iterable[Any], clause: str, ids: list[str]) -> Iterator[str]:
    """The contract's issues of one clause, by record id instead of index."""
    for issue in issues:
        if issue.code == clause:
            match = re.search(r"\[(\d+)\]\.?(\w*)", issue.path)
            assert match is not None
            yield f"{ids[int(match[1])]}, {match[2]}: {issue.message}"


def _cited(log: RunLog) -> Iterator[tuple[str, EvidencePointer]]:
    """Every pointer, with the name of the record that cites it."""
    for claim in log.claims:
        for ref in (*claim.evidence_refs, *(claim.refuted_by or ())):
            yield f"the claim {claim.claim_id}", ref
    for conflict in log.conflicts:
        for ref in (*conflict.side_a_refs, *conflict.side_b_refs):
            yield f"the conflict {conflict.conflict_id}", ref


def _relied(log: RunLog) -> RunLog:
    """The records that others may rely on: verified claims, open conflicts. Retracted ones are history."""
    claims = tuple(claim for claim in log.claims if claim.status == "verified")
    conflicts = tuple(conflict for conflict in log.conflicts if conflict.status == "open")
    return log.model_copy(update={"claims": claims, "conflicts": conflicts})


def _unresolved(log: RunLog, context: SnapshotContext) -> Iterator[str]:
    """CS-06: check each such pointer against the stored bytes, reading each chunk once."""
    by_chunk: dict[tuple[str, str], list[tuple[str, EvidencePointer]]] = {}
    for citing, ref in _cited(_relied(log)):
        by_chunk.setdefault((corpus_of(ref), ref.chunk_id), []).append((citing, ref))
    for (corpus_id, chunk_id), citations in by_chunk.items():
        held = context.chunk(corpus_id, chunk_id)
        for citing, ref in citations:
            fault = held if isinstance(held, str) else _pointer_fault(held, ref)
            if fault is not None:
                yield f"{citing} cites {ref.evidence_id}: {fault}"


def _pointer_fault(data: bytes, ref: EvidencePointer) -> str | None:
    """The fault of a pointer into these bytes; span, quote hash and evidence id are recomputed."""
    extras = ref.model_extra or {}
    if not isinstance(extras.get("corpus_id"), str):
        return "it names no corpus"
    try:
        span = Span.from_wire(ref.span)
    except InvalidRecord:
        return "its span is not {start, end}"
    if span.end > len(data):
        return f"its span ends at byte {span.end}, the chunk has {len(data)}"
    if span.start == span.end:
        return "its span is empty"
    try:
        digest = quote_hash(data[span.start : span.end].decode())
    except UnicodeDecodeError:
        return "its span cuts a character in two"
    if extras.get("quote_hash") != digest:
        return "the bytes at its span are not those that were quoted"
    if ref.evidence_id != derive_evidence_id(corpus_of(ref), ref.chunk_id, span, digest):
        return "its evidence_id is not that of its corpus, chunk, span and quote"
    return None


def _fallen(log: RunLog, context: SnapshotContext) -> Iterator[str]:
    """Verified claims that rest on retracted sources. All are checked, as a document may be retracted between
    snapshots.
    """
    retracted = {claim.claim_id for claim in log.claims if claim.status == "retracted"}
    for claim in log.claims:
        if claim.status != "verified":
            continue
        for basis in claim.depends_on:
            if basis in retracted:
                yield f"the claim {claim.claim_id} depends on {basis}, which was retracted"
        for ref in claim.evidence_refs:
            if context.standing(corpus_of(ref), ref.chunk_id) == "retracted":
                yield f"the claim {claim.claim_id} cites {ref.chunk_id}, whose document was retracted"


# -- sizes and counts ---------------------------------------------------------------------------------


def _too_long(log: RunLog, wire: Mapping[str, Any], before: RunLog | None, limit: int) -> Iterator[str]:
    """CS-03: a snapshot holds pointers and short strings, no full texts. Strings unchanged since the last one are
    allowed by its older limit.
    """
    long = [(where, words) for where, words in (*_words(log), *_listed(wire)) if len(words) > limit]
    held = {words for _, words in _words(before)} if long and before is not None else set()
    for where, words in long:
        if words not in held:
            yield f"{where} has {len(words)} characters, over the limit of {limit}"
    for citing, ref in _cited(log):
        inlined = sorted((ref.model_extra or {}).keys() - _POINTER_EXTRAS)
        if inlined:
            yield f"{citing} cites {ref.evidence_id} with more than a pointer: {', '.join(inlined)}"
        if any(len(text) > limit for text in _texts(ref.to_wire())):
            yield f"{citing} cites {ref.evidence_id} with a text over the limit of {limit} characters"


def _words(log: RunLog) -> Iterator[tuple[str, str]]:
    for claim in log.claims:
        yield f"the statement of {claim.claim_id}", claim.statement
        yield f"the reason of {claim.claim_id}", claim.reason or ""
    for conflict in log.conflicts:
        yield f"the description of {conflict.conflict_id}", conflict.description
        yield f"the resolution of {conflict.conflict_id}", conflict.resolution or ""
    for failure in log.failures:
        for name in ("category", "where", "why"):
            yield f"{name} of {failure.failure_id}", getattr(failure, name)
    for question in log.open_questions:
        yield f"the question {question.question_id}", question.text


def _listed(wire: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("retrieval_diagnostics", "deltas", "latest_context_manifest_ids"):
        yield from ((name, text) for text in _texts(wire.get(name)))
    for name in ("next_actions", "source_coverage"):
        yield from ((f"state.{name}", text) for text in _texts(wire["state"].get(name)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _miscounts(snapshot: CompactionSnapshot, log: RunLog, context: SnapshotContext) -> Iterator[str]:
    counts, before = snapshot.counts, context.before
    compared = (
        ("counted events", counts.counted_events_since_last_compaction, context.events_since),
        ("steps", counts.steps_since_last_compaction, context.steps_since),
    )
    for noun, written, counted in compared:
        if written != counted:
            yield f"wanted {counted} {noun} since the last snapshot, found {written}"
    if before is not None:
        for name, (noun, written, _) in zip(("counted_events", "steps"), compared, strict=True):
            used = getattr(log.spent, name) - getattr(before.spent, name)
            if used != written:
                yield f"budgets.used has {used} more {noun} than the previous snapshot, counts say {written}"
    if any(failure.count < 1 for failure in log.failures):
        yield "a failure was met less than once"


def _coverage(log: RunLog, policy: CompactionPolicy) -> Iterator[str]:
    coverage = log.coverage
    cited, seen = coverage.chunk_ids_cited, coverage.chunk_ids_seen
    refs = [ref for _, ref in _cited(log)]
    chunks = {ref.chunk_id for ref in refs}
    yield from (f"chunk_ids_cited lacks {id_}" for id_ in sorted(chunks - set(cited)))
    yield from (f"chunk_ids_cited names {id_}, which nothing cites" for id_ in sorted(set(cited) - chunks))
    if seen[: len(cited)] != cited:
        yield "chunk_ids_seen does not begin with what is cited"
    if len(seen) - len(cited) > policy.seen_max:
        yield f"chunk_ids_seen holds more than {policy.seen_max} that are not cited"
    for name in ("source_ids_seen", "chunk_ids_seen", "chunk_ids_cited"):
        yield from (f"{name} names {id_} more than once" for id_ in _repeated(getattr(coverage, name)))
    corpora = {corpus_of(ref) for ref in refs} - set(coverage.source_ids_seen)
    yield from (f"source_ids_seen lacks {id_}" for id_ in sorted(corpora))
    if len(log.manifest_ids) > policy.manifests_max:
        yield f"more than {policy.manifests_max} context manifests"


def _actions(wire: Mapping[str, Any]) -> Iterator[str]:
    actions = wire["state"].get("next_actions")
    if not isinstance(actions, list) or not 1 <= len(actions) <= NEXT_ACTIONS_MAX:
        yield f"wanted 1 to {NEXT_ACTIONS_MAX} next actions"
    elif not all(isinstance(action, str) and action.strip() for action in actions):
        yield "a next action says nothing"


# -- a replay -----------------------------------------------------------------------------------------

_SINCE = frozenset({"sequence", "counted_since", "steps_since"})
"""Fields that depend on the time of reading, not on events."""
_IDS = {"claims": "claim_id", "conflicts": "conflict_id", "failures": "failure_id", "open_questions": "question_id"}


def _replay(kept: RunLog, replayed: RunLog, damaged: Sequence[str]) -> SnapshotCheck:
    """CS-12: compare the kept log with the fold of the ledger. Damaged entries are named first."""
    differing = [*damaged, *_differing(kept, replayed)]
    if not differing:
        return SnapshotCheck(name="replay", status="PASS", message="a replay of the whole ledger gives the same state")
    found = "the ledger cannot be replayed" if damaged else "a replay of the ledger gives another state"
    return SnapshotCheck(name="replay", status="FAIL", message=f"{found}: {_first_of(differing)}")


def _differing(kept: RunLog, replayed: RunLog) -> Iterator[str]:
    for name in RunLog.model_fields:
        ours, theirs = getattr(kept, name), getattr(replayed, name)
        if name in _SINCE or ours == theirs:
            continue
        key = _IDS.get(name)
        if key is None:
            yield name
            continue
        held = {getattr(each, key): each for each in ours}
        made = {getattr(each, key): each for each in theirs}
        ids = [id_ for id_ in held | made if held.get(id_) != made.get(id_)]
        yield from (f"{name}: {id_}" for id_ in ids) if ids else iter([f"{name}: their order"])
