"""Does a snapshot hold? Every check is made anew against what the runtime read from the store (CS-08, CS-09).

The snapshot's own `validation` block is never looked at. All checks are made, in a fixed order and under fixed names;
each names the first that offend it and how many there are. Linear in claims.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from muniment.contracts.semantics import RunInvariants, check_snapshot
from muniment.contracts.snapshot import CompactionSnapshot, EvidencePointer, SnapshotCheck, SnapshotValidation
from muniment.core.instants import parse_rfc3339
from muniment.core.policy import CompactionPolicy
from muniment.errors import InvalidRecord
from muniment.runs.compaction.agreement import compare_logs
from muniment.runs.compaction.folding import corpus_of
from muniment.runs.compaction.pointing import chunk_faults
from muniment.runs.compaction.snapshots import NEXT_ACTIONS_MAX, log_of, snapshot_id_of
from muniment.runs.compaction.transitions import Started, claim_after, conflict_after
from muniment.runs.records import RunClaim, RunConflict, RunLog
from muniment.store.ledger import LedgerEntry

__all__ = ["CHECKS", "Known", "entries_named", "validate", "validation_of"]

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
"""Offenders that a message names, at most."""
_POINTER_EXTRAS = {"corpus_id", "quote_hash"}


@dataclass(frozen=True)
class Known:
    """What the runtime read and counted anew, for one snapshot to be held against."""

    started: Started | None
    """What the run's first entry pins (`transitions.started_by`); None where it was forgotten."""
    previous: CompactionSnapshot | None
    """The predecessor; None for the first one, and where the earlier ones were forgotten."""
    last_sequence: int
    """The number of the last snapshot the run ever had, forgotten or not; 0 where it had none."""
    events_since: int
    steps_since: int
    entries: Mapping[str, LedgerEntry]
    """All that `entries_named` lists, as far as they are there and are as they were written."""
    chunk: Callable[[str, str], bytes | str]
    """The stored bytes of (corpus_id, chunk_id), or in words why there are none."""
    standing: Callable[[str, str], str]
    """How the source of (corpus_id, chunk_id) stands: live, superseded or retracted."""
    folded: RunLog | None = None
    """What the ledger folds to, where the snapshot is to be compared with it."""
    damaged: tuple[str, ...] = ()
    """Of the entries it was folded from, those that are not as they were written, in words."""

    @cached_property
    def before(self) -> RunLog | None:
        """The predecessor's log."""
        return None if self.previous is None else log_of(self.previous)


def entries_named(log: RunLog) -> list[str]:
    """The entries that made and changed the log's claims and conflicts, each once, in order."""
    records: Iterable[RunClaim | RunConflict] = (*log.claims, *log.conflicts)
    return list(dict.fromkeys(id_ for record in records for id_ in record.told_by))


def validate(snapshot: CompactionSnapshot, known: Known, policy: CompactionPolicy) -> list[SnapshotCheck]:
    """Every check, in the order of `CHECKS`; then `replay`, where there is something to compare with."""
    wire = snapshot.to_wire()
    try:
        log = log_of(CompactionSnapshot.from_wire(wire))
        before = known.before
    except InvalidRecord as error:
        unread = "not checked: the snapshot, or the previous one, has not the shape of one"
        first = _check("shape", [f"{issue.path}: {issue.message}" for issue in error.issues], "")
        return [first, *(_check(name, [unread], "") for name in CHECKS[1:])]
    issues = check_snapshot(wire)
    claims = [claim.claim_id for claim in log.claims]
    conflicts = [conflict.conflict_id for conflict in log.conflicts]
    found: dict[str, Iterable[str]] = {
        "shape": _shape(snapshot, log),
        "sequence": _sequence(snapshot, log, before, known),
        "objective_pinned": _objective(snapshot, known),
        "claims_in_ledger": _in_ledger(log, known),
        "verified_cited": _issues_by_id(issues, "CS-06", claims),
        "pointers_resolve": _unresolved(log, known),
        "sources_stand": _fallen(log, known),
        "conflicts_two_sided": _issues_by_id(issues, "CS-07", conflicts),
        "pointers_only": _too_long(log, wire, before, policy.claim_chars_max),
        "counts": _miscounts(snapshot, log, before, known),
        "coverage": _coverage(log, policy),
        "next_actions": _actions(wire),
    }
    told = _check_words(log)
    checks = [_check(name, list(found[name]), told.get(name, "holds")) for name in CHECKS]
    return checks if known.folded is None else [*checks, compare_logs(log, known.folded, known.damaged)]


