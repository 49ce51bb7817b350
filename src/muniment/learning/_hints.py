"""RECALL of learned memory (RC-08, RC-09): candidates filtered, ranked, grouped and cut to fit a prompt. Pure.

S = sem·similarity + tools·likeness + intent·likeness + state·compatibility + quality·quality, each part from 0 to 1 and
shown. Episodes of failed runs come after everything else. Runs of one kind of work that did the same become one hint
with its counts. Where such work was done in several ways, the one to try is drawn by how often its calls passed lately,
among runs of the same circumstances where there are enough of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import log, sqrt
from typing import Any, NamedTuple, cast

from muniment.contracts.learning import MemoryHint
from muniment.core.canonical import digest
from muniment.core.instants import parse_instant
from muniment.core.policy import InjectionBudget, LearnPolicy, LessonPolicy
from muniment.core.predicate_nodes import RUN_FEATURES
from muniment.core.predicates import parse
from muniment.core.stats import Beta, Prior, Tally, normal_quantile
from muniment.core.text.sentences import sentence_spans
from muniment.learning._episodes import Episode, EpisodeStep, episode_of, passed_of, render_steps, tools_told
from muniment.learning._trials import draw_arms, fits_any_run, is_lesson
from muniment.learning.fold.blame import only_looks
from muniment.learning.keys import (
    Likeness,
    has_expired,
    intent_likeness,
    read_intent_key,
    rule_intent_key,
    state_compat,
)
from muniment.learning.lesson_state import LessonArm
from muniment.learning.lessons.wording import cited_events, lesson_line, sentence_of
from muniment.learning.stored_memory import Store, StoredMemory

__all__ = [
    "BELOW_FLOOR",
    "FAILED",
    "OTHER_WAY",
    "Dropped",
    "Grouped",
    "HandedOut",
    "Injection",
    "RecallQuestion",
    "Recallable",
    "Weighed",
    "best_of",
    "group_hints",
    "hand_out",
    "hint_text",
    "history_of",
    "inject",
    "outcome_of",
    "quality_of",
    "rarities",
    "tells_of_failure",
    "tool_likeness",
    "weigh",
]

BELOW_FLOOR = "below_floor"
FAILED = "failed"
"""Why the episode of a failed run is left out: runs that passed were found, or other failures."""
OTHER_WAY = "another way is shown"
"""Why an episode is left out whose way is neither the one to try nor one of those beside it."""
_LIVE = frozenset({"active", "pinned"})
_DAY_S = 86_400
_PINNED_BONUS = 0.1
_RECENCY_SHARE = 0.15
_CAREFUL, _SURE = 0.2, 0.95
"""Quantiles of the posterior: the one that quality reads, and the one that must lie below the hopeless rate."""
_EACH_FIRST = 2
"""Records of each store that come first: episodes that read like the task leave room for what runs have in common."""
_CUT_TOKENS_MIN = 12
"""A hint of which less would be left is not worth a line."""
_LOOKS = 0.1
"""Weight of a tool that only looks, beside one that acts."""
_TRACES_MAX = 5
_FAILED_MAX = 2
"""Failed runs that are shown where none passed, and failing ways beside the one to try."""
_NEWEST_MAX = 8
"""Runs of one way that are counted in its line, the newest."""
_WAY_RUNS_MIN = 6
"""Judged runs of one kind of work from which on its ways are compared."""
_ALIKE_RUNS_MIN = 8
"""Runs in the same circumstances from which on they alone are counted."""


class Recallable(NamedTuple):
    """A record that may come back, the store it is of, and how much like the query it reads (0 to 1)."""

    memory: StoredMemory
    source: Store
    similarity: float
    """Beside the best of its bank."""
    chance: float = 1.0
    """How likely it has to do with the query at all."""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """What a recall asks for."""

    now: str
    bucket_key: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    tools: frozenset[str] = frozenset()
    """Those that the task requires, and those that the run has called."""
    features: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the run before it acts: what predicates are about."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What its caller knows of the task, by name."""
    did: str = ""
    """What the run has done so far, as a search reads it."""

    @property
    def is_fallback(self) -> bool:
        """Without keys there is nothing but likeness of words."""
        return self.intent_key is None and self.state_key is None


