"""Candidate lines from the stores: working state, facts, procedures, insights, episodes.

Each function offers eligible lines, best first, and records the reasons against the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muniment.contracts.packet import Episode, InsightItem, Procedure, Risk, TimeSpan, ToolEvidence, WorkingState
from muniment.core.instants import Instant, parse_rfc3339
from muniment.core.record import Record
from muniment.core.text.analyzer import analyze
from muniment.memory._fact_records import find_overridden, is_instruction, validity_problem
from muniment.memory.turns import EpisodeCandidate, SummaryLine
from muniment.packets.admission import Admission, instant_order
from muniment.packets.allocate import Candidate, Fits, IsShown, Offer, Step, cut_value, typical_mark
from muniment.packets.explain import Explanation, Reason, names_of
from muniment.packets.page import (
    STATE_LISTS,
    STATE_PARTS,
    StateUnit,
    block_of,
    episode_text,
    fact_line,
    insight_line,
    instruction_line,
    is_held_out,
    may_show,
    merged_with,
    procedure_line,
    reading_order,
    state_evidence,
    state_line,
    state_units,
    value_text,
)
from muniment.packets.pool import FactCandidate, InsightCandidate, ProcedureCandidate
from muniment.store.injection import split_name

__all__ = [
    "DEFAULT_CONFIDENCE",
    "INSTRUCTIONS",
    "UNMATCHED",
    "FactOffers",
    "allows_insights",
    "offer_episodes",
    "offer_facts",
    "offer_insights",
    "offer_procedures",
    "offer_state",
    "state_of",
]

INSTRUCTIONS, UNMATCHED = "instructions", "unmatched facts"
"""The budget pots of facts."""


# -- working state ------------------------------------------------------------------------------------

_CORE = ("goal", "objective", "constraints", "done_definition", "slots")
_WHOLE = ("constraints", "done_definition", "conflicts")
"""Never cut: half of a constraint is a different constraint."""
_REF = "…"
"""Replaces a value, or the rest of one, that did not fit; it is in the store."""
_TEXT_FIELDS = {"decisions": "statement", "risks": "risk", "plan": "step", "tool_evidence": "summary"}
_TEXT_KEYS = {"board": "line", "claims": "statement", "next_actions": "action", "failures": "why", "hints": "summary"}


def offer_state(admission: Admission, notes: Explanation) -> list[Offer]:
    """The run's purpose and constraints first, so that they are dropped last (MP-04); each unit whole, cut, or as its
    key.
    """
    state = admission.pool.working_state
    if state is None:
        return []
    fitting: list[StateUnit] = []
    for unit in state_units(state, admission.purpose):
        if admission.purpose not in STATE_PARTS[unit.part]:
            notes.omit(unit.name, "purpose")
        elif is_held_out(unit):
            notes.omit(unit.name, "held_out", lesson=str(unit.value.get("memory_id")))
        elif unit.part == "hints" and (leader := merged_with(unit.value)) is not None:
            notes.omit(unit.name, "near_duplicate", merged_with=leader)
        elif (reason := _bars_unit(admission, unit)) is not None:
            notes.omit(unit.name, reason)
        elif admission.wall.bars_value([unit.key, _json_value(unit.value)]):
            notes.omit(unit.name, "insight_wall")
        else:
            fitting.append(unit)
    last = max((at for at, unit in enumerate(fitting) if unit.part in _CORE), default=-1)
    return [
        # One long unit leaves the rest of the core half of the remaining room.
        Offer(_state_candidate(admission, unit, at), share=0.5 if at < last else 1.0)
        for at, unit in enumerate(fitting)
    ]


def _state_candidate(admission: Admission, unit: StateUnit, at: int) -> Candidate:
    def shorten(fits: Fits, _: IsShown) -> tuple[StateUnit, Step] | None:
        kept = None
        if unit.part not in _WHOLE:
            kept = cut_value(_unit_text(unit), lambda value: fits(_with_value(unit, _marked_cut(value))))
        if kept is not None:
            return _with_value(unit, _marked_cut(kept)), "raw→quote"
        ref = _with_value(unit, _REF)
        return (ref, "raw→ref") if unit.part in ("constraints", "done_definition", "slots") and fits(ref) else None

    def tells(unit: StateUnit) -> list[tuple[str, str]]:
        if unit.part == "board":
            return [(evidence_id, unit.value["line"]) for evidence_id in state_evidence(unit)]
        return [(unit.value.ref, unit.value.summary)] if isinstance(unit.value, ToolEvidence) else []

    return Candidate(
        unit.name,
        block_of(unit.part),
        unit,
        (reading_order(unit.part, admission.purpose), at),
        _state_line,
        1.0,
        (f"working_state.{unit.part}",),
        shorten=shorten,
        tells=tells,
    )


def _state_line(unit: StateUnit) -> str:
    return state_line(unit, typical_mark)


def _bars_unit(admission: Admission, unit: StateUnit) -> Reason | None:
    """The reason by its evidence; entries of the run's log inherit their evidence's trust and flags (LG-08)."""
    for evidence_id in state_evidence(unit):
        if (reason := admission.bars_evidence(evidence_id)) is not None:
            return reason
    if not isinstance(unit.value, dict) or unit.part == "hints" or unit.part not in STATE_LISTS:
        return None
    flags = unit.value.get("flags")
    trust = unit.value.get("trust", "external" if unit.part == "claims" else "assistant")
    if (reason := admission.bars(trust, flags if isinstance(flags, list | tuple) else ())) is not None:
        return reason
    return admission.bars_words(trust, unit.value)


def _marked_cut(value: Any) -> Any:
    """A part of a value, with a sign that it is incomplete."""
    return f"{value} {_REF}" if isinstance(value, str) else [*value, _REF]


def _json_value(value: Any) -> Any:
    """A value of the state as plain JSON data."""
    return value.to_wire() if isinstance(value, Record) else value


def _unit_text(unit: StateUnit) -> Any:
    field, key = _TEXT_FIELDS.get(unit.part), _TEXT_KEYS.get(unit.part)
    if key is not None and isinstance(unit.value, dict):
        return unit.value.get(key, "")
    return getattr(unit.value, field) if field else unit.value


def _with_value(unit: StateUnit, value: Any) -> StateUnit:
    """The unit with a shorter text or value."""
    field, key = _TEXT_FIELDS.get(unit.part), _TEXT_KEYS.get(unit.part)
    if key is not None and isinstance(unit.value, dict):
        return replace(unit, value=unit.value | {key: value})
    if field is None:
        return replace(unit, value=value)
    dropped = {"mitigation": None} if isinstance(unit.value, Risk) else {}
    kept = {key: part for key, part in unit.value.to_wire().items() if key not in dropped}
    return replace(unit, value=type(unit.value)(**{**kept, field: value}))


def state_of(held: WorkingState | None, units: Sequence[StateUnit]) -> WorkingState:
    """The packet's working state: the allocated units and the version."""
    parts: dict[str, Any] = {"state_version": held.state_version if held is not None else 0}
    for unit in units:
        if unit.part in ("goal", "objective", "done_definition"):
            parts[unit.part] = unit.value
        elif unit.part == "extra":
            parts[unit.key] = unit.value
        elif unit.part in STATE_LISTS:
            parts.setdefault(STATE_LISTS[unit.part], []).append(unit.value)
        elif unit.part in ("constraints", "slots"):
            parts.setdefault(unit.part, {})[unit.key] = unit.value
        else:
            parts[unit.part] = (*parts.get(unit.part, ()), unit.value)
    return WorkingState(**parts)


