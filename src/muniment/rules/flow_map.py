"""The flow map (RC-23): where runs fail and how much interventions help, estimated from the logs of a bank.

Risks are per log: how often a log of a stage failed, was partial or stayed unknown, by reason code. Gains are per task.
The first rung of a task is compared with other tasks of its bucket that started plainly (Mantel–Haenszel, within
strata). Attempts made after a failure are compared within the task: without them its result would not have changed.

`aggregate_v1` reports counted rates. `logit_field_v1` fits one ridge logistic regression over all cells, so that a thin
cell borrows from similar ones; both count gains the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from muniment.contracts.rules import FlowMapSnapshot
from muniment.core.canonical import digest_of
from muniment.core.instants import check_window
from muniment.core.policy import FlowEstimatorKind
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.stats import Bounds, Tally, difference_bounds, normal_quantile, wilson_bounds
from muniment.errors import InvalidInput, NotFound
from muniment.learning.event_logs import LogWindow, stream_logs
from muniment.learning.recalling import bucket_given
from muniment.memory.patches import instant_of
from muniment.rules.routing import row_of
from muniment.verify.constraints import DEFAULT_REGISTRY
from muniment.verify.results import parse_bucket_key

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.store.context import Context

ALL_BUCKETS = "*"
"""The `bucket_key` of a map over all buckets."""
ALL_CODES = ""
OTHER = "(other)"
"""Replaces every name beyond the limits on distinct names."""
NO_BUCKET, NO_CODE, NO_TIER = "(no bucket)", "(no code)", "(no tier)"
_MODES = ("main", "sot", "matts", "kroll", "synth", "tree")
_NAMES_MAX = {"bucket": 128, "stage": 12, "code": 96, "mode": 8, "tier": 8}
"""Limits on distinct names, which bound the memory of a map for any number of logs."""
_THIN_N = 6
_HOTSPOTS_MAX = 100
_COST_LEAST = 1.0
"""Lower limit of the cost that a gain is divided by, in the unit of the logs."""
_PROBE_MAX = 4
"""Attempts in the first band; more are a full search."""
_DIGITS = 6
_RIDGE = 3.0
_FEATURES_MAX = 256
_STEPS_MAX = 50
_Z = normal_quantile(0.975)

Floats = NDArray[np.float64]


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
    """Compute the map of the runs that a bank logged from `since` until before `until`; logs are read one by one."""
    start, end = instant_of(since, "$.since"), instant_of(until, "$.until")
    check_window(start, end)
    bucket, kind = bucket_given(bucket_key) or ALL_BUCKETS, estimator_of(estimator, ctx.policy.flow.estimator)
    tally = FlowTally()
    with ctx.engine.snapshot(tenant_id) as reader:
        tally.add_all(flow_rows(reader, owner, start, end))
    return flow_snapshot(tally, kind, now=ctx.now(), bucket_key=bucket, start_at=start, end_at=end)


def estimator_of(given: Any, default: FlowEstimatorKind) -> FlowEstimatorKind:
    kinds = get_args(FlowEstimatorKind)
    if given is None:
        return default
    if given not in kinds:
        raise InvalidInput(f"{given!r:.40} is no estimator", path="$.estimator", hint=f"one of {', '.join(kinds)}")
    found: FlowEstimatorKind = given
    return found


# == logs =============================================================================================


class Rung(NamedTuple):
    """Up to `k` attempts of one mode and tier, made until one passes."""

    mode: str
    tier: str | None
    k: int


class Tried(NamedTuple):
    """One attempt at a task; `passed` is None if unknown."""

    mode: str
    tier: str | None
    passed: bool | None
    cost: float


class FlowTask(NamedTuple):
    """The plan of a task before the first attempt, and the attempts made."""

    rungs: tuple[Rung, ...]
    attempts: tuple[Tried, ...]


class FlowRow(NamedTuple):
    """One log: its path, result, settings and cost."""

    trace_id: str
    stage: str
    verdict: str
    outcome: str
    passed: bool | None
    """None if a verifier could not decide: counted as a risk, but neither as pass nor as fail."""
    reason_codes: tuple[str, ...] = ()
    cost: float = 0.0
    mode: str = "main"
    tier: str | None = None
    bucket_key: str | None = None
    at: str = ""
    hints: int = 0
    rules: int = 0
    is_first: bool = True
    """It is the first attempt at its task. Later ones follow a failure."""
    task: FlowTask | None = None
    """The task, for a first attempt. None if the log lacks the plan."""


def flow_rows(reader: Reader, owner: str, start: str | None = None, end: str | None = None) -> Iterator[FlowRow]:
    """The judged runs of a bank, in log order."""
    for at, body in stream_logs(reader, LogWindow(owner, start, end), newest_first=False):
        row, log_ = row_of(body), body["event_log"]
        if row.verdict is None:
            continue
        task = _part(_part(log_, "run"), "task")
        yield FlowRow(
            trace_id=log_["trace_id"],
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
            hints=len(_part(log_, "memory_recall").get("used_ids") or ()),
            rules=len(log_.get("selected_rules") or ()),
            is_first=not (task.get("number") or row.after),
            task=_task_of(task),
        )


def _task_of(block: Mapping[str, Any]) -> FlowTask | None:
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


def is_risky(verdict: str, outcome: str) -> bool:
    """Apply the contract's definition of risk: not passed, or not known to be right."""
    return verdict in ("FAIL", "PARTIAL") or outcome in ("FAIL", "UNKNOWN")


