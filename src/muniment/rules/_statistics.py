"""Statistics of a rule (RC-16): rates, differences and comparisons, folded from its judged runs in order.

Bounds of a difference are Newcombe's hybrid of two Wilson intervals; over the two phases (on trial, in force) the
differences are averaged with weights n₁n₀/(n₁+n₀) and their reaches added as squares (MOVER), so that a change between
the phases is not taken for an effect. They hold for a number of runs fixed beforehand; decisions are made on
`stats.Comparison`, which may be looked at after every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import hypot
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from muniment.contracts.rules import RuleLifecycle, RuleMetrics, RuleRecord
from muniment.core.instants import format_instant, parse_instant
from muniment.core.policy import RulePolicy
from muniment.core.stats import Comparison, Ema, Tally, difference_bounds, p_lb95
from muniment.errors import Conflict, InvalidInput
from muniment.learning.records import Arm
from muniment.rules._records import RuleUse

NO_RUNS = Tally()
Phase = Literal["trial", "hold"]
PHASES: Mapping[Phase, tuple[Arm, Arm]] = MappingProxyType(
    {"trial": ("canary", "baseline"), "hold": ("active", "holdout")}
)
"""For each phase, the arm with the rule and the one without."""
WITH = frozenset(arms[0] for arms in PHASES.values())
_PHASE_OF: dict[Arm, Phase] = {arm: phase for phase, arms in PHASES.items() for arm in arms}
_EMA_RATE = 0.1
_CLUSTERS_MAX = 5
_METRICS = frozenset({"utility_q_ema", "pass_p_hat", "pass_p_lb95", "pass_p_K", "pass_p_bucket", "pass_p_bucket_delta"})


def stats_of(uses: Iterable[RuleUse], rule_id: str, policy: RulePolicy, *, version: str | None = None) -> RuleStats:
    """Count from scratch; the runs may come in any order."""
    return RuleStats.empty(rule_id, version, policy).add_all(sorted(uses, key=use_order))


def use_order(use: RuleUse) -> tuple[str, str]:
    """The order in which runs are counted: by instant, then id."""
    return format_instant(parse_instant(use.at, path="$.at")), use.trace_id


def window(uses: Iterable[RuleUse], start: str | datetime | None, end: str | datetime | None) -> list[RuleUse]:
    """The runs with start ≤ at < end; either end may be open. Statistics of an empty window are unknown."""
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


# == rates and differences ============================================================================


@dataclass(frozen=True, slots=True)
class PassRate:
    """A pass rate; unknown and without a number if K is thin."""

    p_hat: float | None
    p_lb95: float | None
    K: int

    @property
    def unknown(self) -> bool:
        return self.p_hat is None

    def to_wire(self) -> dict[str, Any]:
        return {"p_hat": self.p_hat, "p_lb95": self.p_lb95, "K": self.K, "unknown": self.unknown}


@dataclass(frozen=True, slots=True)
class Delta(PassRate):
    """The rate with a rule minus the rate without it. K is the smaller arm's."""


def rate_of(tally: Tally, thin_n: int) -> PassRate:
    if tally.n < thin_n:
        return PassRate(None, None, tally.n)
    return PassRate(tally.p_hat, p_lb95(tally), tally.n)


def delta_of(phases: Sequence[tuple[Tally, Tally]], thin_n: int) -> Delta:
    """Combine the differences of pairs of arms, (with, without), one per phase; a phase that lacks an arm does not
    count.
    """
    compared = [(mine, other) for mine, other in phases if mine.n and other.n]
    smaller = min(sum(mine.n for mine, _ in compared), sum(other.n for _, other in compared))
    if smaller < thin_n:
        return Delta(None, None, smaller)
    weights = [mine.n * other.n / (mine.n + other.n) for mine, other in compared]
    total = sum(weights)
    gaps = [(mine.p_hat or 0.0) - (other.p_hat or 0.0) for mine, other in compared]
    reach = [gap - difference_bounds(*arms).lower for gap, arms in zip(gaps, compared, strict=True)]
    gap = sum(weight * each for weight, each in zip(weights, gaps, strict=True)) / total
    away = hypot(*(weight / total * each for weight, each in zip(weights, reach, strict=True)))
    return Delta(gap, max(-1.0, gap - away), smaller)


# == counting =========================================================================================


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """Counts of the runs of an arm."""

    runs: Tally = NO_RUNS
    confirmed: int = 0
    violated: int = 0
    cost: float = 0

    def add(self, use: RuleUse) -> ArmCounts:
        return ArmCounts(
            self.runs.add(use.passed),
            self.confirmed + use.confirmed,
            self.violated + use.violated,
            self.cost + use.cost,
        )

    def merge(self, other: ArmCounts) -> ArmCounts:
        return ArmCounts(
            self.runs.merge(other.runs),
            self.confirmed + other.confirmed,
            self.violated + other.violated,
            self.cost + other.cost,
        )

    def mean(self, name: Literal["confirmed", "violated", "cost"]) -> float | None:
        """Mean per run; None if there were no runs."""
        total: float = getattr(self, name)
        return total / self.runs.n if self.runs.n else None


