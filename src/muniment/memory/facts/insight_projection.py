"""Procedures, insights and candidates from `state_patch` entries, and what is left of them without sources. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from muniment.core.scope import Trust, lowest_trust
from muniment.errors import InvalidRecord
from muniment.memory.facts.projection import left_of, level_columns, texts_in
from muniment.memory.facts.records import Judgement, StoredCandidate, StoredInsight, StoredProcedure
from muniment.store.items import Change, Item, Rewritten, digest_name
from muniment.store.ledger import (
    CANDIDATE_DECIDED,
    CANDIDATE_PROPOSED,
    INSIGHT_JUDGED,
    INSIGHT_PROMOTED,
    INSIGHT_SUPPOSED,
    PROCEDURE_RETIRED,
    PROCEDURE_USED,
    PROCEDURE_WRITTEN,
    LedgerEntry,
)

__all__ = [
    "candidate_without",
    "insight_without",
    "procedure_without",
    "project_candidate",
    "project_insight",
    "project_procedure",
]

Lookup = Callable[[str], Item | None]


def _before(entry: LedgerEntry, lookup: Lookup, kind: str) -> Item | None:
    """The item that an entry changes, where it is still there."""
    id_ = entry.metadata.get("id")
    item = lookup(id_) if isinstance(id_, str) else None
    return item if item is not None and item.kind == kind and item.body is not None else None


def _next(
    item: Item, entry: LedgerEntry, body: dict[str, Any], status: str, trust: Trust, sources: Iterable[str]
) -> Change:
    """The next version of an item, where it was."""
    return Change(
        id=item.id,
        kind=item.kind,
        status=status,
        body=body,
        created_at=entry.recorded_at,
        trust=trust,
        sources=(*sources, entry.id),
        name=item.name,
        user_id=item.user_id,
        agent_id=item.agent_id,
        session_id=item.session_id,
        run_id=item.run_id,
    )


# -- procedures ---------------------------------------------------------------------------------------


def project_procedure(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Written, retired, or used once more."""
    event = entry.metadata.get("event")
    try:
        if event == PROCEDURE_WRITTEN:
            return [_written(entry)]
        if event == PROCEDURE_RETIRED:
            before = _before(entry, lookup, "procedure")
            if before is None:
                return []
            body = before.plain() | {"is_retired": True}
            return [_next(before, entry, body, "retired", before.trust, ())]
        return _used(entry, lookup) if event == PROCEDURE_USED else []
    except InvalidRecord:  # not written by a run of ours: it says nothing about a procedure
        return []


def _written(entry: LedgerEntry) -> Change:
    said = entry.metadata
    origin = said.get("from")
    stored = StoredProcedure.from_wire(
        {
            "procedure": said.get("procedure"),
            "scope_level": said.get("scope_level"),
            "patch": entry.id,
            "origin": origin,
            "usage": 0,
            "is_retired": False,
        }
    )
    return Change(
        id=stored.procedure.procedure_id,
        kind="procedure",
        status="active",
        body=stored.to_wire(),
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=(*(stored.procedure.sources or ()), *texts_in([origin]), entry.id),
        name=digest_name(stored.procedure.task_type),
        **level_columns(entry, stored.scope_level),
    )


