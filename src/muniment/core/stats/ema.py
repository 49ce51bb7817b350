"""An exponential moving average, exact from its first value: early values are not drowned by an invented start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muniment.core.stats.inputs import check_number
from muniment.errors import InvalidInput

__all__ = ["Ema"]


@dataclass(frozen=True, slots=True)
class Ema:
    """The weighted mean of what was seen; the last value weighs `weight`, each older one `1 - weight` of the next.

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
        """None where nothing was seen."""
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
