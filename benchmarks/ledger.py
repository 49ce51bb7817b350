"""The ledger against bare storage: writing, reading, sharing a file, exporting.

    python -m benchmarks.ledger            everything (a few minutes; makes a store of a million events)
    python -m benchmarks.ledger --quick    small sizes, for a look

The reference writes rows that are already made into the same tables with the same indexes at the same durability, by
`executemany`, and does nothing else: no validation, no redaction, no hashing, no chain, no JSON. A ratio of 0.5 means
that muniment reaches half the reference's events per second.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import muniment
from benchmarks.harness import report, timed, versus
from muniment.core.outside.system import SystemIds, system_clock
from muniment.core.ports.engine import Row, Select
from muniment.core.ports.schema import column_names, table
from muniment.handles.derived import new_context
from muniment.testing.postgres import Unavailable

BATCH = 1000
LEDGER_ALONE = muniment.Policy.from_wire({"ledger": {"index_turns": False}})
"""Search indexing is measured apart, by `benchmarks.compose`."""
TEXTS = (
    "I moved to Berlin in May and found a flat near the canal, two rooms, not cheap but quiet.",
    "Could you remind me what we decided about the invoice from the printer last week?",
    "Sure. You wanted to wait for the corrected version before paying, and to ask for the May discount.",
    "She is vegetarian, her brother is not; book a table for six at seven, outside if the weather holds.",
)


def make_events(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"role": "user" if number % 2 else "assistant", "content": f"{number}: {TEXTS[number % len(TEXTS)]}"}
        for number in range(start, start + count)
    ]


def batches(events: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for at in range(0, len(events), BATCH):
        yield events[at : at + BATCH]


def observe_batches(run: muniment.Run, events: list[dict[str, Any]]) -> None:
    for batch in batches(events):
        run.observe_many(batch)


def observe_each(run: muniment.Run, events: list[dict[str, Any]]) -> None:
    for event in events:
        run.observe(event["role"], event["content"])


def rows_of(mem: muniment.Memory, tenant_id: str) -> list[Row]:
    engine = mem._ctx.engine  # the reference writes the very rows that muniment wrote
    return engine.read(tenant_id, lambda reader: reader.do(Select("entries", order=("user_id", "session_id", "seq"))))


class BareSqlite:
    """The same tables in another file, written with nothing but sqlite3."""

    def __init__(self, path: Path, synchronous: str) -> None:
        muniment.open(path).close()  # the same schema, pragmas aside
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute(f"PRAGMA synchronous={synchronous}")
        names = ("tenant_id", *column_names(table("entries")))
        self.entry = f"INSERT INTO entries ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        self.id = "INSERT INTO ids (tenant_id, id, kind) VALUES (?, ?, ?)"
        self.head = (
            "UPDATE sessions SET head_seq = ?, head_hash = ?, head_recorded_at = ?"
            " WHERE tenant_id = ? AND user_id = ? AND session_id = ?"
        )
        self.db.execute(
            "INSERT INTO sessions VALUES ('default', 'ana', 's1', 0, x'00', '', '')",
        )

    def write(self, entries: list[tuple[Any, ...]], ids: list[tuple[Any, ...]], size: int) -> None:
        db = self.db
        for at in range(0, len(entries), size):
            db.execute("BEGIN IMMEDIATE")
            last = entries[min(at + size, len(entries)) - 1]
            if size == 1:
                db.execute(self.id, ids[at])
                db.execute(self.entry, entries[at])
            else:
                db.executemany(self.id, ids[at : at + size])
                db.executemany(self.entry, entries[at : at + size])
            db.execute(self.head, (last[6], last[15], last[8], "default", "ana", "s1"))
            db.execute("COMMIT")


def write_sqlite(
    scratch: Path, count: int, size: int, durability: Literal["normal", "full"], rounds: int
) -> dict[str, Any]:
    events = make_events(count)
    with muniment.open(scratch / "sample.db", policy=LEDGER_ALONE) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        for batch in batches(events):
            run.observe_many(batch)
        rows = rows_of(mem, "default")[1:]
    entries = [("default", *row) for row in rows]
    ids = [("default", row[0], "event") for row in rows]

    def ours(round_: int) -> float:
        name = f"ours-{size}-{durability}-{round_}.db"
        with muniment.open(scratch / name, durability=durability, policy=LEDGER_ALONE) as mem:
            run = mem.run(user_id="ana", session_id="s1")
            run.observe("user", "first")
            if size == 1:
                return timed(lambda: observe_each(run, events))
            return timed(lambda: observe_batches(run, events))

    def bare(round_: int) -> float:
        synchronous = "FULL" if durability == "full" else "NORMAL"
        reference = BareSqlite(scratch / f"bare-{size}-{durability}-{round_}.db", synchronous)
        taken = timed(lambda: reference.write(entries, ids, size))
        reference.db.close()
        return taken

    mine, theirs, ratio = versus(ours, bare, rounds)
    for file in scratch.glob("*.db*"):
        file.unlink()
    return {"events_per_s": count / mine, "reference_per_s": count / theirs, "ratio": ratio, "durability": durability}


def _write_share(path: str, name: str, count: int, gate: Any) -> None:
    with muniment.open(path, policy=LEDGER_ALONE) as mem:
        run = mem.run(user_id="ana", session_id=name)
        run.observe("user", "first")
        gate.wait()
        for batch in batches(make_events(count)):
            run.observe_many(batch)


def share_file(scratch: Path, count: int, rounds: int) -> dict[str, Any]:
    """Four processes on one file against one process that writes as much as the four together."""

    def with_processes(number: int, round_: int) -> float:
        path = scratch / f"shared-{number}-{round_}.db"
        muniment.open(path).close()
        gate = multiprocessing.Barrier(number + 1)
        workers = [
            multiprocessing.Process(target=_write_share, args=(str(path), f"s{n}", count // number, gate))
            for n in range(number)
        ]
        for worker in workers:
            worker.start()
        gate.wait()

        def join() -> None:
            for worker in workers:
                worker.join()

        taken = timed(join)
        assert all(worker.exitcode == 0 for worker in workers), "a writer failed"
        with muniment.open(path) as mem:
            checked = mem.verify()
            assert checked.ok
            assert checked.entries == count // number * number + 2 * number, "an event was lost"
        return taken

    four, one, ratio = versus(
        lambda round_: with_processes(4, round_), lambda round_: with_processes(1, round_), rounds
    )
    return {"four_per_s": count / four, "one_per_s": count / one, "ratio": ratio, "lost": 0, "errors": 0}


def grow(path: Path, count: int) -> list[str]:
    """A store of `count` events over many users; a sample of their ids."""
    ids: list[str] = []
    with muniment.open(path, policy=LEDGER_ALONE) as mem:
        for at in range(0, count, BATCH):
            run = mem.run(user_id=f"user-{at // BATCH % 100}", session_id=f"s{at // BATCH}")
            written = run.observe_many(make_events(min(BATCH, count - at), at))
            ids.append(written[len(written) // 2].id)
    return ids


def read_points(scratch: Path, small: int, large: int, rounds: int) -> tuple[dict[str, Any], Path]:
    sizes = {small: scratch / "small.db", large: scratch / "large.db"}
    ids = {size: grow(path, size) for size, path in sizes.items()}

    def point_reads(size: int) -> float:
        with muniment.open(sizes[size]) as mem:
            wanted = (ids[size] * (1 + 2000 // len(ids[size])))[:2000]
            for id_ in wanted[:200]:
                mem.ledger.get(id_)
            return timed(lambda: [mem.ledger.get(id_) for id_ in wanted])

    big, little, ratio = versus(lambda _: point_reads(large), lambda _: point_reads(small), rounds)
    row = {
        "small_us": little / 2000 * 1e6,
        "large_us": big / 2000 * 1e6,
        "slower_by": 1 / ratio,
        "small": small,
        "large": large,
    }
    return row, sizes[large]


def peak_kb() -> int:
    """The most memory this process has held. (`ru_maxrss` would start from its parent's.)"""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])


def _export(path: str, limit: int, pipe: Any) -> None:
    """Export `limit` lines and tell by how much the process grew after the first thousand."""
    with muniment.open(path) as mem:
        before, count, start = 0, 0, time.perf_counter()
        for count, _ in enumerate(mem.export(), 1):
            if count == 1000:
                before = peak_kb()
            if count == limit:
                break
        grown = peak_kb() - before
        pipe.send((count, grown / 1024, time.perf_counter() - start))


def export_flat(path: Path, large: int) -> dict[str, Any]:
    """Growth of the process while it streams a tenth of the store, and all of it: flat means the same."""
    grown: dict[str, Any] = {}
    for name, limit in (("tenth", large // 10), ("whole", 10 * large)):
        ours, theirs = multiprocessing.Pipe()
        worker = multiprocessing.get_context("spawn").Process(target=_export, args=(str(path), limit, theirs))
        worker.start()
        count, megabytes, seconds = ours.recv()
        worker.join()
        grown[f"{name}_lines"] = count
        grown[f"{name}_grown_mb"] = megabytes
        grown["lines_per_s"] = count / seconds
    return grown


def write_postgres(count: int, rounds: int) -> dict[str, Any]:
    """A batch through muniment against a bare pipelined executemany into the same tables."""
    import psycopg

    from muniment.store.engines.postgres import PostgresEngine
    from muniment.testing.postgres import fresh_schema, server_dsn

    dsn, events = server_dsn(), make_events(count)

    @contextmanager
    def store() -> Iterator[tuple[str, muniment.Memory]]:
        with fresh_schema(dsn) as schema:
            context = new_context(PostgresEngine(dsn, schema=schema), LEDGER_ALONE, system_clock, SystemIds())
            with muniment.Memory(context) as mem:
                yield schema, mem

    def write(mem: muniment.Memory) -> float:
        run = mem.run(user_id="ana", session_id="s1")
        run.observe("user", "first")
        return timed(lambda: observe_batches(run, events))

    def ours(_: int) -> float:
        with store() as (_schema, mem):
            return write(mem)

    with store() as (_schema, mem):
        write(mem)
        rows = rows_of(mem, "default")[2:]

    def bare(_: int) -> float:
        names = ("tenant_id", *column_names(table("entries")))
        with store() as (schema, _mem):
            entry = f"INSERT INTO {schema}.entries ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"
            id_ = f"INSERT INTO {schema}.ids (tenant_id, id, kind) VALUES (%s, %s, %s)"

            def work() -> None:
                for at in range(0, len(rows), BATCH):
                    part = rows[at : at + BATCH]
                    with db.pipeline():
                        cursor.executemany(id_, [("default", row[0], "event") for row in part])
                        cursor.executemany(entry, [("default", *row) for row in part])
                    db.commit()

            with psycopg.connect(dsn) as db, db.cursor() as cursor:
                return timed(work)

    mine, theirs, ratio = versus(ours, bare, rounds)
    return {
        "events_per_s": count / mine,
        "reference_per_s": count / theirs,
        "ratio": ratio,
        "durability": "a throwaway server with fsync off",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    scale = 0.05 if arguments.quick else 1.0
    rounds = 3 if arguments.quick else 5
    sizes = {
        "batch": int(50_000 * scale) // BATCH * BATCH or BATCH,
        "single": int(10_000 * scale),
        "shared": int(80_000 * scale) // 4000 * 4000,
        "small": 10_000,
        "large": int(1_000_000 * scale),
    }
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as folder:
        scratch = Path(folder)
        rows["sqlite, 1,000 a commit"] = write_sqlite(scratch, sizes["batch"], BATCH, "normal", rounds)
        rows["sqlite, one commit each"] = write_sqlite(scratch, sizes["single"], 1, "normal", rounds)
        rows["sqlite, one commit each, full"] = write_sqlite(scratch, sizes["single"] // 10, 1, "full", rounds)
        rows["sqlite, four processes"] = share_file(scratch, sizes["shared"], rounds)
        rows["point reads"], large = read_points(scratch, sizes["small"], sizes["large"], rounds)
        rows["export"] = export_flat(large, sizes["large"])
    try:
        rows["postgresql, 1,000 a commit"] = write_postgres(sizes["batch"], rounds)
    except (ImportError, Unavailable, muniment.MunimentError) as error:
        print(f"PostgreSQL was not measured: {error}", file=sys.stderr)
    report("ledger", rows, {"quick": arguments.quick, **sizes})


if __name__ == "__main__":
    main()
