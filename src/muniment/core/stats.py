"""Bounds on rates: Wilson, Beta, sequential ones that hold under repeated checking, and a paired bootstrap.

Pure arithmetic on counts; nothing here knows of runs, rules or tactics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb, erfc, exp, fsum, hypot, inf, isfinite, lgamma, log, log1p, pi, sqrt
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from muniment.errors import InvalidInput

# -- counts ---------------------------------------------------------------------------------------------


def check_counts(passes: Any, n: Any) -> None:
    """Check `0 <= passes <= n`, both whole numbers; a boolean or 3.0 is refused."""
    for name, value in (("passes", passes), ("n", n)):
        if type(value) is not int or value < 0:
            raise InvalidInput(f"{name} is {value!r}: not a count", hint="a whole number, 0 or more")
    if passes > n:
        raise InvalidInput(f"{passes} passes of {n} runs", hint="no more passes than runs")


def check_number(name: str, value: Any) -> float:
    """Check for a finite number; booleans are refused."""
    if type(value) not in (int, float) or not isfinite(value):
        raise InvalidInput(f"{name} is {value!r}: not a number", hint="a finite number")
    return float(value)


def check_open_rate(name: str, value: Any) -> float:
    """Check for a number strictly between 0 and 1: a confidence, an alpha, a threshold that can be tested."""
    number = check_number(name, value)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} is {value!r}: not between 0 and 1", hint="strictly between 0 and 1")
    return number


_SHOWN = {False: "0", True: "1"}


@dataclass(frozen=True, slots=True)
class Tally:
    """`passes` of `n` runs."""

    passes: int = 0
    n: int = 0

    def __post_init__(self) -> None:
        check_counts(self.passes, self.n)

    @property
    def p_hat(self) -> float | None:
        """The share that passed; None if there are no runs."""
        return self.passes / self.n if self.n else None

    @property
    def fails(self) -> int:
        return self.n - self.passes

    def add(self, passed: bool) -> Tally:
        return Tally(self.passes + _as_outcome(passed), self.n + 1)

    def merge(self, other: Tally) -> Tally:
        return Tally(self.passes + other.passes, self.n + other.n)

    def less(self, other: Tally) -> Tally:
        """Return the tally without `other`, which it includes."""
        return Tally(self.passes - other.passes, self.n - other.n)

    @classmethod
    def of(cls, outcomes: Iterable[bool]) -> Self:
        seen = [_as_outcome(passed) for passed in outcomes]
        return cls(sum(seen), len(seen))

    def to_wire(self) -> dict[str, Any]:
        return {"passes": self.passes, "n": self.n}

    @classmethod
    def from_wire(cls, wire: Any) -> Self:
        if not isinstance(wire, dict) or wire.keys() != {"passes", "n"}:
            raise InvalidInput("not a tally", hint='{"passes": 3, "n": 4}')
        return cls(**wire)


@dataclass(frozen=True, slots=True)
class Window:
    """The last `size` outcomes, oldest first, as a string of 1 and 0."""

    size: int
    recent: str = ""

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise InvalidInput(f"a window of {self.size!r} outcomes", hint="a whole number, 1 or more")
        if not isinstance(self.recent, str) or not set(self.recent) <= {"0", "1"} or len(self.recent) > self.size:
            raise InvalidInput(f"{self.recent!r} is no window of {self.size}", hint="1 and 0, no more than its size")

    @property
    def tally(self) -> Tally:
        return Tally(self.recent.count("1"), len(self.recent))

    def add(self, passed: bool) -> Window:
        return Window(self.size, (self.recent + _SHOWN[_as_outcome(passed)])[-self.size :])


def _as_outcome(passed: Any) -> bool:
    if type(passed) is not bool:
        raise InvalidInput(f"{passed!r} is not an outcome", hint="True where it passed, False where not")
    return passed


@dataclass(frozen=True, slots=True)
class Ema:
    """The weighted mean of the observed values; the last value weighs `weight`, each older one `1 - weight` of the
    next.

    `total` and `mass` are the weighted sum and the sum of the weights, so the weights always add up to one. The same
    values in the same order give the same bits, whether they come one at a time or all at once.
    """

    weight: float
    total: float = 0.0
    mass: float = 0.0
    n: int = 0

    def __post_init__(self) -> None:
        if not 0 < check_number("weight", self.weight) <= 1:
            raise InvalidInput(f"the weight {self.weight!r} is not in (0, 1]", hint="0.1 follows the last ten or so")
        check_number("total", self.total)
        if type(self.n) is not int or self.n < 0 or not 0 <= check_number("mass", self.mass) <= 1:
            raise InvalidInput(f"mass {self.mass!r} after {self.n!r} values", hint="start from Ema(weight)")
        if (self.n == 0) != (self.mass == 0):
            raise InvalidInput(f"mass {self.mass!r} after {self.n!r} values", hint="start from Ema(weight)")

    @property
    def value(self) -> float | None:
        """None before the first value."""
        return self.total / self.mass if self.n else None

    def add(self, value: float) -> Ema:
        kept = 1 - self.weight
        number = check_number("value", value)
        return Ema(self.weight, kept * self.total + self.weight * number, kept * self.mass + self.weight, self.n + 1)

    def add_all(self, values: Iterable[float]) -> Ema:
        average = self
        for value in values:
            average = average.add(value)
        return average


# -- bounds ---------------------------------------------------------------------------------------------


_Z95 = 1.959963984540054


class Bounds(NamedTuple):
    """Bounds on a rate; 0 to 1 without data."""

    lower: float
    upper: float


def wilson_bounds(passes: int, n: int, confidence: float = 0.95) -> Bounds:
    """Return the two-sided score interval; it always contains the observed rate."""
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
    """Return the contract's lower bound; None without runs: unknown, not zero."""
    return wilson_bounds(tally.passes, tally.n).lower if tally.n else None


