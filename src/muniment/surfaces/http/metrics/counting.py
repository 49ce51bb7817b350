"""Counting: one object that sees every request of a process, and tells what it and the other workers have counted.

A request costs it a look into a dictionary and four numbers.
"""

from __future__ import annotations

import asyncio
import platform
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, get_args

from starlette.requests import ClientDisconnect

from muniment import __version__
from muniment.core.ports.engine import ReplicaState
from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.surfaces.http.lanes.shares import Lane, LaneCounts
from muniment.surfaces.http.metrics.cells import Cells, Counted
from muniment.surfaces.http.metrics.families import BUCKETS_S, METHODS
from muniment.surfaces.http.metrics.page import added, written
from muniment.surfaces.http.metrics.process import STARTED_S, process_state
from muniment.surfaces.http.metrics.store_look import StoreLooks
from muniment.surfaces.http.metrics.workers import WorkerFiles
from muniment.surfaces.http.telemetry import Done, Observer
from muniment.surfaces.operations.works import Works

__all__ = ["Metrics"]

GONE, FAILED = 499, 500
"""What is counted of a request whose caller went away, and of one that nobody foresaw."""
_PUBLISHED_S = 1.0
_CELLS_OF_TIMES = len(BUCKETS_S) + 2
_OTHER = "other"


