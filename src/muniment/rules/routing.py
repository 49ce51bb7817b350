"""Routing (RC-04, RC-26): decides how to try a task, without a model, from logged runs; and the underlying rates.

    decision = mem.learning.route(bucket_key="I2|math|clarity_high", user_id="ana")
    decision.rungs, decision.reasons
    mem.learning.observe_rates(user_id="ana", since="2026-05-01").advice

A decision is the fixed ladder hot → probe → full, shortened by the zone of the bucket, an attempt already made, budget
pressure, and a cap on cost. Choosing among ladders by expected cost was more expensive and passed no more tasks
(decision 0054).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from muniment.core.instants import check_window, format_instant, parse_instant
from muniment.core.policy import RoutePolicy
from muniment.core.record import JsonObject
from muniment.core.scope import Level, RunMode
from muniment.core.stats import Tally, p_lb95, runs_needed, wilson_bounds
from muniment.errors import InvalidInput
from muniment.learning.event_logs import LogWindow, stream_logs
from muniment.learning.keys import intent_key
from muniment.learning.projection import core_name
from muniment.learning.recalling import bucket_named, intent_given
from muniment.memory.patches import instant_of
from muniment.rules._records import (
    TIERS,
    ClusterCount,
    Observables,
    Rate,
    RateReport,
    RouteDecision,
    RouteReason,
    RouteRequest,
    Rung,
    Tier,
    Zone,
)
from muniment.verify.results import fails_by_form, is_pass, parse_bucket_key

if TYPE_CHECKING:
    from datetime import datetime

    from muniment.core.ports.engine import Reader
    from muniment.store.context import Context

NOT_EXECUTED = frozenset({"sandbox_denied", "sandbox_timeout", "exec_unavailable"})
"""Reason codes of runs whose outcome could not be established by execution (§5.4)."""
DEADZONE_TRIES = 6
"""A dead zone needs at least this many tasks, and this many attempts beyond the plain ones."""
_DEADZONE_LOWER, _DEADZONE_UPPER = 0.05, 0.4
"""Bounds of the pass rate of a dead zone: 0 of 6 qualifies, 1 of 6 may be chance."""
_WINDOW_DAYS = 30
"""Maximum age of the runs a route considers."""
TIER_TOKENS: Mapping[Tier, int] = {"hot": 1_200, "probe": 2_500, "full": 6_000}
"""Token budget of one attempt in each tier."""
_FRONTIER, _GOOD = 0.3, 0.7
"""Lowest pass rates of the frontier zone and of the good zone."""
_RECURS = 3
"""A failure is recurrent from this many occurrences in the window."""
_UTILITY_FALL = 0.05
_HIGH_RATE, _CAUSE_SHARE = 0.2, 0.5
_CLUSTERS_TOP, _CLUSTERS_MAX = 5, 4_096
_MICRO = 1_000_000


# == deciding =========================================================================================


def route_task(
    ctx: Context,
    tenant_id: str,
    owner: str,
    asked: RouteRequest | Mapping[str, Any] | None = None,
    *,
    intent: Any = None,
    **more: Any,
) -> RouteDecision:
    """Decide how to try a task, from the bank's logged runs of its bucket (and intent)."""
    request, policy = _request_of(asked, more), ctx.policy.route
    start = format_instant(parse_instant(ctx.now()) - timedelta(days=_WINDOW_DAYS))
    name = None if intent is None else core_name(intent_key(intent_given(intent)))
    window = LogWindow(owner, start, None, request.bucket_key, name, policy.runs_max)
    stats, hits = ctx.engine.read(tenant_id, lambda reader: read_stats(reader, window, request.cluster_id))
    if not request.cluster_hits and hits:
        request = request.model_copy(update={"cluster_hits": hits})
    return route(request, stats, policy)


def _request_of(asked: RouteRequest | Mapping[str, Any] | None, more: Mapping[str, Any]) -> RouteRequest:
    """Build a request; its impact is the bucket's unless another is given."""
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


