"""The flow map (RC-23): where runs go wrong and what interventions bring, estimated from the logs of a bank."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import exp, isfinite, log, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from muniment.contracts.rules import FlowMapSnapshot
from muniment.core.canonical import digest, digest_of
from muniment.core.instants import check_window
from muniment.core.policy import FlowEstimatorKind, FlowMapPolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.stats import Bounds, Tally, difference_bounds, normal_quantile, wilson_bounds
from muniment.errors import InvalidInput, NotFound
from muniment.learning.log_reading import LogWindow, stream_logs
from muniment.learning.recalling import bucket_given
from muniment.memory.patches import instant_of
from muniment.rules.routing import row_of
from muniment.verify.constraints import DEFAULT_REGISTRY
from muniment.verify.results import parse_bucket_key

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.store.context import Context


# == rows =============================================================================================================

ALL_BUCKETS = "*"
"""The `bucket_key` of a map of all buckets together."""
ALL_CODES = ""
OTHER = "(other)"
"""What is told apart no further: over the sizes of the policy."""
NO_BUCKET = "(no bucket)"
NO_CODE = "(no code)"
"""Went wrong, and nothing says how."""
NO_TIER = "(no tier)"
_COST_MAX = 1e15


class Rung(NamedTuple):
    """Up to `k` attempts of one mode and tier, made as long as none before has passed."""

    mode: str
    tier: str | None
    k: int


class Tried(NamedTuple):
    """One attempt at a task; `passed` is None where nobody could tell."""

    mode: str
    tier: str | None
    passed: bool | None
    cost: float


class FlowTask(NamedTuple):
    """What was planned for a task before anything was tried, and what was then made of it."""

    rungs: tuple[Rung, ...]
    attempts: tuple[Tried, ...]


class FlowRow(NamedTuple):
    """One log: where it went, how it ended, what it had and what it cost."""

    trace_id: str
    stage: str
    verdict: str
    outcome: str
    passed: bool | None
    """None where a verifier was asked and could not tell: a risk, and neither pass nor fail."""
    reason_codes: tuple[str, ...] = ()
    cost: float = 0.0
    mode: str = "main"
    tier: str | None = None
    bucket_key: str | None = None
    at: str = ""
    hints: int = 0
    rules: int = 0
    is_first: bool = True
    """Is it the first attempt at its task? What a later one had, it had because another failed."""
    task: FlowTask | None = None
    """Of a first attempt: the task. None where the log does not tell what was planned."""
    is_planned: bool = False
    """Of a later attempt: does the log of the first tell what was planned?"""


class ArmKey(NamedTuple):
    """What a task began with: those of one key differ in nothing the map knows of."""

    bucket: str
    mode: str
    tier: str
    hints: bool
    rules: bool
    k: str


def is_risky(verdict: str, outcome: str) -> bool:
    """The contract's risk: not passed, or not known to be right."""
    return verdict in ("FAIL", "PARTIAL") or outcome in ("FAIL", "UNKNOWN")


def stage_of(mode: str) -> str:
    """`main→verify`, `synth→verify`."""
    return f"{mode}→verify"


def k_band(k: int) -> str:
    """How many attempts, in the bands that mean something: one, a probe, a full search."""
    return "1" if k <= 1 else "2-4" if k <= 4 else "5+"


def check_cost(cost: float) -> float:
    if not isfinite(cost) or not 0 <= cost <= _COST_MAX:
        raise InvalidInput(f"a log that cost {cost!r}", path="$.cost", hint="a number from 0")
    return cost


# == ladder ===========================================================================================================

PROBE_MAX = 4
"""Attempts of the first band; more are a full search."""


class Begun(NamedTuple):
    """The first rung of a task: one attempt, or several of a kind."""

    mode: str
    tier: str | None
    k: int
    """How many it could have had."""
    passed: bool | None
    cost: float


class Climbed(NamedTuple):
    """What a further rung, or further attempts, did to a task that they were open to."""

    mode: str = ""
    tier: str = ""
    k: str = ""
    """One of the three is said, the others are empty."""
    had_passed: bool = False
    """Before it came to this."""
    recovered: bool = False
    is_reached: bool = False
    """Was any attempt of it made?"""
    recovered_late: bool = False
    """Of the full search alone: by an attempt that a probe would not have had."""
    cost: float = 0.0


def begun(task: FlowTask) -> Begun:
    """What the task began with, and whether that alone passed it."""
    first = task.attempts[0]
    rung = _rung_of(task.rungs, first)
    made = _leading(task.attempts, first)
    judged = [each.passed for each in made if each.passed is not None]
    return Begun(
        first.mode,
        first.tier,
        len(made) if rung is None else max(1, rung.k),
        any(judged) if judged else None,
        sum(each.cost for each in made),
    )


def climbed(task: FlowTask) -> Iterator[Climbed]:
    """What every rung and number of attempts that was open to the task did to it."""
    if all(each.passed is None for each in task.attempts):
        return
    tries = sum(rung.k for rung in task.rungs if rung.mode != "synth")
    alone = [each for each in task.attempts if each.mode != "synth"]
    if tries > 1:
        yield _further(alone, PROBE_MAX, "2-4")
    if tries > PROBE_MAX:
        yield _further(alone, len(alone), "5+")
    first = (task.rungs[0].mode, task.rungs[0].tier) if task.rungs else ("", None)
    for field in ("mode", "tier"):
        begins = first[0] if field == "mode" else first[1]
        levels = dict.fromkeys(getattr(rung, field) for rung in task.rungs)
        for level in levels:
            if level is not None and level != begins:
                yield _rung_climbed(task.attempts, field, level)


def _further(attempts: Sequence[Tried], until: int, band: str) -> Climbed:
    """Attempts after the first: what one alone would have left is what the first left."""
    first, later = attempts[:1], attempts[1:until]
    had = _passes(first)
    return Climbed(
        k=band,
        had_passed=had,
        recovered=not had and _passes(later),
        is_reached=bool(later),
        recovered_late=band == "5+" and not _passes(attempts[:PROBE_MAX]) and _passes(attempts[PROBE_MAX:until]),
        cost=sum(each.cost for each in later),
    )


