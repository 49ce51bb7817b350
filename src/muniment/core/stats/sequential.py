"""Bounds and tests that hold however often one looks and whenever one stops.

Each is a fair game against its null hypothesis: a capital that starts at 1 and, if the hypothesis is true, is not
expected to grow whatever is looked at. Such a capital reaches 1/alpha with a chance of at most alpha (Ville), so the
moment it does, one may stop and say so. Everything is exact for finite samples and a function of counts:
nothing is sampled, nothing is asymptotic.

- `confidence_sequence`: where a pass rate lies; Robbins' mixture with a Beta weight, in closed form.
- `evidence_above`, `evidence_below`, `rate_test`: is a rate above, or below, a threshold? (easy cases, the deadzone)
- `difference_sequence`: where candidate − baseline lies.
- The test of two arms with a margin is in `core.stats.comparison`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, log1p
from typing import Literal

from muniment.core.stats.beta import JEFFREYS, Prior, log_beta, log_share_above
from muniment.core.stats.counts import Tally
from muniment.core.stats.inputs import check_open_rate
from muniment.core.stats.wilson import Bounds

__all__ = ["RateVerdict", "confidence_sequence", "difference_sequence", "evidence_above", "evidence_below", "rate_test"]

RateVerdict = Literal["above", "below", "undecided"]


def confidence_sequence(tally: Tally, alpha: float = 0.05, prior: Prior = JEFFREYS) -> Bounds:
    """The rates that the game against them has not refuted. With chance 1 − alpha the true one is among them at
    every look; it is wider than Wilson's interval, and that is the price of looking.
    """
    edge = -log(check_open_rate("alpha", alpha))
    p_hat = tally.p_hat
    if p_hat is None:
        return Bounds(0.0, 1.0)
    mixture = _log_mixture(tally, prior)

    def refuted(p: float) -> bool:
        return mixture - _log_likelihood(tally, p) >= edge

    lower = _border(refuted, 0.0, p_hat) if tally.passes else 0.0
    upper = _border(refuted, 1.0, p_hat) if tally.fails else 1.0
    return Bounds(lower, upper)


def difference_sequence(candidate: Tally, baseline: Tally, alpha: float = 0.05) -> Bounds:
    """Bounds on candidate − baseline at every look, from one confidence sequence for each arm at alpha/2."""
    mine = confidence_sequence(candidate, check_open_rate("alpha", alpha) / 2)
    other = confidence_sequence(baseline, alpha / 2)
    return Bounds(mine.lower - other.upper, mine.upper - other.lower)


def evidence_above(tally: Tally, threshold: float, prior: Prior = JEFFREYS) -> float:
    """The log of an e-value against "the rate is at most `threshold`": log 20 is evidence at 0.05, at any look."""
    check_open_rate("threshold", threshold)
    return _one_sided(tally, threshold, Prior(*prior))


def evidence_below(tally: Tally, threshold: float, prior: Prior = JEFFREYS) -> float:
    """The log of an e-value against "the rate is at least `threshold`"."""
    check_open_rate("threshold", threshold)
    return _one_sided(Tally(tally.fails, tally.n), 1 - threshold, Prior(prior[1], prior[0]))


def rate_test(tally: Tally, threshold: float, alpha: float = 0.05) -> RateVerdict:
    """Either claim is wrong with a chance of at most alpha, over all looks together."""
    edge = -log(check_open_rate("alpha", alpha))
    if evidence_above(tally, threshold) >= edge:
        return "above"
    return "below" if evidence_below(tally, threshold) >= edge else "undecided"


def _one_sided(tally: Tally, threshold: float, prior: Prior) -> float:
    """The likelihood mixed over the rates above the threshold alone, over the likelihood at the threshold.

    Each rate above it wins against the threshold, and against anything lower, no more than a fair game would.
    """
    before = log_share_above(threshold, *prior)
    after = log_share_above(threshold, prior.passes + tally.passes, prior.fails + tally.fails)
    return _log_mixture(tally, prior) + after - before - _log_likelihood(tally, threshold)


def _log_mixture(tally: Tally, prior: Prior) -> float:
    return log_beta(prior[0] + tally.passes, prior[1] + tally.fails) - log_beta(*prior)


def _log_likelihood(tally: Tally, p: float) -> float:
    return (tally.passes * log(p) if tally.passes else 0.0) + (tally.fails * log1p(-p) if tally.fails else 0.0)


def _border(refuted: Callable[[float], bool], outside: float, inside: float) -> float:
    """Where refuted turns into not refuted between an end of the unit interval and the observed rate, from outside."""
    if inside in (0.0, 1.0):  # the likelihood has no logarithm at an end: step off it
        inside = abs(inside - exp(-30))
    for _ in range(60):
        middle = (outside + inside) / 2
        if middle in (outside, inside):
            break
        outside, inside = (middle, inside) if refuted(middle) else (outside, middle)
    return outside
