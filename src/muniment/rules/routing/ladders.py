"""Ladders: which tiers a task may be tried at, one after another until it passes, and what each is expected to give.

The cost of a confirmed pass is least where cheap attempts come first and the dear ones are reached by those tasks alone
that nothing cheaper solved. So a choice is a ladder of tiers. What it is expected to cost and to pass follows from the
bucket's runs: the rate and cost of an attempt at each tier, and that tasks differ, so that one at which n attempts have
failed passes the next with p·s/(s + n) rather than p.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import log, log1p
from typing import NamedTuple

from muniment.core.policy import RoutePolicy
from muniment.core.stats import wilson_bounds
from muniment.rules.routing.bucket_stats import BucketStats
from muniment.rules.routing.records import TIERS, Expected, Tier

__all__ = ["Ladder", "TierGuess", "expected_of", "guesses_of", "hoped_cost_per_pass", "ladders_of"]

_RATE_MAX = 0.99
_ROUNDING = 1e-9


class TierGuess(NamedTuple):
    """What an attempt at a tier is taken for."""

    rate: float
    """That it passes at a task that nothing has failed at yet."""
    hope: float
    """The most that its runs leave open."""
    cost: float
    n: int
    """Runs that this rests on."""


class Step(NamedTuple):
    tier: Tier
    k: int


Ladder = tuple[Step, ...]


# -- guesses ------------------------------------------------------------------------------------------


def guesses_of(stats: BucketStats, policy: RoutePolicy, likeness: float, *, is_cautious: bool) -> dict[Tier, TierGuess]:
    """Rate and cost of each tier. One that was hardly tried is taken for the tier below it, at the price of its budget.

    `is_cautious` reads p_lb95 where there are runs enough (high impact).
    """
    costs = _costs(stats, policy)
    guesses: dict[Tier, TierGuess] = {}
    prior = policy.prior_rate
    for tier in TIERS:
        spent = stats.at(tier)
        exposure = stats.exposure(tier, likeness)
        prior = min((spent.passes + prior * policy.prior_runs) / (exposure + policy.prior_runs), _RATE_MAX)
        bounds = wilson_bounds(spent.passes, spent.n)
        per_run = spent.n / exposure if spent.n else 1.0
        is_bound = is_cautious and spent.n >= policy.thin_n
        guesses[tier] = TierGuess(
            rate=min(bounds.lower * per_run, _RATE_MAX) if is_bound else prior,
            hope=min(bounds.upper * per_run, _RATE_MAX),
            cost=costs[tier],
            n=spent.n,
        )
    return guesses


def _costs(stats: BucketStats, policy: RoutePolicy) -> dict[Tier, float]:
    """The cost of an attempt at each tier: the mean of its runs; a few of them do not outweigh what the budgets say.

    The lowest tier that was tried sets the unit; the others stand to it as their budgets do, until their runs tell.
    """
    tokens = budgets_of(policy)
    first = next(((tier, cost) for tier in TIERS if (cost := stats.at(tier).mean_cost)), None)
    unit = 1.0 if first is None else first[1] / tokens[first[0]]
    costs: dict[Tier, float] = {}
    for tier in TIERS:
        spent, usual = stats.at(tier), unit * tokens[tier]
        is_unit = first is not None and tier == first[0]
        weight = 0 if is_unit else policy.thin_n
        costs[tier] = (spent.n * (spent.mean_cost or 0.0) + weight * usual) / (spent.n + weight)
    return costs


def budgets_of(policy: RoutePolicy) -> Mapping[Tier, int]:
    return {
        "hot": policy.hot.tokens_max,
        "probe": policy.probe.tokens_max,
        "full": policy.full.tokens_max,
    }


# -- ladders ------------------------------------------------------------------------------------------


def ladders_of(
    tiers: Sequence[Tier], guesses: Mapping[Tier, TierGuess], policy: RoutePolicy, *, k_full_max: int
) -> Iterator[Ladder]:
    """Every ladder over these tiers. One of several rungs never costs more than all the full attempts would.

    So where the rungs before have taken much of that, fewer full attempts are left than a ladder of them alone has.
    """
    most = policy.k_full_max * guesses["full"].cost
    below = {"hot": Step("hot", 1), "probe": Step("probe", policy.k_probe)}
    for length in range(1, len(tiers) + 1):
        for chosen in combinations(tiers, length):
            steps = tuple(below[tier] for tier in chosen if tier != "full")
            left = most - sum(guesses[tier].cost * k for tier, k in steps)
            if chosen[-1] == "full":
                room = min(k_full_max, int(left / guesses["full"].cost + _ROUNDING))
                for k in range(max(1, min(policy.k_full_min, room)), room + 1):
                    yield (*steps, Step("full", k))
            elif length == 1 or left >= 0:
                yield steps


def expected_of(
    ladder: Ladder, guesses: Mapping[Tier, TierGuess], likeness: float, *, failed: int = 0, is_parallel: bool = False
) -> Expected:
    """What comes of climbing a ladder until the first pass; `failed` attempts at the task were made before."""
    rates = {tier: guess.rate for tier, guess in guesses.items()}
    passed, cost = _climbed(ladder, guesses, rates, likeness, failed, is_parallel)
    most = sum(guesses[tier].cost * k for tier, k in ladder)
    per_pass = {"cost_per_pass": cost / passed} if passed > 0 else {}
    return Expected(pass_rate=passed, cost=cost, cost_max=most, **per_pass)


def hoped_cost_per_pass(
    ladder: Ladder, guesses: Mapping[Tier, TierGuess], likeness: float, *, failed: int = 0, is_parallel: bool = False
) -> float:
    """What a pass costs if every tier is as good as its runs leave open.

    Choices are made by this: a tier that was hardly tried is not given up for a few failures, and one that was tried
    often is taken for what it is.
    """
    rates = {tier: guess.hope for tier, guess in guesses.items()}
    passed, cost = _climbed(ladder, guesses, rates, likeness, failed, is_parallel)
    return cost / passed if passed > 0 else float("inf")


def _climbed(
    ladder: Ladder,
    guesses: Mapping[Tier, TierGuess],
    rates: Mapping[Tier, float],
    likeness: float,
    failed: int,
    is_parallel: bool,
) -> tuple[float, float]:
    left, cost = 1.0, 0.0
    for tier, k in ladder:
        reached = left
        for _ in range(k):
            cost += guesses[tier].cost * (reached if is_parallel else left)
            left *= 1 - rates[tier] * likeness / (likeness + failed)
            failed += 1
    return 1 - left, cost


def likeness_of(stats: BucketStats, policy: RoutePolicy) -> float:
    """How alike the tasks of the bucket are, as its runs tell: the s under which later attempts fared as they did.

    Where they tell little it is the policy's.
    """
    usual = policy.likeness_runs
    scored = [
        (_log_likelihood(stats, usual * by, policy) - abs(log(by)) / 2, -abs(log(by)), usual * by) for by in _SPREAD
    ]
    return max(scored)[2]


_SPREAD = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)


def _log_likelihood(stats: BucketStats, likeness: float, policy: RoutePolicy) -> float:
    total = 0.0
    for tier in TIERS:
        spent = stats.at(tier)
        exposure = stats.exposure(tier, likeness)
        base = min((spent.passes + policy.prior_rate * policy.prior_runs) / (exposure + policy.prior_runs), _RATE_MAX)
        for cell, found in sorted(stats.cells.items()):
            if cell.tier == tier and cell.mode != "synth":
                rate = base * likeness / (likeness + cell.after)
                total += found.passes * log(rate) + (found.n - found.passes) * log1p(-rate)
    return total
