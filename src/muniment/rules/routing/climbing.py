"""What to do next after the attempts so far: up the ladder until a pass, repair before more, synthesis last (RC-20)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from muniment.rules.routing.records import NextStep, RouteDecision, RouteReason, Rung, StepAction, Tier
from muniment.rules.routing.should_scale import Seen, held_back
from muniment.verify.results import is_pass

__all__ = ["Attempt", "next_step"]

_SUMMARIES_MIN = 2
"""Synthesis joins at least so many attempts."""


class Attempt(NamedTuple):
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


def next_step(decision: RouteDecision, attempts: Sequence[Attempt]) -> NextStep:
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


def _is_done(decision: RouteDecision, attempts: Sequence[Attempt]) -> NextStep | None:
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


def _climb(decision: RouteDecision, attempts: Sequence[Attempt]) -> NextStep:
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


def _at_the_top(decision: RouteDecision, attempts: Sequence[Attempt]) -> NextStep:
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


def _over(decision: RouteDecision, attempts: Sequence[Attempt], cost: float) -> NextStep | None:
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