def runs_needed(target: float, after: Tally | None = None, confidence: float = 0.95) -> int:
    """Return the number of further consecutive passes needed to bring the lower bound to `target`.

    A decision that would wait for more than it can get reports "not enough runs" instead: 0.85 takes 22.
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
    """Return bounds on candidate − baseline by Newcombe's hybrid of score intervals; −1 to 1 if an arm is empty."""
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
    """Return the standard normal quantile of `p`, by bisection."""
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
    """Return the mean of independent, roughly normal values, with its two-sided interval."""
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
    """Return Student's quantile of `p` at these degrees of freedom, through t² = ν·x / (1 − x)."""
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
)  # below, the tails exceed _ODDS_MAX; above, doubles cannot distinguish counts


class Prior(NamedTuple):
    """The two shapes of a Beta prior: passes and failures that count as seen before the first run."""

    passes: float
    fails: float


JEFFREYS = Prior(0.5, 0.5)


# -- the functions ------------------------------------------------------------------------------------


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return I_x(a, b), the share of Beta(a, b) below x."""
    check_shapes(a, b)
    if not 0 <= check_number("x", x) <= 1:
        raise InvalidInput(f"x is {x!r}: not in [0, 1]")
    return _share_below(x, 1 - x, a, b)


def _share_below(x: float, y: float, a: float, b: float) -> float:
    """Return I_x(a, b) given y = 1 - x separately: near 1 a double x loses its distance from 1."""
    if x <= 0 or y <= 0:
        return float(y <= 0)
    front = exp(_log_power(x, y, a, b))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(y, b, a) / b


def log_share_above(x: float, a: float, b: float) -> float:
    """Return ln(1 - I_x(a, b)), to full precision where almost nothing is above."""
    y = 1 - x
    if y < (b + 1) / (a + b + 2):
        return _log_power(x, y, a, b) + log(_fraction(y, b, a) / b)
    return log1p(-exp(_log_power(x, y, a, b)) * _fraction(x, a, b) / a)


def log_beta(a: float, b: float) -> float:
    """Return ln B(a, b)."""
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
    """Return ln of x^a y^b / B(a, b), y = 1 - x, measured from its peak a/(a+b) so large terms do not cancel."""
    total = a + b
    away = a * _log_ratio(x, a / total) + b * _log_ratio(y, b / total)
    rest = _stirling_rest(a) + _stirling_rest(b) - _stirling_rest(total)
    return away + log(a * b / (2 * pi * total)) / 2 - rest


def _log_ratio(value: float, at: float) -> float:
    off = (value - at) / at
    return log1p(off) if abs(off) < 0.5 else log(value / at)


def _stirling_rest(x: float) -> float:
    """Return ln Γ(x) less Stirling's leading terms."""
    if x < 10:
        return lgamma(x) - ((x - 0.5) * log(x) - x + log(2 * pi) / 2)
    inverse = 1 / (x * x)
    series = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))
    return series / x


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of I_x(a, b), by Lentz's method."""
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
        """Invert `cdf` at q by Newton's steps on the log-odds, kept inside a shrinking bracket."""
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
    """Return the equal-tailed interval; from 0 where none passed and up to 1 where all did, so it contains the observed
    rate.
    """
    tail = (1 - check_open_rate("confidence", confidence)) / 2
    after = posterior(tally, prior)
    lower = after.quantile(tail) if tally.passes else 0.0
    upper = after.quantile(1 - tail) if tally.fails else 1.0
    p_hat = tally.p_hat
    return Bounds(lower, upper) if p_hat is None else Bounds(min(lower, p_hat), max(upper, p_hat))


