"""Learning in generated worlds: a frozen agent, truth that is known, drift, noise, false feedback, attacks.

    python -m benchmarks.learning.worlds --quick            one seed, few runs, for a look
    python -m benchmarks.learning.worlds                    five seeds, 400 runs of each family, for looking
    python -m benchmarks.learning.worlds --judged           the same with seeds that are kept for judging
    python -m benchmarks.learning.worlds --judged --scratch DIR

With `--scratch` what was played is kept there, and a run that was cut short is taken up by the next: a folder for each
tree that is measured. Another tree's library is measured with its `src` first in PYTHONPATH.

`families` and `code` explain the worlds, `reading` how the agent reads what it is told,
`arms` the arms, `figures` what is counted, `attacks` the attacks. Seeds for looking and for
judging are drawn apart: whoever changes the library looks at the one and leaves the other to whoever measures.

One memory for each seed: the families take turns in it. A run costs 40 to 60 ms of CPU, and nearly all of it is ours.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import muniment
from benchmarks.harness import report
from benchmarks.learning.arms import ARMS, Lesson, Ours, families_of, play_arm, stream_of
from benchmarks.learning.attacks import attack_rows, play_attack
from benchmarks.learning.families import KINDS
from benchmarks.learning.figures import arm_rows, drift_rows, lesson_rows, line_rows, worth

ALL = (*KINDS, "code")
ATTACKS = ("neither", "poisoned", "injected")


def play_seed(seed: str, kinds: Sequence[str], runs: int) -> dict[str, Any]:
    """All arms on one stream."""
    families = families_of(seed, kinds)
    stream = stream_of(seed, families, runs)
    arms = {name: play_arm(make(seed), stream) for name, make in ARMS.items()}
    lessons: list[list[Lesson]] = []
    with muniment.open(":memory:", embedder="none") as mem:
        ours = Ours(mem)
        arms["ours"] = []
        for segment in range(3):
            arms["ours"] += play_arm(ours, [turn for turn in stream if turn.segment == segment])
            lessons.append(ours.lessons(families, segment))
    return {"arms": arms, "lessons": lessons, "cpu_s": ours.cpu_s}


def kept(scratch: Path | None, play: Callable[..., Any], *given: Any) -> Any:
    """What it plays, or what it played before with the same arguments."""
    if scratch is None:
        return play(*given)
    path = scratch / f"{hashlib.sha256(repr((play.__name__, given)).encode()).hexdigest()[:24]}.pickle"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(play(*given)))
        part.rename(path)
    return pickle.loads(path.read_bytes())


def quoted(seeds: Sequence[dict[str, Any]], count: int) -> dict[str, dict[str, Any]]:
    """Lessons as they are, of the end of the second segment: so many in force, and so many that are not."""
    rows: dict[str, dict[str, Any]] = {}
    held = [each for seed in seeds for each in seed["lessons"][1]]
    for title, of in (("in force", True), ("not in force", False)):
        some = [each for each in held if (each.stage == "active") == of]
        step = max(1, len(some) // count)
        for number, each in enumerate(some[::step][:count]):
            rows[f"lesson {title}, {number + 1}"] = {
                "text": each.text, "family": each.family, "stage": each.stage, "origin": each.origin,
                "effect": round(each.effect, 4), "worth": worth(each),
            }  # fmt: skip
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed and few runs, for a look")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=400, help="of each family")
    parser.add_argument("--families", default=",".join(ALL))
    parser.add_argument("--attack-seeds", type=int, default=3)
    parser.add_argument("--attack-runs", type=int, default=120, help="of each family")
    parser.add_argument("--judged", action="store_true", help="the seeds that are kept for judging")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--scratch", type=Path, help="keeps what was played; makes a run resumable")
    parser.add_argument("--file", default="", help="the name of the result file")
    given = parser.parse_args(argv)
    kinds = [kind for kind in ALL if kind in given.families.split(",")]
    count, runs = (1, 120) if given.quick else (given.seeds, given.runs)
    attack_seeds, attack_runs = (1, 50) if given.quick else (given.attack_seeds, given.attack_runs)
    salt = "judged" if given.judged else "look"
    if given.scratch is not None:
        given.scratch.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    attacks = [(attack, f"{salt} attack {number}") for attack in ATTACKS for number in range(attack_seeds)]
    with ProcessPoolExecutor(given.processes) as pool:
        asked = [
            pool.submit(kept, given.scratch, play_seed, f"{salt} {number}", kinds, runs) for number in range(count)
        ]
        attacked = [
            pool.submit(kept, given.scratch, play_attack, seed, attack, attack_runs) for attack, seed in attacks
        ]
        seeds = []
        for number, future in enumerate(asked):
            seeds.append(future.result())
            print(f"{number + 1} of {count} seeds, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
        found = [(attack, future.result()) for (attack, _), future in zip(attacks, attacked, strict=True)]
    rows = arm_rows(seeds, kinds) | drift_rows(seeds, kinds) | lesson_rows(seeds, kinds) | line_rows(seeds, kinds)
    rows |= attack_rows(found) if found else {}
    rows |= quoted(seeds, 10)
    whole = count * runs * len(kinds)
    cpu_s = sum(seed["cpu_s"] for seed in seeds)
    rows["cost"] = {"runs": whole, "cpu_s": round(cpu_s, 1), "cpu_ms_a_run": round(cpu_s * 1e3 / whole, 2)}
    told = {"seeds": count, "runs": runs, "families": kinds, "judged": given.judged, "quick": given.quick}
    told |= {"attack_seeds": attack_seeds, "attack_runs": attack_runs}
    report("learning_worlds", rows, told, given.file or ("learning_worlds_quick" if given.quick else ""))


if __name__ == "__main__":
    main()
