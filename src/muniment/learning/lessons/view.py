"""Lessons read off the records they are kept as. Pure: whoever reads the store hands in what belongs together.

A tactic, a draft and a rule of one contrast are one lesson. It stands where the one furthest on stands; a draft is
handed to nobody, and counts where neither of the others is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from muniment.core.canonical import short_id
from muniment.core.scope import ScopeLevel
from muniment.learning.keys import rule_intent_key
from muniment.learning.lesson_state import LessonOrigin, LessonStage, LessonState, LessonUse
from muniment.learning.lessons.records import (
    KeptAs,
    LessonEffect,
    LessonEvidence,
    LessonGuess,
    LessonRun,
    LessonWhen,
)
from muniment.learning.lessons.wording import condition_words, sentence_of, texts_in
from muniment.learning.stored_memory import StoredMemory, Tally

__all__ = [
    "DROPPED",
    "SIGNED",
    "Contrast",
    "Difference",
    "Draft",
    "Kept",
    "Kin",
    "contrast_of",
    "draft_parts",
    "draft_stage",
    "lesson_of",
    "rule_id_of",
    "run_of",
    "state_of",
    "tactic_parts",
]

_RANK: dict[LessonStage, int] = {"retired": 0, "candidate": 1, "trial": 2, "suspended": 3, "active": 4}
_RULE_STAGES: dict[str, LessonStage] = {"canary": "trial", "active": "active", "retired": "retired"}
_TYPES = {"StrategyRule": "do", "GuardrailRule": "avoid"}
_GONE = ("retired", "pruned")
_NEWEST = 5
"""Runs that a list shows of a lesson."""
SIGNED, DROPPED = "signed", "dropped"
"""The reasons of a plan that a signature or a drop makes; the name, or the reason given, follows."""
_DECIDED = {SIGNED: "signed by {}", DROPPED: "dropped: {}", "undone": "the plan {} was taken back"}


class Contrast(NamedTuple):
    """What a lesson was learnt from: the same for its tactic, its draft and its rule."""

    intent_key: str
    feature: str
    advice: str
    """do, avoid"""


class Kept(NamedTuple):
    """A tactic or a rule as it stands, and when it came to stand so."""

    memory: StoredMemory
    written_at: str


class Draft(NamedTuple):
    """A draft of a rule as it was made."""

    id: str
    record: Mapping[str, Any]
    """The DistillDraft, as plain data."""
    made_at: str


class Kin(NamedTuple):
    """What is one lesson."""

    tactic: Kept | None
    rule: Kept | None
    draft: Draft | None

    @property
    def lesson_id(self) -> str:
        named = (self.tactic and self.tactic.memory.id, self.rule and self.rule.memory.id, self.draft and self.draft.id)
        return next(each for each in named if each)

    @property
    def kept(self) -> list[Kept]:
        """The tactic and the rule, the one furthest on first; of two that stand alike the tactic."""
        held = [each for each in (self.tactic, self.rule) if each is not None]
        return sorted(held, key=lambda each: -_RANK[state_of(each).stage])


# -- which belong together ----------------------------------------------------------------------------


def contrast_of(kind: str, record: Mapping[str, Any]) -> Contrast | None:
    """What a record was learnt from; None of one that no contrast made."""
    if kind == "tactic":
        learnt, key = record.get("learnt"), record.get("intent_key")
        feature = learnt.get("feature") if isinstance(learnt, Mapping) else None
        advice = learnt.get("advice") if isinstance(learnt, Mapping) else None
    else:
        proposed = record.get("proposed_rule") if kind == "draft" else record
        evidence = record.get("evidence")
        feature = evidence.get("feature") if isinstance(evidence, Mapping) else None
        advice = _TYPES.get(str(proposed.get("type"))) if isinstance(proposed, Mapping) else None
        key = rule_intent_key(proposed) if isinstance(proposed, Mapping) else None
    if not (isinstance(feature, str) and isinstance(advice, str) and isinstance(key, str)):
        return None
    return Contrast(key, feature, advice)


def tactic_parts(contrast: Contrast) -> list[Any]:
    """What the id of its tactic is made of, in a bank."""
    return [contrast.intent_key, contrast.feature, contrast.advice]


def draft_parts(contrast: Contrast) -> list[Any]:
    """What the id of its draft is made of, in a bank."""
    type_ = next(name for name, advice in _TYPES.items() if advice == contrast.advice)
    return [type_, contrast.intent_key, "feature", contrast.feature]


def rule_id_of(tenant_id: str, owner: str, draft_id: str) -> str:
    """The id of the rule that a draft becomes, unless it is merged into another."""
    return short_id("rule", [tenant_id, owner, draft_id])


# -- where it stands ----------------------------------------------------------------------------------


def state_of(kept: Kept) -> LessonState:
    """Where a tactic or a rule stands as a lesson: as it says itself, unless a person or a plan has said more."""
    memory = kept.memory
    stage, held = _stage_of(memory), memory.lesson
    if held is None or held.stage != stage:
        is_of_before = held is None and stage == "active" and _said_by_a_person(memory) is None
        since = memory.created_at if is_of_before else kept.written_at
        return LessonState(stage=stage, since=since, why=_why(memory, stage))
    said = _said_by_a_person(memory)
    return held if said is None else held.model_copy(update={"why": said})


def _stage_of(memory: StoredMemory) -> LessonStage:
    if memory.status in _GONE:
        return "retired"
    if memory.kind == "rule":
        return _RULE_STAGES.get(memory.stage or "drafted", "candidate")
    if memory.status == "pinned" or memory.lesson is None:
        return "active"
    return memory.lesson.stage


def _said_by_a_person(memory: StoredMemory) -> str | None:
    """Why it is as it is, where the last change was a person's: a signature, a drop, a plan taken back."""
    reasons = memory.reason_keys
    if len(reasons) < 2 or reasons[0] not in _DECIDED:
        return None
    return _DECIDED[reasons[0]].format(reasons[1])


