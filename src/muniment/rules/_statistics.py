"""Statistics of a rule (RC-16): rates, differences and comparisons folded from its judged runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil, hypot, log, log1p
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from muniment.contracts.rules import RuleLifecycle, RuleMetrics, RuleRecord
from muniment.core.instants import format_instant, parse_instant
from muniment.core.policy import RulePolicy
from muniment.core.stats import STAKES, Capitals, Comparison, Ema, Tally, difference_bounds, p_lb95
from muniment.errors import Conflict, InvalidInput
from muniment.learning.rule_state import Arm
from muniment.rules._records import RuleUse

# == differences ======================================================================================================


@dataclass(frozen=True, slots=True)
class Rate:
    """A pass rate; unknown, and without a number, where K is thin."""

    p_hat: float | None
    p_lb95: float | None
    K: int

    @property
    def unknown(self) -> bool:
        return self.p_hat is None

    def to_wire(self) -> dict[str, Any]:
        return {"p_hat": self.p_hat, "p_lb95": self.p_lb95, "K": self.K, "unknown": self.unknown}


@dataclass(frozen=True, slots=True)
class Delta(Rate):
    """The rate with a rule less the rate without it. K is that of the smaller arm: a difference is known no better than
    its thinner side.
    """


def rate_of(tally: Tally, thin_n: int) -> Rate:
    if tally.n < thin_n:
        return Rate(None, None, tally.n)
    return Rate(tally.p_hat, p_lb95(tally), tally.n)


def delta_of(phases: Sequence[tuple[Tally, Tally]], thin_n: int) -> Delta:
    """The difference over pairs of arms, (with, without), each counted in one phase; a phase that lacks an arm tells
    nothing.
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


# -- how long it would take ---------------------------------------------------------------------------


class Needed(NamedTuple):
    """How many further runs a claim would take, if they go on as those before. None: it will not come so."""

    claim: Literal["better", "not_harmful", "harmful"]
    runs: int | None
    reachable: bool
    """Within what the trial may still have."""
    says: str


def needed_runs(
    comparison: Comparison, claim: Literal["better", "not_harmful", "harmful"], *, share: float, runs_max: int
) -> Needed:
    """What a claim would take of a comparison in which `share` of the runs have the rule.

    A guess from the rates so far, not a bound: what each stake is expected to win in a round, taken to second order,
    against what it lacks; the best stake decides. A round takes 1/share + 1/(1 - share) - 1 runs.
    """
    if not 0 < share < 1:
        raise InvalidInput(f"a share of {share!r}", hint="both arms need runs: strictly between 0 and 1")
    spent = comparison.candidate.n + comparison.baseline.n
    left = max(0, runs_max - spent)
    if _has_shown(comparison, claim):
        return Needed(claim, 0, True, f"{claim} is shown, after {spent} runs")
    mine, other, effect = comparison.candidate.p_hat, comparison.baseline.p_hat, comparison.effect
    if mine is None or other is None or effect is None:
        return Needed(
            claim, None, False, f"not enough runs: {comparison.candidate.n} with and {comparison.baseline.n} without"
        )
    capitals, gain = _game(comparison, claim, effect)
    if gain <= 0:
        return Needed(claim, None, False, f"an effect of {effect:+.3f}, as seen so far, will never show {claim}")
    spread = mine * (1 - mine) * _inverse_mean(share) + other * (1 - other) * _inverse_mean(1 - share)
    rounds = _rounds(capitals, gain, spread, log(len(STAKES) / comparison.alpha))
    if rounds is None:
        return Needed(claim, None, False, f"an effect of {effect:+.3f} is lost in the noise: {claim} will not show")
    runs = ceil(rounds * (1 / share + 1 / (1 - share) - 1))
    fits = runs <= left
    says = f"{claim} would take about {runs} runs more" + (
        "" if fits else f", and {left} are left: it cannot be reached"
    )
    return Needed(claim, runs, fits, says)