def prob_greater(mine: Beta, other: Beta) -> float:
    """Return the probability that a rate drawn from `mine` is above one drawn from `other`.

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
    """Return the rate of log-odds, and its distance from 1, both to full precision."""
    small = exp(-abs(odds))
    rates = (1 / (1 + small), small / (1 + small))
    return rates if odds >= 0 else rates[::-1]


def _reach(beta: Beta) -> tuple[float, float]:
    """Return the log-odds outside of which the density over the log-odds vanishes."""
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


# -- stratified -----------------------------------------------------------------------------------------


class Stratum(NamedTuple):
    """Both arms of one stratum: numbers of runs, and of passes."""

    n: int
    passes: int
    other_n: int
    other_passes: int

    @property
    def weight(self) -> float:
        """Its weight: zero where one arm is empty."""
        total = self.n + self.other_n
        return self.n * self.other_n / total if total else 0.0

    @property
    def difference(self) -> float:
        """Pass rate of the arm less that of the other."""
        return self.passes / self.n - self.other_passes / self.other_n if self.n and self.other_n else 0.0


def pooled_difference(strata: Sequence[Stratum]) -> float:
    """Return the difference of pass rates within strata, with Mantel-Haenszel weights; zero where no stratum is
    informative.
    """
    weight = fsum(one.weight for one in strata)
    return fsum(one.weight * one.difference for one in strata) / weight if weight else 0.0


def difference_within(strata: Sequence[Stratum], confidence: float = 0.9) -> Bounds:
    """Return an interval of that difference, by Sato's variance, valid for few large and for many small strata."""
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
    """Return by how many standard deviations the arm's passes exceed expectation: quick, and rough for few runs."""
    excess = variance = 0.0
    for n, passes, other_n, other_passes in strata:
        total, passed = n + other_n, passes + other_passes
        if n and other_n and 0 < passed < total:
            excess += passes - n * passed / total
            variance += n * other_n * passed * (total - passed) / (total**2 * (total - 1))
    return excess / sqrt(variance) if variance else 0.0


def chance_of(strata: Sequence[Stratum]) -> float:
    """Return the probability that chance alone gives the arm at least as many passes, counting exactly as many half.

    For an arm that passes less often, pass the strata with the arms exchanged.
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
    """Return the least probability that any outcome with these numbers of runs and passes could have, in either
    direction.

    It does not depend on the outcome, so questions that could not have been answered need not be counted (Tarone).
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
    """Return the probability of each number of passes falling to the arm, from the smallest possible."""
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


# -- sequential -----------------------------------------------------------------------------------------


RateVerdict = Literal["above", "below", "undecided"]


