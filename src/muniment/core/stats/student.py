"""Student's interval of a mean: what a handful of repeats says, and how little."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import fsum, sqrt
from typing import Any, NamedTuple

from muniment.core.stats.beta import Beta
from muniment.core.stats.inputs import check_number, check_open_rate
from muniment.errors import InvalidInput

__all__ = ["MeanBounds", "mean_bounds", "student_quantile"]


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
