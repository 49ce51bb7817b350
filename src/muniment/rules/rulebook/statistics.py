"""Statistics of a rule: its judged runs in their order, their arms and phases, and an exact fold over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from muniment.core.instants import format_instant, parse_instant
from muniment.core.policy import RulePolicy
from muniment.core.stats import Comparison, Ema, Tally
from muniment.errors import Conflict, InvalidInput
from muniment.learning.rule_state import Arm
from muniment.rules.promotion.records import RuleUse
from muniment.rules.rulebook.differences import Delta, Rate, delta_of, rate_of

__all__ = [
    "NO_RUNS",
    "PHASES",
    "PHASE_OF",
    "WITH",
    "ArmCounts",
    "Cluster",
    "Phase",
    "RuleStats",
    "stats_of",
    "use_order",
    "window",
]

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