def _has_shown(comparison: Comparison, claim: str) -> bool:
    if claim == "harmful":
        return comparison.decision == "harmful"
    return claim in comparison.claims


def _game(comparison: Comparison, claim: str, effect: float) -> tuple[Capitals, float]:
    """The capitals of the game that makes the claim, and what a round is expected to bring it."""
    if claim == "harmful":
        return comparison.worse, -effect
    if claim == "better":
        return comparison.better, effect
    return comparison.not_harmful, effect + comparison.margin


def _rounds(capitals: Capitals, gain: float, spread: float, edge: float) -> int | None:
    waits = []
    for capital, stake in zip(capitals, STAKES, strict=True):
        grows = log1p(stake * gain) - stake**2 * spread / (2 * (1 + stake * gain) ** 2)
        if grows > 0:
            waits.append(max(1, ceil((edge - capital) / grows)))
    return min(waits, default=None)


def _inverse_mean(share: float) -> float:
    """The mean of 1/k, k being how many runs of an arm of this share a round takes in: it waits for the other arm."""
    return (1 - share) + share * _mean_of_inverse_geometric(1 - share)


def _mean_of_inverse_geometric(success: float) -> float:
    return success / (1 - success) * log(1 / success)


# == statistics =======================================================================================================

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
        """The mean of a run; None where there was no run."""
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


_CLUSTERS_MAX = 5


class Cluster(NamedTuple):
    """A failure that came back: how often in runs with the rule, and without it."""

    cluster_id: str
    with_n: int
    without_n: int


_NONE = ArmCounts()
_Waiting = tuple[str, str]
"""Outcomes of one task that have found no partner, oldest first, with and without: 1 passed, 0 did not."""