def route(asked: RouteRequest, stats: BucketStats, policy: RoutePolicy) -> RouteDecision:
    """Decide how to try a task. Depends only on the request, the counts and the policy."""
    scaling = should_scale(asked, policy)
    zone, zone_reason, missing = zone_of(asked, stats, policy)
    first, all_ = stats.at(fresh=True), stats.at()
    common: dict[str, Any] = {
        "impact": asked.impact,
        "scale": scaling.yes,
        "zone": zone,
        "runs_missing": missing,
        "pass_rate": (first.passes + 1) / (first.n + 2),
        "can_confirm": all_.confirmed > 0 or all_.passes < policy.thin_n,
        "repairs_left": max(0, policy.repairs_max - asked.repairs),
        "recurs": asked.cluster_hits >= _RECURS,
    }
    is_repair = scaling.reasons[0].code == "repair_first"
    if asked.verdict is not None and not scaling.yes and not is_repair:
        return RouteDecision(**common, action="stop", reasons=(*scaling.reasons, zone_reason))
    tiers = _tiers(asked, stats, zone, is_repair=is_repair)
    if not tiers:
        reasons = (zone_reason, *scaling.reasons)
        return RouteDecision(**common, action="escalate" if zone == "deadzone" else "stop", reasons=reasons)
    rungs, limits = _rungs(asked, stats, policy, tiers, _modes(asked, scaling, zone))
    if not rungs:
        return RouteDecision(**common, action="stop", reasons=(*limits[::-1], zone_reason))
    return RouteDecision(
        **common,
        action="repair" if is_repair else "run",
        tier=rungs[0].tier,
        mode=rungs[0].mode,
        k=rungs[0].k,
        rungs=rungs,
        synth=scaling.yes and asked.can_synth and asked.pressure == "none" and rungs[-1].tier == "full",
        cost_max=sum(rung.k * rung.cost for rung in rungs),
        reasons=(*scaling.reasons, zone_reason, *limits),
    )


def _tiers(asked: RouteRequest, stats: BucketStats, zone: Zone, *, is_repair: bool) -> tuple[Tier, ...]:
    """The tiers left by the zone, the pressure and an attempt already made."""
    left = set(TIERS)
    if asked.verdict is not None and not is_repair:  # the plain attempt was made; a repair replaces it
        left -= {"hot"}
    if zone == "deadzone":
        left &= {"hot"} if is_repair or stats.at("hot").n < DEADZONE_TRIES else set()
    elif zone == "easy":
        left -= {"full"}
    if asked.pressure == "severe":
        left &= {"hot", "probe"} if asked.impact == "high" else {"hot"}
    return tuple(tier for tier in TIERS if tier in left)


def _rungs(
    asked: RouteRequest, stats: BucketStats, policy: RoutePolicy, tiers: tuple[Tier, ...], modes: Mapping[Tier, RunMode]
) -> tuple[tuple[Rung, ...], list[RouteReason]]:
    """The ladder over these tiers, within pressure and the cost cap, and the reasons for any cuts."""
    is_generous = asked.impact == "high" and asked.pressure not in ("strong", "severe")
    ks = {"hot": 1, "probe": policy.k_probe, "full": policy.k_full_max if is_generous else policy.k_full_min}
    costs, left, rungs = tier_costs(stats), asked.cost_max, list[Rung]()
    for tier in tiers:
        k = ks[tier] if left is None else min(ks[tier], int(left / costs[tier]) if costs[tier] else ks[tier])
        if k < 1:
            break
        rungs.append(Rung(tier=tier, mode=modes[tier], k=k, cost=costs[tier]))
        left = None if left is None else left - k * costs[tier]
    said = [] if asked.pressure == "none" else [_pressure_reason(asked, policy)]
    if sum(rung.k for rung in rungs) < sum(ks[tier] for tier in tiers):
        words = f"what may still be spent ({asked.cost_max:g}) ends the ladder early"
        said.append(RouteReason(code="cost_cap", words=words, figures={"cost_max": asked.cost_max or 0}))
    return tuple(rungs), said


