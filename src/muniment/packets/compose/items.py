"""Which facts, procedures and insights stand in a packet: those that hold now, for this task and for this reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from muniment.contracts.packet import Fact, InsightItem, Procedure
from muniment.core.instants import Instant, parse_rfc3339
from muniment.core.text.sentences import Seen
from muniment.memory.facts.records import is_instruction
from muniment.memory.facts.rules import find_overridden, validity_problem
from muniment.packets.compose.budget import cut_value, typical_mark
from muniment.packets.compose.draft import PacketDraft, Placed, instant_order
from muniment.packets.compose.explain import Reason, names_of
from muniment.packets.page.lines import (
    BlockName,
    fact_line,
    insight_line,
    instruction_line,
    may_show,
    procedure_line,
    value_text,
)
from muniment.packets.pool import FactCandidate, InsightCandidate, ProcedureCandidate

__all__ = [
    "DEFAULT_CONFIDENCE",
    "allows_insights",
    "fact_prices",
    "insight_prices",
    "place_facts",
    "place_insights",
    "place_procedures",
    "procedure_prices",
]

DEFAULT_CONFIDENCE = 0.5
"""The document's, for a fact that says nothing of it."""

NamedFact = tuple[str, FactCandidate]


def place_facts(draft: PacketDraft) -> None:
    """Matching facts while the section lasts; of the others at most `facts_max` and `unmatched_share`."""
    names = names_of("fact", (each.fact.fact_id for each in draft.pool.facts))
    named = list(zip(names, draft.pool.facts, strict=True))
    held = list(_not_overridden(draft, list(_eligible(draft, named))))
    _place_instructions(draft, [(name, each) for name, each in held if is_instruction(each.fact)])
    fit = [(name, each) for name, each in held if not is_instruction(each.fact)]
    cued = {name for name, each in fit if _is_cued(draft, each)}
    chosen = sorted(fit, key=lambda each: (each[0] not in cued, *_fact_worth(each)))
    seen = Seen(draft.policy.near_duplicate)
    draft.purse.price_many(fact_line(each.fact, typical_mark) for _, each in chosen)
    unmatched_max = draft.share_beside_hits(draft.policy.unmatched_share)
    unmatched = unmatched_tokens = 0
    for name, each in chosen:
        price = draft.purse.price(fact_line(each.fact, typical_mark))
        text = f"{each.fact.fact_key}: {value_text(each.fact.value)}"
        is_matched = each.score > 0 or name in cued
        if (other := seen.find(text)) is not None:
            draft.tally.omit(name, "near_duplicate", of=other)
        elif not is_matched and unmatched >= draft.policy.facts_max:
            draft.tally.omit(name, "count_limit", limit=draft.policy.facts_max)
        elif price > draft.purse.room("facts"):
            draft.tally.omit(name, "over_budget", tokens=price)
        elif not is_matched and unmatched_tokens + price > unmatched_max:
            draft.tally.omit(name, "over_budget", tokens=price, detail="no match with the query")
        else:
            draft.place(
                Placed(name, "facts", price, each, _age(each.recorded_at, name)),
                each.score,
                (*_rules(each), *(("cue",) if name in cued else ())),
            )
            seen.add(text, name)
            unmatched += not is_matched
            unmatched_tokens += 0 if is_matched else price
            if each.stale_dependency:
                said = f"{each.fact.fact_key} rests on a fact that no longer holds"
                draft.tally.conflict("stale_dependency", said, (each.fact.fact_id,))


def _place_instructions(draft: PacketDraft, named: Sequence[tuple[str, FactCandidate]]) -> None:
    """The latest while their share lasts; on the page the oldest stands first. None is cut: half of one is another."""
    left = draft.share(draft.policy.instruction_share)
    latest = sorted(named, key=lambda each: (-instant_order(each[1].recorded_at).seconds, each[1].fact.fact_id))
    for at, (name, each) in enumerate(latest):
        price = draft.purse.price(instruction_line(each.fact, typical_mark))
        cost = price + draft.purse.opening("instructions")
        if at >= draft.policy.instructions_max:
            draft.tally.omit(name, "count_limit", limit=draft.policy.instructions_max)
        elif cost > left or price > draft.purse.room("instructions"):
            draft.tally.omit(name, "over_budget", tokens=price)
        else:
            left -= cost
            order = (instant_order(each.recorded_at), name)
            rules = ("active", "valid_now", "instruction")
            draft.place(Placed(name, "instructions", price, each, order), max(each.score, 0.0), rules)
            for source in each.fact.sources:
                draft.instructed.setdefault(source, []).append((value_text(each.fact.value), name))