class Weighed(NamedTuple):
    """A candidate that stays, with every part of its score."""

    candidate: Recallable
    score: float
    parts: Mapping[str, float]
    reasons: tuple[str, ...]
    alike: tuple[StoredMemory, ...] = ()
    """Others that did the same, for which it stands."""
    to_try: bool = False
    """It is the episode whose way is to be tried."""

    @property
    def ids(self) -> tuple[str, ...]:
        """All records that it stands for, itself first."""
        return tuple(memory.id for memory in (self.candidate.memory, *self.alike))


class Dropped(NamedTuple):
    memory_id: str
    reason: str


# -- filter and rerank --------------------------------------------------------------------------------


def weigh(
    candidates: Sequence[Recallable], asked: RecallQuestion, policy: LearnPolicy
) -> tuple[list[Weighed], list[Dropped]]:
    """The candidates that fit, best first (of equals the newest), and the others, each with why it does not."""
    kept: list[Weighed] = []
    dropped: list[Dropped] = []
    known: dict[tuple[str | None, str | None], tuple[Likeness, Likeness]] = {}
    rarity = rarities([tools_told(candidate.memory) for candidate in candidates]) if asked.tools else {}
    for candidate in candidates:
        keys = _key(candidate.memory, "intent_key"), _key(candidate.memory, "state_key")
        if keys not in known:  # many records, few keys
            known[keys] = _likenesses(asked, *keys)
        intent, state = known[keys]
        reason = _unfit(candidate.memory, asked, policy, intent, state)
        if reason is not None:
            dropped.append(Dropped(candidate.memory.id, reason))
            continue
        tools = tool_likeness(asked.tools, tools_told(candidate.memory), rarity)
        likeness = max(candidate.chance, tools, 0.0 if asked.is_fallback else intent.score)
        if likeness < policy.fit_min and not fits_any_run(candidate.memory):
            dropped.append(Dropped(candidate.memory.id, BELOW_FLOOR))
        else:
            kept.append(_weighed(candidate, asked, policy, intent, state, tools))
    kept.sort(key=lambda each: each.candidate.memory.id)
    kept.sort(key=lambda each: each.candidate.memory.created_at, reverse=True)  # likes have one score: the newest first
    kept.sort(key=lambda each: (tells_of_failure(each.candidate.memory), -each.score))
    return kept, dropped


def best_of(weighed: Sequence[Weighed], most: int) -> list[Weighed]:
    """The best so many, in order; but no store's best two give way to the third of another."""
    places: dict[Store, int] = {}
    first: list[int] = []
    for place, each in enumerate(weighed):
        places[each.candidate.source] = places.get(each.candidate.source, 0) + 1
        if places[each.candidate.source] <= _EACH_FIRST:
            first.append(place)
    rest = sorted(set(range(len(weighed))) - set(first))
    return [weighed[place] for place in sorted([*first, *rest][:most])]


def _unfit(
    memory: StoredMemory, asked: RecallQuestion, policy: LearnPolicy, intent: Likeness, state: Likeness
) -> str | None:
    if memory.status not in _LIVE:
        return memory.status
    if memory.kind == "rule" and memory.record.get("status") != "active":
        return "not_active"  # a rule that nobody has promoted reaches no prompt by this door either
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
        and memory.lesson is None  # a lesson is moved by what came of it
        and memory.status != "pinned"
        and _quantile(history_of(memory).passes, history_of(memory).n, _prior(policy), _SURE) < policy.hopeless_rate
    ):
        return "hopeless"
    return _failing_predicate(memory, asked)


def _key(memory: StoredMemory, name: str) -> str | None:
    if memory.kind == "rule" and name == "intent_key":
        return rule_intent_key(memory.record)
    held = memory.record.get(name)
    return held if isinstance(held, str) else None


