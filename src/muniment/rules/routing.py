"""Routing (RC-04, RC-26): how to try a task, decided from logged runs, and the rates that the logs show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from itertools import combinations
from math import log, log1p
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from muniment.core.instants import check_window, format_instant, parse_instant
from muniment.core.policy import RoutePolicy
from muniment.core.record import JsonObject
from muniment.core.scope import Level, RunMode
from muniment.core.stats import Tally, p_lb95, runs_needed, wilson_bounds
from muniment.errors import InvalidInput
from muniment.learning.keys import intent_key
from muniment.learning.log_reading import LogWindow, stream_logs
from muniment.learning.projection import core_name
from muniment.learning.recalling import bucket_named, intent_given
from muniment.memory.patches import instant_of
from muniment.rules._records import (
    TIERS,
    ClusterCount,
    Expected,
    NextStep,
    Observables,
    Rate,
    RateReport,
    RouteDecision,
    RouteReason,
    RouteRequest,
    Rung,
    StepAction,
    Tier,
    WouldHaveBeen,
    Zone,
)
from muniment.verify.buckets import parse_bucket_key
from muniment.verify.forms import fails_by_form
from muniment.verify.verdicts import is_pass

if TYPE_CHECKING:
    from datetime import datetime

    from muniment.core.ports.engine import Reader
    from muniment.store.context import Context


# == log rows =========================================================================================================

NOT_EXECUTED = frozenset({"sandbox_denied", "sandbox_timeout", "exec_unavailable"})
"""Reason codes of a run whose outcome could not be found out by execution (§5.4)."""
_TIER_OF_MODE: Mapping[str, Tier] = {"kroll": "probe", "matts": "probe", "synth": "full", "tree": "full"}
_NOBODY = "none"
"""The verifier of a run that nobody judged."""


class LogRow(NamedTuple):
    """One run of the logs."""

    verdict: str | None
    """None where nobody judged it."""
    outcome: str | None
    reason_codes: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()
    cluster_id: str | None = None
    bucket_key: str | None = None
    mode: RunMode = "main"
    tier: Tier | None = None
    cost: float = 0.0
    at: str = ""
    passed: bool = False
    after: int = 0
    """Attempts at the same task that had failed before this one."""
    cluster_sign: str | None = None
    """How its failure shows, where nobody named the cluster."""

    @property
    def is_judged(self) -> bool:
        """Somebody looked at it, even if they could not tell."""
        return self.verdict is not None

    @property
    def counts(self) -> bool:
        """Whether the run passed or did not; a verifier that could not do its work says neither."""
        is_mute = (self.verdict, self.outcome) == ("PARTIAL", "UNKNOWN") and "exec_unavailable" in self.reason_codes
        return self.is_judged and not is_mute

    @property
    def is_confirmed(self) -> bool:
        return self.passed and self.outcome == "OK"

    @property
    def rung(self) -> Tier:
        """The tier it was run at; one that was not said is told by the mode."""
        return self.tier or _TIER_OF_MODE.get(self.mode, "hot")


def row_of(body: Mapping[str, Any]) -> LogRow:
    """An `event_log` item's body as a row.

    Facts leave out a result that says nothing: its verdict stands in the log alone. Only that of a verifier that could
    not execute is left out, so its reason is known.
    """
    log, facts = body["event_log"], body["facts"]
    verifier, run = log["verifier"], log.get("run", {})
    verdict, outcome = facts.get("verdict"), facts.get("outcome")
    codes = tuple(facts.get("reason_codes", ()))
    if verdict is None and verifier.get("verifier_id") != _NOBODY:
        verdict, outcome, codes = verifier.get("verdict"), verifier.get("outcome"), ("exec_unavailable",)
    mode, tier = run.get("mode"), facts.get("state", {}).get("budget_tier")
    return LogRow(
        verdict=verdict,
        outcome=outcome,
        reason_codes=codes,
        violated=tuple(facts.get("violated", ())),
        cluster_id=facts.get("cluster_id"),
        cluster_sign=facts.get("cluster_sign"),
        bucket_key=facts.get("bucket_key") or facts.get("bucket_derived"),
        mode=cast("RunMode", mode) if mode in get_args(RunMode) else "main",
        tier=cast("Tier", tier) if tier in get_args(Tier) else None,
        cost=float(facts.get("cost", 0)),
        at=facts["at"],
        passed=verdict is not None and is_pass(verdict, outcome or ""),
        after=_failed_before(run),
    )


def _failed_before(run: Mapping[str, Any]) -> int:
    """How many attempts failed before, by the number of the attempt that whoever makes several writes into the run's
    block.
    """
    number = run.get("attempt")
    return number - 1 if type(number) is int and number > 0 else 0


# == bucket stats =====================================================================================================

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


# == observables ======================================================================================================

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


# == route reading ====================================================================================================

_NOWHERE = ""
"""The bucket of runs that name none."""


def stream_rows(reader: Reader, window: LogWindow) -> Iterator[LogRow]:
    """The logs of a window as rows, newest first."""
    for _at, body in stream_logs(reader, window):
        row = row_of(body)
        if window.bucket_key in (None, row.bucket_key):
            yield row


def read_stats(reader: Reader, window: LogWindow, cluster_id: str | None = None) -> tuple[BucketStats, int]:
    """How the runs of a window fared, and how often a failure came up among them."""
    stats, hits = BucketStats(), 0
    for row in stream_rows(reader, window):
        stats.add(row)
        hits += cluster_id is not None and row.cluster_id == cluster_id
    return stats, hits


def read_rates(reader: Reader, window: LogWindow, clusters_max: int) -> tuple[Observed, dict[str, Observed]]:
    """What was observed in a window: in all, and bucket by bucket."""
    total, buckets = Observed(clusters_max=clusters_max), dict[str, Observed]()
    for row in stream_rows(reader, window):
        total.add(row)
        name = row.bucket_key or _NOWHERE
        if name not in buckets:
            buckets[name] = Observed(clusters_max=clusters_max)
        buckets[name].add(row)
    return total, buckets


# == ladders ==========================================================================================================

_RATE_MAX = 0.99
_ROUNDING = 1e-9


class TierGuess(NamedTuple):
    """What an attempt at a tier is taken for."""

    rate: float
    """That it passes at a task that nothing has failed at yet."""
    hope: float
    """The most that its runs leave open."""
    cost: float
    n: int
    """Runs that this rests on."""


class Step(NamedTuple):
    tier: Tier
    k: int


Ladder = tuple[Step, ...]


# -- guesses ------------------------------------------------------------------------------------------


def guesses_of(stats: BucketStats, policy: RoutePolicy, likeness: float, *, is_cautious: bool) -> dict[Tier, TierGuess]:
    """Rate and cost of each tier. One that was hardly tried is taken for the tier below it, at the price of its budget.

    `is_cautious` reads p_lb95 where there are runs enough (high impact).
    """
    costs = _costs(stats, policy)
    guesses: dict[Tier, TierGuess] = {}
    prior = policy.prior_rate
    for tier in TIERS:
        spent = stats.at(tier)
        exposure = stats.exposure(tier, likeness)
        prior = min((spent.passes + prior * policy.prior_runs) / (exposure + policy.prior_runs), _RATE_MAX)
        bounds = wilson_bounds(spent.passes, spent.n)
        per_run = spent.n / exposure if spent.n else 1.0
        is_bound = is_cautious and spent.n >= policy.thin_n
        guesses[tier] = TierGuess(
            rate=min(bounds.lower * per_run, _RATE_MAX) if is_bound else prior,
            hope=min(bounds.upper * per_run, _RATE_MAX),
            cost=costs[tier],
            n=spent.n,
        )
    return guesses


def _costs(stats: BucketStats, policy: RoutePolicy) -> dict[Tier, float]:
    """The cost of an attempt at each tier: the mean of its runs; a few of them do not outweigh what the budgets say.

    The lowest tier that was tried sets the unit; the others stand to it as their budgets do, until their runs tell.
    """
    tokens = budgets_of(policy)
    first = next(((tier, cost) for tier in TIERS if (cost := stats.at(tier).mean_cost)), None)
    unit = 1.0 if first is None else first[1] / tokens[first[0]]
    costs: dict[Tier, float] = {}
    for tier in TIERS:
        spent, usual = stats.at(tier), unit * tokens[tier]
        is_unit = first is not None and tier == first[0]
        weight = 0 if is_unit else policy.thin_n
        costs[tier] = (spent.n * (spent.mean_cost or 0.0) + weight * usual) / (spent.n + weight)
    return costs


def budgets_of(policy: RoutePolicy) -> Mapping[Tier, int]:
    return {
        "hot": policy.hot.tokens_max,
        "probe": policy.probe.tokens_max,
        "full": policy.full.tokens_max,
    }


# -- ladders ------------------------------------------------------------------------------------------


def ladders_of(
    tiers: Sequence[Tier], guesses: Mapping[Tier, TierGuess], policy: RoutePolicy, *, k_full_max: int
) -> Iterator[Ladder]:
    """Every ladder over these tiers. One of several rungs never costs more than all the full attempts would.

    So where the rungs before have taken much of that, fewer full attempts are left than a ladder of them alone has.
    """
    most = policy.k_full_max * guesses["full"].cost
    below = {"hot": Step("hot", 1), "probe": Step("probe", policy.k_probe)}
    for length in range(1, len(tiers) + 1):
        for chosen in combinations(tiers, length):
            steps = tuple(below[tier] for tier in chosen if tier != "full")
            left = most - sum(guesses[tier].cost * k for tier, k in steps)
            if chosen[-1] == "full":
                room = min(k_full_max, int(left / guesses["full"].cost + _ROUNDING))
                for k in range(max(1, min(policy.k_full_min, room)), room + 1):
                    yield (*steps, Step("full", k))
            elif length == 1 or left >= 0:
                yield steps


def expected_of(
    ladder: Ladder, guesses: Mapping[Tier, TierGuess], likeness: float, *, failed: int = 0, is_parallel: bool = False
) -> Expected:
    """What comes of climbing a ladder until the first pass; `failed` attempts at the task were made before."""
    rates = {tier: guess.rate for tier, guess in guesses.items()}
    passed, cost = _climbed(ladder, guesses, rates, likeness, failed, is_parallel)
    most = sum(guesses[tier].cost * k for tier, k in ladder)
    per_pass = {"cost_per_pass": cost / passed} if passed > 0 else {}
    return Expected(pass_rate=passed, cost=cost, cost_max=most, **per_pass)


def hoped_cost_per_pass(
    ladder: Ladder, guesses: Mapping[Tier, TierGuess], likeness: float, *, failed: int = 0, is_parallel: bool = False
) -> float:
    """What a pass costs if every tier is as good as its runs leave open.

    Choices are made by this: a tier that was hardly tried is not given up for a few failures, and one that was tried
    often is taken for what it is.
    """
    rates = {tier: guess.hope for tier, guess in guesses.items()}
    passed, cost = _climbed(ladder, guesses, rates, likeness, failed, is_parallel)
    return cost / passed if passed > 0 else float("inf")


def _climbed(
    ladder: Ladder,
    guesses: Mapping[Tier, TierGuess],
    rates: Mapping[Tier, float],
    likeness: float,
    failed: int,
    is_parallel: bool,
) -> tuple[float, float]:
    left, cost = 1.0, 0.0
    for tier, k in ladder:
        reached = left
        for _ in range(k):
            cost += guesses[tier].cost * (reached if is_parallel else left)
            left *= 1 - rates[tier] * likeness / (likeness + failed)
            failed += 1
    return 1 - left, cost


def likeness_of(stats: BucketStats, policy: RoutePolicy) -> float:
    """How alike the tasks of the bucket are, as its runs tell: the s under which later attempts fared as they did.

    Where they tell little it is the policy's.
    """
    usual = policy.likeness_runs
    scored = [
        (_log_likelihood(stats, usual * by, policy) - abs(log(by)) / 2, -abs(log(by)), usual * by) for by in _SPREAD
    ]
    return max(scored)[2]


_SPREAD = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)


def _log_likelihood(stats: BucketStats, likeness: float, policy: RoutePolicy) -> float:
    total = 0.0
    for tier in TIERS:
        spent = stats.at(tier)
        exposure = stats.exposure(tier, likeness)
        base = min((spent.passes + policy.prior_rate * policy.prior_runs) / (exposure + policy.prior_runs), _RATE_MAX)
        for cell, found in sorted(stats.cells.items()):
            if cell.tier == tier and cell.mode != "synth":
                rate = base * likeness / (likeness + cell.after)
                total += found.passes * log(rate) + (found.n - found.passes) * log1p(-rate)
    return total


# == should scale =====================================================================================================

UNCERTAIN = frozenset(
    (
        *("insufficient_evidence", "partial_success", "self_inconsistency", "env_nondeterminism", "prover_incomplete"),
        *("tool_output_inconsistent", "instruction_conflict", "proof_not_found", "search_budget_exhausted"),
    )
)
"""Reason codes that leave open whether another attempt would do better."""


class Seen(NamedTuple):
    """What a verifier said of one attempt."""

    verdict: str
    outcome: str
    reason_codes: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()


class Scaling(NamedTuple):
    """Yes or no, and everything that speaks for it."""

    yes: bool
    reasons: tuple[RouteReason, ...]


def needs_repair(seen: Seen) -> bool:
    return fails_by_form(seen.verdict, seen.violated, seen.reason_codes)


def should_scale(asked: RouteRequest, policy: RoutePolicy) -> Scaling:
    """Whether more than one plain attempt is worth it, after what is known of the task and of an attempt at it."""
    triggers = _triggers(asked, policy)
    if asked.verdict is None:
        words = "nothing speaks for more than a plain attempt before one was made"
        return Scaling(bool(triggers), triggers or (RouteReason(code="no_trigger", words=words),))
    seen = Seen(asked.verdict, asked.outcome or "UNKNOWN", asked.reason_codes, asked.violated)
    recurs = asked.cluster_hits >= policy.cluster_min
    stop = held_back(seen, asked.impact, recurs=recurs, repairs_left=policy.repairs_max - asked.repairs)
    return Scaling(False, (stop,)) if stop is not None else Scaling(True, (*_of_attempt(seen), *triggers))


def held_back(seen: Seen, impact: Level, *, recurs: bool, repairs_left: int) -> RouteReason | None:
    """Why nothing more should be spent after this attempt; None where it should."""
    if is_pass(seen.verdict, seen.outcome) and seen.outcome == "OK":
        return RouteReason(code="confirmed", words="it passed, and that is confirmed")
    if needs_repair(seen) and repairs_left > 0:
        return RouteReason(
            code="repair_first", words="it failed on format or policy: repaired before anything is scaled"
        )
    if seen.outcome != "UNKNOWN":
        return None
    if impact == "low" and not recurs:
        words = "nobody knows whether it is right, and little hangs on it: not scaled unless the failure recurs"
        return RouteReason(code="low_impact_unknown", words=words)
    if impact != "high" and NOT_EXECUTED & set(seen.reason_codes):
        words = "nothing could be executed: more attempts could not be told apart either, a sandbox comes first"
        return RouteReason(code="cannot_confirm", words=words)
    return None


def _of_attempt(seen: Seen) -> Iterable[RouteReason]:
    if seen.verdict == "PARTIAL" or seen.outcome == "UNKNOWN":
        yield RouteReason(code="undecided", words=f"the attempt is {seen.verdict} with outcome {seen.outcome}")
    else:
        yield RouteReason(code="not_passed", words="the attempt did not pass")
    doubts = sorted(UNCERTAIN & set(seen.reason_codes))
    if doubts:
        yield RouteReason(code="uncertain_codes", words=f"the verifier is uncertain: {', '.join(doubts)}")


def _triggers(asked: RouteRequest, policy: RoutePolicy) -> tuple[RouteReason, ...]:
    """What is known without an attempt that speaks for more than a plain one."""
    said: list[RouteReason] = []
    if asked.impact == "high":
        said.append(RouteReason(code="high_impact", words="much hangs on it"))
    if asked.cluster_hits >= policy.cluster_min:
        words = f"its failure came up {asked.cluster_hits} times in the window: a hard cluster"
        said.append(RouteReason(code="hard_cluster", words=words, figures={"hits": asked.cluster_hits}))
    if asked.utility_change < -policy.utility_fall:
        words = f"the utility of its rules fell by {-asked.utility_change:.2f}"
        said.append(RouteReason(code="falling_utility", words=words, figures={"change": asked.utility_change}))
    if asked.rules_changed:
        said.append(RouteReason(code="rules_changed", words="its rules have just changed"))
    return tuple(said)


# == router ===========================================================================================================

_DEBATED = frozenset({"instruction_conflict", "self_inconsistency"})
"""What one attempt with several voices may settle (mode sot)."""


class _Choice(NamedTuple):
    ladder: Ladder
    expected: Expected
    hoped: float


class _Limits(NamedTuple):
    """What a ladder may be made of, and why no more."""

    tiers: tuple[Tier, ...]
    k_full_max: int
    reasons: tuple[RouteReason, ...]
    must_start_hot: bool
    must_have: Set[Tier]
    """Tiers that are not left out: not tried often enough to be given up, or probes where much hangs on it."""


def route(asked: RouteRequest, stats: BucketStats, policy: RoutePolicy) -> RouteDecision:
    """Decide how to try a task. It depends on the request, the numbers and the policy alone."""
    scaling = should_scale(asked, policy)
    zone, zone_reasons, missing = zone_of(asked, stats, policy)
    common = _common(asked, stats, policy) | {"scale": scaling.yes, "zone": zone, "runs_missing": missing}
    is_repair = scaling.reasons[0].code == "repair_first"
    if asked.verdict is not None and not scaling.yes and not is_repair:
        return _nothing(common, "stop", (*scaling.reasons, *zone_reasons))
    limits = _limits(asked, stats, policy, zone, is_repair=is_repair)
    if not limits.tiers:
        return _nothing(common, "escalate" if zone == "deadzone" else "stop", (*zone_reasons, *limits.reasons))
    alike = likeness_of(stats, policy)
    guesses = guesses_of(stats, policy, alike, is_cautious=asked.impact == "high")
    chosen, others, why = _choose(asked, policy, guesses, alike, limits)
    if chosen is None:
        return _nothing(common, "stop", (*why, *zone_reasons, *limits.reasons))
    modes = _modes(asked, scaling, zone)
    rungs = _rungs(chosen.ladder, guesses, modes)
    cheaper = _cheaper(chosen, others, guesses, modes)
    return RouteDecision(
        **(common if cheaper is None else common | {"cheaper": cheaper}),
        action="repair" if is_repair else "run",
        tier=rungs[0].tier,
        mode=rungs[0].mode,
        k=rungs[0].k,
        rungs=rungs,
        synth=scaling.yes and asked.can_synth and asked.pressure == "none" and rungs[-1].tier == "full",
        expected=chosen.expected,
        reasons=(*scaling.reasons, *zone_reasons, *limits.reasons, *why),
    )


def _common(asked: RouteRequest, stats: BucketStats, policy: RoutePolicy) -> dict[str, Any]:
    """What every decision on the request says."""
    spent = stats.at()
    said: dict[str, Any] = {
        "impact": asked.impact,
        "can_confirm": spent.confirmed > 0 or spent.passes < policy.thin_n,
        "repairs_left": max(0, policy.repairs_max - asked.repairs),
        "recurs": asked.cluster_hits >= policy.cluster_min,
    }
    return said if asked.cost_max is None else said | {"cost_max": asked.cost_max}


def _nothing(
    common: Mapping[str, Any], action: Literal["stop", "escalate"], reasons: tuple[RouteReason, ...]
) -> RouteDecision:
    """A decision to run nothing."""
    nothing = Expected(pass_rate=0.0, cost=0.0, cost_max=0.0)
    return RouteDecision(**common, action=action, expected=nothing, reasons=reasons)


# -- the zone -----------------------------------------------------------------------------------------


def zone_of(asked: RouteRequest, stats: BucketStats, policy: RoutePolicy) -> tuple[Zone, tuple[RouteReason, ...], int]:
    """Where the bucket stands, why, and how many runs a firmer answer still lacks."""
    if is_dead(stats, policy):
        tasks, scaled = stats.tasks, stats.at("probe", "full").n
        words = (
            f"{tasks.passes} of {tasks.n} tasks passed, with {scaled} scaled attempts: more would be wasted; decompose"
        )
        return "deadzone", (_tally_reason("deadzone", words, tasks, p_lb95=p_lb95(tasks) or 0.0, scaled=scaled),), 0
    first = stats.at(fresh=True)
    if first.n < policy.thin_n:
        missing = policy.thin_n - first.n
        words = f"{first.n} runs of this bucket are too few to tell: {missing} more"
        return "unknown", (_tally_reason("not_enough_runs", words, first.tally, missing=missing),), missing
    p_hat, lower = first.passes / first.n, p_lb95(first.tally) or 0.0
    is_high = asked.impact == "high"
    read = lower if is_high else p_hat
    what = f"{first.passes} of {first.n} first attempts passed" + (f", p_lb95 {lower:.2f}" if is_high else "")
    if is_high and lower < policy.easy_rate <= p_hat:
        missing = runs_needed(policy.easy_rate, first.tally)
        words = (
            f"{what}: easy by its rate, but the bound would take {missing} straight passes more, so it is not called so"
        )
        return (
            "good",
            (_tally_reason("bound_out_of_reach", words, first.tally, p_lb95=lower, missing=missing),),
            missing,
        )
    zone: Zone = "hard"
    for name, least in (("frontier", policy.frontier_low), ("good", policy.frontier_high), ("easy", policy.easy_rate)):
        if read >= least:
            zone = name  # type: ignore[assignment]
    return zone, (_tally_reason(zone, f"{what}: {_ZONES[zone]}", first.tally, p_lb95=lower),), 0


def is_dead(stats: BucketStats, policy: RoutePolicy) -> bool:
    """Have tasks been tried hard enough and often enough, with next to nothing to show at any tier?"""
    tasks = stats.tasks
    bounds = wilson_bounds(tasks.passes, tasks.n)
    is_low = bounds.lower < policy.deadzone_rate and bounds.upper < policy.deadzone_upper
    is_tried = min(tasks.n, stats.at("probe", "full").n) >= policy.deadzone_k
    return is_low and is_tried and not any(_is_alive(stats, tier, policy) for tier in TIERS)


def _is_alive(stats: BucketStats, tier: Tier, policy: RoutePolicy) -> bool:
    tally = stats.at(tier).tally
    return tally.n >= policy.deadzone_k and (p_lb95(tally) or 0.0) >= policy.deadzone_rate


_ZONES: Mapping[str, str] = {
    "hard": "below the frontier",
    "frontier": "on the frontier, where further attempts tell most",
    "good": "above the frontier",
    "easy": "easy, nothing is scaled beforehand",
}


def _tally_reason(code: str, words: str, tally: Any, **figures: float) -> RouteReason:
    return RouteReason(code=code, words=words, figures={"passes": tally.passes, "n": tally.n, **figures})


# -- choosing -----------------------------------------------------------------------------------------


def _limits(asked: RouteRequest, stats: BucketStats, policy: RoutePolicy, zone: Zone, *, is_repair: bool) -> _Limits:
    """What a ladder for this request may be made of."""
    tiers = _tiers_left(asked, stats, policy, zone, is_repair=is_repair)
    is_high = asked.impact == "high"
    is_cut = asked.pressure in ("strong", "severe")
    return _Limits(
        tiers=tiers,
        k_full_max=policy.k_full_min if is_cut else policy.k_full_max,
        reasons=_pressure_reasons(asked, policy),
        must_start_hot=is_repair or (zone == "easy" and "hot" in tiers),
        must_have={tier for tier in tiers if stats.at(tier).n < policy.explore_n or (is_high and tier == "probe")},
    )


def _tiers_left(
    asked: RouteRequest, stats: BucketStats, policy: RoutePolicy, zone: Zone, *, is_repair: bool
) -> tuple[Tier, ...]:
    """The tiers that the zone, the pressure and an attempt already made leave."""
    left = set(TIERS)
    if asked.verdict is not None and not is_repair:  # the plain attempt was made; a repair takes its place
        left -= {"hot"}
    if zone == "deadzone":
        is_worth_one = is_repair or stats.at("hot").n < policy.deadzone_k
        left &= {"hot"} if is_worth_one else set()
    elif zone == "easy":
        left -= {"full"}
    if asked.pressure == "severe":
        left &= {"hot", "probe"} if asked.impact == "high" else {"hot"}
    return tuple(tier for tier in TIERS if tier in left)


def _pressure_reasons(asked: RouteRequest, policy: RoutePolicy) -> tuple[RouteReason, ...]:
    """What is cut under the pressure on the budget, in words; nothing where there is none."""
    match asked.pressure:
        case "none":
            return ()
        case "severe":
            words = "full attempts are cut, probes kept" if asked.impact == "high" else "one plain attempt alone"
        case "strong":
            words = f"synthesis is cut, and full attempts to {policy.k_full_min}"
        case _:
            words = "synthesis is cut"
    return (RouteReason(code="pressure", words=f"under {asked.pressure} pressure: {words}"),)


def _choose(
    asked: RouteRequest, policy: RoutePolicy, guesses: Mapping[Tier, TierGuess], alike: float, limits: _Limits
) -> tuple[_Choice | None, list[_Choice], tuple[RouteReason, ...]]:
    """The ladder that passes cheapest and often enough; all there were; and why it."""
    known: dict[str, Any] = {"failed": int(asked.verdict is not None), "is_parallel": asked.is_parallel}
    all_ = [
        _Choice(each, expected_of(each, guesses, alike, **known), hoped_cost_per_pass(each, guesses, alike, **known))
        for each in ladders_of(limits.tiers, guesses, policy, k_full_max=limits.k_full_max)
        if each[0].tier == "hot" or not limits.must_start_hot
    ]
    affordable = [each for each in all_ if asked.cost_max is None or each.expected.cost_max <= asked.cost_max]
    why: list[RouteReason] = []
    if len(affordable) < len(all_):
        words = f"what may still be spent ({asked.cost_max:g}) rules out {len(all_) - len(affordable)} dearer choices"
        why.append(RouteReason(code="cost_cap", words=words, figures={"cost_max": asked.cost_max or 0}))
    if not affordable:
        return None, [], tuple(why)
    pool = _with(affordable, limits.must_have) or affordable
    if len(pool) < len(affordable):
        tried = ", ".join(f"{tier} {guesses[tier].n}" for tier in TIERS if tier in limits.must_have)
        words = f"kept, for the impact or for being tried fewer than {policy.explore_n} times: {tried}"
        why.append(RouteReason(code="kept_tiers", words=words))
    floor = {"low": policy.floor_low, "med": policy.floor_med, "high": policy.floor_high}[asked.impact]
    best = max(each.expected.pass_rate for each in pool)
    kept = [each for each in pool if each.expected.pass_rate >= floor * best]
    chosen = min(kept, key=lambda each: (each.hoped, each.expected.cost, -each.expected.pass_rate, each.ladder))
    figures: JsonObject = {"floor": floor, "best_pass_rate": best, "choices": len(all_), "kept": len(kept)}
    words = (
        f"cheapest per pass of the {len(kept)} of {len(all_)} choices that keep {floor:.1%} of the best pass rate: "
        f"{_ladder_words(chosen.ladder)}"
    )
    why.append(RouteReason(code="cheapest_per_pass", words=words, figures=figures))
    return chosen, affordable, tuple(why)


def _with(choices: Sequence[_Choice], tiers: Set[Tier]) -> list[_Choice]:
    """The choices that try all of these tiers."""
    return [each for each in choices if tiers <= {tier for tier, _ in each.ladder}]


def _ladder_words(ladder: Ladder) -> str:
    return " then ".join(tier if k == 1 else f"{k} × {tier}" for tier, k in ladder)


def _rungs(ladder: Ladder, guesses: Mapping[Tier, TierGuess], modes: Mapping[Tier, RunMode]) -> tuple[Rung, ...]:
    return tuple(
        Rung(tier=tier, mode=modes[tier], k=k, pass_rate=guesses[tier].rate, cost=guesses[tier].cost)
        for tier, k in ladder
    )


def _modes(asked: RouteRequest, scaling: Scaling, zone: Zone) -> dict[Tier, RunMode]:
    """Contrasting attempts where they teach something, plain ones elsewhere."""
    taught = zone == "frontier" or any(each.code in _TEACHING for each in scaling.reasons)
    return {
        "hot": "sot" if _DEBATED & set(asked.reason_codes) else "main",
        "probe": "kroll",
        "full": "matts" if taught else "kroll",
    }


_TEACHING = ("hard_cluster", "falling_utility", "rules_changed")


def _cheaper(
    chosen: _Choice,
    others: Sequence[_Choice],
    guesses: Mapping[Tier, TierGuess],
    modes: Mapping[Tier, RunMode],
) -> WouldHaveBeen | None:
    """Of the choices expected to cost less, the one that passes most; None where there is none."""
    less = [each for each in others if each.expected.cost < chosen.expected.cost]
    if not less:
        return None
    found = max(less, key=lambda each: (each.expected.pass_rate, -each.expected.cost, each.ladder))
    lost = chosen.expected.pass_rate - found.expected.pass_rate
    saved = chosen.expected.cost - found.expected.cost
    risk = f"and risked {lost:.1%} of passes" if lost >= 0.0005 else "with next to no risk by these figures"
    words = f"{_ladder_words(found.ladder)} would have saved {saved:,.4g} a task {risk}"
    return WouldHaveBeen(
        rungs=_rungs(found.ladder, guesses, modes),
        expected=found.expected,
        pass_rate_lost=lost,
        cost_saved=saved,
        words=words,
    )


# == router asking ====================================================================================================


class Routing:
    """The router of one bank. Thread-safe."""

    def __init__(self, ctx: Context, tenant_id: str, owner: str) -> None:
        self._ctx, self._tenant_id, self._owner = ctx, tenant_id, owner

    def decide(
        self, asked: RouteRequest | Mapping[str, Any] | None = None, *, intent: Any = None, **more: Any
    ) -> RouteDecision:
        """How to try a task: what is known of it as a `RouteRequest`, its plain form, or by name."""
        request = request_of(asked, more)
        window = self._window(request.bucket_key, intent)
        stats, hits = self._ctx.engine.read(
            self._tenant_id, lambda reader: read_stats(reader, window, request.cluster_id)
        )
        if not request.cluster_hits and hits:
            request = request.model_copy(update={"cluster_hits": hits})
        return route(request, stats, self._ctx.policy.route)

    def stats(self, bucket_key: str | None = None, *, intent: Any = None) -> BucketStats:
        """What a decision on a bucket rests on."""
        window = self._window(bucket_named(bucket_key), intent)
        return self._ctx.engine.read(self._tenant_id, lambda reader: read_stats(reader, window))[0]

    def rates(
        self,
        *,
        bucket_key: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
    ) -> RateReport:
        """The observables over the runs learnt from `since` until before `until`, and what they ask for."""
        start, end = instant_of(since, "$.since"), instant_of(until, "$.until")
        check_window(start, end)
        policy, bucket = self._ctx.policy.route, bucket_named(bucket_key)
        window = LogWindow(self._owner, start, end, bucket)
        total, buckets = self._ctx.engine.read(
            self._tenant_id, lambda reader: read_rates(reader, window, policy.observe.clusters_max)
        )
        seen = observables_of(total, policy, bucket_key=bucket, start=start, end=end)
        apart = (
            observables_of(each, policy, bucket_key=name or None, start=start, end=end)
            for name, each in sorted(buckets.items())
        )
        return RateReport(observables=seen, advice=escalation(seen, policy), buckets=tuple(apart))

    def _window(self, bucket_key: str | None, intent: Any) -> LogWindow:
        policy, now = self._ctx.policy.route, self._ctx.now()
        start = format_instant(parse_instant(now) - timedelta(days=policy.window_days))
        name = None if intent is None else core_name(intent_key(intent_given(intent)))
        return LogWindow(self._owner, start, None, bucket_key, name, policy.runs_max)


def request_of(asked: RouteRequest | Mapping[str, Any] | None, more: Mapping[str, Any]) -> RouteRequest:
    """What a caller asked; the impact is that of the bucket, unless another is named."""
    if isinstance(asked, RouteRequest):
        if more:
            raise InvalidInput("a RouteRequest says it all", path=f"$.{min(more)}", hint="name it in the request")
        return asked
    if asked is not None and not isinstance(asked, Mapping):
        raise InvalidInput("a request is an object", path="$.asked", hint="such as {'impact': 'high'}")
    plain = {name: value for name, value in {**(asked or {}), **more}.items() if value is not None}
    bucket = bucket_named(plain.get("bucket_key"))
    if bucket is not None and "impact" not in plain:
        plain["impact"] = parse_bucket_key(bucket).impact
    return RouteRequest.from_wire(
        {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}
    )


# == climbing =========================================================================================================

_SUMMARIES_MIN = 2
"""Synthesis joins at least so many attempts."""


class RouteAttempt(NamedTuple):
    """One thing that was tried at the task, and what a verifier said of it."""

    verdict: str
    outcome: str
    tier: Tier = "hot"
    kind: Literal["attempt", "repair", "synth"] = "attempt"
    reason_codes: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()
    cost: float = 0.0

    @property
    def passed(self) -> bool:
        return is_pass(self.verdict, self.outcome)

    @property
    def seen(self) -> Seen:
        return Seen(self.verdict, self.outcome, self.reason_codes, self.violated)


def next_step(decision: RouteDecision, attempts: Sequence[RouteAttempt]) -> NextStep:
    """The next step of a decision; with no attempts yet, its first."""
    if not decision.rungs:
        return _step("escalate" if decision.action == "escalate" else "stop", decision.reasons[0])
    if decision.action == "repair" and not attempts:
        return _step("repair", _why("repair_first", "the attempt that was made is repaired first"), decision.rungs[0])
    if attempts:
        done = _is_done(decision, attempts)
        if done is not None:
            return done
    return _climb(decision, attempts)


def _is_done(decision: RouteDecision, attempts: Sequence[RouteAttempt]) -> NextStep | None:
    """Stop or repair, after the last attempt; None where the ladder goes on."""
    last = attempts[-1]
    if any(each.passed and each.outcome == "OK" for each in attempts):
        return _step("stop", _why("confirmed", "it passed, and that is confirmed"))
    repairs = sum(each.kind == "repair" for each in attempts)
    held = held_back(last.seen, decision.impact, recurs=decision.recurs, repairs_left=decision.repairs_left - repairs)
    if held is not None and held.code == "repair_first":
        return _over(decision, attempts, _rung(decision, last.tier).cost) or _step(
            "repair", held, _rung(decision, last.tier)
        )
    if held is not None:
        return _step("stop", held)
    if last.passed and decision.impact != "high" and not decision.can_confirm:
        return _step("stop", _why("never_confirmed", "it passed, and no pass of this bucket was ever confirmed"))
    return None


def _climb(decision: RouteDecision, attempts: Sequence[RouteAttempt]) -> NextStep:
    made = {rung.tier: 0 for rung in decision.rungs}
    for each in attempts:
        if each.kind == "attempt" and each.tier in made:
            made[each.tier] += 1
    if decision.action == "repair":
        made["hot"] = 1  # the attempt that is repaired
    for rung in decision.rungs:
        if made[rung.tier] < rung.k:
            words = f"attempt {made[rung.tier] + 1} of {rung.k} at {rung.tier}"
            return _over(decision, attempts, rung.cost) or _step(rung.tier, _why("next_attempt", words), rung)
    return _at_the_top(decision, attempts)


def _at_the_top(decision: RouteDecision, attempts: Sequence[RouteAttempt]) -> NextStep:
    """Nothing is left to try: put together what there is, or hand it on."""
    tried = [each for each in attempts if each.kind != "synth"]
    if decision.synth and len(tried) >= _SUMMARIES_MIN and len(tried) == len(attempts):
        over = _over(decision, attempts, decision.rungs[-1].cost)
        words = f"{len(tried)} attempts, none confirmed: put together from their summaries"
        return over or NextStep(action="synth", mode="synth", reason=_why("synthesise", words))
    if any(each.passed for each in attempts):
        return _step("stop", _why("passed_unconfirmed", "it passed, and nothing more can confirm it"))
    if decision.impact == "low" and decision.zone != "deadzone":
        return _step("stop", _why("not_passed", f"none of {len(attempts)} attempts passed, and little hangs on it"))
    words = f"none of {len(attempts)} attempts passed: more of the same would be wasted; decompose it or ask somebody"
    return _step("escalate", _why("ladder_ended", words))


def _over(decision: RouteDecision, attempts: Sequence[RouteAttempt], cost: float) -> NextStep | None:
    """Stop, where what comes next could cost more than is left."""
    spent = sum(each.cost for each in attempts)
    if decision.cost_max is None or spent + cost <= decision.cost_max:
        return None
    words = f"{spent:g} of {decision.cost_max:g} are spent, and the next step takes about {cost:.4g}"
    return _step("stop", _why("cost_cap", words))


def _rung(decision: RouteDecision, tier: Tier) -> Rung:
    return next((rung for rung in decision.rungs if rung.tier == tier), decision.rungs[0])


def _step(action: StepAction, reason: RouteReason, rung: Rung | None = None) -> NextStep:
    return (
        NextStep(action=action, reason=reason)
        if rung is None
        else NextStep(action=action, mode=rung.mode, reason=reason)
    )


def _why(code: str, words: str) -> RouteReason:
    return RouteReason(code=code, words=words)
