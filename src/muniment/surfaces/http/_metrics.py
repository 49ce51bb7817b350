"""`/metrics`: counters of a server's processes, on a page for Prometheus.

The page is for callers from a network that the setting names, and for keys that administer the whole server. A process
counts in memory cells; with several workers these are in files that all of them map, and each sums them up.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import mmap
import os
import platform
import secrets
import sys
import threading
import time
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, get_args

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment import __version__
from muniment.core.outside.posix import fcntl, resource
from muniment.core.ports.engine import Reader, ReplicaState
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import SEGMENTS, VECTORS
from muniment.errors import Forbidden, MunimentError, UnknownRoute, WrongMethod
from muniment.handles.memory import Memory
from muniment.store.context import Context
from muniment.store.scrub import count_due
from muniment.surfaces.http._guard import Guard, is_passed_on
from muniment.surfaces.http.lanes.shares import Lane, LaneCounts
from muniment.surfaces.http.logs import LOGGER
from muniment.surfaces.http.settings import networks_of
from muniment.surfaces.http.telemetry import BUCKETS_S, METHODS, Done, Observer
from muniment.surfaces.operations.works import Works

__all__ = [
    "CELLS_MAX",
    "FAMILIES",
    "MEDIA_TYPE",
    "STARTED_S",
    "VARIABLE",
    "Cells",
    "Counted",
    "Family",
    "Look",
    "Metrics",
    "MetricsPage",
    "ProcessState",
    "StoreLooks",
    "WorkerFiles",
    "added",
    "family",
    "is_alive",
    "look_at",
    "process_state",
    "read_counted",
    "workers_dir",
    "written",
]

# -- the page -----------------------------------------------------------------------------------------


_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class MetricsPage:
    """An ASGI application behind the guard, which requires a key from remote callers."""

    def __init__(self, metrics: Metrics, setting: str, guard: Guard) -> None:
        self._metrics, self._guard, self._is_off = metrics, guard, setting.strip() == "off"
        self._networks = networks_of(setting)
        self._thread = ThreadPoolExecutor(1, "muniment-metrics")
        """Runs file reads and the wait for the first store check, so that they block no request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._let_in(Request(scope))
        body = await asyncio.get_running_loop().run_in_executor(self._thread, self._metrics.page)
        await Response(body, 200, _HEADERS, MEDIA_TYPE)(scope, receive, send)

    def close(self) -> None:
        """Wait for responses in progress."""
        self._thread.shutdown(wait=True)

    async def _let_in(self, request: Request) -> None:
        if self._is_off or request.url.path != "/metrics":
            raise UnknownRoute("nothing answers at that address")
        if request.method not in ("GET", "HEAD"):
            raise WrongMethod(f"{request.method:.20} is not taken there", details={"allowed": ["GET", "HEAD"]})
        if self._is_near(request):
            return
        if not (await self._guard.authenticate(request)).keeps_the_server:
            raise Forbidden(
                "this page is for those who keep the server",
                hint="ask with a key that has admin access to every tenant, or from a network that `metrics` names",
            )

    def _is_near(self, request: Request) -> bool:
        if request.client is None or is_passed_on(request):
            return False
        try:
            address = ipaddress.ip_address(request.client.host)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._networks)


# -- counting -----------------------------------------------------------------------------------------


GONE, FAILED = 499, 500
"""The statuses counted for a caller that disconnected, and for an unexpected error."""
_PUBLISHED_S = 1.0
_CELLS_OF_TIMES = len(BUCKETS_S) + 2
_OTHER = "other"


