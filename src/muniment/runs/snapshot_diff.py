"""Two snapshots of one run side by side: what came, what changed its standing, what went. It judges nothing.

A change stands under each question that it answers: a claim made and verified in between is added and verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muniment.contracts.snapshot import Claim, ClaimConflict, CompactionSnapshot, EvidencePointer, RunFailure
from muniment.core.record import Absent, Count, Integer, Items, Number, Record
from muniment.errors import InvalidInput
from muniment.runs.markdown import pointer_text, value_text

__all__ = ["Amount", "Change", "Coverage", "FailureChange", "SnapshotDiff", "diff_snapshots"]


class Change(Record):
    """One claim, conflict or lost thing: what it says, and its standing in the one and the other."""

    id: str
    text: str
    was: Absent[str] = None
    now: Absent[str] = None


class FailureChange(Record):
    """A failure and how often it was met, as far as each snapshot counts it."""

    id: str
    text: str
    times_a: Count
    times_b: Count


class Amount(Record):
    """A number among the budgets, by its path; None where a snapshot does not have it."""

    name: str
    a: Number | None
    b: Number | None


class Coverage(Record):
    """How many sources or chunks each snapshot lists, and those that only the second does."""

    a: Count
    b: Count
    added: Items[str]


class SnapshotDiff(Record):
    """What changed from the snapshot `a` to the snapshot `b` of a run."""

    run_id: str
    a: str
    b: str
    sequence_a: Integer
    sequence_b: Integer
    claims_added: Items[Change]
    claims_verified: Items[Change]
    claims_retracted: Items[Change]
    claims_fell_back: Items[Change]
    """Verified in `a`, and in `b` neither verified nor retracted."""
    claims_reworded: Items[Change]
    """Claims whose statement differs under one id, which does not happen between snapshots that muniment made."""
    evidence_added: Items[EvidencePointer]
    conflicts_opened: Items[Change]
    conflicts_settled: Items[Change]
    failures_new: Items[FailureChange]
    failures_recurring: Items[FailureChange]
    questions_opened: Items[str]
    questions_closed: Items[str]
    gone: Items[Change]
    """Claims, conflicts and failures that `b` does not have: forgotten, or left out by whoever wrote it."""
    budgets: Items[Amount]
    """Every number of the budgets that is not the same in both."""
    sources_seen: Coverage
    chunks_seen: Coverage
    chunks_cited: Coverage

    @property
    def is_same(self) -> bool:
        """Nothing that is compared differs."""
        lists = (value for _, value in self if isinstance(value, tuple))
        covered = (self.sources_seen, self.chunks_seen, self.chunks_cited)
        return not any(lists) and all(each.a == each.b and not each.added for each in covered)

    @property
    def text(self) -> str:
        """The difference for people to read, as Markdown."""
        return _text(self)


def diff_snapshots(a: CompactionSnapshot, b: CompactionSnapshot) -> SnapshotDiff:
    """What changed from `a` to `b`; refused for snapshots of two runs."""
    if a.run_id != b.run_id:
        raise InvalidInput(
            f"these are snapshots of two runs, {a.run_id!r:.80} and {b.run_id!r:.80}",
            path="$.run_id",
            hint="compare two snapshots of one run",
        )
    before, after = a.state.source_coverage, b.state.source_coverage
    return SnapshotDiff(
        run_id=a.run_id,
        a=a.snapshot_id,
        b=b.snapshot_id,
        sequence_a=a.sequence,
        sequence_b=b.sequence,
        **_claims(a.state.claims, b.state.claims),
        **_conflicts(a.state.conflicts, b.state.conflicts),
        **_failures(a.state.failures, b.state.failures),
        evidence_added=tuple(_evidence_added(a, b)),
        questions_opened=_added(a.state.open_questions, b.state.open_questions),
        questions_closed=_added(b.state.open_questions, a.state.open_questions),
        gone=tuple(_gone(a, b)),
        budgets=tuple(_budgets(a, b)),
        sources_seen=_coverage(before.source_ids_seen, after.source_ids_seen),
        chunks_seen=_coverage(before.chunk_ids_seen, after.chunk_ids_seen),
        chunks_cited=_coverage(before.chunk_ids_cited, after.chunk_ids_cited),
    )


# -- comparing ----------------------------------------------------------------------------------------


def _claims(a: Iterable[Claim], b: Iterable[Claim]) -> dict[str, Any]:
    before = {claim.claim_id: claim for claim in a}
    found: dict[str, list[Change]] = {name: [] for name in ("added", "verified", "retracted", "fell_back", "reworded")}
    for claim in b:
        known = before.get(claim.claim_id)
        was, now = _standing(known), _standing(claim)
        change = _change(claim.claim_id, claim.statement, None if known is None else known.status, claim.status)
        if known is None:
            found["added"].append(change)
        elif known.statement != claim.statement:
            found["reworded"].append(change)
        if was != now:
            if now in ("verified", "retracted"):
                found[now].append(change)
            elif was == "verified":
                found["fell_back"].append(change)
    return {f"claims_{name}": tuple(changes) for name, changes in found.items()}


def _standing(record: Any) -> str:
    """The status of a claim or conflict as the contract's rules read it; empty where it has none."""
    status = getattr(record, "status", None)
    return status.strip().casefold() if isinstance(status, str) else ""


