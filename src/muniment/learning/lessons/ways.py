"""Which way of doing a task to try next: how often each passes now, with its doubt, and a draw from it. Pure.

Runs of one kind of work do it in a few ways. What passes is learnt of all of them together: two ways that share a step
share what it does to the pass rate, and a step is told from the step beside it because other ways have the one without
the other (a Gaussian process whose kernel counts steps and pairs of steps in common). What the task itself does to the
pass rate is taken out: tasks of one form share a part of their own, so that a way that is taken on hard tasks is not
blamed for them. Outcomes fade from run to run. Of ways about which little is known the draw tries some; what was drawn
is the same for a run for ever. Nothing here reads what a tool answered: only what was done and what it was given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.learning.fold.doing_words import is_cut, is_given, name_of, notes_of, step_texts, stretches
from muniment.learning.lessons.process import Posterior, draws_of, posterior_of

__all__ = [
    "DIGITS",
    "NOISE",
    "WEIGHT_MIN",
    "Step",
    "WayRate",
    "WayRun",
    "answers_in",
    "fading",
    "has_fallen",
    "rate_ways",
    "speaks_against",
    "steps_in",
]

_STEP, _PAIR = 0.03, 0.01
"""How much a step, and a step right after another, may do to the pass rate: variances."""
_SAME_TASK = 0.5
"""Of what a step does, how much more may hold for tasks of one form alone."""
_TASK = 0.03
"""How much tasks of one form may differ from others, whatever is done."""
NOISE = 0.22
"""The variance of one outcome."""
_CELLS_MAX = 40
"""Ways and forms of tasks together that are looked at, those with most runs lately."""
_RUNS_MIN = 6
_REPEATED = 1.5
"""Runs, and runs for each way, below which ways are not compared: where every run does something else, likeness says
more."""
_NEWEST, _BEFORE, _FELL, _SOONER = 8, 24, 0.25, 0.4
"""Where the newest so many runs pass so much less often than those before them, whatever they did, the world may have
changed: outcomes then fade in so much of the time."""
WEIGHT_MIN = 1e-9
"""What has faded below this says nothing, and cannot be divided by."""
DIGITS = 6


class Step(NamedTuple):
    """A call as an episode tells it."""

    name: str
    given: tuple[str, ...]
    """What it was given, and what it wrote; not what it answered."""


class WayRun(NamedTuple):
    """A judged run."""

    did: str
    """As its episode tells it."""
    form: tuple[str, ...]
    """The form of what was asked."""
    passed: bool


class WayRate(NamedTuple):
    """How often a way passes on a task of this form, lately."""

    expected: float
    drawn: float
    """What a draw from the doubt about it says; for a look, what is expected."""
    usual: float
    """Of all runs of this kind of work, lately."""

    @property
    def words(self) -> str:
        return f"its way was drawn: {self.drawn:.2f}, {self.expected:.2f} expected, {self.usual:.2f} usual"


def rate_ways(
    runs: Sequence[WayRun], form: tuple[str, ...], half_life_runs: float, run_id: str | None, exploration: float
) -> dict[str, WayRate]:
    """Of each way that judged runs of one kind of work took, newest first, how often it passes on a task of this form.

    Empty where ways cannot be compared. `exploration` is the share of the doubt that is drawn from.
    """
    cells: defaultdict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(lambda: [0.0, 0.0])
    fades = fading([run.passed for run in runs], half_life_runs)
    for age, run in enumerate(runs):
        weight = 0.5 ** (age / fades)
        cell = cells[run.did, run.form]
        cell[0] += weight * run.passed
        cell[1] += weight
    distinct = {steps_in(did) for did, _ in cells}
    if len(runs) < max(_RUNS_MIN, _REPEATED * len(distinct)) or len(distinct) < 2:
        return {}
    known = sorted(cells.items(), key=lambda each: (-each[1][1], each[0]))[:_CELLS_MAX]
    known = [each for each in known if each[1][1] > WEIGHT_MIN]
    ways = sorted({did for (did, _), _ in known})
    usual = (sum(passes for _, (passes, _) in known) + 1) / (sum(n for _, (_, n) in known) + 2)
    offsets, doubt = _posterior(known, ways, form, usual)
    expected = usual + offsets
    drawn = expected + exploration * (doubt @ draws_of(ways, run_id)) if run_id is not None else expected
    return {
        way: WayRate(*(round(float(each), DIGITS) for each in (mean, value, usual)))
        for way, mean, value in zip(ways, expected, drawn, strict=True)
    }


def fading(passed: Sequence[bool], half_life_runs: float) -> float:
    """After how many runs an outcome counts half: sooner where the world may have changed. Newest first."""
    return half_life_runs * (_SOONER if has_fallen(passed) else 1)


def has_fallen(passed: Sequence[bool]) -> bool:
    """Do the newest runs pass much less often than those before? Newest first."""
    newest, before = passed[:_NEWEST], passed[_NEWEST : _NEWEST + _BEFORE]
    return len(before) >= _NEWEST and sum(newest) / len(newest) < sum(before) / len(before) - _FELL


def _posterior(
    known: Sequence[tuple[tuple[str, tuple[str, ...]], Sequence[float]]],
    ways: Sequence[str],
    form: tuple[str, ...],
    usual: float,
) -> Posterior:
    """Of each way on a task of this form."""
    import numpy as np

    place = {way: at for at, way in enumerate(ways)}
    likeness = np.array([[_alike(one, other) for other in ways] for one in ways])
    of = [place[did] for (did, _), _ in known]
    forms = [asked for (_, asked), _ in known]
    same = np.array([[float(one == other) for other in forms] for one in forms])
    here = np.array([float(each == form) for each in forms])
    seen = likeness[np.ix_(of, of)] * (1 + _SAME_TASK * same) + _TASK * same
    seen += np.diag([NOISE / n for _, (_, n) in known])
    across = likeness[:, of] * (1 + _SAME_TASK * here) + _TASK * here
    rates = np.array([passes / n - usual for _, (passes, n) in known])
    return posterior_of(seen, rates, across, likeness * (1 + _SAME_TASK) + _TASK)


@remembered(8192)
def _alike(one: str, other: str) -> float:
    """The covariance of what two ways do to the pass rate: what they have in common."""
    mine, theirs = _traits(one), _traits(other)
    return _STEP * len(mine[0] & theirs[0]) + _PAIR * len(mine[1] & theirs[1])


@remembered(2048)
def _traits(did: str) -> tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, str]]]:
    """The steps, by name and with what they were given; and the pairs of steps right after one another."""
    steps = steps_in(did)
    names = [step.name for step in steps]
    single = {(name,) for name in names} | {(step.name, *step.given) for step in steps}
    return frozenset(single), frozenset(zip(("", *names), (*names, ""), strict=True))


@remembered(2048)
def steps_in(did: str) -> tuple[Step, ...]:
    """`Did: pack, then carry (grade=amber; an error)` as steps; what was answered is left out. What came again stands
    there twice.
    """
    return tuple(
        Step(name, tuple(filter(is_given, notes_of(each)))) for each in step_texts(did) if (name := name_of(each))
    )


def answers_in(did: str) -> int:
    """How many calls are told with what they answered, which is told of errors alone."""
    return sum(not is_given(note) for step in step_texts(did) for note in notes_of(step))


# -- lessons beside a way -----------------------------------------------------------------------------


def speaks_against(learnt: Mapping[str, object], did: str) -> bool:
    """Does a lesson say not to do what a way does, or to do what it does not? Not where that cannot be told."""
    feature, advice = learnt.get("feature"), learnt.get("advice")
    does = _does(feature, did) if isinstance(feature, str) else None
    return does is not None and does is (advice == "avoid")


def _does(feature: str, did: str) -> bool | None:
    """Has a way the feature? None where what is told of it does not say."""
    kind, _, value = feature.partition(":")
    steps = steps_in(did)
    names = [step.name for step in steps]
    if kind == "first":
        return bool(names) and names[0] == value
    if kind == "arg":
        return None if (given := _gives(value, steps)) is False and is_cut(did) else given
    if kind == "order":
        return _follows(value, did)
    if kind == "tool":
        return True if value in names else None if is_cut(did) else False
    return None  # `then`: what was answered is not told of a way


def _follows(value: str, did: str) -> bool | None:
    """Is the one right before the other? What was cut out may hold it."""
    one, _, other = value.partition(">")
    if any((one, other) in pairwise(map(name_of, part)) for part in stretches(did)):
        return True
    return None if is_cut(did) else False


def _gives(value: str, steps: Sequence[Step]) -> bool | None:
    tool, _, given = value.partition(".")
    name = given.partition("=")[0]
    told = [note for step in steps if step.name == tool for note in step.given if note.partition("=")[0] == name]
    if told:
        return given in told
    return None if any(step.name == tool for step in steps) else False