# -- facts --------------------------------------------------------------------------------------------

DEFAULT_CONFIDENCE = 0.5
"""The contract's default for a fact without confidence."""
_NamedFact = tuple[str, FactCandidate]


@dataclass(frozen=True, slots=True)
class FactOffers:
    """The facts in force here."""

    instructions: list[Offer]
    """The user's standing instructions, latest first."""
    matched: list[Offer]
    """Those that match the query or a cue, best first."""
    unmatched: list[Offer]


def offer_facts(admission: Admission, notes: Explanation) -> FactOffers:
    """Offer the facts that hold now, each key only from its nearest scope level."""
    policy = admission.policy
    names = names_of("fact", (each.fact.fact_id for each in admission.pool.facts))
    named = list(zip(names, admission.pool.facts, strict=True))
    held = list(_not_overridden(list(_standing_facts(admission, named, notes)), notes))
    asked = [pair for pair in held if is_instruction(pair[1].fact)]
    asked.sort(key=lambda pair: (-instant_order(pair[1].recorded_at).seconds, pair[1].fact.fact_id))
    for name, _ in asked[policy.instructions_max :]:
        notes.omit(name, "count_limit", limit=policy.instructions_max)
    plain = [pair for pair in held if not is_instruction(pair[1].fact)]
    cued = {name for name, each in plain if _is_cued_fact(admission, each)}
    plain.sort(key=lambda pair: (pair[0] not in cued, *_fact_worth(pair)))
    matched = [pair for pair in plain if pair[1].score > 0 or pair[0] in cued]
    rest = [pair for pair in plain if not (pair[1].score > 0 or pair[0] in cued)]
    for name, _ in rest[policy.facts_max :]:
        notes.omit(name, "count_limit", limit=policy.facts_max)
    return FactOffers(
        [
            Offer(_instruction_candidate(*pair), pot=INSTRUCTIONS, may_cut=False)
            for pair in asked[: policy.instructions_max]
        ],
        [Offer(_fact_candidate(*pair, is_cued=pair[0] in cued)) for pair in matched],
        [Offer(_fact_candidate(*pair), pot=UNMATCHED) for pair in rest[: policy.facts_max]],
    )


