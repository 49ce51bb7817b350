"""Ten thousand stories: what was done to three stores at once, what went wrong in them, and which promises held.

    python -m benchmarks.simulator --seeds 10000                     # one after the other, on every engine
    python -m benchmarks.simulator --seed 17 --steps 3,5,9           # one story again, or a part of it
    python -m benchmarks.simulator --seeds 500 --engine memory,sqlite --processes 2
    python -m benchmarks.simulator --seeds 500 --engine memory,postgres-pooler,postgres-replica
    python -m benchmarks.simulator --sum results/simulator_*.json    # runs that were kept in files of their own, as one

A story that breaks a promise is shrunk, told step by step, and followed by the command that repeats it; the exit code
is 1 then. Without PostgreSQL it says so and goes on with the other two.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import report
from muniment.testing.postgres import VARIABLE, Unavailable, server_dsn
from muniment.testing.simulator.simulating import ACTS, STEPS, Failure, Tally, acts_named, shrink, simulate, tell
from muniment.testing.simulator.specimens import BEHIND, ENGINES, open_specimens

__all__ = ["main"]

_BATCH = 20
"""Stories that one process tells with the same server and folder."""


def tell_batch(
    seeds: Sequence[int], engines: tuple[str, ...], steps: int, acts: tuple[str, ...]
) -> tuple[Tally, list[str]]:
    """The stories of some seeds; of those that failed, what is to be printed."""
    with open_specimens(engines) as opener:
        tally, failures = simulate(seeds, opener, steps=steps, acts=acts_named(acts))
        return tally, [str(failure) for failure in failures]


def tell_one(seed: int, steps: Sequence[int], engines: tuple[str, ...], acts: tuple[str, ...]) -> Failure | None:
    with open_specimens(engines) as opener:
        failure = tell(seed, steps, opener, Tally(), acts_named(acts))
        return None if failure is None else shrink(failure, opener)


def rows_of(tally: Tally, failed: int, engines: Sequence[str], seconds: float) -> dict[str, dict[str, Any]]:
    return {
        "stories": {
            "held": tally.stories,
            "failed": failed,
            "stores": len(engines),
            "steps": tally.steps.total(),
            "cpu_seconds_per_story": seconds / max(1, tally.stories + failed),
        },
        "steps": dict(sorted(tally.steps.items())),
        "faults": dict(sorted(tally.faults.items())),
        "refusals": dict(sorted(tally.refusals.items())),
        "checks": dict(sorted(tally.checks.items())),
    }


def summed(files: Sequence[Path]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The rows and arguments of several runs on the same engines, as those of one; no seed counts twice.

    Raises `SystemExit` for runs that cannot be told as one.
    """
    runs = sorted((json.loads(file.read_text("utf-8")) for file in files), key=lambda run: run["arguments"]["first"])
    first, told = runs[0]["arguments"], 0
    rows: dict[str, Counter[str]] = {name: Counter() for name in runs[0]["results"]}
    seconds, end = 0.0, 0
    for run in runs:
        arguments, stories = run["arguments"], run["results"]["stories"]
        if any(arguments[name] != first[name] for name in ("engines", "steps")) or arguments["first"] < end:
            raise SystemExit("these runs differ in their engines or steps, or tell the same seeds")
        end, told = arguments["first"] + arguments["seeds"], told + arguments["seeds"]
        seconds += stories["cpu_seconds_per_story"] * (stories["held"] + stories["failed"])
        for name, row in run["results"].items():
            rows.setdefault(name, Counter()).update(row)
    made = {name: dict(sorted(row.items())) for name, row in rows.items()}
    whole = {"stores": len(first["engines"]), "cpu_seconds_per_story": seconds / max(1, told)}
    return {**made, "stories": {**made["stories"], **whole}}, {**first, "seeds": told}


def engines_of(named: str) -> tuple[str, ...]:
    engines = ENGINES if named == "all" else tuple(named.split(","))
    known = (*ENGINES, *BEHIND)
    if unknown := set(engines) - set(known):
        raise SystemExit(f"no engine {', '.join(sorted(unknown))}: one or more of {', '.join(known)}, or all")
    if any(engine.startswith("postgres") for engine in engines):
        try:
            os.environ[VARIABLE] = server_dsn()  # one server for all processes
        except Unavailable as reason:
            print(f"PostgreSQL is NOT part of this: {reason}", file=sys.stderr)
            engines = tuple(engine for engine in engines if not engine.startswith("postgres"))
    return engines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200, help="how many stories")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="one story only")
    parser.add_argument(
        "--steps", default=str(STEPS), help="steps of a story; with --seed, the numbers of those to take"
    )
    parser.add_argument("--engine", default="all", help="all, or names with commas between them")
    parser.add_argument("--acts", help="names with commas between them: stories of these alone")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no further stories after so long")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--file", default="simulator", help="that the figures are kept in, under benchmarks/results")
    parser.add_argument("--sum", type=Path, nargs="+", help="files with the figures of earlier runs: add them up")
    given = parser.parse_args(arguments)
    if given.sum:
        report("simulator", *summed(given.sum), given.file)
        return 0
    engines = engines_of(given.engine)
    acts = tuple(given.acts.split(",")) if given.acts else tuple(act.name for act in ACTS)
    if given.seed is not None:
        numbers = [int(each) for each in given.steps.split(",") if each]
        whole = "," not in given.steps
        failure = tell_one(given.seed, range(1, numbers[0] + 1) if whole else numbers, engines, acts)
        print(failure or f"seed {given.seed}: every promise held")
        return 0 if failure is None else 1
    began = time.process_time()
    deadline = time.monotonic() + 60 * given.minutes
    tally, failures, count = Tally(), list[str](), 0
    seeds = range(given.first, given.first + given.seeds)
    batches = [seeds[at : at + _BATCH] for at in range(0, len(seeds), _BATCH)]
    with ProcessPoolExecutor(given.processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for at in range(0, len(batches), given.processes):
            if time.monotonic() > deadline:
                print(f"the time is up: {count} of {len(seeds)} stories were told", file=sys.stderr)
                break
            some = batches[at : at + given.processes]
            work = partial(tell_batch, engines=engines, steps=int(given.steps), acts=acts)
            for batch, (part, failed) in zip(some, pool.map(work, some), strict=True):
                tally.add(part)
                failures += failed
                count += len(batch)
                print(f"{count} of {len(seeds)}", *failed, sep="\n", file=sys.stderr, flush=True)
    seconds = time.process_time() - began + sum(os.times()[2:4])
    chosen = {"seeds": count, "first": given.first, "engines": list(engines), "steps": int(given.steps)}
    report("simulator", rows_of(tally, len(failures), engines, seconds), chosen, given.file)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