def _why(memory: StoredMemory, stage: LessonStage) -> str:
    reasons = memory.reason_keys
    if (said := _said_by_a_person(memory)) is not None:
        return said
    if memory.status == "pinned":
        return "a person keeps it"
    if memory.kind == "rule":
        return f"the rule is {memory.stage or 'drafted'}"
    if stage == "active" and memory.lesson is None:
        return "from before lessons were tried first"
    return ", ".join(each.replace("_", " ") for each in reasons) or "a plan says so"


def draft_stage(draft: Draft) -> LessonState:
    return LessonState(stage="candidate", since=draft.made_at, why="drafted; nobody is told before it is tested")


# -- what came of it ----------------------------------------------------------------------------------


class Difference(NamedTuple):
    """What a lesson does to pass rates, and where that lies in 95 of 100 such cases."""

    value: float
    low: float
    high: float


def run_of(use: LessonUse) -> LessonRun:
    told = {name: value for name, value in use.to_wire().items() if name in LessonRun.model_fields}
    return LessonRun.model_validate(told)


def _tally(uses: Sequence[LessonUse], arm: str) -> Tally:
    mine = [use for use in uses if use.arm == arm]
    return Tally(n=len(mine), passes=sum(use.passed for use in mine), cost_sum=sum(use.cost for use in mine))


def _strata(uses: Sequence[LessonUse]) -> int:
    """Tasks that both sides have, and one more where both have others."""
    arms: dict[str, set[str]] = {}
    for use in uses:
        arms.setdefault(use.task or "", set()).add(use.arm)
    both = [task for task, seen in arms.items() if task and len(seen) > 1]
    others = {arm for task, seen in arms.items() if task not in both for arm in seen}
    return len(both) + (len(others) > 1)


def _effect(
    had: Tally, held_out: Tally, uses: Sequence[LessonUse], found: Difference | None, guess: LessonGuess | None
) -> LessonEffect:
    plain: dict[str, Any] = {"had": _whole(had), "held_out": _whole(held_out), "strata": _strata(uses)}
    if guess is not None:
        plain["guess"] = guess
    if found is not None:
        figures = {"difference": found.value, "low": found.low, "high": found.high}
        plain |= {name: round(value, 4) for name, value in figures.items()}
    return LessonEffect.model_validate(plain)


def _whole(tally: Tally) -> Tally:
    """With every figure told, noughts too."""
    return Tally(n=tally.n, passes=tally.passes, cost_sum=tally.cost_sum)


