"""From a report to the words of a verifier: reason codes, a verdict and a score (RC-17)."""

from __future__ import annotations

from collections import Counter

from muniment.contracts.runs import FGFCOverall, FGFCReport, FGFCUnit
from muniment.core.scope import Verdict

__all__ = ["REASON_OF_ERROR", "agree", "fact_reason_codes", "fact_score", "fact_verdict", "unit_score"]

REASON_OF_ERROR = {
    "PredE": "fact_predicate_mismatch",
    "EntE": "fact_entity_mismatch",
    "CircE": "fact_circumstance_mismatch",
    "CorefE": "fact_coreference_mismatch",
    "LinkE": "fact_discourse_link_mismatch",
    "OutE": "fact_extrinsic_claim",
}
_CODES_MAX = 3


def fact_reason_codes(report: FGFCReport) -> tuple[str, ...]:
    """At most three, those of refuted units first, then the commonest; none where everything is supported."""
    if not report.units:
        return ("insufficient_evidence",)
    refuted: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for unit in report.units or ():
        if unit.verdict == "SUPPORTED":
            continue
        code = REASON_OF_ERROR[unit.error_type] if unit.error_type else "insufficient_evidence"
        every[code] += 1
        refuted[code] += unit.verdict == "REFUTED"
    return tuple(sorted(every, key=lambda code: (-refuted[code], -every[code], code))[:_CODES_MAX])


def fact_verdict(report: FGFCReport) -> Verdict:
    """FAIL where a unit is refuted, PARTIAL where one has no evidence or nothing was said, else PASS."""
    verdicts = {unit.verdict for unit in report.units or ()} or {"NOT_ENOUGH_INFO"}
    return "FAIL" if "REFUTED" in verdicts else "PARTIAL" if "NOT_ENOUGH_INFO" in verdicts else "PASS"


def fact_score(report: FGFCReport) -> float:
    """The chance that the documents support the whole output, 0 to 1: `VerifierResult.score`, confidence in packs."""
    return _support(report.overall)


def unit_score(unit: FGFCUnit) -> float:
    """The chance that the documents support a unit, 0 to 1: at least one half if it is SUPPORTED, else at most."""
    return _support(unit)


def agree(score: float, verdict: str | None) -> float:
    """A score that stands on the side of one half that its verdict says."""
    return max(0.5, score) if verdict == "SUPPORTED" else min(0.5, score)


def _support(record: FGFCOverall | FGFCUnit | None) -> float:
    value = ((record.model_extra if record is not None else None) or {}).get("support", 0.0)
    return float(value) if isinstance(value, int | float) else 0.0