class Metrics:
    """The counts of one process. An observer of requests, in front of another one, if given."""

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
        """With other workers, publish this process's own state once a second."""
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
        """Count a finished request; without seconds, its duration is not meaningful."""
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
        """The cells of a new kind of request."""
        named = method if method in METHODS else _OTHER
        if named != method:
            # not cached under the sent method: there may be any number of those
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
        """The page in Prometheus's format."""
        self.publish()
        others, alive = ([], 0) if self._files is None else self._files.others()
        return written([*added([self.cells.counted(), others]), *self._of_the_server(alive + 1)])

    def publish(self) -> None:
        """Publish the state of this process."""
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
        """The number of long operations by status; empty if the store cannot be read, which is reported separately."""
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
    """One request in progress."""

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


# -- Prometheus format --------------------------------------------------------------------------------


MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def added(parts: Iterable[Iterable[Counted]]) -> list[Counted]:
    """Add up equal label sets of several processes."""
    sums: dict[tuple[str, tuple[str, ...]], tuple[float, ...]] = {}
    for part in parts:
        for name, labels, numbers in part:
            before = sums.get((name, labels))
            more = numbers if before is None else tuple(a + b for a, b in zip(before, numbers, strict=True))
            sums[name, labels] = more
    return [Counted(name, labels, numbers) for (name, labels), numbers in sums.items()]


def written(kept: Iterable[Counted]) -> bytes:
    """The page: every family that has a number, in a fixed order, each with its help and type."""
    by_name: dict[str, list[Counted]] = {}
    for each in kept:
        by_name.setdefault(each.name, []).append(each)
    lines = [line for family in FAMILIES if family.name in by_name for line in _family(family, by_name[family.name])]
    return "".join(f"{line}\n" for line in lines).encode()


def _family(family: Family, kept: list[Counted]) -> Iterator[str]:
    yield f"# HELP {family.name} {_one_line(family.help)}"
    yield f"# TYPE {family.name} {family.kind}"
    for each in sorted(kept, key=lambda one: one.labels):
        named = list(zip(family.labels, each.labels, strict=True))
        if family.kind == "histogram":
            yield from _histogram(family.name, named, each.numbers)
        else:
            yield f"{family.name}{_labels(named)} {_number(each.numbers[0])}"


def _histogram(name: str, named: list[tuple[str, str]], numbers: tuple[float, ...]) -> Iterator[str]:
    *counts, total = numbers
    bounds = (*map(_number, BUCKETS_S), "+Inf")
    for bound, count in zip(bounds, accumulate(counts), strict=True):
        yield f"{name}_bucket{_labels([*named, ('le', bound)])} {_number(count)}"
    yield f"{name}_sum{_labels(named)} {_number(total)}"
    yield f"{name}_count{_labels(named)} {_number(sum(counts))}"


def _labels(named: list[tuple[str, str]]) -> str:
    if not named:
        return ""
    told = (f'{name}="{_escaped(value)}"' for name, value in named)
    return "{" + ",".join(told) + "}"


def _one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escaped(value: str) -> str:
    return _one_line(value).replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


# -- the families -------------------------------------------------------------------------------------