def stage_of(mode: str) -> str:
    """`main→verify`, `synth→verify`."""
    return f"{mode}→verify"


def k_band(k: int) -> str:
    """Meaningful bands of attempts: one, a probe, a full search."""
    return "1" if k <= 1 else "2-4" if k <= _PROBE_MAX else "5+"


# == counting =========================================================================================


class CodeKey(NamedTuple):
    """A cell of the map; with `ALL_CODES`, all logs of the stage."""

    bucket: str
    stage: str
    code: str


class ArmKey(NamedTuple):
    """The start of a task: tasks with equal keys do not differ in anything the map knows."""

    bucket: str
    mode: str
    tier: str
    hints: bool
    rules: bool
    k: str


class Change(NamedTuple):
    """An intervention: one field of an arm's key, and its level."""

    field: str
    level: str | bool

    @property
    def name(self) -> str:
        """`hints`, `mode:synth`, `tier:full`, `K:2-4`."""
        field = "K" if self.field == "k" else self.field
        return field if self.level is True else f"{field}:{self.level}"


class Arm(NamedTuple):
    """Counts of judged tasks and passes, and the sums of their costs and squared costs."""

    n: int = 0
    passes: int = 0
    cost: float = 0.0
    squares: float = 0.0

    def plus(self, other: Arm) -> Arm:
        cost, squares = self.cost + other.cost, self.squares + other.squares
        return Arm(self.n + other.n, self.passes + other.passes, cost, squares)

    @property
    def outcomes(self) -> Tally:
        return Tally(self.passes, self.n)

    @property
    def mean_cost(self) -> float:
        return self.cost / self.n

    @property
    def cost_variance(self) -> float:
        """The variance of the mean cost."""
        return max(0.0, self.squares - self.cost**2 / self.n) / (self.n * max(1, self.n - 1))


class Climb(NamedTuple):
    """Tasks that had a further option open, and its effect on them."""

    n: int = 0
    passed: int = 0
    """Passed before reaching it."""
    recovered: int = 0
    reached: int = 0
    """Tasks in which at least one attempt of it was made."""
    cost: float = 0.0
    squares: float = 0.0

    def plus(self, other: Climb) -> Climb:
        return Climb(
            self.n + other.n,
            self.passed + other.passed,
            self.recovered + other.recovered,
            self.reached + other.reached,
            self.cost + other.cost,
            self.squares + other.squares,
        )