def _likenesses(asked: RecallQuestion, intent: str | None, state: str | None) -> tuple[Likeness, Likeness]:
    """How alike the intents and the states of a record and a task are. The tools it needs are those its intent
    requires, not those that happened to be there.
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
    candidate: Recallable, asked: RecallQuestion, policy: LearnPolicy, intent: Likeness, state: Likeness, tools: float
) -> Weighed:
    quality, quality_text = quality_of(candidate.memory, policy, asked.now)
    likeness = {"sem": candidate.similarity, "tools": tools, "intent": intent.score}
    parts = {**likeness, "state": state.score, "quality": quality}
    if asked.is_fallback:
        parts |= {"intent": 0.0, "state": 0.0}
    score = sum(getattr(policy.weights, name) * value for name, value in parts.items())
    reasons = [f"reads like the task ({candidate.similarity:.2f})"] if candidate.similarity > 0 else []
    if tools > 0:
        reasons.append(f"called the same tools ({tools:.2f})")
    if not asked.is_fallback:
        reasons += [*(f"intent: {why}" for why in intent.why), *(f"state: {why}" for why in state.why)]
    return Weighed(
        candidate, round(score, 6), {name: round(value, 6) for name, value in parts.items()}, (*reasons, quality_text)
    )


def _prior(policy: LearnPolicy) -> Prior:
    return Prior(policy.quality_prior_passes, policy.quality_prior_fails)


@lru_cache(maxsize=4096)
def _quantile(passes: float, n: float, prior: Prior, share: float) -> float:
    """A quantile of the posterior of a pass rate. It is cached: histories are short, so the same ones come again and
    again.
    """
    return Beta(passes + prior[0], max(0.0, n - passes) + prior[1]).quantile(share)


def history_of(memory: StoredMemory) -> Tally:
    """Every outcome that speaks for or against it: of runs that used it, and of those it was learnt from."""
    return Tally(memory.with_tally.passes, memory.with_tally.n).merge(_own_history(memory))


def _own_history(memory: StoredMemory) -> Tally:
    """Of the runs that it was learnt from."""
    learnt = memory.record.get("learnt")
    if isinstance(learnt, dict):
        side = learnt.get("without" if learnt.get("advice") == "avoid" else "with")
        if isinstance(side, dict) and isinstance(side.get("n"), int) and isinstance(side.get("passes"), int):
            return Tally(cast("int", side["passes"]), cast("int", side["n"]))
    return Tally() if (passed := passed_of(memory)) is None else Tally(int(passed), 1)


def outcome_of(memory: StoredMemory) -> bool | None:
    """Whether the run passed that an episode tells of; None of what is no episode, or was not judged."""
    return passed_of(memory) if memory.kind == "reasoning" else None


def tells_of_failure(memory: StoredMemory) -> bool:
    """Whether it is the episode of a run that failed."""
    return outcome_of(memory) is False


_instant = lru_cache(maxsize=1024)(parse_instant)


def quality_of(memory: StoredMemory, policy: LearnPolicy, now: str) -> tuple[float, str]:
    """How well it has served, 0 to 1: the careful end of its pass rate, and a little for being recent or pinned."""
    tally = history_of(memory)
    careful = _quantile(tally.passes, tally.n, _prior(policy), _CAREFUL)
    age_days = max(0.0, (_instant(now) - _instant(memory.last_used_at or memory.created_at)).total_seconds()) / _DAY_S
    recent = 0.5 ** (age_days / policy.recency_half_life_days)
    value = (1 - _RECENCY_SHARE) * careful + _RECENCY_SHARE * recent
    words = f"passed {tally.passes} of {tally.n}" if tally.n else "not tried yet"
    if memory.status == "pinned":
        return min(1.0, value + _PINNED_BONUS), f"{words}, pinned"
    return value, words


# -- likeness of tools --------------------------------------------------------------------------------


def rarities(called: Sequence[Collection[str]]) -> dict[str, float]:
    """The weight of each tool among these runs: from 1 for one that all call, up."""
    counts: defaultdict[str, int] = defaultdict(int)
    for tools in called:
        for tool in tools:
            counts[tool] += 1
    runs = max(1, len(called))
    return {tool: 1 + log(runs / n) for tool, n in counts.items()}


def tool_likeness(ours: Collection[str], theirs: Collection[str], rarity: Mapping[str, float]) -> float:
    """Jaccard's share of two sets of tools, each tool by its weight; 0 where either is empty."""
    if not ours or not theirs:
        return 0.0
    weights = {tool: rarity.get(tool, 1.0) * (_LOOKS if only_looks(tool) else 1.0) for tool in {*ours, *theirs}}
    both = sum(weight for tool, weight in sorted(weights.items()) if tool in ours and tool in theirs)
    return both / sum(weight for _, weight in sorted(weights.items()))


# -- grouping -----------------------------------------------------------------------------------------

_Way = tuple[EpisodeStep, ...]


class Grouped(NamedTuple):
    """What is up for choice, in order, and what is shown by another hint or not at all."""

    kept: list[Weighed]
    dropped: list[Dropped]


