"""RECALL of learned memory (RC-08, RC-09): filter candidates, rank them and fit them into a prompt. Pure.

S = sem·similarity + intent·likeness + state·compatibility + quality·quality, each part from 0 to 1 and reported.
Lessons come first, since few match and each was measured; then passing runs of the same kind of work, newest first and
uncut; then the rest by S. Failed runs are shown only if no passing one is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from muniment.contracts.learning import MemoryHint
from muniment.core.instants import parse_instant
from muniment.core.policy import InjectionBudget, LearnPolicy
from muniment.core.predicate_nodes import RUN_FEATURES
from muniment.core.predicates import parse
from muniment.core.stats import Beta, Prior, Tally
from muniment.core.text.sentences import sentence_spans
from muniment.learning._episodes import episode_of, passed_of
from muniment.learning._lesson_words import cited_events, lesson_line, sentence_of
from muniment.learning._trials import draw_arms, fits_any_run, is_lesson
from muniment.learning.keys import (
    Likeness,
    has_expired,
    intent_likeness,
    read_intent_key,
    rule_intent_key,
    state_compat,
)
from muniment.learning.records import LessonArm, Store, StoredMemory

__all__ = [
    "BELOW_FLOOR",
    "FAILED",
    "SAME",
    "Dropped",
    "HandedOut",
    "Injection",
    "RecallQuestion",
    "Recallable",
    "Weighed",
    "choose",
    "hand_out",
    "history_of",
    "inject",
    "quality_of",
    "weigh",
]

BELOW_FLOOR = "below_floor"
FAILED = "failed"
"""The episode of a failed run is dropped because passing runs, or enough failures, were found."""
SAME = "says the same as "
"""Dropped because another record gives the same line; that record's id follows."""
_LIVE = frozenset({"active", "pinned"})
_DAY_S = 86_400
_PRIOR = Prior(1.0, 1.0)
_PINNED_BONUS, _RECENCY_SHARE, _RECENCY_HALF_LIFE_DAYS = 0.1, 0.15, 30
_CAREFUL, _SURE = 0.2, 0.95
"""Quantiles of the posterior: the one used for quality, and the one that must lie below the hopeless rate."""
_HOPELESS_RATE = 0.2
"""A record whose pass rate certainly lies below this is not recalled."""
_CUT_TOKENS_MIN = 12
"""Minimum length of a shortened hint."""
_FAILED_MAX = 2
"""Maximum number of failed runs shown if none passed."""


class Recallable(NamedTuple):
    """A candidate for recall, its store, and its similarity to the query (0 to 1)."""

    memory: StoredMemory
    source: Store
    similarity: float
    """Relative to the best of its bank."""
    chance: float = 1.0
    """The probability that it is relevant to the query at all."""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """The keys and features of a recall."""

    now: str
    bucket_key: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    features: Mapping[str, Any] = field(default_factory=dict)
    """Features known before the run acts, for predicates."""
    did: str = ""
    """The run so far, as text for search."""

    @property
    def is_fallback(self) -> bool:
        """No keys are given, so only textual similarity counts."""
        return self.intent_key is None and self.state_key is None


class Weighed(NamedTuple):
    """A remaining candidate, with every part of its score."""

    candidate: Recallable
    score: float
    parts: Mapping[str, float]
    reasons: tuple[str, ...]


class Dropped(NamedTuple):
    memory_id: str
    reason: str


# -- filtering and ranking ----------------------------------------------------------------------------


def weigh(
    candidates: Sequence[Recallable], asked: RecallQuestion, policy: LearnPolicy
) -> tuple[list[Weighed], list[Dropped]]:
    """Score the candidates; returns those that fit, best first (ties: newest first), and the others with reasons."""
    kept: list[Weighed] = []
    dropped: list[Dropped] = []
    known: dict[tuple[str | None, str | None], tuple[Likeness, Likeness]] = {}
    for candidate in candidates:
        keys = _key(candidate.memory, "intent_key"), _key(candidate.memory, "state_key")
        if keys not in known:  # many records, few keys
            known[keys] = _likenesses(asked, *keys)
        intent, state = known[keys]
        reason = _unfit(candidate.memory, asked, intent, state)
        likeness = max(candidate.chance, 0.0 if asked.is_fallback else intent.score)
        if reason is None and likeness < policy.fit_min and not fits_any_run(candidate.memory):
            reason = BELOW_FLOOR
        if reason is None:
            kept.append(_weighed(candidate, asked, policy, intent, state))
        else:
            dropped.append(Dropped(candidate.memory.id, reason))
    kept.sort(key=lambda each: each.candidate.memory.id)
    kept.sort(key=lambda each: each.candidate.memory.created_at, reverse=True)
    family = _family(asked.intent_key)
    kept.sort(key=lambda each: _place(each, family))  # stable: equal places stay newest first
    return kept, dropped


