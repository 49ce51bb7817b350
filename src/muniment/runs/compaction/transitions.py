"""What one entry does to one record of a run: a claim, a conflict, a failure, a question, the run's beginning.

Written once, for the items and for the fold. None means that the entry says nothing about the record: it speaks of
something else, comes out of turn, or is not of our form, as an imported ledger's may be. Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from muniment.contracts.snapshot import EvidencePointer
from muniment.core.canonical import short_id
from muniment.core.record import JsonObject
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidRecord
from muniment.runs.records import CountedFailure, OpenQuestion, RunClaim, RunConflict
from muniment.store.ledger import (
    CLAIM_DEMOTED,
    CLAIM_MADE,
    CLAIM_RETRACTED,
    CLAIM_VERIFIED,
    CONFLICT_RECORDED,
    CONFLICT_SETTLED,
    FAILURE_RECORDED,
    QUESTION_CLOSED,
    QUESTION_OPENED,
    RUN_STARTED,
    LedgerEntry,
)

__all__ = [
    "TOOL_FAILURE",
    "Started",
    "Subject",
    "claim_after",
    "conflict_after",
    "failure_after",
    "failure_fingerprint",
    "failure_id",
    "question_after",
    "started_by",
    "subject_of",
]

TOOL_FAILURE = "tool_failure"
"""The category of a `tool_result` that was not ok."""
WHY_CHARS_MAX = 200
"""Of a tool's output, as the reason of a failure."""

Kind = Literal["claim", "conflict", "failure", "question"]
Subject = tuple[Kind, str]

_SUBJECTS: dict[str, Kind] = {
    CLAIM_MADE: "claim",
    CLAIM_VERIFIED: "claim",
    CLAIM_RETRACTED: "claim",
    CLAIM_DEMOTED: "claim",
    CONFLICT_RECORDED: "conflict",
    CONFLICT_SETTLED: "conflict",
    QUESTION_OPENED: "question",
    QUESTION_CLOSED: "question",
}


def subject_of(entry: LedgerEntry) -> Subject | None:
    """Which record an entry speaks of."""
    if entry.kind == "tool_result":
        failed = _failed_tool(entry)
        return None if failed is None else ("failure", failure_id(entry.scope.run_id, failed["fingerprint"]))
    said = _patch(entry)
    event = said.get("event")
    if not isinstance(event, str):
        return None
    if event == FAILURE_RECORDED:
        mark = said.get("fingerprint")
        return ("failure", failure_id(entry.scope.run_id, mark)) if isinstance(mark, str) and mark else None
    kind, id_ = _SUBJECTS.get(event), said.get("id")
    return (kind, id_) if kind is not None and isinstance(id_, str) and id_ else None


def _patch(entry: LedgerEntry) -> JsonObject:
    """What a `state_patch` says. Entries of other kinds, whose metadata anyone may choose, say nothing."""
    return entry.metadata if entry.kind == "state_patch" else {}


# -- the run ------------------------------------------------------------------------------------------


class Started(NamedTuple):
    """What a run is for, as its first entry says; empty where it was not told."""

    objective: str
    done_definition: JsonObject | str
    budgets: JsonObject


def started_by(entry: LedgerEntry) -> Started | None:
    """What this entry pins, where it is the one that starts a run."""
    if entry.kind != "system" or entry.metadata.get("event") != RUN_STARTED:
        return None
    said = entry.metadata
    objective, done, budgets = said.get("objective", ""), said.get("done_definition", ""), said.get("budgets", {})
    if isinstance(objective, str) and isinstance(done, str | dict) and isinstance(budgets, dict):
        return Started(objective, done, budgets)
    return None


# -- claims and conflicts -----------------------------------------------------------------------------


def claim_after(entry: LedgerEntry, before: RunClaim | None) -> RunClaim | None:
    """The claim as this entry leaves it. What was retracted stays so: a new claim takes its place."""
    said = _patch(entry)
    event = said.get("event")
    try:
        if event == CLAIM_MADE:
            return None if before is not None else _claim_made(entry, said)
        if before is None or said.get("id") != before.claim_id or before.status == "retracted":
            return None
        change = _CLAIM_CHANGES.get(event) if isinstance(event, str) else None
        return None if change is None else change(entry, said, before)
    except InvalidRecord:
        return None