class _Run(NamedTuple):
    """A judged run of the kind of work that is asked for."""

    way: _Way
    given: Mapping[str, Any]
    passed: bool


def group_hints(weighed: Sequence[Weighed], asked: RecallQuestion, policy: LessonPolicy, run_id: str | None) -> Grouped:
    """The candidates, each way of doing once and failures last; first the way to try, where ways can be compared.

    `run_id` names the draws: the same run draws the same. A look has none, and reads what is expected.
    """
    merged = _merge(weighed, asked.given)
    dropped = [Dropped(other.id, f"merged with {each.candidate.memory.id}") for each in merged for other in each.alike]
    episodes = [each for each in merged if each.candidate.memory.kind == "reasoning"]
    others = [each for each in merged if each.candidate.memory.kind != "reasoning"]
    drawn = _rate_ways(_runs_asked_for(weighed, asked), asked.given, policy, run_id)
    lead = _way_to_try(episodes, drawn, asked.given)
    if lead is not None:
        rest = [each for each in episodes if each.candidate.memory.id != lead.candidate.memory.id]
        beside = _failing(rest, drawn)
        shown = {each.candidate.memory.id for each in beside}
        kept = [each for each in rest if each.candidate.memory.id in shown or each.candidate.memory.status == "pinned"]
        dropped += [Dropped(each.candidate.memory.id, OTHER_WAY) for each in rest if each not in kept]
        return Grouped([lead._replace(to_try=True), *others, *kept], dropped)
    failed = [each for each in episodes if _mostly_failed(each)]
    passed = [each for each in merged if each not in failed]
    left = failed[:_FAILED_MAX] if not any(each in episodes for each in passed) else []
    dropped += [Dropped(each.candidate.memory.id, FAILED) for each in failed if each not in left]
    return Grouped([*passed, *left], dropped)


def _merge(weighed: Sequence[Weighed], given: Mapping[str, Any]) -> list[Weighed]:
    """Each with those after it that say the same: the same text, or the same way of the same work, in the circumstances
    of this task or in others.
    """
    leaders: list[Weighed] = []
    known: dict[object, int] = {}
    for each in weighed:
        key = _key_of(each.candidate.memory, given)
        place = known.setdefault(key, len(leaders))
        if place == len(leaders):
            leaders.append(each)
        else:
            leaders[place] = leaders[place]._replace(alike=(*leaders[place].alike, each.candidate.memory))
    return leaders


def _key_of(memory: StoredMemory, given: Mapping[str, Any]) -> object:
    episode = episode_of(memory)
    if episode is None or not episode.way:
        return hint_text(memory)
    family = _family(memory.record.get("intent_key"))
    work = family or episode.task or episode.request
    return work, episode.given == given, episode.way, tells_of_failure(memory) if not family else None


def _family(intent: Any) -> str | None:
    parts = read_intent_key(intent) if isinstance(intent, str) else None
    return None if parts is None else parts.task_family


def _runs_asked_for(weighed: Sequence[Weighed], asked: RecallQuestion) -> list[_Run]:
    """The judged runs of the named kind of work, newest first; none where no work is named."""
    family = _family(asked.intent_key)
    found = []
    memories = (each.candidate.memory for each in weighed)
    for memory in sorted(memories, key=lambda memory: (memory.created_at, memory.id), reverse=True):
        passed, episode = outcome_of(memory), episode_of(memory)
        is_known = passed is not None and episode is not None and bool(episode.way)
        if family is not None and is_known and _family(memory.record.get("intent_key")) == family:
            found.append(_Run(cast("Episode", episode).way, cast("Episode", episode).given, bool(passed)))
    return found


def _rate_ways(
    runs: Sequence[_Run], given: Mapping[str, Any], policy: LessonPolicy, run_id: str | None
) -> dict[_Way, float]:
    """How well each way does: the mean of what is drawn for its calls, and for its calls in pairs.

    Calls are counted apart, so that ways which share a call share what is known of it. An outcome counts half after a
    half-life of runs, and what little is known of is drawn wide, so that it is tried. Empty where there are too few.
    """
    alike = [run for run in runs if run.given == given]
    counted = alike if len(alike) >= _ALIKE_RUNS_MIN else runs
    ways = {run.way for run in counted}
    if len(counted) < _WAY_RUNS_MIN or len(ways) < 2:
        return {}
    sums: defaultdict[object, list[float]] = defaultdict(lambda: [1.0, 1.0])
    for age, run in enumerate(counted):
        weight = 0.5 ** (age / policy.half_life_runs)
        for part in _parts(run.way):
            sums[part][not run.passed] += weight
    drawn = {part: _draw(part, passes, fails, policy.exploration, run_id) for part, (passes, fails) in sums.items()}
    return {way: sum(drawn[part] for part in parts) / len(parts) for way in ways if (parts := _parts(way))}