class FlowTally:
    """Logs counted in cells one by one, in memory independent of their number."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {
            "bucket": set(),
            "stage": set(map(stage_of, _MODES)),
            "code": {NO_CODE, *DEFAULT_REGISTRY.reasons},
            "mode": set(_MODES),
            "tier": {NO_TIER, "hot", "probe", "full"},
        }
        self.codes: dict[CodeKey, tuple[int, int]] = {}
        """n, and the number at risk."""
        self.arms: dict[ArmKey, Arm] = {}
        self.climbs: dict[tuple[str, Change], Climb] = {}
        self.n = self.judged_n = self.tasks_n = 0
        self.folded: set[str] = set()
        """The dimensions in which some names were folded into `OTHER`."""
        self.first_at: str | None = None
        self.last_at: str | None = None

    def add_all(self, rows: Iterable[FlowRow]) -> FlowTally:
        for row in rows:
            self.add(row)
        return self

    def add(self, row: FlowRow) -> None:
        bucket, stage = self._named("bucket", row.bucket_key or NO_BUCKET), self._named("stage", row.stage)
        risky = is_risky(row.verdict, row.outcome)
        codes = set(row.reason_codes) - {ALL_CODES} or ({NO_CODE} if risky else set())
        for code in (ALL_CODES, *sorted({self._named("code", code) for code in sorted(codes)})):
            n, at_risk = self.codes.get(CodeKey(bucket, stage, code), (0, 0))
            self.codes[CodeKey(bucket, stage, code)] = n + 1, at_risk + risky
        self.n += 1
        self.judged_n += row.passed is not None
        self.first_at = row.at if self.first_at is None else min(self.first_at, row.at)
        self.last_at = row.at if self.last_at is None else max(self.last_at, row.at)
        if row.is_first:
            self._add_task(row, bucket)

    def _add_task(self, row: FlowRow, bucket: str) -> None:
        task = row.task or FlowTask((), (Tried(row.mode, row.tier, row.passed, row.cost),))
        for change, climb in climbs_of(task):
            level = change.level if change.field == "k" else self._named(change.field, str(change.level))
            named = Change(change.field, level)
            self.climbs[bucket, named] = self.climbs.get((bucket, named), Climb()).plus(climb)
        first = begin_of(task)
        if first.passed is not None:
            mode, tier = self._named("mode", first.mode), self._named("tier", first.tier or NO_TIER)
            key = ArmKey(bucket, mode, tier, row.hints > 0, row.rules > 0, k_band(first.k))
            one = Arm(1, int(first.passed), first.cost, first.cost**2)
            self.arms[key] = self.arms.get(key, Arm()).plus(one)
            self.tasks_n += 1

    def _named(self, dimension: str, name: str) -> str:
        names = self._names[dimension]
        if name in names:
            return name
        if len(names) >= _NAMES_MAX[dimension]:
            self.folded.add(dimension)
            return OTHER
        names.add(name)
        return name

    def arm_keys(self, bucket_key: str) -> list[ArmKey]:
        return sorted(key for key in self.arms if bucket_key in (ALL_BUCKETS, key.bucket))


# -- rungs of a task ----------------------------------------------------------------------------------


class Begin(NamedTuple):
    """The first rung of a task: one attempt, or several of one kind."""

    mode: str
    tier: str | None
    k: int
    """The number of attempts allowed."""
    passed: bool | None
    cost: float


def begin_of(task: FlowTask) -> Begin:
    """The first rung of a task, and whether it passed by itself."""
    first = task.attempts[0]
    made: list[Tried] = []
    for each in task.attempts:
        if (each.mode, each.tier) != (first.mode, first.tier):
            break
        made.append(each)
    rung = next((each for each in task.rungs if (each.mode, each.tier) == (first.mode, first.tier)), None)
    judged = [each.passed for each in made if each.passed is not None]
    k = len(made) if rung is None else max(1, rung.k)
    return Begin(first.mode, first.tier, k, any(judged) if judged else None, sum(each.cost for each in made))


def climbs_of(task: FlowTask) -> Iterator[tuple[Change, Climb]]:
    """The effect of each rung and number of attempts open to a task, even if an earlier one passed."""
    if all(each.passed is None for each in task.attempts):
        return
    tries = sum(rung.k for rung in task.rungs if rung.mode != "synth")
    alone = [each for each in task.attempts if each.mode != "synth"]
    if tries > 1:
        yield Change("k", "2-4"), _climb(alone[:1], alone[1:_PROBE_MAX])
    if tries > _PROBE_MAX:
        yield Change("k", "5+"), _climb(alone[:1], alone[1:])
    for field in ("mode", "tier"):
        begins = getattr(task.rungs[0], field) if task.rungs else None
        for level in dict.fromkeys(getattr(rung, field) for rung in task.rungs):
            if level is not None and level != begins:
                at = next((at for at, each in enumerate(task.attempts) if getattr(each, field) == level), None)
                before, after = (task.attempts, ()) if at is None else (task.attempts[:at], task.attempts[at:])
                yield Change(field, level), _climb(before, [each for each in after if getattr(each, field) == level])


def _climb(before: Sequence[Tried], made: Sequence[Tried]) -> Climb:
    had = any(each.passed for each in before)
    cost = sum(each.cost for each in made)
    recovered = not had and any(each.passed for each in made)
    return Climb(1, int(had), int(recovered), int(bool(made)), cost, cost**2)


# == the snapshot =====================================================================================


def flow_snapshot(
    tally: FlowTally,
    estimator: FlowEstimatorKind,
    *,
    now: str,
    bucket_key: str = ALL_BUCKETS,
    start_at: str | None = None,
    end_at: str | None = None,
) -> FlowMapSnapshot:
    """Build the map of one bucket or all, over the window that the tally counted."""
    check_window(start_at, end_at)
    if tally.first_at is None:
        raise NotFound("no judged run was logged in this window", path="$.window", hint="take a wider window")
    block: dict[str, Any] = {"kind": estimator, "model_ref": None, "feature_set": None}
    if estimator == "aggregate_v1":
        spots = hotspots(tally, bucket_key)
        block["calibration"] = "none: counted rates with Wilson's bounds"
    else:
        field = fit_risk(tally)
        spots = field.hotspots(tally, bucket_key)
        block |= {
            "model_ref": f"sha256:{field.model_ref}",
            "feature_set": "stage·code·bucket axes with pairs",
            "calibration": f"none: ridge {_RIDGE:g} on {len(field.names)} features",
        }
    gains, alone = interventions(tally, bucket_key)
    return FlowMapSnapshot.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "generated_at": now,
            "window": {"start_at": start_at or tally.first_at, "end_at": end_at or max(now, tally.last_at or now)},
            "bucket_key": bucket_key,
            "estimator": block,
            "risk": {"stage_hotspots": spots[:_HOTSPOTS_MAX]},
            "opportunity": {"interventions": gains},
            "notes": "; ".join(_notes(tally, len(spots), alone)),
        }
    )


def _notes(tally: FlowTally, spots_n: int, alone: Sequence[str]) -> Iterator[str]:
    yield f"{tally.n} logs, {tally.judged_n} judged, {tally.tasks_n} tasks"
    yield "a rate is of the logs of its stage, those of a code are the ones that went wrong with it and may overlap"
    yield (
        "gains are of tasks: what was tried after a failure is compared within the task (within_task), what a task "
        "began with between tasks of a bucket (between_tasks), which is no experiment: harder tasks may get more"
    )
    if tally.folded:
        yield f"too many names of: {', '.join(sorted(tally.folded))}; the later ones stand together as {OTHER}"
    if spots_n > _HOTSPOTS_MAX:
        yield f"{spots_n - _HOTSPOTS_MAX} lesser hotspots are not listed"
    if alone:
        yield f"nothing to compare with: {', '.join(alone)}"


def _rounded(value: float) -> float:
    """Round a published figure: the last bits of a float carry no information."""
    return round(value, _DIGITS) + 0.0


# -- risk ---------------------------------------------------------------------------------------------


class RiskCell(NamedTuple):
    """A stage and a code: of `n` logs of the stage, `risky` failed with the code and `code_n` had it at all."""

    stage: str
    code: str
    n: int
    risky: int
    code_n: int


def risk_cells(tally: FlowTally, bucket_key: str) -> list[RiskCell]:
    """The cells of one bucket, or of all together, stage by stage."""
    logs: defaultdict[str, int] = defaultdict(int)
    counted: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for key, (n, risky) in tally.codes.items():
        if bucket_key in (ALL_BUCKETS, key.bucket):
            counted[key.stage, key.code][0] += n
            counted[key.stage, key.code][1] += risky
            logs[key.stage] += n if key.code == ALL_CODES else 0
    if not logs:
        hint = "leave the bucket out to see all of them"
        raise NotFound(f"no logs of the bucket {bucket_key!r:.80} in this window", path="$.bucket_key", hint=hint)
    return [RiskCell(stage, code, logs[stage], risky, n) for (stage, code), (n, risky) in sorted(counted.items())]


def hotspots(tally: FlowTally, bucket_key: str) -> list[dict[str, Any]]:
    """Every cell with failures, worst first."""
    cells = (cell for cell in risk_cells(tally, bucket_key) if cell.risky)
    return _worst_first(_hotspot(cell, cell.risky / cell.n, wilson_bounds(cell.risky, cell.n)) for cell in cells)


def _hotspot(cell: RiskCell, rate: float, bounds: Bounds) -> dict[str, Any]:
    return {
        "stage": cell.stage,
        "reason_code": None if cell.code == ALL_CODES else cell.code,
        "risk_rate": _rounded(rate),
        "support_n": cell.n,
        "lower": _rounded(bounds.lower),
        "upper": _rounded(bounds.upper),
        "thin": cell.n < _THIN_N,
        "risky_n": cell.risky,
        "code_n": cell.code_n,
    }


def _worst_first(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort cells by lower bound, so that cells surely bad precede those that may be."""
    return sorted(
        found, key=lambda each: (-each["lower"], -each["risk_rate"], each["stage"], each["reason_code"] or "")
    )