def _guess(record: Mapping[str, Any]) -> LessonGuess | None:
    held = record.get("learnt", record.get("evidence"))
    sides = [held.get(side) for side in ("with", "without")] if isinstance(held, Mapping) else []
    if len(sides) != 2 or not all(isinstance(side, Mapping) for side in sides):
        return None
    had, without = (Tally.from_wire(dict(side)) for side in sides if side is not None)
    return LessonGuess(had=had, without=without)


# -- the lesson ---------------------------------------------------------------------------------------


def lesson_of(kin: Kin, uses: Sequence[LessonUse], found: Difference | None, level: ScopeLevel) -> dict[str, Any]:
    """The lesson of what belongs together, as the fields of a `Lesson`.

    `uses` are the judged runs of what is furthest on, oldest first, and `found` is what came of it in them.
    """
    kept = kin.kept
    shown = kept[0] if kept else None
    record, state = _record(kin, shown), _state(kin, shown)
    had, held_out = _tally(uses, "had"), _tally(uses, "held_out")
    if not uses and shown is not None and shown.memory.kind == "tactic":  # counted before runs had rows of their own
        had, held_out = shown.memory.with_tally, shown.memory.without_tally
    traces = texts_in(record, "evidence", "trace_ids") or list(shown.memory.sources if shown else ())
    said = record.get("lesson")
    cited = texts_in(record, "lesson", "event_ids") if level == "user" else ()
    predicates = tuple(texts_in(record, "predicates") or texts_in(_where(record), "predicates"))
    plain: dict[str, Any] = {
        "lesson_id": kin.lesson_id,
        "text": sentence_of(_said(record)),
        "when": LessonWhen(words=condition_words(predicates, _text(said, "when")), predicates=predicates),
        "stage": state.stage,
        "since": state.since,
        "why": state.why,
        "signed": shown is not None and shown.memory.status == "pinned",
        "origin": _origin(said),
        "level": level,
        "created_at": shown.memory.created_at if shown is not None else state.since,
        "evidence": LessonEvidence(trace_ids=tuple(traces), event_ids=tuple(dict.fromkeys(cited))),
        "effect": _effect(had, held_out, uses, found, _guess(record)),
        "uses": had.n,
        "held_out": held_out.n,
        "newest": tuple(run_of(use) for use in reversed(uses[-_NEWEST:])),
        "kept_as": tuple(_kept_as(kin)),
    }
    for name, tally in (("cost", had), ("cost_without", held_out)):
        if tally.n and tally.cost_sum:
            plain[name] = round(tally.cost_sum / tally.n, 4)
    return plain


def _state(kin: Kin, shown: Kept | None) -> LessonState:
    if shown is not None:
        return state_of(shown)
    assert kin.draft is not None
    return draft_stage(kin.draft)


def _record(kin: Kin, shown: Kept | None) -> Mapping[str, Any]:
    if shown is not None:
        return shown.memory.record
    assert kin.draft is not None
    return kin.draft.record


def _where(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a rule or a draft: what says where it applies."""
    proposed = record.get("proposed_rule")
    held = (proposed if isinstance(proposed, Mapping) else record).get("applicability")
    return held if isinstance(held, Mapping) else {}


def _said(record: Mapping[str, Any]) -> Any:
    proposed = record.get("proposed_rule")
    source = proposed if isinstance(proposed, Mapping) else record
    return source.get("summary") or source.get("body") or source.get("title")


def _origin(said: Any) -> LessonOrigin:
    named = _text(said, "origin")
    return next((each for each in get_args(LessonOrigin) if each == named), "contrast")


def _text(said: Any, name: str) -> str | None:
    """A text of what a record says of itself as a lesson."""
    held = said.get(name) if isinstance(said, Mapping) else None
    return held if isinstance(held, str) else None


def _kept_as(kin: Kin) -> list[KeptAs]:
    held = [
        KeptAs(kind="tactic" if each.memory.kind == "tactic" else "rule", id=each.memory.id, stage=state_of(each).stage)
        for each in kin.kept
    ]
    return held if kin.draft is None else [*held, KeptAs(kind="draft", id=kin.draft.id, stage="candidate")]
