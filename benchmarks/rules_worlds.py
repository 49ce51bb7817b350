"""Worlds in which what a rule does is known: agents that obey their prompt and know nothing else, tasks with a judge.

`Puzzles`: the families of `benchmarks.puzzles`. The solver draws one of its domain's strategies and tries by it until
the puzzle is solved or its budget is spent. It has no idea which strategy suits which family.

`Airline`: real tasks in queues, four recorded runs each (`taubench_*`). The model that made them cannot be run here:
the agent is a stand-in; asked a task, it answers with one of the four runs of it that were recorded, with the tools it
called, and passes if that run passed. What such an agent can do is what the model did; a rule moves which it does.

Either way a rule shifts odds: what `Call x` names is `OBEYS` times as likely, what `Do not call x` names as much less
likely; of the recorded runs, those that called x, or did not. In a share of `OPEN_MIND` of its runs the agent does as
it likes. `answer "…"` is an order, which it carries out. So the effect of a rule can be worked out (`effect`), from how
often each way passes; that is what a draft's quality is told by, and nothing of it reaches the library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol

from benchmarks.learning_loop import BUDGET, pick
from benchmarks.puzzles import FAMILIES, STRATEGIES, Grid, Puzzle, make_puzzle, read_puzzle

__all__ = ["HARMFUL", "USEFUL", "USELESS", "Advice", "Airline", "Answer", "Place", "Puzzles", "World"]

OBEYS = 20.0
OPEN_MIND = 0.05
USEFUL, USELESS, HARMFUL = 0.1, 0.01, -0.05
"""What an effect is called: of so much or more, within so much, of so much or less. Between them nothing is drafted."""
SAMPLE = 250
"""Puzzles by which it is known how often a strategy solves a family."""
_DO = re.compile(r"\bCall (\w+)")
_AVOID = re.compile(r"\bDo not call (\w+)")
_ORDER = re.compile(r'answer "([^"]+)"')


class Trial(NamedTuple):
    """A run as it was recorded."""

    task: int
    passed: bool
    family: frozenset[str]
    asked: str
    """The user's words."""
    tools: tuple[str, ...]
    events: tuple[dict[str, Any], ...]


def load(data: Path) -> list[Trial]:
    rows = json.loads((data / "taubench_gpt4o_airline_tasks0-24.json").read_text("utf-8"))
    return [_trial(row) for row in sorted(rows, key=lambda row: (row["trial"], row["task_id"]))]


def _trial(row: Mapping[str, Any]) -> Trial:
    events = tuple(_events(row["traj"]))
    return Trial(
        task=row["task_id"],
        passed=row["reward"] == 1,
        family=frozenset(action["name"] for action in row["info"]["task"]["actions"]),
        asked="\n".join(event["content"] for event in events if event["role"] == "user"),
        tools=tuple(dict.fromkeys(event["tool"]["name"] for event in events if event["role"] == "tool")),
        events=events,
    )