# -- opportunity --------------------------------------------------------------------------------------

_BASES: dict[str, tuple[str | bool, ...]] = {
    "mode": ("main",),
    "tier": ("hot", NO_TIER),
    "k": ("1",),
    "hints": (False,),
    "rules": (False,),
}
"""Levels that mean no intervention of the kind. The first represents them."""
_PACKAGE = ("mode", "tier", "k")
"""Fields that usually change together; if they do, their effects are reported together."""


def interventions(tally: FlowTally, bucket_key: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The gain of each intervention, best first, and the names of those without anything to compare with."""
    sums: defaultdict[Change, Climb] = defaultdict(Climb)
    for (bucket, change), climb in sorted(tally.climbs.items(), key=lambda each: (each[0][0], each[0][1].name)):
        if bucket_key in (ALL_BUCKETS, bucket):
            sums[change] = sums[change].plus(climb)
    gains, alone = [_recovered(change, climb) for change, climb in sums.items()], []
    keys = tally.arm_keys(bucket_key)
    for field, bases in _BASES.items():
        levels = set() if field == "k" else {getattr(key, field) for key in keys} - set(bases)
        for change in (Change(field, level) for level in sorted(levels)):
            if change not in sums:
                gain = _between(tally, keys, change)
                gains += [] if gain is None else [gain]
                alone += [change.name] if gain is None else []
    return sorted(gains, key=lambda each: (-each["lower"], -each["gain_pass"], each["intervention"])), alone


def _recovered(change: Change, climb: Climb) -> dict[str, Any]:
    """The tasks recovered by a further rung or further attempts: the same tasks before and after."""
    n, arm = climb.n, Arm(climb.n, 0, climb.cost, climb.squares)
    bounds = wilson_bounds(climb.recovered, n)
    fields = _gain_fields(change, climb.recovered / n, bounds, climb.passed / n, (n, n, 1), "within_task")
    return fields | _cost_fields(fields["gain_pass"], arm.mean_cost, arm.cost_variance) | {"reached_n": climb.reached}


def _between(tally: FlowTally, keys: Sequence[ArmKey], change: Change) -> dict[str, Any] | None:
    """The mean difference within strata between tasks with the intervention and tasks without any of its kind; None if
    no stratum has both. Strata are weighted by Mantel–Haenszel, and their bounds combined (MOVER).
    """
    fields = _PACKAGE if change.field in _PACKAGE else (change.field,)
    sides: defaultdict[ArmKey, list[Arm]] = defaultdict(lambda: [Arm(), Arm()])
    for key in keys:
        has_it = getattr(key, change.field) == change.level
        if has_it or all(getattr(key, field) in _BASES[field] for field in fields):
            plain: dict[str, Any] = {field: _BASES[field][0] for field in fields}
            pair = sides[key._replace(**plain)]
            pair[has_it] = pair[has_it].plus(tally.arms[key])
    both = [(with_, other) for other, with_ in sides.values() if with_.n and other.n]
    if not both:
        return None
    weights = [a.n * b.n / (a.n + b.n) for a, b in both]
    gain = below = above = base = cost = variance = 0.0
    for weight, (with_, other) in zip((each / sum(weights) for each in weights), both, strict=True):
        bounds = difference_bounds(with_.outcomes, other.outcomes)
        gap = with_.passes / with_.n - other.passes / other.n
        gain += weight * gap
        base += weight * other.passes / other.n
        below += (weight * (gap - bounds.lower)) ** 2
        above += (weight * (bounds.upper - gap)) ** 2
        cost += weight * (with_.mean_cost - other.mean_cost)
        variance += weight**2 * (with_.cost_variance + other.cost_variance)
    reach = Bounds(max(-1.0, gain - sqrt(below)), min(1.0, gain + sqrt(above)))
    counts = sum(a.n for a, _ in both), sum(b.n for _, b in both), len(both)
    all_other, all_with = Arm(), Arm()
    for other, with_ in sides.values():
        all_other, all_with = all_other.plus(other), all_with.plus(with_)
    crude = all_with.passes / all_with.n - all_other.passes / all_other.n
    found = _gain_fields(change, gain, reach, base, counts, "between_tasks") | _cost_fields(gain, cost, variance)
    return found | {"crude_gain": _rounded(crude)}


def _gain_fields(
    change: Change, gain: float, bounds: Bounds, base: float, counts: tuple[int, int, int], design: str
) -> dict[str, Any]:
    return {
        "intervention": change.name,
        "gain_pass": _rounded(gain),
        "support_n": counts[0],
        "design": design,
        "lower": _rounded(bounds.lower),
        "upper": _rounded(bounds.upper),
        "base_pass": _rounded(base),
        "base_n": counts[1],
        "strata_n": counts[2],
        "thin": min(counts[:2]) < _THIN_N,
    }


def _cost_fields(gain: float, cost: float, variance: float) -> dict[str, Any]:
    reach = _Z * sqrt(variance)
    return {
        "delta_cost": _rounded(cost),
        "efficiency": _rounded(gain / max(cost, _COST_LEAST)),
        "cost_lower": _rounded(cost - reach),
        "cost_upper": _rounded(cost + reach),
    }


# == the learned estimator ============================================================================


class RiskField(NamedTuple):
    """A ridge logistic regression over the cells of all buckets."""

    names: tuple[str, ...]
    """Features, the intercept first."""
    weights: Floats
    covariance: Floats
    place: Mapping[str, int]
    """Column of each feature."""

    @property
    def model_ref(self) -> str:
        """Digest of everything a prediction depends on."""
        return digest_of(dict(zip(self.names, map(_rounded, self.weights.tolist()), strict=True)))

    def risk_of(self, bucket: str, stage: str, code: str = ALL_CODES) -> float:
        """Estimate how often a log of the bucket and stage fails with the code, seen there or not."""
        return self._predict(bucket, stage, code)[0]

    def hotspots(self, tally: FlowTally, bucket_key: str) -> list[dict[str, Any]]:
        """The cells with failures, worst first, each with its fitted rate."""
        return _worst_first(
            _hotspot(cell, *self._mean(tally, bucket_key, cell)) for cell in risk_cells(tally, bucket_key) if cell.risky
        )

    def _mean(self, tally: FlowTally, bucket_key: str, cell: RiskCell) -> tuple[float, Bounds]:
        """Mean probability over the buckets of a cell; its bounds are on the logit scale, so they stay within
        0 and 1.
        """
        chance, slope = 0.0, np.zeros(len(self.names))
        for key, (n, _) in sorted(tally.codes.items()):
            if key.stage == cell.stage and key.code == ALL_CODES and bucket_key in (ALL_BUCKETS, key.bucket):
                one, moves = self._predict(key.bucket, cell.stage, cell.code)
                chance, slope = chance + one * n / cell.n, slope + moves * (n / cell.n)
        held = min(max(chance, 1e-9), 1 - 1e-9)
        reach = _Z * sqrt(max(0.0, float(slope @ self.covariance @ slope))) / (held * (1 - held))
        middle = log(held / (1 - held))
        return chance, Bounds(_chance(middle - reach), _chance(middle + reach))

    def _predict(self, bucket: str, stage: str, code: str) -> tuple[float, Floats]:
        """The probability, and its gradient in the weights. Unseen features contribute nothing."""
        on = [self.place[name] for name in (self.names[0], *_features(bucket, stage, code)) if name in self.place]
        chance = _chance(float(self.weights[on].sum()))
        slope = np.zeros(len(self.names))
        slope[on] = chance * (1 - chance)
        return chance, slope


def fit_risk(tally: FlowTally) -> RiskField:
    """Fit the field by Newton's method. Every code in every bucket and stage is a row, even if never observed."""
    whole = sorted((key, n) for key, (n, _) in tally.codes.items() if key.code == ALL_CODES)
    if not whole:
        raise InvalidInput("there are no logs to learn from", path="$.window", hint="take a wider window")
    codes = sorted({key.code for key in tally.codes})
    cells = [(key._replace(code=code), n) for key, n in whole for code in codes]
    n = np.array([float(count) for _, count in cells])
    y = np.array([float(tally.codes.get(key, (0, 0))[1]) for key, _ in cells])
    totals: defaultdict[str, float] = defaultdict(float)
    for key, count in cells:
        for name in _features(*key):
            totals[name] += count
    kept = sorted(totals, key=lambda name: (-totals[name], name))[: _FEATURES_MAX - 1]
    names = ("1", *sorted(kept))
    design = _design([_features(*key) for key, _ in cells], names)
    penalty = np.full(len(names), _RIDGE)
    penalty[0] = 1e-6  # the intercept is not penalised
    weights = np.zeros(len(names))
    for _ in range(_STEPS_MAX):
        chance = 1 / (1 + np.exp(-np.clip(_sums(design, weights), -500, 500)))
        slope = _gather(design, y - n * chance, len(names)) - penalty * weights
        step = np.linalg.solve(_curve(design, n * chance * (1 - chance), penalty), slope)
        weights = weights + step / max(1.0, float(np.abs(step).max()))
        if float(np.abs(step).max()) < 1e-8:
            break
    chance = 1 / (1 + np.exp(-_sums(design, weights)))
    covariance = np.linalg.inv(_curve(design, n * chance * (1 - chance), penalty))
    place = {name: at for at, name in enumerate(names)}
    return RiskField(names, weights, np.asarray(covariance, dtype=np.float64), place)


def _features(bucket: str, stage: str, code: str) -> tuple[str, ...]:
    axes = [f"bucket={bucket}"]
    try:
        impact, domain, clarity = parse_bucket_key(bucket)
        axes += [f"impact={impact}", f"domain={domain}", f"clarity={clarity}"]
    except InvalidInput:  # a custom bucket: only its name is known
        pass
    pairs = (f"code={code}&stage={stage}", *(f"code={code}&{axis}" for axis in axes), f"stage={stage}&bucket={bucket}")
    return (f"code={code}", f"stage={stage}", *axes, *pairs)


def _design(rows: Sequence[Sequence[str]], names: Sequence[str]) -> NDArray[np.int64]:
    """The columns that are true in each row, padded with an index beyond the last column."""
    place = {name: at for at, name in enumerate(names)}
    held = [[0, *(place[name] for name in features if name in place)] for features in rows]
    columns = np.full((len(held), max(map(len, held))), len(names), dtype=np.int64)
    for at, each in enumerate(held):
        columns[at, : len(each)] = each
    return columns


def _sums(design: NDArray[np.int64], weights: Floats) -> Floats:
    return np.asarray(np.append(weights, 0.0)[design].sum(axis=1), dtype=np.float64)


def _gather(design: NDArray[np.int64], values: Floats, size: int) -> Floats:
    """For every column, the sum of its rows' values."""
    sums = np.bincount(design.ravel(), np.repeat(values, design.shape[1]), size + 1)
    return np.asarray(sums[:size], dtype=np.float64)


def _curve(design: NDArray[np.int64], spread: Floats, penalty: Floats) -> Floats:
    """The curvature as a dense matrix. A row has few columns, so pairs are counted instead of multiplied."""
    width = len(penalty) + 1
    each, whole = np.repeat(spread, design.shape[1]), np.zeros(width * width)
    for column in range(design.shape[1]):
        whole += np.bincount((design[:, column : column + 1] * width + design).ravel(), each, width * width)
    return np.asarray(whole.reshape(width, width)[:-1, :-1] + np.diag(penalty), dtype=np.float64)


def _chance(logit: float) -> float:
    return 1 / (1 + exp(-logit)) if logit >= 0 else 1 - 1 / (1 + exp(logit))