def _instruction_candidate(name: str, each: FactCandidate) -> Candidate:
    def tells(each: FactCandidate) -> list[tuple[str, str]]:
        return [(source, value_text(each.fact.value)) for source in each.fact.sources]

    def write(each: FactCandidate) -> str:
        return instruction_line(each.fact, typical_mark)

    order, rules = _age(each.recorded_at, name), ("active", "valid_now", "instruction")
    return Candidate(name, "instructions", each, order, write, max(each.score, 0.0), rules, tells=tells)


def _fact_candidate(name: str, each: FactCandidate, *, is_cued: bool = False) -> Candidate:
    def write(each: FactCandidate) -> str:
        return fact_line(each.fact, typical_mark)

    def says(each: FactCandidate) -> tuple[str, None]:
        return f"{each.fact.fact_key}: {value_text(each.fact.value)}", None

    rules = ["active", "valid_now"]
    rules += [
        rule
        for rule, holds in (("query_match", each.score > 0), ("preference", each.is_preference), ("cue", is_cued))
        if holds
    ]
    order = _age(each.recorded_at, name)
    return Candidate(name, "facts", each, order, write, each.score, tuple(rules), voice="facts", says=says)


def _age(recorded_at: str, name: str) -> tuple[Instant, str]:
    """Page order: oldest first, so that new facts follow the prefix that a provider has cached."""
    return instant_order(recorded_at), name


def _is_cued_fact(admission: Admission, each: FactCandidate) -> bool:
    """True if the fact contains a tag, an entity or a keyword, or holds within a soft time range."""
    cues, fact = admission.cues, each.fact
    if cues.has_range and cues.is_soft and cues.holds_lasting(*_held_from_to(each)):
        return True
    return cues.says(f"{fact.fact_key.replace('.', ' ').replace('_', ' ')} {value_text(fact.value)}")


def _held_from_to(each: FactCandidate) -> tuple[str | None, str | None]:
    """The validity period of a fact, as far as it is known."""
    validity = each.fact.validity
    start = each.since or (validity.valid_from if validity else None) or each.recorded_at
    return start, validity.valid_to if validity else None


