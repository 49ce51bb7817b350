"""Compare the speed and size of this checkout's store with another checkout's and with a bare FTS5 table.

See README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness import report
from benchmarks.speed._side import BATCH, make_events
from muniment.testing.postgres import server_dsn, throwaway_schema

ROOT = Path(__file__).resolve().parent.parent.parent
WARM = 5


class Side:
    """A process with the package of one checkout."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.package: str = self._answer()["package"]

    def call(self, work: str, **arguments: Any) -> dict[str, float]:
        assert self._process.stdin is not None
        print(json.dumps({"work": work, **arguments}), file=self._process.stdin, flush=True)
        return dict(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("one side failed; its traceback is above")
        return json.loads(line)


@contextmanager
def side(checkout: Path, folder: Path) -> Iterator[Side]:
    folder.mkdir()
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout / "src"), str(ROOT)))}
    command = [sys.executable, "-m", "benchmarks.speed._side", str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=settings, cwd=ROOT) as process:
        started = Side(process)
        if not Path(started.package).is_relative_to(checkout):
            raise SystemExit(f"imported {started.package}, which is not the package of {checkout}")
        yield started


def bare_seconds(folder: Path, count: int, batch: int, number: int) -> float:
    """Write the texts into an FTS5 table and do nothing else."""
    path = folder / f"bare-{batch}-{number}.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    db.execute("CREATE VIRTUAL TABLE turns USING fts5(role UNINDEXED, content, tokenize='porter unicode61')")
    rows = [(event["role"], event["content"]) for event in make_events(count)]
    start = time.perf_counter()
    for at in range(0, count, batch):
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO turns VALUES (?, ?)", rows[at : at + batch])
        db.execute("COMMIT")
    db.close()
    return time.perf_counter() - start


def alternate(ours: Side, theirs: Side, rounds: int, work: str, warm: int = WARM, **more: Any) -> dict[str, Any]:
    """Median milliseconds of each side, who begin by turns."""
    times: dict[Side, list[float]] = {ours: [], theirs: []}
    for number in range(warm + rounds):
        for each in (ours, theirs)[:: 1 if number % 2 else -1]:
            times[each].append(each.call(work, number=number, **more)["seconds"])
    mine, other = (statistics.median(times[each][warm:]) * 1e3 for each in (ours, theirs))
    return {"ms": mine, "other_ms": other, "ratio": mine / other}


def writing(ours: Side, theirs: Side, folder: Path, count: int, batch: int, rounds: int) -> dict[str, Any]:
    kinds: dict[str, Callable[[int], dict[str, float]]] = {
        "ours": lambda number: ours.call("write", count=count, batch=batch, number=number),
        "other": lambda number: theirs.call("write", count=count, batch=batch, number=number),
        "bare": lambda number: {"seconds": bare_seconds(folder, count, batch, number)},
    }
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for number in range(rounds + 1):
        for kind, run in kinds.items():
            found[kind].append(run(number))
    seconds = {kind: statistics.median(each["seconds"] for each in runs[1:]) for kind, runs in found.items()}
    mine, other = found["ours"][-1]["bytes"], found["other"][-1]["bytes"]
    return {
        "ms_per_event": seconds["ours"] / count * 1e3,
        "ratio": seconds["ours"] / seconds["other"],
        "of_bare": seconds["bare"] / seconds["ours"],
        "bytes_per_event": mine,
        "other_bytes": other,
        "bytes_ratio": mine / other,
    }


def growth(ours: Side, theirs: Side, count: int) -> dict[str, Any]:
    mine, other = (each.call("bytes_of_composes", count=count)["bytes"] for each in (ours, theirs))
    return {"bytes": mine, "other_bytes": other, "ratio": mine / other}


def verifying(ours: Side, theirs: Side) -> dict[str, Any]:
    mine, other = ours.call("verify"), theirs.call("verify")
    return {"mib": mine["mib"], "other_mib": other["mib"], "ratio": mine["seconds"] / other["seconds"]}


def on_sqlite(against: Path, sizes: list[int], rounds: int) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="muniment-speed-") as name:
        folder = Path(name)
        with _both(against, folder / "writing") as (ours, theirs):
            rows["observe one by one"] = writing(ours, theirs, folder, 3_000, 1, 3)
            rows["observe in batches"] = writing(ours, theirs, folder, 30_000, BATCH, 3)
        for size in sizes:
            with _both(against, folder / f"size-{size}") as (ours, theirs):
                for each in (ours, theirs):
                    each.call("open", target="", count=size, users=1)
                rows[f"compose after a write, {size:,} events"] = alternate(ours, theirs, rounds, "compose_after_write")
                rows[f"search, {size:,} events"] = alternate(ours, theirs, rounds, "search")
                rows[f"growth by a compose, {size:,} events"] = growth(ours, theirs, 100)
                rows[f"forget one event, {size:,} events of one user"] = alternate(
                    ours, theirs, 10, "forget_one", warm=2
                )
                rows[f"verify, {size:,} events"] = verifying(ours, theirs)
        with _both(against, folder / "users") as (ours, theirs):
            for each in (ours, theirs):
                each.call("open", target="", count=max(sizes), users=100)
            rows[f"forget one event, {max(sizes):,} events of 100 users"] = alternate(
                ours, theirs, 10, "forget_one", warm=2
            )
    return rows


def on_postgres(against: Path, count: int) -> dict[str, dict[str, Any]]:
    """Both sides on one server, each in a schema of its own."""
    sizes: list[float] = []
    dsn = server_dsn()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muniment-speed-")))
        ours, theirs = stack.enter_context(_both(against, folder / "postgres"))
        for each in (ours, theirs):
            address = stack.enter_context(throwaway_schema(dsn))
            each.call("open", target=address, count=count, users=100)
            sizes.append(schema_bytes(dsn, address.rpartition("schema=")[2]) / count)
        mine, other = sizes
        return {
            "bytes per event, PostgreSQL": {"bytes": mine, "other_bytes": other, "ratio": mine / other},
            f"forget one event, {count:,} events, PostgreSQL": alternate(ours, theirs, 10, "forget_one", warm=2),
        }


def schema_bytes(dsn: str, schema: str) -> int:
    import psycopg

    question = (
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relkind = 'r'"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(question, (schema,)).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def _both(against: Path, folder: Path) -> Iterator[tuple[Side, Side]]:
    folder.mkdir()
    with ExitStack() as stack:
        ours = stack.enter_context(side(ROOT, folder / "ours"))
        theirs = stack.enter_context(side(against.resolve(), folder / "other"))
        yield ours, theirs
        ours.call("close")
        theirs.call("close")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--against", type=Path, required=True, help="a checkout of another commit")
    parser.add_argument("--sizes", default="1000,10000,100000", help="events in a store")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--postgres", type=int, default=0, metavar="EVENTS", help="also on PostgreSQL")
    parser.add_argument("--file", default="speed", help="name of the result file")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    rows = on_sqlite(given.against, sizes, given.rounds)
    if given.postgres:
        rows |= on_postgres(given.against, given.postgres)
    commit = subprocess.run(
        ["git", "-C", str(given.against), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    arguments = {"against": commit, "sizes": sizes, "rounds": given.rounds, "postgres": given.postgres}
    report("speed", rows, arguments, given.file)


if __name__ == "__main__":
    main()
