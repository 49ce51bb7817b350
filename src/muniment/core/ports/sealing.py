"""What seals a secret so that nobody without the key reads it; the key itself lies outside the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

__all__ = ["BrokenSeal", "SealKey", "SealKeys"]


class BrokenSeal(Exception):
    """The bytes are none that this key sealed for this place."""


class SealKey(Protocol):
    """One key. It is never stored, exported, logged or shown; its id is."""

    @property
    def id(self) -> str:
        """A name made of the key, by which a seal says what opens it. Nothing of the key can be told from it."""
        ...

    def seal(self, data: bytes, place: Sequence[bytes]) -> bytes:
        """The data, encrypted and bound to its place. The same data at the same place gives the same bytes."""
        ...

    def open(self, sealed: bytes, place: Sequence[bytes]) -> bytes:
        """The data again; raises `BrokenSeal` where the bytes or the place are not those that were sealed."""
        ...


SealKeys = Callable[[], Sequence[SealKey]]
"""The keys as they are now: the first seals, all of them open."""
