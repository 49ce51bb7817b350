"""Long work: run in the background, with progress that can be watched, and a result that can be fetched.

A work is stored (`operations.work_rows`), so that any process of a server can report on it and a forget erases its
content. The process that runs it renews its lease. If a process ends, another restarts its works, or marks them as
interrupted: none is lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

from muniment.core.canonical import canonical_bytes, parse_json
from muniment.core.instants import format_instant
from muniment.core.listing import Listing, list_items
from muniment.core.ports.engine import Engine, Value
from muniment.core.ports.models import Clock, Ids
from muniment.core.ports.schema import SERVER, WorkRow
from muniment.core.record import Absent, Count, JsonObject, JsonValue, Record, Timestamp
from muniment.errors import Interrupted, MunimentError, NotFound, StorageBusy
from muniment.store.background.leases import StillLeases
from muniment.surfaces.operations.work_rows import StoredWork, WorkRows, answer_of

__all__ = ["Begin", "Work", "Works"]

WAITING_MAX = 100
TRIES_MAX = 3
"""The processes that may end while running a work before it is no longer restarted."""
LEASE_S = 10.0
"""Seconds without renewal before another process takes over a lease."""
POLL_S = 1.0
"""Seconds between polls of another process's work while it is watched."""
_BEATS = 4
"""The renewals of a lease in its time."""
_NO_ANSWER = "what came of it is no longer kept: it ran out, was too large, or went with a forget; start it again"
_LOGGER = logging.getLogger("muniment.works")

Progress = Callable[[int], None]
Begin = Callable[[Progress], Any]
"""The function that does the work: it gets a function for reporting progress, and returns plain JSON data."""


class Work(Record):
    """The state of a piece of long work."""

    operation_id: str
    name: str
    """The name of the operation, such as `memory.rebuild`."""
    tenant_id: Absent[str] = None
    user_id: Absent[str] = None
    status: Literal["running", "done", "failed", "interrupted"]
    """`interrupted`: its process ended, and no other could take it over."""
    progress: Count
    """The amount done so far, in the work's own unit."""
    started_at: Timestamp
    finished_at: Absent[Timestamp] = None
    result: JsonValue = None
    error: Absent[JsonObject] = None
    note: Absent[str] = None
    """The reason a result is no longer available."""

    @property
    def is_finished(self) -> bool:
        return self.status != "running"


@dataclass(frozen=True, slots=True)
class _Running:
    """A work that this process runs."""

    tenant: str
    row: WorkRow
    call: Begin
    outlives: bool