class Family(NamedTuple):
    """One metric, or one for each set of labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    of: Literal["process", "server"] = "server"
    """`process` if each worker counts its own and the page has the sum; `server` if any worker knows it for all of
    them.
    """


FAMILIES: tuple[Family, ...] = (
    Family(
        "muniment_http_requests_total",
        "counter",
        "Requests that were answered, by the template of their address.",
        ("method", "route", "status"),
        "process",
    ),
    Family(
        "muniment_http_request_duration_seconds",
        "histogram",
        "How long requests took, from their head to the last byte of the answer; streams of events are not among them.",
        ("method", "route"),
        "process",
    ),
    Family(
        "muniment_http_errors_total",
        "counter",
        "Requests that were refused or failed, by the code of the error.",
        ("code",),
        "process",
    ),
    Family(
        "muniment_http_rate_limited_total",
        "counter",
        "Requests that were refused because their key or address asked too often.",
        (),
        "process",
    ),
    Family("muniment_http_requests_in_flight", "gauge", "Requests that are being answered.", (), "process"),
    Family("muniment_http_queue_waiting", "gauge", "Requests that wait for their turn, by lane.", ("lane",), "process"),
    Family(
        "muniment_http_queue_oldest_seconds",
        "gauge",
        "How long the oldest of those that wait has waited, by lane.",
        ("lane",),
        "process",
    ),
    Family("muniment_http_streams_open", "gauge", "Streams of changes and of progress that are open.", (), "process"),
    Family("muniment_operations", "gauge", "Long operations that are known, by how they stand.", ("status",)),
    Family("muniment_store_up", "gauge", "1 where the store answered the last look at it, 0 where it did not."),
    Family(
        "muniment_store_replica",
        "gauge",
        "1 for how the replica is that answers reads of the process that tells, 0 for how it is not.",
        ("state",),
    ),
    Family("muniment_store_bytes", "gauge", "The bytes that the store takes on its disk."),
    Family("muniment_store_entries", "gauge", "Entries of the ledger, of all tenants; on PostgreSQL about so many."),
    Family("muniment_store_tenants", "gauge", "Tenants of the store."),
    Family("muniment_store_scrubs_due", "gauge", "Forgets whose bytes wait for `muniment store scrub`."),
    Family(
        "muniment_index_lag_turns",
        "gauge",
        "Turns that search by meaning does not know yet (`muniment store reembed`). Words are indexed with the turn.",
    ),
    Family("muniment_store_looked_timestamp_seconds", "gauge", "When the figures of the store were taken."),
    Family("muniment_workers", "gauge", "Processes of this server that are alive."),
    Family("muniment_build_info", "gauge", "Always 1; its labels say what runs.", ("version", "python", "engine")),
    Family(
        "muniment_metrics_dropped_total",
        "counter",
        "What was not counted because too many different labels were counted already.",
        (),
        "process",
    ),
    Family("process_cpu_seconds_total", "counter", "CPU time of the server's processes.", (), "process"),
    Family("process_resident_memory_bytes", "gauge", "Resident memory of the server's processes.", (), "process"),
    Family("process_open_fds", "gauge", "Open file descriptors of the server's processes.", (), "process"),
    Family("process_start_time_seconds", "gauge", "When the process that answers was started."),
)
"""The metric families in page order."""

_BY_NAME = {each.name: each for each in FAMILIES}


def family(name: str) -> Family:
    return _BY_NAME[name]


# -- cells --------------------------------------------------------------------------------------------


CELLS_MAX = 1 << 15
"""A set of labels takes one cell, or one for each bucket: some thousands in all, given the possible labels."""
_BYTES = 8
LABELS, NUMBERS = ".labels", ".numbers"


class Counted(NamedTuple):
    """A set of labels and its numbers."""

    name: str
    labels: tuple[str, ...]
    numbers: tuple[float, ...]


class Cells:
    """The cells of this process. One thread increments a number; any may allocate new ones, or read."""

    def __init__(self, place: Path | None = None) -> None:
        """`place` is the name of the two files without their suffixes; without it, the numbers are private to this
        process.
        """
        self._lines: list[tuple[str, tuple[str, ...], int, int]] = []
        self._used = 0
        self._lock = threading.Lock()
        self._labels: Any = None
        self._mapped: mmap.mmap | None = None
        self.numbers: Any = array("d", bytes(_BYTES * CELLS_MAX))
        if place is not None:
            self._labels = place.with_name(place.name + LABELS).open("ab", buffering=0)
            file = os.open(place.with_name(place.name + NUMBERS), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)  # until this process ends, in any way
            os.ftruncate(file, _BYTES * CELLS_MAX)
            self._mapped = mmap.mmap(file, _BYTES * CELLS_MAX)  # keeps the file open, and so its lock
            os.close(file)
            self.numbers = memoryview(self._mapped).cast("d")

    def take(self, name: str, labels: tuple[str, ...] = (), count: int = 1) -> int | None:
        """Allocate `count` new cells and return the first; None if there are no more."""
        with self._lock:
            if self._used + count > CELLS_MAX:
                return None
            at = self._used
            self._used += count
            if self._labels is not None:
                self._labels.write(json.dumps([name, labels, at, count]).encode() + b"\n")
            self._lines.append((name, labels, at, count))
            return at

    def close(self) -> None:
        """Release the files, which stay: from now on this process counts as ended."""
        if self._mapped is not None:
            shared, self.numbers = self.numbers, array("d", self.numbers)
            shared.release()
            self._mapped.close()
            self._labels.close()
            self._mapped = self._labels = None

    def counted(self) -> Iterator[Counted]:
        """Yield all counts."""
        for name, labels, at, count in tuple(self._lines):
            yield Counted(name, labels, tuple(self.numbers[at : at + count]))


def read_counted(place: Path) -> list[Counted]:
    """The counts of another process so far."""
    numbers = memoryview(place.with_name(place.name + NUMBERS).read_bytes()).cast("d")
    found = []
    for line in place.with_name(place.name + LABELS).read_bytes().split(b"\n")[:-1]:
        name, labels, at, count = json.loads(line)
        found.append(Counted(name, tuple(labels), tuple(numbers[at : at + count])))
    return found


def is_alive(place: Path) -> bool:
    """True if the process of these files is running. It holds a lock that the system releases when it ends."""
    file = os.open(place.with_name(place.name + NUMBERS), os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


# -- several workers ----------------------------------------------------------------------------------


_PREFIX = "metrics-"
_ENDED = "metrics.ended"
_LOCK = "metrics.lock"
VARIABLE = "MUNIMENT_WORKERS_DIR"
"""The folder that the workers of one server share; set by the process that starts them."""


def workers_dir(environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder of this server's workers; None if this process is the whole server."""
    named = (os.environ if environ is None else environ).get(VARIABLE, "")
    return Path(named) if named else None