def _pressure_reason(asked: RouteRequest, policy: RoutePolicy) -> RouteReason:
    words = {
        "mild": "synthesis is cut",
        "strong": f"synthesis is cut, and full attempts to {policy.k_full_min}",
        "severe": "full attempts are cut, probes kept" if asked.impact == "high" else "one plain attempt alone",
    }[asked.pressure]
    return RouteReason(code="pressure", words=f"under {asked.pressure} pressure: {words}")


def _modes(asked: RouteRequest, scaling: Scaling, zone: Zone) -> dict[Tier, RunMode]:
    """Contrasting attempts where there is something to learn, plain ones elsewhere."""
    teaching = {"hard_cluster", "falling_utility", "rules_changed"}
    is_taught = zone == "frontier" or any(each.code in teaching for each in scaling.reasons)
    is_debated = not {"instruction_conflict", "self_inconsistency"}.isdisjoint(asked.reason_codes)
    return {"hot": "sot" if is_debated else "main", "probe": "kroll", "full": "matts" if is_taught else "kroll"}


def tier_costs(stats: BucketStats) -> dict[Tier, float]:
    """The mean logged cost of an attempt in each tier; a tier without runs is priced by its token budget."""
    known = {tier: cost for tier in TIERS if (cost := stats.at(tier).mean_cost)}
    unit = next((cost / TIER_TOKENS[tier] for tier, cost in known.items()), 1.0)
    return {tier: known.get(tier, unit * TIER_TOKENS[tier]) for tier in TIERS}


# -- zones --------------------------------------------------------------------------------------------


def zone_of(asked: RouteRequest, stats: BucketStats, policy: RoutePolicy) -> tuple[Zone, RouteReason, int]:
    """The zone of a bucket, the reason, and the number of runs missing for a firmer answer."""
    if _is_dead(stats):
        tasks, scaled = stats.tasks, stats.at("probe", "full").n
        words = f"{tasks.passes} of {tasks.n} tasks passed, with {scaled} scaled attempts: decompose instead of more"
        return "deadzone", _tally_reason("deadzone", words, tasks, p_lb95=p_lb95(tasks) or 0.0, scaled=scaled), 0
    first = stats.at(fresh=True)
    if first.n < policy.thin_n:
        missing = policy.thin_n - first.n
        words = f"{first.n} runs of this bucket are too few: {missing} more are needed"
        return "unknown", _tally_reason("not_enough_runs", words, first.tally, missing=missing), missing
    p_hat, lower = first.passes / first.n, p_lb95(first.tally) or 0.0
    is_high = asked.impact == "high"
    what = f"{first.passes} of {first.n} first attempts passed" + (f", p_lb95 {lower:.2f}" if is_high else "")
    if is_high and lower < policy.easy_rate <= p_hat:
        missing = runs_needed(policy.easy_rate, first.tally)
        words = f"{what}: easy by its rate, but the bound takes {missing} more straight passes to call it so"
        return "good", _tally_reason("bound_out_of_reach", words, first.tally, p_lb95=lower, missing=missing), missing
    read = lower if is_high else p_hat
    zone: Zone = "hard"
    for name, least in (("frontier", _FRONTIER), ("good", _GOOD), ("easy", policy.easy_rate)):
        if read >= least:
            zone = cast("Zone", name)
    return zone, _tally_reason(zone, f"{what}: {_ZONES[zone]}", first.tally, p_lb95=lower), 0


_ZONES: Mapping[str, str] = {
    "hard": "below the frontier",
    "frontier": "on the frontier, where further attempts pay most",
    "good": "above the frontier",
    "easy": "easy, nothing is scaled beforehand",
}


def is_dead_rate(tally: Tally) -> bool:
    """Return whether almost nothing passes, beyond chance."""
    bounds = wilson_bounds(tally.passes, tally.n)
    return tally.n >= DEADZONE_TRIES and bounds.lower < _DEADZONE_LOWER and bounds.upper < _DEADZONE_UPPER


def _is_dead(stats: BucketStats) -> bool:
    """Return whether tasks were tried hard and often enough, with almost no passes in any tier."""
    is_tried = stats.at("probe", "full").n >= DEADZONE_TRIES
    tallies = [stats.at(tier).tally for tier in TIERS]
    is_alive = any(each.n >= DEADZONE_TRIES and (p_lb95(each) or 0.0) >= _DEADZONE_LOWER for each in tallies)
    return is_tried and is_dead_rate(stats.tasks) and not is_alive


