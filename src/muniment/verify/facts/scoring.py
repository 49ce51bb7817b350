"""What doubts and nearness come to: one number between 0 and 1, for a claim and for a whole output alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from muniment.core.policy.verify import FactCheckPolicy
from muniment.verify.facts.doubts import Doubt
from muniment.verify.facts.nearness import Nearness

__all__ = ["features", "support"]


def features(doubts: Iterable[Doubt], nearness: Sequence[Nearness], doubts_max: int) -> dict[str, float]:
    """What is weighed: doubts of each kind, counted up to a limit, and the mean nearness of the claims."""
    counts: dict[str, float] = {}
    for doubt in doubts:
        counts[doubt.kind] = min(float(doubts_max), counts.get(doubt.kind, 0.0) + doubt.weight)
    size = max(1, len(nearness))
    for name in Nearness._fields:
        counts[name] = sum(getattr(one, name) for one in nearness) / size
    return counts


def support(doubts: Iterable[Doubt], nearness: Sequence[Nearness], policy: FactCheckPolicy) -> float:
    """How well the source supports it: 1 fully, 0 not at all."""
    log_odds = policy.base
    for name, value in features(doubts, nearness, policy.doubts_max).items():
        if name == "pronouns":
            log_odds -= policy.nearness.pronouns * value
        elif name in Nearness._fields:
            log_odds += getattr(policy.nearness, name) * value
        else:
            log_odds -= getattr(policy.doubts, name) * value
    return 1 / (1 + math.exp(-policy.sharpness * log_odds))
