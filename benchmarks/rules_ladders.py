"""What further attempts bring, as the flow map tells it, beside the truth: tasks of worlds whose chances are known.

    python -m benchmarks.rules_ladders              200 seeds of each world, 60 and 300 tasks
    python -m benchmarks.rules_ladders --quick      40 seeds

A task is tried as far as the product's own policy goes: the steps are those of `rules.rollouts`. The chance that
an attempt at a task passes is drawn for each task, so what K attempts gain over one is known by counting many tasks.

- `even`: every attempt passes with 1/3. `mixed`: tasks differ. `now or never`: some always pass, the others never.
- `alike`: all attempts at a task end alike, so that more of them bring nothing.
- `hints at the start`: half of the tasks are given a hint that adds .15; `hints after a failure`: those that failed
  are, and it does nothing. There the map must not tell what hints bring.

For each intervention: how often the sign was right (where the truth is 0, that nothing above .02 was claimed), how
often the interval held the truth, and what a map of attempts says, which takes each attempt for a run of its own.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.harness import report
from muniment.contracts.runs import VerifierResult
from muniment.core.policy import RoutePolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.rules.flow_map import (
    ALL_BUCKETS,
    FlowRow,
    FlowTally,
    FlowTask,
    Rung,
    Tried,
    interventions,
    k_band,
    stage_of,
)
from muniment.rules.rollouts import Caps, MadeAttempt, Plan, Spent, next_step, plan_mode

BUCKET = "I2|maths|clarity_med"
COST = 100.0
TRUTH_TASKS = 40_000
CLAIM_MAX = 0.02
POLICY = RoutePolicy()

Chance = Callable[[random.Random], "TaskChances"]


class TaskChances(NamedTuple):
    """How a task's attempts pass: each with `rate`, or all as the first."""

    rate: float
    is_alike: bool = False


WORLDS: dict[str, Chance] = {
    "even": lambda _: TaskChances(1 / 3),
    "mixed": lambda made: TaskChances(made.betavariate(0.6, 1.2)),
    "now or never": lambda made: TaskChances(0.9 if made.random() < 0.4 else 0.0),
    "alike": lambda made: TaskChances(made.betavariate(2, 3), is_alike=True),
}


class Played(NamedTuple):
    """A task as it was tried, with what all its planned attempts would have been."""

    task: FlowTask
    would: tuple[bool, ...]


def _result(passed: bool) -> VerifierResult:
    verdict, outcome = ("PASS", "OK") if passed else ("FAIL", "FAIL")
    return VerifierResult.model_validate(
        {"schema_version": RULECRAFT_VERSION, "verifier_id": "truth", "verdict": verdict, "outcome": outcome}
    )


RESULTS = {passed: _result(passed) for passed in (True, False)}


def play(plan: Plan, chances: TaskChances, made: random.Random) -> Played:
    """Try a task by the policy; what a step would have brought is drawn whether or not it is made."""
    rungs = tuple(Rung(each.mode, each.tier, each.k) for each in plan.whole)
    first = made.random() < chances.rate
    planned = sum(rung.k for rung in rungs)
    would = [first] + [first if chances.is_alike else made.random() < chances.rate for _ in range(planned - 1)]
    tried: list[Tried] = []
    while True:
        made_so_far = [
            MadeAttempt(RESULTS[bool(each.passed)], "synth" if each.mode == "synth" else "attempt") for each in tried
        ]
        step = next_step(plan, made_so_far, Spent(len(tried)), Caps(), POLICY)
        if step.action in ("stop", "escalate"):
            return Played(FlowTask(rungs, tuple(tried)), tuple(would))
        tier = next(rung.tier for rung in rungs if rung.mode == step.mode and (rung.tier or step.tier) == step.tier)
        for _ in range(step.k):
            tried.append(Tried(step.mode, tier, would[len(tried)], COST))


def rows_of(number: int, played: Played, hints: Sequence[int]) -> Iterator[FlowRow]:
    for at, each in enumerate(played.task.attempts):
        yield FlowRow(
            trace_id=f"trc_{number}_{at}", stage=stage_of(each.mode), verdict="PASS" if each.passed else "FAIL",
            outcome="OK" if each.passed else "FAIL", passed=each.passed, cost=each.cost, mode=each.mode, tier=each.tier,
            bucket_key=BUCKET, at="2026-01-01T00:00:00Z", hints=hints[min(at, len(hints) - 1)], is_first=at == 0,
            task=played.task if at == 0 else None,
        )  # fmt: skip


# -- the truth ----------------------------------------------------------------------------------------------


