"""The arms of the generated worlds: what tells the agent something, or nothing, on the same tasks with the same draws.

    none         told nothing
    last five    the last five runs of the family that passed by the verifier's word, in the prompt
    overlap      the five runs that come first by "passed first, then overlap of tools, then newest", of all families
    table        a discounted Thompson table over families and options, obeyed to the letter
    keyed table  the same, with what the agent sees as a further key: it knows which conditions there are
    ours         the library's runner as it comes, with an agent and a verifier and nothing else

The agent is frozen: it learns nothing itself, and all arms have the one of `benchmarks.learning.families`. The verifier
says the truth but for a share of `FALSE` of the runs, the same ones in every arm. What is counted is the truth.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol

import muniment
from benchmarks.learning.code import make_code
from benchmarks.learning.families import (
    OPEN_MIND,
    Call,
    Family,
    Given,
    Played,
    Shares,
    expected_told,
    make_held_out,
    make_plain,
    pick,
    segment_of,
    shares_told,
)
from muniment.handles.runner import AgentTask

__all__ = [
    "ARMS",
    "FALSE",
    "HARM",
    "Lesson",
    "Line",
    "Ours",
    "Row",
    "effect_of",
    "families_of",
    "held_out_of",
    "play_arm",
    "stream_of",
]

FALSE = 0.1
"""The share of verdicts that say the opposite."""
HARM = 0.02
"""An effect of so much or more is useful, of so much less than nothing harmful; between them it is idle."""
KEPT = 5
DISCOUNT = 0.97
USER = "worlds"
_NEGATED = re.compile(r"\b(?:not|fail\w*|avoid|never)\b", re.IGNORECASE)
"""A heading that says so is part of what stands under it; other headings say nothing of their own."""


class Line(NamedTuple):
    """A line that the agent was told in one run."""

    is_lesson: bool
    """Advice; else a run that can be read."""
    effect: float
    """On the pass rate of the family as it is now, told alone."""
    against: bool
    """Does it make this task's solution less likely?"""


class Row(NamedTuple):
    """One run."""

    family: str
    number: int
    segment: int
    passed: bool
    cost: int
    expected: float
    """How often this agent passes this task with what it was told."""
    lines: tuple[Line, ...] = ()


class Lesson(NamedTuple):
    """A lesson as it stands at the end of a segment, and what it does by the truth."""

    family: str
    stage: str
    origin: str
    text: str
    effect: float


class Turn(NamedTuple):
    family: Family
    number: int
    segment: int
    given: Given


class Arm(Protocol):
    def run(self, turn: Turn) -> tuple[Played, float, tuple[Line, ...]]: ...


def held_out_of(seed: str) -> list[Family]:
    return list(make_held_out(seed))


def families_of(seed: str, kinds: Sequence[str] | None = None) -> list[Family]:
    found: list[Family] = [*make_plain(seed), make_code(seed)]
    return [each for each in found if kinds is None or each.kind in kinds]


def stream_of(seed: str, families: Sequence[Family], runs: int) -> list[Turn]:
    """So many tasks of each family, the families taking turns in a drawn order."""
    random = Random(f"{seed} stream")
    return [
        Turn(family, number, segment_of(number, runs), family.task(f"{seed} {family.kind} {number}"))
        for number in range(runs)
        for family in random.sample(list(families), len(families))
    ]


def play_shares(turn: Turn, shares: Shares) -> Played:
    """The agent on a task: its draws are the task's, whatever it was told."""
    random, drawn = Random(f"{turn.given.draws} world"), Random(f"{turn.given.draws} agent")

    def choose(slot: Any, left: Sequence[str]) -> str:
        held = dict(zip(slot.options, shares[slot.name], strict=True))
        return pick(list(left), [held[option] for option in left], drawn.random())

    return turn.family.play(turn.given, turn.segment, choose, random)


def verdict_of(turn: Turn, passed: bool) -> bool:
    """What the verifier says."""
    return passed != (Random(f"{turn.given.draws} verdict").random() < FALSE)


def play_arm(arm: Arm, stream: Sequence[Turn]) -> list[Row]:
    rows = []
    for turn in stream:
        played, expected, lines = arm.run(turn)
        rows.append(Row(turn.family.kind, turn.number, turn.segment, played.passed, len(played.calls), expected, lines))
    return rows


def effect_of(family: Family, segment: int, text: str) -> float:
    """What a text does to the pass rate of a family, by the truth: the agent told it alone, against told nothing."""
    return sum(
        share * (expected_told(family, given, segment, (text,)) - expected_told(family, given, segment, ()))
        for share, given in family.situations()
    )