def _rung_climbed(attempts: Sequence[Tried], field: str, level: str) -> Climbed:
    at = next((at for at, each in enumerate(attempts) if getattr(each, field) == level), len(attempts))
    made = [each for each in attempts[at:] if getattr(each, field) == level]
    had = _passes(attempts[:at])
    return Climbed(
        mode=level if field == "mode" else "",
        tier=level if field == "tier" else "",
        had_passed=had,
        recovered=not had and _passes(made),
        is_reached=bool(made),
        cost=sum(each.cost for each in made),
    )


def _passes(attempts: Sequence[Tried]) -> bool:
    return any(each.passed for each in attempts)


def _leading(attempts: Sequence[Tried], first: Tried) -> list[Tried]:
    """The attempts from the first on that were made as it was."""
    made: list[Tried] = []
    for each in attempts:
        if (each.mode, each.tier) != (first.mode, first.tier):
            break
        made.append(each)
    return made


def _rung_of(rungs: Sequence[Rung], first: Tried) -> Rung | None:
    return next((rung for rung in rungs if (rung.mode, rung.tier) == (first.mode, first.tier)), None)


# == names ============================================================================================================

Rank = tuple[bool, bytes]


class Names:
    """At most `most` names."""

    __slots__ = ("_known", "_ranked", "_ranks", "most")

    def __init__(self, most: int, known: Collection[str] = ()) -> None:
        self.most = most
        self._known = frozenset(known)
        self._ranks: dict[str, Rank] = {}
        self._ranked: list[tuple[Rank, str]] = []

    def __contains__(self, name: str) -> bool:
        return name in self._ranks

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranks)

    def __len__(self) -> int:
        return len(self._ranks)

    def offer(self, name: str) -> str | None:
        """Keep a new name if its rank is low enough; answers the name that has to go, which may be this one."""
        rank = (name not in self._known, digest(name.encode("utf-8", "surrogatepass")))
        if len(self._ranks) >= self.most and (rank, name) > self._ranked[-1]:
            return name
        insort(self._ranked, (rank, name))
        self._ranks[name] = rank
        if len(self._ranks) <= self.most:
            return None
        _, gone = self._ranked.pop()
        del self._ranks[gone]
        return gone


# == tally ============================================================================================================

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


# == cells ============================================================================================================

BASES: dict[str, tuple[str | bool, ...]] = {
    "mode": ("main",),
    "tier": ("hot", NO_TIER),
    "k": ("1",),
    "hints": (False,),
    "rules": (False,),
}
"""Doing nothing of the kind. The first of them stands for all."""
PACKAGE = ("mode", "tier", "k")
"""What mostly comes together, and cannot be told apart where it does."""
_DIGITS = 6


class RiskCell(NamedTuple):
    """A stage and a code: of `n` logs of the stage `risky` went wrong with the code; `code_n` had it at all."""

    stage: str
    code: str
    n: int
    risky: int
    code_n: int


class Change(NamedTuple):
    """An intervention: one field of an arm's key, and what it is set to."""

    field: str
    level: str | bool


def rounded(value: float) -> float:
    """A figure as it is published: the last bits of a float are no information."""
    return round(value, _DIGITS) + 0.0


def code_cells(tally: FlowTally, bucket_key: str) -> list[RiskCell]:
    """The cells of the map of a bucket, or of all buckets together, stage by stage."""
    logs: defaultdict[str, int] = defaultdict(int)
    counted: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for key, counts in tally.codes.items():
        if bucket_key in (ALL_BUCKETS, key.bucket):
            n, risky = sum(counts[::2]), sum(counts[1::2])
            counted[key.stage, key.code][0] += n
            counted[key.stage, key.code][1] += risky
            logs[key.stage] += n if key.code == ALL_CODES else 0
    if not logs:
        raise NotFound(f"no logs of the bucket {bucket_key!r:.80} in this window", path="$.bucket_key", hint=_HINT)
    return [
        RiskCell(stage, code, logs[stage], min(risky, logs[stage]), n)
        for (stage, code), (n, risky) in sorted(counted.items())
    ]


_HINT = "leave the bucket out to see all of them"


def arm_keys(tally: FlowTally, bucket_key: str) -> list[ArmKey]:
    """What runs had, of a bucket or of all, in one order."""
    return sorted(key for key in tally.arms if bucket_key in (ALL_BUCKETS, key.bucket))


def changes_of(keys: list[ArmKey]) -> Iterator[Change]:
    """Every intervention that some task began with. How many attempts it had is told by the task itself."""
    for field, bases in BASES.items():
        for level in sorted({getattr(key, field) for key in keys} - set(bases)) if field != "k" else ():
            yield Change(field, level)


def without(key: ArmKey, change: Change) -> ArmKey:
    """The arm of a run without the intervention: a mode, a tier or more attempts go together with what they brought."""
    gone: dict[str, Any] = {field: BASES[field][0] for field in _fields(change)}
    return key._replace(**gone)


def side_of(key: ArmKey, change: Change) -> bool | None:
    """True for runs with the intervention, False for those with nothing of the kind, None for the others."""
    if getattr(key, change.field) == change.level:
        return True
    is_base = all(getattr(key, field) in BASES[field] for field in _fields(change))
    return False if is_base else None


def _fields(change: Change) -> tuple[str, ...]:
    return PACKAGE if change.field in PACKAGE else (change.field,)


def named(change: Change) -> str:
    """`hints`, `mode:synth`, `tier:full`, `K:2-4`."""
    field = "K" if change.field == "k" else change.field
    return field if change.level is True else f"{field}:{change.level}"


def tally_of(tally: FlowTally, key: ArmKey) -> Tally:
    """Passes of judged tasks of an arm, by what they began with."""
    arm = tally.arm(key)
    return Tally(sum(arm.passes), sum(arm.n))


# == gains ============================================================================================================

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


# == recovered ========================================================================================================