class Works:
    """The works of a server, as run and reported by one of its processes. Thread-safe."""

    def __init__(
        self, engine: Engine, clock: Clock, ids: Ids, running_max: int = 4, *, lease_s: float = LEASE_S
    ) -> None:
        self._rows = WorkRows(engine)
        self._clock, self._ids, self._lease_s = clock, ids, lease_s
        self._pool = ThreadPoolExecutor(running_max, "muniment-work")
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._told: dict[str, int] = {}
        """The progress last written to the store."""
        self._watchers: dict[str, list[Callable[[], None]]] = {}
        self._still = StillLeases(lease_s)
        self._restart: Callable[[JsonObject], Begin] | None = None
        self._taking = threading.Lock()
        """Held while a work is taken over: none is, once this process closes."""
        self._keeper: threading.Thread | None = None
        self._is_over = threading.Event()

    # -- running --------------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        scope: Mapping[str, str],
        call: Begin,
        asked: JsonObject | None = None,
        *,
        outlives: bool = False,
    ) -> Work:
        """Start a work. `asked` is the data another process needs to restart it; without it, none can.

        `outlives` keeps the result although answers were cleared meanwhile, because the work cleared them itself.
        """
        row = WorkRow(
            id=self._ids.new("op"),
            name=name,
            user_id=scope.get("user_id"),
            status="running",
            progress=0,
            tries=1,
            clearing=0,
            started_at=format_instant(self._clock()),
            finished_at=None,
            salt=self._ids.salts(1)[0],
            asked=None if asked is None else canonical_bytes(asked).decode(),
            answer=None,
        )
        running = _Running(scope.get("tenant_id", SERVER), row, call, outlives)
        with self._lock:
            if len(self._running) >= WAITING_MAX:
                raise StorageBusy("too much long work is waiting already", hint="wait until some of it is done")
            self._running[row.id] = running
        try:
            self._rows.begin(running.tenant, row, self._clock())
        except MunimentError:
            self._drop(row.id)
            raise
        self._carry_on(running)
        return _work_of(StoredWork(running.tenant, row))

    def _carry_on(self, running: _Running) -> None:
        self._keep_leases()
        self._pool.submit(self._carry_out, running)

    def _carry_out(self, running: _Running) -> None:
        """Run a work and record its result or error; one that is no `MunimentError` is a defect, recorded as such and
        raised.
        """
        id_ = running.row.id
        ended: tuple[str, dict[str, Any]] = ("failed", {"error": MunimentError("the work failed").to_dict()})
        try:
            ended = ("done", {"result": running.call(lambda count: self._advance(id_, count))})
        except MunimentError as error:
            ended = ("failed", {"error": error.to_dict()})
        finally:
            try:
                self._finish(running, *ended)
            finally:
                self._drop(id_)

    def _finish(self, running: _Running, status: str, told: dict[str, Any]) -> None:
        held = self._running.get(running.row.id, running)
        values: dict[str, Value] = {
            "status": status,
            "progress": held.row.progress,
            "finished_at": format_instant(self._clock()),
            "answer": answer_of(told),
        }
        self._rows.finish(running.tenant, running.row.id, values, outlives=running.outlives)

    def _drop(self, operation_id: str) -> None:
        with self._lock:
            self._running.pop(operation_id, None)
            self._told.pop(operation_id, None)
        self._tell(operation_id)

    def _advance(self, operation_id: str, count: int) -> None:
        with self._lock:
            held = self._running[operation_id]
            row = held.row._replace(progress=held.row.progress + max(0, count))
            self._running[operation_id] = replace(held, row=row)
        self._tell(operation_id)

    def _tell(self, operation_id: str) -> None:
        with self._lock:
            watchers = list(self._watchers.get(operation_id, ()))
        for tell in watchers:
            tell()

    # -- leases ---------------------------------------------------------------------------------------

    def take_up(self, restart: Callable[[JsonObject], Begin]) -> None:
        """From now on, take over the works of processes that ended: `restart` makes the function from the stored
        request.
        """
        self._restart = restart
        self._keep_leases()

    def _keep_leases(self) -> None:
        with self._lock:
            if self._keeper is None and not self._is_over.is_set():
                self._keeper = threading.Thread(target=self._keep, name="muniment-leases", daemon=True)
                self._keeper.start()

    def _keep(self) -> None:
        while not self._is_over.wait(self._lease_s / _BEATS):
            try:
                self._beat()
                self._look_after()
            except MunimentError as error:  # the store is unavailable: leases go stale, and are renewed when it returns
                _LOGGER.warning("leases cannot be kept", extra={"said": error.to_dict()})

    def _beat(self) -> None:
        with self._lock:
            if not self._running:
                return
            running = tuple(self._running)
            moved = {
                id_: (held.tenant, held.row.progress)
                for id_, held in self._running.items()
                if held.row.progress != self._told.get(id_, 0)
            }
        self._rows.beat(running, moved)
        with self._lock:
            self._told |= {id_: progress for id_, (_, progress) in moved.items() if id_ in self._running}

    def _look_after(self) -> None:
        """Take leases that were not renewed in time, by this process's own clock: those of others, and its own whose
        end it could not record.
        """
        if self._restart is None:
            return
        others = [lease for lease in self._rows.leases() if lease.id not in self._running]
        for lease in self._still.look(SERVER, others, time.monotonic()):
            with self._taking:
                taken = None if self._restart is None else self._rows.take(lease)
                if taken is not None:
                    self._go_on_with(taken)

    def _go_on_with(self, taken: StoredWork) -> None:
        row = taken.row
        said = {"operation_id": row.id, "operation": row.name, "tries": row.tries}
        _LOGGER.warning("a work was taken up: its process ended", extra={"said": said})
        try:
            call = self._begun_again(row)
        except Interrupted as error:
            ended = _Running(taken.tenant, row, _nothing, outlives=True)
            self._finish(ended, "interrupted", {"error": error.to_dict()})
            return
        running = _Running(taken.tenant, row, call, outlives=False)
        with self._lock:
            self._running[row.id] = running
        self._carry_on(running)

    def _begun_again(self, row: WorkRow) -> Begin:
        assert self._restart is not None
        if row.tries > TRIES_MAX:
            raise Interrupted(
                f"the process that carried it out ended, {TRIES_MAX} times over",
                hint="the servers' logs say why; start it again when that is mended",
            )
        if row.asked is None:
            raise Interrupted(
                "the process that carried it out ended, and what it worked on lay with that process alone",
                hint="send it again: what it had done is kept, and is not done twice",
            )
        asked = parse_json(row.asked.encode())
        assert isinstance(asked, dict)
        return self._restart(asked)

    # -- reading --------------------------------------------------------------------------------------

    def list(
        self,
        *,
        tenant_id: str | None = None,
        user_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Work]:
        """The stored works, oldest first."""
        found = [self._now(each) for each in self._rows.list(tenant_id, self._clock())]
        own = [_work_of(each) for each in found if user_id in (None, each.row.user_id)]
        return list_items("operations", own, limit, cursor)

    def get(self, operation_id: str, *, tenant_id: str | None = None, user_id: str | None = None) -> Work:
        """The state of a work, in any process."""
        held = self._running.get(operation_id)
        if held is not None and tenant_id in (None, held.tenant):
            found: StoredWork | None = StoredWork(held.tenant, held.row)
        else:
            found = self._rows.find(operation_id, tenant_id)
        if found is None or user_id not in (None, found.row.user_id):
            raise NotFound(
                f"no operation {operation_id!r:.80} in this scope",
                path="$.operation_id",
                hint="the list of operations names those that are kept",
            )
        return _work_of(found)

    def _now(self, stored: StoredWork) -> StoredWork:
        held = self._running.get(stored.row.id)
        return stored if held is None else StoredWork(held.tenant, held.row)

    def is_own(self, operation_id: str) -> bool:
        """True if this process runs the work."""
        return operation_id in self._running

    def events(self, operation_id: str, *, tenant_id: str | None = None, user_id: str | None = None) -> Iterator[Work]:
        """Yield a work each time it changes, until it is finished."""
        moved = threading.Event()
        stop = self.watch(operation_id, moved.set)
        before: Work | None = None
        try:
            while before is None or not before.is_finished:
                moved.clear()
                work = self.get(operation_id, tenant_id=tenant_id, user_id=user_id)
                if work != before:
                    yield work
                before = work
                if not work.is_finished:
                    moved.wait(POLL_S)
        finally:
            stop()

    def watch(self, operation_id: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` whenever a work of this process changes; returns a function that cancels this."""
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
        """Wait until all started work is done."""
        with self._taking:
            self._restart = None
        self._pool.shutdown(wait=True)
        self._is_over.set()
        if self._keeper is not None:
            self._keeper.join()


def _nothing(_: Progress) -> None:
    """The function for a work that cannot be restarted."""


def _work_of(stored: StoredWork) -> Work:
    row = stored.row
    told = {} if row.answer is None else parse_json(row.answer.encode())
    assert isinstance(told, dict)
    fields: dict[str, Any] = {
        "operation_id": row.id,
        "name": row.name,
        "tenant_id": None if stored.tenant == SERVER else stored.tenant,
        "user_id": row.user_id,
        "status": row.status,
        "progress": row.progress,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "note": _NO_ANSWER if row.status != "running" and row.answer is None else None,
    }
    return Work.from_wire({name: value for name, value in fields.items() if value is not None} | told)
