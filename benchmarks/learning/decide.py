"""What pays: the arms on families that learning was designed on and on families that had no part in any choice.

    python -m benchmarks.learning.decide                   six seeds, 120 runs of each family

Rates are of the truth and worked out for each run. A seed is one stream; intervals are 95 % of a bootstrap over seeds.
The two groups of families are played apart, each in a memory of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import muniment
from benchmarks.harness import report
from benchmarks.learning.arms import ARMS, Ours, families_of, held_out_of, play_arm, stream_of
from benchmarks.learning.fresh import make_fresh

DRAWS = 10_000
GROUPS = {"designed on": families_of, "held out": held_out_of, "fresh": make_fresh}


def play(seed: str, group: str, runs: int, arms: Sequence[str]) -> dict[str, list[tuple[str, int, float]]]:
    stream = stream_of(seed, GROUPS[group](seed), runs)
    found = {name: play_arm(ARMS[name](seed), stream) for name in arms if name != "ours"}
    if "ours" in arms:
        with muniment.open(":memory:", embedder="none") as mem:
            found["ours"] = play_arm(Ours(mem), stream)
    return {name: [(row.family, row.segment, row.expected) for row in rows] for name, rows in found.items()}


def interval(values: Sequence[float]) -> list[float]:
    array = np.array(values)
    drawn = array[np.random.default_rng(0).integers(0, len(array), (DRAWS, len(array)))].mean(axis=1)
    return [round(float(each), 4) for each in (array.mean(), *np.quantile(drawn, [0.025, 0.975]))]


def rows_of(played: Sequence[dict[str, list[tuple[str, int, float]]]], group: str) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    families = sorted({family for family, _, _ in played[0][next(iter(played[0]))]})
    for arm in played[0]:
        means = [float(np.mean([rate for _, _, rate in seed[arm]])) for seed in played]
        mean, low, high = interval(means)
        row: dict[str, Any] = {"rate": mean, "low": low, "high": high}
        for base in ("none", "last five"):
            if base in played[0] and base != arm:
                gaps = [
                    float(np.mean([a[2] - b[2] for a, b in zip(seed[arm], seed[base], strict=True)])) for seed in played
                ]
                row[f"over {base}"] = interval(gaps)
        for family in families:
            rates = [rate for seed in played for name, _, rate in seed[arm] if name == family]
            row[family] = round(float(np.mean(rates)), 4)
        rows[f"{group}: {arm}"] = row
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--runs", type=int, default=120, help="of each family")
    parser.add_argument("--arms", default=",".join([*ARMS, "ours"]))
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--salt", default="decide")
    parser.add_argument("--file", default="")
    given = parser.parse_args(argv)
    rows: dict[str, dict[str, Any]] = {}
    begun = time.process_time()
    for group in given.groups.split(","):
        played = []
        for number in range(given.seeds):
            played.append(play(f"{given.salt} {number}", group, given.runs, given.arms.split(",")))
            print(f"{group}, seed {number + 1}: {time.process_time() - begun:.0f} s", file=sys.stderr, flush=True)
        rows |= rows_of(played, group)
    told = {"seeds": given.seeds, "runs": given.runs, "salt": given.salt}
    report("learning", rows, told, given.file or "learning")


if __name__ == "__main__":
    main()
