"""Two arms compared within strata: what differs between strata only moves nothing here.

The difference is Mantel and Haenszel's, the chance is exact: in each stratum the passes are held, and how many of them
would fall to the arm by luck alone is counted, stratum by stratum, all added up. No stratum is too thin, and none is
modelled. It knows counts and no runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, fsum, sqrt
from typing import NamedTuple

from muniment.core.stats.bounds import Bounds, normal_quantile

__all__ = ["Stratum", "chance_of", "difference_within", "least_chance", "pooled_difference", "z_score"]


class Stratum(NamedTuple):
    """Both arms of one stratum: how many runs, and how many of them passed."""

    n: int
    passes: int
    other_n: int
    other_passes: int

    @property
    def weight(self) -> float:
        """What it counts: nothing where one arm is empty."""
        total = self.n + self.other_n
        return self.n * self.other_n / total if total else 0.0

    @property
    def difference(self) -> float:
        """Pass rate of the arm less that of the other."""
        return self.passes / self.n - self.other_passes / self.other_n if self.n and self.other_n else 0.0


def pooled_difference(strata: Sequence[Stratum]) -> float:
    """The difference of pass rates within strata, weighed as Mantel and Haenszel do; nought where none can tell."""
    weight = fsum(one.weight for one in strata)
    return fsum(one.weight * one.difference for one in strata) / weight if weight else 0.0


def difference_within(strata: Sequence[Stratum], confidence: float = 0.9) -> Bounds:
    """An interval of that difference, by Sato's variance: it holds for few large strata and for many small ones."""
    weight = fsum(one.weight for one in strata)
    if not weight:
        return Bounds(-1.0, 1.0)
    middle = pooled_difference(strata)
    bend = spread = 0.0
    for n, passes, other_n, other_passes in strata:
        total = n + other_n
        if n and other_n:
            bend += (n**2 * other_passes - other_n**2 * passes + n * other_n * (other_n - n) / 2) / total**2
            spread += (passes * (other_n - other_passes) + other_passes * (n - passes)) / (2 * total)
    reach = normal_quantile((1 + confidence) / 2) * sqrt(max(0.0, middle * bend + spread)) / weight
    return Bounds(max(-1.0, middle - reach), min(1.0, middle + reach))


def z_score(strata: Sequence[Stratum]) -> float:
    """By how many deviations the arm's passes exceed what luck gives it: quick, and rough where runs are few."""
    excess = variance = 0.0
    for n, passes, other_n, other_passes in strata:
        total, passed = n + other_n, passes + other_passes
        if n and other_n and 0 < passed < total:
            excess += passes - n * passed / total
            variance += n * other_n * passed * (total - passed) / (total**2 * (total - 1))
    return excess / sqrt(variance) if variance else 0.0


def chance_of(strata: Sequence[Stratum]) -> float:
    """The chance that luck alone gives the arm at least so many passes, what is exactly as many counted half.

    Of an arm that passes less often ask for the strata with the arms exchanged.
    """
    ways, low, seen = [1.0], 0, 0
    for n, passes, other_n, other_passes in strata:
        total, passed = n + other_n, passes + other_passes
        if not n or not other_n or not 0 < passed < total:
            continue
        ways = _convolved(ways, _shares(n, other_n, passed))
        low += max(0, passed - other_n)
        seen += passes
    place = seen - low
    return min(1.0, fsum(ways[place + 1 :]) + ways[place] / 2)


def least_chance(strata: Sequence[Stratum]) -> float:
    """The least chance that any outcome could have had, as many runs and passes as there were, in either direction.

    It hangs on nothing that is asked, so a question that could not have been answered need not be counted (Tarone).
    """
    most = fewest = 1.0
    for n, passes, other_n, other_passes in strata:
        total, passed = n + other_n, passes + other_passes
        if n and other_n and 0 < passed < total:
            shares = _shares(n, other_n, passed)
            most, fewest = most * shares[-1], fewest * shares[0]
    return min(most, fewest) / 2


@lru_cache(maxsize=4096)
def _shares(n: int, other_n: int, passed: int) -> tuple[float, ...]:
    """How likely each number of the passes is to fall to the arm, from the fewest it can be."""
    every = comb(n + other_n, passed)
    return tuple(
        comb(n, mine) * comb(other_n, passed - mine) / every
        for mine in range(max(0, passed - other_n), min(n, passed) + 1)
    )


def _convolved(one: Sequence[float], other: Sequence[float]) -> list[float]:
    if len(other) > len(one):
        one, other = other, one
    summed = [0.0] * (len(one) + len(other) - 1)
    for place, share in enumerate(other):
        for at, value in enumerate(one, place):
            summed[at] += share * value
    return summed
