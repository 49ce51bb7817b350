"""Runs requests in threads, in the order that `shares` decides, until they finish, time out or lose their caller.

Callers never wait for a thread that does not stop: they are answered at the deadline, and whatever the thread does
after it is rolled back (`core.limits`). While a request of the least-served tenant runs, others pause at points where
they hold no shared resource; long requests also pause while quick ones run, so that they do not compete for the
interpreter. A request pauses for at most three times as long as it has run.
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
"""The longest single pause of a long request for quick ones."""
_PAUSES = 3.0
"""The limit on a long request's pauses for quick ones, as a multiple of its running time."""
_LOOKS_S = 0.15
"""Seconds until the first check of a quick request's usage; each further check comes after twice as long."""
_WALL_SHARE = 0.1
"""The share of elapsed time that counts as used while the processor waited: for a database server, a lock."""
_INTERRUPTS_S = (0.0, 0.05, 0.25, 1.0, 5.0)
"""When to interrupt the statement of a stopped request, repeated in case one was about to begin."""


class Who:
    """The owner of a request."""

    __slots__ = ("caller", "route", "tenant")

    def __init__(self, tenant: str, caller: str, route: str) -> None:
        self.tenant, self.caller, self.route = tenant, caller, route

    def part(self) -> Who:
        """The owner of a further part of a long answer."""
        return Who(self.tenant, self.caller, f"{self.route} part")


Gone = Callable[[Callable[[], None]], Callable[[], None]]
"""Takes the function to call when the caller has disconnected, and returns the one that cancels it."""


class _Turn(Cancellation):
    """A job's running work, which can be stopped and paused."""

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
        """The time used so far, read from another thread."""
        passed_s = self.runs_for(now_s) - self.paused_s
        if self.clock is None:
            return passed_s
        return max(time.clock_gettime(self.clock) - self.began_cpu_s, _WALL_SHARE * passed_s)


class Lanes:
    """The threads of a server, and the scheduling of requests."""

    def __init__(self, limits: Limits, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._shares, self._clock_s = Shares(limits), clock_s
        self._lock = threading.Lock()
        self._rank = 2
        self._calm = (threading.Event(), threading.Event())
        """Set while no least-served request runs; set while no quick one runs, either."""
        for each in self._calm:
            each.set()
        count = limits.quick + limits.long + 1 + limits.work + limits.moved
        self._threads = ThreadPoolExecutor(count, "muniment-http")
        self._stopper = ThreadPoolExecutor(2, "muniment-stop")
        self._is_closed = False

    def snapshot(self) -> dict[Lane, LaneCounts]:
        """The state of each lane: waiting and running requests, wait and running times."""
        with self._lock:
            return self._shares.counts(self._clock_s())

    def aside(self, call: Callable[[], None]) -> None:
        """Run something short in the background."""
        if self._is_closed:
            call()
        else:
            self._stopper.submit(call)

    def close(self) -> None:
        """Wait for work in progress."""
        self._is_closed = True
        self._threads.shutdown(wait=True)
        self._stopper.shutdown(wait=True)

    # -- on the event loop ----------------------------------------------------------------------------

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
        """Run `call` in a thread when it is its turn, and return its result.

        After `seconds`, waiting included, it is stopped with the error that `late` makes; also when the caller has
        `gone`. A stopped call has written nothing, unless it consists of many commits (`settles=False`).
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
                self._stop(job)  # the event loop gave it up: the server is closing

    def _stop(self, job: _Job) -> None:
        """Remove a waiting job, or interrupt the statement that it runs."""
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
        """Move a job that has used more than a quick one may out of the quick lane."""
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
        """Update the events that paused requests wait for; under the lock."""
        if self._rank == self._shares.rank:
            return
        self._rank = self._shares.rank
        for rank, calm in enumerate(self._calm):
            if self._rank > rank:
                calm.set()
            else:
                calm.clear()

    def goes_before(self, job: _Job) -> bool:
        """True if something of a higher priority is running."""
        return self._rank < Shares.rank_of(job)

    def pause(self, job: _Job) -> None:
        """Pause briefly for the least-served requests, and a long request for quick ones."""
        now_s = self._clock_s()
        ran_s = job.runs_for(now_s) - job.paused_s
        wait_s = min(_PAUSE_S, _PAUSES * ran_s - job.paused_s)
        if wait_s > 0:
            self._calm[Shares.rank_of(job) - 1].wait(wait_s)
            job.paused_s += self._clock_s() - now_s

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run work of an outside thread that gives way to quick requests."""
        job = _Job("", "", "", lane="work", started_s=self._clock_s())
        with cancellable(_Turn(self, job, settles=False)):
            yield


def _tell(loop: asyncio.AbstractEventLoop, deliver: Callable[[Future[Any]], None], future: Future[Any]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(deliver, future)


def _has_gone() -> MunimentError:
    return Stopped("whoever asked has gone")