def _tally_reason(code: str, words: str, tally: Tally, **figures: float) -> RouteReason:
    return RouteReason(code=code, words=words, figures={"passes": tally.passes, "n": tally.n, **figures})


# -- scaling ------------------------------------------------------------------------------------------

_UNCERTAIN = frozenset(
    (
        *("insufficient_evidence", "partial_success", "self_inconsistency", "env_nondeterminism", "prover_incomplete"),
        *("tool_output_inconsistent", "instruction_conflict", "proof_not_found", "search_budget_exhausted"),
    )
)
"""Reason codes that leave open whether another attempt would do better."""


class Verdict(NamedTuple):
    """The verifier's result on one attempt."""

    verdict: str
    outcome: str
    reason_codes: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()


class Scaling(NamedTuple):
    """A decision on scaling, with all supporting reasons."""

    yes: bool
    reasons: tuple[RouteReason, ...]


def should_scale(asked: RouteRequest, policy: RoutePolicy) -> Scaling:
    """Decide whether a task is worth more than one plain attempt, from facts known before and after an attempt."""
    triggers = tuple(_triggers(asked))
    if asked.verdict is None:
        words = "nothing speaks for more than a plain attempt before one was made"
        return Scaling(bool(triggers), triggers or (RouteReason(code="no_trigger", words=words),))
    seen = Verdict(asked.verdict, asked.outcome or "UNKNOWN", asked.reason_codes, asked.violated)
    recurs = asked.cluster_hits >= _RECURS
    stop = hold_back(seen, asked.impact, recurs=recurs, repairs_left=policy.repairs_max - asked.repairs)
    return Scaling(False, (stop,)) if stop is not None else Scaling(True, (*_of_attempt(seen), *triggers))


def hold_back(seen: Verdict, impact: Level, *, recurs: bool, repairs_left: int) -> RouteReason | None:
    """Return a reason to stop spending after this attempt; None if there is none."""
    if is_pass(seen.verdict, seen.outcome) and seen.outcome == "OK":
        return RouteReason(code="confirmed", words="it passed, and that is confirmed")
    if fails_by_form(seen.verdict, seen.violated, seen.reason_codes) and repairs_left > 0:
        return RouteReason(code="repair_first", words="it failed on format or policy: repair it before anything else")
    if seen.outcome != "UNKNOWN":
        return None
    if impact == "low" and not recurs:
        words = "nobody knows whether it is right, and little depends on it: not scaled unless the failure recurs"
        return RouteReason(code="low_impact_unknown", words=words)
    if impact != "high" and NOT_EXECUTED & set(seen.reason_codes):
        words = "nothing could be executed: more attempts could not be told apart either, a sandbox comes first"
        return RouteReason(code="cannot_confirm", words=words)
    return None


def _of_attempt(seen: Verdict) -> Iterator[RouteReason]:
    if seen.verdict == "PARTIAL" or seen.outcome == "UNKNOWN":
        yield RouteReason(code="undecided", words=f"the attempt is {seen.verdict} with outcome {seen.outcome}")
    else:
        yield RouteReason(code="not_passed", words="the attempt did not pass")
    doubts = sorted(_UNCERTAIN & set(seen.reason_codes))
    if doubts:
        yield RouteReason(code="uncertain_codes", words=f"the verifier is uncertain: {', '.join(doubts)}")


def _triggers(asked: RouteRequest) -> Iterator[RouteReason]:
    """Reasons for more than a plain attempt that are known in advance."""
    if asked.impact == "high":
        yield RouteReason(code="high_impact", words="much depends on it")
    if asked.cluster_hits >= _RECURS:
        words = f"its failure came up {asked.cluster_hits} times in the window: a hard cluster"
        yield RouteReason(code="hard_cluster", words=words, figures={"hits": asked.cluster_hits})
    if asked.utility_change < -_UTILITY_FALL:
        words = f"the utility of its rules fell by {-asked.utility_change:.2f}"
        yield RouteReason(code="falling_utility", words=words, figures={"change": asked.utility_change})
    if asked.rules_changed:
        yield RouteReason(code="rules_changed", words="its rules have just changed")