def _events(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turns and answers of tools; the system's prompt is the same everywhere and left out."""
    called: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    for turn in turns:
        called |= {call["id"]: json.loads(call["function"]["arguments"]) for call in turn.get("tool_calls") or ()}
        content = turn["content"] or ""
        if turn["role"] == "tool":
            tool = {"name": turn["name"], "args": called[turn["tool_call_id"]], "ok": not content.startswith("Error")}
            events.append({"role": "tool", "content": content, "tool": tool})
        elif turn["role"] in ("user", "assistant") and content:
            events.append({"role": turn["role"], "content": content})
    return events


class Place(NamedTuple):
    """Where a rule applies."""

    domain: str
    family: str

    @property
    def intent(self) -> dict[str, str]:
        return {"domain_tag": self.domain, "task_family": self.family}


class Advice(NamedTuple):
    """What a rule advises."""

    tool: str
    does: bool

    @property
    def text(self) -> str:
        return f"{'Call' if self.does else 'Do not call'} {self.tool}"


class Answer(NamedTuple):
    text: str
    tools: tuple[tuple[str, bool], ...]
    passed: bool


class World(Protocol):
    """Tasks of several places, and an agent."""

    @property
    def name(self) -> str: ...
    @property
    def places(self) -> tuple[Place, ...]: ...
    def tools(self, place: Place) -> tuple[str, ...]: ...
    def task(self, place: Place, random: Random) -> str: ...
    def answer(self, task: str, told: str, random: Random) -> Answer: ...
    def passed(self, task: str, text: str, tools: Sequence[str]) -> bool: ...
    def effect(self, place: Place, advice: Advice) -> float: ...
    def can_follow(self, place: Place, advice: Advice) -> bool: ...


def chosen(told: str, has: Sequence[frozenset[str]]) -> list[float]:
    """The odds of ways to go about it, each with the tools it calls, after what was told."""
    do, avoid = set(_DO.findall(told)), set(_AVOID.findall(told))
    known = frozenset().union(*has)
    return [
        prod(OBEYS for name in do & known if name in each) / prod(OBEYS for name in avoid & known if name in each)
        for each in has
    ]


def order_in(told: str, random: Random) -> str | None:
    """What it is ordered to answer, if it is and does not do as it likes."""
    found = _ORDER.search(told)
    return found[1] if found and random.random() >= OPEN_MIND else None


def _expected(told: str, has: Sequence[frozenset[str]], rates: Sequence[float]) -> float:
    """How often an agent passes that draws one of these ways, each of which passes so often."""
    odds = chosen(told, has)
    drawn = sum(odd * rate for odd, rate in zip(odds, rates, strict=True)) / sum(odds)
    return (1 - OPEN_MIND) * drawn + OPEN_MIND * sum(rates) / len(rates)


def _draw(told: str, has: Sequence[frozenset[str]], random: Random) -> int:
    odds = [1.0] * len(has) if random.random() < OPEN_MIND else chosen(told, has)
    return int(pick([str(place) for place in range(len(has))], odds, random.random()))


# -- puzzles ------------------------------------------------------------------------------------------


class Puzzles:
    """The nine families."""

    name = "puzzles"
    places = tuple(Place(family.partition("/")[0], family) for family in FAMILIES)

    def tools(self, place: Place) -> tuple[str, ...]:
        return STRATEGIES[place.domain]

    def task(self, place: Place, random: Random) -> str:
        return _puzzle(place.family, random).text

    def answer(self, task: str, told: str, random: Random) -> Answer:
        ordered = order_in(told, random)
        if ordered is not None:
            return Answer(ordered, (), False)
        puzzle = read_puzzle(task)
        names = STRATEGIES[puzzle.domain]
        strategy = names[_draw(told, [frozenset((name,)) for name in names], random)]
        text, solved = _attempt(puzzle, strategy, random)
        return Answer(text, ((strategy, solved),), solved)

    def passed(self, task: str, text: str, tools: Sequence[str]) -> bool:  # noqa: ARG002
        return read_puzzle(task).solves(text)

    def effect(self, place: Place, advice: Advice) -> float:
        names = self.tools(place)
        has, rates = [frozenset((name,)) for name in names], [_rate(place.family, name) for name in names]
        return _expected(advice.text, has, rates) - _expected("", has, rates)

    def can_follow(self, place: Place, advice: Advice) -> bool:  # noqa: ARG002
        return True


def _puzzle(family: str, random: Random) -> Puzzle:
    """A puzzle of a family; not one that is walled in."""
    while True:
        puzzle = make_puzzle(family, random)
        start = puzzle.find("s") if isinstance(puzzle, Grid) else None
        if not isinstance(puzzle, Grid) or start is None or _has_way(puzzle, start):
            return puzzle


def _has_way(grid: Grid, cell: tuple[int, int]) -> bool:
    row, column = cell
    return any(
        grid.is_open(each) for each in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
    )


def _attempt(puzzle: Puzzle, strategy: str, random: Random) -> tuple[str, bool]:
    text = ""
    for _ in range(BUDGET[puzzle.domain]):
        text = puzzle.attempt(strategy, random)
        if puzzle.solves(text):
            return text, True
    return text, False


@cache
def _rate(family: str, strategy: str) -> float:
    """How often a strategy solves a puzzle of a family."""
    random = Random(f"rate {family} {strategy}")
    return sum(_attempt(_puzzle(family, random), strategy, random)[1] for _ in range(SAMPLE)) / SAMPLE


# -- recorded runs ------------------------------------------------------------------------------------


class Airline:
    """Real tasks in queues of five, and the runs of them that were recorded.

    A desk has three of the queues, those with useful advice that the recorded runs can follow; the tasks are dealt anew
    until there are three, with three pieces of harmful advice in them that the runs can follow as well.
    """

    name = "airline"

    def __init__(self, data: Path, deal: str) -> None:
        rows = json.loads((data / "taubench_gpt4o_airline_tasks0-24.json").read_text("utf-8"))
        asked = {row["task_id"]: str(row["info"]["task"]["instruction"]) for row in rows}
        self._runs: dict[str, list[Trial]] = {}
        for trial in load(data):
            self._runs.setdefault(asked[trial.task], []).append(trial)
        queues = tuple(Place("airline", f"airline/{name}") for name in ("north", "east", "south", "west", "home"))
        random = Random(deal)
        self.places: tuple[Place, ...] = ()
        while not self.places:
            dealt = random.sample(sorted(self._runs), len(self._runs))
            self._tasks = {place: dealt[at :: len(queues)] for at, place in enumerate(queues)}
            effects = {place: self._effects(place) for place in queues}
            telling = [place for place in queues if max(effects[place], default=0.0) >= USEFUL][:3]
            harmful = [effect for place in telling for effect in effects[place] if effect <= HARMFUL]
            self.places = tuple(telling) if len(telling) == 3 <= len(harmful) else ()

    def _effects(self, place: Place) -> list[float]:
        known = [Advice(tool, does) for tool in self.tools(place) for does in (True, False)]
        return [self.effect(place, advice) for advice in known if self.can_follow(place, advice)]

    def tools(self, place: Place) -> tuple[str, ...]:
        runs = [run for task in self._tasks[place] for run in self._runs[task]]
        return tuple(sorted({tool for run in runs for tool in run.tools}))

    def task(self, place: Place, random: Random) -> str:
        return random.choice(self._tasks[place])

    def answer(self, task: str, told: str, random: Random) -> Answer:
        ordered = order_in(told, random)
        if ordered is not None:
            return Answer(ordered, (), False)
        runs = self._runs[task]
        run = runs[_draw(told, [frozenset(each.tools) for each in runs], random)]
        return Answer(_last_words(run), tuple((tool, True) for tool in run.tools), run.passed)

    def passed(self, task: str, text: str, tools: Sequence[str]) -> bool:
        """Whether the run passed that said and did this."""
        return any(run.passed and (_last_words(run), run.tools) == (text, tuple(tools)) for run in self._runs[task])

    def effect(self, place: Place, advice: Advice) -> float:
        found = []
        for task in self._tasks[place]:
            has = [frozenset(run.tools) for run in self._runs[task]]
            rates = [float(run.passed) for run in self._runs[task]]
            found.append(_expected(advice.text, has, rates) - _expected("", has, rates))
        return sum(found) / len(found)

    def can_follow(self, place: Place, advice: Advice) -> bool:
        """Tests are made of tasks that a run failed which did otherwise: two or more, each with a run that did so."""
        needed = []
        for task in self._tasks[place]:
            follows = [(advice.tool in run.tools) == advice.does for run in self._runs[task]]
            if any(not did and not run.passed for did, run in zip(follows, self._runs[task], strict=True)):
                needed.append(any(follows))
        return len(needed) >= 2 and all(needed)


def _last_words(trial: Trial) -> str:
    said: list[Any] = [event["content"] for event in trial.events if event["role"] == "assistant"]
    return str(said[-1]) if said else "(it said nothing)"