def _used(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    changes = []
    for id_ in texts_in(entry.metadata.get("ids")):
        item = lookup(id_)
        if item is not None and item.kind == "procedure" and item.body is not None:
            body = item.plain()
            body["usage"] += 1
            changes.append(_next(item, entry, body, item.status, item.trust, ()))
    return changes


def procedure_without(item: Item, lost: frozenset[str]) -> Rewritten | None:
    """What is left of a procedure without some of its sources. It needs one of them; one that was written without any
    stands by its own patch.
    """
    stored = StoredProcedure.from_wire(item.plain())
    named = stored.procedure.sources or ()
    left = left_of(named, lost)
    if stored.patch in lost or stored.origin in lost or (named and not left):
        return None
    if named:
        procedure = stored.procedure.model_copy(update={"sources": left})
        stored = stored.model_copy(update={"procedure": procedure})
    return Rewritten(stored.to_wire(), item.status, item.trust)


# -- insights -----------------------------------------------------------------------------------------


def project_insight(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Supposed, judged, promoted."""
    event = entry.metadata.get("event")
    try:
        if event == INSIGHT_SUPPOSED:
            return [_supposed(entry)]
        if event not in (INSIGHT_JUDGED, INSIGHT_PROMOTED):
            return []
        before = _before(entry, lookup, "insight")
        if before is None:
            return []
        stored = StoredInsight.from_wire(before.plain())
        if event == INSIGHT_JUDGED:
            return [_judged(entry, before, stored)]
        promoted = stored.model_copy(update={"promoted_to": entry.metadata.get("promoted_to")})
        return [_next(before, entry, promoted.to_wire(), before.status, before.trust, ())]
    except InvalidRecord:  # not written by a run of ours: it says nothing about an insight
        return []


def _supposed(entry: LedgerEntry) -> Change:
    stored = StoredInsight.from_wire(
        {
            "insight": entry.metadata.get("insight"),
            "patch": entry.id,
            "run_id": entry.scope.run_id,
            "judgements": [],
            "promoted_to": None,
        }
    )
    return Change(
        id=stored.insight.id,
        kind="insight",
        status=stored.insight.validation_state,
        body=stored.to_wire(),
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=(*(stored.insight.sources or ()), entry.id),
        user_id=entry.scope.user_id,
        agent_id=entry.scope.agent_id,
        session_id=entry.scope.session_id,
        run_id=entry.scope.run_id,
    )


def _judged(entry: LedgerEntry, before: Item, stored: StoredInsight) -> Change:
    said = entry.metadata
    judgement = Judgement.from_wire(
        {"patch": entry.id, "state": said.get("state"), "sources": said.get("sources"), "reason": said.get("reason")}
    )
    insight = stored.insight.model_copy(update={"validation_state": judgement.state})
    judged = stored.model_copy(update={"insight": insight, "judgements": (*stored.judgements, judgement)})
    trust = lowest_trust((before.trust, entry.trust))
    return _next(before, entry, judged.to_wire(), judgement.state, trust, judgement.sources)


def insight_without(item: Item, lost: frozenset[str]) -> Rewritten | None:
    """What is left of an insight without some of its sources. It stands by one of them, or by its patch where it has
    none. A validation that lost its evidence is void.
    """
    stored = StoredInsight.from_wire(item.plain())
    named = stored.insight.sources or ()
    left = left_of(named, lost)
    if stored.patch in lost or (named and not left):
        return None
    judgements = tuple(
        each.model_copy(update={"sources": left_of(each.sources, lost)})
        for each in stored.judgements
        if each.patch not in lost and (not each.sources or left_of(each.sources, lost))
    )
    state = stored.insight.validation_state
    if state == "validated" and not any(each.state == "validated" for each in judgements):
        state = "testing"
    insight = stored.insight.model_copy(update={"validation_state": state} | ({"sources": left} if named else {}))
    kept = stored.model_copy(update={"insight": insight, "judgements": judgements})
    return Rewritten(kept.to_wire(), state, item.trust)


# -- candidates ---------------------------------------------------------------------------------------


_PROPOSED = (
    "key", "value", "status", "explanation", "sources", "quote", "confidence", "reason", "proposed_by", "fact_id",
)  # fmt: skip


def project_candidate(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Proposed, with the fate the policy gave it; decided later."""
    said = entry.metadata
    try:
        if said.get("event") == CANDIDATE_PROPOSED:
            return [_proposed(entry)]
        before = _before(entry, lookup, "candidate") if said.get("event") == CANDIDATE_DECIDED else None
        if before is None:
            return []
        fate = {key: said.get(key) for key in ("status", "explanation", "fact_id")} | {"decided_by": entry.id}
        stored = StoredCandidate.from_wire(before.plain() | fate)
    except InvalidRecord:  # not written by a run of ours: it says nothing about a candidate
        return []
    return [_next(before, entry, stored.to_wire(), stored.status, before.trust, ())]


def _proposed(entry: LedgerEntry) -> Change:
    said = entry.metadata
    here = {"candidate_id": said.get("id"), "patch": entry.id, "trust": entry.trust, "decided_by": None}
    until = {"valid_to": said["valid_to"]} if "valid_to" in said else {}
    stored = StoredCandidate.from_wire(
        {key: said.get(key) for key in _PROPOSED} | here | until | {"proposed_at": entry.recorded_at}
    )
    return Change(
        id=stored.candidate_id,
        kind="candidate",
        status=stored.status,
        body=stored.to_wire(),
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=(*stored.sources, entry.id),
        name=digest_name(stored.key),
        user_id=entry.scope.user_id,
    )


def candidate_without(item: Item, lost: frozenset[str]) -> Rewritten | None:
    """What is left of a candidate without some of its sources. It stands by one of them; why it was decided goes with
    the decision.
    """
    stored = StoredCandidate.from_wire(item.plain())
    left = left_of(stored.sources, lost)
    if not left or stored.patch in lost:
        return None
    if stored.decided_by in lost:
        stored = stored.model_copy(update={"explanation": "the decision was forgotten", "decided_by": None})
    quote = None if stored.quote is None or stored.quote.event_id in lost else stored.quote
    kept = stored.model_copy(update={"sources": left, "quote": quote})
    return Rewritten(kept.to_wire(), item.status, item.trust)