def confidence_sequence(tally: Tally, alpha: float = 0.05, prior: Prior = JEFFREYS) -> Bounds:
    """Return the rates that their betting game has not refuted. With probability 1 − alpha the true one is among them
    at every look; it is wider than Wilson's interval, which is the price of looking.
    """
    edge = -log(check_open_rate("alpha", alpha))
    p_hat = tally.p_hat
    if p_hat is None:
        return Bounds(0.0, 1.0)
    mixture = _log_mixture(tally, prior)

    def refuted(p: float) -> bool:
        return mixture - _log_likelihood(tally, p) >= edge

    lower = _border(refuted, 0.0, p_hat) if tally.passes else 0.0
    upper = _border(refuted, 1.0, p_hat) if tally.fails else 1.0
    return Bounds(lower, upper)


def difference_sequence(candidate: Tally, baseline: Tally, alpha: float = 0.05) -> Bounds:
    """Return bounds on candidate − baseline at every look, from one confidence sequence for each arm at alpha/2."""
    mine = confidence_sequence(candidate, check_open_rate("alpha", alpha) / 2)
    other = confidence_sequence(baseline, alpha / 2)
    return Bounds(mine.lower - other.upper, mine.upper - other.lower)


def evidence_above(tally: Tally, threshold: float, prior: Prior = JEFFREYS) -> float:
    """Return the log of an e-value against "the rate is at most `threshold`": log 20 is 0.05, at any look."""
    check_open_rate("threshold", threshold)
    return _one_sided(tally, threshold, Prior(*prior))


def evidence_below(tally: Tally, threshold: float, prior: Prior = JEFFREYS) -> float:
    """Return the log of an e-value against "the rate is at least `threshold`"."""
    check_open_rate("threshold", threshold)
    return _one_sided(Tally(tally.fails, tally.n), 1 - threshold, Prior(prior[1], prior[0]))


def rate_test(tally: Tally, threshold: float, alpha: float = 0.05) -> RateVerdict:
    """Test a rate; either claim is wrong with probability at most alpha, over all looks together."""
    edge = -log(check_open_rate("alpha", alpha))
    if evidence_above(tally, threshold) >= edge:
        return "above"
    return "below" if evidence_below(tally, threshold) >= edge else "undecided"


def _one_sided(tally: Tally, threshold: float, prior: Prior) -> float:
    """Return the likelihood mixed over the rates above the threshold alone, over the likelihood at the threshold.

    Each rate above it wins against the threshold, and against anything lower, no more than a fair game would.
    """
    before = log_share_above(threshold, *prior)
    after = log_share_above(threshold, prior.passes + tally.passes, prior.fails + tally.fails)
    return _log_mixture(tally, prior) + after - before - _log_likelihood(tally, threshold)


def _log_mixture(tally: Tally, prior: Prior) -> float:
    return log_beta(prior[0] + tally.passes, prior[1] + tally.fails) - log_beta(*prior)


def _log_likelihood(tally: Tally, p: float) -> float:
    return (tally.passes * log(p) if tally.passes else 0.0) + (tally.fails * log1p(-p) if tally.fails else 0.0)


def _border(refuted: Callable[[float], bool], outside: float, inside: float) -> float:
    """Find the border of the refuted rates between an end of the unit interval and the observed rate, from outside."""
    if inside in (0.0, 1.0):  # the likelihood has no logarithm at an end: step off it
        inside = abs(inside - exp(-30))
    for _ in range(60):
        middle = (outside + inside) / 2
        if middle in (outside, inside):
            break
        outside, inside = (middle, inside) if refuted(middle) else (outside, middle)
    return outside


Arm = Literal["candidate", "baseline"]
Decision = Literal["better", "not_harmful", "harmful", "undecided"]

