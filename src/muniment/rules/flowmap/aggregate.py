"""`aggregate_v1`: rates as they were counted, with Wilson's bounds; gains within strata, so that a bucket's own
difficulty is not taken for the worth of what was done in it.

Tasks are compared by what they began with, with others of the same bucket that had the same of everything else. A mode,
a tier and a number of attempts mostly come together, so each is told with what it brought, against plain tasks: main,
hot, one attempt. What was tried after a failure is compared within the task (`recovered`), never between tasks.
Strata are weighed as Mantel and Haenszel do, and the bounds of their gains combined (MOVER).
"""

from __future__ import annotations

from collections import defaultdict
from math import sqrt
from typing import Any, NamedTuple

from muniment.core.policy import FlowMapPolicy
from muniment.core.stats import Bounds, Tally, difference_bounds, wilson_bounds
from muniment.rules.flowmap.cells import (
    Change,
    arm_keys,
    changes_of,
    code_cells,
    named,
    rounded,
    side_of,
    tally_of,
    without,
)
from muniment.rules.flowmap.gains import CostGap, Gain, best_first, cost_gap_of, error_of_mean, gain_fields
from muniment.rules.flowmap.recovered import recovered_gains
from muniment.rules.flowmap.rows import ALL_CODES, ArmKey
from muniment.rules.flowmap.tally import COST_UNIT, FlowTally

__all__ = ["cost_gap", "gain_of", "hotspots", "interventions", "strata_of", "told_hotspot", "worst_first"]


class _Side(NamedTuple):
    """Runs of one stratum that had it, or had not."""

    outcomes: Tally = Tally()
    cost: int = 0
    cost_squares: int = 0

    def and_(self, outcomes: Tally, cost: int, cost_squares: int) -> _Side:
        return _Side(self.outcomes.merge(outcomes), self.cost + cost, self.cost_squares + cost_squares)


Strata = list[tuple[_Side, _Side]]


# -- risk -------------------------------------------------------------------------------------------------


def hotspots(tally: FlowTally, bucket_key: str) -> list[dict[str, Any]]:
    """Every cell at which something went wrong, worst first."""
    policy = tally.policy
    found = []
    for cell in code_cells(tally, bucket_key):
        if cell.risky:
            bounds = wilson_bounds(cell.risky, cell.n, policy.confidence)
            more = {"risky_n": cell.risky, "code_n": cell.code_n}
            found.append(told_hotspot(cell.stage, cell.code, cell.risky / cell.n, cell.n, bounds, policy) | more)
    return worst_first(found)


def told_hotspot(stage: str, code: str, rate: float, n: int, bounds: Bounds, policy: FlowMapPolicy) -> dict[str, Any]:
    return {
        "stage": stage,
        "reason_code": None if code == ALL_CODES else code,
        "risk_rate": rounded(rate),
        "support_n": n,
        "lower": rounded(bounds.lower),
        "upper": rounded(bounds.upper),
        "thin": n < policy.thin_n,
    }


def worst_first(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cells sorted by the lower bound: what is surely bad comes before what may be."""
    return sorted(
        found, key=lambda each: (-each["lower"], -each["risk_rate"], each["stage"], each["reason_code"] or "")
    )


# -- opportunity ------------------------------------------------------------------------------------------


def interventions(tally: FlowTally, bucket_key: str) -> tuple[list[dict[str, Any]], list[str]]:
    """What each intervention brought, best first, and the names of those that nothing can be compared with."""
    gains, alone = recovered_gains(tally, bucket_key), []
    known = {each["intervention"] for each in gains}
    for change in changes_of(arm_keys(tally, bucket_key)):
        if named(change) in known:
            continue
        strata = strata_of(tally, bucket_key, change)
        gain = gain_of(strata, tally.policy.confidence)
        if gain is None:
            alone.append(named(change))
        else:
            cost = cost_gap(strata, tally.policy.confidence)
            gains.append(gain_fields(change, gain, cost, tally.policy, "between_tasks"))
    return best_first(gains), alone


def strata_of(tally: FlowTally, bucket_key: str, change: Change) -> Strata:
    """Runs with the intervention and without, side by side."""
    sides: defaultdict[ArmKey, dict[bool, _Side]] = defaultdict(lambda: {True: _Side(), False: _Side()})
    for key in arm_keys(tally, bucket_key):
        side = side_of(key, change)
        if side is not None:
            pair, arm = sides[without(key, change)], tally.arm(key)
            pair[side] = pair[side].and_(tally_of(tally, key), arm.cost, arm.cost_squares)
    return [(pair[True], pair[False]) for pair in sides.values()]


def _weighed(strata: Strata) -> list[tuple[float, _Side, _Side]]:
    """The strata that have both sides, each with its weight; the weights add up to one."""
    both = [(a, b) for a, b in strata if a.outcomes.n and b.outcomes.n]
    weights = [a.outcomes.n * b.outcomes.n / (a.outcomes.n + b.outcomes.n) for a, b in both]
    total = sum(weights)
    return [(weight / total, a, b) for weight, (a, b) in zip(weights, both, strict=True)]


def gain_of(strata: Strata, confidence: float) -> Gain | None:
    """The mean difference of pass rates within strata; None where no stratum has both sides."""
    weighed = _weighed(strata)
    if not weighed:
        return None
    gain = below = above = base = 0.0
    for weight, with_, other in weighed:
        gap = with_.outcomes.passes / with_.outcomes.n - other.outcomes.passes / other.outcomes.n
        bounds = difference_bounds(with_.outcomes, other.outcomes, confidence)
        gain += weight * gap
        base += weight * other.outcomes.passes / other.outcomes.n
        below += (weight * (gap - bounds.lower)) ** 2
        above += (weight * (bounds.upper - gap)) ** 2
    return Gain(
        gain,
        Bounds(max(-1.0, gain - sqrt(below)), min(1.0, gain + sqrt(above))),
        base,
        sum(with_.outcomes.n for _, with_, _ in weighed),
        sum(other.outcomes.n for _, _, other in weighed),
        len(weighed),
        _crude(strata),
    )


def _crude(strata: Strata) -> float | None:
    sides = [sum((pair[at].outcomes.passes for pair in strata), 0) for at in (0, 1)]
    counts = [sum((pair[at].outcomes.n for pair in strata), 0) for at in (0, 1)]
    return sides[0] / counts[0] - sides[1] / counts[1] if all(counts) else None


def cost_gap(strata: Strata, confidence: float) -> CostGap:
    """The mean difference of costs within strata, in the unit of the logs."""
    mean = variance = 0.0
    for weight, with_, other in _weighed(strata):
        mean += weight * (_mean_cost(with_) - _mean_cost(other))
        variance += weight**2 * (_error_of_mean(with_) + _error_of_mean(other))
    return cost_gap_of(mean, variance, confidence)


def _mean_cost(side: _Side) -> float:
    return side.cost / side.outcomes.n / COST_UNIT


def _error_of_mean(side: _Side) -> float:
    return error_of_mean(side.outcomes.n, side.cost, side.cost_squares)
