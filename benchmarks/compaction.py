"""Long runs: taking one up again from its snapshot against replaying its ledger; what a snapshot costs.

    python -m benchmarks.compaction            everything (some minutes; makes a run of a million events)
    python -m benchmarks.compaction --quick    small sizes, for a look

The reference is in the same store and the same process: the same log folded from the run's whole ledger.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import compress

import muniment
from benchmarks.harness import report, timed, versus
from muniment.core.ports.engine import Condition, Select
from muniment.runs.snapshots import load_log

BATCH = 1000
TAIL = 40
"""Entries after the last snapshot: two snapshots' worth."""
POLICY = muniment.Policy.from_wire({"ledger": {"index_turns": False}, "compaction": {"auto": False}})
"""Snapshots are taken where the benchmark says; search indexing is measured apart, by `benchmarks.compose`."""


def make_events(count: int, start: int) -> list[dict[str, Any]]:
    """Steps of a long run: what was planned, done and observed, with a tool's result for each."""
    names = ("PLAN_DONE", "ACT_DONE", "OBSERVE_DONE")
    events: list[dict[str, Any]] = []
    for number in range(start, start + count):
        step, place = divmod(number, 4)
        if place == 3:
            result = f"row {number}: 12 °C in Berlin"
            events.append({"role": "tool", "content": result, "tool": {"name": "weather", "ok": True}})
        else:
            told: dict[str, Any] = {"event": names[place], "step": step + 1}
            if place == 1:
                told["action"] = {"tool": "weather", "args": {"row": number}}
            events.append({"role": "system", "content": f"step {step}", "step": told})
    return events


class Long:
    """A run of so many events and claims, with a snapshot near its end."""

    def __init__(self, path: Path, events: int, claims: int) -> None:
        self.mem = muniment.open(path, policy=POLICY)
        self.run = self.mem.run(user_id="ana", session_id="s", run_id="r", objective="long", done_definition="done")
        readings = [{"role": "user", "content": f"reading {n}: {n * 7} bar"} for n in range(claims)]
        evidence = self.run.observe_many(readings)
        for number, said in enumerate(evidence):
            quote = {"event_id": said.id, "quote": f"{number * 7} bar"}
            self.run.log.claim(f"reading {number} was {number * 7} bar", evidence=[quote], status="verified")
        written = 0
        for start in range(0, max(0, events - 2 * claims - TAIL), BATCH):
            size = min(BATCH, events - 2 * claims - TAIL - start)
            self.run.observe_many(make_events(size, start))
            written = start + size
        self.run.log.compact()
        self.run.observe_many(make_events(TAIL, written))

    def resume(self) -> float:
        return timed(lambda: self.mem.resume("r"))

    def replay(self) -> float:
        ctx = self.mem._ctx
        fold = lambda reader: load_log(reader, self.run.scope, POLICY.compaction, before=1)  # noqa: E731
        return timed(lambda: ctx.engine.read("default", fold))

    def stored(self) -> int:
        """Bytes of everything that snapshots are stored as, compressed as the engines do."""
        engine = self.mem._ctx.engine
        where: tuple[Condition, ...] = (("kind", "=", "snapshot"),)
        items = engine.read("default", lambda reader: reader.do(Select("items", where=where, columns=("body",))))
        return sum(len(compress(str(body).encode(), 6)) for (body,) in items)


@contextmanager
def a_run(events: int, claims: int) -> Iterator[Long]:
    with tempfile.TemporaryDirectory() as folder:
        made = Long(Path(folder, "run.db"), events, claims)
        try:
            yield made
        finally:
            made.mem.close()


def median_of(work: Callable[[], float], rounds: int) -> float:
    return statistics.median(work() for _ in range(rounds))


