"""The small things domain logic must never fetch itself (X-06): the time, fresh ids, salts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

__all__ = ["Clock", "Ids"]

Clock = Callable[[], datetime]
"""Returns the present as an aware datetime."""


class Ids(Protocol):
    """Mints what must be unique or unguessable."""

    def new(self, prefix: str) -> str:
        """A fresh id `prefix_…`, unique everywhere, sorting roughly by time of minting."""
        ...

    def salts(self, count: int) -> list[bytes]:
        """`count` salts of `core.canonical.SALT_BYTES` bytes that nobody can guess."""
        ...