def _fact_worth(named: _NamedFact) -> tuple[float, float, int, str, str]:
    """Match with the query, confidence, recency, id (MP-15: the sort keys named in explanations)."""
    _, each = named
    recorded = instant_order(each.recorded_at)
    confidence = each.fact.confidence if each.fact.confidence is not None else DEFAULT_CONFIDENCE
    return (-max(each.score, 0.0), -confidence, -recorded.seconds, each.fact.fact_id, named[0])


def _standing_facts(admission: Admission, named: list[_NamedFact], notes: Explanation) -> Iterator[_NamedFact]:
    newest: dict[str, int] = {}
    for _, each in named:
        newest[each.fact.fact_id] = max(each.version, newest.get(each.fact.fact_id, 0))
    taken: set[str] = set()
    for name, each in named:
        fact = each.fact
        reason = _unfit_fact(admission, each)
        if each.version < newest[fact.fact_id]:
            notes.omit(name, "superseded", version=each.version, by=newest[fact.fact_id])
        elif fact.fact_id in taken:
            notes.omit(name, "duplicate")
        elif reason is not None:
            notes.omit(name, reason)
            if reason == "disputed":
                _note_dispute(admission, each, notes)
        else:
            taken.add(fact.fact_id)
            yield name, each


def _unfit_fact(admission: Admission, each: FactCandidate) -> Reason | None:
    fact = each.fact
    if fact.status != "active":
        return fact.status
    if (problem := validity_problem(fact, admission.now)) is not None:
        return problem
    if admission.leaves_out_version(fact.fact_id, each.version):
        return "excluded"
    if (reason := admission.bars(each.trust)) is not None:
        return reason
    if (reason := admission.bars_words(each.trust, [split_name(fact.fact_key), fact.value, fact.notes])) is not None:
        return reason
    if is_instruction(fact) and each.trust != "user":
        return "trust"  # only the user's own word counts as the user's instruction
    if admission.wall.bars_id(fact.fact_id, *fact.sources) or admission.wall.bars_value([fact.value, fact.notes]):
        return "insight_wall"  # MP-12: promotion that skipped validation
    for source in fact.sources:
        if (reason := admission.bars_evidence(source)) == "instruction_like":
            return reason
    confidence = fact.confidence if fact.confidence is not None else DEFAULT_CONFIDENCE
    if confidence < admission.policy.confidence_min:
        return "low_confidence"
    # A time range limits the subject; the user's instructions apply nevertheless.
    return None if is_instruction(fact) else admission.cues.bars_lasting(*_held_from_to(each))


def _not_overridden(named: list[_NamedFact], notes: Explanation) -> Iterator[_NamedFact]:
    """MP-08: for each key, only the nearest scope level counts."""
    many = {each.fact.fact_key for _, each in named if each.is_many_valued}
    overridden = find_overridden((each.fact for _, each in named), many.__contains__)
    for name, each in named:
        winner = overridden.get(each.fact.fact_id)
        if winner is None:
            yield name, each
            continue
        notes.omit(name, "overridden", by=f"fact:{winner.fact_id}")
        levels = f"{winner.scope_level or 'user'} level overrides {each.fact.scope_level or 'user'} level"
        notes.conflict("override", f"{each.fact.fact_key}: {levels}", (winner.fact_id, each.fact.fact_id))


def _note_dispute(admission: Admission, each: FactCandidate, notes: Explanation) -> None:
    """Record both sides of a dispute by id, so that a reader can look them up; the disputed value is not shown."""
    key = each.fact.fact_key
    others = tuple(
        other.fact.fact_id
        for other in admission.pool.facts
        if other.fact.fact_key == key and other.fact.fact_id != each.fact.fact_id and other.fact.status == "active"
    )
    notes.conflict("disputed", f"{key}: a disputed value is left out", (*others, each.fact.fact_id))


# -- procedures ---------------------------------------------------------------------------------------