def _age(recorded_at: str, name: str) -> tuple[Instant, str]:
    """The order of the page: oldest first, so that what is new stands behind what a provider has cached."""
    return instant_order(recorded_at), name


def _is_cued(draft: PacketDraft, each: FactCandidate) -> bool:
    """Does the fact say a tag, an entity or a keyword; or does it hold within a time that is rather wanted?"""
    cues, fact = draft.cues, each.fact
    if cues.has_range and cues.is_soft and cues.holds_lasting(*_held(each)):
        return True
    return cues.says(f"{fact.fact_key.replace('.', ' ').replace('_', ' ')} {value_text(fact.value)}")


def _held(each: FactCandidate) -> tuple[str | None, str | None]:
    """From when until when a fact holds, as far as it is known."""
    validity = each.fact.validity
    start = each.since or (validity.valid_from if validity else None) or each.recorded_at
    return start, validity.valid_to if validity else None


def fact_prices(draft: PacketDraft) -> Iterator[tuple[BlockName, int]]:
    """What could stand under facts, and what each costs."""
    for each in draft.pool.facts:
        if _unfit_fact(draft, each) is not None:
            continue
        if is_instruction(each.fact):
            yield "instructions", draft.purse.price(instruction_line(each.fact, typical_mark))
        else:
            yield "facts", draft.purse.price(fact_line(each.fact, typical_mark))


def _rules(each: FactCandidate) -> Iterator[str]:
    yield "active"
    yield "valid_now"
    if each.score > 0:
        yield "query_match"
    if each.is_preference:
        yield "preference"


def _fact_worth(named: NamedFact) -> tuple[float, float, int, str, str]:
    """Match with the query, confidence, recency, id (MP-15: these are the sort keys that explain names)."""
    _, each = named
    recorded = instant_order(each.recorded_at)
    confidence = each.fact.confidence if each.fact.confidence is not None else DEFAULT_CONFIDENCE
    return (-max(each.score, 0.0), -confidence, -recorded.seconds, each.fact.fact_id, named[0])


# -- filters ------------------------------------------------------------------------------------------


def _eligible(draft: PacketDraft, named: list[NamedFact]) -> Iterator[NamedFact]:
    newest: dict[str, int] = {}
    for _, each in named:
        newest[each.fact.fact_id] = max(each.version, newest.get(each.fact.fact_id, 0))
    taken: set[str] = set()
    for name, each in named:
        fact = each.fact
        reason = _unfit_fact(draft, each)
        if each.version < newest[fact.fact_id]:
            draft.tally.omit(name, "superseded", version=each.version, by=newest[fact.fact_id])
        elif fact.fact_id in taken:
            draft.tally.omit(name, "duplicate")
        elif reason is not None:
            draft.tally.omit(name, reason)
            if reason == "disputed":
                _note_dispute(draft, each)
        else:
            taken.add(fact.fact_id)
            yield name, each


def _unfit_fact(draft: PacketDraft, each: FactCandidate) -> Reason | None:
    fact = each.fact
    if fact.status != "active":
        return fact.status
    if (problem := validity_problem(fact, draft.now)) is not None:
        return problem
    if draft.leaves_out_version(fact.fact_id, each.version):
        return "excluded"
    if (reason := draft.bars(each.trust)) is not None:
        return reason
    if is_instruction(fact) and each.trust != "user":
        return "trust"  # nobody else's word is told as what the user asked
    if draft.wall.bars_id(fact.fact_id, *fact.sources) or draft.wall.bars_value([fact.value, fact.notes]):
        return "insight_wall"  # MP-12: promotion that skipped validation
    for source in fact.sources:
        if (reason := draft.bars_evidence(source)) == "instruction_like":
            return reason
    confidence = fact.confidence if fact.confidence is not None else DEFAULT_CONFIDENCE
    if confidence < draft.policy.confidence_min:
        return "low_confidence"
    # A time range says what is asked about; what the user asked for binds the answer all the same.
    return None if is_instruction(fact) else draft.cues.bars_lasting(*_held(each))


# -- conflicts ----------------------------------------------------------------------------------------


def _not_overridden(draft: PacketDraft, named: list[NamedFact]) -> Iterator[NamedFact]:
    """MP-08: of one key, only the nearest scope level speaks."""
    many = {each.fact.fact_key for _, each in named if each.is_many_valued}
    overridden = find_overridden((each.fact for _, each in named), many.__contains__)
    for name, each in named:
        winner = overridden.get(each.fact.fact_id)
        if winner is None:
            yield name, each
            continue
        draft.tally.omit(name, "overridden", by=f"fact:{winner.fact_id}")
        said = f"{each.fact.fact_key}: {_name(winner)} level overrides {_name(each.fact)} level"
        draft.tally.conflict("override", said, (winner.fact_id, each.fact.fact_id))