# == logged runs ======================================================================================


class LogRow(NamedTuple):
    """A logged run with the fields used by the router, the rates and the flow map."""

    verdict: str | None
    """None if not judged."""
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
    """The number of failed attempts at the same task before this one."""
    cluster_sign: str | None = None
    """The visible sign of its failure, if the cluster has no name."""

    @property
    def counts(self) -> bool:
        """The run passed or failed; a verifier that could not do its work says neither."""
        is_mute = (self.verdict, self.outcome) == ("PARTIAL", "UNKNOWN") and "exec_unavailable" in self.reason_codes
        return self.verdict is not None and not is_mute

    @property
    def is_confirmed(self) -> bool:
        return self.passed and self.outcome == "OK"

    @property
    def rung(self) -> Tier:
        """The tier of the run, derived from the mode if it was not logged."""
        return self.tier or _TIER_OF_MODE.get(self.mode, "hot")


_TIER_OF_MODE: Mapping[str, Tier] = {"kroll": "probe", "matts": "probe", "synth": "full", "tree": "full"}
_NOBODY = "none"
"""The verifier of a run without a judge."""


def row_of(body: Mapping[str, Any]) -> LogRow:
    """Read an `event_log` item's body.

    Folded facts omit results that say nothing, so the verdict of a verifier that could not execute is read from the
    log.
    """
    log, facts = body["event_log"], body["facts"]
    verifier, run = log["verifier"], log.get("run", {})
    verdict, outcome = facts.get("verdict"), facts.get("outcome")
    codes = tuple(facts.get("reason_codes", ()))
    if verdict is None and verifier.get("verifier_id") != _NOBODY:
        verdict, outcome, codes = verifier.get("verdict"), verifier.get("outcome"), ("exec_unavailable",)
    mode, tier, number = run.get("mode"), facts.get("state", {}).get("budget_tier"), run.get("attempt")
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
        after=number - 1 if type(number) is int and number > 0 else 0,
    )


def stream_rows(reader: Reader, window: LogWindow) -> Iterator[LogRow]:
    """The logs of a window as rows, newest first, one by one."""
    for _at, body in stream_logs(reader, window):
        row = row_of(body)
        if window.bucket_key in (None, row.bucket_key):
            yield row


class TierCounts(NamedTuple):
    """Run counts, with cost in millionths, so that sums are exact in any order."""

    n: int = 0
    passes: int = 0
    confirmed: int = 0
    cost_micros: int = 0

    def plus(self, other: TierCounts) -> TierCounts:
        return TierCounts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def tally(self) -> Tally:
        return Tally(self.passes, self.n)

    @property
    def mean_cost(self) -> float | None:
        """None if nothing was run."""
        return self.cost_micros / self.n / _MICRO if self.n else None


@dataclass(slots=True)
class BucketStats:
    """Attempts of one bucket by tier; fresh ones are at tasks without earlier failures."""

    cells: dict[tuple[Tier, bool], TierCounts] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[LogRow]) -> BucketStats:
        stats = cls()
        for row in rows:
            stats.add(row)
        return stats

    def add(self, row: LogRow) -> None:
        """Count a run that passed or failed; a synthesis is not a separate attempt."""
        if row.counts and row.mode != "synth":
            one = TierCounts(1, int(row.passed), int(row.is_confirmed), round(max(0.0, row.cost) * _MICRO))
            key = row.rung, row.after <= 0
            self.cells[key] = self.cells.get(key, TierCounts()).plus(one)

    def at(self, *tiers: Tier, fresh: bool = False) -> TierCounts:
        """Attempts in these tiers (default: all); with `fresh`, only at tasks without earlier failures."""
        found = TierCounts()
        for (tier, is_fresh), counts in self.cells.items():
            if (not tiers or tier in tiers) and (is_fresh or not fresh):
                found = found.plus(counts)
        return found

    @property
    def tasks(self) -> Tally:
        """Tasks, regardless of the number of attempts, and how many finally passed."""
        n = self.at(fresh=True).n
        return Tally(min(n, self.at().passes), n)