class WorkerFiles:
    """The files of this worker and of the others in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place = folder / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
        with self._locked(fcntl.LOCK_EX):
            self._fold()
            self.cells = Cells(self._place)

    def others(self) -> tuple[list[Counted], int]:
        """The counts of the other workers, including ended ones, and the number of others alive."""
        with self._locked(fcntl.LOCK_SH):
            ended, folded = self._ended()
            parts, alive = [ended], 0
            for place in self._places():
                if place == self._place or place.name in folded:
                    continue
                is_there = is_alive(place)
                alive += is_there
                kept = read_counted(place)
                parts.append(kept if is_there else [each for each in kept if _lasts(each)])
        return added(parts), alive

    def _places(self) -> list[Path]:
        found = (path.with_suffix("") for path in self._folder.glob(f"{_PREFIX}*{NUMBERS}"))
        return sorted(place for place in found if place.with_name(place.name + LABELS).exists())

    def _ended(self) -> tuple[list[Counted], frozenset[str]]:
        """The counts of ended workers, and the names of their files, which may still exist although already counted."""
        try:
            said = json.loads((self._folder / _ENDED).read_bytes())
        except FileNotFoundError:
            return [], frozenset()
        return [Counted(name, tuple(labels), tuple(numbers)) for name, labels, numbers in said["kept"]], frozenset(
            said["folded"]
        )

    def _fold(self) -> None:
        ended, folded = self._ended()
        gone = [place for place in self._places() if not is_alive(place)]
        new = [place for place in gone if place.name not in folded]
        if new:
            lasting = ([each for each in read_counted(place) if _lasts(each)] for place in new)
            said = {"kept": added([ended, *lasting]), "folded": [place.name for place in gone]}
            part = self._folder / f"{_ENDED}.part"
            part.write_bytes(json.dumps(said).encode())
            part.replace(self._folder / _ENDED)
        for place in gone:
            for ending in (NUMBERS, LABELS):
                place.with_name(place.name + ending).unlink(missing_ok=True)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        file = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, how)
            yield
        finally:
            os.close(file)


def _lasts(kept: Counted) -> bool:
    """True if the metric stays counted after its process ends."""
    return family(kept.name).kind != "gauge"


# -- the process --------------------------------------------------------------------------------------


STARTED_S = time.time()
"""The time this module was loaded, and so the server started."""
_PROC = Path("/proc/self")


class ProcessState(NamedTuple):
    cpu_s: float
    memory_bytes: int
    open_files: int


def process_state() -> ProcessState:
    """The process's current state. Without /proc, memory is its peak, and open files are unknown (0)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = used.ru_utime + used.ru_stime
    if not _PROC.is_dir():
        return ProcessState(cpu_s, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024), 0)
    pages = int((_PROC / "statm").read_text().split()[1])
    return ProcessState(cpu_s, pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(_PROC / "fd")))


