"""The system's clock and its randomness, as the ports want them; and repeatable stand-ins for both."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from muniment.core.canonical import SALT_BYTES

__all__ = ["CountingIds", "SystemIds", "TickingClock", "system_clock"]


def system_clock() -> datetime:
    return datetime.now(UTC)


class SystemIds:
    """Time-ordered ids in hex: 48 bits of milliseconds, 16 of parts of one, 64 random bits. Thread-safe, fork-safe.

    Nothing in them is counted: a count would tell whoever gets two of them how many others got in between (X-09).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def new(self, prefix: str) -> str:
        random = os.urandom(10)
        stamp = (time.time_ns() << 16) // 1_000_000
        with self._lock:
            if stamp <= self._last:  # a coarse clock, or one that was set back: on by a step that nobody can guess
                stamp = self._last + 1 + int.from_bytes(random[8:], "big")
            self._last = stamp
        return f"{prefix}_{stamp:016x}{random[:8].hex()}"

    def salts(self, count: int) -> list[bytes]:
        pool = os.urandom(SALT_BYTES * count)
        return [pool[at : at + SALT_BYTES] for at in range(0, len(pool), SALT_BYTES)]


class CountingIds:
    """Repeatable ids and salts for tests, demos and golden files. Never for real data: the salts can be guessed."""

    def __init__(self, seed: str = "muniment") -> None:
        self._seed = seed
        self._count = 0
        self._lock = threading.Lock()

    def _next(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def new(self, prefix: str) -> str:
        return f"{prefix}_{self._seed}{self._next():08d}"

    def salts(self, count: int) -> list[bytes]:
        return [sha256(f"{self._seed}:{self._next()}".encode()).digest()[:SALT_BYTES] for _ in range(count)]


class TickingClock:
    """A clock that starts where it is told and moves a fixed step each time it is read."""

    def __init__(self, start: datetime | None = None, step: timedelta = timedelta(seconds=1)) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._step = step
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        with self._lock:
            now = self._now
            self._now = now + self._step
            return now

    def set(self, moment: datetime) -> None:
        with self._lock:
            self._now = moment