def read_stats(reader: Reader, window: LogWindow, cluster_id: str | None = None) -> tuple[BucketStats, int]:
    """Count the runs of a window, and the occurrences of a failure in it."""
    stats, hits = BucketStats(), 0
    for row in stream_rows(reader, window):
        stats.add(row)
        hits += cluster_id is not None and row.cluster_id == cluster_id
    return stats, hits


# == rates ============================================================================================


def observe_rates(
    ctx: Context,
    tenant_id: str,
    owner: str,
    *,
    bucket_key: str | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
) -> RateReport:
    """Compute the observables over the runs learned from `since` until before `until`, with the resulting advice."""
    start, end = instant_of(since, "$.since"), instant_of(until, "$.until")
    check_window(start, end)
    policy, bucket = ctx.policy.route, bucket_named(bucket_key)
    window = LogWindow(owner, start, end, bucket)
    total, buckets = ctx.engine.read(tenant_id, lambda reader: read_rates(reader, window))
    seen = observables_of(total, policy, bucket_key=bucket, start=start, end=end)
    apart = (
        observables_of(each, policy, bucket_key=name or None, start=start, end=end)
        for name, each in sorted(buckets.items())
    )
    return RateReport(observables=seen, advice=escalation(seen), buckets=tuple(apart))


def read_rates(reader: Reader, window: LogWindow) -> tuple[RunCounts, dict[str, RunCounts]]:
    """Count a window in total and by bucket; runs without a bucket are under the empty name."""
    total, buckets = RunCounts(), dict[str, RunCounts]()
    for row in stream_rows(reader, window):
        total.add(row)
        buckets.setdefault(row.bucket_key or "", RunCounts()).add(row)
    return total, buckets


@dataclass(slots=True)
class RunCounts:
    """Counts behind the observables, independent of the order of rows."""

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
    """Cluster → description, if read off its runs."""

    def add(self, row: LogRow) -> None:
        """Count a run. Unjudged runs are only counted as such."""
        if row.verdict is None:
            self.unjudged += 1
            return
        codes = set(row.reason_codes)
        is_unknown, is_unrun = row.outcome == "UNKNOWN", bool(codes & NOT_EXECUTED)
        is_unshown = "insufficient_evidence" in codes
        self.n += 1
        self.passed += row.passed
        self.confirmed += row.is_confirmed
        self.unknown += is_unknown
        self.not_executed += is_unrun
        self.violated += bool(row.violated)
        self.unshown += is_unshown
        self.overinjected += not codes.isdisjoint(("memory_overinject", "praxis_tactic_overinject"))
        self.unknown_not_executed += is_unknown and is_unrun
        self.unknown_unshown += is_unknown and is_unshown and not is_unrun
        if row.cluster_id is not None:
            self.clustered += 1
            self.clusters[row.cluster_id] = self.clusters.get(row.cluster_id, 0) + 1
            if row.cluster_sign is not None:
                self.signs[row.cluster_id] = min(row.cluster_sign, self.signs.get(row.cluster_id, row.cluster_sign))
            if len(self.clusters) > 2 * _CLUSTERS_MAX:
                self.clusters = self.kept_clusters()
                self.signs = {id_: self.signs[id_] for id_ in self.clusters if id_ in self.signs}

    def kept_clusters(self) -> dict[str, int]:
        """The clusters with the lowest hashes. None of them was ever dropped, so their counts are complete."""
        if len(self.clusters) <= _CLUSTERS_MAX:
            return self.clusters
        hashes = sorted(self.clusters, key=lambda id_: sha256(id_.encode("utf-8", "surrogatepass")).digest())
        return {id_: self.clusters[id_] for id_ in hashes[:_CLUSTERS_MAX]}