class Judge:
    """Weighs lines by the truth; the same line comes often."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, str], float] = {}

    def line(self, turn: Turn, text: str, is_lesson: bool) -> Line:
        key = (turn.family.name, min(turn.segment % 2, 1), text)
        if key not in self._known:
            self._known[key] = effect_of(turn.family, turn.segment, text)
        family, given, segment = turn.family, turn.given, turn.segment
        shift = expected_told(family, given, segment, (text,)) - expected_told(family, given, segment, ())
        return Line(is_lesson, self._known[key], shift < -HARM / 2)


# -- arms that need no library ------------------------------------------------------------------------


class Nothing:
    def run(self, turn: Turn) -> tuple[Played, float, tuple[Line, ...]]:
        shares = shares_told(turn.family, turn.given, ())
        return play_shares(turn, shares), turn.family.expected(turn.given, turn.segment, shares), ()


class LastFive:
    """The last passes as they were, in the prompt."""

    def __init__(self) -> None:
        self._kept: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=KEPT))
        self._judge = Judge()

    def run(self, turn: Turn) -> tuple[Played, float, tuple[Line, ...]]:
        told = tuple(self._kept[turn.family.name])
        shares = shares_told(turn.family, turn.given, told)
        played = play_shares(turn, shares)
        lines = tuple(self._judge.line(turn, text, is_lesson=False) for text in told)
        if verdict_of(turn, played.passed):
            self._kept[turn.family.name].append(transcript(turn.given, played.calls))
        return played, turn.family.expected(turn.given, turn.segment, shares), lines


class Overlap:
    """The three-line rule: passed first, then overlap of tools with those of the family, then newest."""

    def __init__(self) -> None:
        self._kept: list[tuple[bool, frozenset[str], str]] = []

    def run(self, turn: Turn) -> tuple[Played, float, tuple[Line, ...]]:
        ours = _tools_known(turn.family)
        newest_first = self._kept[::-1]
        ranked = sorted(newest_first, key=lambda each: (not each[0], -len(ours & each[1]) / len(ours | each[1])))
        told = tuple(text for _, _, text in ranked[:KEPT])
        shares = shares_told(turn.family, turn.given, told)
        played = play_shares(turn, shares)
        passed = verdict_of(turn, played.passed)
        text = transcript(turn.given, played.calls)
        told_text = text if passed else text.replace("Passed.", "Failed.")
        self._kept.append((passed, frozenset(call.tool for call in played.calls), told_text))
        return played, turn.family.expected(turn.given, turn.segment, shares), ()


def _tools_known(family: Family) -> frozenset[str]:
    """The tools that a caller of this family would name: all that its choices may call."""
    named = {part for slot in family.slots for option in slot.options for part in option.split(">")}
    return frozenset(
        each for each in (*named, *(each for slot in family.slots for each in (slot.opens, slot.closes))) if each
    )


def transcript(given: Given, calls: Sequence[Call]) -> str:
    """A run that passed, in one paragraph."""
    steps = [f"{call.tool} {json.dumps(dict(call.args))}: {_brief(call.content)}" for call in calls]
    return f"Asked: {given.text} Passed. Did: {', then '.join(steps)}"


def _brief(text: str) -> str:
    last = " ".join(text.splitlines()[-2:])
    return last.replace(".", "")[-90:]


class Table:
    """Thompson sampling over options, older runs counting less."""

    def __init__(self, seed: str, has_seen: bool) -> None:
        self._random = Random(f"{seed} table")
        self._has_seen = has_seen
        self._tallies: dict[tuple[str, ...], tuple[float, float]] = defaultdict(lambda: (1.0, 1.0))

    def run(self, turn: Turn) -> tuple[Played, float, tuple[Line, ...]]:
        shares = {}
        for slot in turn.family.slots:
            drawn = {option: self._random.betavariate(*self._tallies[self._key(turn, slot.name, option)])
                     for option in slot.options}  # fmt: skip
            best = max(drawn, key=lambda option: drawn[option])
            plain = turn.family.leaning(slot, turn.given)
            shares[slot.name] = [
                OPEN_MIND * odd / sum(plain) + (1 - OPEN_MIND) * (option == best)
                for option, odd in zip(slot.options, plain, strict=True)
            ]
        played = play_shares(turn, shares)
        self._learn(turn, played)
        return played, turn.family.expected(turn.given, turn.segment, shares), ()

    def _key(self, turn: Turn, slot: str, option: str) -> tuple[str, ...]:
        seen = tuple(turn.given.seen.values()) if self._has_seen else ()
        return (turn.family.name, slot, *seen, option)

    def _learn(self, turn: Turn, played: Played) -> None:
        passed = verdict_of(turn, played.passed)
        for slot in turn.family.slots:
            for option in slot.options:
                key = self._key(turn, slot.name, option)
                good, bad = (1 + (each - 1) * DISCOUNT for each in self._tallies[key])
                if option == played.chosen[slot.name]:
                    good, bad = good + passed, bad + (not passed)
                self._tallies[key] = (good, bad)


# -- ours ---------------------------------------------------------------------------------------------


class Ours:
    """The library's runner. What the agent is told is what stands before the task in its prompt, line by line."""

    def __init__(
        self,
        mem: muniment.Memory,
        policy: Mapping[str, Any] | None = None,
        verdict: Callable[[Turn, Played], bool] | None = None,
        calls: Callable[[Turn, Played], Sequence[Call]] | None = None,
    ) -> None:
        """`verdict` and `calls` are what an attacker makes of what the verifier says and of what the tools answer."""
        self._mem = mem
        self._runner = mem.runner(self._act, self._verify, policy, user_id=USER)
        self._verdict = verdict or (lambda turn, played: verdict_of(turn, played.passed))
        self._calls = calls or (lambda _turn, played: played.calls)
        self._judge = Judge()
        self._turn: Turn
        self._played: Played
        self._expected = 0.0
        self.told: tuple[str, ...] = ()
        self._lines: tuple[Line, ...] = ()
        self.cpu_s = 0.0

    def run(self, turn: Turn) -> tuple[Played, float, tuple[Line, ...]]:
        self._turn = turn
        begun = time.process_time()
        intent = {"domain_tag": turn.family.domain, "task_family": turn.family.name}
        self._runner.run(turn.given.text, intent=intent, features=dict(turn.given.features) or None)
        self.cpu_s += time.process_time() - begun
        return self._played, self._expected, self._lines

    def _act(self, task: AgentTask) -> dict[str, Any]:
        turn = self._turn
        advice = {" ".join((hint.summary or "").split()) for hint in task.hints if hint.source != "ReasoningBank"}
        self.told = told_in(task)
        self._lines = tuple(
            self._judge.line(turn, text, is_lesson=text in advice or text in task.rules) for text in self.told
        )
        shares = shares_told(turn.family, turn.given, self.told)
        self._expected = turn.family.expected(turn.given, turn.segment, shares)
        self._played = played = play_shares(turn, shares)
        for call in self._calls(turn, played):
            task.run.observe_tool(call.tool, content=call.content, args=dict(call.args), ok=call.ok)
        return {"text": "It is done."}

    def _verify(self, _output: Any, _task: str) -> bool:
        return self._verdict(self._turn, self._played)

    def lessons(self, families: Sequence[Family], segment: int) -> list[Lesson]:
        """What was learnt, as it stands, by the truth of now."""
        found = []
        for memory in self._mem.bank(user_id=USER).records(include_all=True):
            if memory.kind not in ("tactic", "rule"):
                continue
            held = json.dumps(memory.record)
            text = lesson_text(memory.record)
            own = [each for each in families if each.name in held] or list(families)
            effects = [effect_of(each, segment, text) for each in own]
            effect = max(effects, key=abs)
            said = memory.record.get("lesson")
            origin = str(said.get("origin", "contrast")) if isinstance(said, dict) else "contrast"
            found.append(Lesson(own[effects.index(effect)].kind, stage_of(memory), origin, text, effect))
        return found


