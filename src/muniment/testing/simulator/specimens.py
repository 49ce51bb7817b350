"""The stores under test: opening, calling, faults, restarts and inspection."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from muniment.core.canonical import SALT_BYTES
from muniment.core.outside.system import TickingClock
from muniment.core.policy import LedgerPolicy, Policy
from muniment.core.ports.engine import Engine
from muniment.errors import MunimentError, StorageFull, StorageLost
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.simulator.faults import Fault, FaultyEngine, Killed, in_child

__all__ = ["BEHIND", "ENGINES", "POLICY", "Outcome", "Specimen", "StepIds", "open_specimens"]

POLICY = Policy(ledger=LedgerPolicy(inline_bytes_max=600))
"""Long contents are stored in blobs, with a low limit."""
ENGINES = ("memory", "sqlite", "postgres")
BEHIND = ("postgres-pooler", "postgres-replica")
"""PostgreSQL behind PgBouncer, and with a replica that answers reads: only by explicit name, since each needs more
servers.
"""
_TICK = timedelta(milliseconds=1)


class Outcome(NamedTuple):
    """The outcome of a call. `unknown`: it was interrupted, and only the store shows whether it was done."""

    how: str
    answer: Any = None


class StepIds:
    """Ids and salts that depend only on the step, not on where or how often it was tried."""

    def __init__(self, seed: int, racer: str = "") -> None:
        self._seed = seed
        self._racer = racer
        self._step = 0
        self._count = 0

    def begin(self, step: int) -> None:
        self._step, self._count = step, 0

    def _next(self) -> str:
        self._count += 1
        return f"{self._seed:x}x{self._step:03d}{self._racer}x{self._count:04d}"

    def new(self, prefix: str) -> str:
        return f"{prefix}_{self._next()}"

    def salts(self, count: int) -> list[bytes]:
        return [sha256(self._next().encode()).digest()[:SALT_BYTES] for _ in range(count)]


class Specimen:
    """One store, on an engine within this process. Subclasses with durable stores override the differences."""

    name = "memory"
    is_durable = False

    def __init__(self, seed: int, engine: Engine) -> None:
        self.seed = seed
        self.engine = FaultyEngine(engine)
        self.clock = TickingClock(step=_TICK)
        self.ids = StepIds(seed)
        self.mem = self.handle()

    def handle(
        self, *, ids: StepIds | None = None, clock: TickingClock | None = None, engine: Engine | None = None
    ) -> Memory:
        """A memory over this store with an empty cache: another caller, or the same after a restart."""
        ctx = new_context(engine=engine or self.engine, policy=POLICY, clock=clock or self.clock, ids=ids or self.ids)
        return Memory(ctx)

    def another_engine(self) -> Engine:
        """Open an engine over the same store with separate connections, as another process would; to be closed."""
        return FaultyEngine(self.engine.inner)

    def begin(self, step: int, now: datetime) -> None:
        self.ids.begin(step)
        self.clock.set(now)

    def attempt(self, work: Callable[[Memory], Any], fault: Fault | None = None) -> Outcome:
        """Call the store, optionally with a fault."""
        if fault is None:
            return self._call(work)
        self.engine.arm(fault, self._strike)
        try:
            if self.is_durable and fault.kind.startswith("kill"):
                told = in_child(lambda: self._call(work))
                self.restart()
                return Outcome("unknown") if told is None else told
            return self._call(work)
        except Killed:
            self.engine.disarm()
            self.restart()
            return Outcome("unknown")
        finally:
            self.engine.disarm()

    def _call(self, work: Callable[[Memory], Any]) -> Outcome:
        try:
            return Outcome("done", work(self.mem))
        except StorageLost:
            return Outcome("unknown")
        except MunimentError as error:
            return Outcome("error", (error.code, error.path))

    def _strike(self, fault: Fault, transaction: Any) -> None:
        if fault.kind == "full":
            raise StorageFull("there is no space left")
        if fault.kind in ("lost", "lost_after"):
            self.cut(transaction)
            return
        if self.is_durable:
            os.kill(os.getpid(), signal.SIGKILL)
        raise Killed

    def cut(self, transaction: Any) -> None:
        """Lose the connection: within a transaction or, where there is none, after its commit."""
        del transaction
        raise StorageLost("the connection broke")

    @contextmanager
    def without_space(self) -> Iterator[int]:
        """Allow no growth during the block; yields the size of a content that cannot fit."""
        self.engine.arm(Fault("full", 1), self._strike)
        try:
            yield 2000
        finally:
            self.engine.disarm()

    def restart(self) -> None:
        """Simulate a restart in another process: caches are lost."""
        self.mem = self.handle()

    def files(self) -> list[Path]:
        """Return the store's files, which must hold no forgotten words."""
        return []

    def close(self) -> None:
        self.engine.close()


class SqliteSpecimen(Specimen):
    name = "sqlite"
    is_durable = True

    def __init__(self, seed: int, folder: Path) -> None:
        self.path = folder / f"{seed}.db"
        shutil.copyfile(_template(folder), self.path)
        super().__init__(seed, _open_file(self.path))

    def restart(self) -> None:
        self.engine.close()
        self.engine = FaultyEngine(_open_file(self.path))
        super().restart()

    @contextmanager
    def without_space(self) -> Iterator[int]:
        """Keep the file from growing, with too little free space in it."""
        connections: Any = self.engine.inner._connections  # type: ignore[attr-defined]
        writer = connections.take_writer(_far())
        try:
            (pages,), (free,) = (
                writer.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count")
            )
            writer.execute(f"PRAGMA max_page_count = {pages}")
        finally:
            connections.leave_writer()
        try:
            yield (free + 40) * 4096
        finally:
            writer.execute("PRAGMA max_page_count = 1073741823")

    def another_engine(self) -> Engine:
        return _open_file(self.path)

    def files(self) -> list[Path]:
        return [path for path in (self.path, Path(f"{self.path}-wal")) if path.exists()]

    def close(self) -> None:
        super().close()
        for path in (self.path, Path(f"{self.path}-wal"), Path(f"{self.path}-shm")):
            path.unlink(missing_ok=True)


Opener = Callable[[int], list[Specimen]]


@contextmanager
def open_specimens(engines: tuple[str, ...] = ENGINES) -> Iterator[Opener]:
    """Yield a function that opens fresh stores for the story of a seed; shared resources are released at the end."""
    from muniment.testing.simulator.postgres_specimens import PostgresSpecimen, open_server

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muniment-simulator-")))
        servers = [open_server(name, stack) for name in engines if name.startswith("postgres")]

        def opened(seed: int) -> list[Specimen]:
            made: list[Specimen] = []
            if "memory" in engines:
                made.append(Specimen(seed, SqliteEngine(":memory:")))
            if "sqlite" in engines:
                made.append(SqliteSpecimen(seed, folder))
            return [*made, *(PostgresSpecimen(seed, server) for server in servers)]

        yield opened


def _open_file(path: Path) -> Engine:
    return SqliteEngine(path, busy_timeout_s=20.0)


def _template(folder: Path) -> Path:
    """Return an empty store, made once, as its tables are the same for every story."""
    path = folder / "empty.db"
    if not path.exists():
        _open_file(path).close()
    return path


def _far() -> float:
    import time

    return time.monotonic() + 20
