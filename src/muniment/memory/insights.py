"""Procedures (MP-10) and insights (MP-12): written, judged, promoted, retired; expired ones are out of reach."""

from __future__ import annotations

from typing import Annotated, Any

from muniment.contracts.packet import Fact, InsightItem, Procedure
from muniment.core.ports.engine import Reader, Transaction
from muniment.core.requests import Request, TextOrNone, checked, one_of
from muniment.core.scope import lowest_trust
from muniment.errors import Conflict, InvalidInput, InvalidRecord
from muniment.memory._fact_records import (
    Judgement,
    Lookup,
    StoredInsight,
    StoredProcedure,
    item_before,
    left_of,
    level_columns,
    next_version,
    texts_in,
)
from muniment.memory.fact_rows import LEVELS
from muniment.memory.facts import FactRequest, plan_fact, request_fact, view_fact
from muniment.memory.patches import (
    Decided,
    Texts,
    Writer,
    check_open,
    draft_patch,
    instant_of,
    need_grant,
    own_item,
    read_evidence,
    text_of,
    texts_of,
    trust_of_evidence,
    write_patches,
)
from muniment.store.items import Change, Item, Rewritten, digest_name, latest, lock_item, lock_shared
from muniment.store.ledger import (
    INSIGHT_JUDGED,
    INSIGHT_PROMOTED,
    INSIGHT_SUPPOSED,
    PROCEDURE_RETIRED,
    PROCEDURE_USED,
    PROCEDURE_WRITTEN,
    LedgerEntry,
)

__all__ = [
    "insight_without",
    "is_expired",
    "judge_insight",
    "procedure_without",
    "project_insight",
    "project_procedure",
    "promote_to_fact",
    "promote_to_procedure",
    "retire_procedure",
    "suppose",
    "use_procedures",
    "write_procedure",
]

RUN_END = "run_end"
_STATES = ("unvalidated", "testing", "validated", "rejected")


# -- procedures ---------------------------------------------------------------------------------------


def write_procedure(writer: Writer, given: dict[str, Any], scope_level: str) -> Procedure:
    """Write a new procedure. Without sources it has the trust of the agent's own word."""
    procedure = _procedure(writer, given, scope_level)
    sources = procedure.sources or ()

    def decide(tx: Transaction) -> Decided:
        trust = trust_of_evidence(read_evidence(tx, writer.scope, sources))
        return Decided([draft_patch(PROCEDURE_WRITTEN, trust, _written(procedure, scope_level, None))])

    return write_patches(writer, decide, lambda reader: _view_procedure(reader, procedure.procedure_id))


def _procedure(writer: Writer, given: dict[str, Any], scope_level: str) -> Procedure:
    if scope_level not in LEVELS:
        raise InvalidInput(f"{scope_level!r:.40} is not a scope level", path="$.scope_level", hint=", ".join(LEVELS))
    need_grant(writer, scope_level)
    plain = given | {"sources": texts_of(given.get("sources", ()), "$.sources")}
    plain = {name: value for name, value in plain.items() if value is not None and (value or name != "sources")}
    return Procedure.of_given(plain | {"procedure_id": writer.ctx.ids.new("prc")}, "not a valid procedure")


def _written(procedure: Procedure, scope_level: str, origin: str | None) -> dict[str, Any]:
    return {
        "id": procedure.procedure_id,
        "sources": list(procedure.sources or ()),
        "from": origin,
        "procedure": procedure.to_wire(),
        "scope_level": scope_level,
    }


def retire_procedure(writer: Writer, procedure_id: str) -> Procedure:
    """Retire a procedure: it is no longer chosen but stays on record."""

    def decide(tx: Transaction) -> Decided:
        item = _locked(tx, writer, "procedure", procedure_id, "$.procedure_id")
        need_grant(writer, item.plain()["scope_level"])
        check_open(item, ("active",), "retired")
        return Decided([draft_patch(PROCEDURE_RETIRED, "assistant", {"id": item.id})], item.created_at)

    return write_patches(writer, decide, lambda reader: _view_procedure(reader, procedure_id))


def use_procedures(writer: Writer, procedure_ids: Any) -> None:
    """Count one use of each: among equal priorities the more used comes first (MP-10)."""
    ids = sorted(texts_of(procedure_ids, "$.procedure_ids"))

    def decide(tx: Transaction) -> Decided:
        lock_item(tx, *ids)  # all of them before any shared one, in the common lock order
        items = [_locked(tx, writer, "procedure", id_, "$.procedure_ids") for id_ in ids]
        after = max((item.created_at for item in items), default="")
        return Decided([draft_patch(PROCEDURE_USED, "assistant", {"ids": ids})] if ids else [], after)

    write_patches(writer, decide, lambda _reader: None)