# -- the store ----------------------------------------------------------------------------------------


EVERY_S = 15.0
REST = 9
_WAIT_S = 2.0
"""Seconds that the first caller waits for the first check."""
_SILENT_S = 10.0
"""A store that has not listed its tenants within this time counts as not answering."""


class Look(NamedTuple):
    """The store's state at one moment."""

    at_s: float
    up: bool
    size_bytes: int = 0
    entries: int = 0
    tenants: int = 0
    scrubs_due: int = 0
    lag_turns: int = 0


class _Turns(NamedTuple):
    count: int  # type: ignore[assignment] # the column's name


def look_at(ctx: Context, tenants: Sequence[str], now_s: float) -> Look:
    """Read the store's state, after it listed its tenants."""
    sizes = ctx.engine.sizes()
    embedder = ctx.embedder
    due = lag = 0
    for tenant_id in tenants:
        due += ctx.engine.read(tenant_id, count_due)
        if embedder is not None:
            lag += ctx.engine.read(tenant_id, partial(_lag, embedder=embedder.identity))
    return Look(now_s, True, sizes.size_bytes, sizes.entries, len(tenants), due, lag)


def _lag(reader: Reader, embedder: str) -> int:
    """Turns of the stored index that lack a vector of this embedder."""
    turns = sum(row.count for row in stream(reader, SEGMENTS, into=_Turns))
    return max(
        0, turns - sum(row.count for row in stream(reader, VECTORS, (("embedder", "=", embedder),), into=_Turns))
    )


class StoreLooks:
    """The last state, refreshed in the background on demand. Thread-safe."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._last: Look | None = None
        self._due_s = self._began_s = 0.0
        self._has_answered = False
        self._lock = threading.Lock()
        self._looking: threading.Thread | None = None

    def latest(self) -> Look | None:
        """The last known state; None if the first check is slow."""
        with self._lock:
            looking = self._looking
            if looking is None and time.monotonic() >= self._due_s:
                self._began_s, self._has_answered = time.monotonic(), False
                looking = self._looking = threading.Thread(target=self._look, name="muniment-metrics", daemon=True)
                looking.start()
        if looking is not None and self._last is None:
            looking.join(_WAIT_S)
        with self._lock:
            is_silent = self._looking is not None and not self._has_answered
            if is_silent and time.monotonic() - self._began_s > _SILENT_S:
                return (self._last or Look(time.time(), False))._replace(up=False)
            return self._last

    def close(self) -> None:
        """Wait for a check in progress."""
        with self._lock:
            looking = self._looking
        if looking is not None:
            looking.join()

    def _look(self) -> None:
        started_s = time.monotonic()
        try:
            tenants = self._ctx.engine.tenants()
            self._has_answered = True
            seen = look_at(self._ctx, tenants, time.time())
        except MunimentError as error:
            LOGGER.warning("the store cannot be looked at", extra={"said": error.to_dict()})
            seen = Look(time.time(), False)
        with self._lock:
            self._last = seen
            self._due_s = started_s + max(EVERY_S, REST * (time.monotonic() - started_s))
            self._looking = None
