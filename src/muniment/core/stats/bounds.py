"""Intervals: Wilson's of a pass rate, honest for few runs, Student's of a mean, and the Beta posterior of a rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import erfc, exp, fsum, hypot, inf, lgamma, log, log1p, pi, sqrt
from typing import Any, NamedTuple

from muniment.core.stats.counts import Tally, check_counts, check_number, check_open_rate
from muniment.errors import InvalidInput

__all__ = [
    "JEFFREYS",
    "Beta",
    "Bounds",
    "MeanBounds",
    "Prior",
    "beta_bounds",
    "difference_bounds",
    "incomplete_beta",
    "log_beta",
    "log_share_above",
    "mean_bounds",
    "normal_quantile",
    "p_lb95",
    "posterior",
    "prob_greater",
    "runs_needed",
    "student_quantile",
    "wilson_bounds",
]

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


class MeanBounds(NamedTuple):
    """A mean of n values, its standard error and an interval; the last three are None where n is 1."""

    mean: float
    error: float | None
    lower: float | None
    upper: float | None
    n: int

    def to_wire(self) -> dict[str, Any]:
        return self._asdict()


def mean_bounds(values: Sequence[float], confidence: float = 0.95) -> MeanBounds:
    """The mean of independent values that are roughly normal, with its two-sided interval."""
    seen = [check_number("a value", value) for value in values]
    if not seen:
        raise InvalidInput("the mean of no values", hint="give at least one")
    n = len(seen)
    mean = fsum(seen) / n
    if n == 1:
        return MeanBounds(mean, None, None, None, n)
    error = sqrt(fsum((value - mean) ** 2 for value in seen) / (n - 1) / n)
    reach = student_quantile((1 + check_open_rate("confidence", confidence)) / 2, n - 1) * error
    return MeanBounds(mean, error, mean - reach, mean + reach, n)


@lru_cache(maxsize=256)
def student_quantile(p: float, freedom: int) -> float:
    """Where Student's distribution function with so many degrees of freedom is `p`, through t² = ν·x / (1 − x)."""
    level = check_open_rate("p", p)
    if type(freedom) is not int or freedom < 1:
        raise InvalidInput(f"{freedom!r} degrees of freedom", hint="a whole number, 1 or more")
    if level == 0.5:
        return 0.0
    tail = 2 * min(level, 1 - level)
    rest = Beta(freedom / 2, 0.5).quantile(tail)  # 1 − x, which is small where t is large
    size = sqrt(freedom * (1 - rest) / rest)
    return size if level > 0.5 else -size


_TINY = 1e-300
_FRACTION_STEPS = 100_000
_STRIP = 60.0  # how far the log density may fall before its tail is nothing: e**-60
_POINTS = 400
_ODDS_MAX = 700.0  # e**-700 is still a double
_SHAPE_MIN, _SHAPE_MAX = (
    0.1,
    1e12,
)  # below, the tails reach further than _ODDS_MAX; above, doubles do not tell counts apart


class Prior(NamedTuple):
    """The two shapes of a Beta prior: passes and failures that count as seen before the first run."""

    passes: float
    fails: float


JEFFREYS = Prior(0.5, 0.5)


# -- the functions ------------------------------------------------------------------------------------


def incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b), the share of Beta(a, b) that lies below x."""
    check_shapes(a, b)
    if not 0 <= check_number("x", x) <= 1:
        raise InvalidInput(f"x is {x!r}: not in [0, 1]")
    return _share_below(x, 1 - x, a, b)


def _share_below(x: float, y: float, a: float, b: float) -> float:
    """I_x(a, b) with y = 1 - x given apart: near 1 a double x no longer tells how far it is from 1."""
    if x <= 0 or y <= 0:
        return float(y <= 0)
    front = exp(_log_power(x, y, a, b))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(y, b, a) / b


def log_share_above(x: float, a: float, b: float) -> float:
    """ln(1 - I_x(a, b)), to full precision where next to nothing lies above."""
    y = 1 - x
    if y < (b + 1) / (a + b + 2):
        return _log_power(x, y, a, b) + log(_fraction(y, b, a) / b)
    return log1p(-exp(_log_power(x, y, a, b)) * _fraction(x, a, b) / a)


def log_beta(a: float, b: float) -> float:
    """ln B(a, b)."""
    total = a + b
    return (
        log(2 * pi) / 2
        + (a - 0.5) * log(a / total)
        + (b - 0.5) * log(b / total)
        - log(total) / 2
        + _stirling_rest(a)
        + _stirling_rest(b)
        - _stirling_rest(total)
    )


def check_shapes(a: float, b: float) -> None:
    for value in (a, b):
        if not _SHAPE_MIN <= check_number("a shape", value) <= _SHAPE_MAX:
            raise InvalidInput(f"a shape is {value!r}", hint=f"from {_SHAPE_MIN} to {_SHAPE_MAX:g}")


def _log_power(x: float, y: float, a: float, b: float) -> float:
    """ln of x^a y^b / B(a, b), y = 1 - x, measured from its peak at a/(a+b) so that large terms do not cancel."""
    total = a + b
    away = a * _log_ratio(x, a / total) + b * _log_ratio(y, b / total)
    rest = _stirling_rest(a) + _stirling_rest(b) - _stirling_rest(total)
    return away + log(a * b / (2 * pi * total)) / 2 - rest


def _log_ratio(value: float, at: float) -> float:
    off = (value - at) / at
    return log1p(off) if abs(off) < 0.5 else log(value / at)


def _stirling_rest(x: float) -> float:
    """ln Γ(x) less Stirling's leading terms."""
    if x < 10:
        return lgamma(x) - ((x - 0.5) * log(x) - x + log(2 * pi) / 2)
    inverse = 1 / (x * x)
    series = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))
    return series / x


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b), by Lentz's method."""
    c, d = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _FRACTION_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _apart(1 + term * d)
            c = _apart(1 + term / c)
            step = c * d
            value *= step
        if abs(step - 1) < 1e-16:
            break
    return value