def _view_procedure(reader: Reader, procedure_id: str) -> Procedure:
    item = latest(reader, procedure_id)
    assert item is not None
    return StoredProcedure.from_wire(item.plain()).procedure


def _locked(tx: Transaction, writer: Writer, kind: str, item_id: Any, path: str) -> Item:
    """An item of this scope, locked until the transaction ends."""
    lock_item(tx, text_of(item_id, path))
    item = own_item(tx, writer.scope, kind, item_id, path)
    if item.user_id is not None:
        return item
    lock_shared(tx)
    return own_item(tx, writer.scope, kind, item_id, path)


# -- insights -----------------------------------------------------------------------------------------


def suppose(writer: Writer, given: dict[str, Any]) -> InsightItem:
    """Record a new insight: a supposition, at most under test."""
    plain = {name: value for name, value in given.items() if value is not None}
    for name in ("sources", "tests_suggested"):
        plain[name] = texts_of(plain.get(name, ()), f"$.{name}")
        if not plain[name]:
            del plain[name]
    expires_at = plain.get("expires_at", RUN_END)
    plain["expires_at"] = RUN_END if expires_at == RUN_END else instant_of(expires_at, "$.expires_at")
    plain.setdefault("confidence", writer.ctx.policy.memory.insight_confidence)
    if plain.get("validation_state") not in ("unvalidated", "testing"):
        raise InvalidInput(
            "a new insight is unvalidated or testing", path="$.validation_state", hint="judge_insight moves it on"
        )
    insight = InsightItem.of_given(plain | {"id": writer.ctx.ids.new("ins")}, "not a valid insight")
    sources = insight.sources or ()

    def decide(tx: Transaction) -> Decided:
        trust = trust_of_evidence(read_evidence(tx, writer.scope, sources), is_supposed=True)
        said = {"id": insight.id, "sources": list(sources), "insight": insight.to_wire()}
        return Decided([draft_patch(INSIGHT_SUPPOSED, trust, said)])

    return write_patches(writer, decide, lambda reader: _view_insight(reader, insight.id))


def _view_insight(reader: Reader, insight_id: str) -> InsightItem:
    item = latest(reader, insight_id)
    assert item is not None
    return StoredInsight.from_wire(item.plain()).insight


class JudgementRequest(Request):
    """A new state for an insight, with sources and reason."""

    state: Annotated[str, one_of(_STATES, "{given!r:.40} is not a validation state")]
    reason: TextOrNone
    sources: Texts


def judge_insight(writer: Writer, insight_id: str, state: str, sources: Any, reason: str | None) -> InsightItem:
    """Move an insight. Validating takes evidence; rejecting is final."""
    named = checked(JudgementRequest, state=state, reason=reason, sources=sources).sources
    if state == "validated" and not named:
        raise InvalidInput("validating takes at least one source", path="$.sources", hint="name what showed it")

    def decide(tx: Transaction) -> Decided:
        item, _ = _living(tx, writer, insight_id)
        check_open(item, ("unvalidated", "testing", "validated"), "judged")
        trust = trust_of_evidence(read_evidence(tx, writer.scope, named))
        said = {"id": item.id, "state": state, "sources": list(named), "reason": reason}
        return Decided([draft_patch(INSIGHT_JUDGED, trust, said)], item.created_at)

    return write_patches(writer, decide, lambda reader: _view_insight(reader, insight_id))


def is_expired(stored: StoredInsight, run: Item | None, now: str) -> bool:
    """True if past its expiry time, or if its run has ended in any process (MP-12). Expiring exactly now is not
    expired.
    """
    expires_at = stored.insight.expires_at or RUN_END
    return (run is None or run.status == "finished") if expires_at == RUN_END else expires_at < now


def _living(tx: Transaction, writer: Writer, insight_id: str) -> tuple[Item, StoredInsight]:
    item = _locked(tx, writer, "insight", insight_id, "$.insight_id")
    stored = StoredInsight.from_wire(item.plain())
    if is_expired(stored, latest(tx, stored.run_id), writer.ctx.now()):
        raise Conflict(f"the insight {item.id} has expired", details={"id": item.id}, hint="suppose it again")
    return item, stored


# -- promotion ----------------------------------------------------------------------------------------