def validation_of(
    checks: Iterable[SnapshotCheck], action: Literal["NONE", "RETRY", "SYSTEM_ERROR"]
) -> SnapshotValidation:
    """The contract's block of these checks."""
    held = tuple(checks)
    status: Literal["PASS", "FAIL"] = "PASS" if all(check.status == "PASS" for check in held) else "FAIL"
    return SnapshotValidation(status=status, checks=held, failure_action_taken=action)


def _check(name: str, faults: list[str], held: str) -> SnapshotCheck:
    if not faults:
        return SnapshotCheck(name=name, status="PASS", message=held)
    more = len(faults) - _NAMED_MAX
    said = "; ".join(faults[:_NAMED_MAX]) + (f"; and {more} more" if more > 0 else "")
    return SnapshotCheck(name=name, status="FAIL", message=said)


def _check_words(log: RunLog) -> dict[str, str]:
    """What a check that holds looked at."""
    verified = sum(claim.status == "verified" for claim in log.claims)
    refs = sum(1 for _ in _cited(_relied(log)))
    return {
        "claims_in_ledger": f"{len(log.claims)} claims and {len(log.conflicts)} conflicts are what their entries say",
        "verified_cited": f"{verified} verified claims have evidence",
        "pointers_resolve": f"{refs} pointers resolve to the stored bytes",
        "sources_stand": f"{verified} verified claims rest on sources that stand",
        "conflicts_two_sided": f"{len(log.conflicts)} conflicts have evidence on both sides",
    }


# -- shape, sequence, what is pinned ------------------------------------------------------------------


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
        yield from (f"the {kind} {id_} stands more than once" for id_ in _repeated(ids))