def _claim_made(entry: LedgerEntry, said: JsonObject) -> RunClaim | None:
    if said.get("status") == "retracted":
        return None
    return RunClaim.from_wire(
        {
            "claim_id": said.get("id"),
            "status": said.get("status"),
            "statement": said.get("statement"),
            "evidence_refs": said.get("evidence_refs", []),
            "made_by": entry.id,
            "between": [],
            "changed_by": entry.id,
            "depends_on": said.get("depends_on", []),
        }
    )


def _claim_verified(entry: LedgerEntry, said: JsonObject, before: RunClaim) -> RunClaim:
    refs = {ref.evidence_id: ref for ref in (*_pointers(said), *before.evidence_refs)}
    order = dict.fromkeys((*(ref.evidence_id for ref in before.evidence_refs), *refs))
    return _changed(before, entry, None, status="verified", evidence_refs=tuple(refs[id_] for id_ in order))


def _claim_retracted(entry: LedgerEntry, said: JsonObject, before: RunClaim) -> RunClaim:
    refs = _pointers(said)
    against = {"refuted_by": refs} if refs else {}
    return _changed(before, entry, said.get("reason"), status="retracted", **against)


def _claim_demoted(entry: LedgerEntry, said: JsonObject, before: RunClaim) -> RunClaim | None:
    if before.status != "verified":
        return None
    return _changed(before, entry, said.get("reason"), status="candidate")


_CLAIM_CHANGES: dict[str, Callable[[LedgerEntry, JsonObject, RunClaim], RunClaim | None]] = {
    CLAIM_VERIFIED: _claim_verified,
    CLAIM_RETRACTED: _claim_retracted,
    CLAIM_DEMOTED: _claim_demoted,
}


def _changed(before: RunClaim, entry: LedgerEntry, reason: Any, **fields: Any) -> RunClaim:
    """The claim with these fields, the reason for its present status alone, and this entry as its last."""
    if reason is not None and not isinstance(reason, str):
        raise InvalidRecord("not a reason", [])
    kept = {name: getattr(before, name) for name in before.model_fields_set if name != "reason"}
    between = before.between if before.changed_by == before.made_by else (*before.between, before.changed_by)
    if reason is not None:
        fields["reason"] = reason
    return RunClaim(**kept | fields | {"between": between, "changed_by": entry.id})


def _pointers(said: JsonObject) -> tuple[EvidencePointer, ...]:
    given = said.get("evidence_refs", [])
    if not isinstance(given, list):
        raise InvalidRecord("not a list of pointers", [])
    return tuple(EvidencePointer.from_wire(each) for each in given)


def conflict_after(entry: LedgerEntry, before: RunConflict | None) -> RunConflict | None:
    """The conflict as this entry leaves it. It is settled once."""
    said = _patch(entry)
    event = said.get("event")
    if event == CONFLICT_RECORDED and before is None:
        wire = {
            "conflict_id": said.get("id"),
            "description": said.get("description"),
            "side_a_refs": said.get("side_a_refs"),
            "side_b_refs": said.get("side_b_refs"),
            "status": "open",
            "claim_ids": said.get("claim_ids", []),
            "made_by": entry.id,
            "changed_by": entry.id,
        }
    elif event == CONFLICT_SETTLED and before is not None and before.status == "open":
        if said.get("id") != before.conflict_id:
            return None
        settled = {"status": "settled", "changed_by": entry.id, "resolution": said.get("resolution")}
        wire = before.to_wire() | settled
    else:
        return None
    try:
        return RunConflict.from_wire(wire)
    except InvalidRecord:
        return None


# -- failures -----------------------------------------------------------------------------------------