def promote_to_fact(writer: Writer, insight_id: str, key: str, scope_level: str) -> Fact:
    """Promote a validated insight's statement to a fact, on all of its evidence."""
    fact_id = writer.ctx.ids.new("fct")
    made: list[str] = []
    target = request_fact(key=key, value="", sources=("later",), scope_level=scope_level)
    need_grant(writer, target.scope_level)

    def decide(tx: Transaction) -> Decided:
        item, stored = _promotable(tx, writer, insight_id)
        request = FactRequest(
            key=target.key,
            value=stored.insight.statement,
            sources=_evidence_of(stored),
            scope_level=target.scope_level,
        )
        evidence = read_evidence(tx, writer.scope, request.sources)
        planned = plan_fact(tx, writer, request, fact_id, evidence, origin=item.id, is_supposed=True)
        made[:] = [planned.fact_id]
        promoted = draft_patch(INSIGHT_PROMOTED, "assistant", {"id": item.id, "promoted_to": planned.fact_id})
        return Decided([planned.draft, promoted], max(planned.after, item.created_at))

    return write_patches(writer, decide, lambda reader: view_fact(reader, made[0]))


def promote_to_procedure(writer: Writer, insight_id: str, task_type: str, scope_level: str) -> Procedure:
    """Promote a validated insight's statement to a procedure, on all of its evidence."""
    empty = _procedure(writer, {"task_type": task_type, "content": {}}, scope_level)

    def decide(tx: Transaction) -> Decided:
        item, stored = _promotable(tx, writer, insight_id)
        sources = _evidence_of(stored)
        content = {"statement": stored.insight.statement}
        procedure = empty.model_copy(update={"content": content, "sources": sources})
        trust = trust_of_evidence(read_evidence(tx, writer.scope, sources), is_supposed=True)
        drafts = [
            draft_patch(PROCEDURE_WRITTEN, trust, _written(procedure, scope_level, item.id)),
            draft_patch(INSIGHT_PROMOTED, "assistant", {"id": item.id, "promoted_to": procedure.procedure_id}),
        ]
        return Decided(drafts, item.created_at)

    return write_patches(writer, decide, lambda reader: _view_procedure(reader, empty.procedure_id))


def _promotable(tx: Transaction, writer: Writer, insight_id: str) -> tuple[Item, StoredInsight]:
    item, stored = _living(tx, writer, insight_id)
    check_open(item, ("validated",), "promoted")
    if stored.promoted_to is not None:
        raise Conflict(
            f"the insight {item.id} was promoted already", details={"id": item.id, "promoted_to": stored.promoted_to}
        )
    return item, stored


def _evidence_of(stored: StoredInsight) -> tuple[str, ...]:
    shown = [source for each in stored.judgements if each.state == "validated" for source in each.sources]
    return tuple(dict.fromkeys((*(stored.insight.sources or ()), *shown)))


# -- from the ledger: procedures ----------------------------------------------------------------------


def project_procedure(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project a procedure: written, retired, or used once more."""
    event = entry.metadata.get("event")
    try:
        if event == PROCEDURE_WRITTEN:
            return [_project_written(entry)]
        if event == PROCEDURE_RETIRED:
            before = item_before(entry, lookup, "procedure")
            if before is None:
                return []
            body = before.plain() | {"is_retired": True}
            return [next_version(before, entry, body, "retired", before.trust, ())]
        return _used(entry, lookup) if event == PROCEDURE_USED else []
    except InvalidRecord:  # not written by one of our runs, so no procedure
        return []


def _project_written(entry: LedgerEntry) -> Change:
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
            changes.append(next_version(item, entry, body, item.status, item.trust, ()))
    return changes


def procedure_without(item: Item, lost: frozenset[str]) -> Rewritten | None:
    """A procedure without some of its sources. It needs one of them; one written without sources rests on its own
    patch.
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


# -- from the ledger: insights -----------------------------------------------------------------------------------------


def project_insight(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project an insight: recorded, judged, promoted."""
    event = entry.metadata.get("event")
    try:
        if event == INSIGHT_SUPPOSED:
            return [_supposed(entry)]
        if event not in (INSIGHT_JUDGED, INSIGHT_PROMOTED):
            return []
        before = item_before(entry, lookup, "insight")
        if before is None:
            return []
        stored = StoredInsight.from_wire(before.plain())
        if event == INSIGHT_JUDGED:
            return [_judged(entry, before, stored)]
        promoted = stored.model_copy(update={"promoted_to": entry.metadata.get("promoted_to")})
        return [next_version(before, entry, promoted.to_wire(), before.status, before.trust, ())]
    except InvalidRecord:  # not written by one of our runs, so no insight
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
    return next_version(before, entry, judged.to_wire(), judgement.state, trust, judgement.sources)


def insight_without(item: Item, lost: frozenset[str]) -> Rewritten | None:
    """An insight without some of its sources. It rests on one of them, or on its patch if it has none. A validation
    that lost its evidence is void.
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
