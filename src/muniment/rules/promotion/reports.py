"""Reports of a promotion, in lines that a person can read before signing: trial, replay, tests, lint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from muniment.contracts.rules import RuleRecord
from muniment.core.policy import RulePolicy
from muniment.core.stats import Comparison
from muniment.learning.rule_state import CanaryPlan
from muniment.rules.promotion.gate import reasons_of, rule_digest
from muniment.rules.promotion.records import GateReport, PromotionReport, ReplayReport
from muniment.rules.promotion.trials import CanaryVerdict, comparison_of

__all__ = ["report_change", "report_narrowing", "report_promotion"]


def report_promotion(
    rule: RuleRecord,
    gate: GateReport,
    replay: ReplayReport | None,
    plan: CanaryPlan,
    comparison: Comparison | Mapping[str, Any],
    verdict: CanaryVerdict,
    policy: RulePolicy,
    *,
    report_id: str,
    now: str,
    signed_by: str | None = None,
    judges: Mapping[str, int] | None = None,
    counts_replay: bool = False,
) -> PromotionReport:
    """What speaks for making a rule active. It decides nothing: `activation.activated` looks at all of it again."""
    seen = comparison_of(comparison, policy.canary)
    replayed = () if replay is None else (_replay_line(replay),)
    optional: dict[str, Any] = {} if replay is None else {"replay_report_id": replay.report_id}
    optional |= {"judges": dict(judges)} if judges else {}
    optional |= {"counts_replay": True} if counts_replay else {}
    return PromotionReport(
        report_id=report_id,
        rule_id=rule.rule_id,
        rule_digest=rule_digest(rule),
        action="promote",
        gate_report_id=gate.report_id,
        canary=plan,
        comparison=seen.to_wire(),
        decision=seen.decision,
        reasons=(*verdict.reasons, *replayed, *reasons_of(gate)),
        created_at=now,
        **optional,
        **_names(signed_by, policy.promote.signature, policy),
    )


def report_narrowing(
    cut: RuleRecord,
    exception_id: str,
    gate: GateReport,
    policy: RulePolicy,
    *,
    report_id: str,
    now: str,
    signed_by: str | None = None,
) -> PromotionReport:
    """Why an active rule stands in a smaller place from now on: another is an exception to it."""
    return PromotionReport(
        report_id=report_id,
        rule_id=cut.rule_id,
        rule_digest=rule_digest(cut),
        action="promote",
        gate_report_id=gate.report_id,
        reasons=(f"{exception_id} is an exception to it", *reasons_of(gate)),
        created_at=now,
        **_names(signed_by, policy.promote.signature, policy),
    )


def report_change(
    rule: RuleRecord,
    action: Literal["retire", "rollback"],
    reasons: Sequence[str],
    policy: RulePolicy,
    *,
    report_id: str,
    now: str,
    signed_by: str | None = None,
    acts_again: bool = False,
) -> PromotionReport:
    """Why a rule is taken out of force, or put back as it was. What acts again is signed for as a promotion is."""
    needed = policy.promote.signature if acts_again else policy.promote.retire_signature
    return PromotionReport(
        report_id=report_id,
        rule_id=rule.rule_id,
        rule_digest=rule_digest(rule),
        action=action,
        reasons=tuple(reasons),
        created_at=now,
        **_names(signed_by, needed, policy),
    )


def _replay_line(replay: ReplayReport) -> str:
    effect = "" if replay.effect is None else f", effect {replay.effect:+.3f}"
    return (
        f"replay: {replay.with_passes} of {replay.pairs} passed with it, {replay.without_passes} without{effect}: "
        f"{replay.decision}; {replay.notes}"
    )


def _names(signed_by: str | None, needed: str, policy: RulePolicy) -> dict[str, Any]:
    if signed_by is not None:
        return {"signed_by": signed_by}
    return {"allowed_by": policy.policy_id} if needed == "policy" else {}
