"""Combine the results of verification layers: verdict and outcome, score, reason codes, buckets.

L1 (static checks) and the fact check give the verdict, L3 (execution) the outcome. L2, a grader model, is not asked
here: its judgements route further work and decide nothing. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from muniment.contracts.runs import FGFCOverall, FGFCReport, FGFCUnit, VerifierResult
from muniment.core.canonical import short_id
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import JudgeKind, Level, Outcome, Verdict
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput
from muniment.verify._constraint import Constraint
from muniment.verify.constraints import DEFAULT_REGISTRY, REASONS_MAX, evaluate, reasons_of, verdict_of
from muniment.verify.outputs import Finding, Output
from muniment.verify.taxonomy import Registry

NOTES_CHARS_MAX = 1000


class Execution(NamedTuple):
    """Result of running an output (L3)."""

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
    """Combine the layers that were asked; a layer that was not asked neither proves nor disproves anything."""
    verdicts: list[Verdict] = []
    if findings is not None:
        verdicts.append(verdict_of(findings))
    if facts is not None:
        verdicts.append(fact_verdict(facts))
    others = worst_verdict(verdicts) if verdicts else None
    if not verdicts and execution is not None and execution.outcome == "UNKNOWN":
        verdicts.append("PARTIAL")  # the only layer asked did not decide: that is no pass
    verdict, outcome = compose_layers(verdicts, None if execution is None else execution.outcome)
    keys = tuple(dict.fromkeys(registry.check_key(each.key) for each in findings or () if not each.ok))
    reasons = _reason_codes(findings, facts, execution, registry)
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
    """Return the chance that the facts hold if they were checked, capped by the scores of form and execution."""
    if facts is None:
        return score_of(verdict, outcome)
    others = [] if findings is None else [verdict_of(findings)]
    form, ran = compose_layers(others, None if execution is None else execution.outcome)
    return fact_score(facts) if is_pass(form, ran) else min(fact_score(facts), score_of(form, ran))


def verify_static(
    output: Output, constraints: Iterable[Constraint], *, registry: Registry = DEFAULT_REGISTRY
) -> VerifierResult:
    """Check constraints alone (L1): without execution the outcome is UNKNOWN."""
    return compose_result(evaluate(output, constraints), registry=registry)


def _reason_codes(
    findings: Sequence[Finding] | None, facts: FGFCReport | None, execution: Execution | None, registry: Registry
) -> tuple[str, ...]:
    """At most three: execution first, then facts, then form."""
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


# -- verdict and outcome -------------------------------------------------------------------------------

PROFILE_STATIC = "v_l1_only"
PROFILE_EXECUTED = "v_l1+l3_exec"

_SEVERITY: dict[Verdict, int] = {"PASS": 0, "PARTIAL": 1, "FAIL": 2}


def is_pass(verdict: str, outcome: str) -> bool:
    """Return whether a result passes, defined only here: a known wrong outcome is never a PASS."""
    return verdict == "PASS" and outcome != "FAIL"


@dataclass(frozen=True, slots=True)
class Scores:
    """Default scores of results without a score of their own."""

    pass_ok: float = 1.0
    pass_unknown: float = 0.6
    partial: float = 0.3
    fail: float = 0.0


DEFAULT_SCORES = Scores()


def score_of(verdict: str, outcome: str, scores: Scores = DEFAULT_SCORES) -> float:
    if verdict == "FAIL" or outcome == "FAIL":
        return scores.fail
    if verdict == "PARTIAL":
        return scores.partial
    return scores.pass_ok if outcome == "OK" else scores.pass_unknown


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst verdict of several checks; PASS if there are none."""
    return max(verdicts, key=_SEVERITY.__getitem__, default="PASS")


def compose_layers(verdicts: Iterable[Verdict], execution: Outcome | None = None) -> tuple[Verdict, Outcome]:
    """Combine layers into a verdict and an outcome.

    `verdicts` are those of L1 and of the fact check; `execution` is the outcome of L3, None if nothing was run. Without
    L3 the outcome is UNKNOWN, whatever the verdict: a broken format does not prove the answer wrong. A failed execution
    also fails the verdict.
    """
    verdict = worst_verdict(verdicts)
    if execution is None:
        return verdict, "UNKNOWN"
    return ("FAIL" if execution == "FAIL" else verdict), execution


UNRUN = "exec_unavailable"
"""Reason code of a run that never ran or could not be judged: it has not failed, and counts for nothing."""
UNJUDGED: tuple[Verdict, Outcome] = ("PARTIAL", "UNKNOWN")
"""Verdict and outcome of such a run."""


def says_nothing(verdict: str, outcome: str, reason_codes: Collection[str] | None) -> bool:
    """True if a verifier could not do its work, so that the run neither passed nor failed."""
    return (verdict, outcome) == UNJUDGED and UNRUN in (reason_codes or ())


# -- by which judge a run passed -----------------------------------------------------------------------

_VERDICTS = ("PASS", "PARTIAL", "FAIL")
_OF_EXECUTION = frozenset({"test_fail"})
_UNNAMED: JudgeKind = "in_process"


def judge_block(kind: JudgeKind, others: Verdict | None) -> dict[str, Any]:
    """Judge block of a result: the kind, and the other layers' verdict if any was asked."""
    return {"kind": kind} if others is None else {"kind": kind, "others": others}


def judge_of(result: VerifierResult) -> str | None:
    """The kind of judge that ran the output; None if nothing was run, or the caller's verifier decided.

    An older result that was run but names no judge dates from when every suite shared a process with the code.
    """
    block = _block(result)
    kind = block.get("kind")
    if isinstance(kind, str) and kind:
        return kind
    return _UNNAMED if result.verifier_id == PROFILE_EXECUTED else None