def observables_of(
    seen: RunCounts,
    policy: RoutePolicy,
    *,
    bucket_key: str | None = None,
    start: str | None = None,
    end: str | None = None,
) -> Observables:
    """Convert the counts to rates."""
    n, thin, clusters = seen.n, policy.thin_n, seen.kept_clusters()
    top = sorted(clusters.items(), key=lambda each: (-each[1], each[0]))[:_CLUSTERS_TOP]
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
                recurs=count >= _RECURS,
                **({"sign": seen.signs[id_]} if id_ in seen.signs else {}),
            )
            for id_, count in top
        ),
        clustered=seen.clustered,
        unjudged=seen.unjudged,
        uncounted=seen.clustered - sum(clusters.values()),
    )


def rate_of(count: int, n: int, thin: int) -> Rate:
    """A share with its interval; below `thin` runs, only the counts."""
    if n < thin:
        return Rate(n=n, count=count, unknown=True, runs_missing=thin - n)
    bounds = wilson_bounds(count, n)
    return Rate(n=n, count=count, unknown=False, rate=count / n, lower=bounds.lower, upper=bounds.upper)


def escalation(seen: Observables) -> tuple[RouteReason, ...]:
    """Derive advice from the observables, most urgent first: a sandbox before a grader (§5.4)."""
    if seen.pass_rate.unknown:
        words = f"{seen.n} judged runs say nothing yet: {seen.pass_rate.runs_missing} more"
        return (RouteReason(code="too_few_runs", words=words, figures=_figures(seen.pass_rate)),)
    said = [*_unknown_advice(seen), *_form_advice(seen)]
    recurring = [each for each in seen.cluster_recurrence if each.recurs]
    if recurring:
        first = recurring[0]
        words = f"{len(recurring)} of the failures recur, the first {first.count} times: draft a guardrail, and test it"
        said.append(RouteReason(code="cluster_recurs", words=words, figures=first.to_wire()))
    return tuple(said) or (
        _advice("steady", f"nothing to change: no rate is above {_HIGH_RATE:.0%} beyond doubt", seen.unknown_rate),
    )


def _unknown_advice(seen: Observables) -> list[RouteReason]:
    """Advice on unknown outcomes. If nothing could be executed, a grader would only hide that."""
    said: list[RouteReason] = []
    executed, shown, unknown = seen.exec_unavailable_rate, seen.insufficient_evidence_rate, seen.unknown_rate
    if _is_high(executed) or (_is_high(unknown) and _share(seen.unknown_by_execution) >= _CAUSE_SHARE):
        words = f"{_share(executed):.0%} of runs could not be executed: get a sandbox or a harness"
        said.append(_advice("get_sandbox", words, executed))
    if _is_high(shown):
        what = f"{_share(shown):.0%} of runs claim what they do not show"
        if said:
            said.append(_advice("grader_waits", f"{what}: look again when they can be executed", shown))
        elif _is_high(unknown):
            words = f"{what}, and execution could not decide: a small grader for these runs alone may be worth a trial"
            said.append(_advice("get_grader", words, shown))
        else:
            words = f"{what}, though outcomes are known: ask for evidence in the task, no grader"
            said.append(_advice("ask_for_evidence", words, shown))
    if not said and _is_high(unknown):
        words = f"{_share(unknown):.0%} of outcomes are unknown without a reason: add a check that executes"
        said.append(_advice("add_execution_check", words, unknown))
    return said


def _form_advice(seen: Observables) -> Iterator[RouteReason]:
    if _is_high(seen.l1_violation_rate):
        words = f"{_share(seen.l1_violation_rate):.0%} of runs break a constraint: repair the format before scaling"
        yield _advice("repair_format", words, seen.l1_violation_rate)
    if _is_high(seen.overinject_rate):
        words = f"{_share(seen.overinject_rate):.0%} of runs get too much injected: cut it"
        yield _advice("cut_injection", words, seen.overinject_rate)


def _advice(code: str, words: str, rate: Rate) -> RouteReason:
    return RouteReason(code=code, words=words, figures=_figures(rate))


def _is_high(rate: Rate) -> bool:
    return rate.lower is not None and rate.lower > _HIGH_RATE


def _share(rate: Rate) -> float:
    return rate.count / rate.n if rate.n else 0.0


def _figures(rate: Rate) -> JsonObject:
    return {name: value for name, value in rate.to_wire().items() if name != "unknown"}
