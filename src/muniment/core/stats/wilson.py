"""Wilson's score interval: bounds on a pass rate that are honest for few runs, and how many runs a bound would take.

`p_lb95` is the lower end of the two-sided 95 % interval (RC-16). It holds for a number of runs fixed beforehand;
who looks after every run takes `core.stats.sequential`. At the default confidence it is made of `+ - * / sqrt` alone,
so it is the same number on every machine.
"""

from __future__ import annotations

from functools import lru_cache
from math import erfc, hypot, sqrt
from typing import NamedTuple

from muniment.core.stats.counts import Tally
from muniment.core.stats.inputs import check_counts, check_number, check_open_rate
from muniment.errors import InvalidInput

__all__ = ["Bounds", "difference_bounds", "normal_quantile", "p_lb95", "runs_needed", "wilson_bounds"]

_Z95 = 1.959963984540054


class Bounds(NamedTuple):
    """Where a rate lies; from 0 to 1 where nothing is known."""

    lower: float
    upper: float


def wilson_bounds(passes: int, n: int, confidence: float = 0.95) -> Bounds:
    """The two-sided score interval; it always holds the observed rate."""
    check_counts(passes, n)
    z = _two_sided_z(confidence)
    if n == 0:
        return Bounds(0.0, 1.0)
    p_hat, square = passes / n, z * z
    centre = passes + square / 2
    spread = z * sqrt(passes * (n - passes) / n + square / 4)
    lower = (centre - spread) / (n + square) if passes else 0.0
    upper = (centre + spread) / (n + square) if passes < n else 1.0
    return Bounds(min(lower, p_hat), max(upper, p_hat))


def p_lb95(tally: Tally) -> float | None:
    """The contract's lower bound; None where nothing was run: unknown, and not nought."""
    return wilson_bounds(tally.passes, tally.n).lower if tally.n else None


def runs_needed(target: float, after: Tally | None = None, confidence: float = 0.95) -> int:
    """How many further straight passes bring the lower bound to `target`, at best.

    A decision that waits for more than it will ever get says "not enough runs" instead: 0.85 takes 22.
    """
    if not 0 <= check_number("target", target) < 1:
        raise InvalidInput(f"no number of runs reaches {target!r}", hint="a target from 0 to below 1")
    seen = after or Tally()

    def reached(more: int) -> bool:
        return wilson_bounds(seen.passes + more, seen.n + more, confidence).lower >= target

    if reached(0):
        return 0
    enough = 1
    while not reached(enough):
        enough *= 2
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (short, middle) if reached(middle) else (middle, enough)
    return enough


def difference_bounds(candidate: Tally, baseline: Tally, confidence: float = 0.95) -> Bounds:
    """Bounds on candidate − baseline by Newcombe's hybrid of two score intervals; −1 to 1 where an arm is empty."""
    mine = wilson_bounds(candidate.passes, candidate.n, confidence)
    other = wilson_bounds(baseline.passes, baseline.n, confidence)
    p_mine, p_other = candidate.p_hat, baseline.p_hat
    if p_mine is None or p_other is None:
        return Bounds(-1.0, 1.0)
    gap = p_mine - p_other
    return Bounds(
        max(-1.0, gap - hypot(p_mine - mine.lower, other.upper - p_other)),
        min(1.0, gap + hypot(mine.upper - p_mine, p_other - other.lower)),
    )


def _two_sided_z(confidence: float) -> float:
    level = check_open_rate("confidence", confidence)
    return _Z95 if level == 0.95 else normal_quantile((1 + level) / 2)


@lru_cache(maxsize=64)
def normal_quantile(p: float) -> float:
    """Where the standard normal distribution function is `p`, by bisection."""
    level = check_open_rate("p", p)
    low, high = -40.0, 40.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if erfc(-middle / sqrt(2)) / 2 < level:
            low = middle
        else:
            high = middle