def _parts(way: _Way) -> frozenset[object]:
    """The calls of a way with what they were given, and the pairs of tools right after one another."""
    names = [step.tool for step in way]
    calls = [(step.tool, step.given) for step in way]
    return frozenset([*calls, *pairwise(("", *names, ""))])


def _draw(part: object, passes: float, fails: float, exploration: float, run_id: str | None) -> float:
    """A draw around the mean of a pass rate's posterior, by a share of its spread; the same for a part and a run for
    ever, and the mean itself for a look.
    """
    n = passes + fails
    mean = passes / n
    if run_id is None:
        return mean
    drawn = digest(f"way\n{part}\n{run_id}".encode("utf-8", "surrogatepass"))
    share = (int.from_bytes(drawn[:6], "big") + 0.5) / 2**48
    return mean + exploration * normal_quantile(share) * sqrt(mean * (1 - mean) / (n + 1))


def _way_to_try(episodes: Sequence[Weighed], drawn: Mapping[_Way, float], given: Mapping[str, Any]) -> Weighed | None:
    """The best drawn of the ways that passed lately and met as few errors as any of these."""
    passing = [each for each in episodes if _way(each) in drawn and any(_newest_ends(each))]
    errors = {each.candidate.memory.id: sum(step.failed for step in _way(each)) for each in passing}
    plain = [each for each in passing if errors[each.candidate.memory.id] == min(errors.values())]
    return max(plain, key=lambda each: (drawn[_way(each)], _given(each) == given, each.score), default=None)


def _failing(rest: Sequence[Weighed], drawn: Mapping[_Way, float]) -> list[Weighed]:
    """The ways that mostly failed lately, the worst so many. The next best way is not shown: it only divides."""
    known = sorted((each for each in rest if _way(each) in drawn), key=lambda each: -drawn[_way(each)])
    return [each for each in known if _mostly_failed(each)][-_FAILED_MAX:]


def _way(each: Weighed) -> _Way:
    episode = episode_of(each.candidate.memory)
    return () if episode is None else episode.way


def _given(each: Weighed) -> Mapping[str, Any]:
    episode = episode_of(each.candidate.memory)
    return {} if episode is None else episode.given


def _newest_ends(each: Weighed) -> list[bool]:
    """Whether the newest runs that a hint stands for passed, oldest first."""
    memories = sorted((each.candidate.memory, *each.alike), key=lambda memory: (memory.created_at, memory.id))
    return [passed for memory in memories if (passed := outcome_of(memory)) is not None][-_NEWEST_MAX:]


def _mostly_failed(each: Weighed) -> bool:
    ends = _newest_ends(each)
    return each.candidate.memory.kind == "reasoning" and 2 * sum(ends) < len(ends)


# -- injection ----------------------------------------------------------------------------------------


class Injection(NamedTuple):
    """The hints as they go into a prompt."""

    hints: tuple[MemoryHint, ...]
    """All that were retrieved, best first; `injected` says which are in the text."""
    text: str
    tokens: int
    used_ids: tuple[str, ...]
    overflow: tuple[Mapping[str, Any], ...]
    """What was shortened or left out, and by how much."""


class HandedOut(NamedTuple):
    """What goes into a prompt, and what was drawn for each lesson that would have."""

    injection: Injection
    arms: tuple[LessonArm, ...]
    told_ids: tuple[str, ...]
    """All records that the hints stand for."""


