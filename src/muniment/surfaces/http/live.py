"""Live changes for open streams: one watch on the store for all streams of this process.

Streams of the progress of long work are registered here as well: a stream ends with the key it was opened with. While
there is a stream, the store's mark is read a few times a second. If it moved, each watched user is checked once, for
all streams of that user. A slow stream delays no other: it leaves the watch, and when it reads again it catches up from
its position.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from muniment.core.ports.engine import Engine, Reader
from muniment.errors import Closed, MunimentError, RateLimited
from muniment.store.changes import begin, look
from muniment.store.positions import Standpoint, Who
from muniment.store.reports import Changes
from muniment.surfaces.http._guard import Caller
from muniment.surfaces.http.logs import LOGGER
from muniment.surfaces.operations.works import POLL_S as WORK_POLL_S
from muniment.surfaces.operations.works import Work, Works

__all__ = ["Live", "Stream"]

POLL_S = 0.2
REST = 9
"""The least pause between store checks, as a multiple of a check's duration: checking takes at most a tenth of the
time.
"""
HEARTBEAT_S = 15.0
WAITING_MAX = 16
"""The most changes queued for a stream; beyond them it has to catch up by itself."""
_RETRY_MS = 1000
_GRACE_S = 2.0
"""Seconds for which an ended stream may finish sending."""

T = TypeVar("T")


class _Look(NamedTuple):
    """The result of one check: the current position, and the changes."""

    at: Standpoint
    changes: Changes


class Stream:
    """A receiver of events, for as long as its key is valid."""

    def __init__(self, caller: Caller, authorization: str | None) -> None:
        self.caller, self.authorization = caller, authorization
        self.is_over = False
        self.outlasts = False
        """True if it continues while the server closes."""
        self.on_end: Callable[[], None] = _nothing
        self.moved = asyncio.Event()

    def end(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self.moved.set()
        self.on_end()

    async def wait(self, seconds: float) -> bool:
        """Wait until something has changed; False if nothing did in that time."""
        try:
            await asyncio.wait_for(self.moved.wait(), seconds)
        except TimeoutError:
            return False
        return True


class _Follower(Stream):
    """A stream of one user's changes."""

    def __init__(self, who: Who, position: str | None, caller: Caller, authorization: str | None) -> None:
        super().__init__(caller, authorization)
        self.who, self.position = who, position
        self.at: Standpoint | None = None
        """The position sent so far; None before the first."""
        self.is_joined = False
        self._waiting: deque[_Look] = deque()

    def tell(self, seen: _Look) -> bool:
        """Queue a result; False if the queue is full, and all of it is dropped."""
        self.is_joined = len(self._waiting) < WAITING_MAX
        if self.is_joined:
            self._waiting.append(seen)
        else:
            self._waiting.clear()
        self.moved.set()
        return self.is_joined

    async def take(self, seconds: float) -> _Look | None:
        """The next queued result; None if there is none."""
        if not self._waiting and self.is_joined and not self.is_over:
            self.moved.clear()
            if not await self.wait(seconds):
                return None
        return self._waiting.popleft() if self._waiting and not self.is_over else None


def _nothing() -> None:
    """Do nothing at the end of a stream that is not being sent."""


@dataclass(slots=True)
class _Watch:
    """A watched user, and the user's streams."""

    at: Standpoint
    streams: set[_Follower] = field(default_factory=set)