def offer_procedures(admission: Admission, notes: Explanation) -> list[Offer]:
    """Offer procedures for this task by priority, then usage; whole, or the fitting part of their content."""
    policy = admission.policy
    names = names_of("procedure", (each.procedure.procedure_id for each in admission.pool.procedures))
    fit: list[tuple[str, ProcedureCandidate]] = []
    taken: set[str] = set()
    for name, each in zip(names, admission.pool.procedures, strict=True):
        procedure = each.procedure
        if not may_show("procedures", admission.purpose):
            notes.omit(name, "purpose")
        elif procedure.procedure_id in taken:
            notes.omit(name, "duplicate")
        elif (reason := _bars_procedure(admission, each)) is not None:
            notes.omit(name, reason)
        elif procedure.task_type != admission.request.task_type:
            notes.omit(name, "task_type", task_type=procedure.task_type)
        elif (unmet := _unmet(admission, procedure)) is not None:
            notes.omit(name, "task_type", unmet=f"applicability.{unmet}")
        else:
            taken.add(procedure.procedure_id)
            fit.append((name, each))
    fit.sort(key=_procedure_worth)
    for name, _ in fit[policy.procedures_max :]:
        notes.omit(name, "count_limit", limit=policy.procedures_max)
    return [Offer(_procedure_candidate(*pair)) for pair in fit[: policy.procedures_max]]


def _bars_procedure(admission: Admission, each: ProcedureCandidate) -> Reason | None:
    return admission.bars(each.trust) or admission.bars_words(each.trust, each.procedure.content, instructs=True)


def _procedure_candidate(name: str, each: ProcedureCandidate) -> Candidate:
    procedure = each.procedure
    priority = procedure.priority or 0

    def write(procedure: Procedure) -> str:
        return procedure_line(procedure, typical_mark)

    def shorten(fits: Fits, _: IsShown) -> tuple[Procedure, Step] | None:
        shorter = _shortened(procedure, fits)
        return None if shorter is None else (shorter, "raw→summary")

    return Candidate(
        name,
        "procedures",
        procedure,
        (-priority, *_age(each.recorded_at, name)),
        write,
        float(priority),
        ("task_type", f"priority={priority}", f"usage={each.usage}"),
        shorten=shorten,
    )


def _procedure_worth(named: tuple[str, ProcedureCandidate]) -> tuple[int, int, int, str, str]:
    name, each = named
    recorded = instant_order(each.recorded_at).seconds
    return (-(each.procedure.priority or 0), -each.usage, -recorded, each.procedure.procedure_id, name)


def _shortened(procedure: Procedure, fits: Fits) -> Procedure | None:
    """Keep keys in order while they fit, and shorten the first that does not."""
    kept: dict[str, Any] = {}

    def with_content(content: dict[str, Any]) -> Procedure:
        return procedure.model_copy(update={"content": content})

    for key, value in sorted(procedure.content.items()):
        if not fits(with_content({**kept, key: value})):
            value = cut_value(value, lambda part, key=key: fits(with_content({**kept, key: part})))  # type: ignore[misc]
            if value is None:
                continue
        kept[key] = value
    return with_content(kept) if kept else None


def _unmet(admission: Admission, procedure: Procedure) -> str | None:
    """The first of tags, roles, conditions that is specified and not met."""
    stated = procedure.applicability or {}
    cues = admission.request.cues
    given = {word.casefold() for word in (*(cues.tags or ()), *(cues.entities or ()), *(cues.keywords or ()))}
    tags = _texts(stated.get("tags"))
    if tags and given.isdisjoint(tag.casefold() for tag in tags):
        return "tags"
    roles = _texts(stated.get("roles"))
    if roles and not {admission.purpose, admission.request.scope.agent_id} & set(roles):
        return "roles"
    conditions = stated.get("conditions")
    if isinstance(conditions, dict):
        state = admission.pool.working_state
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


# -- insights -----------------------------------------------------------------------------------------

_INSIGHT_CONFIDENCE = 0.3
_TYPES = ("hypothesis", "strategy", "pattern")


def allows_insights(admission: Admission) -> bool:
    """The value of `usage_policy.allow_in_responder` for this packet."""
    return admission.policy.allow_validated_insights_in_responder