def _block(result: VerifierResult) -> dict[str, Any]:
    held = (result.model_extra or {}).get("judge")
    return dict(held) if isinstance(held, dict) else {}


class Taught(NamedTuple):
    """A result in the form that learning reads."""

    result: VerifierResult
    judge: str | None = None
    set_aside: Outcome | None = None
    """Outcome of execution that is not learned from."""


def taught_by(result: VerifierResult, kinds: Collection[str]) -> Taught:
    """Reduce the result for learning, dropping a judge whose kind may not teach."""
    judge = judge_of(result)
    if judge is None or judge in kinds or result.outcome == "UNKNOWN":
        return Taught(result, judge)
    others = _block(result).get("others")
    codes = tuple(code for code in result.reason_codes or () if code not in _OF_EXECUTION)
    verdict, outcome = UNJUDGED
    if others in _VERDICTS:
        verdict = others
    else:
        codes = (UNRUN,)
    left = {
        "verdict": verdict,
        "outcome": outcome,
        "score": score_of(verdict, outcome),
        "reason_codes": codes or None,
        "failure_cluster_id": None if result.outcome == "FAIL" else result.failure_cluster_id,
    }
    return Taught(result.model_copy(update=left), judge, result.outcome)


# -- failing by form -----------------------------------------------------------------------------------

_FORM_KEYS = ("FORMAT:", "SCHEMA:", "POLICY:")
"""Constraints about an answer's form, not its correctness."""
_FORM_CODES = frozenset({"format_leak", "truncation_or_cutoff"})


def broken_forms(violated: Iterable[str], reason_codes: Iterable[str]) -> list[str]:
    """Violated constraints and reason codes that are about the answer's form."""
    return [
        *(key for key in violated if key.startswith(_FORM_KEYS)),
        *(code for code in reason_codes if code in _FORM_CODES),
    ]


def fails_by_form(verdict: str, violated: Iterable[str], reason_codes: Iterable[str]) -> bool:
    """True for a FAIL on format or policy: the same answer, corrected, may pass, while more attempts would repeat the
    violation.
    """
    return verdict == "FAIL" and bool(broken_forms(violated, reason_codes))


# -- which failures are the same -----------------------------------------------------------------------


def failure_cluster_id(stage: str, constraints: Iterable[str], reasons: Iterable[str]) -> str:
    """A deterministic id, independent of order and repetition."""
    return short_id("fc", [stage, sorted(set(constraints)), sorted(set(reasons))])


# -- the bucket of a run -------------------------------------------------------------------------------

DEFAULT_DOMAIN = "general"

_LEVELS: tuple[Level, ...] = get_args(Level)
_BUCKET_KEY = lazy_pattern(r"I([123])\|([^|]+)\|clarity_(low|med|high)")
_RESERVED = lazy_pattern(r"[%|\x00-\x20\x7f]")
_ESCAPED = lazy_pattern(r"%([0-9A-F]{2})")


class Bucket(NamedTuple):
    """The three axes of a bucket."""

    impact: Level
    domain: str
    clarity: Level


def bucket_key(impact: Level, domain: str, clarity: Level) -> str:
    """Format a bucket key. A domain may be any text: characters that would break the key are percent-escaped."""
    if impact not in _LEVELS or clarity not in _LEVELS:
        wrong = impact if impact not in _LEVELS else clarity
        raise InvalidInput(f"{wrong!r} is not a level", hint=f"one of {', '.join(_LEVELS)}")
    name = domain.strip() or DEFAULT_DOMAIN
    return f"I{_LEVELS.index(impact) + 1}|{_RESERVED.sub(_escape, name)}|clarity_{clarity}"


def parse_bucket_key(key: str) -> Bucket:
    """Parse a key made by `bucket_key`; raise `InvalidInput` for anything else."""
    found = _BUCKET_KEY.fullmatch(key)
    if found is not None:
        level, name, clarity = found.groups()
        domain = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), name)
        bucket = Bucket(_LEVELS[int(level) - 1], domain, _LEVELS[_LEVELS.index(clarity)])
        if bucket_key(*bucket) == key:
            return bucket
    raise InvalidInput(f"{key!r} is not a bucket key", hint="I1|general|clarity_high, as bucket_key() writes it")


def _escape(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


# -- of the fact check ---------------------------------------------------------------------------------

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
    """At most three codes, those of refuted units first, then the commonest; none if everything is supported."""
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
    """FAIL if a unit is refuted, PARTIAL if one lacks evidence or there are no units, else PASS."""
    verdicts = {unit.verdict for unit in report.units or ()} or {"NOT_ENOUGH_INFO"}
    return "FAIL" if "REFUTED" in verdicts else "PARTIAL" if "NOT_ENOUGH_INFO" in verdicts else "PASS"


def fact_score(report: FGFCReport) -> float:
    """Chance that the documents support the whole output, 0 to 1: `VerifierResult.score`, confidence in packs."""
    return _support_of(report.overall)


def unit_score(unit: FGFCUnit) -> float:
    """Chance that the documents support a unit, 0 to 1: at least one half if it is SUPPORTED, else at most."""
    return _support_of(unit)


def agree(score: float, verdict: str | None) -> float:
    """Clamp a score to the side of one half that agrees with its verdict."""
    return max(0.5, score) if verdict == "SUPPORTED" else min(0.5, score)


def _support_of(record: FGFCOverall | FGFCUnit | None) -> float:
    value = ((record.model_extra if record is not None else None) or {}).get("support", 0.0)
    return float(value) if isinstance(value, int | float) else 0.0