def _change(id_: str, text: str, was: str | None, now: str | None) -> Change:
    known = {name: value for name, value in (("was", was), ("now", now)) if value is not None}
    return Change(id=id_, text=text, **known)


def _conflicts(a: Iterable[ClaimConflict], b: Iterable[ClaimConflict]) -> dict[str, Any]:
    before = {conflict.conflict_id: conflict for conflict in a}
    opened, settled = [], []
    for conflict in b:
        known = before.get(conflict.conflict_id)
        was, now = _standing(known), _standing(conflict)
        change = _change(conflict.conflict_id, conflict.description, was or None, now or None)
        if known is None or (was == "settled" != now):
            opened.append(change)
        if now == "settled" != was:
            settled.append(change)
    return {"conflicts_opened": tuple(opened), "conflicts_settled": tuple(settled)}


def _failures(a: Iterable[RunFailure], b: Iterable[RunFailure]) -> dict[str, Any]:
    before = {failure.failure_id: failure for failure in a}
    new, recurring = [], []
    for failure in b:
        known = before.get(failure.failure_id)
        times_a, times_b = 0 if known is None else _times(known), _times(failure)
        change = FailureChange(
            id=failure.failure_id,
            text=f"{failure.category} in {failure.where}: {failure.why}",
            times_a=times_a,
            times_b=times_b,
        )
        if known is None:
            new.append(change)
        elif times_b > times_a:
            recurring.append(change)
    return {"failures_new": tuple(new), "failures_recurring": tuple(recurring)}


def _times(failure: RunFailure) -> int:
    count = getattr(failure, "count", None)
    return count if type(count) is int and count >= 0 else 1


def _pointers(snapshot: CompactionSnapshot) -> Iterator[EvidencePointer]:
    for claim in snapshot.state.claims:
        yield from claim.evidence_refs
    for conflict in snapshot.state.conflicts:
        yield from (*conflict.side_a_refs, *conflict.side_b_refs)


def _evidence_added(a: CompactionSnapshot, b: CompactionSnapshot) -> Iterator[EvidencePointer]:
    seen = {pointer.evidence_id for pointer in _pointers(a)}
    for pointer in _pointers(b):
        if pointer.evidence_id not in seen:
            seen.add(pointer.evidence_id)
            yield pointer


def _gone(a: CompactionSnapshot, b: CompactionSnapshot) -> Iterator[Change]:
    claims = {claim.claim_id for claim in b.state.claims}
    conflicts = {conflict.conflict_id for conflict in b.state.conflicts}
    failures = {failure.failure_id for failure in b.state.failures}
    yield from (
        Change(id=claim.claim_id, text=claim.statement, was=claim.status)
        for claim in a.state.claims
        if claim.claim_id not in claims
    )
    yield from (
        Change(id=conflict.conflict_id, text=conflict.description, was="conflict")
        for conflict in a.state.conflicts
        if conflict.conflict_id not in conflicts
    )
    yield from (
        Change(id=failure.failure_id, text=failure.why, was="failure")
        for failure in a.state.failures
        if failure.failure_id not in failures
    )


