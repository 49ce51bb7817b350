"""Tallies: how many of how many passed, in all or among the last few. Adding up is exact in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from muniment.core.stats.inputs import check_counts
from muniment.errors import InvalidInput

__all__ = ["Tally", "Window"]

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
