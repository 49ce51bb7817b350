"""Long work: carried out beside the requests, with progress that can be watched, and a result that can be fetched.

A work lives in the process that carries it out. All of them can be started again after a crash: they take up where they
were, or find nothing left to do.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from muniment.core.instants import format_instant
from muniment.core.ports.outside import Clock, Ids
from muniment.core.record import Absent, Count, JsonObject, JsonValue, Record, Timestamp
from muniment.errors import MunimentError, NotFound, StorageBusy

__all__ = ["Work", "Works"]

KEPT_MAX = 1000
WAITING_MAX = 100

Progress = Callable[[int], None]


class Work(Record):
    """A piece of long work as it stands."""

    operation_id: str
    name: str
    """What is done: the name of an operation, such as `memory.rebuild`."""
    tenant_id: Absent[str] = None
    user_id: Absent[str] = None
    status: Literal["running", "done", "failed"]
    progress: Count
    """How much was done so far, in whatever the work counts."""
    started_at: Timestamp
    finished_at: Absent[Timestamp] = None
    result: JsonValue = None
    error: Absent[JsonObject] = None

    @property
    def is_finished(self) -> bool:
        return self.status != "running"


class Works:
    """The works of one process. Thread-safe."""

    def __init__(self, clock: Clock, ids: Ids, running_max: int = 4) -> None:
        self._clock, self._ids = clock, ids
        self._pool = ThreadPoolExecutor(running_max, "muniment-work")
        self._lock = threading.Lock()
        self._works: OrderedDict[str, Work] = OrderedDict()
        self._watchers: dict[str, list[Callable[[], None]]] = {}

    def start(self, name: str, scope: dict[str, str], call: Callable[[Progress], Any]) -> Work:
        """Begin a work; `call` is handed a function to tell its progress with, and answers plain JSON data."""
        with self._lock:
            if sum(not each.is_finished for each in self._works.values()) >= WAITING_MAX:
                raise StorageBusy("too much long work is waiting already", hint="wait until some of it is done")
            work = Work.from_wire(
                {
                    "operation_id": self._ids.new("op"),
                    "name": name,
                    **{each: scope[each] for each in ("tenant_id", "user_id") if each in scope},
                    "status": "running",
                    "progress": 0,
                    "started_at": format_instant(self._clock()),
                }
            )
            self._works[work.operation_id] = work
            self._forget_old()
        self._pool.submit(self._carry_out, work.operation_id, call)
        return work

    def _forget_old(self) -> None:
        finished = [name for name, work in self._works.items() if work.is_finished]
        for name in finished[: max(0, len(self._works) - KEPT_MAX)]:
            del self._works[name]

    def _carry_out(self, operation_id: str, call: Callable[[Progress], Any]) -> None:
        """Whatever comes of it is told; an error that is no `MunimentError` is a defect, told as one and raised."""
        ended: dict[str, Any] = {"status": "failed", "error": MunimentError("the work failed").to_dict()}
        try:
            ended = {"status": "done", "result": call(lambda count: self._advance(operation_id, count))}
        except MunimentError as error:
            ended = {"status": "failed", "error": error.to_dict()}
        finally:
            self._change(operation_id, ended | {"finished_at": format_instant(self._clock())})

    def _advance(self, operation_id: str, count: int) -> None:
        self._change(operation_id, {"progress": self._works[operation_id].progress + max(0, count)})

    def _change(self, operation_id: str, update: dict[str, Any]) -> None:
        with self._lock:
            work = self._works[operation_id]
            self._works[operation_id] = Work.from_wire(work.to_wire() | update)
            watchers = list(self._watchers.get(operation_id, ()))
        for tell in watchers:
            tell()

    # -- asking ---------------------------------------------------------------------------------------

    def list(self, *, tenant_id: str | None = None, user_id: str | None = None) -> list[Work]:
        """The works that this process knows of, oldest first."""
        with self._lock:
            works = tuple(self._works.values())
        return [each for each in works if _is_seen(each, tenant_id, user_id)]

    def get(self, operation_id: str, *, tenant_id: str | None = None, user_id: str | None = None) -> Work:
        """A work as it stands."""
        work = self._works.get(operation_id)
        if work is None or not _is_seen(work, tenant_id, user_id):
            raise NotFound(
                f"no operation {operation_id!r:.80} in this scope",
                path="$.operation_id",
                hint="operations are known to the process that carries them out, until it ends",
            )
        return work

    def events(self, operation_id: str, *, tenant_id: str | None = None, user_id: str | None = None) -> Iterator[Work]:
        """A work each time it has moved, until it is finished."""
        moved = threading.Event()
        stop = self.watch(operation_id, moved.set)
        try:
            while True:
                moved.clear()
                work = self.get(operation_id, tenant_id=tenant_id, user_id=user_id)
                yield work
                if work.is_finished:
                    return
                moved.wait()
        finally:
            stop()

    def watch(self, operation_id: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Have `tell` called whenever the work moves; answers a function that ends it."""
        with self._lock:
            self._watchers.setdefault(operation_id, []).append(tell)

        def stop() -> None:
            with self._lock:
                watching = self._watchers.get(operation_id, [])
                watching.remove(tell)
                if not watching:
                    del self._watchers[operation_id]

        return stop

    def close(self) -> None:
        """Wait until all that was started is done."""
        self._pool.shutdown(wait=True)


def _is_seen(work: Work, tenant_id: str | None, user_id: str | None) -> bool:
    """A tenant's own works; a user's are those begun at the user's own address."""
    return tenant_id in (None, work.tenant_id) and user_id in (None, work.user_id)
