"""What doubts and nearness come to: the chance that the source supports a claim, for a unit and a whole output alike.

A few *signs* are measured, each is weighed (`core.policy.verify`), and the sum is the log-odds. The verdict has the last
word on which side of one half the number stands: within a side the signs order. Sums are taken in the order of the
signs' names as they are written here, so that the same texts give the same number on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from muniment.core.policy.verify import DoubtWeights, FactCheckPolicy
from muniment.verify.facts.doubts import Doubt
from muniment.verify.facts.matching import Alignment
from muniment.verify.facts.nearness import Nearness
from muniment.verify.facts.slots import SLOT_KINDS

__all__ = ["DOUBT_SIGNS", "NEAR_SIGNS", "Measured", "log_odds", "pressed", "read_signs", "support"]

DOUBT_SIGNS = tuple(DoubtWeights.model_fields)
NEAR_SIGNS = ("ties", "anchors", "window", "doubted", "contradicted", "swapped", "unmatched")
_TOGETHER_MAX = 3.0
"""More doubts than these do not make a claim that is near the source any worse."""
_ANCHORS_MAX = 0.5
_EDGE = 0.2
"""Log-odds within which a number is pressed that stands on the wrong side of one half for its verdict."""
_SWAPPED_REACH = 2.0
"""Log-odds around the limit of a slot within which it is told how doubtful the slot is."""
_DECIMALS = 6


class Measured(NamedTuple):
    """A unit as the score sees it."""

    doubts: tuple[Doubt, ...]
    nearness: Nearness
    is_supported: bool
    alignment: Alignment = Alignment()


def read_signs(units: Sequence[Measured], doubts_max: int) -> dict[str, float]:
    """The signs of some units together. Doubts are counted, each kind up to a limit; wording is a mean over words."""
    doubts = [doubt for unit in units for doubt in unit.doubts]
    signs = dict.fromkeys(DOUBT_SIGNS, 0.0)
    for doubt in doubts:
        signs[doubt.kind] = min(float(doubts_max), signs[doubt.kind] + doubt.weight)
    mean = _mean([unit.nearness for unit in units])
    every = min(_TOGETHER_MAX, sum(doubt.weight for doubt in doubts))
    against = min(_TOGETHER_MAX, float(sum(doubt.contradicts and not doubt.quiet for doubt in doubts)))
    signs["ties"] = math.sqrt(mean.ties)
    signs["anchors"] = min(_ANCHORS_MAX, mean.anchors)
    signs["window"] = mean.window * mean.window
    signs["doubted"] = every * mean.cover
    signs["contradicted"] = against * mean.held
    signs["swapped"] = max((_swapped(unit.alignment) for unit in units), default=0.0)
    signs["unmatched"] = _unmatched([unit.alignment for unit in units])
    return signs


def _mean(near: Sequence[Nearness]) -> Nearness:
    """The mean over all words of content; units without one count only where there is no other."""
    size = sum(one.size for one in near)
    if not size:
        return Nearness()
    fields = [sum(one[at] * one.size for one in near) / size for at in range(1, len(Nearness._fields))]
    return Nearness(size, *fields)


def _swapped(alignment: Alignment) -> float:
    """How far the most doubtful slot lies over the lowest that counts, 0 to 1."""
    return min(1.0, max(0.0, (alignment.swapped + _SWAPPED_REACH) / (2 * _SWAPPED_REACH)))


def _unmatched(alignments: Sequence[Alignment]) -> float:
    """The share of all slots that the source does not bear."""
    slots = [getattr(one, kind) for one in alignments for kind in SLOT_KINDS]
    total = sum(sum(one) for one in slots)
    return sum(one.unmatched + one.contradicted for one in slots) / total if total else 0.0


def log_odds(signs: dict[str, float], policy: FactCheckPolicy) -> float:
    """The log-odds that the source supports what has these signs, where as much is supported as is not."""
    total = policy.base
    for name in DOUBT_SIGNS:
        total -= getattr(policy.doubts, name) * signs[name]
    near = policy.nearness
    total += near.ties * signs["ties"] + near.anchors * signs["anchors"] + near.window * signs["window"]
    total -= near.doubted * signs["doubted"] + near.contradicted * signs["contradicted"]
    return total - near.swapped * signs["swapped"] - near.unmatched * signs["unmatched"]


def support(units: Sequence[Measured], policy: FactCheckPolicy) -> float:
    """The chance that the source supports the units, 0 to 1: at least one half if all are supported, else at most."""
    if not any(unit.nearness.size or unit.doubts or unit.is_supported for unit in units):
        return 0.0
    odds = log_odds(read_signs(units, policy.doubts_max), policy)
    odds = pressed(odds) if all(unit.is_supported for unit in units) else -pressed(-odds)
    return round(1 / (1 + math.exp(-odds)), _DECIMALS)


def pressed(odds: float) -> float:
    """The same, but above 0: what lies below the edge is pressed between 0 and it, in the same order."""
    return odds if odds >= _EDGE else _EDGE * math.exp(max(-700.0, odds - _EDGE))