def recovered_gains(tally: FlowTally, bucket_key: str) -> list[dict[str, Any]]:
    """What each rung, and each number of attempts, recovered."""
    sums: defaultdict[Change, list[int]] = defaultdict(lambda: [0] * len(Climb._fields))
    for key in sorted(tally.climbs):
        if bucket_key in (ALL_BUCKETS, key.bucket):
            counted = sums[_change(key)]
            for at, count in enumerate(tally.climbs[key]):
                counted[at] += count
    return [_told(tally, change, Climb(*counts)) for change, counts in sums.items()]


def _told(tally: FlowTally, change: Change, climb: Climb) -> dict[str, Any]:
    policy, n = tally.policy, climb.n
    gain = Gain(
        gain=climb.recovered / n,
        bounds=wilson_bounds(climb.recovered, n, policy.confidence),
        base_pass=climb.passed / n,
        treated_n=n,
        base_n=n,
        strata_n=1,
        crude=None,
    )
    cost = cost_gap_of(climb.cost / n / COST_UNIT, error_of_mean(n, climb.cost, climb.cost_squares), policy.confidence)
    fields = gain_fields(change, gain, cost, policy, "within_task") | {"reached_n": climb.reached}
    if change == Change("k", "5+"):
        late = wilson_bounds(climb.recovered_late, n, policy.confidence)
        fields |= {"gain_late": rounded(climb.recovered_late / n), "late_upper": rounded(late.upper)}
    return fields


def unplanned_names(tally: FlowTally, bucket_key: str, told: set[str]) -> list[str]:
    """What was only tried after a failure, in logs that do not say what was planned: there is no estimate of it."""
    keys = (key for key in tally.unplanned if bucket_key in (ALL_BUCKETS, key.bucket))
    return sorted({named(_change(key)) for key in keys} - told - {"mode:main", "tier:hot"})


def _change(key: ClimbKey) -> Change:
    field = next(name for name in ("mode", "tier", "k") if getattr(key, name))
    return Change(field, getattr(key, field))


# == aggregate ========================================================================================================


class _Side(NamedTuple):
    """Runs of one stratum that had it, or had not."""

    outcomes: Tally = Tally()
    cost: int = 0
    cost_squares: int = 0

    def and_(self, outcomes: Tally, cost: int, cost_squares: int) -> _Side:
        return _Side(self.outcomes.merge(outcomes), self.cost + cost, self.cost_squares + cost_squares)


Strata = list[tuple[_Side, _Side]]


# -- risk -------------------------------------------------------------------------------------------------


def hotspots(tally: FlowTally, bucket_key: str) -> list[dict[str, Any]]:
    """Every cell at which something went wrong, worst first."""
    policy = tally.policy
    found = []
    for cell in code_cells(tally, bucket_key):
        if cell.risky:
            bounds = wilson_bounds(cell.risky, cell.n, policy.confidence)
            more = {"risky_n": cell.risky, "code_n": cell.code_n}
            found.append(told_hotspot(cell.stage, cell.code, cell.risky / cell.n, cell.n, bounds, policy) | more)
    return worst_first(found)


def told_hotspot(stage: str, code: str, rate: float, n: int, bounds: Bounds, policy: FlowMapPolicy) -> dict[str, Any]:
    return {
        "stage": stage,
        "reason_code": None if code == ALL_CODES else code,
        "risk_rate": rounded(rate),
        "support_n": n,
        "lower": rounded(bounds.lower),
        "upper": rounded(bounds.upper),
        "thin": n < policy.thin_n,
    }


