"""The difference that a rule makes, with an honest lower bound, and how many runs a decision would take.

The bound is Newcombe's hybrid of two Wilson score intervals, the lower end of the two-sided 95 % one, as `p_lb95` is of
a rate. Over several phases the differences are averaged with weights n₁n₀/(n₁+n₀), and their distances to the bounds
added as squares (MOVER), so that a change between the phases is not taken for an effect. It holds for a number of
runs fixed beforehand; decisions are made on `stats.Comparison`, which may be looked at after every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, hypot, log, log1p
from typing import Any, Literal, NamedTuple

from muniment.core.stats import STAKES, Capitals, Comparison, Tally, difference_bounds, p_lb95
from muniment.errors import InvalidInput

__all__ = ["Delta", "Needed", "Rate", "delta_of", "needed_runs", "rate_of"]


@dataclass(frozen=True, slots=True)
class Rate:
    """A pass rate; unknown, and without a number, where K is thin."""

    p_hat: float | None
    p_lb95: float | None
    K: int

    @property
    def unknown(self) -> bool:
        return self.p_hat is None

    def to_wire(self) -> dict[str, Any]:
        return {"p_hat": self.p_hat, "p_lb95": self.p_lb95, "K": self.K, "unknown": self.unknown}


@dataclass(frozen=True, slots=True)
class Delta(Rate):
    """The rate with a rule less the rate without it. K is that of the smaller arm: a difference is known no better than
    its thinner side.
    """


def rate_of(tally: Tally, thin_n: int) -> Rate:
    if tally.n < thin_n:
        return Rate(None, None, tally.n)
    return Rate(tally.p_hat, p_lb95(tally), tally.n)


def delta_of(phases: Sequence[tuple[Tally, Tally]], thin_n: int) -> Delta:
    """The difference over pairs of arms, (with, without), each counted in one phase; a phase that lacks an arm tells
    nothing.
    """
    compared = [(mine, other) for mine, other in phases if mine.n and other.n]
    smaller = min(sum(mine.n for mine, _ in compared), sum(other.n for _, other in compared))
    if smaller < thin_n:
        return Delta(None, None, smaller)
    weights = [mine.n * other.n / (mine.n + other.n) for mine, other in compared]
    total = sum(weights)
    gaps = [(mine.p_hat or 0.0) - (other.p_hat or 0.0) for mine, other in compared]
    reach = [gap - difference_bounds(*arms).lower for gap, arms in zip(gaps, compared, strict=True)]
    gap = sum(weight * each for weight, each in zip(weights, gaps, strict=True)) / total
    away = hypot(*(weight / total * each for weight, each in zip(weights, reach, strict=True)))
    return Delta(gap, max(-1.0, gap - away), smaller)


# -- how long it would take ---------------------------------------------------------------------------


class Needed(NamedTuple):
    """How many further runs a claim would take, if they go on as those before. None: it will not come so."""

    claim: Literal["better", "not_harmful", "harmful"]
    runs: int | None
    reachable: bool
    """Within what the trial may still have."""
    says: str


def needed_runs(
    comparison: Comparison, claim: Literal["better", "not_harmful", "harmful"], *, share: float, runs_max: int
) -> Needed:
    """What a claim would take of a comparison in which `share` of the runs have the rule.

    A guess from the rates so far, not a bound: what each stake is expected to win in a round, taken to second order,
    against what it lacks; the best stake decides. A round takes 1/share + 1/(1 - share) - 1 runs.
    """
    if not 0 < share < 1:
        raise InvalidInput(f"a share of {share!r}", hint="both arms need runs: strictly between 0 and 1")
    spent = comparison.candidate.n + comparison.baseline.n
    left = max(0, runs_max - spent)
    if _has_shown(comparison, claim):
        return Needed(claim, 0, True, f"{claim} is shown, after {spent} runs")
    mine, other, effect = comparison.candidate.p_hat, comparison.baseline.p_hat, comparison.effect
    if mine is None or other is None or effect is None:
        return Needed(
            claim, None, False, f"not enough runs: {comparison.candidate.n} with and {comparison.baseline.n} without"
        )
    capitals, gain = _game(comparison, claim, effect)
    if gain <= 0:
        return Needed(claim, None, False, f"an effect of {effect:+.3f}, as seen so far, will never show {claim}")
    spread = mine * (1 - mine) * _inverse_mean(share) + other * (1 - other) * _inverse_mean(1 - share)
    rounds = _rounds(capitals, gain, spread, log(len(STAKES) / comparison.alpha))
    if rounds is None:
        return Needed(claim, None, False, f"an effect of {effect:+.3f} is lost in the noise: {claim} will not show")
    runs = ceil(rounds * (1 / share + 1 / (1 - share) - 1))
    fits = runs <= left
    says = f"{claim} would take about {runs} runs more" + (
        "" if fits else f", and {left} are left: it cannot be reached"
    )
    return Needed(claim, runs, fits, says)


def _has_shown(comparison: Comparison, claim: str) -> bool:
    if claim == "harmful":
        return comparison.decision == "harmful"
    return claim in comparison.claims


def _game(comparison: Comparison, claim: str, effect: float) -> tuple[Capitals, float]:
    """The capitals of the game that makes the claim, and what a round is expected to bring it."""
    if claim == "harmful":
        return comparison.worse, -effect
    if claim == "better":
        return comparison.better, effect
    return comparison.not_harmful, effect + comparison.margin


def _rounds(capitals: Capitals, gain: float, spread: float, edge: float) -> int | None:
    waits = []
    for capital, stake in zip(capitals, STAKES, strict=True):
        grows = log1p(stake * gain) - stake**2 * spread / (2 * (1 + stake * gain) ** 2)
        if grows > 0:
            waits.append(max(1, ceil((edge - capital) / grows)))
    return min(waits, default=None)


def _inverse_mean(share: float) -> float:
    """The mean of 1/k, k being how many runs of an arm of this share a round takes in: it waits for the other arm."""
    return (1 - share) + share * _mean_of_inverse_geometric(1 - share)


def _mean_of_inverse_geometric(success: float) -> float:
    return success / (1 - success) * log(1 / success)
