"""In which circumstances which way is right: one thing that runs find decides, and each of its values has its own way.

`ways` says which way is best on average. Where one way is right when an order is open and another when it is shipped,
the best on average is often wrong. So runs of one kind of work are compared once more, by what they did *after* they
found something out, and each thing that they found is asked whether it says when which of these passes: what is seen is
held against two accounts of it, one in which a step does the same whatever was found, and one in which it may do
something else for each value (the evidence of two Gaussian processes). The thing that tells most is the one to go by,
where it tells enough; else there is none. That a value goes with passing is no sign, since nobody can choose it: both
accounts have that. Pure; it reads outcomes and names, and never what a tool said.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.limits import remembered
from muniment.learning.fold.circumstances import Place
from muniment.learning.fold.doing_words import (
    THEN,
    in_order,
    is_cut,
    is_given,
    name_of,
    notes_of,
    step_texts,
    without_counts,
)
from muniment.learning.lessons.process import draws_of, log_evidence, posterior_of
from muniment.learning.lessons.ways import DIGITS, NOISE, WEIGHT_MIN, Step, WayRate, fading, steps_in

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float64]

__all__ = ["Branch", "BranchRun", "Branches", "find_branches", "rest_with_answers"]

_RUNS_MIN = 8
_COVERED = 0.6
"""Of the runs of a kind of work so many must have found the thing out."""
_VALUE_RUNS_MIN = 3
_VALUES_MAX = 6
_PLACES_MAX = 8
"""Things that are asked, those that most runs found."""
_STEP, _PAIR = 0.06, 0.01
"""How much a step with what it was given, and a step right after another, may do to the pass rate: variances."""
_VALUE = 0.25
"""How much values may differ whatever is done: anything. Nobody can choose what is found."""
_OWN = 0.75
"""Of what a step does, how much may hold for one value alone."""
_GAIN_MIN, _GAIN_OF_MANY = 0.5, 0.75
"""How much more likely what was seen must be if the thing decides, as a logarithm; and how much of the logarithm of
their number is added where several things are asked."""
_SLOWLY = 3
"""What decides stays longer than which way is right: there outcomes fade in so many times as many runs."""
_EPOCH_RUNS = 44
"""So many runs are also looked at by themselves: after a change another way is right, by the same thing."""
_CELLS_MAX = 64


class BranchRun(NamedTuple):
    """A judged run."""

    run_id: str
    did: str
    """As its episode tells it."""
    found: Mapping[Place, str]
    passed: bool


class Branch(NamedTuple):
    """What runs did that found one value: the ways they took from there on."""

    value: str
    rates: Mapping[str, WayRate]
    runs: Mapping[str, tuple[str, ...]]
    """Of each way the runs that took it, newest first."""


class Branches(NamedTuple):
    """The thing to go by, and what to do for each of its values, those that most runs found first."""

    place: Place
    branches: tuple[Branch, ...]
    is_known: bool = False
    """The run that asks has found it out already, or has called what would have told it."""
    is_always_called: bool = False
    """No run passed without calling what tells it."""


class _Cell(NamedTuple):
    """Runs that did the same after they had found the same."""

    way: str
    value: str


_Cells = Mapping[_Cell, tuple[float, float]]
"""Passes and runs, faded."""


def find_branches(
    runs: Sequence[BranchRun], half_life_runs: float, run_id: str | None, exploration: float
) -> Branches | None:
    """The thing by which it is decided which way passes, by judged runs of one kind of work, newest first; None where
    there is none, or too little is known.
    """
    if len(runs) < _RUNS_MIN:
        return None
    gains = {place: round(_gain_of(runs, place, half_life_runs), DIGITS) for place in _places(runs)}
    best = max(gains, key=lambda place: (gains[place], place), default=None)
    if best is None or gains[best] < _GAIN_MIN + _GAIN_OF_MANY * math.log(len(gains)):
        return None
    cells = _cells(runs, best, fading([run.passed for run in runs], half_life_runs))
    if not cells:
        return None
    passing = [{step.name for step in steps_in(run.did)} for run in runs if run.passed]
    is_always_called = all(best.tool in names for names in passing)
    return Branches(best, tuple(_rated(runs, best, cells, run_id, exploration)), is_always_called=is_always_called)


def _places(runs: Sequence[BranchRun]) -> list[Place]:
    """What most runs found, with a few values that come again."""
    values: defaultdict[Place, Counter[str]] = defaultdict(Counter)
    for run in runs:
        for place, value in run.found.items():
            values[place][value] += 1
    asked = []
    for place, counts in values.items():
        again = [count for count in counts.values() if count >= _VALUE_RUNS_MIN]
        if 2 <= len(again) <= _VALUES_MAX and sum(again) >= max(_RUNS_MIN, _COVERED * len(runs)):
            asked.append((sum(again), place))
    return [place for _, place in sorted(asked, key=lambda each: (-each[0], each[1]))[:_PLACES_MAX]]


def _cells(runs: Sequence[BranchRun], place: Place, fades: float = math.inf) -> _Cells:
    """Passes and runs of each cell; none where all did the same. A run fades with those that found the same
    after it: what is rare must not be forgotten before it comes again.
    """
    cells: defaultdict[_Cell, list[float]] = defaultdict(lambda: [0.0, 0.0])
    ages: Counter[str] = Counter()
    for run in runs:
        value = run.found.get(place)
        way = "" if value is None else _rest_of(run.did, place.tool)
        if value is None or not way:
            continue
        weight = 0.5 ** (ages[value] / fades)
        ages[value] += 1
        cell = cells[_Cell(way, value)]
        cell[0] += weight * run.passed
        cell[1] += weight
    known = sorted(cells.items(), key=lambda each: (-each[1][1], each[0]))[:_CELLS_MAX]
    kept = {cell: (passes, n) for cell, (passes, n) in known if n > WEIGHT_MIN}
    return kept if len({cell.way for cell in kept}) > 1 else {}


# -- does it decide? ----------------------------------------------------------------------------------


def _gain_of(runs: Sequence[BranchRun], place: Place, half_life_runs: float) -> float:
    """By all runs, older ones counting less; or by each stretch of them as a world of its own, whichever tells more."""
    stretches = [runs[at : at + _EPOCH_RUNS] for at in range(0, len(runs), _EPOCH_RUNS)]
    epochs = [_gain(_cells(stretch, place)) for stretch in stretches if len(stretch) >= _RUNS_MIN]
    return max(_gain(_cells(runs, place, _SLOWLY * half_life_runs)), sum(epochs))


def _gain(cells: _Cells) -> float:
    """How much more likely what was seen is if steps do something else for each value."""
    import numpy as np

    if not cells:
        return 0.0
    usual = _usual(cells)
    rates = np.array([passes / n - usual for passes, n in cells.values()])
    noise = np.diag([NOISE / n for _, n in cells.values()])
    shared = _shared(list(cells))
    apart, as_one = (log_evidence(_covariance(*shared, own) + noise, rates) for own in (_OWN, 0.0))
    return apart - as_one


def _usual(cells: _Cells) -> float:
    return (sum(passes for passes, _ in cells.values()) + 1) / (sum(n for _, n in cells.values()) + 2)


def _shared(cells: Sequence[_Cell], others: Sequence[_Cell] | None = None) -> tuple[Matrix, Matrix]:
    """What cells share with each other, or with others: steps, and whether the same was found."""
    import numpy as np

    others = cells if others is None else others
    alike = np.array([[_alike(one.way, other.way) for other in others] for one in cells])
    return alike, np.array([[float(one.value == other.value) for other in others] for one in cells])


def _covariance(alike: Matrix, same: Matrix, own: float) -> Matrix:
    """Of what cells do to the pass rate: the steps in common, more of it where the same was found."""
    return alike * (1 - own + own * same) + _VALUE * same


@remembered(8192)
def _alike(one: str, other: str) -> float:
    mine, theirs = _traits(one), _traits(other)
    return _STEP * len(mine[0] & theirs[0]) + _PAIR * len(mine[1] & theirs[1])


@remembered(2048)
def _traits(way: str) -> tuple[frozenset[Step], frozenset[tuple[str, str]]]:
    """The steps with what they were given, and the pairs of tools right after one another."""
    steps = steps_in(way)
    names = [step.name for step in steps]
    return frozenset(steps), frozenset(zip(("", *names), (*names, ""), strict=True))


# -- what to do for each value ------------------------------------------------------------------------


def _rated(
    runs: Sequence[BranchRun],
    place: Place,
    cells: _Cells,
    run_id: str | None,
    exploration: float,
) -> list[Branch]:
    import numpy as np

    took: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if (value := run.found.get(place)) is not None and (way := _rest_of(run.did, place.tool)):
            took[value][way].append(run.run_id)
    known, usual = list(cells), _usual(cells)
    rates = np.array([passes / n - usual for passes, n in cells.values()])
    seen = _covariance(*_shared(known), _OWN) + np.diag([NOISE / n for _, n in cells.values()])
    branches = []
    for value in sorted(took, key=lambda value: (-sum(map(len, took[value].values())), value)):
        ways = sorted({cell.way for cell in known if cell.value == value})
        if sum(map(len, took[value].values())) < _VALUE_RUNS_MIN or not ways:
            continue
        here = [_Cell(way, value) for way in ways]
        across, among = (_covariance(*_shared(here, others), _OWN) for others in (known, here))
        offsets, doubt = posterior_of(seen, rates, across, among)
        expected = usual + offsets
        drawn = expected
        if run_id is not None:
            drawn = expected + exploration * (doubt @ draws_of([f"{value}\n{way}" for way in ways], run_id))
        here_usual = _usual({cell: counts for cell, counts in cells.items() if cell.value == value})
        rated = {
            way: WayRate(*(round(float(each), DIGITS) for each in (mean, told, here_usual)))
            for way, mean, told in zip(ways, expected, drawn, strict=True)
        }
        branches.append(Branch(value, rated, {way: tuple(ids) for way, ids in took[value].items()}))
    return branches[:_VALUES_MAX]


@remembered(4096)
def _rest_of(did: str, tool: str) -> str:
    """What was done after a tool had first answered, as `Did: …` without counts; all of it where no tool is named. The
    files that it was done to are left out: they are the task's. Empty where nothing follows, or so much that not all of
    it is told: half a way is another one.
    """
    told = in_order(_told_after(did, tool, answers=False))
    return f"Did: {without_counts(told)}" if told and not is_cut(told) else ""


def rest_with_answers(did: str, tool: str) -> str:
    """The same steps one after the other, with what they answered where that is told."""
    return THEN.join(_told_after(did, tool, answers=True))


def _told_after(did: str, tool: str, *, answers: bool) -> list[str]:
    steps = [step for step in step_texts(did) if name_of(step)]
    if tool:
        first = next((at for at, step in enumerate(steps) if name_of(step) == tool), len(steps))
        steps = steps[first + 1 :]
    return [
        _told(name_of(step), [note for note in notes_of(step) if (not _is_place(note) if is_given(note) else answers)])
        for step in steps
    ]


def _told(name: str, notes: Sequence[str]) -> str:
    return f"{name} ({'; '.join(notes)})" if notes else name


def _is_place(note: str) -> bool:
    """Is it a file, or what was written into one?"""
    value = note.partition("=")[2]
    return note.startswith("wrote ") or "/" in value or ("." in value and not value.replace(".", "").isdigit())
