"""The router against always doing the same: what a confirmed pass costs on the puzzle families, and how many pass.

    python -m benchmarks.rules_router             ten seeds
    python -m benchmarks.rules_router --quick     two seeds, for a look

An attempt draws one of its domain's strategies and tries by it until the puzzle is solved or the budget of its tier is
spent; a try costs one. The budgets stand to each other as those of the policy do: a fifth at hot, two fifths at probe,
all of it at full. Which strategy suits which family nobody knows, so attempts differ by luck and puzzles by how hard
they are. The n-th attempt at a puzzle makes the same draws in every arm. Every answer is checked, so every pass is
confirmed.

`always hot`: one hot attempt. `always full`: eight full attempts, of which the best counts, as K rollouts are made.
`always full, one by one`: the same, but it stops at the first pass. `router`: begins knowing nothing, asks for each
puzzle, climbs as it is told, and learns from its own log rows. `router, on its way`: its puzzles after the first half.
`through the runner`: fewer puzzles, each a task
of `mem.runner(…, router=True)`, every attempt a logged run; what the router reads are these logs. It should do what the
router alone does with the same puzzles, and `as_alone` says for how many of them it did: in mode `matts` the runner has
some attempts refined once, which the router alone does not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

import numpy as np

import muniment
from benchmarks.harness import report
from benchmarks.learning_loop import BUDGET, DRAWS, Array, Given, intent_of, puzzles, verify
from benchmarks.puzzles import FAMILIES, STRATEGIES, Puzzle, read_puzzle
from muniment.contracts.runs import VerifierResult
from muniment.core.policy import RoutePolicy
from muniment.core.scope import RunMode
from muniment.handles.runner import AgentTask
from muniment.rules._records import RouteRequest, Tier
from muniment.rules.rollouts import Caps, MadeAttempt, Plan, Spent, next_step, plan_route
from muniment.rules.routing import TIER_TOKENS, BucketStats, LogRow, route
from muniment.verify.results import bucket_key

POLICY = RoutePolicy()
RATIO_MAX, PASSES_MIN = 0.7, 0.98
"""What is asked of the router: cost of a pass, and pass rate, against always full."""


class Outcome(NamedTuple):
    family: str
    cost: int
    passed: bool
    attempts: int


class Tried(NamedTuple):
    cost: int
    passed: bool
    answer: str


# -- one attempt --------------------------------------------------------------------------------------


@lru_cache(maxsize=200_000)
def try_once(given: Given, number: int, tier: Tier) -> Tried:
    """The n-th attempt at a puzzle, at a tier."""
    puzzle, random = read_puzzle(given.text), Random(f"{given.draws} {number}")
    strategy = random.choice(STRATEGIES[puzzle.domain])
    tries, answer = 0, ""
    for tries in range(1, budget_of(puzzle, tier) + 1):
        answer = puzzle.attempt(strategy, random)
        if puzzle.solves(answer):
            return Tried(tries, True, answer)
    return Tried(tries, False, answer)


def budget_of(puzzle: Puzzle, tier: Tier) -> int:
    tokens = TIER_TOKENS
    return max(1, round(BUDGET[puzzle.domain] * tokens[tier] / tokens["full"]))


# -- the arms -----------------------------------------------------------------------------------------


def always_hot(given: Sequence[Given]) -> list[Outcome]:
    tried = [(one, try_once(one, 0, "hot")) for one in given]
    return [Outcome(one.family, found.cost, found.passed, 1) for one, found in tried]


def always_full(given: Sequence[Given]) -> list[Outcome]:
    found = []
    for one in given:
        tried = [try_once(one, number, "full") for number in range(POLICY.k_full_max)]
        found.append(Outcome(one.family, sum(t.cost for t in tried), any(t.passed for t in tried), len(tried)))
    return found


def full_one_by_one(given: Sequence[Given]) -> list[Outcome]:
    found = []
    for one in given:
        tried: list[Tried] = []
        while len(tried) < POLICY.k_full_max and not any(t.passed for t in tried):
            tried.append(try_once(one, len(tried), "full"))
        found.append(Outcome(one.family, sum(t.cost for t in tried), tried[-1].passed, len(tried)))
    return found


def routed(given: Sequence[Given]) -> list[Outcome]:
    """As the router says, puzzle by puzzle; it reads the rows that it wrote."""
    stats: dict[str, BucketStats] = {}
    found = []
    for one in given:
        known = stats.setdefault(one.family, BucketStats())
        attempts = climb(one, plan_route(route(RouteRequest(can_synth=False), known, POLICY), is_parallel=False))
        for number, (tried, tier, mode) in enumerate(attempts):
            known.add(row_of_attempt(tried, tier, mode, number))
        done = [tried for tried, _, _ in attempts]
        found.append(
            Outcome(one.family, sum(tried.cost for tried in done), any(tried.passed for tried in done), len(done))
        )
    return found


PASSED, FAILED = (
    VerifierResult.model_validate({"schema_version": "0.5.15", "verifier_id": "v", "verdict": word, "outcome": outcome})
    for word, outcome in (("PASS", "OK"), ("FAIL", "FAIL"))
)


def climb(given: Given, plan: Plan) -> list[tuple[Tried, Tier, RunMode]]:
    made: list[tuple[Tried, Tier, RunMode]] = []
    while True:
        before = [MadeAttempt(PASSED if tried.passed else FAILED) for tried, _, _ in made]
        step = next_step(plan, before, Spent(len(made)), Caps(), POLICY)
        if step.action != "attempt":
            return made
        tier = step.tier or "hot"
        made.append((try_once(given, len(made), tier), tier, step.mode))


def row_of_attempt(tried: Tried, tier: Tier, mode: RunMode, number: int) -> LogRow:
    verdict, outcome = ("PASS", "OK") if tried.passed else ("FAIL", "FAIL")
    return LogRow(verdict, outcome, mode=mode, tier=tier, cost=tried.cost, passed=tried.passed, after=number)


def through_the_runner(given: Sequence[Given]) -> list[Outcome]:
    """The same in earnest: attempts are runs, and the router reads their logs."""
    found = []
    with muniment.open(":memory:", embedder="none") as mem:
        for one in given:
            runner = mem.runner(agent_of(one), verify, {"recall": False}, user_id="router", router=True)
            bucket = bucket_key("med", one.family.replace("/", "-"), "high")
            done = runner.run(one.text, intent=intent_of(one.family), bucket_key=bucket)
            found.append(Outcome(one.family, done.spent.tool_calls, done.passed, len(done.attempts)))
    return found


def agent_of(given: Given) -> Callable[[AgentTask], dict[str, Any]]:
    def attempt(task: AgentTask) -> dict[str, Any]:
        tried = try_once(given, task.attempt, task.tier or "hot")
        return {"text": tried.answer, "usage": {"tool_calls": tried.cost}}

    return attempt


ARMS: Mapping[str, Callable[[Sequence[Given]], list[Outcome]]] = {
    "always hot": always_hot,
    "always full": always_full,
    "always full, one by one": full_one_by_one,
    "router": routed,
}


# -- figures ------------------------------------------------------------------------------------------


def against(seeds: Sequence[tuple[Sequence[Outcome], Sequence[Outcome]]]) -> dict[str, Any]:
    """Cost of a pass and pass rate of the one against the other, all seeds together; intervals are over seeds."""
    sums = np.array([[f(side) for side in pair for f in (_cost, _passes, len)] for pair in seeds], np.float64)

    def of(rows: Array) -> tuple[Array, Array]:
        total = rows.sum(axis=-2)
        per_pass = (total[..., 0] / total[..., 1]) / (total[..., 3] / total[..., 4])
        return np.asarray(per_pass), np.asarray((total[..., 1] / total[..., 2]) / (total[..., 4] / total[..., 5]))

    drawn = np.random.default_rng(0).integers(0, len(seeds), (DRAWS, len(seeds)))
    cost, passes = of(sums)
    costs, rates = of(sums[drawn])
    total = sums.sum(axis=0)
    return {
        "cost_ratio": float(cost),
        **dict(zip(("cost_low", "cost_high"), map(float, np.quantile(costs, [0.025, 0.975])), strict=True)),
        "pass_ratio": float(passes),
        **dict(zip(("pass_low", "pass_high"), map(float, np.quantile(rates, [0.025, 0.975])), strict=True)),
        "cost_per_pass": float(total[0] / total[1]),
        "pass_rate": float(total[1] / total[2]),
        "attempts": sum(one.attempts for mine, _ in seeds for one in mine) / float(total[2]),
    }


def _cost(outcomes: Sequence[Outcome]) -> float:
    return float(sum(one.cost for one in outcomes))


def _passes(outcomes: Sequence[Outcome]) -> float:
    return float(sum(one.passed for one in outcomes))


def figures(played: Sequence[Mapping[str, Sequence[Outcome]]]) -> dict[str, dict[str, Any]]:
    full, half = "always full", len(played[0]["router"]) // 2

    def pairs(arm: str, reference: str = full, **only: Any) -> list[tuple[Sequence[Outcome], Sequence[Outcome]]]:
        return [(_part(seed[arm], **only), _part(seed[reference], **only)) for seed in played]

    rows = {arm: against(pairs(arm)) for arm in ARMS}
    rows["router, on its way"] = against(pairs("router", start=half))
    rows["router, against one by one"] = against(pairs("router", "always full, one by one"))
    rows |= {f"router, {family}": against(pairs("router", family=family)) for family in FAMILIES}
    router = rows["router"]
    rows["asked"] = {
        "cost_ratio_max": RATIO_MAX,
        "pass_ratio_min": PASSES_MIN,
        "met": router["cost_ratio"] <= RATIO_MAX and router["pass_ratio"] >= PASSES_MIN,
        "met_beyond_doubt": router["cost_high"] <= RATIO_MAX and router["pass_low"] >= PASSES_MIN,
    }
    return rows


def in_earnest(seeds: int, count: int) -> dict[str, Any]:
    """The first puzzles of some seeds through the runner, against always full, and beside the router alone."""
    pairs, same = [], 0
    for seed in range(seeds):
        those = puzzles(seed, "router", tuple(FAMILIES), count)
        real = through_the_runner(those)
        pairs.append((real, always_full(those)))
        same += sum(one == two for one, two in zip(real, routed(those), strict=True))
    return against(pairs) | {"puzzles": seeds * count, "as_alone": same}


def _part(outcomes: Sequence[Outcome], start: int = 0, family: str | None = None) -> Sequence[Outcome]:
    return [one for one in outcomes[start:] if family in (None, one.family)]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds, for a look")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--puzzles", type=int, default=540, help="of each seed, the nine families taking turns")
    parser.add_argument("--runner-puzzles", type=int, default=90, help="of each seed that goes through the runner")
    given = parser.parse_args(argv)
    seeds = 2 if given.quick else given.seeds
    played = []
    for seed in range(seeds):
        those = puzzles(seed, "router", tuple(FAMILIES), given.puzzles)
        played.append({name: arm(those) for name, arm in ARMS.items()})
        print(f"{seed + 1} of {seeds} seeds", file=sys.stderr, flush=True)
    rows = figures(played)
    rows["through the runner"] = in_earnest(2 if given.quick else 3, given.runner_puzzles)
    told = {"seeds": seeds, "quick": given.quick, "puzzles": given.puzzles, "runner_puzzles": given.runner_puzzles}
    report("rules_router", rows, told)


if __name__ == "__main__":
    main()