def choose(weighed: Sequence[Weighed]) -> tuple[list[Weighed], list[Dropped]]:
    """Drop repeated lines, and failed runs if passing ones are known; returns the rest and the dropped."""
    kept: list[Weighed] = []
    dropped: list[Dropped] = []
    lines: dict[str, str] = {}
    for each in weighed:
        memory = each.candidate.memory
        first = lines.setdefault(_forms(memory)[0], memory.id)
        if first == memory.id:
            kept.append(each)
        else:
            dropped.append(Dropped(memory.id, f"{SAME}{first}"))
    failed = [each for each in kept if _outcome_of(each.candidate.memory) is False]
    has_passed = any(_outcome_of(each.candidate.memory) for each in kept)
    left_out = failed if has_passed else failed[_FAILED_MAX:]
    gone = {each.candidate.memory.id for each in left_out if each.candidate.memory.status != "pinned"}
    dropped += [Dropped(id_, FAILED) for id_ in gone]
    return [each for each in kept if each.candidate.memory.id not in gone], dropped


def _place(each: Weighed, family: str | None) -> tuple[int, float]:
    """Sort key: lessons, then passing runs of the family by time, then others by score; failures last."""
    memory = each.candidate.memory
    if is_lesson(memory):
        return 0, -each.score
    passed = _outcome_of(memory)
    if passed and family is not None and _family(_key(memory, "intent_key")) == family:
        return 1, 0.0
    return (3 if passed is False else 2), -each.score


def _unfit(memory: StoredMemory, asked: RecallQuestion, intent: Likeness, state: Likeness) -> str | None:
    if memory.status not in _LIVE:
        return memory.status
    if memory.kind == "rule" and memory.record.get("status") != "active":
        return "not_active"  # an unpromoted rule must not reach a prompt this way either
    if has_expired(memory, asked.now):
        return "expired"
    if intent.clash:
        return "intent_mismatch"
    if _domain(asked.bucket_key) and _domain(memory.record.get("bucket_key")) not in (None, _domain(asked.bucket_key)):
        return "bucket_mismatch"
    if state.clash:
        return "state_incompatible"
    if (
        memory.with_tally.n
        and memory.lesson is None  # lessons are changed by the outcomes of their runs
        and memory.status != "pinned"
        and _quantile(history_of(memory).passes, history_of(memory).n, _SURE) < _HOPELESS_RATE
    ):
        return "hopeless"
    return _failing_predicate(memory, asked)


def _key(memory: StoredMemory, name: str) -> str | None:
    if memory.kind == "rule" and name == "intent_key":
        return rule_intent_key(memory.record)
    held = memory.record.get(name)
    return held if isinstance(held, str) else None


def _family(intent: str | None) -> str | None:
    parts = read_intent_key(intent) if intent is not None else None
    return None if parts is None else parts.task_family


def _likenesses(asked: RecallQuestion, intent: str | None, state: str | None) -> tuple[Likeness, Likeness]:
    """Similarity of intent and state between a record and a task. The required tools are those its intent requires, not
    those that happened to be available.
    """
    parts = None if intent is None else read_intent_key(intent)
    needs = None if parts is None else parts.required_tools
    return intent_likeness(asked.intent_key, intent), state_compat(asked.state_key, state, needs=needs)


def _domain(bucket_key: Any) -> str | None:
    parts = bucket_key.split("|") if isinstance(bucket_key, str) else ()
    return parts[1] if len(parts) == 3 else None