class Cluster(NamedTuple):
    """A recurring failure: its counts in runs with and without the rule."""

    cluster_id: str
    with_n: int
    without_n: int


_NONE = ArmCounts()


@dataclass(frozen=True, slots=True)
class RuleStats:
    """The counts of a rule. Immutable: `add_all` returns the next value, equal to a count from scratch."""

    rule_id: str
    version: str | None
    """The version whose runs are counted; None: all versions."""
    thin_n: int
    ema: Ema
    trial: Comparison
    hold: Comparison
    last: tuple[str, str] | None = None
    """Instant and id of the last counted run; further runs must come later."""
    last_used_at: str | None = None
    held_since: str | None = None
    """Instant of the first run in force or held out."""
    arms: Mapping[Arm, ArmCounts] = field(default_factory=dict)
    buckets: Mapping[str, Mapping[Arm, Tally]] = field(default_factory=dict)
    failures: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Cluster → failing runs (with the rule, without it)."""
    judges: Mapping[str, int] = field(default_factory=dict)
    """Passes by kind of judge; `own` is the caller's verifier."""

    @classmethod
    def empty(cls, rule_id: str, version: str | None, policy: RulePolicy) -> RuleStats:
        fair = Comparison(margin=policy.canary.margin, alpha=policy.canary.alpha)
        return cls(rule_id, version, policy.stats.thin_n, Ema(_EMA_RATE), fair, fair)

    def add_all(self, uses: Iterable[RuleUse]) -> RuleStats:
        """Add further runs in order. Raises `Conflict` for a run out of order: count from scratch then."""
        last, last_used, since, ema = self.last, self.last_used_at, self.held_since, self.ema
        phases: dict[Phase, Comparison] = {"trial": self.trial, "hold": self.hold}
        arms, failures, judges = dict(self.arms), dict(self.failures), dict(self.judges)
        buckets = {key: dict(tallies) for key, tallies in self.buckets.items()}
        for use in uses:
            last = self._checked(use, last)
            has_it, phase = use.arm in WITH, _PHASE_OF[use.arm]
            arms[use.arm] = arms.get(use.arm, _NONE).add(use)
            if use.bucket_key is not None:
                tallies = buckets.setdefault(use.bucket_key, {})
                tallies[use.arm] = tallies.get(use.arm, NO_RUNS).add(use.passed)
            if use.cluster_id is not None and not use.passed:
                with_n, without_n = failures.get(use.cluster_id, (0, 0))
                failures[use.cluster_id] = (with_n + has_it, without_n + (not has_it))
            phases[phase] = phases[phase].add("candidate" if has_it else "baseline", use.passed)
            since = use.at if phase == "hold" and since is None else since
            if use.passed:
                judges[use.judge or "own"] = judges.get(use.judge or "own", 0) + 1
            if has_it:
                ema, last_used = ema.add(_utility(use, arms)), use.at
        return replace(
            self,
            last=last,
            last_used_at=last_used,
            held_since=since,
            ema=ema,
            trial=phases["trial"],
            hold=phases["hold"],
            arms=arms,
            buckets=buckets,
            failures=failures,
            judges=judges,
        )

    def _checked(self, use: RuleUse, last: tuple[str, str] | None) -> tuple[str, str]:
        if use.rule_id != self.rule_id or self.version not in (None, use.version):
            raise InvalidInput(
                f"a run of {use.rule_id} {use.version} is not one of {self.rule_id} {self.version or ''}",
                path="$.rule_id",
            )
        order = use_order(use)
        if last is not None and order <= last:
            raise Conflict(
                f"the run {use.trace_id} at {use.at} comes after one of {last[0]} was counted",
                hint="count again from the beginning, with it in its place",
            )
        return order

    # -- reading --------------------------------------------------------------------------------------

    @property
    def with_counts(self) -> ArmCounts:
        """The counts of the runs that had the rule."""
        return _merged(self.arms, "canary", "active")

    @property
    def without_counts(self) -> ArmCounts:
        """The counts of the runs that left the rule out."""
        return _merged(self.arms, "baseline", "holdout")

    def rate(self, bucket_key: str | None = None) -> PassRate:
        """Pass rate of runs with the rule, overall or in a bucket."""
        tallies, total = self._tallies(bucket_key), NO_RUNS
        for arm in WITH:
            total = total.merge(tallies.get(arm, NO_RUNS))
        return rate_of(total, self.thin_n)

    def delta(self, bucket_key: str | None = None) -> Delta:
        """The rule's effect, combined over the phases by weight of evidence."""
        tallies = self._tallies(bucket_key)
        pairs = [(tallies.get(mine, NO_RUNS), tallies.get(other, NO_RUNS)) for mine, other in PHASES.values()]
        return delta_of(pairs, self.thin_n)

    @property
    def utility(self) -> float | None:
        """Moving average of passes minus their share of cost; None if no run had the rule."""
        return self.ema.value

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """The failures that recurred most often."""
        found = [Cluster(name, *counts) for name, counts in self.failures.items()]
        found.sort(key=lambda one: (-one.with_n - one.without_n, one.cluster_id))
        return tuple(found[:_CLUSTERS_MAX])

    def to_wire(self) -> dict[str, Any]:
        """The figures as readable plain data."""
        both = {"with": self.with_counts, "without": self.without_counts}
        return {
            "rule_id": self.rule_id,
            **({"version": self.version} if self.version is not None else {}),
            "pass": self.rate().to_wire(),
            "delta": self.delta().to_wire(),
            "utility": self.utility,
            "arms": {arm: counts.runs.to_wire() for arm, counts in sorted(self.arms.items())},
            **{
                name: {
                    "runs": counts.runs.to_wire(),
                    "confirmed": counts.confirmed,
                    "violation_rate": counts.mean("violated"),
                    "cost": counts.mean("cost"),
                }
                for name, counts in both.items()
            },
            "buckets": {
                key: {"pass": self.rate(key).to_wire(), "delta": self.delta(key).to_wire()}
                for key in sorted(self.buckets)
            },
            "clusters": [one._asdict() for one in self.clusters],
            "comparisons": {
                name: {
                    "decision": one.decision,
                    "effect": one.effect,
                    "rounds": one.rounds,
                    "candidate": one.candidate.to_wire(),
                    "baseline": one.baseline.to_wire(),
                }
                for name, one in (("trial", self.trial), ("hold", self.hold))
            },
            "last_used_at": self.last_used_at,
        }

    def _tallies(self, bucket_key: str | None) -> Mapping[Arm, Tally]:
        if bucket_key is None:
            return {arm: counts.runs for arm, counts in self.arms.items()}
        return self.buckets.get(bucket_key, {})


