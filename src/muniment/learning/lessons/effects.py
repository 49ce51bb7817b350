"""What a lesson does to pass rates: with it and without it on one stream, within tasks where that can be, newer first.

Pure. It reads uses and answers figures; it decides nothing and keeps nothing.

The pass rates of the two arms are compared within a stratum and pooled by Mantel–Haenszel weights. A task that was run
in both arms is a stratum of its own; all other uses of a family are one. Which arm a run is in was drawn by hash, so
that neither choice biases the difference; strata only take the noise of easy and hard tasks out of it. A use weighs
half as much after each half-life, counted in uses, so that figures follow the world.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from muniment.core.policy import LessonPolicy
from muniment.core.stats import Bounds, normal_quantile
from muniment.learning.lesson_state import LessonUse
from muniment.learning.stored_memory import Tally

__all__ = ["Effect", "effect_of", "tally_of"]

_CAUTION = 1.0
"""Passes and fails that each arm is taken to have beside its own, where its spread is reckoned."""


class Effect(NamedTuple):
    """How runs with a lesson fared beside runs that it fitted and that did without."""

    had: Tally
    """All uses that were looked at, each counted once."""
    held_out: Tally
    difference: float | None
    """Pass rate with it less pass rate without it, discounted and pooled; None while an arm is empty."""
    spread: float
    """The standard error of the difference."""
    cost_difference: float | None
    """Mean cost with it less mean cost without it."""
    cost_spread: float

    def bounds(self, confidence: float) -> Bounds:
        """The interval of the difference; from −1 to 1 where nothing is known."""
        if self.difference is None:
            return Bounds(-1.0, 1.0)
        reach = normal_quantile((1 + confidence) / 2) * self.spread
        return Bounds(max(-1.0, self.difference - reach), min(1.0, self.difference + reach))

    def costs_less(self, confidence: float) -> bool:
        """Is it cheaper, beyond doubt?"""
        if self.cost_difference is None or self.cost_spread <= 0:
            return False
        return self.cost_difference + normal_quantile((1 + confidence) / 2) * self.cost_spread < 0

    @property
    def words(self) -> str:
        """The figures in a few words: `passed 9 of 12 with it, 3 of 11 without`."""
        return f"passed {self.had.passes} of {self.had.n} with it, {self.held_out.passes} of {self.held_out.n} held out"


class _Arm(NamedTuple):
    """Weighed outcomes of one arm within a stratum."""

    weight: float = 0.0
    squares: float = 0.0
    passed: float = 0.0

    def add(self, weight: float, passed: bool) -> _Arm:
        return _Arm(self.weight + weight, self.squares + weight * weight, self.passed + weight * passed)

    @property
    def rate(self) -> float:
        return self.passed / self.weight


def tally_of(uses: Sequence[LessonUse], arm: str) -> Tally:
    """The uses of one arm, counted."""
    mine = [use for use in uses if use.arm == arm]
    return Tally(n=len(mine), passes=sum(use.passed for use in mine), cost_sum=sum(use.cost for use in mine))


def effect_of(uses: Sequence[LessonUse], policy: LessonPolicy) -> Effect:
    """The effect of a lesson by its uses, oldest first."""
    weights = [0.5 ** ((len(uses) - 1 - place) / policy.half_life_uses) for place in range(len(uses))]
    difference, spread = _pass_difference(uses, weights)
    cost_difference, cost_spread = _cost_difference(uses, weights)
    return Effect(tally_of(uses, "had"), tally_of(uses, "held_out"), difference, spread, cost_difference, cost_spread)


def _pass_difference(uses: Sequence[LessonUse], weights: Sequence[float]) -> tuple[float | None, float]:
    arms: defaultdict[str, set[str]] = defaultdict(set)
    for use in uses:
        arms[use.task or ""].add(use.arm)
    strata: defaultdict[str, dict[str, _Arm]] = defaultdict(lambda: {"had": _Arm(), "held_out": _Arm()})
    whole = {"had": _Arm(), "held_out": _Arm()}
    for use, weight in zip(uses, weights, strict=True):
        stratum = strata[use.task if use.task and len(arms[use.task]) == len(whole) else ""]
        stratum[use.arm] = stratum[use.arm].add(weight, use.passed)
        whole[use.arm] = whole[use.arm].add(weight, use.passed)
    noise = {name: _variance(arm) for name, arm in whole.items()}
    total = gap = variance = 0.0
    for each in strata.values():
        had, held = each["had"], each["held_out"]
        if not had.weight or not held.weight:
            continue
        share = had.weight * held.weight / (had.weight + held.weight)
        total += share
        gap += share * (had.rate - held.rate)
        variance += share**2 * sum(noise[name] * arm.squares / arm.weight**2 for name, arm in each.items())
    return (gap / total, sqrt(variance) / total) if total else (None, 0.0)


def _variance(arm: _Arm) -> float:
    """Of one outcome of an arm, with some caution while there are few."""
    rate = (arm.passed + _CAUTION) / (arm.weight + 2 * _CAUTION)
    return rate * (1 - rate)


def _cost_difference(uses: Sequence[LessonUse], weights: Sequence[float]) -> tuple[float | None, float]:
    found: list[tuple[float, float]] = []
    for arm in ("had", "held_out"):
        mine = [(weight, use.cost) for use, weight in zip(uses, weights, strict=True) if use.arm == arm]
        total = sum(weight for weight, _ in mine)
        if len(mine) < 2:
            return None, 0.0
        mean = sum(weight * cost for weight, cost in mine) / total
        variance = sum(weight * (cost - mean) ** 2 for weight, cost in mine) / total
        found.append((mean, variance * sum(weight**2 for weight, _ in mine) / total**2))
    (mine_mean, mine_noise), (other_mean, other_noise) = found
    return mine_mean - other_mean, sqrt(mine_noise + other_noise)
