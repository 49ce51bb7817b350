"""The router (RC-26): which tier and mode a task gets, how far it may go, why, and what would have been cheaper.

It takes the ladder with the least expected cost of a pass among those that keep the pass rate: at least the share of
what the most generous ladder is expected to pass that the policy asks for at this impact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple

from muniment.core.policy import RoutePolicy
from muniment.core.record import JsonObject
from muniment.core.scope import RunMode
from muniment.core.stats import p_lb95, runs_needed, wilson_bounds
from muniment.rules.routing.bucket_stats import BucketStats
from muniment.rules.routing.ladders import (
    Ladder,
    TierGuess,
    expected_of,
    guesses_of,
    hoped_cost_per_pass,
    ladders_of,
    likeness_of,
)
from muniment.rules.routing.records import (
    TIERS,
    Expected,
    RouteDecision,
    RouteReason,
    RouteRequest,
    Rung,
    Tier,
    WouldHaveBeen,
    Zone,
)
from muniment.rules.routing.should_scale import Scaling, should_scale

__all__ = ["route", "zone_of"]

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
