"""Is a task worth more than one plain attempt? Asked before the first one and after each that did not pass (RC-26)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from muniment.core.policy import RoutePolicy
from muniment.core.scope import Level
from muniment.rules.routing.log_rows import NOT_EXECUTED
from muniment.rules.routing.records import RouteReason, RouteRequest
from muniment.verify.results import fails_by_form, is_pass

__all__ = ["UNCERTAIN", "Scaling", "Seen", "held_back", "needs_repair", "should_scale"]

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
