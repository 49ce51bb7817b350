"""What an intervention brought, as it is told: a gain with its bounds, its cost, and how it was compared."""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal, NamedTuple

from muniment.core.policy import FlowMapPolicy
from muniment.core.stats import Bounds, normal_quantile
from muniment.rules.flowmap.cells import Change, named, rounded
from muniment.rules.flowmap.tally import COST_UNIT

__all__ = ["CostGap", "Design", "Gain", "best_first", "cost_gap_of", "error_of_mean", "gain_fields"]

Design = Literal["between_tasks", "within_task"]


class Gain(NamedTuple):
    """What an intervention did to the pass rate of tasks, and how many say so."""

    gain: float
    bounds: Bounds
    base_pass: float
    """How often the same tasks pass without it."""
    treated_n: int
    base_n: int
    strata_n: int
    crude: float | None
    """Without strata; where it differs much, the intervention was given to other buckets than nothing was."""


class CostGap(NamedTuple):
    """What it cost more, in the unit of the logs."""

    mean: float
    bounds: Bounds


def best_first(gains: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(gains, key=lambda each: (-each["lower"], -each["gain_pass"], each["intervention"]))


def gain_fields(change: Change, gain: Gain, cost: CostGap, policy: FlowMapPolicy, design: Design) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "intervention": named(change),
        "gain_pass": rounded(gain.gain),
        "delta_cost": rounded(cost.mean),
        "efficiency": rounded(gain.gain / max(cost.mean, policy.cost_epsilon)),
        "support_n": gain.treated_n,
        "design": design,
        "lower": rounded(gain.bounds.lower),
        "upper": rounded(gain.bounds.upper),
        "base_pass": rounded(gain.base_pass),
        "base_n": gain.base_n,
        "strata_n": gain.strata_n,
        "cost_lower": rounded(cost.bounds.lower),
        "cost_upper": rounded(cost.bounds.upper),
        "thin": min(gain.treated_n, gain.base_n) < policy.thin_n,
    }
    return fields if gain.crude is None else fields | {"crude_gain": rounded(gain.crude)}


def cost_gap_of(mean: float, variance: float, confidence: float) -> CostGap:
    reach = normal_quantile((1 + confidence) / 2) * sqrt(variance)
    return CostGap(mean, Bounds(mean - reach, mean + reach))


def error_of_mean(n: int, cost: int, cost_squares: int) -> float:
    """The variance of the mean cost, exact until its last step: whole numbers."""
    spread = n * cost_squares - cost**2
    return spread / (n * n * max(1, n - 1)) / COST_UNIT**2
