"""Requests carried out in threads, in the order that `shares` decides, until they are done, too late or wanted no more.

Nobody waits for a thread that does not stop: whoever asked is answered at the deadline, and what the thread does after
it is rolled back (`core.limits`). While a request runs of who has had least, others wait where they hold nothing
that anybody needs, and long ones so while quick ones run: the interpreter is not shared with them then. They wait at
most three times as long as they have run.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from muniment.core.limits import Cancellation, cancellable
from muniment.errors import MunimentError, Stopped
from muniment.surfaces.http.lanes.shares import Job, Lane, LaneCounts, Limits, Shares

__all__ = ["Gone", "Lanes", "Who"]

T = TypeVar("T")

_PAUSE_S = 0.02
"""The longest that a long request waits at one place for quick ones."""
_PAUSES = 3.0
"""How much longer than it has run a long request may have waited for quick ones, at most."""
_LOOKS_S = 0.15
"""After this time it is looked what a quick request has taken, and then each time after twice as long."""
_WALL_SHARE = 0.1
"""Of the time that has passed, what counts as taken where the processor waited: for a database server, a lock."""
_INTERRUPTS_S = (0.0, 0.05, 0.25, 1.0, 5.0)
"""When the statement of a stopped request is broken off, and again where it was just about to begin."""


class Who:
    """Whose request it is."""

    __slots__ = ("caller", "route", "tenant")

    def __init__(self, tenant: str, caller: str, route: str) -> None:
        self.tenant, self.caller, self.route = tenant, caller, route

    def part(self) -> Who:
        """Of a further part of a long answer."""
        return Who(self.tenant, self.caller, f"{self.route} part")


Gone = Callable[[Callable[[], None]], Callable[[], None]]
"""Takes what is to be called when the caller has gone, and answers what to call when that matters no more."""


class _Turn(Cancellation):
    """The work of a job: it can be stopped, and kept waiting."""

    def __init__(self, lanes: Lanes, job: _Job, *, settles: bool) -> None:
        super().__init__(settles=settles)
        self._lanes, self._job = lanes, job

    def check(self, *, can_wait: bool = False) -> None:
        super().check()
        if can_wait and self._lanes.goes_before(self._job):
            self._lanes.pause(self._job)
            super().check()


@dataclass(eq=False)
class _Job(Job):
    call: Callable[[], Any] = field(default=lambda: None)
    done: Callable[[Future[Any]], None] = field(default=lambda _: None)
    cancellation: Cancellation = field(default_factory=Cancellation)
    clock: int | None = None
    """The clock of the thread that runs it."""
    began_cpu_s: float = 0.0
    used_s: float = 0.0
    paused_s: float = 0.0
    is_done: bool = False

    def taken_s(self, now_s: float) -> float:
        """What it has taken so far, looked at from another thread."""
        passed_s = self.runs_for(now_s) - self.paused_s
        if self.clock is None:
            return passed_s
        return max(time.clock_gettime(self.clock) - self.began_cpu_s, _WALL_SHARE * passed_s)


class Lanes:
    """The threads of a server, and whose turn it is."""

    def __init__(self, limits: Limits, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._shares, self._clock_s = Shares(limits), clock_s
        self._lock = threading.Lock()
        self._rank = 2
        self._calm = (threading.Event(), threading.Event())
        """Whether nobody runs who has had least; whether nothing quick runs, either."""
        for each in self._calm:
            each.set()
        count = limits.quick + limits.long + 1 + limits.work + limits.moved
        self._threads = ThreadPoolExecutor(count, "muniment-http")
        self._stopper = ThreadPoolExecutor(2, "muniment-stop")
        self._is_closed = False

    def snapshot(self) -> dict[Lane, LaneCounts]:
        """Each lane as it stands: what waits, what runs, how long it waited, what it took."""
        with self._lock:
            return self._shares.counts(self._clock_s())

    def aside(self, call: Callable[[], None]) -> None:
        """Something short that nobody waits for."""
        if self._is_closed:
            call()
        else:
            self._stopper.submit(call)

    def close(self) -> None:
        """Wait for what is under way."""
        self._is_closed = True
        self._threads.shutdown(wait=True)
        self._stopper.shutdown(wait=True)

    # -- in the loop ----------------------------------------------------------------------------------

    async def run(
        self,
        who: Who,
        call: Callable[[], T],
        *,
        lane: Lane | None = None,
        seconds: float | None = None,
        late: Callable[[], MunimentError] = lambda: Stopped("it took too long"),
        gone: Gone | None = None,
        settles: bool = True,
    ) -> T:
        """What `call` answers, in a thread, when it is its turn.

        After so many `seconds`, waiting included, it is stopped with the error that `late` makes; so it is when whoever
        asked has `gone`. What is stopped has written nothing, unless it is made of many commits (`settles=False`).
        """
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[T] = loop.create_future()
        job = _Job(who.tenant, who.caller, who.route, call=call)
        job.cancellation = _Turn(self, job, settles=settles)
        looks: list[asyncio.TimerHandle] = []

        def deliver(future: Future[Any]) -> None:
            if answered.done():
                return
            error = future.exception()
            if error is None:
                answered.set_result(future.result())
            else:
                answered.set_exception(error)

        def stop(error: Callable[[], MunimentError]) -> None:
            if job.cancellation.stop(error) and not answered.done():
                answered.set_exception(error())
                self._stop(job)

        def look(after_s: float) -> None:
            if not job.is_done and job.lane == "quick":
                self._look(job)
                looks[:] = [loop.call_later(after_s, look, 2 * after_s)]

        job.done = lambda future: _tell(loop, deliver, future)
        ended = None if gone is None else gone(lambda: stop(_has_gone))
        timer = None if seconds is None else loop.call_later(seconds, stop, late)
        try:
            with self._lock:
                self._shares.enter(job, self._clock_s(), lane=lane)
            self._start_next()
            looks.append(loop.call_later(_LOOKS_S, look, 2 * _LOOKS_S))
            return await answered
        finally:
            for handle in (timer, *looks):
                if handle is not None:
                    handle.cancel()
            if ended is not None:
                ended()
            if not job.is_done and job.cancellation.stop(_has_gone):
                self._stop(job)  # the loop gave it up: the server closes

    def _stop(self, job: _Job) -> None:
        """Take it out where it waits, or break off the statement that it runs."""
        with self._lock:
            if self._shares.leave(job):
                job.is_done = True
                return
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if not job.is_done:
                self.aside(job.cancellation.interrupt)

        for after_s in _INTERRUPTS_S:
            loop.call_later(after_s, interrupt)

    def _look(self, job: _Job) -> None:
        """Move a job out of the quick lane that has taken more than a quick one may."""
        with self._lock:
            now_s = self._clock_s()
            if job.started_s is None or job.is_done or job.taken_s(now_s) <= self._shares.limits.quick_s:
                return
            is_moved = self._shares.move(job, job.taken_s(now_s))
            self._tell_calm()
        if is_moved:
            self._start_next()

    # -- in any thread --------------------------------------------------------------------------------

    def _start_next(self) -> None:
        while True:
            with self._lock:
                job = cast("_Job | None", self._shares.next(self._clock_s()))
                self._tell_calm()
            if job is None:
                return
            self._threads.submit(self._carry_out, job).add_done_callback(partial(self._finish, job))

    @staticmethod
    def _carry_out(job: _Job) -> Any:
        job.began_cpu_s = time.thread_time()
        if hasattr(time, "pthread_getcpuclockid"):
            job.clock = time.pthread_getcpuclockid(threading.get_ident())
        try:
            with cancellable(job.cancellation):
                job.cancellation.check()
                return job.call()
        finally:
            job.used_s = time.thread_time() - job.began_cpu_s

    def _finish(self, job: _Job, future: Future[Any]) -> None:
        with self._lock:
            now_s = self._clock_s()
            job.is_done = True
            passed_s = job.runs_for(now_s) - job.paused_s
            self._shares.finish(job, max(job.used_s, _WALL_SHARE * passed_s), now_s)
            self._tell_calm()
        self._start_next()
        job.done(future)

    def _tell_calm(self) -> None:
        """What others wait for, if they can; under the lock."""
        if self._rank == self._shares.rank:
            return
        self._rank = self._shares.rank
        for rank, calm in enumerate(self._calm):
            if self._rank > rank:
                calm.set()
            else:
                calm.clear()

    def goes_before(self, job: _Job) -> bool:
        """Does something run that goes before this one?"""
        return self._rank < Shares.rank_of(job)

    def pause(self, job: _Job) -> None:
        """Let those go first who have had least, and quick requests before long ones: for a moment."""
        now_s = self._clock_s()
        ran_s = job.runs_for(now_s) - job.paused_s
        wait_s = min(_PAUSE_S, _PAUSES * ran_s - job.paused_s)
        if wait_s > 0:
            self._calm[Shares.rank_of(job) - 1].wait(wait_s)
            job.paused_s += self._clock_s() - now_s

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Work of a thread of somebody else's that lets quick requests go first."""
        job = _Job("", "", "", lane="work", started_s=self._clock_s())
        with cancellable(_Turn(self, job, settles=False)):
            yield


def _tell(loop: asyncio.AbstractEventLoop, deliver: Callable[[Future[Any]], None], future: Future[Any]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(deliver, future)


def _has_gone() -> MunimentError:
    return Stopped("whoever asked has gone")
