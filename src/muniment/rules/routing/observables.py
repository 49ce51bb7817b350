"""The observables of §5.4 (RC-04), folded from logs in constant memory, merged exactly, and read in plain words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from muniment.core.policy import RoutePolicy
from muniment.core.record import JsonObject
from muniment.core.stats import wilson_bounds
from muniment.rules.routing.log_rows import NOT_EXECUTED, LogRow
from muniment.rules.routing.records import ClusterCount, Observables, Rate, RouteReason

__all__ = ["Observed", "escalation", "observables_of", "observe", "rate_of"]

_OVERINJECTED = frozenset({"memory_overinject", "praxis_tactic_overinject"})
_UNSHOWN = "insufficient_evidence"


@dataclass(slots=True)
class Observed:
    """What was counted so far. Any split of the rows, in any order, merges to the same counts."""

    n: int = 0
    passed: int = 0
    confirmed: int = 0
    unknown: int = 0
    not_executed: int = 0
    violated: int = 0
    unshown: int = 0
    overinjected: int = 0
    unknown_not_executed: int = 0
    unknown_unshown: int = 0
    clustered: int = 0
    unjudged: int = 0
    clusters: dict[str, int] = field(default_factory=dict)
    signs: dict[str, str] = field(default_factory=dict)
    """What a cluster is in words, where they were read off its runs."""
    clusters_max: int = 4_096

    def add(self, row: LogRow) -> None:
        """One run more; one that nobody judged is no observation."""
        if not row.is_judged:
            self.unjudged += 1
            return
        codes = set(row.reason_codes)
        is_unknown, is_unrun, is_unshown = row.outcome == "UNKNOWN", bool(codes & NOT_EXECUTED), _UNSHOWN in codes
        self.n += 1
        self.passed += row.passed
        self.confirmed += row.is_confirmed
        self.unknown += is_unknown
        self.not_executed += is_unrun
        self.violated += bool(row.violated)
        self.unshown += is_unshown
        self.overinjected += bool(codes & _OVERINJECTED)
        self.unknown_not_executed += is_unknown and is_unrun
        self.unknown_unshown += is_unknown and is_unshown and not is_unrun
        if row.cluster_id is not None:
            self.clustered += 1
            self.clusters[row.cluster_id] = self.clusters.get(row.cluster_id, 0) + 1
            if row.cluster_sign is not None:
                self.signs[row.cluster_id] = min(row.cluster_sign, self.signs.get(row.cluster_id, row.cluster_sign))
            if len(self.clusters) > 2 * self.clusters_max:
                self.clusters = self.counted()
                self.signs = {id_: self.signs[id_] for id_ in self.clusters if id_ in self.signs}

    def merge(self, other: Observed) -> Observed:
        """The counts of both."""
        both = Observed(clusters_max=min(self.clusters_max, other.clusters_max))
        for name in _COUNTED:
            setattr(both, name, getattr(self, name) + getattr(other, name))
        both.clusters = {
            id_: self.clusters.get(id_, 0) + other.clusters.get(id_, 0) for id_ in self.clusters.keys() | other.clusters
        }
        both.clusters = both.counted()
        for id_ in both.clusters:
            words = [each.signs[id_] for each in (self, other) if id_ in each.signs]
            both.signs |= {id_: min(words)} if words else {}
        return both

    def counted(self) -> dict[str, int]:
        """The clusters whose ids hash lowest. One of these was never let go of before, so its count is whole."""
        if len(self.clusters) <= self.clusters_max:
            return self.clusters
        return {id_: self.clusters[id_] for id_ in sorted(self.clusters, key=_hash)[: self.clusters_max]}


_COUNTED = (
    *("n", "passed", "confirmed", "unknown", "not_executed", "violated", "unshown", "overinjected"),
    *("unknown_not_executed", "unknown_unshown", "clustered", "unjudged"),
)


def _hash(cluster_id: str) -> bytes:
    return sha256(cluster_id.encode("utf-8", "surrogatepass")).digest()


def observe(
    rows: Iterable[LogRow],
    policy: RoutePolicy,
    *,
    bucket_key: str | None = None,
    start: str | None = None,
    end: str | None = None,
) -> Observables:
    """The observables of the rows of a bucket (or all) whose instant is from `start` to before `end`."""
    seen = Observed(clusters_max=policy.observe.clusters_max)
    for row in rows:
        if bucket_key in (None, row.bucket_key) and (start or "") <= row.at and (end is None or row.at < end):
            seen.add(row)
    return observables_of(seen, policy, bucket_key=bucket_key, start=start, end=end)


def observables_of(
    seen: Observed,
    policy: RoutePolicy,
    *,
    bucket_key: str | None = None,
    start: str | None = None,
    end: str | None = None,
) -> Observables:
    """The counts as rates."""
    n, thin, clusters = seen.n, policy.observe.thin_n, seen.counted()
    top = sorted(clusters.items(), key=lambda each: (-each[1], each[0]))[: policy.observe.clusters_top]
    named = {"bucket_key": bucket_key, "start": start, "end": end}
    return Observables(
        **{name: value for name, value in named.items() if value is not None},
        n=n,
        pass_rate=rate_of(seen.passed, n, thin),
        confirmed_rate=rate_of(seen.confirmed, n, thin),
        unknown_rate=rate_of(seen.unknown, n, thin),
        exec_unavailable_rate=rate_of(seen.not_executed, n, thin),
        l1_violation_rate=rate_of(seen.violated, n, thin),
        insufficient_evidence_rate=rate_of(seen.unshown, n, thin),
        overinject_rate=rate_of(seen.overinjected, n, thin),
        unknown_by_execution=rate_of(seen.unknown_not_executed, seen.unknown, thin),
        unknown_by_evidence=rate_of(seen.unknown_unshown, seen.unknown, thin),
        cluster_recurrence=tuple(
            ClusterCount(
                cluster_id=id_,
                count=count,
                share=count / n,
                recurs=count >= policy.cluster_min,
                **({"sign": seen.signs[id_]} if id_ in seen.signs else {}),
            )
            for id_, count in top
        ),
        clustered=seen.clustered,
        unjudged=seen.unjudged,
        uncounted=seen.clustered - sum(clusters.values()),
    )


def rate_of(count: int, n: int, thin: int) -> Rate:
    """A share with its interval; of fewer runs than `thin`, nothing but the counts."""
    if n < thin:
        return Rate(n=n, count=count, unknown=True, runs_missing=thin - n)
    bounds = wilson_bounds(count, n)
    return Rate(n=n, count=count, unknown=False, rate=count / n, lower=bounds.lower, upper=bounds.upper)


# -- what they say ------------------------------------------------------------------------------------


def escalation(seen: Observables, policy: RoutePolicy) -> tuple[RouteReason, ...]:
    """What the observables ask for, most pressing first: a sandbox before a grader (§5.4)."""
    if seen.pass_rate.unknown:
        words = f"{seen.n} judged runs say nothing yet: {seen.pass_rate.runs_missing} more"
        return (RouteReason(code="too_few_runs", words=words, figures=_figures(seen.pass_rate)),)
    said = [*_of_unknowns(seen, policy), *_of_form(seen, policy)]
    recurring = [each for each in seen.cluster_recurrence if each.recurs]
    if recurring:
        first = recurring[0]
        words = f"{len(recurring)} of the failures recur, the first {first.count} times: draft a guardrail, and test it"
        said.append(RouteReason(code="cluster_recurs", words=words, figures=first.to_wire()))
    if not said:
        words = f"nothing to change: no rate is above {policy.observe.high_rate:.0%} beyond doubt"
        said.append(RouteReason(code="steady", words=words, figures=_figures(seen.unknown_rate)))
    return tuple(said)


def _of_unknowns(seen: Observables, policy: RoutePolicy) -> list[RouteReason]:
    """Outcomes nobody knows. Where nothing could be executed a grader would only hide it."""
    high = policy.observe.high_rate
    said: list[RouteReason] = []
    if _is_high(seen.exec_unavailable_rate, high) or (
        _is_high(seen.unknown_rate, high) and _share(seen.unknown_by_execution) >= policy.observe.cause_share
    ):
        words = f"{_percent(seen.exec_unavailable_rate)} of runs could not be executed: get a sandbox or a harness"
        said.append(RouteReason(code="get_sandbox", words=words, figures=_figures(seen.exec_unavailable_rate)))
    if _is_high(seen.insufficient_evidence_rate, high):
        figures = _figures(seen.insufficient_evidence_rate)
        what = f"{_percent(seen.insufficient_evidence_rate)} of runs say what they do not show"
        if said:
            words = f"{what}: look again when they can be executed, before any grader"
            said.append(RouteReason(code="grader_waits", words=words, figures=figures))
        elif _is_high(seen.unknown_rate, high):
            words = f"{what}, and execution could not tell: a small grader, for these runs alone, may be worth a trial"
            said.append(RouteReason(code="get_grader", words=words, figures=figures))
        else:
            words = f"{what}, though outcomes are known: ask for evidence in the task, no grader"
            said.append(RouteReason(code="ask_for_evidence", words=words, figures=figures))
    if not said and _is_high(seen.unknown_rate, high):
        words = (
            f"{_percent(seen.unknown_rate)} of outcomes are unknown, and no reason is given: add a check that executes"
        )
        said.append(RouteReason(code="add_execution_check", words=words, figures=_figures(seen.unknown_rate)))
    return said


def _of_form(seen: Observables, policy: RoutePolicy) -> list[RouteReason]:
    said: list[RouteReason] = []
    if _is_high(seen.l1_violation_rate, policy.observe.high_rate):
        words = f"{_percent(seen.l1_violation_rate)} of runs break a constraint: repair the format before scaling"
        said.append(RouteReason(code="repair_format", words=words, figures=_figures(seen.l1_violation_rate)))
    if _is_high(seen.overinject_rate, policy.observe.high_rate):
        words = f"{_percent(seen.overinject_rate)} of runs are told too much: cut what is injected"
        said.append(RouteReason(code="cut_injection", words=words, figures=_figures(seen.overinject_rate)))
    return said


def _is_high(rate: Rate, high: float) -> bool:
    return rate.lower is not None and rate.lower > high


def _share(rate: Rate) -> float:
    return rate.count / rate.n if rate.n else 0.0


def _percent(rate: Rate) -> str:
    return f"{_share(rate):.0%}"


def _figures(rate: Rate) -> JsonObject:
    return {name: value for name, value in rate.to_wire().items() if name != "unknown"}