def truths_of(mode: str, chance: Chance) -> dict[str, float]:
    """What attempts beyond the first, and rungs beyond those before, recover, of very many tasks."""
    made = random.Random(77)
    plan = plan_mode(mode, POLICY)
    sums: defaultdict[str, int] = defaultdict(int)
    for _ in range(TRUTH_TASKS):
        attempts = play(plan, chance(made), made).task.attempts
        passes = [bool(each.passed) for each in attempts if each.mode != "synth"]
        sums["K:2-4"] += not passes[0] and any(passes[:4])
        sums["K:5+"] += not passes[0] and any(passes)
        for name, level in (
            ("tier:probe", "probe"),
            ("tier:full", "full"),
            ("mode:kroll", "kroll"),
            ("mode:synth", "synth"),
        ):
            at = next((at for at, each in enumerate(attempts) if level in (each.mode, each.tier)), len(attempts))
            inside = [bool(each.passed) for each in attempts[at:] if level in (each.mode, each.tier)]
            sums[name] += not any(each.passed for each in attempts[:at]) and any(inside)
    return {name: count / TRUTH_TASKS for name, count in sums.items()}


def of_attempts(rows: Sequence[FlowRow], sizes: Sequence[int]) -> float:
    """What a map of attempts says of K:2-4: attempts of tasks that had several, less those of tasks that had one."""
    several, alone = [0, 0], [0, 0]
    at = 0
    for size in sizes:
        side = {"1": alone, "2-4": several}.get(k_band(size))
        for row in rows[at : at + size]:
            if side is not None:
                side[0] += bool(row.passed)
                side[1] += 1
        at += size
    return several[0] / max(1, several[1]) - alone[0] / max(1, alone[1])


# -- the worlds --------------------------------------------------------------------------------------------


def ladders(seeds: int, sizes: Sequence[int]) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    plan = plan_mode("auto", POLICY)
    for world, chance in WORLDS.items():
        truths = truths_of("auto", chance)
        for size in sizes:
            found: defaultdict[str, list[tuple[bool, bool, float]]] = defaultdict(list)
            before = []
            for seed in range(seeds):
                made = random.Random(10_000 + seed)
                played = [play(plan, chance(made), made) for _ in range(size)]
                logs = [row for number, each in enumerate(played) for row in rows_of(number, each, (0,))]
                told, _ = interventions(FlowTally().add_all(logs), ALL_BUCKETS)
                for each in told:
                    truth = truths[each["intervention"]]
                    is_right = each["gain_pass"] > 0 if truth > CLAIM_MAX else each["lower"] <= CLAIM_MAX
                    held = each["lower"] <= truth <= each["upper"]
                    found[each["intervention"]].append((is_right, held, each["gain_pass"]))
                before.append(of_attempts(logs, [len(each.task.attempts) for each in played]))
            for name, seen in found.items():
                rows[f"{world}, {size} tasks, {name}"] = {
                    "truth": round(truths[name], 4),
                    "mean_told": round(sum(gain for _, _, gain in seen) / len(seen), 4),
                    "sign_right": round(sum(right for right, _, _ in seen) / len(seen), 3),
                    "covered": round(sum(held for _, held, _ in seen) / len(seen), 3),
                }
            rows[f"{world}, {size} tasks, a map of attempts"] = {
                "K:2-4 mean_told": round(sum(before) / len(before), 4),
                "K:2-4 sign_right": round(
                    sum(each > 0 if truths["K:2-4"] > CLAIM_MAX else abs(each) <= CLAIM_MAX for each in before)
                    / len(before),
                    3,
                ),
            }
    return rows


def hinted(seeds: int, size: int) -> dict[str, dict[str, Any]]:
    """Hints given before anything was tried, and hints given because something failed."""
    plan, gain = plan_mode("auto", POLICY), 0.15
    right = held = silent = 0
    for seed in range(seeds):
        made = random.Random(20_000 + seed)
        at_start, after = FlowTally(), FlowTally()
        for number in range(size):
            rate, has = made.uniform(0.2, 0.6), made.random() < 0.5
            played = play(plan, TaskChances(rate + gain * has), made)
            at_start.add_all(rows_of(number, played, (int(has),)))
            after.add_all(rows_of(number, play(plan, TaskChances(rate), made), (0, 1)))
        told = {each["intervention"]: each for each in interventions(at_start, ALL_BUCKETS)[0]}["hints"]
        right += told["gain_pass"] > 0
        held += told["lower"] <= gain <= told["upper"]
        silent += all(each["intervention"] != "hints" for each in interventions(after, ALL_BUCKETS)[0])
    return {
        f"hints at the start, {size} tasks": {
            "truth": gain, "sign_right": round(right / seeds, 3), "covered": round(held / seeds, 3),
        },
        f"hints after a failure, {size} tasks": {"no_estimate": round(silent / seeds, 3)},
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=200)
    given = parser.parse_args(argv)
    seeds = 40 if given.quick else given.seeds
    rows = ladders(seeds, (60, 300)) | hinted(seeds, 300)
    report("rules_ladders", rows, {"seeds": seeds})


if __name__ == "__main__":
    main()
