"""How runs of a bucket fared at each tier and mode, and at which cost: a fold over the logs that merges exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from muniment.core.scope import RunMode
from muniment.core.stats import Tally
from muniment.rules.routing.log_rows import LogRow
from muniment.rules.routing.records import Tier

__all__ = ["AFTER_MAX", "BucketStats", "Spent"]

AFTER_MAX = 15
"""Attempts at one task are told apart up to here."""
_MICRO = 1_000_000


class Spent(NamedTuple):
    """Runs counted, with their cost in millionths, so that sums are exact in any order."""

    n: int = 0
    passes: int = 0
    confirmed: int = 0
    cost_micros: int = 0

    def plus(self, other: Spent) -> Spent:
        return Spent(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def tally(self) -> Tally:
        return Tally(self.passes, self.n)

    @property
    def mean_cost(self) -> float | None:
        """None where nothing was run."""
        return self.cost_micros / self.n / _MICRO if self.n else None


class Cell(NamedTuple):
    mode: RunMode
    tier: Tier
    after: int


@dataclass(slots=True)
class BucketStats:
    """The runs of one bucket by mode, tier, and how many attempts at their task had failed before."""

    cells: dict[Cell, Spent] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[LogRow]) -> BucketStats:
        stats = cls()
        for row in rows:
            stats.add(row)
        return stats

    def add(self, row: LogRow) -> None:
        """One run more, if it passed or did not."""
        if row.counts:
            one = Spent(1, int(row.passed), int(row.is_confirmed), round(max(0.0, row.cost) * _MICRO))
            self._put(Cell(row.mode, row.rung, min(max(0, row.after), AFTER_MAX)), one)

    def merge(self, other: BucketStats) -> BucketStats:
        both = BucketStats(dict(self.cells))
        for cell, spent in other.cells.items():
            both._put(cell, spent)
        return both

    def _put(self, cell: Cell, spent: Spent) -> None:
        self.cells[cell] = self.cells.get(cell, Spent()).plus(spent)

    def at(self, *tiers: Tier, fresh: bool = False) -> Spent:
        """Plain attempts at these tiers (all, if none is named); `fresh`, at tasks that nothing had failed at."""
        found = Spent()
        for cell, spent in self.cells.items():
            if cell.mode != "synth" and (not tiers or cell.tier in tiers) and not (fresh and cell.after):
                found = found.plus(spent)
        return found

    @property
    def tasks(self) -> Tally:
        """Tasks that were tried, however often, and how many passed in the end."""
        n = self.at(fresh=True).n
        return Tally(min(n, self.at().passes), n)

    def exposure(self, tier: Tier, likeness: float) -> float:
        """How many first attempts the attempts at a tier are worth: one after n failures is worth s/(s + n)."""
        return sum(
            spent.n * likeness / (likeness + cell.after)
            for cell, spent in sorted(self.cells.items())
            if cell.mode != "synth" and cell.tier == tier
        )
