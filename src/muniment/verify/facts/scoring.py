"""What wording, doubts and slots come to: the chance that the source supports a claim, for a unit and a whole output.

Two chances are multiplied: that the source speaks of what is said (by its wording), and that nothing in it was changed
(by doubts and slots). So a doubt weighs much where the wording is the source's, and little where it is not: there the
claim has no support anyway. Each is the logistic function of a weighted sum of *signs* (`core.policy`), and the
scale of the product was learned on sets that had no part in the weights. The verdict has the last word on which side of
one half the number stands. Sums are taken in the order in which the signs are written here, and the result is rounded:
the same texts give the same number on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from muniment.core.policy import DoubtWeights, FactCheckPolicy
from muniment.verify.facts.doubts import Doubt
from muniment.verify.facts.matching import Alignment
from muniment.verify.facts.nearness import Nearness

__all__ = ["CHANGE_SIGNS", "DOUBT_SIGNS", "WORDING_SIGNS", "Measured", "log_odds", "pressed", "read_signs", "support"]

WORDING_SIGNS = ("ties", "anchors", "window")
DOUBT_SIGNS = tuple(DoubtWeights.model_fields)
CHANGE_SIGNS = (*DOUBT_SIGNS, "swapped", "swapped_far")
_ANCHORS_MAX = 0.5
_SWAPPED_REACH = 2.0
"""Log-odds around the limit of a slot within which `swapped` tells how doubtful the slot is."""
_SWAPPED_MAX = 3.0
_EDGE = 0.2
"""Log-odds within which a number is pressed that stands on the wrong side of one half for its verdict."""
_ODDS_MAX = 30.0
_DECIMALS = 6


class Measured(NamedTuple):
    """A unit as the score sees it."""

    doubts: tuple[Doubt, ...]
    nearness: Nearness
    alignment: Alignment
    is_supported: bool


def read_signs(units: Sequence[Measured], doubts_max: int) -> dict[str, float]:
    """The signs of some units together. Doubts are counted, each kind up to a limit; wording is a mean over words."""
    signs = dict.fromkeys(DOUBT_SIGNS, 0.0)
    for unit in units:
        for doubt in unit.doubts:
            signs[doubt.kind] = min(float(doubts_max), signs[doubt.kind] + doubt.weight)
    mean = _mean([unit.nearness for unit in units])
    signs["ties"] = math.sqrt(mean.ties)
    signs["anchors"] = min(_ANCHORS_MAX, mean.anchors)
    signs["window"] = mean.window
    most = max((unit.alignment.swapped for unit in units), default=-_SWAPPED_REACH)
    signs["swapped"] = min(1.0, max(0.0, (most + _SWAPPED_REACH) / (2 * _SWAPPED_REACH)))
    signs["swapped_far"] = min(_SWAPPED_MAX, max(0.0, most))
    return signs


def _mean(near: Sequence[Nearness]) -> Nearness:
    """The mean over all words of content; units without one count only where there is no other."""
    size = sum(one.size for one in near)
    if not size:
        return Nearness()
    fields = [sum(one[at] * one.size for one in near) / size for at in range(1, len(Nearness._fields))]
    return Nearness(size, *fields)


def log_odds(signs: dict[str, float], policy: FactCheckPolicy) -> float:
    """The log-odds that the source supports what has these signs, where as much is supported as is not."""
    wording = policy.wording.base
    for name in WORDING_SIGNS:
        wording += getattr(policy.wording, name) * signs[name]
    change = policy.change.base
    weights: dict[str, float] = vars(policy.doubts)
    for name in DOUBT_SIGNS:
        if signs[name]:
            change -= weights[name] * signs[name]
    change -= policy.change.swapped * signs["swapped"] + policy.change.swapped_far * signs["swapped_far"]
    chance = _chance(wording) * _chance(change)
    return policy.slope * math.log(chance / (1 - chance)) + policy.shift


def _chance(odds: float) -> float:
    return 1 / (1 + math.exp(-max(-_ODDS_MAX, min(_ODDS_MAX, odds))))


def support(units: Sequence[Measured], policy: FactCheckPolicy) -> float:
    """The chance that the source supports the units, 0 to 1: at least one half if all are supported, else at most."""
    if not any(unit.nearness.size or unit.doubts or unit.is_supported for unit in units):
        return 0.0
    odds = log_odds(read_signs(units, policy.doubts_max), policy)
    odds = pressed(odds) if all(unit.is_supported for unit in units) else -pressed(-odds)
    return round(_chance(odds), _DECIMALS)


def pressed(odds: float) -> float:
    """The same, but above 0: what lies below the edge is pressed between 0 and it, in the same order."""
    return odds if odds >= _EDGE else _EDGE * math.exp(max(-_ODDS_MAX, odds - _EDGE))
