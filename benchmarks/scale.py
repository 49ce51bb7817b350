"""Growth: stores of growing size on PostgreSQL and on SQLite, and what everything costs in them.

    python -m benchmarks.scale --sizes 1000000,3000000,10000000 --work FOLDER
    python -m benchmarks.scale --sizes 100000,300000,1000000 --work FOLDER

10,000 users (--users), of whom one has a tenth of the events, 100,000 at most, and ten *probes* with 400 events each,
the same in every size. All is loaded in bulk; each store is a copy of the next smaller one, to which the rest is added.
Then the probes are searched, composed for, asked for changes and forgotten from (`benchmarks.scale_asking`).

The figures are processor time, of this process and of the server's, so that a busy neighbour changes them little; the
clock on the wall stands beside. Every question is asked in three takes: the one in the middle is told, and the lowest
and the highest beside it. Rows and blocks (PostgreSQL) and steps (SQLite) are counts, which nothing changes.

The model was fixed before the largest store was made: a question of a probe costs the same in every store; loading,
indexing and bytes are a line in the number of events; a search of the large user is a line in the large user's events.
It is fitted to all sizes but the largest, and held against that one.

What is done is kept in the folder named by --work, so that a run that was stopped goes on behind it, and a larger size
adds to what is there. PostgreSQL is that of the tests (`MUNIMENT_TEST_POSTGRES` names another), with its data there.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import muniment
from benchmarks.harness import report
from benchmarks.scale_asking import ask_all, questions
from benchmarks.scale_stores import LARGE_EVENTS_MAX, PROBE_EVENTS, Databases, Files, Store, build
from muniment.core.ports.engine import Select
from muniment.core.ports.schema import column_names, table
from muniment.store.engines.opening import open_engine

USERS = 10_000
BARE_ROWS = 20_000
BARE_TABLES = ("entries", "idempotency_keys")
FLAT_MAX = 1.3
OFF_MAX = 0.2
BY_EVENTS = ("load_s", "index_s", "store_mb")
BY_LARGE = ("search_large_cold_ms", "search_large_warm_ms")
FLAT = tuple(f"{each.name}_ms" for each in questions() if f"{each.name}_ms" not in BY_LARGE)
Row = dict[str, Any]


# -- bare writes --------------------------------------------------------------------------------------


def measure_bare(store: Store) -> dict[str, float]:
    """The processor time of writing the same rows and nothing else, for one event."""
    with muniment.open(store.url) as mem:
        rows = {
            name: mem._ctx.engine.read("default", lambda reader, name=name: reader.do(Select(name, limit=BARE_ROWS)))  # type: ignore[misc]
            for name in BARE_TABLES
        }
    events = min(len(rows["entries"]), len(rows["idempotency_keys"]))
    work = _bare_postgres if store.dsn is not None else _bare_sqlite
    return {"bare_us_an_event": 1e6 * work(store, rows) / events}


def _bare_postgres(store: Store, rows: dict[str, Any]) -> float:
    import psycopg

    with psycopg.connect(store.dsn or "", autocommit=True) as admin:
        for name in BARE_TABLES:
            admin.execute(f"DROP TABLE IF EXISTS public.bare_{name}")
            admin.execute(f"CREATE TABLE public.bare_{name} (LIKE muniment.{name} INCLUDING ALL)")

        def write() -> None:
            for name in BARE_TABLES:
                columns = ", ".join(f'"{column}"' for column in ("tenant_id", *column_names(table(name))))
                with admin.cursor().copy(f"COPY public.bare_{name} ({columns}) FROM STDIN") as copy:
                    for row in rows[name]:
                        copy.write_row(("default", *row))

        spent = store.meter.spent(write).all
        for name in BARE_TABLES:
            admin.execute(f"DROP TABLE public.bare_{name}")
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


# -- the model ----------------------------------------------------------------------------------------


def large_events(size: int) -> int:
    return min(size // 10, LARGE_EVENTS_MAX)


def line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Where the line of least squares begins, and how steep it is: level where all points stand at one place."""
    middle_x, middle_y = mean(x for x, _ in points), mean(y for _, y in points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    if not spread:
        return middle_y, 0.0
    slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
    return middle_y - slope * middle_x, slope


def model(rows: dict[int, Row]) -> Row:
    """What all sizes but the largest tell of it, and how far that is off; and what the largest costs as a multiple."""
    *fitted, largest = sorted(rows)
    found: Row = {"fitted_to": fitted, "held_against": largest}
    forms: list[tuple[str, Callable[[int], float]]] = [
        *((name, float) for name in BY_EVENTS),
        *((name, large_events) for name in BY_LARGE),
    ]
    off: dict[str, float] = {}
    for name, of_size in forms:
        begin, slope = line([(of_size(size), rows[size][name]) for size in fitted])
        told = begin + slope * of_size(largest)
        found |= {f"{name}_at_zero": begin, f"{name}_each_million": slope * 1e6, f"{name}_predicted": told}
        off[name] = told / rows[largest][name] - 1
    for name in FLAT:
        found[f"{name}_predicted"] = told = mean(rows[size][name] for size in fitted)
        off[name] = told / rows[largest][name] - 1
    found |= {f"{name}_off": value for name, value in off.items()}
    found |= {"within_a_fifth": sum(abs(value) <= OFF_MAX for value in off.values()), "predicted": len(off)}
    for name in (*FLAT, *(name for name in rows[largest] if name.endswith(("_rows", "_blocks", "_steps")))):
        found[f"{name}_growth"] = rows[largest][name] / max(rows[min(rows)][name], 1e-9)
    return found


# -- the run ------------------------------------------------------------------------------------------


def run_engine(place: Files | Databases, sizes: list[int], work: Path, users: int) -> dict[int, Row]:
    """Build what is not built, then ask what was not asked."""
    path = work / f"state_{place.engine}.json"
    state: dict[str, dict[str, Row]] = json.loads(path.read_text()) if path.exists() else {}

    def keep(size: int, part: str, row: Row) -> None:
        state.setdefault(str(size), {})[part] = row
        path.write_text(json.dumps(state, indent=2, sort_keys=True))
        print(place.engine, size, part, json.dumps(row), flush=True)

    before: Row | None = None
    for size in sizes:
        if "build" not in state.get(str(size), {}):
            keep(size, "build", build(place, size, before, users))
        before = state[str(size)]["build"]
    for size in sizes:
        if "asked" not in state[str(size)]:
            store = place.store(size)
            keep(size, "asked", measure_bare(store) | ask_all(store))
    return {size: _row(size, state[str(size)]) for size in sizes}


def _row(size: int, parts: dict[str, Row]) -> Row:
    row = parts["build"] | parts["asked"]
    row["ingest_us_an_event"] = 1e6 * (row["load_s"] + row["index_s"]) / size
    row["events_a_core_second"] = size / (row["load_s"] + row["index_s"])
    row["load_against_bare"] = 1e6 * row["load_s"] / size / row["bare_us_an_event"]
    for each in questions():
        if row.get(f"{each.name}_bare_ms"):
            row[f"{each.name}_against_bare"] = row[f"{each.name}_ms"] / row[f"{each.name}_bare_ms"]
    return row


def _sizes(named: str) -> list[int]:
    return sorted(int(size) for size in named.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="30000,100000,300000")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--engines", default="sqlite,postgres")
    parser.add_argument("--sqlite-sizes", help="where they are other ones than --sizes")
    given = parser.parse_args()
    sizes = {engine: _sizes(given.sizes) for engine in given.engines.split(",")}
    if given.sqlite_sizes:
        sizes["sqlite"] = _sizes(given.sqlite_sizes)
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    shown: dict[str, Row] = {}
    measured: dict[str, dict[int, Row]] = {}
    for engine, asked in sizes.items():
        place: Files | Databases = Files(work) if engine == "sqlite" else Databases(work)
        measured[engine] = run_engine(place, asked, work, given.users)
        shown |= {f"{engine} {size}": row for size, row in measured[engine].items()}
        if len(asked) > 2:
            shown[f"{engine} model"] = model(measured[engine])
    if len(measured) == 2:
        names = ("ingest_us_an_event", "bytes_an_event", *FLAT, *BY_LARGE)
        for size in sorted({*sizes["postgres"]} & {*sizes["sqlite"]}):
            own, other = measured["postgres"][size], measured["sqlite"][size]
            shown[f"postgres against sqlite {size}"] = {name: own[name] / other[name] for name in names}
    report("scale", shown, {"sizes": sizes, "users": given.users, "probe_events": PROBE_EVENTS})


if __name__ == "__main__":
    main()
