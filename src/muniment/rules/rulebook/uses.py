"""The judged runs of a rule: their arms and phases, their order, windows of them, and what those of an arm came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from muniment.core.instants import format_instant, parse_instant
from muniment.core.stats.counts import Tally
from muniment.errors import InvalidInput
from muniment.learning.rule_state import Arm
from muniment.rules.promotion.records import RuleUse

__all__ = ["NO_RUNS", "PHASES", "PHASE_OF", "WITH", "ArmCounts", "Phase", "use_order", "window"]

NO_RUNS = Tally()
Phase = Literal["trial", "hold"]
PHASES: Mapping[Phase, tuple[Arm, Arm]] = MappingProxyType(
    {"trial": ("canary", "baseline"), "hold": ("active", "holdout")}
)
"""The arm that has the rule, and the one that has not."""
PHASE_OF: dict[Arm, Phase] = {arm: phase for phase, arms in PHASES.items() for arm in arms}
WITH = frozenset(arms[0] for arms in PHASES.values())


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """What the runs of an arm came to."""

    runs: Tally = NO_RUNS
    confirmed: int = 0
    violated: int = 0
    attempts: int = 0
    cost: float = 0

    def add(self, use: RuleUse) -> ArmCounts:
        return ArmCounts(
            self.runs.add(use.passed),
            self.confirmed + use.confirmed,
            self.violated + use.violated,
            self.attempts + use.attempts,
            self.cost + use.cost,
        )

    def merge(self, other: ArmCounts) -> ArmCounts:
        return ArmCounts(
            self.runs.merge(other.runs),
            self.confirmed + other.confirmed,
            self.violated + other.violated,
            self.attempts + other.attempts,
            self.cost + other.cost,
        )

    def mean(self, name: Literal["confirmed", "violated", "attempts", "cost"]) -> float | None:
        """Of a run; None where there was none."""
        total: float = getattr(self, name)
        return total / self.runs.n if self.runs.n else None


def use_order(use: RuleUse) -> tuple[str, str]:
    """In what order runs count: their instants, then their ids."""
    return format_instant(parse_instant(use.at, path="$.at")), use.trace_id


def window(uses: Iterable[RuleUse], start: str | datetime | None, end: str | datetime | None) -> list[RuleUse]:
    """The runs with start ≤ at < end; either end may be open. Statistics of none are unknown."""
    first = None if start is None else parse_instant(start, path="$.start")
    past = None if end is None else parse_instant(end, path="$.end")
    if first is not None and past is not None and first >= past:
        raise InvalidInput(f"a window from {start} to {end}", path="$.end", hint="a window ends after it starts")
    found = []
    for use in uses:
        at = parse_instant(use.at, path="$.at")
        if (first is None or first <= at) and (past is None or at < past):
            found.append(use)
    return found