def resume_against_replay(sizes: list[int], claims: int, rounds: int) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    cost: dict[int, float] = {}
    for events in sizes:
        with a_run(events, claims) as long:
            assert long.mem.log.check_snapshot("r").status == "PASS"
            long.resume()
            mine, theirs, ratio = versus(lambda _: long.resume(), lambda _: long.replay(), rounds)
            cost[events] = mine
            rows[f"resume at {events:,} events, {claims:,} claims"] = {
                "resume_ms": mine * 1e3,
                "replay_ms": theirs * 1e3,
                "times_faster": ratio,
                "snapshot_bytes": len(long.mem.log.snapshot("r").to_bytes()),
            }
    first, last = min(sizes), max(sizes)
    rows[f"resume at {last:,} against {first:,} events"] = {"ratio": cost[last] / cost[first]}
    return rows


def snapshots_by_claims(counts: list[int], further: int) -> dict[str, dict[str, Any]]:
    """What one more snapshot costs when one claim changed, and how its time grows with claims."""
    rows: dict[str, dict[str, Any]] = {}
    for claims in counts:
        with a_run(4 * claims, claims) as long:
            whole = len(long.mem.log.snapshot("r").to_bytes())
            added: list[int] = []
            spent: list[float] = []
            checked: list[int] = []
            before = long.stored()
            for number in range(further):
                said = long.run.observe("user", f"late reading {number}: {number} bar")
                long.run.log.claim(f"the late reading {number} was {number} bar", evidence=[said.id], status="verified")
                spent.append(timed(long.run.log.compact))
                checked.append(_claims_checked(long))
                after = long.stored()
                added.append(after - before)
                before = after
            rows[f"a further snapshot at {claims:,} claims"] = {
                "claims_checked": statistics.median(checked),
                "document_bytes": whole,
                "added_bytes": statistics.median(added),
                "share": statistics.median(added) / whole,
                "compact_ms": statistics.median(spent) * 1e3,
                "us_a_claim": statistics.median(spent) * 1e6 / claims,
            }
    return rows


def _claims_checked(long: Long) -> int:
    """How many claims the last snapshot compared with the ledger."""
    checks = long.mem.log.snapshot("r").validation.checks
    return int(next(check.message for check in checks if check.name == "claims_in_ledger").split()[0])


def appends_meanwhile(claims: int, seconds: float) -> dict[str, dict[str, Any]]:
    """How long an append takes while another thread compacts without a pause, against appending alone."""
    with a_run(4 * claims, claims) as long:
        other = long.mem.run(user_id="ana", session_id="other")

        def append(until: float) -> list[float]:
            taken = []
            while time.perf_counter() < until:
                taken.append(timed(lambda: other.observe("user", "meanwhile")))
            return taken

        alone = append(time.perf_counter() + seconds)
        stop = threading.Event()
        done = 0

        def compact() -> None:
            nonlocal done
            while not stop.is_set():
                long.run.observe("user", "one more")
                long.run.log.compact()
                done += 1

        thread = threading.Thread(target=compact)
        thread.start()
        beside = append(time.perf_counter() + seconds)
        stop.set()
        thread.join()
    return {
        f"appends while compacting {claims:,} claims": {
            "alone_p50_ms": statistics.median(alone) * 1e3,
            "beside_p50_ms": statistics.median(beside) * 1e3,
            "beside_p99_ms": statistics.quantiles(beside, n=100)[-1] * 1e3,
            "compactions": done,
        }
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look")
    given = parser.parse_args()
    if given.quick:
        sizes, claims, counts, rounds = [3_000, 20_000], 200, [100, 1_000], 3
    else:
        sizes, claims, counts, rounds = [10_000, 100_000, 1_000_000], 1_000, [100, 1_000, 10_000], 7
    rows = resume_against_replay(sizes, claims, rounds)
    rows |= snapshots_by_claims(counts, further=7)
    rows |= appends_meanwhile(claims, seconds=1.0 if given.quick else 5.0)
    report("compaction", rows, {"quick": given.quick, "sizes": sizes, "claims": claims, "counts": counts})


if __name__ == "__main__":
    main()