def told_in(task: AgentTask) -> tuple[str, ...]:
    """The lines before the task in the prompt, without what introduces them."""
    told, title = [], ""
    for line in task.prompt.removesuffix(task.task).splitlines():
        text = " ".join(line.removeprefix("- ").split())
        if text.endswith(":"):
            title = text if _NEGATED.search(text) else ""
        elif text:
            told.append(f"{title} {text}".strip())
    return tuple(told)


def lesson_text(record: Mapping[str, Any]) -> str:
    injection = record.get("injection")
    said = injection.get("content") if isinstance(injection, Mapping) else None
    return " ".join(str(said or record.get("summary") or record.get("body") or "").split())


def stage_of(memory: Any) -> str:
    """Of a record of a version that knew no stages: in force, or not."""
    if memory.status in ("retired", "pruned"):
        return "retired"
    if memory.kind == "rule":
        return str(memory.stage or memory.record.get("status") or "candidate")
    return "active" if memory.lesson is None else str(memory.lesson.stage)


ARMS: Mapping[str, Callable[[str], Arm]] = {
    "none": lambda _seed: Nothing(),
    "last five": lambda _seed: LastFive(),
    "overlap": lambda _seed: Overlap(),
    "table": lambda seed: Table(seed, has_seen=False),
    "keyed table": lambda seed: Table(seed, has_seen=True),
}
"""Those that need no library."""