def _name(fact: Fact) -> str:
    return fact.scope_level or "user"


def _note_dispute(draft: PacketDraft, each: FactCandidate) -> None:
    """Note both sides of a dispute by id, so that a reader can look; the disputed value is not shown."""
    key = each.fact.fact_key
    others = tuple(
        other.fact.fact_id
        for other in draft.pool.facts
        if other.fact.fact_key == key and other.fact.fact_id != each.fact.fact_id and other.fact.status == "active"
    )
    draft.tally.conflict("disputed", f"{key}: a disputed value is left out", (*others, each.fact.fact_id))


NamedProcedure = tuple[str, ProcedureCandidate]


def place_procedures(draft: PacketDraft) -> None:
    names = names_of("procedure", (each.procedure.procedure_id for each in draft.pool.procedures))
    fit: list[NamedProcedure] = []
    taken: set[str] = set()
    for name, each in zip(names, draft.pool.procedures, strict=True):
        procedure = each.procedure
        if not may_show("procedures", draft.purpose):
            draft.tally.omit(name, "purpose")
        elif procedure.procedure_id in taken:
            draft.tally.omit(name, "duplicate")
        elif (reason := draft.bars(each.trust)) is not None:
            draft.tally.omit(name, reason)
        elif procedure.task_type != draft.request.task_type:
            draft.tally.omit(name, "task_type", task_type=procedure.task_type)
        elif (unmet := _unmet(draft, procedure)) is not None:
            draft.tally.omit(name, "task_type", unmet=f"applicability.{unmet}")
        else:
            taken.add(procedure.procedure_id)
            fit.append((name, each))
    for at, (name, each) in enumerate(sorted(fit, key=_procedure_worth)):
        if at >= draft.policy.procedures_max:
            draft.tally.omit(name, "count_limit", limit=draft.policy.procedures_max)
        else:
            _place(draft, name, each)


def procedure_prices(draft: PacketDraft) -> Iterator[tuple[BlockName, int]]:
    """What could stand under procedures, and what each costs."""
    if not may_show("procedures", draft.purpose):
        return
    for each in draft.pool.procedures:
        procedure = each.procedure
        is_meant = procedure.task_type == draft.request.task_type and _unmet(draft, procedure) is None
        if is_meant and draft.bars(each.trust) is None:
            yield "procedures", draft.purse.price(procedure_line(procedure, typical_mark))


def _procedure_worth(named: NamedProcedure) -> tuple[int, int, int, str, str]:
    _, each = named
    recorded = instant_order(each.recorded_at).seconds
    return (-(each.procedure.priority or 0), -each.usage, -recorded, each.procedure.procedure_id, named[0])


def _place(draft: PacketDraft, name: str, each: ProcedureCandidate) -> None:
    """Whole, or with what fits of its content (raw → summary)."""
    procedure = each.procedure
    price = draft.purse.price(procedure_line(procedure, typical_mark))
    room = draft.purse.room("procedures")
    if price > room:
        shorter = _shortened(draft, procedure, room) if room >= draft.policy.cut_tokens_min else None
        if shorter is None:
            draft.tally.omit(name, "over_budget", tokens=price)
            return
        kept = draft.purse.price(procedure_line(shorter, typical_mark))
        draft.tally.step_down(name, "procedures", "raw→summary", f"{kept} of {price} tokens kept")
        procedure, price = shorter, kept
    rules = ("task_type", f"priority={procedure.priority or 0}", f"usage={each.usage}")
    order = (-(procedure.priority or 0), *_age(each.recorded_at, name))
    draft.place(Placed(name, "procedures", price, procedure, order), float(procedure.priority or 0), rules)


def _shortened(draft: PacketDraft, procedure: Procedure, room: int) -> Procedure | None:
    """Keys in order while they fit, the first that does not cut shorter."""
    kept: dict[str, Any] = {}

    def fits(content: dict[str, Any]) -> bool:
        return draft.purse.price(procedure_line(_with(procedure, content), typical_mark)) <= room

    for key, value in sorted(procedure.content.items()):
        if not fits({**kept, key: value}):
            shorter = cut_value(value, lambda part, key=key: fits({**kept, key: part}))  # type: ignore[misc]
            if shorter is None:
                continue
            value = shorter
        kept[key] = value
    return _with(procedure, kept) if kept else None


