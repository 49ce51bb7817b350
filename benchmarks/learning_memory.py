"""Memory over many runs: the resident size of a process while it learns from run after run.

    python -m benchmarks.learning_memory                       100,000 runs of four steps, 100 users in turn (hours)
    python -m benchmarks.learning_memory --runs N --users M    other numbers

Caches fill at first: the memory is flat where the last reading is no more than a tenth above that at a quarter of the
runs. One user's own index grows with what the user says, and parts of it are merged in memory: with one user alone the
size follows the length of that user's history. Across users it is bounded.
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


def memory_over_runs(counts: Sequence[int], users: int) -> dict[str, dict[str, Any]]:
    """Runs of four steps, one after another, of these users in turn; resident size after so many."""
    rows: dict[str, dict[str, Any]] = {}
    with a_store() as mem:
        done = 0
        for count in counts:
            start = time.process_time()
            size = count - done
            while done < count:
                learn(a_run(mem, done // users, 4, f"user{done % users}"), done // users)
                done += 1
            rows[f"memory after {count:,} runs"] = {
                "resident_mb": resident_mb(),
                "cpu_ms_a_run": (time.process_time() - start) * 1e3 / size,
            }
            print(f"{count:,} runs: {resident_mb():.1f} MB", file=sys.stderr, flush=True)
    sizes = [row["resident_mb"] for row in rows.values()]
    rows["memory, last over first"] = {"ratio": sizes[-1] / sizes[0], "runs": counts[-1]}
    quarter = sizes[SHARES.index(0.25)]
    rows["memory, last over a quarter"] = {"ratio": sizes[-1] / quarter, "runs": counts[-1]}
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
    parser.add_argument("--users", type=int, default=100, help="how many users take turns")
    given = parser.parse_args(argv)
    runs = 300 if given.quick else given.runs
    rows = memory_over_runs([round(runs * share) for share in SHARES], given.users)
    report("learning_memory", rows, {"runs": runs, "users": given.users})


if __name__ == "__main__":
    main()