def offer_insights(admission: Admission, notes: Explanation) -> list[Offer]:
    """Validated ones first, then by confidence."""
    policy = admission.policy
    names = names_of("insight", (each.insight.id for each in admission.pool.insights))
    fit: list[tuple[str, InsightCandidate]] = []
    taken: set[str] = set()
    for name, each in zip(names, admission.pool.insights, strict=True):
        if (reason := _unfit_insight(admission, each)) is not None:
            notes.omit(name, reason, validation_state=each.insight.validation_state)
        elif each.insight.id in taken:
            notes.omit(name, "duplicate")
        else:
            taken.add(each.insight.id)
            fit.append((name, each))
    fit.sort(key=_insight_worth)
    for name, _ in fit[policy.insights_max :]:
        notes.omit(name, "count_limit", limit=policy.insights_max)
    return [Offer(_insight_candidate(*pair)) for pair in fit[: policy.insights_max]]


def _insight_candidate(name: str, each: InsightCandidate) -> Candidate:
    def write(insight: InsightItem) -> str:
        return insight_line(insight, typical_mark)

    order = (_TYPES.index(each.insight.type), *_age(each.recorded_at, name))
    rules = (each.insight.validation_state, "not_expired")
    return Candidate(name, "insights", each.insight, order, write, _confidence(each.insight), rules)


def _unfit_insight(admission: Admission, each: InsightCandidate) -> Reason | None:
    item = each.insight
    if item.validation_state == "rejected":
        return "insight_wall"  # never shown to anyone
    if not may_show("insights", admission.purpose):
        return "purpose"
    if admission.purpose == "responder" and not (allows_insights(admission) and item.validation_state == "validated"):
        return "insight_wall"
    if _is_expired(admission, each):
        return "expired"
    if (reason := admission.cues.bars_lasting(each.recorded_at, item.expires_at)) is not None:
        return reason
    if (reason := admission.bars(each.trust) or admission.bars_words(each.trust, item.statement)) is not None:
        return reason
    return next(filter(None, map(admission.bars_evidence, item.sources or ())), None)


def _is_expired(admission: Admission, each: InsightCandidate) -> bool:
    """`run_end`, also the meaning of null and absence, expires with the run; an unreadable value counts as expired."""
    text = each.insight.expires_at
    if text is None or text == "run_end":
        return each.run_is_finished
    moment = parse_rfc3339(text)
    return moment is None or moment < admission.now


def _confidence(item: InsightItem) -> float:
    return item.confidence if item.confidence is not None else _INSIGHT_CONFIDENCE


def _insight_worth(named: tuple[str, InsightCandidate]) -> tuple[bool, float, int, str, str]:
    name, each = named
    recorded = instant_order(each.recorded_at).seconds
    is_open = each.insight.validation_state != "validated"
    return (is_open, -_confidence(each.insight), -recorded, each.insight.id, name)


# -- episodes -----------------------------------------------------------------------------------------

_DAY_SECONDS = 86_400
_MATCH = "query_match"
_BESIDE_MAX = 2
"""Tool results that an episode may show although they share no word with the query."""


@dataclass(frozen=True, slots=True)
class _KnownEpisode:
    """A candidate with its time and cue information."""

    name: str
    candidate: EpisodeCandidate
    start: Instant
    age_days: float
    recency: float
    cues: tuple[str, ...]
    """The cues that exempt it from the window: a match with the query, or with the caller's cues."""

    @property
    def is_chosen(self) -> bool:
        """True if it carries a tag or an entity that the caller named."""
        return "tag" in self.cues or "entity" in self.cues

    @property
    def worth(self) -> tuple[bool, float, bool, float, str, str]:
        is_pointed_at = any(cue != _MATCH for cue in self.cues)
        match = -max(self.candidate.score, 0.0)
        return (not is_pointed_at, match, not self.cues, -self.recency, self.candidate.episode_id, self.name)


