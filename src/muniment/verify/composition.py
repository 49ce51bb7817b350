"""Layers into one result (RC-17): static checks and facts speak the verdict, execution the outcome. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from muniment.contracts.runs import FGFCReport, VerifierResult
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import JudgeKind, Outcome, Verdict
from muniment.verify.clusters import failure_cluster_id
from muniment.verify.facts.codes import fact_reason_codes, fact_score, fact_verdict
from muniment.verify.judges import judge_block
from muniment.verify.outputs import Finding, Output
from muniment.verify.static.base import Constraint
from muniment.verify.static.evaluation import REASONS_MAX, evaluate, reasons_of, verdict_of
from muniment.verify.taxonomy import DEFAULT_REGISTRY, Registry
from muniment.verify.verdicts import (
    PROFILE_EXECUTED,
    PROFILE_STATIC,
    compose_layers,
    is_pass,
    score_of,
    worst_verdict,
)

__all__ = ["Execution", "compose_result", "verify_static"]

NOTES_CHARS_MAX = 1000


class Execution(NamedTuple):
    """What running an output said: L3."""

    outcome: Outcome
    reason_codes: tuple[str, ...] = ()
    message: str | None = None
    judge: JudgeKind | None = None


def compose_result(
    findings: Sequence[Finding] | None = None,
    facts: FGFCReport | None = None,
    execution: Execution | None = None,
    *,
    registry: Registry = DEFAULT_REGISTRY,
) -> VerifierResult:
    """The result of the layers that were asked; one that was not asked proves nothing, and holds nothing against it."""
    verdicts: list[Verdict] = []
    if findings is not None:
        verdicts.append(verdict_of(findings))
    if facts is not None:
        verdicts.append(fact_verdict(facts))
    others = worst_verdict(verdicts) if verdicts else None
    if not verdicts and execution is not None and execution.outcome == "UNKNOWN":
        verdicts.append("PARTIAL")  # the one layer that was asked did not decide: that is no pass
    verdict, outcome = compose_layers(verdicts, None if execution is None else execution.outcome)
    keys = tuple(dict.fromkeys(registry.check_key(each.key) for each in findings or () if not each.ok))
    reasons = _reasons(findings, facts, execution, registry)
    stage = "L3" if execution is not None and execution.outcome != "OK" else "L1"
    failed = bool(keys or reasons)
    fields: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "verifier_id": PROFILE_STATIC if execution is None else PROFILE_EXECUTED,
        "verdict": verdict,
        "outcome": outcome,
        "score": _score(verdict, outcome, findings, facts, execution),
        "score_method": "rule_check",
        "score_evidence": _evidence(findings, facts, execution),
        "reason_codes": reasons or None,
        "violated_constraints": keys or None,
        "failure_cluster_id": failure_cluster_id(stage, keys, reasons) if failed else None,
        "notes": _notes(findings, facts, execution),
        "fgfc": None if facts is None else facts.to_wire(),
    }
    if execution is not None and execution.judge is not None:
        fields["judge"] = judge_block(execution.judge, others)
    return VerifierResult(**fields)


def _score(
    verdict: Verdict,
    outcome: Outcome,
    findings: Sequence[Finding] | None,
    facts: FGFCReport | None,
    execution: Execution | None,
) -> float:
    """Where facts were checked, the chance that they hold, unless the form or the execution scores less."""
    if facts is None:
        return score_of(verdict, outcome)
    others = [] if findings is None else [verdict_of(findings)]
    form, ran = compose_layers(others, None if execution is None else execution.outcome)
    return fact_score(facts) if is_pass(form, ran) else min(fact_score(facts), score_of(form, ran))


def verify_static(
    output: Output, constraints: Iterable[Constraint], *, registry: Registry = DEFAULT_REGISTRY
) -> VerifierResult:
    """Constraints on an output, L1 alone: without execution the outcome is UNKNOWN."""
    return compose_result(evaluate(output, constraints), registry=registry)


def _reasons(
    findings: Sequence[Finding] | None, facts: FGFCReport | None, execution: Execution | None, registry: Registry
) -> tuple[str, ...]:
    """At most three: what execution says first, then facts, then form."""
    codes = [
        *(execution.reason_codes if execution is not None else ()),
        *(fact_reason_codes(facts) if facts is not None else ()),
        *(reasons_of(findings) if findings is not None else ()),
    ]
    return tuple(registry.check_reason(code) for code in list(dict.fromkeys(codes))[:REASONS_MAX])


def _evidence(
    findings: Sequence[Finding] | None, facts: FGFCReport | None, execution: Execution | None
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if findings is not None:
        fields |= {"checked": len(findings), "violated": sum(not each.ok for each in findings)}
    if facts is not None:
        fields["support"] = fact_score(facts)
    if execution is not None:
        fields["execution"] = execution.outcome
    return fields


def _notes(findings: Sequence[Finding] | None, facts: FGFCReport | None, execution: Execution | None) -> str | None:
    notes = [f"{each.key}: {each.message}" for each in findings or () if not each.ok]
    units = (facts.units or ()) if facts is not None else ()
    notes += [f"{each.unit_id}: {each.justification}" for each in units if each.verdict != "SUPPORTED"]
    if execution is not None and execution.message:
        notes.append(execution.message)
    return "; ".join(notes)[:NOTES_CHARS_MAX] or None