def _failing_predicate(memory: StoredMemory, asked: RecallQuestion) -> str | None:
    where = memory.record.get("applicability") if memory.kind == "rule" else memory.record
    held = where.get("predicates") if isinstance(where, dict) else None
    for text in held if isinstance(held, list | tuple) else ():
        if not parse(str(text), RUN_FEATURES).holds(asked.features):
            return f"predicate: {text}"
    return None


def _weighed(
    candidate: Recallable, asked: RecallQuestion, policy: LearnPolicy, intent: Likeness, state: Likeness
) -> Weighed:
    quality, quality_text = quality_of(candidate.memory, asked.now)
    parts = {"sem": candidate.similarity, "intent": intent.score, "state": state.score, "quality": quality}
    if asked.is_fallback:
        parts |= {"intent": 0.0, "state": 0.0}
    score = sum(getattr(policy.weights, name) * value for name, value in parts.items())
    reasons = [f"reads like the task ({candidate.similarity:.2f})"] if candidate.similarity > 0 else []
    if not asked.is_fallback:
        reasons += [*(f"intent: {why}" for why in intent.why), *(f"state: {why}" for why in state.why)]
    return Weighed(
        candidate, round(score, 6), {name: round(value, 6) for name, value in parts.items()}, (*reasons, quality_text)
    )


@lru_cache(maxsize=4096)
def _quantile(passes: float, n: float, share: float) -> float:
    """A quantile of a pass rate's posterior; cached, as short histories repeat."""
    return Beta(passes + _PRIOR[0], max(0.0, n - passes) + _PRIOR[1]).quantile(share)


def history_of(memory: StoredMemory) -> Tally:
    """All outcomes for or against it: of runs that used it, and of the run it was learned from."""
    passed = passed_of(memory)
    own = Tally() if passed is None else Tally(int(passed), 1)
    return Tally(memory.with_tally.passes, memory.with_tally.n).merge(own)


def _outcome_of(memory: StoredMemory) -> bool | None:
    """Return whether an episode's run passed; None for any other record, and for a run without a verdict."""
    return passed_of(memory) if memory.kind == "reasoning" else None


_instant = lru_cache(maxsize=1024)(parse_instant)


def quality_of(memory: StoredMemory, now: str) -> tuple[float, str]:
    """Rate its usefulness, 0 to 1: a lower quantile of its pass rate, with a small bonus for recent or pinned
    records.
    """
    tally = history_of(memory)
    careful = _quantile(tally.passes, tally.n, _CAREFUL)
    age_days = max(0.0, (_instant(now) - _instant(memory.last_used_at or memory.created_at)).total_seconds()) / _DAY_S
    value = (1 - _RECENCY_SHARE) * careful + _RECENCY_SHARE * 0.5 ** (age_days / _RECENCY_HALF_LIFE_DAYS)
    words = f"passed {tally.passes} of {tally.n}" if tally.n else "not tried yet"
    if memory.status == "pinned":
        return min(1.0, value + _PINNED_BONUS), f"{words}, pinned"
    return value, words


# -- injection ----------------------------------------------------------------------------------------


class Injection(NamedTuple):
    """The hints in a prompt."""

    hints: tuple[MemoryHint, ...]
    """All retrieved hints, best first; `injected` marks those in the text."""
    text: str
    tokens: int
    used_ids: tuple[str, ...]
    overflow: tuple[Mapping[str, Any], ...]
    """Hints that were shortened or left out, with amounts."""


class HandedOut(NamedTuple):
    """The text for the prompt, and the arm drawn for each lesson that would be in it."""

    injection: Injection
    arms: tuple[LessonArm, ...]
    told_ids: tuple[str, ...]
    """The ids of the records of all hints."""


def hand_out(
    weighed: Sequence[Weighed], most: int, run_id: str | None, policy: LearnPolicy, count: Callable[[str], int]
) -> HandedOut:
    """Hand out the best `most` within the budget, except lessons held out of this run. Without `run_id` no arm is
    drawn.

    An arm is drawn only for lessons that would be in the prompt, so that runs with and without are comparable. The
    space of a held-out lesson goes to other kinds of records: another lesson would be drawn out of order.
    """
    whole = _handed(weighed[:most], policy, count)
    if run_id is None:
        return whole
    shown = set(whole.injection.used_ids)
    drawn = [each.candidate.memory for each in weighed if each.candidate.memory.id in shown]
    arms = draw_arms(drawn, run_id, policy.lessons)
    had = {arm.memory_id for arm in arms if arm.arm == "had"}
    if all(memory.id in had for memory in drawn if is_lesson(memory)):
        return whole._replace(arms=arms)
    rest = [each for each in weighed if each.candidate.memory.id in had or not is_lesson(each.candidate.memory)]
    return _handed(rest[:most], policy, count)._replace(arms=arms)


