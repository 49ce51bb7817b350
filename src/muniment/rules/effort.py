"""How far a task is taken: by the policy of rollouts alone, or by what a router decided beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.contracts.runs import PolicySignals
from muniment.learning.run_blocks import PlannedRung
from muniment.rules.rollouts.budget import Goal, Step, cut_step, next_step

if TYPE_CHECKING:
    from muniment.core.policy import RoutePolicy
    from muniment.rules.attempt_records import Trial
    from muniment.rules.rollouts.budget import Caps, Made
    from muniment.rules.routing.climbing import Attempt
    from muniment.rules.routing.records import NextStep, RouteDecision, RouteRequest

    Router = Callable[[RouteRequest], RouteDecision]

__all__ = ["Plan", "goal_plan", "has_own_tier", "routed_plan", "signals_of"]


class Plan(NamedTuple):
    """What comes next, asked after each wave of attempts."""

    next: Callable[[Sequence[Trial], Made], Step]
    rungs: tuple[PlannedRung, ...]
    """What would be tried one after another if nothing passed; caps and repairs are not foreseen."""
    decision: RouteDecision | None = None


def goal_plan(goal: Goal, caps: Caps, policy: RoutePolicy) -> Plan:
    return Plan(lambda _trials, made: next_step(goal, made, caps, policy), _goal_rungs(goal))


def has_own_tier(mode: str, decision: RouteDecision | None) -> bool:
    """Is an attempt of this mode told with a tier? A single one is, where a router chose it."""
    return decision is not None or mode not in ("main", "sot", "tree")


def _goal_rungs(goal: Goal) -> tuple[PlannedRung, ...]:
    rungs, before = [], 0
    for wave in goal.waves:
        tier = {"tier": wave.tier} if has_own_tier(wave.mode, None) else {}
        if wave.total > before:
            rungs.append(PlannedRung(mode=wave.mode, k=wave.total - before, **tier))
        before = max(before, wave.total)
    return (*rungs, *_SYNTHESIS) if goal.synth and before > 1 else tuple(rungs)


def _routed_rungs(decision: RouteDecision) -> tuple[PlannedRung, ...]:
    rungs = tuple(PlannedRung(mode=each.mode, tier=each.tier, k=each.k) for each in decision.rungs if each.k)
    if not rungs:
        return (PlannedRung(mode="main", tier="hot", k=1),)
    return (*rungs, *_SYNTHESIS) if decision.synth and sum(each.k for each in rungs) > 1 else rungs


_SYNTHESIS = (PlannedRung(mode="synth", tier="full", k=1),)


def routed_plan(decision: RouteDecision, caps: Caps, policy: RoutePolicy, *, is_parallel: bool) -> Plan:
    """Up the ladder that a router chose. Where it would try nothing the task is tried once: an answer was asked for."""
    from muniment.rules.routing.climbing import next_step as climb

    goal = Goal((), decision.impact)

    def after(trials: Sequence[Trial], made: Made) -> Step:
        if not trials and not decision.rungs:
            return Step("attempt", decision.reasons[0].code, decision.reasons[0].words, "main", 1)
        step = _step_of(climb(decision, [_climbed(each) for each in trials]), decision, trials, is_parallel)
        return step if step.action in ("stop", "escalate") else cut_step(step, made, goal, caps, policy)

    return Plan(after, _routed_rungs(decision), decision)


def signals_of(decision: RouteDecision) -> PolicySignals:
    """What the router saw: the risk of failing, what its choice wins over the next cheaper, and that for its price."""
    cheaper = decision.cheaper
    won, paid = (0.0, 0.0) if cheaper is None else (cheaper.pass_rate_lost, cheaper.cost_saved)
    return PolicySignals(
        risk_score=1 - decision.expected.pass_rate, opp_score=won, efficiency=won / paid if paid > 0 else None
    )


def _climbed(trial: Trial) -> Attempt:
    from muniment.rules.routing.climbing import Attempt

    result = trial.judged
    return Attempt(
        result.verdict,
        result.outcome,
        trial.tier or "hot",
        trial.kind,
        tuple(result.reason_codes or ()),
        tuple(result.violated_constraints or ()),
        trial.figure,
    )


def _step_of(advised: NextStep, decision: RouteDecision, trials: Sequence[Trial], is_parallel: bool) -> Step:
    code, words = advised.reason.code, advised.reason.words
    if advised.action in ("stop", "escalate", "repair"):
        return Step(advised.action, code, words, advised.mode or "main", int(advised.action == "repair"))
    if advised.action == "synth":
        return Step("synth", code, words, "synth", 1, "full")
    rung = next(each for each in decision.rungs if each.tier == advised.action)
    made = sum(each.kind == "attempt" and each.tier == rung.tier for each in trials)
    return Step("attempt", code, words, rung.mode, rung.k - made if is_parallel else 1, rung.tier)
