"""Who is let in, and how often, over all processes of a server. The event loop never waits for the store here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from starlette.requests import Request

from muniment.core.outside.system import system_clock
from muniment.core.ports.engine import Engine
from muniment.errors import RateLimited, Unauthorized
from muniment.surfaces.http.access import OPEN, Caller, RateLimits, authenticate, caller_with
from muniment.surfaces.http.rates import Limit, note_refused, note_taken
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.processes.rates import SharedRates
from muniment.surfaces.processes.stored_keys import FRESH_S, StoredKeys, open_keys

__all__ = ["Admission"]


class Admission:
    """The keys and the limits of a server, as one of its processes has them."""

    def __init__(self, engine: Engine, settings: ServerSettings) -> None:
        self._settings = settings
        self._keys = open_keys(settings.keys, engine, system_clock)
        self._guesses = RateLimits(time.monotonic)
        self._guesses_per_minute = -(-settings.guesses_per_minute // settings.workers)
        is_shared = engine.is_walled_by_the_server or settings.workers > 1
        self._shared = SharedRates(engine, time.monotonic, _wall_ms) if is_shared else None
        self._rates = RateLimits(time.monotonic)
        self._thread = ThreadPoolExecutor(2, "muniment-admission")
        self._under_way: dict[str, asyncio.Future[None]] = {}

    async def caller(self, request: Request, peer: str) -> Caller:
        """Whose key it is, within how often they may ask; notes what is left of that, for the answer to tell."""
        if isinstance(self._keys, StoredKeys) and self._keys.age_s >= FRESH_S:
            await self._once("keys", self._keys.refresh)
        try:
            caller = authenticate(self._keys, request.headers.get("authorization"))
        except Unauthorized:
            with _noted(request, "address", self._guesses_per_minute):
                left = self._guesses.take(peer, self._guesses_per_minute)
                note_taken(request.scope, "address", self._guesses_per_minute, left)
            raise
        self._look_ahead()
        per_minute = caller.requests_per_minute or self._settings.requests_per_minute
        with _noted(request, "key", per_minute):
            note_taken(request.scope, "key", per_minute, await self._take(caller.key_id, per_minute))
        return caller

    def holder(self, authorization: str | None) -> Caller | None:
        """Whose key it is, as long as it holds; of keys in the store, by what was read of them within a second."""
        if not self._settings.asks_for_keys:
            return OPEN
        try:
            if isinstance(self._keys, StoredKeys):
                self._look_ahead()
                return caller_with(self._keys.held, authorization)
            return authenticate(self._keys, authorization)
        except Unauthorized:
            return None

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    def _look_ahead(self) -> None:
        """Have the keys looked at before it is time, so that a request seldom waits for that."""
        if isinstance(self._keys, StoredKeys) and self._keys.age_s >= FRESH_S / 2:
            self._begin("keys", self._keys.refresh)

    async def _take(self, name: str, per_minute: int) -> float:
        """Take one, and answer what is left."""
        if self._shared is None:
            return self._rates.take(name, per_minute)
        while not self._shared.take(name, per_minute):
            await self._once(f"rate {name}", partial(self._shared.fetch, name, per_minute))
        return self._shared.left(name)

    async def _once(self, what: str, call: Callable[[], None]) -> None:
        """Have it done in a thread; whoever wants the same meanwhile waits for that."""
        await asyncio.shield(self._begin(what, call))

    def _begin(self, what: str, call: Callable[[], None]) -> asyncio.Future[None]:
        begun = self._under_way.get(what)
        if begun is None:
            begun = asyncio.get_running_loop().run_in_executor(self._thread, call)
            self._under_way[what] = begun
            begun.add_done_callback(partial(self._ended, what))
        return begun

    def _ended(self, what: str, done: asyncio.Future[None]) -> None:
        self._under_way.pop(what, None)
        if not done.cancelled():
            done.exception()  # whoever waits for it is told; where nobody does, the next request asks again


@contextmanager
def _noted(request: Request, limit: Limit, per_minute: int) -> Iterator[None]:
    try:
        yield
    except RateLimited as refused:
        note_refused(request.scope, limit, per_minute, refused)
        raise


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
