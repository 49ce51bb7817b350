"""How long what failed is left alone: longer each time, until it works again. By the clock of this process alone."""

from __future__ import annotations

import time

__all__ = ["Rest"]

FIRST_S, LONGEST_S = 15.0, 600.0


class Rest:
    """Of one server that upkeep asks: of a model, of vectors."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """How long it rests since it failed last; 0 while it works."""
        self._until = 0.0

    def fail(self) -> None:
        self.seconds = min(max(FIRST_S, self.seconds * 2), LONGEST_S)
        self._until = time.monotonic() + self.seconds

    def work(self) -> None:
        self.seconds = 0.0

    @property
    def is_resting(self) -> bool:
        return self.seconds > 0 and time.monotonic() < self._until

    @property
    def is_due(self) -> bool:
        """Did it fail, and has it been left alone for its time?"""
        return self.seconds > 0 and not self.is_resting
