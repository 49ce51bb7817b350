"""What every benchmark shares: fair interleaved timing, a scratch directory, one result file."""

from __future__ import annotations

import gc
import json
import os
import platform
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def without_collections() -> Iterator[None]:
    """Without collections in between, which cost by what else the process holds."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def versus(ours: Callable[[int], float], reference: Callable[[int], float], rounds: int) -> tuple[float, float, float]:
    """Median seconds of each, and the median of the rounds' ratios (reference ÷ ours: 1 is as fast, higher is faster).

    The two take turns and the order alternates, so that a busy neighbour hits both.
    """
    mine: list[float] = []
    theirs: list[float] = []
    for round_ in range(rounds):
        if round_ % 2:
            theirs.append(reference(round_))
            mine.append(ours(round_))
        else:
            mine.append(ours(round_))
            theirs.append(reference(round_))
    ratios = [b / a for a, b in zip(mine, theirs, strict=True)]
    return statistics.median(mine), statistics.median(theirs), statistics.median(ratios)


def report(name: str, rows: dict[str, dict[str, Any]], arguments: dict[str, Any], file: str = "") -> None:
    """Print the table and write benchmarks/results/<file>.json, `name` where no other is given."""
    file = file or name
    document = {
        "benchmark": name,
        "command": f"python -m benchmarks.{name}",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "system": platform.system(),
            "cores": os.cpu_count(),
        },
        "arguments": arguments,
        "results": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{file}.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    width = max(map(len, rows))
    for key, row in rows.items():
        shown = "  ".join(f"{column}={_shown(value)}" for column, value in row.items())
        print(f"{key:<{width}}  {shown}")
    print(f"written to {RESULTS.name}/{file}.json", file=sys.stderr)


def _shown(value: Any) -> str:
    return (
        f"{value:.3g}"
        if isinstance(value, float) and value < 100
        else f"{value:,.0f}"
        if isinstance(value, float)
        else str(value)
    )