def hand_out(
    weighed: Sequence[Weighed], most: int, run_id: str | None, policy: LearnPolicy, count: Callable[[str], int]
) -> HandedOut:
    """The best so many within the budget, less what is held out of this run; None: a look, for which nothing is drawn.

    An arm is drawn for what would stand in the prompt, and for nothing else, so that with and without are the same
    kind of run. The room that it leaves goes to what is no lesson: another one would be drawn for out of turn.
    """
    best = best_of(weighed, most)
    whole = HandedOut(inject(best, policy.injection, count), (), _ids(best))
    if run_id is None:
        return whole
    shown = set(whole.injection.used_ids)
    drawn = [each.candidate.memory for each in best if each.candidate.memory.id in shown]
    arms = draw_arms(drawn, run_id, policy.lessons)
    had = {arm.memory_id for arm in arms if arm.arm == "had"}
    if all(memory.id in had for memory in drawn if is_lesson(memory)):
        return whole._replace(arms=arms)
    rest = [each for each in weighed if each.candidate.memory.id in had or not is_lesson(each.candidate.memory)]
    left = best_of(rest, most)
    return HandedOut(inject(left, policy.injection, count), arms, _ids(left))


def _ids(chosen: Sequence[Weighed]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for each in chosen for id_ in each.ids))


def inject(weighed: Sequence[Weighed], budget: InjectionBudget, count: Callable[[str], int]) -> Injection:
    """Hints within their budgets: whole, shortened, or named only. Whatever is shortened is listed in `overflow`."""
    hints: list[MemoryHint] = []
    lines: list[str] = []
    used: list[str] = []
    overflow: list[Mapping[str, Any]] = []
    total = 0
    for each in weighed:
        memory = each.candidate.memory
        forms = _forms(each)
        most = budget.tactic_tokens_max if memory.kind == "tactic" else budget.hint_tokens_max
        text = _fitted(forms, min(most, budget.total_tokens_max - total), count)
        line = _line(text)
        is_in = bool(text)
        if is_in:
            # The whole is counted, since tokens of lines do not simply add up.
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


def hint_text(memory: StoredMemory) -> str:
    """A record as one line of a prompt."""
    if memory.kind == "tactic":
        return lesson_line(memory)
    if (episode := episode_of(memory)) is not None:
        return episode.text
    record: Mapping[str, Any] = memory.record
    injection = record.get("injection")
    said = injection.get("content") if isinstance(injection, Mapping) else None
    return " ".join(str(said or record.get("summary") or record.get("body") or "").split())


def _forms(each: Weighed) -> tuple[str, ...]:
    """The line of a hint, and shorter forms of it that are still whole; a text of none of these is cut."""
    memory = each.candidate.memory
    if memory.kind == "tactic":
        full = lesson_line(memory)
        return full, sentence_of(full)
    episode = episode_of(memory)
    if episode is None:
        return (hint_text(memory),)
    ends = _newest_ends(each)
    counted = f"passed {sum(ends)} of {len(ends)}" if ends else "not judged yet"
    if each.to_try:
        way = render_steps([step for step in episode.way if not step.failed] or episode.way)
        only = ", and no more" if episode.did.startswith("Only looked") else ""
        return f'Try {way}{only}: {counted} lately in runs like "{episode.request}".', f"Try {way}{only}: {counted}."
    if not each.alike:
        return episode.text, f"{episode.outcome.capitalize()}. {episode.did}."
    runs = 1 + len(each.alike)
    lately = f"the last {_NEWEST_MAX} of {runs}" if runs > _NEWEST_MAX else str(runs)
    behind = f" {episode.ending}" if episode.ending and not any(ends) else ""
    told = f"{lately[0].upper()}{lately[1:]} runs"
    return f'{told} like "{episode.request}": {counted}. {episode.did}.{behind}', f"{told}: {counted}. {episode.did}."


def _line(text: str) -> str:
    return f"- {text}"


def _fitted(forms: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """The first form that fits. Half a condition or half a way is another one, so what has several forms is not cut;
    a single text is cut to whole sentences, or to whole words of its first.
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
        "reason": "; ".join((*each.reasons, "its way was drawn") if each.to_try else each.reasons),
        "summary": text or None,
        "trace_ids": [trace for one in (memory, *each.alike) for trace in one.sources][:_TRACES_MAX],
        "parts": dict(each.parts),
        "injected": is_in,
    }
    if text != full:
        plain["payload_ref"] = memory.id
    if each.alike:
        plain["alike_ids"] = [one.id for one in each.alike]
    if memory.kind == "tactic" and (cited := cited_events(memory)):
        plain["evidence_ids"] = cited
    return MemoryHint.from_wire(plain)
