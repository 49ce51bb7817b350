"""The flow map: memory and speed over a million EventLogs of a store, and how far its estimates are from the truth.

    python -m benchmarks.rules_flowmap               1,000,000 logs in a SQLite store, 10 worlds
    python -m benchmarks.rules_flowmap --quick       20,000 logs, 2 worlds

Logs are written into the store as a bank keeps them (rows of `items` whose bodies are those of real logs, varied), and
read back through `bank.flow_map` in a process of its own for each number of logs, whose peak resident size is told.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import muniment
from benchmarks.harness import report
from muniment.core.instants import format_instant
from muniment.core.policy import FlowEstimatorKind
from muniment.core.ports.engine import Insert
from muniment.core.ports.schema import ItemRow
from muniment.learning.folding import list_event_logs
from muniment.rules.flow_map import (
    ALL_BUCKETS,
    ALL_CODES,
    FlowRow,
    FlowTally,
    RiskField,
    fit_risk,
    interventions,
    risk_cells,
    stage_of,
)

Array = np.ndarray[Any, np.dtype[np.float64]]
USER = "ana"
OWNER = f"bank:user:{USER}"
START = datetime(2026, 1, 1, tzinfo=UTC)
CODES = ("numeric_error", "format_leak", "tool_misroute", "test_fail", "insufficient_evidence")
TIERS = {"main": "hot", "sot": "hot", "kroll": "probe", "synth": "full"}
ATTEMPTS = {"kroll": 3, "synth": 6}
BATCH = 10_000
THIN_N = 10
HINT_EFFECT = 0.8
"""How much a hint takes off the logit of failing."""


class World:
    """Runs of many buckets, most of them seldom met; how often they fail, and by what, is known."""

    modes = tuple(TIERS)

    def __init__(self, seed: int, domains: int = 6) -> None:
        self.random = random.Random(seed)
        names = [f"d{number}" for number in range(domains)]
        levels = ("low", "med", "high")
        self.buckets = [
            f"I{impact}|{name}|clarity_{level}" for impact in (1, 2, 3) for name in names for level in levels
        ]
        self.random.shuffle(self.buckets)
        self.sizes = [1 / (1 + at) for at in range(len(self.buckets))]
        self.domain = {name: self.random.gauss(0, 0.5) for name in names}
        self.own = {bucket: self.random.gauss(0, 0.25) for bucket in self.buckets}
        self.weights = {name: [self.random.gammavariate(1.2, 1) for _ in CODES] for name in names}

    def risk(self, bucket: str, mode: str, hints: bool) -> float:
        impact, domain, clarity = bucket.split("|")
        logit = -1.3 + 0.5 * int(impact[1]) + self.domain[domain] + self.own[bucket] - HINT_EFFECT * hints
        logit += {"clarity_low": 0.4, "clarity_med": 0.0, "clarity_high": -0.4}[clarity]
        logit += {"main": 0.0, "sot": -0.2, "kroll": -0.5, "synth": -0.8}[mode]
        return 1 / (1 + math.exp(-logit))

    def hinted(self, bucket: str) -> float:
        """Hints are given where runs are easy: what a map must not take for their worth."""
        return {"1": 0.7, "2": 0.4, "3": 0.1}[bucket[1]]

    def mean_risk(self, bucket: str, mode: str) -> float:
        share = self.hinted(bucket)
        return share * self.risk(bucket, mode, True) + (1 - share) * self.risk(bucket, mode, False)

    def share(self, bucket: str, code: str) -> float:
        weights = self.weights[bucket.split("|")[1]]
        return weights[CODES.index(code)] / sum(weights)

    def rows(self, n: int) -> Iterator[FlowRow]:
        made = self.random
        buckets = made.choices(self.buckets, self.sizes, k=n)
        modes = made.choices(self.modes, (6, 2, 2, 1), k=n)
        for number, (bucket, mode) in enumerate(zip(buckets, modes, strict=True)):
            hints = made.random() < self.hinted(bucket)
            bad = made.random() < self.risk(bucket, mode, hints)
            codes = tuple(code for code in CODES if bad and made.random() < self.share(bucket, code))
            yield FlowRow(
                trace_id=f"trc_{number:032x}",
                stage=stage_of(mode),
                verdict="FAIL" if bad else "PASS",
                outcome="FAIL" if bad else "OK",
                passed=not bad,
                reason_codes=codes,
                cost=float(800 * ATTEMPTS.get(mode, 1) + made.randrange(400)),
                mode=mode,
                tier=TIERS[mode],
                bucket_key=bucket,
                at=instant(number),
                hints=int(hints),
            )


def instant(number: int) -> str:
    return format_instant(START + timedelta(seconds=number))


# -- a store ------------------------------------------------------------------------------------------


def a_body(mem: muniment.Memory) -> dict[str, Any]:
    """The body of a log as the store keeps it, of a run that was really learnt from."""
    run = mem.run(user_id=USER, agent_id="solver", task_type="countdown")
    run.observe("user", "Reach 24 with 3, 8 and 1.")
    run.observe_tool("calculator", content="24", args={"expression": "3 * 8"})
    run.observe("assistant", "3 × 8 = 24")
    result = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
    run.finish(verifier_result=result, intent={"domain_tag": "math", "task_family": "countdown"})
    return mem._ctx.engine.read("default", lambda reader: list_event_logs(reader, OWNER)[0])


def varied(body: dict[str, Any], row: FlowRow) -> str:
    """The same body for another run."""
    recall = {"enabled": True, "used_ids": ["rm_1"] * row.hints, "retrieved_ids": ["rm_1", "rm_2"]}
    log = body["event_log"] | {
        "trace_id": row.trace_id, "bucket_key": row.bucket_key, "run": {"mode": row.mode}, "memory_recall": recall,
        "verifier": {"verifier_id": "v", "verdict": row.verdict, "outcome": row.outcome},
    }  # fmt: skip
    facts = body["facts"] | {
        "trace_id": row.trace_id, "bucket_key": row.bucket_key, "verdict": row.verdict, "outcome": row.outcome,
        "passed": row.passed, "reason_codes": list(row.reason_codes), "cost": row.cost, "at": row.at,
        "state": {"mode": row.mode, "budget_tier": row.tier},
    }  # fmt: skip
    return json.dumps(body | {"event_log": log, "facts": facts}, sort_keys=True, separators=(",", ":"))


def fill(path: Path, n: int) -> float:
    """A store with `n` logs in one bank; how many bytes one takes in it."""
    size = 0
    with muniment.open(path) as mem:
        body, engine, batch = a_body(mem), mem._ctx.engine, []
        for number, row in enumerate(World(1).rows(n), 1):
            text = varied(body, row)
            size += len(text)
            status = "passed" if row.passed else "failed"
            batch.append(
                ItemRow(
                    id=row.trace_id, version=1, kind="event_log", user_id=OWNER, session_id=None, agent_id=None,
                    run_id=row.trace_id, status=status, name=None, created_at=row.at, trust="assistant", body=text,
                    receipt_id=None, digest=None, checked=0, newest=1, owner=OWNER, placed_at=row.at,
                )
            )  # fmt: skip
            if len(batch) == BATCH or number == n:
                engine.write("default", lambda tx, batch=tuple(batch): tx.do(Insert("items", batch)))  # type: ignore[misc]
                batch = []
                print(f"{number:,} logs written", end="\r", file=sys.stderr, flush=True)
    return size / n


def peak_mb() -> float:
    """The most this process ever held, itself and not who started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the peak of memory is read from /proc, which is not here")