def offer_episodes(admission: Admission, notes: Explanation, carrying: frozenset[str]) -> list[Offer]:
    """Cued ones, then at most `episodes_max` within the window (MP-11). `carrying` are the turns that match a cue."""
    names = names_of("episode", (each.episode_id for each in admission.pool.episodes))
    taken: set[str] = set()
    fit: list[_KnownEpisode] = []
    for name, each in zip(names, admission.pool.episodes, strict=True):
        known = _known_episode(admission, name, each, carrying)
        reason = "out_of_window" if known is None else _unfit_episode(admission, known)
        if reason is None and each.episode_id in taken:
            reason = "duplicate"
        if reason is None and known is not None:
            reason = _bars_all_lines(admission, each)
        if reason is not None or known is None:
            notes.omit(name, reason or "out_of_window")
        else:
            taken.add(each.episode_id)
            fit.append(known)
    if admission.cues.chooses and any(known.is_chosen for known in fit):
        for known in fit:
            if not known.is_chosen:
                notes.omit(known.name, "not_cued")
        fit = [known for known in fit if known.is_chosen]
    fit.sort(key=lambda each: each.worth)
    uncued = [known for known in fit if not known.cues]
    for known in uncued[admission.policy.episodes_max :]:
        notes.omit(known.name, "count_limit", limit=admission.policy.episodes_max)
    dropped = {known.name for known in uncued[admission.policy.episodes_max :]}
    return [Offer(_episode_candidate(admission, known)) for known in fit if known.name not in dropped]


def _known_episode(
    admission: Admission, name: str, each: EpisodeCandidate, carrying: frozenset[str]
) -> _KnownEpisode | None:
    start, end = parse_rfc3339(each.start), parse_rfc3339(each.end)
    if start is None:
        return None
    age_days = (admission.now.seconds - max(start, end or start).seconds) / _DAY_SECONDS
    recency = round(0.5 ** (max(age_days, 0.0) / admission.policy.recency_half_life_days), 6)
    return _KnownEpisode(name, each, start, age_days, recency, tuple(_episode_cues(admission, each, carrying)))


def _episode_cues(admission: Admission, each: EpisodeCandidate, carrying: frozenset[str]) -> Iterator[str]:
    """The cues that exempt it from the window: the query, a tag, an entity, a keyword, the requested time."""
    cues = admission.cues
    if each.score > 0:
        yield _MATCH
    if not cues.is_given:
        return
    labels = {word.casefold() for word in (*each.tags, *each.entities)}
    words = (("tag", cues.tags), ("entity", cues.entities), ("keyword", cues.keywords))
    found = {noun for noun, given in words if not labels.isdisjoint(word.casefold() for word in given)}
    if any(cues.names(line.text) for line in each.lines):
        found.add("entity")
    if any(cues.says_keyword(line.text) for line in each.lines):
        found.add("keyword")
    if cues.chooses and "tag" not in found and not carrying.isdisjoint(each.sources):
        found.add("tag" if cues.tags else "entity")  # as a label of a turn, of which an episode lists only a few
    yield from (noun for noun, _ in words if noun in found)
    if cues.has_range and cues.holds(each.start, each.end):
        yield "time_range"


def _unfit_episode(admission: Admission, known: _KnownEpisode) -> Reason | None:
    if (reason := admission.bars(known.candidate.trust)) is not None:
        return reason
    if (reason := admission.cues.bars(known.candidate.start, known.candidate.end)) is not None:
        return reason  # no cue overrides this exclusion (TM-05)
    if known.cues:
        return None
    if admission.purpose == "tool":
        return "purpose"  # of little use to a tool, so only on request
    window = min(admission.policy.episode_window_days, admission.policy.milestone_days)
    return None if 0 <= known.age_days <= window else "out_of_window"


def _bars_all_lines(admission: Admission, each: EpisodeCandidate) -> Reason | None:
    """The reason all of its sentences are excluded; None if one is allowed."""
    reason: Reason | None = "empty"
    for line in each.lines:
        barred = admission.bars_sentence(line.evidence_id, line.text) if line.text.strip() else "empty"
        if barred is None:
            return None
        reason = barred if reason == "empty" else reason
    return reason


