"""RECALL of learned memory (RC-08, RC-09): candidates filtered, reranked, and cut to what a prompt may take. Pure.

S = sem·similarity + tools·likeness + intent·likeness + state·compatibility + quality·quality, each part from 0 to 1,
each told. What tells of a run that failed comes after everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple, cast

from muniment.contracts.learning import MemoryHint
from muniment.core.instants import parse_instant
from muniment.core.policy import InjectionBudget, LearnPolicy
from muniment.core.predicate_nodes import RUN_FEATURES
from muniment.core.predicates import parse
from muniment.core.stats import Beta, Prior, Tally
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import sentence_spans
from muniment.learning.fold.circumstances import Place
from muniment.learning.hinting.culprits import rest_told, words_beside
from muniment.learning.hinting.episode_words import (
    episode_of,
    hint_text,
    line_of_many,
    line_to_try,
    passed_of,
)
from muniment.learning.hinting.forms import form_of
from muniment.learning.hinting.tool_likeness import rarities, tool_likeness, tools_told
from muniment.learning.keys import (
    Likeness,
    has_expired,
    intent_likeness,
    read_intent_key,
    rule_intent_key,
    state_compat,
)
from muniment.learning.lessons.arms import fits_any_run
from muniment.learning.lessons.fared import Fared
from muniment.learning.lessons.lately import Lately
from muniment.learning.lessons.ways import WayRate
from muniment.learning.lessons.wording import cited_events, sentence_of
from muniment.learning.stored_memory import Store, StoredMemory

__all__ = [
    "BELOW_FLOOR",
    "Dropped",
    "Injection",
    "RecallQuestion",
    "Recallable",
    "Weighed",
    "best_of",
    "history_of",
    "inject",
    "outcome_told",
    "quality_of",
    "tells_of_failure",
    "weigh",
]

BELOW_FLOOR = "below_floor"
_LIVE = frozenset({"active", "pinned"})
_DAY_S = 86_400
_PINNED_BONUS = 0.1
_RECENCY_SHARE = 0.15
_CAREFUL, _SURE = 0.2, 0.95
"""Quantiles of the posterior: what quality reads, and what must lie below the hopeless rate."""
_EACH_FIRST = 2
"""Of each store so many come first: episodes that read like the task should leave room for what runs have in common."""
_IN_RUNS = lazy_pattern(r"(?s) in (?:runs|a run) like \".*$")
"""Of a way to try: where it was taken, and what stands behind."""
_CUT_TOKENS_MIN = 12
"""A hint of which less would be left is not worth a line."""


class Recallable(NamedTuple):
    """A record that may come back, the store it is of, and how much like the query it reads (0 to 1)."""

    memory: StoredMemory
    source: Store
    similarity: float
    """Beside the best of its bank."""
    chance: float = 1.0
    """How likely it has to do with the query at all."""
    lately: Lately = Lately()
    """What came of it, newer runs counting more."""
    fared: Fared | None = None
    """Of an episode, how runs that did alike fared."""


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
    did: str = ""
    """What the run has done so far, as a search reads it."""
    circumstances: Mapping[Place, str] = field(default_factory=dict)
    """What it has found out so far, and what its caller knows."""
    called: frozenset[str] = frozenset()
    """The tools that it has called so far."""

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
    """Others that say the same, for which it stands."""
    beside: StoredMemory | None = None
    """The episode of a run that failed, to be told with it."""
    passing: tuple[StoredMemory, ...] = ()
    """Runs that were found, passed, and are like the one that failed: what they did too decided nothing."""
    way: WayRate | None = None
    """Of the episode whose way is to be tried: how often it passes, and what was drawn."""
    line: str = ""
    """What is told in place of its own words: what to do in the circumstances of its run."""
    worse: tuple[StoredMemory, ...] = ()
    """Runs that did something else in these circumstances, of which the line says how they fared."""

    @property
    def ids(self) -> tuple[str, ...]:
        """All that it tells of, itself first."""
        beside = () if self.beside is None else (self.beside,)
        return tuple(memory.id for memory in (self.candidate.memory, *self.alike, *beside, *self.worse))


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
    quality, quality_text = quality_of(candidate.memory, policy, asked.now, candidate.lately)
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


def _faded(memory: StoredMemory, lately: Lately) -> tuple[float, float]:
    """The same as it counts now, passes and all. What stands in records of earlier versions counts whole."""
    own = _own_history(memory)
    used = (lately.passes, lately.n) if lately.uses else (memory.with_tally.passes, memory.with_tally.n)
    return round(used[0] + lately.written * own.passes, 1), round(used[1] + lately.written * own.n, 1)


def _own_history(memory: StoredMemory) -> Tally:
    """Of the runs that it was learnt from."""
    learnt = memory.record.get("learnt")
    if isinstance(learnt, dict):
        side = learnt.get("without" if learnt.get("advice") == "avoid" else "with")
        if isinstance(side, dict) and isinstance(side.get("n"), int) and isinstance(side.get("passes"), int):
            return Tally(cast("int", side["passes"]), cast("int", side["n"]))
    return Tally() if (passed := passed_of(memory)) is None else Tally(int(passed), 1)


def outcome_told(memory: StoredMemory) -> bool | None:
    """Whether the run passed that an episode tells of; None of what is no episode, or was not judged."""
    return passed_of(memory) if memory.kind == "reasoning" else None


def tells_of_failure(memory: StoredMemory) -> bool:
    """Whether it is the episode of a run that failed."""
    return outcome_told(memory) is False


_instant = lru_cache(maxsize=1024)(parse_instant)


def quality_of(
    memory: StoredMemory,
    policy: LearnPolicy,
    now: str,
    lately: Lately = Lately(),  # noqa: B008
) -> tuple[float, str]:
    """How well it has served, 0 to 1: the careful end of its pass rate, newer runs counting more, and a little for
    being recent or pinned.
    """
    tally = history_of(memory)
    careful = _quantile(*_faded(memory, lately), _prior(policy), _CAREFUL)
    age_days = max(0.0, (_instant(now) - _instant(memory.last_used_at or memory.created_at)).total_seconds()) / _DAY_S
    recent = 0.5 ** (age_days / policy.recency_half_life_days)
    value = (1 - _RECENCY_SHARE) * careful + _RECENCY_SHARE * recent
    words = f"passed {tally.passes} of {tally.n}" if tally.n else "not tried yet"
    if memory.status == "pinned":
        return min(1.0, value + _PINNED_BONUS), f"{words}, pinned"
    return value, words


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


def inject(weighed: Sequence[Weighed], budget: InjectionBudget, count: Callable[[str], int]) -> Injection:
    """Hints within their budgets: whole, cut at sentence ends, or named only. Nothing is cut without being told."""
    hints: list[MemoryHint] = []
    lines: list[str] = []
    used: list[str] = []
    overflow: list[Mapping[str, Any]] = []
    total = 0
    for each in weighed:
        memory = each.candidate.memory
        full = _full_text(each)
        most = budget.tactic_tokens_max if memory.kind == "tactic" else budget.hint_tokens_max
        room = min(most, budget.total_tokens_max - total)
        if memory.kind == "tactic":
            text = _whole((full, sentence_of(full)), room, count)
        elif each.line:
            text = _whole((full, full[: sentence_spans(full)[0][1]]), room, count)
        elif each.way is not None:
            text = _whole((full, _IN_RUNS.sub(".", full)), room, count)
        else:
            text = _fitted(full, room, count)
        if not each.line and not _says_what_was_done(memory, text):
            text = ""  # what was asked, without what was done, helps nobody
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
        if not is_in or text != full:
            overflow.append(
                {
                    "memory_id": memory.id,
                    "action": "left_out" if not is_in else "compacted",
                    "tokens": count(_line(full)),
                    "kept_tokens": count(line) if is_in else 0,
                    "payload_ref": memory.id,
                }
            )
        hints.append(_hint(each, text if is_in else "", full, is_in))
    return Injection(tuple(hints), "\n".join(lines), total, tuple(used), tuple(overflow))


def _says_what_was_done(memory: StoredMemory, text: str) -> bool:
    """Is enough of an episode left that it says what its run did?"""
    episode = episode_of(memory)
    if episode is None:
        return True
    ways = (form_of(each).key[0].partition(": ")[2].partition(" (")[0] for each in (episode.did, episode.way) if each)
    return any(way in text.casefold() for way in ways)


def _full_text(each: Weighed) -> str:
    """A record, or as many as say the same; and how a run like it failed."""
    if each.line:
        return each.line
    memory = each.candidate.memory
    told = (memory, *each.alike)
    rest = rest_told(memory, each.passing)
    many = line_to_try(told) if each.way is not None else line_of_many(told, rest) if each.alike else ""
    said = [many or hint_text(memory, rest)]
    beside = "" if each.beside is None else words_beside(memory, each.beside, each.passing)
    return " ".join([*said, beside] if beside else said)


def _line(text: str) -> str:
    return f"- {text}"


def _whole(texts: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """A lesson whole, without its figures, or not at all: half a condition is another one, half a figure is none. A way
    to try whole, without the runs it was taken in, or not at all: half a way is another one.
    """
    return next((each for each in texts if count(_line(each)) <= room), "")


def _fitted(text: str, room: int, count: Callable[[str], int]) -> str:
    """A text cut to the room there is: whole sentences; of a first sentence that is too long, whole words; else
    nothing.
    """
    if room <= 0:
        return ""
    if count(_line(text)) <= room:
        return text
    ends = [end for _, end in sentence_spans(text)]
    fitting = [end for end in ends if count(_line(text[:end])) <= room]
    if fitting:
        return text[: max(fitting)]
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
    told = _in_turn((memory, *each.alike), each.worse)
    plain: dict[str, Any] = {
        "memory_id": memory.id,
        "source": source,
        "score": each.score,
        "reason": "; ".join(each.reasons if each.way is None else (*each.reasons, each.way.words)),
        "summary": text or None,
        "trace_ids": [trace for one in told for trace in one.sources][:_TRACES_MAX],
        "parts": dict(each.parts),
        "injected": is_in,
    }
    if text != full:
        plain["payload_ref"] = memory.id
    if each.alike:
        plain["alike_ids"] = [one.id for one in each.alike]
    if each.beside is not None:
        plain["beside_id"] = each.beside.id
    if each.worse:
        plain["worse_ids"] = [one.id for one in each.worse]
    if memory.kind == "tactic" and (cited := cited_events(memory)):
        plain["evidence_ids"] = cited
    return MemoryHint.from_wire(plain)


def _in_turn(ours: Sequence[StoredMemory], theirs: Sequence[StoredMemory]) -> list[StoredMemory]:
    """Of both by turns, so that what is cut off is of both."""
    return [one for pair in zip_longest(ours, theirs) for one in pair if one is not None]


_TRACES_MAX = 5
