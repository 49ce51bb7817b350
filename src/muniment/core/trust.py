"""How trust travels (LG-08)."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.core.vocabulary import TRUST_ORDER, Trust

__all__ = ["TRUST_RANK", "lowest_trust", "one_less"]

TRUST_RANK = {level: rank for rank, level in enumerate(TRUST_ORDER)}


def lowest_trust(levels: Iterable[Trust]) -> Trust:
    """What an item derived from sources of these levels may claim; with no source, the lowest."""
    return max(levels, key=TRUST_RANK.__getitem__, default=TRUST_ORDER[-1])


def one_less(level: Trust) -> Trust:
    """The level below this one; of the lowest, itself."""
    return TRUST_ORDER[min(TRUST_RANK[level] + 1, len(TRUST_ORDER) - 1)]