def worst_first(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cells sorted by the lower bound: what is surely bad comes before what may be."""
    return sorted(
        found, key=lambda each: (-each["lower"], -each["risk_rate"], each["stage"], each["reason_code"] or "")
    )


# -- opportunity ------------------------------------------------------------------------------------------


def interventions(tally: FlowTally, bucket_key: str) -> tuple[list[dict[str, Any]], list[str]]:
    """What each intervention brought, best first, and the names of those that nothing can be compared with."""
    gains, alone = recovered_gains(tally, bucket_key), []
    known = {each["intervention"] for each in gains}
    for change in changes_of(arm_keys(tally, bucket_key)):
        if named(change) in known:
            continue
        strata = strata_of(tally, bucket_key, change)
        gain = gain_of(strata, tally.policy.confidence)
        if gain is None:
            alone.append(named(change))
        else:
            cost = cost_gap(strata, tally.policy.confidence)
            gains.append(gain_fields(change, gain, cost, tally.policy, "between_tasks"))
    return best_first(gains), alone


def strata_of(tally: FlowTally, bucket_key: str, change: Change) -> Strata:
    """Runs with the intervention and without, side by side."""
    sides: defaultdict[ArmKey, dict[bool, _Side]] = defaultdict(lambda: {True: _Side(), False: _Side()})
    for key in arm_keys(tally, bucket_key):
        side = side_of(key, change)
        if side is not None:
            pair, arm = sides[without(key, change)], tally.arm(key)
            pair[side] = pair[side].and_(tally_of(tally, key), arm.cost, arm.cost_squares)
    return [(pair[True], pair[False]) for pair in sides.values()]


def _weighed(strata: Strata) -> list[tuple[float, _Side, _Side]]:
    """The strata that have both sides, each with its weight; the weights add up to one."""
    both = [(a, b) for a, b in strata if a.outcomes.n and b.outcomes.n]
    weights = [a.outcomes.n * b.outcomes.n / (a.outcomes.n + b.outcomes.n) for a, b in both]
    total = sum(weights)
    return [(weight / total, a, b) for weight, (a, b) in zip(weights, both, strict=True)]


def gain_of(strata: Strata, confidence: float) -> Gain | None:
    """The mean difference of pass rates within strata; None where no stratum has both sides."""
    weighed = _weighed(strata)
    if not weighed:
        return None
    gain = below = above = base = 0.0
    for weight, with_, other in weighed:
        gap = with_.outcomes.passes / with_.outcomes.n - other.outcomes.passes / other.outcomes.n
        bounds = difference_bounds(with_.outcomes, other.outcomes, confidence)
        gain += weight * gap
        base += weight * other.outcomes.passes / other.outcomes.n
        below += (weight * (gap - bounds.lower)) ** 2
        above += (weight * (bounds.upper - gap)) ** 2
    return Gain(
        gain,
        Bounds(max(-1.0, gain - sqrt(below)), min(1.0, gain + sqrt(above))),
        base,
        sum(with_.outcomes.n for _, with_, _ in weighed),
        sum(other.outcomes.n for _, _, other in weighed),
        len(weighed),
        _crude(strata),
    )


def _crude(strata: Strata) -> float | None:
    sides = [sum((pair[at].outcomes.passes for pair in strata), 0) for at in (0, 1)]
    counts = [sum((pair[at].outcomes.n for pair in strata), 0) for at in (0, 1)]
    return sides[0] / counts[0] - sides[1] / counts[1] if all(counts) else None


def cost_gap(strata: Strata, confidence: float) -> CostGap:
    """The mean difference of costs within strata, in the unit of the logs."""
    mean = variance = 0.0
    for weight, with_, other in _weighed(strata):
        mean += weight * (_mean_cost(with_) - _mean_cost(other))
        variance += weight**2 * (_error_of_mean(with_) + _error_of_mean(other))
    return cost_gap_of(mean, variance, confidence)


def _mean_cost(side: _Side) -> float:
    return side.cost / side.outcomes.n / COST_UNIT


def _error_of_mean(side: _Side) -> float:
    return error_of_mean(side.outcomes.n, side.cost, side.cost_squares)


# == snapshots ========================================================================================================

_READ = (
    "a rate is of the logs of its stage, those of a code are the ones that went wrong with it and may overlap",
    "gains are of tasks: what was tried after a failure is compared within the task (within_task), what a task began "
    "with between tasks of a bucket (between_tasks), which is no experiment: harder tasks may have been given more",
)


def estimator_of(given: Any, default: FlowEstimatorKind) -> FlowEstimatorKind:
    kinds = get_args(FlowEstimatorKind)
    if given is None:
        return default
    if given not in kinds:
        raise InvalidInput(f"{given!r:.40} is no estimator", path="$.estimator", hint=f"one of {', '.join(kinds)}")
    found: FlowEstimatorKind = given
    return found


def flow_snapshot(
    tally: FlowTally,
    estimator: FlowEstimatorKind,
    *,
    now: str,
    bucket_key: str = ALL_BUCKETS,
    start_at: str | None = None,
    end_at: str | None = None,
) -> FlowMapSnapshot:
    """The map of a bucket, or of all, over the window that the tally was counted in."""
    check_window(start_at, end_at)
    if tally.first_at is None:
        raise NotFound("no judged run was logged in this window", path="$.window", hint="take a wider window")
    window = {"start_at": start_at or tally.first_at, "end_at": end_at or max(now, tally.last_at or now)}
    spots, (gains, alone), block = _estimated(tally, estimator, bucket_key)
    unplanned = unplanned_names(tally, bucket_key, {each["intervention"] for each in gains})
    notes = [
        f"{tally.n} logs, {tally.judged_n} judged, {tally.tasks_n} tasks",
        *_READ,
        *_limits(tally, len(spots), [each for each in alone if each not in unplanned], unplanned),
    ]
    return FlowMapSnapshot.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "generated_at": now,
            "window": window,
            "bucket_key": bucket_key,
            "estimator": block,
            "risk": {"stage_hotspots": spots[: tally.policy.hotspots_max]},
            "opportunity": {"interventions": gains},
            "notes": "; ".join(notes),
        }
    )


Estimated = tuple[list[dict[str, Any]], tuple[list[dict[str, Any]], list[str]], dict[str, Any]]


def _estimated(tally: FlowTally, estimator: FlowEstimatorKind, bucket_key: str) -> Estimated:
    if estimator == "aggregate_v1":
        spots = hotspots(tally, bucket_key)
        gains = interventions(tally, bucket_key)
        calibration = (
            "none: counted rates with Wilson's bounds, gains within tasks (Wilson) "
            "or within strata of tasks (Mantel–Haenszel, MOVER)"
        )
        return spots, gains, {"kind": estimator, "model_ref": None, "feature_set": None, "calibration": calibration}

    field = fit_fields(tally)
    block = {"kind": estimator, "model_ref": f"sha256:{field.model_ref}", "feature_set": FEATURE_SET}
    return field.hotspots(bucket_key), field.interventions(bucket_key), block | calibration_block(field, FOLDS)


def _limits(tally: FlowTally, spots_n: int, alone: list[str], unplanned: list[str]) -> list[str]:
    """What the map does not show."""
    limits = []
    if tally.folded:
        limits.append(f"more than the policy tells apart of: {', '.join(tally.folded)}; the rest stands as (other)")
    if spots_n > tally.policy.hotspots_max:
        limits.append(f"{spots_n - tally.policy.hotspots_max} lesser hotspots are not listed")
    if unplanned:
        limits.append(
            f"no estimate of {', '.join(unplanned)}: tried because something had failed, "
            "and the logs do not say which tasks it was open to"
        )
    if alone:
        limits.append(f"nothing to compare with: {', '.join(alone)}")
    return limits


# == flowmap reading ==================================================================================================


def flow_map(
    ctx: Context,
    tenant_id: str,
    owner: str,
    *,
    since: Any = None,
    until: Any = None,
    bucket_key: str | None = None,
    estimator: str | None = None,
) -> FlowMapSnapshot:
    """The map of the runs that a bank logged from `since` until before `until`."""
    start, end = instant_of(since, "$.since"), instant_of(until, "$.until")
    check_window(start, end)
    bucket, kind = bucket_given(bucket_key) or ALL_BUCKETS, estimator_of(estimator, ctx.policy.flow.estimator)
    tally = FlowTally(ctx.policy.flow)
    with ctx.engine.snapshot(tenant_id) as reader:
        tally.add_all(flow_rows(reader, owner, start, end))
    return flow_snapshot(tally, kind, now=ctx.now(), bucket_key=bucket, start_at=start, end_at=end)


def flow_rows(reader: Reader, owner: str, start: str | None = None, end: str | None = None) -> Iterator[FlowRow]:
    """The judged runs of a bank, in the order they were logged."""
    for at, body in stream_logs(reader, LogWindow(owner, start, end), newest_first=False):
        row = flow_row(body, at)
        if row is not None:
            yield row


def flow_row(body: Mapping[str, Any], at: str) -> FlowRow | None:
    """A stored log as the map reads it; None where nobody judged the run."""
    row, log = row_of(body), body["event_log"]
    if row.verdict is None:
        return None
    task = _part(_part(log, "run"), "task")
    return FlowRow(
        trace_id=log["trace_id"],
        stage=stage_of(row.mode),
        verdict=row.verdict,
        outcome=row.outcome or "",
        passed=row.passed if row.counts else None,
        reason_codes=row.reason_codes,
        cost=row.cost,
        mode=row.mode,
        tier=row.tier,
        bucket_key=row.bucket_key,
        at=at,
        hints=len(_part(log, "memory_recall").get("used_ids") or ()),
        rules=len(log.get("selected_rules") or ()),
        is_first=not (task.get("number") or row.after),
        task=_task_of(task),
        is_planned=bool(task),
    )


def _task_of(block: Mapping[str, Any]) -> FlowTask | None:
    """The task that a first attempt began; None where its log does not tell what was planned."""
    if not block.get("attempts"):
        return None
    return FlowTask(
        tuple(Rung(each["mode"], each.get("tier"), each["k"]) for each in block.get("rungs", ())),
        tuple(
            Tried(each["mode"], each.get("tier"), each.get("passed"), each.get("cost", 0.0))
            for each in block["attempts"]
        ),
    )


def _part(block: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return block.get(name) or {}


# == logit ============================================================================================================

Floats = NDArray[np.float64]
Features = tuple[str, ...]

INTERCEPT = "1"
_STEPS_MAX = 50
_TOLERANCE = 1e-7
"""How far the last step may go; Newton's next would be of the order of its square."""
_HELD_TOLERANCE = 1e-4
_SOLVED = 1e-8
"""How small the rest of a Newton step is, squared, beside the whole."""
_LEAST_SHARE = 1e-9
_FREE = 1e-6
"""The ridge on the intercept: as good as none."""
_BINS = 10
_EDGE = 1e-9


class Data(NamedTuple):
    """Rows by the columns that are true of them; `n` and `y` have one column for each fold."""

    names: tuple[str, ...]
    rows: NDArray[np.int32]
    """The columns of each row, filled up with one that is no column."""
    n: Floats
    y: Floats


class Calibration(NamedTuple):
    """How far the predictions held where they had not been fitted, before and after Platt's correction, and how far
    the plain rates of the same cells did.
    """

    ece_before: float
    ece: float
    brier: float
    ece_raw: float
    brier_raw: float
    log_loss: float
    log_loss_raw: float


@dataclass(frozen=True)
class Field:
    """A fitted estimator."""

    names: tuple[str, ...]
    weights: Floats
    covariance: Floats
    ridge: float
    shift: float
    slope: float
    calibration: Calibration

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}

    @property
    def model_ref(self) -> str:
        """The digest of all that a prediction depends on."""
        weights = dict(zip(self.names, map(rounded, self.weights.tolist()), strict=True))
        return digest_of({"weights": weights, "shift": round(self.shift, _DIGITS), "slope": round(self.slope, _DIGITS)})

    def predict(self, features: Features) -> tuple[float, Floats]:
        """The chance, and how it moves with the weights. Features never seen say nothing."""
        on = [self._place[name] for name in (INTERCEPT, *features) if name in self._place]
        chance = _chance(self.shift + self.slope * float(self.weights[on].sum()))
        gradient = np.zeros(len(self.names))
        gradient[on] = self.slope * chance * (1 - chance)
        return chance, gradient

    def deviation(self, gradient: Floats) -> float:
        """The standard deviation of a sum of predictions with this gradient."""
        return sqrt(max(0.0, float(gradient @ self.covariance @ gradient)))

    def correlation(self, one: Floats, other: Floats) -> float:
        """How far two sums of predictions move together, from -1 to 1."""
        spread = self.deviation(one) * self.deviation(other)
        return min(1.0, max(-1.0, float(one @ self.covariance @ other) / spread)) if spread else 0.0

    def chance_bounds(self, chance: float, gradient: Floats, z: float) -> Bounds:
        """Bounds on a mean of chances, on the scale of the logit, where they cannot leave 0 and 1."""
        held = min(max(chance, _EDGE), 1 - _EDGE)
        reach = z * self.deviation(gradient) / (held * (1 - held))
        middle = log(held / (1 - held))
        return Bounds(_chance(middle - reach), _chance(middle + reach))