def _merged(arms: Mapping[Arm, ArmCounts], one: Arm, other: Arm) -> ArmCounts:
    return arms.get(one, _NONE).merge(arms.get(other, _NONE))


def _utility(use: RuleUse, arms: Mapping[Arm, ArmCounts]) -> float:
    """Return the pass minus the run's cost divided by the sum of its cost and the usual cost: one half at the usual
    cost.

    Usual is the mean of the runs without the rule so far or, where there were none, of those with it.
    """
    usual = _merged(arms, "baseline", "holdout").mean("cost")
    if usual is None:
        usual = _merged(arms, "canary", "active").mean("cost") or 0.0
    cost, usual = max(0.0, use.cost), max(0.0, usual)
    return use.passed - (cost / (cost + usual) if cost else 0.0)


# == publishing =======================================================================================


def published(rule: RuleRecord, stats: RuleStats) -> RuleRecord:
    """Return the rule with its counted metrics, which selection reads until the next publication.

    Thin figures are null, and thin buckets are omitted. Figures of forgotten runs are removed.
    """
    if stats.rule_id != rule.rule_id:
        raise InvalidInput(f"counts of {stats.rule_id!r:.60} are not those of {rule.rule_id!r:.60}", path="$.rule_id")
    metrics = RuleMetrics.from_wire(_without(rule.metrics.to_wire(), _METRICS) | _metrics(stats))
    update: dict[str, Any] = {"metrics": metrics}
    lifecycle = {} if rule.lifecycle is None else rule.lifecycle.to_wire()
    used = {} if stats.last_used_at is None else {"last_used_at": stats.last_used_at}
    if (changed := _without(lifecycle, {"last_used_at"}) | used) != lifecycle:
        update["lifecycle"] = RuleLifecycle.from_wire(changed)
    return rule.model_copy(update=update)


def _metrics(stats: RuleStats) -> dict[str, Any]:
    rate = stats.rate()
    made: dict[str, Any] = {"pass_p_hat": rate.p_hat, "pass_p_lb95": rate.p_lb95, "pass_p_K": rate.K}
    if stats.utility is not None and not rate.unknown:
        made["utility_q_ema"] = stats.utility
    rates = {key: one for key in sorted(stats.buckets) if not (one := stats.rate(key)).unknown}
    deltas = {key: one for key in sorted(stats.buckets) if not (one := stats.delta(key)).unknown}
    if rates:
        made["pass_p_bucket"] = {
            key: {"p_hat": one.p_hat, "p_lb95": one.p_lb95, "K": one.K} for key, one in rates.items()
        }
    if deltas:
        made["pass_p_bucket_delta"] = {
            key: {"delta_p_hat": one.p_hat, "delta_p_lb95": one.p_lb95, "delta_K": one.K} for key, one in deltas.items()
        }
    return made


def _without(wire: dict[str, Any], names: frozenset[str] | set[str]) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if key not in names}