class Live:
    """The streams of one process. Everything but the checks runs on the event loop."""

    def __init__(
        self, engine: Engine, holds: Callable[[str | None], Caller | None], *, streams_max: int, per_key_max: int
    ) -> None:
        self._engine, self._holds = engine, holds
        self._streams_max, self._per_key_max = streams_max, per_key_max
        self._streams: set[Stream] = set()
        self._watches: dict[Who, _Watch] = {}
        self._turn: asyncio.Lock | None = None
        self._polling: asyncio.Task[None] | None = None
        self._mark = ""
        self._thread = ThreadPoolExecutor(1, "muniment-live")
        self.is_closing = False

    async def open(
        self, who: Who, position: str | None, caller: Caller, authorization: str | None, headers: Mapping[str, str]
    ) -> StreamingResponse:
        """Open a stream; errors in the request were already raised."""
        stream = _Follower(who, position, caller, authorization)
        self._seat(stream)
        is_open = False
        try:
            first = await self._catch_up(stream)
            is_open = True
        finally:
            if not is_open:
                self._leave(stream)
        self._keep_polling()
        return _Streaming(self._events(stream, first), headers, stream, self._leave)

    async def follow(
        self, works: Works, work_of: Callable[[], Work], stream: Stream, headers: Mapping[str, str]
    ) -> StreamingResponse:
        """Open a stream of the progress of one work, until that is finished."""
        operation_id = (await self._in_thread(work_of)).operation_id
        stream.outlasts = works.is_own(operation_id)
        self._seat(stream)
        self._keep_polling()
        loop = asyncio.get_running_loop()

        def tell() -> None:
            loop.call_soon_threadsafe(stream.moved.set)

        stop = works.watch(operation_id, tell)

        def leave(stream: Stream) -> None:
            stop()
            self._leave(stream)

        return _Streaming(_progress(stream, partial(self._in_thread, work_of)), headers, stream, leave)

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def end(self) -> None:
        """End the streams of changes. Streams of this process's own work continue: the server waits for it."""
        self.is_closing = True
        for stream in tuple(self._streams):
            if not stream.outlasts:
                stream.end()

    def close(self) -> None:
        """Close the watch, after the last stream has ended."""
        self.end()
        if self._polling is not None:
            self._polling.cancel()
        self._thread.shutdown(wait=True)

    def refuse_closing(self) -> None:
        if self.is_closing:
            raise Closed("the server is closing", hint="ask again in a while: nothing was looked at")

    def _seat(self, stream: Stream) -> None:
        self.refuse_closing()
        of_key = Counter(each.caller.key_id for each in self._streams)[stream.caller.key_id]
        if len(self._streams) >= self._streams_max or of_key >= self._per_key_max:
            raise RateLimited(
                f"{of_key} streams are open under this key, {len(self._streams)} in all",
                hint="close one, or ask without a stream: changes `after` the last position, a work as it stands",
                details={"retry_after_s": 5},
            )
        self._streams.add(stream)

    def _keep_polling(self) -> None:
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())

    def _leave(self, stream: Stream) -> None:
        stream.end()
        self._streams.discard(stream)
        if not isinstance(stream, _Follower):
            return
        watch = self._watches.get(stream.who)
        if watch is not None:
            watch.streams.discard(stream)
            if not watch.streams:
                del self._watches[stream.who]

    # -- one stream -----------------------------------------------------------------------------------

    async def _events(self, stream: _Follower, first: Changes) -> AsyncIterator[bytes]:
        yield b"retry: %d\n\n" % _RETRY_MS
        yield _event(first)
        while not stream.is_over:
            if not stream.is_joined:
                try:
                    changes = await self._catch_up(stream)
                except MunimentError as error:
                    LOGGER.warning("a stream cannot go on", extra={"said": error.to_dict()})
                    return
                if not changes.is_empty:
                    yield _event(changes)
                continue
            seen = await stream.take(HEARTBEAT_S)
            if seen is not None:
                stream.at = seen.at
                yield _event(seen.changes)
            elif stream.is_joined and not stream.is_over:
                yield b": still here\n\n"

    async def _catch_up(self, stream: _Follower) -> Changes:
        """Fetch the changes a stream has not been sent; once it has them all, it joins the watch in the same step."""
        async with self._lock():
            watch = self._watches.get(stream.who)
            own, theirs = await self._in_thread(partial(self._looked, stream, None if watch is None else watch.at))
            stream.at = own.at
            if watch is not None and theirs is not None:
                self._tell(stream.who, theirs)
            is_level = not own.changes.more and (theirs is None or not theirs.changes.more)
            if is_level and not stream.is_over:
                stream.is_joined = True
                self._watches.setdefault(stream.who, _Watch(own.at)).streams.add(stream)
            return own.changes

    def _looked(self, stream: _Follower, watched: Standpoint | None) -> tuple[_Look, _Look | None]:
        """At one moment: the changes beyond the stream's position, and beyond its user's watch."""
        who = stream.who

        def work(reader: Reader) -> tuple[_Look, _Look | None]:
            theirs = None if watched is None else _Look(*look(reader, who, watched))
            if stream.at is None:
                return _Look(*begin(reader, who, stream.position)), theirs
            return _Look(*look(reader, who, stream.at)), theirs

        return self._engine.read(who.tenant_id, work)

    # -- the watch ------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        try:
            while self._streams:
                started_s = time.monotonic()
                await self._tell_all()
                await asyncio.sleep(max(POLL_S, REST * (time.monotonic() - started_s)))
        finally:  # however the watch ends, no silent stream stays open
            for stream in tuple(self._streams):
                stream.end()

    async def _tell_all(self) -> None:
        try:
            self._end_the_refused()
            while await self._look_around():
                pass
        except Closed:
            self.end()
        except MunimentError as error:
            LOGGER.warning("changes cannot be seen", extra={"said": error.to_dict()})

    def _end_the_refused(self) -> None:
        """End the streams whose key is no longer valid."""
        held = {stream.authorization: self._holds(stream.authorization) for stream in self._streams}
        for stream in tuple(self._streams):
            if held[stream.authorization] != stream.caller:
                stream.end()

    async def _look_around(self) -> bool:
        """Send the streams new commits; returns whether there are more."""
        async with self._lock():
            watched = {who: watch.at for who, watch in self._watches.items()}
            self._mark, seen = await self._in_thread(partial(self._look_at, watched))
            for who, each in seen.items():
                self._tell(who, each)
            return any(each.changes.more for each in seen.values())

    def _look_at(self, watched: Mapping[Who, Standpoint]) -> tuple[str, dict[Who, _Look]]:
        mark = self._engine.mark()  # before the check: later commits move it again
        if mark == self._mark:
            return mark, {}
        return mark, {
            who: _Look(*self._engine.read(who.tenant_id, partial(_look, who=who, at=at))) for who, at in watched.items()
        }

    def _tell(self, who: Who, seen: _Look) -> None:
        watch = self._watches.get(who)
        if watch is None:
            return
        watch.at = seen.at
        if not seen.changes.is_empty:
            watch.streams = {stream for stream in watch.streams if stream.tell(seen)}
            if not watch.streams:
                del self._watches[who]

    def _lock(self) -> asyncio.Lock:
        """Allow one check at a time, including its consequences."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        return self._turn

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


def _look(reader: Reader, *, who: Who, at: Standpoint) -> tuple[Standpoint, Changes]:
    return look(reader, who, at)


def _event(changes: Changes) -> bytes:
    name = "reset" if changes.reset else "here" if changes.is_empty else "changed"
    return b"event: %s\nid: %s\ndata: %s\n\n" % (name.encode(), changes.position.encode(), changes.to_bytes())


async def _progress(stream: Stream, work_of: Callable[[], Awaitable[Work]]) -> AsyncIterator[bytes]:
    """Yield a work each time it changes. One of another process is polled."""
    before: Work | None = None
    quiet_s = 0.0
    while not stream.is_over:
        stream.moved.clear()
        work = await work_of()
        if work != before:
            yield b"event: %s\ndata: %s\n\n" % (work.status.encode(), work.to_bytes())
            before, quiet_s = work, 0.0
        if work.is_finished:
            return
        if not await stream.wait(WORK_POLL_S):
            quiet_s += WORK_POLL_S
        if quiet_s >= HEARTBEAT_S:
            yield b": still here\n\n"
            quiet_s = 0.0


class _Streaming(StreamingResponse):
    """A stream of events that cleans up however it ends, and is aborted if its end is not read."""

    def __init__(
        self, events: AsyncIterator[bytes], headers: Mapping[str, str], stream: Stream, leave: Callable[[Stream], None]
    ) -> None:
        super().__init__(events, 200, dict(headers) | {"X-Accel-Buffering": "no"}, "text/event-stream")
        self._stream, self._leave = stream, leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        now_s, stream = asyncio.get_running_loop().time, self._stream
        try:
            async with asyncio.timeout(_GRACE_S if stream.is_over else None) as limit:
                stream.on_end = lambda: limit.reschedule(now_s() + _GRACE_S)
                await super().__call__(scope, receive, send)
        except TimeoutError:
            LOGGER.info("a stream was broken off: what it was sent was not taken")
        finally:
            stream.on_end = _nothing
            self._leave(stream)
