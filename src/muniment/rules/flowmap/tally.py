"""Logs counted in cells, one after another, in memory that does not grow with their number.

Risks are of logs. Gains are of tasks: each is counted where its first log stands, by what it began with (`arms`) and by
what further attempts did to it (`climbs`). Counts are whole numbers, costs too (in millionths), and what is told apart
does not depend on order: however the logs are split, counted and merged, the tally is the same. Each count of logs and
arms is kept in `FOLDS` parts by the hash of the trace id, so that an estimator can be tried on runs that it was not
made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

from muniment.core.policy import FlowMapPolicy
from muniment.errors import InvalidInput
from muniment.rules.flowmap.ladder import Begun, Climbed, begun, climbed
from muniment.rules.flowmap.names import Names
from muniment.rules.flowmap.rows import (
    ALL_CODES,
    NO_BUCKET,
    NO_CODE,
    NO_TIER,
    OTHER,
    ArmKey,
    FlowRow,
    check_cost,
    is_risky,
    k_band,
    stage_of,
)
from muniment.verify.constraints import DEFAULT_REGISTRY

__all__ = ["COST_UNIT", "FOLDS", "Arm", "Climb", "ClimbKey", "CodeKey", "FlowTally"]

FOLDS = 4
COST_UNIT = 1_000_000
_MODES = ("main", "sot", "matts", "kroll", "synth", "tree")
_TIERS = (NO_TIER, "hot", "probe", "full")
_ALWAYS = (ALL_CODES, OTHER)
"""Names that take no room."""
_DIMENSIONS = ("bucket", "stage", "code", "mode", "tier")


class CodeKey(NamedTuple):
    """A cell of the map; under `ALL_CODES`, all logs of the stage."""

    bucket: str
    stage: str
    code: str


class ClimbKey(NamedTuple):
    """A rung or a number of attempts, in a bucket: one of the three is said, the others are empty."""

    bucket: str
    mode: str
    tier: str
    k: str


class Climb(NamedTuple):
    """The tasks that something further was open to, and what it did to them."""

    n: int
    passed: int
    """Before it came to this."""
    recovered: int
    reached: int
    recovered_late: int
    cost: int
    cost_squares: int


class Arm(NamedTuple):
    """Judged tasks of one `ArmKey`, by fold, and what they cost."""

    n: tuple[int, ...]
    passes: tuple[int, ...]
    cost: int
    cost_squares: int


class FlowTally:
    """Add rows, merge tallies; then an estimator reads `codes`, `arms` and `climbs`."""

    def __init__(self, policy: FlowMapPolicy) -> None:
        self.policy = policy
        self._names = {
            "bucket": Names(policy.buckets_max),
            "stage": Names(policy.stages_max, [stage_of(mode) for mode in _MODES]),
            "code": Names(policy.codes_max, (NO_CODE, *DEFAULT_REGISTRY.reasons)),
            "mode": Names(policy.levels_max, _MODES),
            "tier": Names(policy.levels_max, _TIERS),
        }
        self.codes: dict[CodeKey, list[int]] = {}
        """n and how many of them were at risk, by fold: [n0, risky0, n1, risky1, …]."""
        self.arms: dict[ArmKey, list[int]] = {}
        """n and passes by fold, then the costs and their squares."""
        self.climbs: dict[ClimbKey, list[int]] = {}
        """The fields of `Climb`."""
        self.unplanned: dict[ClimbKey, list[int]] = {}
        """Later attempts at tasks of which no log tells what was planned: how many had what."""
        self.n = 0
        self.judged_n = 0
        self.tasks_n = 0
        self.first_at: str | None = None
        self.last_at: str | None = None

    def add(self, row: FlowRow) -> None:
        """Count one log."""
        fold = 2 * (crc32(row.trace_id.encode("utf-8", "surrogatepass")) % FOLDS)
        bucket, stage = self._kept("bucket", row.bucket_key or NO_BUCKET), self._kept("stage", row.stage)
        risky = is_risky(row.verdict, row.outcome)
        codes = set(row.reason_codes) - {ALL_CODES} or ({NO_CODE} if risky else set())
        for code in (ALL_CODES, *codes):
            cell = self._cell(self.codes, CodeKey(bucket, stage, self._kept("code", code)), 2 * FOLDS)
            cell[fold] += 1
            cell[fold + 1] += risky
        self.n += 1
        self.first_at = row.at if self.first_at is None else min(self.first_at, row.at)
        self.last_at = row.at if self.last_at is None else max(self.last_at, row.at)
        self.judged_n += row.passed is not None
        if row.is_first:
            self._add_task(row, fold, bucket)
        elif not row.is_planned:
            self._add_unplanned(row, bucket)

    def _add_task(self, row: FlowRow, fold: int, bucket: str) -> None:
        task = row.task
        for each in () if task is None else climbed(task):
            self._add_climbed(each, bucket)
        first = Begun(row.mode, row.tier, 1, row.passed, row.cost) if task is None else begun(task)
        if first.passed is None:
            return
        mode, tier = self._kept("mode", first.mode), self._kept("tier", first.tier or NO_TIER)
        arm = self._cell(
            self.arms, ArmKey(bucket, mode, tier, row.hints > 0, row.rules > 0, k_band(first.k)), 2 * FOLDS + 2
        )
        cost = round(check_cost(first.cost) * COST_UNIT)
        arm[fold] += 1
        arm[fold + 1] += first.passed
        arm[-2] += cost
        arm[-1] += cost * cost
        self.tasks_n += 1

    def _add_climbed(self, told: Climbed, bucket: str) -> None:
        cost = round(check_cost(told.cost) * COST_UNIT)
        counts = (1, told.had_passed, told.recovered, told.is_reached, told.recovered_late, cost, cost * cost)
        _add_into(self._cell(self.climbs, self._climb_key(bucket, told.mode, told.tier, told.k), len(counts)), counts)

    def _add_unplanned(self, row: FlowRow, bucket: str) -> None:
        for mode, tier, k in ((row.mode, "", ""), ("", row.tier or "", ""), ("", "", "2-4")):
            if (mode, tier, k) != ("", "", ""):
                self._cell(self.unplanned, self._climb_key(bucket, mode, tier, k), 1)[0] += 1

    def _climb_key(self, bucket: str, mode: str, tier: str, k: str) -> ClimbKey:
        return ClimbKey(bucket, self._kept("mode", mode) if mode else "", self._kept("tier", tier) if tier else "", k)

    def add_all(self, rows: Iterable[FlowRow]) -> FlowTally:
        for row in rows:
            self.add(row)
        return self

    def merge(self, other: FlowTally) -> FlowTally:
        """Count all that `other` has counted; both must be of one policy."""
        if other.policy != self.policy:
            raise InvalidInput("tallies of two policies cannot be one", path="$.policy", hint="count with one policy")
        for dimension in _DIMENSIONS:
            for name in other._names[dimension]:
                self._kept(dimension, name)
        for mine, theirs in zip(self._tables, other._tables, strict=True):
            for key, counts in theirs.items():
                _add_into(self._cell(mine, self._settled(key), len(counts)), counts)
        self.n += other.n
        self.judged_n += other.judged_n
        self.tasks_n += other.tasks_n
        self.first_at = min((at for at in (self.first_at, other.first_at) if at is not None), default=None)
        self.last_at = max((at for at in (self.last_at, other.last_at) if at is not None), default=None)
        return self

    @property
    def cells_n(self) -> int:
        return sum(map(len, self._tables))

    @property
    def _tables(self) -> tuple[dict[Any, list[int]], ...]:
        return self.codes, self.arms, self.climbs, self.unplanned

    @property
    def folded(self) -> tuple[str, ...]:
        """The dimensions in which something was told apart no further."""
        fields = {"bucket": 0, "stage": 1, "code": 2}
        found = {name for name, at in fields.items() if any(key[at] == OTHER for key in self.codes)}
        tried = (*self.arms, *self.climbs, *self.unplanned)
        found |= {name for name in ("mode", "tier") if any(getattr(key, name) == OTHER for key in tried)}
        return tuple(name for name in _DIMENSIONS if name in found)

    def arm(self, key: ArmKey) -> Arm:
        counts = self.arms[key]
        return Arm(tuple(counts[:-2:2]), tuple(counts[1:-2:2]), counts[-2], counts[-1])

    def climb(self, key: ClimbKey) -> Climb:
        return Climb(*self.climbs[key])

    # -- cells ----------------------------------------------------------------------------------------

    def _kept(self, dimension: str, name: str) -> str:
        names = self._names[dimension]
        if name in names or name in _ALWAYS:
            return name
        gone = names.offer(name)
        if gone is None:
            return name
        if gone != name:
            self._fold_away(dimension, gone)
            return name
        return OTHER

    def _fold_away(self, dimension: str, gone: str) -> None:
        """Add the cells of a name that is no longer told apart to those of the others."""
        for cells in self._tables:
            if any(hasattr(key, dimension) for key in islice(cells, 1)):
                _rename(cells, dimension, gone)

    def _settled(self, key: Any) -> Any:
        """A key of another tally, with the names that are told apart here."""
        named = {
            field: value if value in self._names[field] or value in _ALWAYS else OTHER
            for field, value in key._asdict().items()
            if field in self._names
        }
        return key._replace(**named)

    def _cell(self, cells: dict[Any, list[int]], key: Any, size: int) -> list[int]:
        cell = cells.get(key)
        if cell is None:
            cell = cells[key] = [0] * size
        return cell


def _add_into(cell: list[int], counts: Sequence[int]) -> None:
    for at, count in enumerate(counts):
        cell[at] += count


def _rename(cells: dict[Any, list[int]], dimension: str, gone: str) -> None:
    for key in [key for key in cells if getattr(key, dimension) == gone]:
        counts = cells.pop(key)
        target = key._replace(**{dimension: OTHER})
        if target in cells:
            _add_into(cells[target], counts)
        else:
            cells[target] = counts