def _chance(logit: float) -> float:
    return 1 / (1 + exp(-logit)) if logit >= 0 else 1 - 1 / (1 + exp(logit))


# -- data ---------------------------------------------------------------------------------------------


def data_of(
    rows: Sequence[Features], n: Sequence[Sequence[int]], y: Sequence[Sequence[int]], features_max: int
) -> Data:
    """The rows as columns: of all features those with most trials behind them, ties by name."""
    trials = np.asarray(n, dtype=np.float64)
    totals: dict[str, float] = {}
    for features, total in zip(rows, trials.sum(axis=1).tolist(), strict=True):
        for name in features:
            totals[name] = totals.get(name, 0.0) + total
    kept = sorted(totals, key=lambda name: (-totals[name], name))[: features_max - 1]
    names = (INTERCEPT, *sorted(kept))
    place = {name: at for at, name in enumerate(names)}
    held = [[0, *(place[name] for name in features if name in place)] for features in rows]
    columns = np.full((len(held), max(map(len, held))), len(names), dtype=np.int32)
    for at, each in enumerate(held):
        columns[at, : len(each)] = each
    return Data(names, columns, trials, np.minimum(np.asarray(y, dtype=np.float64), trials))


# -- fitting ------------------------------------------------------------------------------------------


class _Problem(NamedTuple):
    """What is to be made small: the misfit to some of the folds, and the ridge.

    A row is a handful of columns, so nothing is ever multiplied as a matrix: it is looked up and added, which is
    quicker here and, unlike a threaded library, takes no longer on a machine that has other things to do.
    """

    data: Data
    n: Floats
    y: Floats
    penalty: Floats

    def loss(self, weights: Floats) -> float:
        logits = _logits(self.data, weights)
        misfit = self.n * np.logaddexp(0, logits) - self.y * logits
        return float(misfit.sum()) + float((self.penalty * weights * weights).sum()) / 2

    def slope_and_spread(self, weights: Floats) -> tuple[Floats, Floats]:
        """Where downhill is, and the variance of each row, of which the curvature is made."""
        chance = _chances(_logits(self.data, weights))
        slope = _gathered(self.data, self.y - self.n * chance) - self.penalty * weights
        return slope, self.n * chance * (1 - chance)

    def solve(self, spread: Floats, slope: Floats) -> Floats:
        """The Newton step, by conjugate gradients."""
        scale = _gathered(self.data, spread) + self.penalty
        step, rest = np.zeros_like(slope), slope.copy()
        near = rest / scale
        along, size = near.copy(), float((rest * near).sum())
        goal = size * _SOLVED
        for _ in range(4 * len(slope)):
            if size <= goal:
                break
            bent = _gathered(self.data, spread * _logits(self.data, along)) + self.penalty * along
            far = size / float((along * bent).sum())
            step, rest = step + far * along, rest - far * bent
            near = rest / scale
            before, size = size, float((rest * near).sum())
            along = near + (size / before) * along
        return step

    def walk(self, weights: Floats, by: Floats, loss: float) -> tuple[Floats, float]:
        """Go as far in a direction as it does not make things worse: all of it, or a half, a quarter, …"""
        share = 1.0
        while share > _LEAST_SHARE:
            tried = weights + share * by
            found = self.loss(tried)
            if found <= loss:
                return tried, found
            share /= 2
        return weights, loss

    def curve(self, weights: Floats) -> Floats:
        """The curvature as a matrix."""
        rows, width = self.data.rows.astype(np.int64), len(weights) + 1
        _, spread = self.slope_and_spread(weights)
        each = np.repeat(spread, rows.shape[1])
        whole = np.zeros(width * width)
        for column in range(rows.shape[1]):
            places = (rows[:, column : column + 1] * width + rows).ravel()
            whole += np.bincount(places, each, width * width)
        inner: Floats = whole.reshape(width, width)[:-1, :-1] + np.diag(self.penalty)
        return inner


