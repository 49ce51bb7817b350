"""Runs, their claims, conflicts, failures, questions and next actions, from the entries that tell of them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from muniment.core.canonical import short_id
from muniment.errors import InvalidRecord
from muniment.store.items import Change, Item, digest_name
from muniment.store.ledger import (
    ACTIONS_PLANNED,
    FAILURE_RECORDED,
    OUTPUT_VERIFIED,
    PINNED,
    RUN_FINISHED,
    RUN_LOCKED,
    RUN_STARTED,
    RUN_UNLOCKED,
    LedgerEntry,
    RunState,
)

if TYPE_CHECKING:
    from muniment.core.record import Record

__all__ = [
    "change_of",
    "erased",
    "name_of_words",
    "project_actions",
    "project_claim",
    "project_conflict",
    "project_failure",
    "project_question",
    "project_run",
    "project_verification",
    "run_without",
    "sources_named",
]

_SAID_AT_START = ("task_type", *PINNED)
_FAILED: tuple[str, ...] = ("category", "where", "why", "fingerprint")
_VERIFIED: tuple[str, ...] = ("sources", "sandbox", "traces")
_SAID_OF_LOCK = ("diagnosis", "stop_reason")
Lookup = Callable[[str], Item | None]
_NOT_ITS: Final = object()


def project_run(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """A run begins, ends, is locked and unlocked with a `system` entry that says so in its metadata."""
    event = entry.metadata.get("event")
    if event not in (RUN_STARTED, RUN_FINISHED, RUN_LOCKED, RUN_UNLOCKED):
        return []
    before = lookup(entry.scope.run_id)
    if event == RUN_STARTED:
        said = {key: entry.metadata[key] for key in _SAID_AT_START if key in entry.metadata}
        plain: dict[str, Any] = {"scope": entry.scope.to_wire(), "started_at": entry.ts} | said
        status = "open"
    elif before is None:
        return []
    else:
        # A run that was forgotten goes on, and ends, without what it was for.
        started: dict[str, Any] = {"scope": entry.scope.to_wire(), "started_at": before.created_at}
        plain = started if before.body is None else before.plain()
        plain, status = _after(entry, event, plain)
    try:
        state = RunState.from_wire(plain | {"run_id": entry.scope.run_id})
    except InvalidRecord:  # not written by a run of ours: it says nothing about one
        return []
    return [change_of(entry, entry.scope.run_id, "run", status, state.to_wire(), (entry.id,))]


def _after(entry: LedgerEntry, event: str, plain: dict[str, Any]) -> tuple[dict[str, Any], str]:
    if event == RUN_LOCKED:
        said = {"diagnosis": entry.metadata.get("diagnosis") or {}, "stop_reason": "SYSTEM_ERROR"}
        return plain | said, "locked"
    open_again = {key: value for key, value in plain.items() if key not in _SAID_OF_LOCK}
    if event == RUN_UNLOCKED:
        return open_again, "open"
    return plain | {"finished_at": entry.ts, "stop_reason": entry.metadata.get("stop_reason") or ""}, "finished"


def run_without(item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    """The run goes on; what it was for came from the lost entry and goes with it. Null says that it was once told."""
    plain = item.plain()
    told = {key: None for key in PINNED if key in plain}
    return {key: value for key, value in plain.items() if key not in _SAID_AT_START} | told


def erased(_item: Item, _lost: frozenset[str]) -> None:
    """What may hold words of what was forgotten is forgotten with it."""


def name_of_words(run_id: str, words: str) -> str:
    """What a claim or a question is looked up by: its words within its run."""
    return digest_name(f"{run_id}\n{words}")


def project_claim(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    from muniment.runs.compaction.transitions import claim_after
    from muniment.runs.records import RunClaim

    before = _before(entry, lookup, "claim", RunClaim)
    claim = None if before is _NOT_ITS else claim_after(entry, before)
    if claim is None or claim == before:
        return []
    cited = (ref.chunk_id for ref in (*claim.evidence_refs, *(claim.refuted_by or ())))
    sources = (entry.id, *cited, *claim.depends_on)
    name = name_of_words(entry.scope.run_id, claim.statement)
    return [change_of(entry, claim.claim_id, "claim", claim.status, claim.to_wire(), sources, name)]


def project_conflict(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    from muniment.runs.compaction.transitions import conflict_after
    from muniment.runs.records import RunConflict

    before = _before(entry, lookup, "conflict", RunConflict)
    conflict = None if before is _NOT_ITS else conflict_after(entry, before)
    if conflict is None or conflict == before:
        return []
    cited = (ref.chunk_id for ref in (*conflict.side_a_refs, *conflict.side_b_refs))
    sources = (entry.id, *cited, *conflict.claim_ids)
    return [change_of(entry, conflict.conflict_id, "conflict", conflict.status, conflict.to_wire(), sources)]


def project_question(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    from muniment.runs.compaction.transitions import question_after
    from muniment.runs.records import OpenQuestion

    before = _before(entry, lookup, "question", OpenQuestion)
    question = None if before is _NOT_ITS else question_after(entry, before)
    if question is None or question == before:
        return []
    name = name_of_words(entry.scope.run_id, question.text)
    return [change_of(entry, question.question_id, "question", question.status, question.to_wire(), (entry.id,), name)]


def project_failure(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """One occurrence, told by the run or a tool's result that was not ok. How often it was met, the run's log says."""
    if entry.kind == "tool_result":
        return _failed_tool(entry)
    said = entry.metadata
    id_ = said.get("id")
    if said.get("event") != FAILURE_RECORDED or not isinstance(id_, str) or lookup(id_) is not None:
        return []
    body: dict[str, Any] = {key: said[key] for key in _FAILED if key in said}
    return [change_of(entry, id_, "failure", "recorded", body, sources_named(entry))]


def _failed_tool(entry: LedgerEntry) -> list[Change]:
    if entry.tool is None or entry.tool.ok:
        return []
    from muniment.runs.compaction.transitions import failure_after

    met = failure_after(entry, None)
    if met is None:
        return []
    body: dict[str, Any] = {key: getattr(met, key) for key in _FAILED}
    return [change_of(entry, short_id("flr", [entry.id]), "failure", "met", body, (entry.id,))]


def project_actions(entry: LedgerEntry, _lookup: Lookup) -> list[Change]:
    """What the run means to do next, each time it says so: the latest stands. One item each, so that a forgotten plan
    takes no later one along."""
    actions = entry.metadata.get("actions")
    if entry.metadata.get("event") != ACTIONS_PLANNED or not isinstance(actions, list):
        return []
    if not all(isinstance(each, str) and each.strip() for each in actions):
        return []
    body = {"actions": actions, "seq": entry.seq, "planned_by": entry.id}
    return [change_of(entry, short_id("act", [entry.id]), "next_actions", "planned", body, (entry.id,))]


def project_verification(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """One result of the verifier, and the event that it judges."""
    said = entry.metadata
    id_, result = said.get("id"), said.get("result")
    if said.get("event") != OUTPUT_VERIFIED or not isinstance(id_, str) or lookup(id_) is not None:
        return []
    from muniment.contracts.runs import VerifierResult

    try:
        judged = VerifierResult.from_wire(result)
    except InvalidRecord:  # not written by a run of ours: it says nothing
        return []
    body: dict[str, Any] = {"result": judged.to_wire()} | {key: said[key] for key in _VERIFIED if key in said}
    return [change_of(entry, id_, "verification", judged.verdict, body, sources_named(entry))]


def sources_named(entry: LedgerEntry) -> tuple[str, ...]:
    """The entry itself, and what it says it was made from."""
    named = entry.metadata.get("sources")
    return (entry.id, *(each for each in named if isinstance(each, str))) if isinstance(named, list) else (entry.id,)


def _before(entry: LedgerEntry, lookup: Lookup, kind: str, record: type[Record]) -> Any:
    """The record an entry speaks of, as it stood; None where it is new, `_NOT_ITS` where it speaks of no such one.

    An imported entry may name anything: one that names another's record changes nothing of it.
    """
    from muniment.runs.compaction.transitions import subject_of

    subject = subject_of(entry)
    if subject is None or subject[0] != kind:
        return _NOT_ITS
    item = lookup(subject[1])
    if item is None:
        return None
    if item.kind != kind or item.run_id != entry.scope.run_id or item.user_id != entry.scope.user_id:
        return _NOT_ITS
    return None if item.body is None else record.from_wire(item.plain())


def change_of(
    entry: LedgerEntry,
    id_: str,
    kind: str,
    status: str,
    body: dict[str, Any],
    sources: tuple[str, ...],
    name: str | None = None,
) -> Change:
    return Change(
        id=id_,
        kind=kind,
        status=status,
        body=body,
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=tuple(dict.fromkeys(sources)),
        name=name,
        user_id=entry.scope.user_id,
        agent_id=entry.scope.agent_id,
        session_id=entry.scope.session_id,
        run_id=entry.scope.run_id,
    )