def _apart(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


# -- the distribution ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beta:
    """A Beta distribution of a rate."""

    a: float
    b: float

    def __post_init__(self) -> None:
        check_shapes(self.a, self.b)

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        return self.mean * (1 - self.mean) / (self.a + self.b + 1)

    def cdf(self, x: float) -> float:
        return incomplete_beta(x, self.a, self.b)

    def quantile(self, q: float) -> float:
        """Where `cdf` is q: Newton's steps on the log-odds, kept inside a shrinking bracket."""
        check_open_rate("q", q)
        low, high = -_ODDS_MAX, _ODDS_MAX
        odds = log(self.a / self.b)
        for _ in range(200):
            x, y = _rates(odds)
            off = _share_below(x, y, self.a, self.b) - q
            if off > 0:
                high = odds
            else:
                low = odds
            slope = exp(_log_power(x, y, self.a, self.b))
            step = odds - off / slope if slope > 0 else inf
            following = step if low < step < high else (low + high) / 2
            if abs(following - odds) <= 1e-15 * max(1.0, abs(odds)):
                break
            odds = following
        return _rates(odds)[0]


def posterior(tally: Tally, prior: Prior = JEFFREYS) -> Beta:
    return Beta(tally.passes + prior[0], tally.fails + prior[1])


def beta_bounds(tally: Tally, confidence: float = 0.95, prior: Prior = JEFFREYS) -> Bounds:
    """The equal-tailed interval; from 0 where none passed and up to 1 where all did, so it holds the observed rate."""
    tail = (1 - check_open_rate("confidence", confidence)) / 2
    after = posterior(tally, prior)
    lower = after.quantile(tail) if tally.passes else 0.0
    upper = after.quantile(1 - tail) if tally.fails else 1.0
    p_hat = tally.p_hat
    return Bounds(lower, upper) if p_hat is None else Bounds(min(lower, p_hat), max(upper, p_hat))


def prob_greater(mine: Beta, other: Beta) -> float:
    """The chance that a rate drawn from `mine` is above one drawn from `other`.

    The density of the narrower one times the distribution function of the wider one, summed over even steps of the
    log-odds: there both are analytic and fade exponentially, so the sum is as good as the integral.
    """
    if mine == other:
        return 0.5
    if _spread(mine) > _spread(other):
        return 1 - prob_greater(other, mine)
    low, high = _reach(mine)
    step = (high - low) / _POINTS
    weighed = total = 0.0
    for index in range(_POINTS + 1):
        x, y = _rates(low + index * step)
        weight = exp(_log_power(x, y, mine.a, mine.b))
        total += weight
        weighed += weight * _share_below(x, y, other.a, other.b)
    return min(1.0, max(0.0, weighed / total))


def _spread(beta: Beta) -> float:
    return 1 / beta.a + 1 / beta.b  # the variance of the log-odds, about


def _rates(odds: float) -> tuple[float, float]:
    """The rate of log-odds, and what it lacks to 1, both to full precision."""
    small = exp(-abs(odds))
    rates = (1 / (1 + small), small / (1 + small))
    return rates if odds >= 0 else rates[::-1]


def _reach(beta: Beta) -> tuple[float, float]:
    """The log-odds outside of which the density over the log-odds is nothing."""
    peak = log(beta.a / beta.b)
    least = _log_power(*_rates(peak), beta.a, beta.b) - _STRIP
    ends = []
    for side in (-1, 1):
        near, far = 0.0, 1e-6
        while _log_power(*_rates(peak + side * far), beta.a, beta.b) > least:
            near, far = far, min(far * 2, _ODDS_MAX - abs(peak))
        for _ in range(20):
            middle = (near + far) / 2
            fallen = _log_power(*_rates(peak + side * middle), beta.a, beta.b) < least
            near, far = (near, middle) if fallen else (middle, far)
        ends.append(peak + side * far)
    return ends[0], ends[1]