def _problem(data: Data, n: Floats, y: Floats, ridge: float) -> _Problem:
    penalty = np.full(len(data.names), ridge)
    penalty[0] = _FREE
    return _Problem(data, n, y, penalty)


def _minimise(problem: _Problem, weights: Floats, tolerance: float) -> Floats:
    """The weights at which the penalised likelihood is highest."""
    loss = problem.loss(weights)
    for _ in range(_STEPS_MAX):
        slope, spread = problem.slope_and_spread(weights)
        before = weights
        weights, loss = problem.walk(weights, problem.solve(spread, slope), loss)
        if float(np.abs(weights - before).max()) < tolerance:
            break
    return weights


def _logits(data: Data, weights: Floats) -> Floats:
    """The logit of every row: the sum of its weights."""
    return np.asarray(np.append(weights, 0.0)[data.rows].sum(axis=1), dtype=np.float64)


def _gathered(data: Data, values: Floats) -> Floats:
    """For every column, the sum of its rows' values."""
    width = len(data.names)
    sums = np.bincount(data.rows.ravel(), np.repeat(values, data.rows.shape[1]), width + 1)
    return np.asarray(sums[:width], dtype=np.float64)


def _chances(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))), dtype=np.float64)


def fit_field(data: Data, ridges: Sequence[float]) -> Field:
    """The field whose ridge did best on held-out folds, calibrated on them."""
    n, y = data.n.sum(axis=1), data.y.sum(axis=1)
    weights = np.zeros(len(data.names))
    fitted: list[tuple[float, Floats]] = []
    for ridge in sorted(ridges, reverse=True):
        weights = _minimise(_problem(data, n, y, ridge), weights, _TOLERANCE)
        fitted.append((ridge, weights))
    tried = [_held_out(data, ridge, weights) for ridge, weights in fitted]
    chosen = _strongest_of_the_best(tried, data)
    (ridge, weights), held = fitted[chosen], tried[chosen]
    shift, slope = _platt(held, data.n, data.y)
    calibration = _calibration(data, held, shift, slope)
    covariance = np.asarray(np.linalg.inv(_problem(data, n, y, ridge).curve(weights)), dtype=np.float64)
    return Field(data.names, weights, covariance, ridge, shift, slope, calibration)


def _held_out(data: Data, ridge: float, start: Floats) -> Floats:
    """The logits of every row in every fold, from weights fitted to the other folds."""
    n, y = data.n.sum(axis=1), data.y.sum(axis=1)
    held = np.zeros_like(data.n)
    for fold in range(data.n.shape[1]):
        rest = _problem(data, n - data.n[:, fold], y - data.y[:, fold], ridge)
        held[:, fold] = _logits(data, _minimise(rest, start, _HELD_TOLERANCE))
    return held


def _strongest_of_the_best(tried: Sequence[Floats], data: Data) -> int:
    """The strongest ridge (they come in that order) that is not worse than the best by more than chance would have it:
    where little is known, what is said stays near what is known of all.
    """
    losses = [_misses(logits) for logits in tried]
    means = [_mean_miss(each, data) for each in losses]
    best = losses[min(range(len(means)), key=lambda at: (round(means[at], 9), at))]
    total = max(1.0, float(data.n.sum()))
    for at, (hit, miss) in enumerate(losses):
        more = data.y * (hit - best[0]) + (data.n - data.y) * (miss - best[1])
        square = data.y * (hit - best[0]) ** 2 + (data.n - data.y) * (miss - best[1]) ** 2
        if float(more.sum()) <= sqrt(float(square.sum())) + 1e-9 * total:
            return at
    return len(losses) - 1


def _misses(logits: Floats) -> tuple[Floats, Floats]:
    """The log loss where it happened, and where it did not."""
    return np.logaddexp(0, -logits), np.logaddexp(0, logits)


