"""Backoff after failures: longer each time, until it works again. Uses this process's clock."""

from __future__ import annotations

import time

__all__ = ["Rest"]

FIRST_S, LONGEST_S = 15.0, 600.0


class Rest:
    """The backoff of one service that upkeep calls: a model or an embedder."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """The backoff after the last failure; 0 while it works."""
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
        """True if it failed and its backoff is over."""
        return self.seconds > 0 and not self.is_resting