def _added(a: Iterable[str], b: Iterable[str]) -> tuple[str, ...]:
    """What `b` has and `a` has not, each once, in its order."""
    known = set(a)
    return tuple(dict.fromkeys(each for each in b if each not in known))


def _coverage(a: tuple[str, ...], b: tuple[str, ...]) -> Coverage:
    return Coverage(a=len(a), b=len(b), added=_added(a, b))


def _budgets(a: CompactionSnapshot, b: CompactionSnapshot) -> Iterator[Amount]:
    before, after = (dict(_numbers(getattr(each, "budgets", None), "")) for each in (a, b))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield Amount(name=name, a=before.get(name), b=after.get(name))


def _numbers(value: Any, path: str) -> Iterator[tuple[str, int | float]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(part, f"{path}.{key}" if path else key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


# -- for people ---------------------------------------------------------------------------------------


def _text(diff: SnapshotDiff) -> str:
    parts = [
        "# What changed between two snapshots",
        f"- run: {value_text(diff.run_id)}\n"
        f"- from: {value_text(diff.a)}, number {value_text(diff.sequence_a)}\n"
        f"- to: {value_text(diff.b)}, number {value_text(diff.sequence_b)}",
    ]
    for title, lines in _groups(diff):
        if lines:
            parts += [f"## {title}: {len(lines)}", "\n".join(f"- {line}" for line in lines)]
    if diff.is_same:
        parts.append("nothing changed")
    return "\n\n".join(parts) + "\n"


def _groups(diff: SnapshotDiff) -> Iterator[tuple[str, list[str]]]:
    yield "Claims added", list(map(_change_line, diff.claims_added))
    yield "Claims verified", list(map(_change_line, diff.claims_verified))
    yield "Claims retracted", list(map(_change_line, diff.claims_retracted))
    yield "Claims that fell back", list(map(_change_line, diff.claims_fell_back))
    yield "Claims reworded", list(map(_change_line, diff.claims_reworded))
    yield "Evidence added", list(map(pointer_text, diff.evidence_added))
    yield "Conflicts opened", list(map(_change_line, diff.conflicts_opened))
    yield "Conflicts settled", list(map(_change_line, diff.conflicts_settled))
    yield "New failures", list(map(_failure_line, diff.failures_new))
    yield "Failures met again", list(map(_failure_line, diff.failures_recurring))
    yield "Questions opened", list(map(value_text, diff.questions_opened))
    yield "Questions closed", list(map(value_text, diff.questions_closed))
    yield "No longer there", list(map(_change_line, diff.gone))
    yield "Budgets", [f"{value_text(each.name)}: {_amount(each.a)} → {_amount(each.b)}" for each in diff.budgets]
    yield "Coverage", list(_coverage_lines(diff))


def _change_line(change: Change) -> str:
    standing = " → ".join(value_text(each) for each in (change.was, change.now) if each is not None)
    return f"{value_text(change.id)}{f' ({standing})' if standing else ''}: {value_text(change.text)}"


def _failure_line(change: FailureChange) -> str:
    times = f"{change.times_a} → {change.times_b}" if change.times_a else str(change.times_b)
    return f"{value_text(change.id)} (times: {times}): {value_text(change.text)}"


def _amount(value: float | None) -> str:
    return "none" if value is None else value_text(value)


def _coverage_lines(diff: SnapshotDiff) -> Iterator[str]:
    named = {"sources seen": diff.sources_seen, "chunks seen": diff.chunks_seen, "chunks cited": diff.chunks_cited}
    for name, each in named.items():
        if each.added or each.a != each.b:
            new = f"; new: {', '.join(map(value_text, each.added))}" if each.added else ""
            yield f"{name}: {each.a} → {each.b}{new}"