def read_store(path: str, n: int, estimator: FlowEstimatorKind) -> dict[str, Any]:
    """The map of the first `n` logs of a store: what it took."""
    with muniment.open(path) as mem:
        bank = mem.bank(user_id=USER)
        before = peak_mb()
        start, cpu = time.perf_counter(), time.process_time()
        snapshot = bank.flow_map(until=instant(n), estimator=estimator)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    counted = int(str(snapshot.notes).split()[0])
    assert counted == n, f"{counted} of {n} logs were counted"
    return {
        "peak_mb": peak_mb(),
        "peak_before_mb": before,
        "logs_per_s": n / seconds,
        "logs_per_cpu_s": n / cpu,
        "seconds": seconds,
    }


def stores(sizes: Sequence[int], folder: Path) -> dict[str, dict[str, Any]]:
    """One store, and a process for each number of its logs."""
    path = folder / "logs.db"
    start = time.perf_counter()
    bytes_each = fill(path, max(sizes))
    rows: dict[str, dict[str, Any]] = {
        "store": {
            "logs": max(sizes),
            "body_bytes": bytes_each,
            "file_mb": path.stat().st_size / 1e6,
            "seconds": time.perf_counter() - start,
        }
    }
    for estimator in ("aggregate_v1", "logit_field_v1"):
        peaks = []
        for n in sizes:
            command = [sys.executable, "-m", "benchmarks.rules_flowmap", "--child", str(path), str(n), estimator]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows[f"store, {n:,} logs, {estimator}"] = json.loads(done.stdout)
            peaks.append(rows[f"store, {n:,} logs, {estimator}"]["peak_mb"])
        rows[f"store, memory of most over fewest, {estimator}"] = {
            "ratio": peaks[-1] / peaks[0],
            "more_mb": peaks[-1] - peaks[0],
            "logs_ratio": sizes[-1] / sizes[0],
        }
    return rows


def cells_of(tally: FlowTally) -> int:
    return len(tally.codes) + len(tally.arms) + len(tally.climbs)


# -- counting alone -----------------------------------------------------------------------------------