def _handed(chosen: Sequence[Weighed], policy: LearnPolicy, count: Callable[[str], int]) -> HandedOut:
    return HandedOut(inject(chosen, policy.injection, count), (), tuple(each.candidate.memory.id for each in chosen))


def inject(weighed: Sequence[Weighed], budget: InjectionBudget, count: Callable[[str], int]) -> Injection:
    """Fit hints into their budgets: whole, shortened, or by name only. Shortened ones are listed in `overflow`."""
    hints: list[MemoryHint] = []
    lines: list[str] = []
    used: list[str] = []
    overflow: list[Mapping[str, Any]] = []
    total = 0
    for each in weighed:
        memory = each.candidate.memory
        forms = _forms(memory)
        most = budget.tactic_tokens_max if memory.kind == "tactic" else budget.hint_tokens_max
        text = _fitted(forms, min(most, budget.total_tokens_max - total), count)
        line = _line(text)
        is_in = bool(text)
        if is_in:
            # Count the text as a whole, since token counts of lines do not add up exactly.
            cost = count("\n".join([*lines, line]))
            is_in = cost <= budget.total_tokens_max
        if is_in:
            lines.append(line)
            used.append(memory.id)
            total = cost
        if not is_in or text != forms[0]:
            overflow.append(
                {
                    "memory_id": memory.id,
                    "action": "left_out" if not is_in else "compacted",
                    "tokens": count(_line(forms[0])),
                    "kept_tokens": count(line) if is_in else 0,
                    "payload_ref": memory.id,
                }
            )
        hints.append(_hint(each, text if is_in else "", forms[0], is_in))
    return Injection(tuple(hints), "\n".join(lines), total, tuple(used), tuple(overflow))


def _forms(memory: StoredMemory) -> tuple[str, ...]:
    """The line of a record, followed by its shorter complete forms; a text without any is cut."""
    if memory.kind == "tactic":
        full = lesson_line(memory)
        return full, sentence_of(full)
    if (episode := episode_of(memory)) is not None:
        return episode.text, f"{episode.outcome.capitalize()}. {episode.did}."
    injection = memory.record.get("injection")
    said = injection.get("content") if isinstance(injection, Mapping) else None
    return (" ".join(str(said or memory.record.get("summary") or memory.record.get("body") or "").split()),)


def _line(text: str) -> str:
    return f"- {text}"


def _fitted(forms: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """The first form that fits. A partial condition or sequence has another meaning, so records with several forms are
    not cut; a single text is cut to whole sentences, or to whole words of its first.
    """
    fitting = next((form for form in forms if count(_line(form)) <= room), "")
    if fitting or len(forms) > 1 or room <= 0:
        return fitting
    text = forms[0]
    ends = [end for _, end in sentence_spans(text) if count(_line(text[:end])) <= room]
    if ends:
        return text[: max(ends)]
    words = text.split(" ")
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_line(" ".join(words[:middle]) + " …")) <= room:
            low = middle
        else:
            high = middle - 1
    cut = " ".join(words[:low])
    return f"{cut} …" if cut and count(_line(cut)) >= _CUT_TOKENS_MIN else ""


def _hint(each: Weighed, text: str, full: str, is_in: bool) -> MemoryHint:
    memory, source = each.candidate.memory, each.candidate.source
    plain: dict[str, Any] = {
        "memory_id": memory.id,
        "source": source,
        "score": each.score,
        "reason": "; ".join(each.reasons),
        "summary": text or None,
        "trace_ids": list(memory.sources[:_TRACES_MAX]),
        "parts": dict(each.parts),
        "injected": is_in,
    }
    if text != full:
        plain["payload_ref"] = memory.id
    if memory.kind == "tactic" and (cited := cited_events(memory)):
        plain["evidence_ids"] = cited
    return MemoryHint.from_wire(plain)


_TRACES_MAX = 5
