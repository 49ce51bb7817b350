"""Tallies and moving averages: how many of how many passed, exact in any order; and the checks every figure shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Self

from muniment.errors import InvalidInput

__all__ = ["Ema", "Tally", "Window", "check_counts", "check_number", "check_open_rate"]


def check_counts(passes: Any, n: Any) -> None:
    """`0 <= passes <= n`, both whole numbers; a boolean or 3.0 is neither."""
    for name, value in (("passes", passes), ("n", n)):
        if type(value) is not int or value < 0:
            raise InvalidInput(f"{name} is {value!r}: not a count", hint="a whole number, 0 or more")
    if passes > n:
        raise InvalidInput(f"{passes} passes of {n} runs", hint="no more passes than runs")


def check_number(name: str, value: Any) -> float:
    """A finite number; a boolean is none."""
    if type(value) not in (int, float) or not isfinite(value):
        raise InvalidInput(f"{name} is {value!r}: not a number", hint="a finite number")
    return float(value)


def check_open_rate(name: str, value: Any) -> float:
    """A number strictly between 0 and 1: a confidence, an alpha, a threshold that can be tested."""
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
        """The share that passed; None where nothing is known."""
        return self.passes / self.n if self.n else None

    @property
    def fails(self) -> int:
        return self.n - self.passes

    def add(self, passed: bool) -> Tally:
        return Tally(self.passes + _as_outcome(passed), self.n + 1)

    def merge(self, other: Tally) -> Tally:
        return Tally(self.passes + other.passes, self.n + other.n)

    def less(self, other: Tally) -> Tally:
        """What is left when `other`, which was counted in here, is taken out again."""
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
