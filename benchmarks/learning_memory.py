"""Memory over many runs: the resident size of a process while one bank takes run after run.

    python -m benchmarks.learning_memory            100,000 runs of four steps (two hours or more)
    python -m benchmarks.learning_memory --runs N   another number
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import report
from benchmarks.learning_speed import a_run, a_store, learn

SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Of the runs, where the size is read."""


def memory_over_runs(counts: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Runs of four steps, one after another, in one bank; resident size after so many."""
    rows: dict[str, dict[str, Any]] = {}
    with a_store() as mem:
        done = 0
        for count in counts:
            start = time.perf_counter()
            size = count - done
            while done < count:
                learn(a_run(mem, done, 4), done)
                done += 1
            rows[f"memory after {count:,} runs"] = {
                "resident_mb": resident_mb(),
                "ms_a_run": (time.perf_counter() - start) * 1e3 / size,
            }
            print(f"{count:,} runs: {resident_mb():.1f} MB", file=sys.stderr, flush=True)
    sizes = [row["resident_mb"] for row in rows.values()]
    rows["memory, last over first"] = {"ratio": sizes[-1] / sizes[0], "runs": counts[-1]}
    return rows


def resident_mb() -> float:
    told = Path("/proc/self/statm")
    if told.exists():
        return int(told.read_text().split()[1]) * resource.getpagesize() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="300 runs, for a look")
    parser.add_argument("--runs", type=int, default=100_000, help="how many runs memory is watched over")
    given = parser.parse_args(argv)
    runs = 300 if given.quick else given.runs
    report("learning_memory", memory_over_runs([round(runs * share) for share in SHARES]), {"runs": runs})


if __name__ == "__main__":
    main()