def _repeated(ids: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return list(dict.fromkeys(id_ for id_ in ids if id_ in seen or seen.add(id_)))  # type: ignore[func-returns-value]


def _sequence(snapshot: CompactionSnapshot, log: RunLog, before: RunLog | None, known: Known) -> Iterator[str]:
    previous = known.previous
    if snapshot.sequence != known.last_sequence + 1:
        yield f"wanted the sequence {known.last_sequence + 1}, found {snapshot.sequence}"
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


def _objective(snapshot: CompactionSnapshot, known: Known) -> Iterator[str]:
    """CS-05, against the run's first entry and the predecessor, by the rule of the contract."""
    rule = RunInvariants()
    fixed = {"run_id": snapshot.run_id}
    if known.started is not None:
        rule.add(0, fixed | {"sequence": -1} | known.started._asdict())
    for index, one in ((1, known.previous), (2, snapshot)):
        if one is not None:
            said = {"objective": one.objective, "done_definition": one.done_definition}
            rule.add(index, fixed | {"sequence": index} | said)
    for issue in rule.issues().get(2, ()):
        yield f"{issue.path.removeprefix('$.')} is not what the run started with"


# -- claims and conflicts -----------------------------------------------------------------------------


def _in_ledger(log: RunLog, known: Known) -> Iterator[str]:
    """CS-02: the entries that spoke of a claim or conflict, taken in turn, must make it again."""
    for claim in log.claims:
        fault = _retold(claim, log.run_id, known.entries, claim_after)
        if fault is not None:
            yield f"the claim {claim.claim_id} {fault}"
    for conflict in log.conflicts:
        fault = _retold(conflict, log.run_id, known.entries, conflict_after)
        if fault is not None:
            yield f"the conflict {conflict.conflict_id} {fault}"


def _retold(record: RunClaim | RunConflict, run_id: str, entries: Mapping[str, LedgerEntry], after: Any) -> str | None:
    made: Any = None
    for entry_id in record.told_by:
        entry = entries.get(entry_id)
        if entry is None or entry.is_forgotten or entry.scope.run_id != run_id:
            return f"names the entry {entry_id}, which the run's ledger does not hold as it was written"
        made = after(entry, made)
        if made is None:
            return f"names the entry {entry_id}, which says no such thing"
    if made == record:
        return None
    wire, told = record.to_wire(), made.to_wire()
    differs = sorted(name for name in wire.keys() | told.keys() if wire.get(name) != told.get(name))
    return f"is not what its entries say: {', '.join(differs)}"


def _issues_by_id(issues: Iterable[Any], clause: str, ids: list[str]) -> Iterator[str]:
    """The contract's issues of one clause, under the id of the record instead of its index."""
    for issue in issues:
        if issue.code == clause:
            match = re.search(r"\[(\d+)\]\.?(\w*)", issue.path)
            assert match is not None
            yield f"{ids[int(match[1])]}, {match[2]}: {issue.message}"


def _cited(log: RunLog) -> Iterator[tuple[str, EvidencePointer]]:
    """Every pointer, with the name of what cites it."""
    for claim in log.claims:
        for ref in (*claim.evidence_refs, *(claim.refuted_by or ())):
            yield f"the claim {claim.claim_id}", ref
    for conflict in log.conflicts:
        for ref in (*conflict.side_a_refs, *conflict.side_b_refs):
            yield f"the conflict {conflict.conflict_id}", ref


def _relied(log: RunLog) -> RunLog:
    """The log with what somebody may rely on alone: verified claims, open conflicts. What was taken back is history."""
    claims = tuple(claim for claim in log.claims if claim.status == "verified")
    conflicts = tuple(conflict for conflict in log.conflicts if conflict.status == "open")
    return log.model_copy(update={"claims": claims, "conflicts": conflicts})


def _unresolved(log: RunLog, known: Known) -> Iterator[str]:
    """CS-06: each pointer that is relied on against the stored bytes; each chunk is read once."""
    by_chunk: dict[tuple[str, str], list[tuple[str, EvidencePointer]]] = {}
    for citing, ref in _cited(_relied(log)):
        by_chunk.setdefault((corpus_of(ref), ref.chunk_id), []).append((citing, ref))
    for (corpus_id, chunk_id), citations in by_chunk.items():
        held = known.chunk(corpus_id, chunk_id)
        for (citing, ref), fault in zip(citations, chunk_faults(held, [ref for _, ref in citations]), strict=True):
            if fault is not None:
                yield f"{citing} cites {ref.evidence_id}: {fault}"


def _fallen(log: RunLog, known: Known) -> Iterator[str]:
    """A verified claim rests on nothing that was retracted."""
    retracted = {claim.claim_id for claim in log.claims if claim.status == "retracted"}
    for claim in log.claims:
        if claim.status != "verified":
            continue
        for basis in claim.depends_on:
            if basis in retracted:
                yield f"the claim {claim.claim_id} depends on {basis}, which was retracted"
        for ref in claim.evidence_refs:
            if known.standing(corpus_of(ref), ref.chunk_id) == "retracted":
                yield f"the claim {claim.claim_id} cites {ref.chunk_id}, whose document was retracted"


# -- sizes and counts ---------------------------------------------------------------------------------


def _too_long(log: RunLog, wire: Mapping[str, Any], before: RunLog | None, limit: int) -> Iterator[str]:
    """CS-03: a snapshot holds pointers and short words, no texts. What the last one held, an older limit let in."""
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


def _miscounts(snapshot: CompactionSnapshot, log: RunLog, before: RunLog | None, known: Known) -> Iterator[str]:
    counts = snapshot.counts
    told = (
        ("counted events", counts.counted_events_since_last_compaction, known.events_since),
        ("steps", counts.steps_since_last_compaction, known.steps_since),
    )
    for noun, said, found in told:
        if said != found:
            yield f"wanted {found} {noun} since the last snapshot, found {said}"
    if before is not None:
        for name, (noun, said, _) in zip(("counted_events", "steps"), told, strict=True):
            used = getattr(log.spent, name) - getattr(before.spent, name)
            if used != said:
                yield f"budgets.used has {used} more {noun} than the previous snapshot, counts say {said}"
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
