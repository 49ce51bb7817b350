"""What a server says of itself without being asked who asks: health, readiness, its own description."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from muniment.core.canonical import canonical_bytes
from muniment.errors import MunimentError, WrongMethod
from muniment.handles.memory import Memory
from muniment.surfaces.http.lanes.shares import Lane, LaneCounts

__all__ = ["Plain", "ServerStatus"]


class Plain(NamedTuple):
    status: int
    media: str
    body: bytes


STORE_SECONDS_MAX = 5.0
"""A store that takes longer to say who its tenants are does not answer."""


class ServerStatus:
    """Alive: the process answers. Ready: the store answers too, requests get through, and nobody has begun to close."""

    def __init__(
        self,
        memory: Memory,
        describe: Callable[[], bytes],
        describe_core: Callable[[], bytes],
        wait_seconds_max: float = 10,
    ) -> None:
        self._memory = memory
        self._wait_seconds_max = wait_seconds_max
        self.queue: Callable[[], Mapping[Lane, LaneCounts]] = dict
        """The lanes of requests; told by the gateway."""
        self._pages: dict[tuple[str, ...], Plain | Callable[[], Plain]] = {
            ("v1", "health"): Plain(200, "application/json", b'{"status":"ok"}'),
            ("v1", "ready"): self._ready,
            ("v1", "openapi.json"): lambda: Plain(200, "application/json", describe()),
            ("v1", "openapi-core.json"): lambda: Plain(200, "application/json", describe_core()),
        }
        self.is_closing = False
        self._thread = ThreadPoolExecutor(1, "muniment-status")
        """For those who ask whether the server is ready: they wait behind nobody else."""
        self._documents: dict[Callable[[], Plain], asyncio.Future[Plain]] = {}

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    def page(self, method: str, segments: tuple[str, ...]) -> Plain | Callable[[], Plain] | None:
        """What answers at that address, or the answer where nothing has to be asked; None where it is none of these."""
        page = self._pages.get(segments)
        if page is not None and method not in ("GET", "HEAD"):
            raise WrongMethod(f"{method:.20} is not taken there", details={"allowed": ["GET", "HEAD"]})
        return page

    async def answer(self, page: Plain | Callable[[], Plain]) -> Plain:
        """The page. A store that does not answer is not waited for. A document is made once, in a thread of its own."""
        if isinstance(page, Plain):
            return page
        if page != self._ready:
            made = self._documents.get(page)
            if made is None:
                made = self._documents[page] = asyncio.ensure_future(asyncio.to_thread(page))
            return await asyncio.shield(made)
        asked = asyncio.get_running_loop().run_in_executor(self._thread, page)
        try:
            async with asyncio.timeout(STORE_SECONDS_MAX):
                return await asked
        except TimeoutError:
            return _not_ready("store_silent")

    def _ready(self) -> Plain:
        if self.is_closing:
            return _not_ready("closing")
        if any(lane.oldest_s > self._wait_seconds_max for lane in self.queue().values()):
            return _not_ready("requests_wait")
        try:
            self._memory.store.tenants()
        except MunimentError as error:
            return _not_ready(error.code)
        return Plain(200, "application/json", b'{"status":"ready"}')


def _not_ready(reason: str) -> Plain:
    return Plain(503, "application/json", canonical_bytes({"status": "not ready", "reason": reason}))