def counting(n: int) -> dict[str, dict[str, Any]]:
    """Rows that are there already, counted; a stream of ever new names; two tallies merged."""
    rows = list(World(2).rows(min(n, 100_000)))
    cpu = time.process_time()
    tally = FlowTally().add_all(rows)
    cpu = time.process_time() - cpu
    hostile = FlowTally()
    most = 0
    for number, row in enumerate(rows):
        name = f"n{number}"
        hostile.add(row._replace(bucket_key=name, mode=name, stage=stage_of(name), tier=name, reason_codes=(name,)))
        most = max(most, cells_of(hostile))
    return {
        "counting": {"rows": len(rows), "rows_per_cpu_s": len(rows) / cpu, "cells": cells_of(tally)},
        "counting, every row with names of its own": {"rows": len(rows), "cells_max": most},
    }


# -- truth --------------------------------------------------------------------------------------------


def thin_estimates(world: World, tally: FlowTally, field: RiskField) -> tuple[list[float], list[float], list[float]]:
    """Of every cell of a stage with few logs in its bucket: the rate, the field's estimate, the truth."""
    rates, fitted, truths = [], [], []
    for bucket in sorted({key.bucket for key in tally.codes}):
        cells = {(cell.stage, cell.code): cell for cell in risk_cells(tally, bucket)}
        for mode in world.modes:
            whole = cells.get((stage_of(mode), ALL_CODES))
            if whole is None or whole.n > THIN_N:
                continue
            for code in CODES:
                cell = cells.get((stage_of(mode), code))
                rates.append((0 if cell is None else cell.risky) / whole.n)
                fitted.append(field.risk_of(bucket, stage_of(mode), code))
                truths.append(world.mean_risk(bucket, mode) * world.share(bucket, code))
    return rates, fitted, truths


def true_gain(world: World, tally: FlowTally) -> float:
    """What hints gained the runs that had them."""
    gained = n = 0.0
    for key in tally.arms:
        if key.hints:
            count = tally.arms[key].n
            gained += count * (world.risk(key.bucket, key.mode, False) - world.risk(key.bucket, key.mode, True))
            n += count
    return gained / n


def calibration_error(said: Array, true: Array) -> float:
    """In ten bins of the estimates: how far they are from the truth, on average."""
    bins = np.minimum((said * 10).astype(int), 9)
    return float(np.abs(np.bincount(bins, said, 10) - np.bincount(bins, true, 10)).sum() / max(1, len(said)))


def _of(estimates: Sequence[float], truths: Sequence[float]) -> dict[str, float]:
    said, true = np.array(estimates), np.array(truths)
    gap = calibration_error(said, true)
    return {"mean_error": float(np.abs(said - true).mean()), "calibration_gap": gap, "cells": len(estimates)}


def truths(sizes: Sequence[int], worlds: int) -> dict[str, dict[str, Any]]:
    """Thin cells and the gain of hints, beside what they truly are, over some worlds of each size."""
    rows: dict[str, dict[str, Any]] = {}
    for size in sizes:
        thin: tuple[list[float], list[float], list[float]] = ([], [], [])
        gains: dict[str, list[tuple[float, bool]]] = {"crude": [], "aggregate_v1": []}
        for seed in range(worlds):
            world = World(100 + seed)
            tally = FlowTally().add_all(world.rows(size))
            field = fit_risk(tally)
            for mine, more in zip(thin, thin_estimates(world, tally, field), strict=True):
                mine.extend(more)
            truth = true_gain(world, tally)
            told, _ = interventions(tally, ALL_BUCKETS)
            hints = next(each for each in told if each["intervention"] == "hints")
            gain, bounds = hints["gain_pass"], (hints["lower"], hints["upper"])
            gains["aggregate_v1"].append((abs(gain - truth), bounds[0] <= truth <= bounds[1]))
            gains["crude"].append((abs(hints["crude_gain"] - truth), False))
            print(f"{size:,} logs, world {seed + 1} of {worlds}", end="\r", file=sys.stderr, flush=True)
        rows[f"thin cells, {size:,} logs, rates"] = _of(thin[0], thin[2])
        rows[f"thin cells, {size:,} logs, logit_field_v1"] = _of(thin[1], thin[2])
        for name, found in gains.items():
            rows[f"gain of hints, {size:,} logs, {name}"] = {
                "mean_error": float(np.mean([error for error, _ in found])),
                **({} if name == "crude" else {"covered": sum(inside for _, inside in found) / worlds}),
            }
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20,000 logs and 2 worlds, for a look")
    parser.add_argument("--logs", type=int, default=1_000_000, help="logs in the store")
    parser.add_argument("--worlds", type=int, default=10, help="worlds of each size")
    parser.add_argument("--child", nargs=3, metavar=("DB", "N", "ESTIMATOR"), help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.child:
        path, n, estimator = given.child
        print(json.dumps(read_store(path, int(n), estimator)))
        return
    logs, worlds = (20_000, 2) if given.quick else (given.logs, given.worlds)
    with tempfile.TemporaryDirectory() as folder:
        rows = stores([logs // 100, logs // 10, logs], Path(folder))
    rows |= counting(logs)
    rows |= truths((500, 2_000) if given.quick else (500, 2_000, 10_000), worlds)
    report("rules_flowmap", rows, {"logs": logs, "worlds": worlds})


if __name__ == "__main__":
    main()