def failure_after(entry: LedgerEntry, before: CountedFailure | None) -> CountedFailure | None:
    """The failure with this meeting counted; its words stay those of the first."""
    said = _failed_tool(entry) if entry.kind == "tool_result" else _patch(entry)
    if said is None or said.get("event", FAILURE_RECORDED) != FAILURE_RECORDED:
        return None
    mark = said.get("fingerprint")
    if not isinstance(mark, str) or not mark:
        return None
    id_ = failure_id(entry.scope.run_id, mark)
    try:
        met = CountedFailure.from_wire(
            {name: said.get(name) for name in ("category", "where", "why", "fingerprint")}
            | {"failure_id": id_, "count": 1, "first_by": entry.id, "last_by": entry.id}
        )
    except InvalidRecord:
        return None
    if before is None:
        return met
    if before.failure_id != id_:
        return None
    return before.model_copy(update={"count": before.count + 1, "last_by": entry.id})


def _failed_tool(entry: LedgerEntry) -> dict[str, str] | None:
    """A tool's result that was not ok, told as a failure is."""
    tool, body = entry.tool, entry.body
    if entry.kind != "tool_result" or body is None or tool is None or tool.ok:
        return None
    if body.content is None:
        why = f"an output of {body.bytes or 0} bytes"
    else:
        why = body.content.strip().partition("\n")[0].strip()[:WHY_CHARS_MAX] or "no output"
    mark = failure_fingerprint(TOOL_FAILURE, tool.name, why)
    return {"category": TOOL_FAILURE, "where": tool.name, "why": why, "fingerprint": mark}


_ALIKE = (
    (lazy_pattern(r'"[^"]*+"|“[^“”]*+”|`[^`]*+`|(?<!\w)\'[^\']*+\'(?!\w)'), "<text>"),
    (lazy_pattern(r"(?:(?<![a-z0-9+.-])|(?<=[+.-])(?<![a-z0-9+.-][+.-]))[a-z][a-z0-9+.-]*+://\S++"), "<path>"),
    (lazy_pattern(r"(?<![\w.~/\\-])(?:[a-z]:|~|\.{1,2})?(?:[\\/][\w.@+~-]++)++[\\/]?"), "<path>"),
    (lazy_pattern(r"(?<![\w.\\/-])(?:[\w.-]++[\\/])++[\w-]*+\.\w++"), "<path>"),
    (lazy_pattern(r"(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])"), "#"),
    (lazy_pattern(r"(?<![0-9a-z])(?:0x[0-9a-f]++|(?=[a-f]*+\d)[0-9a-f]{8,}+)(?![0-9a-z])"), "#"),
    (lazy_pattern(r"\d++(?:[.,:]\d++)*+"), "#"),
    (lazy_pattern(r"\s++"), " "),
)
"""What differs between two meetings of one failure, and what stands for it. Each begins only where a run does that it
may read, so that a page of openings is read once."""


def failure_fingerprint(category: str, where: str, why: str) -> str:
    """A key that is equal for failures that differ in numbers, ids, quoted words, paths, case or white space alone."""
    return short_id("ffp", [category, _alike(where), _alike(why)])


def _alike(words: str) -> str:
    said = words.casefold()
    for pattern, stands in _ALIKE:
        said = pattern.sub(stands, said)
    return said.strip()


def failure_id(run_id: str, fingerprint: str) -> str:
    return short_id("flr", [run_id, fingerprint])


# -- questions ----------------------------------------------------------------------------------------


def question_after(entry: LedgerEntry, before: OpenQuestion | None) -> OpenQuestion | None:
    """The question as this entry leaves it, open or closed. A closed one may be asked anew."""
    said = _patch(entry)
    event = said.get("event")
    is_open = before is not None and before.status == "open"
    if event == QUESTION_OPENED and not is_open:
        wire = {"question_id": said.get("id"), "text": said.get("text"), "opened_by": entry.id, "status": "open"}
    elif event == QUESTION_CLOSED and before is not None and is_open and said.get("id") == before.question_id:
        answer = {"answer": said["answer"]} if "answer" in said else {}
        wire = before.to_wire() | {"status": "closed"} | answer
    else:
        return None
    try:
        return OpenQuestion.from_wire(wire)
    except InvalidRecord:
        return None
