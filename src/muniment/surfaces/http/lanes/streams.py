"""A long answer, part by part: each part is made on demand, in a lane, and none after its reader has gone."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

from muniment.errors import MunimentError
from muniment.surfaces.http._calls import problem_line
from muniment.surfaces.http.lanes.running import Lanes, Who

__all__ = ["parts_of"]


class _Parts:
    """An iterator read by one thread at a time, and closed by the last user."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._is_ended = False

    def next(self) -> bytes:
        """The next part; empty after the last."""
        with self._lock:
            try:
                return b"" if self._is_ended else next(self._parts, b"")
            finally:
                self._close_ended()

    def end(self) -> None:
        self._is_ended = True
        if self._lock.acquire(blocking=False):
            try:
                self._close_ended()
            finally:
                self._lock.release()

    def _close_ended(self) -> None:
        close = getattr(self._parts, "close", None)
        if self._is_ended and close is not None:
            close()


async def parts_of(lanes: Lanes, who: Who, parts: Iterator[bytes], **how: Any) -> AsyncIterator[bytes]:
    """The parts of an answer that has begun; `how` is passed to `Lanes.run` for each. An error is the last line,
    `{"problem": …}`.
    """
    held = _Parts(parts)
    try:
        while True:
            try:
                part = await lanes.run(who, held.next, lane="long", **how)
            except MunimentError as error:  # in the queue, or too late
                yield problem_line(error)
                return
            if not part:
                return
            yield part
    finally:
        lanes.aside(held.end)