class Metrics:
    """What one process has counted. An observer of requests, in front of the one it is given, if any."""

    def __init__(self, memory: Memory, works: Works, inner: Observer | None, workers_dir: Path | None) -> None:
        self._memory, self._works, self._inner = memory, works, inner
        self._files = None if workers_dir is None else WorkerFiles(workers_dir)
        self.cells = Cells() if self._files is None else self._files.cells
        self._routes: dict[tuple[str, str, int], tuple[int, int]] = {}
        self._codes: dict[str, int] = {}
        self._lanes: dict[str, tuple[int, int]] = {}
        self._looks = StoreLooks(memory._ctx)
        self.queue: Callable[[], Mapping[Lane, LaneCounts]] = dict
        self.streams: Callable[[], int] = int
        self._nowhere = self._cell("muniment_metrics_dropped_total")
        self._in_flight = self._cell("muniment_http_requests_in_flight")
        self._limited = self._cell("muniment_http_rate_limited_total")
        self._streams_open = self._cell("muniment_http_streams_open")
        self._process = [
            self._cell(name)
            for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds")
        ]
        self._ended = threading.Event()
        self._publishing: threading.Thread | None = None

    def start(self) -> None:
        """Where there are other workers: put down once a second what only this one knows."""
        if self._files is not None and self._publishing is None:
            self._publishing = threading.Thread(target=self._publish_on, name="muniment-publish", daemon=True)
            self._publishing.start()

    def close(self) -> None:
        self._ended.set()
        if self._publishing is not None:
            self._publishing.join()
        self._looks.close()
        self.cells.close()

    # -- requests -------------------------------------------------------------------------------------

    def request(self, method: str, headers: Mapping[str, str]) -> _Request:
        return _Request(self, method, None if self._inner is None else self._inner.request(method, headers))

    def begin(self) -> None:
        self.cells.numbers[self._in_flight] += 1

    def end(self, method: str, route: str, status: int, seconds: float | None, code: str | None) -> None:
        """Count a request that is over; without seconds, how long it took says nothing."""
        numbers = self.cells.numbers
        numbers[self._in_flight] -= 1
        places = self._routes.get((method, route, status)) or self._new_route(method, route, status)
        numbers[places[0]] += 1
        if places[1] >= 0 and seconds is not None:
            numbers[places[1] + bisect_left(BUCKETS_S, seconds)] += 1
            numbers[places[1] + _CELLS_OF_TIMES - 1] += seconds
        if code is not None:
            if code not in self._codes:
                self._codes[code] = self._cell("muniment_http_errors_total", (code,))
            numbers[self._codes[code]] += 1
            if status == 429:
                numbers[self._limited] += 1

    def _new_route(self, method: str, route: str, status: int) -> tuple[int, int]:
        """The cells of requests of a kind that was not seen before."""
        named = method if method in METHODS else _OTHER
        if named != method:
            # not kept under the word that was sent: there are any number of those
            return self._routes.get((named, route, status)) or self._new_route(named, route, status)
        times = next((at for (m, r, _), (_, at) in self._routes.items() if (m, r) == (named, route)), None)
        if times is None:
            taken = self.cells.take("muniment_http_request_duration_seconds", (named, route), _CELLS_OF_TIMES)
            times = -1 if taken is None else taken
        count = self._cell("muniment_http_requests_total", (named, route, str(status)))
        self._routes[named, route, status] = (count, times)
        return count, times

    def _cell(self, name: str, labels: tuple[str, ...] = ()) -> int:
        taken = self.cells.take(name, labels)
        return self._nowhere if taken is None else taken

    # -- the page -------------------------------------------------------------------------------------

    def page(self) -> bytes:
        """All that is known, as Prometheus reads it."""
        self.publish()
        others, alive = ([], 0) if self._files is None else self._files.others()
        return written([*added([self.cells.counted(), others]), *self._of_the_server(alive + 1)])

    def publish(self) -> None:
        """Put down how this process stands."""
        numbers = self.cells.numbers
        for at, value in zip(self._process, process_state(), strict=True):
            numbers[at] = value
        numbers[self._streams_open] = self.streams()
        for lane, counts in self.queue().items():
            if lane not in self._lanes:
                names = ("muniment_http_queue_waiting", "muniment_http_queue_oldest_seconds")
                count, age = (self._cell(name, (lane,)) for name in names)
                self._lanes[lane] = count, age
            at_count, at_age = self._lanes[lane]
            numbers[at_count], numbers[at_age] = counts.waiting, counts.oldest_s

    def _publish_on(self) -> None:
        while not self._ended.wait(_PUBLISHED_S):
            self.publish()

    def _standing(self) -> Counter[str]:
        """How many long operations stand how; none where the store cannot be asked, which is told beside it."""
        with suppress(MunimentError):
            return Counter(work.status for work in self._works.list())
        return Counter()

    def _of_the_server(self, workers: int) -> Iterator[Counted]:
        def one(name: str, value: float, *labels: str) -> Counted:
            return Counted(name, labels, (float(value),))

        yield one("muniment_workers", workers)
        yield one("process_start_time_seconds", STARTED_S)
        info = self._memory.info
        yield one("muniment_build_info", 1, __version__, platform.python_version(), info.name)
        for state in ("none", *get_args(ReplicaState)):
            yield one("muniment_store_replica", state == (info.replica or "none"), state)
        standing = self._standing()
        for status in ("running", "done", "failed", "interrupted"):
            yield one("muniment_operations", standing[status], status)
        look = self._looks.latest()
        if look is None:
            return
        yield one("muniment_store_up", look.up)
        yield one("muniment_store_looked_timestamp_seconds", look.at_s)
        if look.up:
            yield one("muniment_store_bytes", look.size_bytes)
            yield one("muniment_store_entries", look.entries)
            yield one("muniment_store_tenants", look.tenants)
            yield one("muniment_store_scrubs_due", look.scrubs_due)
            yield one("muniment_index_lag_turns", look.lag_turns)


class _Request:
    """One request while it is answered."""

    __slots__ = ("_inner", "_is_over", "_method", "_metrics", "_span")

    def __init__(self, metrics: Metrics, method: str, inner: Any) -> None:
        self._metrics, self._method, self._inner = metrics, method, inner
        self._is_over = False
        self._span: Any = None

    def __enter__(self) -> _Request:
        self._metrics.begin()
        if self._inner is not None:
            self._span = self._inner.__enter__()
        return self

    def end(self, route: str, done: Done) -> None:
        self._is_over = True
        seconds = None if done.is_stream else done.seconds
        self._metrics.end(self._method, route, done.status, seconds, done.code)
        if self._span is not None:
            self._span.end(route, done)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._is_over:
            is_gone = kind is not None and issubclass(kind, ClientDisconnect | asyncio.CancelledError)
            self._metrics.end(self._method, "-", GONE if is_gone else FAILED, None, None if is_gone else "error")
        if self._inner is not None:
            self._inner.__exit__(kind, error, traceback)