def _mean_miss(misses: tuple[Floats, Floats], data: Data) -> float:
    return float((data.y * misses[0] + (data.n - data.y) * misses[1]).sum()) / max(1.0, float(data.n.sum()))


def _platt(logits: Floats, n: Floats, y: Floats) -> tuple[float, float]:
    """Shift and slope of the logits that fit the held-out folds best, drawn a little towards 0 and 1."""
    at = np.array([0.0, 1.0])
    centre = at.copy()
    for _ in range(_STEPS_MAX):
        chance = _chances(at[0] + at[1] * logits)
        miss, weight = y - n * chance, n * chance * (1 - chance)
        slope = np.array([miss.sum(), (miss * logits).sum()]) - (at - centre)
        across = float((weight * logits).sum())
        curve = np.array([[float(weight.sum()) + 1, across], [across, float((weight * logits**2).sum()) + 1]])
        step = np.clip(np.linalg.solve(curve, slope), -1, 1)
        at = at + step
        if float(np.abs(step).max()) < _TOLERANCE:
            break
    return float(at[0]), max(float(at[1]), 0.05)


# -- how well it holds ------------------------------------------------------------------------------------


def _calibration(data: Data, held: Floats, shift: float, slope: float) -> Calibration:
    mine = _chances(shift + slope * held)
    raw = _held_rates(data)
    return Calibration(
        ece_before=calibration_error(_chances(held), data.n, data.y),
        ece=calibration_error(mine, data.n, data.y),
        brier=_brier(mine, data.n, data.y),
        ece_raw=calibration_error(raw, data.n, data.y),
        brier_raw=_brier(raw, data.n, data.y),
        log_loss=_log_loss(mine, data.n, data.y),
        log_loss_raw=_log_loss(raw, data.n, data.y),
    )


def _held_rates(data: Data) -> Floats:
    """What plain rates would have said of each fold: the rate of the same cell in the others, else of all cells."""
    n = data.n.sum(axis=1, keepdims=True) - data.n
    y = data.y.sum(axis=1, keepdims=True) - data.y
    overall = float(data.y.sum()) / max(1.0, float(data.n.sum()))
    return np.where(n > 0, y / np.maximum(n, 1), overall)


def calibration_error(chance: Floats, n: Floats, y: Floats) -> float:
    """Expected calibration error: in ten bins of the predicted chance, how far it is from what happened."""
    bins = np.minimum((chance * _BINS).astype(np.int64), _BINS - 1).ravel()
    said = np.bincount(bins, (chance * n).ravel(), _BINS)
    met = np.bincount(bins, y.ravel(), _BINS)
    return float(np.abs(said - met).sum() / max(1.0, float(n.sum())))


def _brier(chance: Floats, n: Floats, y: Floats) -> float:
    return float((y * (1 - chance) ** 2 + (n - y) * chance**2).sum() / max(1.0, float(n.sum())))


def _log_loss(chance: Floats, n: Floats, y: Floats) -> float:
    held = np.clip(chance, 1e-6, 1 - 1e-6)
    return float(-(y * np.log(held) + (n - y) * np.log1p(-held)).sum() / max(1.0, float(n.sum())))


# == field ============================================================================================================

FEATURE_SET = "stage·code·bucket axes with pairs; mode·tier·hints·rules·K by impact and clarity"


class FlowField(NamedTuple):
    """Both fields of one tally."""

    tally: FlowTally
    risk: Field
    passing: Field | None
    """None where no task was judged."""

    @property
    def model_ref(self) -> str:
        return digest_of([self.risk.model_ref, None if self.passing is None else self.passing.model_ref])

    def risk_of(self, bucket: str, stage: str, code: str = ALL_CODES) -> float:
        """How often a log of the bucket and stage goes wrong with the code, seen there or not."""
        return self.risk.predict(_risk_features(bucket, stage, code))[0]

    def hotspots(self, bucket_key: str) -> list[dict[str, Any]]:
        """The cells at which something went wrong, worst first, each with what the field makes of it."""
        return worst_first(
            [
                self._hotspot(bucket_key, cell.stage, cell.code, cell.n)
                | {"risky_n": cell.risky, "code_n": cell.code_n}
                for cell in code_cells(self.tally, bucket_key)
                if cell.risky
            ]
        )

    def _hotspot(self, bucket_key: str, stage: str, code: str, n: int) -> dict[str, Any]:
        chance, gradient = 0.0, np.zeros(len(self.risk.names))
        for bucket, logs in sorted(_logs(self.tally, stage).items()):
            if bucket_key in (ALL_BUCKETS, bucket):
                one, moves = self.risk.predict(_risk_features(bucket, stage, code))
                chance, gradient = chance + one * logs / n, gradient + moves * (logs / n)
        policy = self.tally.policy
        bounds = self.risk.chance_bounds(chance, gradient, _z(policy))
        return told_hotspot(stage, code, chance, n, bounds, policy)

    def interventions(self, bucket_key: str) -> tuple[list[dict[str, Any]], list[str]]:
        """What each intervention would bring, best first; and those that no task began without. What further attempts
        recovered is counted, not predicted.
        """
        gains, alone = recovered_gains(self.tally, bucket_key), []
        known = {each["intervention"] for each in gains}
        for change in changes_of(arm_keys(self.tally, bucket_key)):
            if named(change) in known:
                continue
            strata = strata_of(self.tally, bucket_key, change)
            seen = gain_of(strata, self.tally.policy.confidence)
            gain = None if seen is None else self._gain(bucket_key, change, seen)
            if gain is None:
                alone.append(named(change))
            else:
                cost = cost_gap(strata, self.tally.policy.confidence)
                gains.append(gain_fields(change, gain, cost, self.tally.policy, "between_tasks"))
        return best_first(gains), alone

    def _gain(self, bucket_key: str, change: Change, seen: Gain) -> Gain | None:
        """The runs that had it, as they are and as they would be without it."""
        if self.passing is None:
            return None
        size = len(self.passing.names)
        had, lacked, total = _Mean(0.0, np.zeros(size)), _Mean(0.0, np.zeros(size)), 0
        for key in arm_keys(self.tally, bucket_key):
            if side_of(key, change):
                n = sum(self.tally.arm(key).n)
                had = had.and_(n, self.passing.predict(_pass_features(key)))
                lacked = lacked.and_(n, self.passing.predict(_pass_features(without(key, change))))
                total += n
        had, lacked = had.over(total), lacked.over(total)
        bounds = _gap_bounds(self.passing, had, lacked, _z(self.tally.policy))
        return seen._replace(gain=had.chance - lacked.chance, bounds=bounds, base_pass=lacked.chance)


