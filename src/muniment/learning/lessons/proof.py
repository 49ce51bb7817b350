"""What it takes to believe that a lesson helps, however often one looks and however many lessons are tried. Pure.

Which run gets a lesson is drawn, and how likely it was is recorded. If the lesson does nothing, the arm of a run says
nothing of its outcome, whatever the outcomes are like: hard tasks, a world that drifts, a verifier that errs. So one
can bet on it. Before each use the rates with the lesson and without are guessed by the uses before it; the stake then
grows by how likely the arm was given the outcome, by that guess, over how likely it was drawn. Where nothing helps
such a bet is fair, whatever is guessed, and the chance that the stake ever grows to 1/x is at most x (Ville). So it may
be looked at after every run. That a run was drawn to have it counts, whatever the agent says it used: what is said
after the draw may hang on the outcome.

Lessons are tried one after the other, and by luck alone one of many would do. So the chance of being wrong that a
kind of work may have is shared out: the k-th trial gets 3 / ((k + 2) (k + 3)) of it, which is a whole in all, and as
many times that as lessons of the work were proven, and one (e-LOND). So of kinds of work in which nothing helps at
most that share ever has an active lesson; and of the lessons that come to be active in others at most that share is
idle, on average. That bar falls when another is proven, and the highest that a stake ever stood is no fair figure for a
bar that falls: the stake counts as it stands. Only one that comes to the bar of its own number, which does not move, is
left there: to stop betting is fair.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from math import inf, log
from typing import Any, NamedTuple

from muniment.core.policy import LessonPolicy
from muniment.core.stats import log_mean
from muniment.learning.lesson_state import LessonUse
from muniment.learning.stored_memory import StoredMemory

__all__ = ["Proof", "bar_of", "proof_of", "proven_of", "trials_begun"]

_LEARNT_MAX = 6.0
"""Of the runs that a lesson was learnt from, so many speak for the first guess. Any is fair; a good one is quick."""
_COST_SHARE = 0.1
"""Of the chance of being wrong, what goes to the question whether it costs less."""


class Proof(NamedTuple):
    """How the stakes stand: logarithms."""

    passes: float
    """That runs with it pass more often."""
    cheaper: float
    """That runs with it cost less."""

    def helps(self, bar: float) -> bool:
        return self.passes >= bar - log(1 - _COST_SHARE)

    def costs_less(self, bar: float) -> bool:
        return self.cheaper >= bar - log(_COST_SHARE)


class _Guess(NamedTuple):
    """Successes and others that are known of runs with the lesson, and of runs without."""

    had: tuple[float, float] = (1.0, 1.0)
    held_out: tuple[float, float] = (1.0, 1.0)


def bar_of(number: int, proven: int, policy: LessonPolicy) -> float:
    """The logarithm that the stake of a trial must come to; `number` and `proven` say how many trials of its kind of
    work have begun with it, and how many lessons of that work were proven.
    """
    share = policy.false_max * 3 / ((number + 2) * (number + 3)) * (proven + 1)
    return -log(min(share, 1.0)) if share > 0 else inf


def trials_begun(memories: Iterable[StoredMemory]) -> int:
    """How many trials of a kind of work have begun: by their numbers, or, of earlier versions, by who was tried."""
    states = [each.lesson for each in memories if each.lesson is not None]
    unnumbered = sum(state.stage != "candidate" and state.trial is None for state in states)
    return max(unnumbered, *(max(state.trial or 0, state.trials or 0) for state in states), 0)


def proven_of(memories: Iterable[StoredMemory]) -> int:
    """How many lessons of a kind of work were proven to help, by a trial that has a number: those that were active in
    earlier versions were not.
    """
    states = [each.lesson for each in memories if each.lesson is not None]
    return sum(bool(state.proven) and state.trial is not None for state in states)


def proof_of(memory: StoredMemory, uses: Sequence[LessonUse], enough: float = inf) -> Proof:
    """What the uses of a trial prove, oldest first. Those that do not say how likely their arm was prove nothing.

    `enough` is the bar of its number where nothing else is proven (`bar_of`): a stake that comes to it is left there.
    """
    drawn = [use for use in uses if use.share is not None and 0 < use.share < 1]
    paths = [_stake(drawn, [use.passed for use in drawn], guess) for guess in (_learnt(memory), _Guess())]
    passes = [log_mean(each) for each in zip(*paths, strict=True)]
    cheaper = _stake(drawn, _are_cheap(drawn), _Guess())
    return Proof(_left_at(passes, enough - log(1 - _COST_SHARE)), _left_at(cheaper, enough - log(_COST_SHARE)))


def _stake(uses: Sequence[LessonUse], successes: Sequence[bool], guess: _Guess) -> list[float]:
    """The logarithm of the stake after each use; nothing is staked while it is not guessed to do good."""
    path, stood = [], 0.0
    (had_well, had_n), (other_well, other_n) = ((each[0], sum(each)) for each in guess)
    for use, success in zip(uses, successes, strict=True):
        had, share = use.arm == "had", float(use.share or 0)
        rate, other = had_well / had_n, other_well / other_n
        if rate > other:
            rate, other = (rate, other) if success else (1 - rate, 1 - other)
            stood += log((rate if had else other) / (share * rate + (1 - share) * other))
        if had:
            had_well, had_n = had_well + success, had_n + 1
        else:
            other_well, other_n = other_well + success, other_n + 1
        path.append(stood)
    return path


def _left_at(path: Sequence[float], enough: float) -> float:
    """Where a stake stands that is staked no further once it came to so much."""
    return next((stood for stood in path if stood >= enough), path[-1] if path else 0.0)


def _are_cheap(uses: Sequence[LessonUse]) -> list[bool]:
    """Of each use, whether it cost less than the middle one of those before it, whatever their arms."""
    found: list[bool] = []
    before: list[float] = []
    for use in uses:
        found.append(bool(before) and use.cost < before[len(before) // 2])
        insort(before, use.cost)
    return found


def _learnt(memory: StoredMemory) -> _Guess:
    """The first guess: the rates of the runs that it was learnt from, which were chosen for looking good."""
    learnt: Any = memory.record.get("learnt")
    if not isinstance(learnt, Mapping):
        return _Guess()
    sides = ("without", "with") if learnt.get("advice") == "avoid" else ("with", "without")
    had, held_out = (_counted(learnt.get(side)) for side in sides)
    return _Guess(had, held_out)


def _counted(side: Any) -> tuple[float, float]:
    n, passes = (side.get("n"), side.get("passes")) if isinstance(side, Mapping) else (0, 0)
    if not isinstance(n, int | float) or not isinstance(passes, int | float) or not 0 <= passes <= n or n <= 0:
        return 1.0, 1.0
    weight = min(float(n), _LEARNT_MAX) / n
    return 1 + weight * passes, 1 + weight * (n - passes)
