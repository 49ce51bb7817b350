"""Requests that wait for a thread: how many, and since when the oldest of them does."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import NamedTuple, TypeVar

__all__ = ["LaneState", "Waiting"]

T = TypeVar("T")


class LaneState(NamedTuple):
    """One lane as it stands."""

    waiting: int
    oldest_s: float
    """How long the oldest that waits has waited; 0 where none does."""


class Waiting:
    """Who waits in which lane. Asked from any thread."""

    def __init__(
        self, lanes: tuple[str, ...] = ("short", "long"), clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock_s = clock_s
        self._numbers = itertools.count()
        self._lanes: Mapping[str, dict[int, float]] = {lane: {} for lane in lanes}

    async def in_turn(self, lane: str, pool: Executor, call: Callable[[], T]) -> T:
        """Have `call` carried out in a thread; until one begins with it, it waits. Who stops asking waits no longer."""
        waiting, number = self._lanes[lane], next(self._numbers)
        waiting[number] = self._clock_s()

        def begun() -> T:
            waiting.pop(number, None)
            return call()

        try:
            return await asyncio.get_running_loop().run_in_executor(pool, begun)
        finally:
            waiting.pop(number, None)

    def snapshot(self) -> dict[str, LaneState]:
        now_s = self._clock_s()
        since = {lane: list(waiting.values()) for lane, waiting in self._lanes.items()}
        return {lane: LaneState(len(each), max(0.0, now_s - min(each, default=now_s))) for lane, each in since.items()}