def _episode_candidate(admission: Admission, known: _KnownEpisode) -> Candidate:
    """Its best sentences not yet on the page: all of them, fewer, or only its date."""
    level, lines_max = _compression(admission, known.age_days)

    def shorten(fits: Fits, is_shown: IsShown) -> tuple[Episode, Step | None] | None:
        fresh = _fresh_lines(admission, known, lines_max, is_shown)
        if not fresh:
            return None
        for count in range(len(fresh), -1, -1):
            episode = _episode(admission, known, level, fresh[:count])
            if (count or episode.tags) and fits(episode):  # a day without sentence or tag says nothing
                return episode, None if count == len(fresh) else "raw→summary" if count else "raw→ref"
        return None

    def write(episode: Episode) -> str:
        results = {source for source in episode.sources if admission.is_result(source)}
        return episode_text(episode, admission.who, typical_mark, results, admission.answers)

    def tells(episode: Episode) -> list[tuple[str, str]]:
        sentences = ([episode.summary] if episode.summary else []) + list(episode.highlights or ())
        return list(zip(episode.sources, sentences, strict=False))

    return Candidate(
        known.name,
        "episodes",
        None,
        (-known.start.seconds, known.candidate.episode_id),
        write,
        known.candidate.score,
        (*known.cues, level, f"recency={known.recency:g}"),
        shorten=shorten,
        tells=tells,
    )


def _fresh_lines(admission: Admission, known: _KnownEpisode, lines_max: int, is_shown: IsShown) -> list[SummaryLine]:
    """The best allowed sentences not yet on the page; for an episode that does not match the query, few tool lines
    without a shared word.
    """

    def is_beside(line: SummaryLine) -> bool:
        is_open = not admission.is_asked or bool(known.cues) or line.role != "tool"
        return not is_open and admission.terms.isdisjoint(analyze(line.text))

    fresh: list[SummaryLine] = []
    for line in known.candidate.lines:
        if len(fresh) == lines_max:
            break
        text = line.text.strip()
        if (
            text
            and admission.bars_sentence(line.evidence_id, line.text) is None
            and not is_shown(line.evidence_id, text, line.words)
            and (sum(map(is_beside, fresh)) < _BESIDE_MAX or not is_beside(line))
        ):
            fresh.append(line)
    return fresh


def _compression(admission: Admission, age_days: float) -> tuple[str, int]:
    policy = admission.policy
    if age_days < policy.raw_days:
        return "raw", policy.raw_lines
    if age_days < policy.phase_days:
        return "phase_summary", policy.phase_lines
    return "milestone", policy.milestone_lines


_EPISODE_FIELDS = set(Episode.model_fields)
_SPAN, _START = {"start", "end"}, {"start"}


def _episode(admission: Admission, known: _KnownEpisode, level: str, lines: list[SummaryLine]) -> Episode:
    """The best sentence is the summary, the rest are highlights in chronological order, with matching sources."""
    each = known.candidate
    rest = sorted(lines[1:], key=lambda line: (instant_order(line.ts), line.evidence_id, line.text))
    ordered = [*lines[:1], *rest]
    sources = [line.evidence_id for line in ordered] or [
        source for source in each.sources if admission.bars_evidence(source) is None
    ][:1]
    has_end = parse_rfc3339(each.end) is not None
    span = TimeSpan.unchecked({"start": each.start, "end": each.end if has_end else None}, _SPAN if has_end else _START)
    shown = {
        "highlights": tuple([line.text.strip() for line in ordered[1:]]),
        "tags": tuple([word for word in each.tags if not admission.wall.bars_value(word)]),
        "entities": tuple([word for word in each.entities if not admission.wall.bars_value(word)]),
    }
    fields = {
        "episode_id": each.episode_id,
        "time_range": span,
        "summary": ordered[0].text.strip() if ordered else "",
        **{key: words or None for key, words in shown.items()},
        "sources": tuple(sources),
        "compression_level": level,
        "recency_score": known.recency,
    }
    return Episode.unchecked(fields, _EPISODE_FIELDS.difference([key for key, words in shown.items() if not words]))