class _Mean(NamedTuple):
    """Predictions added up, with how the sum moves with the weights."""

    chance: float
    moves: Floats

    def and_(self, n: int, predicted: tuple[float, Floats]) -> _Mean:
        return _Mean(self.chance + n * predicted[0], self.moves + n * predicted[1])

    def over(self, n: int) -> _Mean:
        return _Mean(self.chance / n, self.moves / n)


def _gap_bounds(field: Field, one: _Mean, other: _Mean, z: float) -> Bounds:
    """Bounds on the difference of two means, from those of each and how they move together (MOVER): near 0 and 1, where
    a symmetric interval would promise too much, they are as lopsided as what they are made of.
    """
    mine, theirs = field.chance_bounds(one.chance, one.moves, z), field.chance_bounds(other.chance, other.moves, z)
    together = field.correlation(one.moves, other.moves)
    gap = one.chance - other.chance
    below = _apart(one.chance - mine.lower, theirs.upper - other.chance, together)
    above = _apart(mine.upper - one.chance, other.chance - theirs.lower, together)
    return Bounds(max(-1.0, gap - below), min(1.0, gap + above))


def _apart(one: float, other: float, together: float) -> float:
    return sqrt(max(0.0, one * one + other * other - 2 * together * one * other))


def fit_fields(tally: FlowTally) -> FlowField:
    """Fit both fields; a tally of nothing has none."""
    policy = tally.policy
    if not tally.n:
        raise InvalidInput("there are no logs to learn from", path="$.window", hint="take a wider window")
    risk = fit_field(_risk_data(tally), policy.ridges)
    passing = fit_field(_pass_data(tally), policy.ridges) if tally.tasks_n else None
    return FlowField(tally, risk, passing)


def _z(policy: FlowMapPolicy) -> float:
    return normal_quantile((1 + policy.confidence) / 2)


# -- risk -------------------------------------------------------------------------------------------------


def _logs(tally: FlowTally, stage: str) -> dict[str, int]:
    """How many logs of a stage each bucket has."""
    return {
        key.bucket: sum(counts[::2])
        for key, counts in tally.codes.items()
        if key.stage == stage and key.code == ALL_CODES
    }


def _risk_data(tally: FlowTally) -> Data:
    """Every code in every bucket and stage, those that it was never met in too: that says something as well."""
    whole = {key[:2]: counts for key, counts in tally.codes.items() if key.code == ALL_CODES}
    names = sorted({key.code for key in tally.codes})
    rows: list[Features] = []
    n: list[list[int]] = []
    y: list[list[int]] = []
    nothing = [0] * (2 * FOLDS)
    for (bucket, stage), counts in sorted(whole.items()):
        for code in names:
            met = tally.codes.get((bucket, stage, code), nothing)  # type: ignore[call-overload]
            rows.append(_risk_features(bucket, stage, code))
            n.append(counts[::2])
            y.append(met[1::2])
    return data_of(rows, n, y, tally.policy.features_max)


def _risk_features(bucket: str, stage: str, code: str) -> Features:
    axes = _axes(bucket)
    return (
        f"code={code}",
        f"stage={stage}",
        *axes,
        f"code={code}&stage={stage}",
        *(f"code={code}&{axis}" for axis in axes),
        f"stage={stage}&bucket={bucket}",
    )


def _axes(bucket: str) -> tuple[str, ...]:
    """A bucket by its parts, where it has them, and by its name."""
    try:
        impact, domain, clarity = parse_bucket_key(bucket)
    except InvalidInput:
        return (f"bucket={bucket}",)
    return f"impact={impact}", f"domain={domain}", f"clarity={clarity}", f"bucket={bucket}"


# -- passing ----------------------------------------------------------------------------------------------


def _pass_data(tally: FlowTally) -> Data:
    keys = sorted(tally.arms)
    arms = [tally.arm(key) for key in keys]
    n: list[tuple[int, ...]] = [arm.n for arm in arms]
    y: list[tuple[int, ...]] = [arm.passes for arm in arms]
    return data_of([_pass_features(key) for key in keys], n, y, tally.policy.features_max)


def _pass_features(key: ArmKey) -> Features:
    """Doing nothing has no features: what is thin is drawn towards no effect."""
    axes = _axes(key.bucket)
    done = [
        named(Change(field, getattr(key, field))) for field, bases in BASES.items() if getattr(key, field) not in bases
    ]
    by = [axis for axis in axes if axis.startswith(("impact=", "clarity=", "bucket="))]
    return (*axes, *done, *(f"{each}&{axis}" for each in done for axis in by))


# == told =============================================================================================================


def calibration_block(field: FlowField, folds: int) -> dict[str, Any]:
    """The contract's note, and the same as numbers."""
    fields = {"risk": field.risk} | ({} if field.passing is None else {"pass": field.passing})
    notes = [f"platt on {folds} held-out folds", *(_note(name, each) for name, each in fields.items())]
    return {"calibration": "; ".join(notes), "held_out": {name: _figures(each) for name, each in fields.items()}}


def _note(name: str, field: Field) -> str:
    held = field.calibration
    return (
        f"{name}: ECE {held.ece:.4f} (rates {held.ece_raw:.4f}), "
        f"Brier {held.brier:.4f} (rates {held.brier_raw:.4f}), "
        f"log loss {held.log_loss:.4f} (rates {held.log_loss_raw:.4f})"
    )


def _figures(field: Field) -> dict[str, Any]:
    held = {name: rounded(value) for name, value in field.calibration._asdict().items()}
    platt = {"shift": rounded(field.shift), "slope": rounded(field.slope)}
    return {**held, **platt, "ridge": field.ridge, "features_n": len(field.names)}