@dataclass(frozen=True, slots=True)
class RuleStats:
    """All that is counted of a rule. A value: `add_all` gives the next one, equal to a count from the beginning."""

    rule_id: str
    version: str | None
    """The version whose runs are counted; None: of all."""
    thin_n: int
    ema: Ema
    trial: Comparison
    hold: Comparison
    matched: Comparison
    last: tuple[str, str] | None = None
    """The instant and the run that were counted last; what comes next comes after."""
    last_used_at: str | None = None
    arms: Mapping[Arm, ArmCounts] = field(default_factory=dict)
    buckets: Mapping[str, Mapping[Arm, Tally]] = field(default_factory=dict)
    failures: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Cluster → failing runs with, and without."""
    waiting: Mapping[tuple[Phase, str], _Waiting] = field(default_factory=dict)
    """Phase and task → runs without a partner."""

    @classmethod
    def empty(cls, rule_id: str, version: str | None, policy: RulePolicy) -> RuleStats:
        fair = Comparison(margin=policy.canary.margin, alpha=policy.canary.alpha)
        return cls(rule_id, version, policy.stats.thin_n, Ema(policy.stats.ema_rate), fair, fair, fair)

    # -- counting

    def add(self, use: RuleUse) -> RuleStats:
        return self.add_all((use,))

    def add_all(self, uses: Iterable[RuleUse]) -> RuleStats:
        """Further runs, each after the one before. Raises `Conflict` for one that comes late: count again with it."""
        counting = _Counting(self)
        for use in uses:
            counting.take(use)
        return counting.done()

    # -- reading

    @property
    def with_counts(self) -> ArmCounts:
        """The counts of the runs that had the rule."""
        return _counts(self.arms, "canary", "active")

    @property
    def without_counts(self) -> ArmCounts:
        """The counts of the runs that left the rule out."""
        return _counts(self.arms, "baseline", "holdout")

    def rate(self, bucket_key: str | None = None) -> Rate:
        """How often runs with the rule pass, over all or in a bucket."""
        tallies = self._tallies(bucket_key)
        return rate_of(_sum(tallies, WITH), self.thin_n)

    def delta(self, bucket_key: str | None = None) -> Delta:
        """The difference that the rule makes: phase by phase, and the phases weighed by what they can tell."""
        tallies = self._tallies(bucket_key)
        pairs = [(tallies.get(mine, NO_RUNS), tallies.get(other, NO_RUNS)) for mine, other in PHASES.values()]
        return delta_of(pairs, self.thin_n)

    @property
    def utility(self) -> float | None:
        """The moving average of passes less their share of cost; None where no run had the rule."""
        return self.ema.value

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """The failures that came back most often."""
        found = [Cluster(name, *counts) for name, counts in self.failures.items()]
        found.sort(key=lambda one: (-one.with_n - one.without_n, one.cluster_id))
        return tuple(found[:_CLUSTERS_MAX])

    def to_wire(self) -> dict[str, Any]:
        """The figures as people read them, as plain data."""
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
                    "attempts": counts.mean("attempts"),
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
                for name, one in (("trial", self.trial), ("hold", self.hold), ("matched", self.matched))
            },
            "last_used_at": self.last_used_at,
        }

    def _tallies(self, bucket_key: str | None) -> Mapping[Arm, Tally]:
        if bucket_key is None:
            return {arm: counts.runs for arm, counts in self.arms.items()}
        return self.buckets.get(bucket_key, {})


def stats_of(uses: Iterable[RuleUse], rule_id: str, policy: RulePolicy, *, version: str | None = None) -> RuleStats:
    """Counted from the beginning; the runs may come in any order."""
    return RuleStats.empty(rule_id, version, policy).add_all(sorted(uses, key=use_order))


def _counts(arms: Mapping[Arm, ArmCounts], one: Arm, other: Arm) -> ArmCounts:
    return arms.get(one, _NONE).merge(arms.get(other, _NONE))


def _sum(tallies: Mapping[Arm, Tally], arms: Iterable[Arm]) -> Tally:
    total = NO_RUNS
    for arm in arms:
        total = total.merge(tallies.get(arm, NO_RUNS))
    return total


class _Counting:
    """The fold itself, over copies that may be changed: one run costs the same however many were counted before."""

    def __init__(self, start: RuleStats) -> None:
        self.start = start
        self.last, self.last_used_at = start.last, start.last_used_at
        self.ema, self.matched = start.ema, start.matched
        self.phases: dict[Phase, Comparison] = {"trial": start.trial, "hold": start.hold}
        self.arms = dict(start.arms)
        self.buckets = {key: dict(tallies) for key, tallies in start.buckets.items()}
        self.failures = dict(start.failures)
        self.waiting = dict(start.waiting)

    def take(self, use: RuleUse) -> None:
        self._check(use)
        has_it = use.arm in WITH
        self.arms[use.arm] = self.arms.get(use.arm, _NONE).add(use)
        if use.bucket_key is not None:
            tallies = self.buckets.setdefault(use.bucket_key, {})
            tallies[use.arm] = tallies.get(use.arm, NO_RUNS).add(use.passed)
        if use.cluster_id is not None and not use.passed:
            with_n, without_n = self.failures.get(use.cluster_id, (0, 0))
            self.failures[use.cluster_id] = (with_n + has_it, without_n + (not has_it))
        phase = PHASE_OF[use.arm]
        self.phases[phase] = self.phases[phase].add("candidate" if has_it else "baseline", use.passed)
        if use.x_digest is not None:
            self._match((phase, use.x_digest), has_it, use.passed)
        if has_it:
            self.ema = self.ema.add(self._utility(use))
            self.last_used_at = use.at

    def _check(self, use: RuleUse) -> None:
        if use.rule_id != self.start.rule_id or self.start.version not in (None, use.version):
            raise InvalidInput(
                f"a run of {use.rule_id} {use.version} is not one of {self.start.rule_id} {self.start.version or ''}",
                path="$.rule_id",
            )
        order = use_order(use)
        if self.last is not None and order <= self.last:
            raise Conflict(
                f"the run {use.trace_id} at {use.at} comes after one of {self.last[0]} was counted",
                hint="count again from the beginning, with it in its place",
            )
        self.last = order

    def _match(self, task: tuple[Phase, str], has_it: bool, passed: bool) -> None:
        """The oldest run of the same task on the other side, if one waits, is its partner."""
        mine, other = self.waiting.get(task, ("", ""))[:: 1 if has_it else -1]
        if other:
            partner, other = other[0] == "1", other[1:]
            self.matched = self.matched.add_pair(*((passed, partner) if has_it else (partner, passed)))
        else:
            mine += "1" if passed else "0"
        left = (mine, other) if has_it else (other, mine)
        if any(left):
            self.waiting[task] = left
        else:
            del self.waiting[task]

    def _utility(self, use: RuleUse) -> float:
        """The pass less the share that its cost has in itself and the usual cost: half, where it costs what is usual.

        Usual is the mean of the runs without the rule so far or, where there were none, of those with it.
        """
        usual = _counts(self.arms, "baseline", "holdout").mean("cost")
        if usual is None:
            usual = _counts(self.arms, "canary", "active").mean("cost") or 0.0
        cost, usual = max(0.0, use.cost), max(0.0, usual)
        return use.passed - (cost / (cost + usual) if cost else 0.0)

    def done(self) -> RuleStats:
        return replace(
            self.start,
            last=self.last,
            last_used_at=self.last_used_at,
            ema=self.ema,
            matched=self.matched,
            trial=self.phases["trial"],
            hold=self.phases["hold"],
            arms=self.arms,
            buckets=self.buckets,
            failures=self.failures,
            waiting=self.waiting,
        )


# == publishing =======================================================================================================

_METRICS = frozenset({"utility_q_ema", "pass_p_hat", "pass_p_lb95", "pass_p_K", "pass_p_bucket", "pass_p_bucket_delta"})


def published(rule: RuleRecord, stats: RuleStats) -> RuleRecord:
    """The rule with its metrics as counted. What is thin is null, and a bucket that is thin is not named at all.

    What was published before and is not known any more, since runs were forgotten, goes.
    """
    if stats.rule_id != rule.rule_id:
        raise InvalidInput(f"counts of {stats.rule_id!r:.60} are not those of {rule.rule_id!r:.60}", path="$.rule_id")
    metrics = RuleMetrics.from_wire(_kept(rule.metrics.to_wire(), _METRICS) | _metrics(stats))
    update: dict[str, Any] = {"metrics": metrics}
    lifecycle = {} if rule.lifecycle is None else rule.lifecycle.to_wire()
    used = {} if stats.last_used_at is None else {"last_used_at": stats.last_used_at}
    if (changed := _kept(lifecycle, {"last_used_at"}) | used) != lifecycle:
        update["lifecycle"] = RuleLifecycle.from_wire(changed)
    return rule.model_copy(update=update)


def _metrics(stats: RuleStats) -> dict[str, Any]:
    rate = stats.rate()
    made: dict[str, Any] = {"pass_p_hat": rate.p_hat, "pass_p_lb95": rate.p_lb95, "pass_p_K": rate.K}
    if stats.utility is not None and not rate.unknown:
        made["utility_q_ema"] = stats.utility
    rates = {key: stats.rate(key) for key in sorted(stats.buckets)}
    deltas = {key: stats.delta(key) for key in sorted(stats.buckets)}
    known = {
        key: {"p_hat": one.p_hat, "p_lb95": one.p_lb95, "K": one.K} for key, one in rates.items() if not one.unknown
    }
    compared = {
        key: {"delta_p_hat": one.p_hat, "delta_p_lb95": one.p_lb95, "delta_K": one.K}
        for key, one in deltas.items()
        if not one.unknown
    }
    return made | ({"pass_p_bucket": known} if known else {}) | ({"pass_p_bucket_delta": compared} if compared else {})


def _kept(wire: dict[str, Any], names: frozenset[str] | set[str]) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if key not in names}