def _with(procedure: Procedure, content: dict[str, Any]) -> Procedure:
    return procedure.model_copy(update={"content": content})


# -- applicability ------------------------------------------------------------------------------------


def _unmet(draft: PacketDraft, procedure: Procedure) -> str | None:
    """The first of tags, roles, conditions that is stated and does not hold here."""
    stated = procedure.applicability or {}
    cues = draft.request.cues
    given = {word.casefold() for word in (*(cues.tags or ()), *(cues.entities or ()), *(cues.keywords or ()))}
    tags = _texts(stated.get("tags"))
    if tags and given.isdisjoint(tag.casefold() for tag in tags):
        return "tags"
    roles = _texts(stated.get("roles"))
    if roles and not {draft.purpose, draft.request.scope.agent_id} & set(roles):
        return "roles"
    conditions = stated.get("conditions")
    if isinstance(conditions, dict):
        state = draft.pool.working_state
        known = {**((state.slots or {}) if state is not None else {}), **(cues.model_extra or {})}
        if any(known.get(key) != wanted for key, wanted in conditions.items()):
            return "conditions"
    elif (wanted := _texts(conditions)) and not given.issuperset(each.casefold() for each in wanted):
        return "conditions"
    return None


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


_DEFAULT_CONFIDENCE = 0.3
_TYPES = ("hypothesis", "strategy", "pattern")

NamedInsight = tuple[str, InsightCandidate]


def allows_insights(draft: PacketDraft) -> bool:
    """What `usage_policy.allow_in_responder` says in this packet."""
    return draft.policy.allow_validated_insights_in_responder


def place_insights(draft: PacketDraft) -> None:
    names = names_of("insight", (each.insight.id for each in draft.pool.insights))
    fit: list[NamedInsight] = []
    taken: set[str] = set()
    for name, each in zip(names, draft.pool.insights, strict=True):
        if (reason := _unfit_insight(draft, each)) is not None:
            draft.tally.omit(name, reason, validation_state=each.insight.validation_state)
        elif each.insight.id in taken:
            draft.tally.omit(name, "duplicate")
        else:
            taken.add(each.insight.id)
            fit.append((name, each))
    for at, (name, each) in enumerate(sorted(fit, key=_insight_worth)):
        price = draft.purse.price(insight_line(each.insight, typical_mark))
        if at >= draft.policy.insights_max:
            draft.tally.omit(name, "count_limit", limit=draft.policy.insights_max)
        elif price > draft.purse.room("insights"):
            draft.tally.omit(name, "over_budget", tokens=price)
        else:
            order = (_TYPES.index(each.insight.type), *_age(each.recorded_at, name))
            rules = (each.insight.validation_state, "not_expired")
            draft.place(Placed(name, "insights", price, each.insight, order), _confidence(each.insight), rules)


def insight_prices(draft: PacketDraft) -> Iterator[tuple[BlockName, int]]:
    """What could stand under hypotheses, and what each costs."""
    for each in draft.pool.insights:
        if _unfit_insight(draft, each) is None:
            yield "insights", draft.purse.price(insight_line(each.insight, typical_mark))


def _unfit_insight(draft: PacketDraft, each: InsightCandidate) -> Reason | None:
    item = each.insight
    if item.validation_state == "rejected":
        return "insight_wall"  # never shows, to nobody
    if not may_show("insights", draft.purpose):
        return "purpose"
    if draft.purpose == "responder" and not (allows_insights(draft) and item.validation_state == "validated"):
        return "insight_wall"
    if _is_expired(draft, each):
        return "expired"
    if (reason := draft.cues.bars_lasting(each.recorded_at, item.expires_at)) is not None:
        return reason
    return draft.bars(each.trust) or next(filter(None, map(draft.bars_evidence, item.sources or ())), None)


def _is_expired(draft: PacketDraft, each: InsightCandidate) -> bool:
    """`run_end`, which is also what null and absence mean, falls with the run; what cannot be read has fallen."""
    text = each.insight.expires_at
    if text is None or text == "run_end":
        return each.run_is_finished
    moment = parse_rfc3339(text)
    return moment is None or moment < draft.now


def _confidence(item: InsightItem) -> float:
    return item.confidence if item.confidence is not None else _DEFAULT_CONFIDENCE


def _insight_worth(named: NamedInsight) -> tuple[bool, float, int, str, str]:
    name, each = named
    recorded = instant_order(each.recorded_at).seconds
    is_open = each.insight.validation_state != "validated"
    return (is_open, -_confidence(each.insight), -recorded, each.insight.id, name)