STAKES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""The stakes played at once, with equal shares. The best one is effect / variance of a round: .1 to .8 for an effect of
.05 at pass rates from .5 to .97."""

_START = (0.0,) * len(STAKES)
_WAITING = Tally()

Capitals = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The state of a comparison: a value of constant size; `add` returns the next one.

    `worse`, `not_harmful` and `better` hold the log capital at each stake; the peaks are the highest of each game,
    since a refuted claim stays refuted.
    """

    margin: float = 0.05
    alpha: float = 0.05
    candidate: Tally = _WAITING
    baseline: Tally = _WAITING
    candidate_waiting: Tally = _WAITING
    baseline_waiting: Tally = _WAITING
    rounds: int = 0
    worse: Capitals = _START
    not_harmful: Capitals = _START
    better: Capitals = _START
    worse_peak: float = 0.0
    not_harmful_peak: float = 0.0
    better_peak: float = 0.0

    def __post_init__(self) -> None:
        check_open_rate("margin", self.margin)
        check_open_rate("alpha", self.alpha)

    def add(self, arm: Arm, passed: bool) -> Comparison:
        """Add one outcome. The arm must not be chosen by looking at the outcome."""
        if arm == "candidate":
            seen = replace(
                self, candidate=self.candidate.add(passed), candidate_waiting=self.candidate_waiting.add(passed)
            )
        elif arm == "baseline":
            seen = replace(self, baseline=self.baseline.add(passed), baseline_waiting=self.baseline_waiting.add(passed))
        else:
            raise InvalidInput(f"{arm!r} is not an arm", hint="candidate or baseline")
        mine, other = seen.candidate_waiting.p_hat, seen.baseline_waiting.p_hat
        return seen if mine is None or other is None else seen._played(mine - other)

    def add_pair(self, candidate: bool, baseline: bool) -> Comparison:
        """Add two matched outcomes: the same task with and without."""
        return self.add_matched(_WAITING.add(candidate), _WAITING.add(baseline))

    def add_matched(self, candidate: Tally, baseline: Tally) -> Comparison:
        """Add all outcomes of one task, with and without, as one round.

        The number of tries must not be chosen by looking at the outcomes. More tries make the round less random.
        """
        mine, other = candidate.p_hat, baseline.p_hat
        if mine is None or other is None:
            raise InvalidInput("a task that was tried on one side only is no pair")
        done = self._played(mine - other)
        return replace(
            done,
            candidate=self.candidate.merge(candidate),
            baseline=self.baseline.merge(baseline),
            candidate_waiting=self.candidate_waiting,
            baseline_waiting=self.baseline_waiting,
        )

    def followed_by(self, other: Comparison) -> Comparison:
        """Combine both into one comparison: other outcomes of the same question, by the same margin and alpha.

        Capitals multiply. The joint peak is unknown, so the current capitals count.
        """
        if (self.margin, self.alpha) != (other.margin, other.alpha):
            raise InvalidInput("comparisons of another margin or alpha are not joined")
        worse, not_harmful, better = (
            tuple(mine + theirs for mine, theirs in zip(getattr(self, name), getattr(other, name), strict=True))
            for name in _GAMES
        )
        return replace(
            other,
            candidate=self.candidate.merge(other.candidate),
            baseline=self.baseline.merge(other.baseline),
            rounds=self.rounds + other.rounds,
            worse=worse,
            not_harmful=not_harmful,
            better=better,
            worse_peak=max(0.0, log_mean(worse)),
            not_harmful_peak=max(0.0, log_mean(not_harmful)),
            better_peak=max(0.0, log_mean(better)),
        )

    @property
    def effect(self) -> float | None:
        """Observed candidate − baseline; None where an arm is empty."""
        mine, other = self.candidate.p_hat, self.baseline.p_hat
        return None if mine is None or other is None else mine - other

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims shown so far."""
        edge = -log(self.alpha)
        peaks = {"worse": self.worse_peak, "not_harmful": self.not_harmful_peak, "better": self.better_peak}
        return tuple(name for name, peak in peaks.items() if peak >= edge)

    @property
    def decision(self) -> Decision:
        """`harmful` if it is worse and a harm of the margin is not excluded; `better` if only that is shown.

        A candidate that is worse, but by less than the margin, ends as `not_harmful`.
        """
        claims = self.claims
        if "not_harmful" in claims:
            return "better" if "better" in claims and "worse" not in claims else "not_harmful"
        return "harmful" if "worse" in claims else "undecided"

    def _played(self, gap: float) -> Comparison:
        worse = _grown(self.worse, -gap)
        not_harmful = _grown(self.not_harmful, gap + self.margin)
        better = _grown(self.better, gap)
        return replace(
            self,
            candidate_waiting=_WAITING,
            baseline_waiting=_WAITING,
            rounds=self.rounds + 1,
            worse=worse,
            not_harmful=not_harmful,
            better=better,
            worse_peak=max(self.worse_peak, log_mean(worse)),
            not_harmful_peak=max(self.not_harmful_peak, log_mean(not_harmful)),
            better_peak=max(self.better_peak, log_mean(better)),
        )

    def to_wire(self) -> dict[str, Any]:
        """Return the whole state as plain JSON data."""
        wire: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            wire[name] = value.to_wire() if isinstance(value, Tally) else list(value) if name in _GAMES else value
        return wire

    @classmethod
    def from_wire(cls, wire: Any) -> Self:
        if not isinstance(wire, dict) or wire.keys() != cls.__dataclass_fields__.keys():
            raise InvalidInput("not a comparison", hint="what Comparison.to_wire() wrote")
        parts: dict[str, Any] = {}
        for name, value in wire.items():
            if name in _TALLIES:
                parts[name] = Tally.from_wire(value)
            elif name in _GAMES:
                parts[name] = _capitals(name, value)
            else:
                parts[name] = value if name == "rounds" else check_number(name, value)
        if type(parts["rounds"]) is not int or parts["rounds"] < 0:
            raise InvalidInput(f"{parts['rounds']!r} rounds", hint="a whole number, 0 or more")
        return cls(**parts)


_TALLIES = ("candidate", "baseline", "candidate_waiting", "baseline_waiting")
_GAMES = ("worse", "not_harmful", "better")


def _grown(capitals: Capitals, gain: float) -> Capitals:
    return tuple([capital + log1p(stake * gain) for capital, stake in zip(capitals, STAKES, strict=True)])


def log_mean(capitals: Capitals) -> float:
    """Return the logarithm of the mean of capitals given by their logarithms."""
    highest = max(capitals)
    return highest + log(sum([exp(capital - highest) for capital in capitals]) / len(capitals))


def _capitals(name: str, value: Any) -> Capitals:
    if not isinstance(value, list | tuple) or len(value) != len(STAKES):
        raise InvalidInput(f"{name} holds {len(STAKES)} capitals", hint="what Comparison.to_wire() wrote")
    return tuple(check_number(name, capital) for capital in value)


# -- paired ---------------------------------------------------------------------------------------------


ROUNDS = 2_000
"""Number of bootstrap rounds."""
PAIRS_MIN = 10
"""Fewer pairs are inconclusive: three that agree by chance have bounds of no width."""
_AT_ONCE = 1 << 20
"""Draws that are held in memory."""
_STEP, _MIX_A, _MIX_B = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def paired_bounds(differences: Sequence[float], *, confidence: float = 0.95, seed: int = 0) -> Bounds:
    """Return bounds on the mean of these differences, one for each task done both ways (percentile bootstrap).

    They describe these pairs: with fewer than `PAIRS_MIN` nothing should be concluded, however close the bounds are.
    """
    if not differences:
        raise InvalidInput("no pair was given", hint="the difference of each task that both did")
    values = np.array([check_number("differences", each) for each in differences], np.float64)
    tail = (1 - check_open_rate("confidence", confidence)) / 2
    means = np.sort(np.concatenate([values[drawn].mean(axis=1) for drawn in _draws(len(values), seed)]))
    low, high = int(tail * ROUNDS), min(ROUNDS - 1, int((1 - tail) * ROUNDS))
    return Bounds(float(means[low]), float(means[high]))


def _draws(size: int, seed: int) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield `ROUNDS` samples of places in a row of that size, by SplitMix64; a few rounds at a time."""
    rounds = max(1, _AT_ONCE // size)
    for first in range(0, ROUNDS, rounds):
        yield _mixed(seed, first * size, min(rounds, ROUNDS - first) * size).reshape(-1, size) % np.uint64(size)


def _mixed(seed: int, start: int, count: int) -> npt.NDArray[np.uint64]:
    places = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        state = np.uint64(seed) + places * _STEP
        state = (state ^ (state >> np.uint64(30))) * _MIX_A
        state = (state ^ (state >> np.uint64(27))) * _MIX_B
    return state ^ (state >> np.uint64(31))
