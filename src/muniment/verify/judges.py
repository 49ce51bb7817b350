"""By which kind of judge a run passed, and what may be learnt of it (RC-01, RC-17). Pure.

A result that execution had a part in names its judge, and what the other layers said without it. Where a policy does
not let that kind teach, what execution said is set aside, a failure like a pass: counting one of them alone would
bend every rate.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from muniment.contracts.runs import VerifierResult
from muniment.core.scope import JudgeKind, Outcome, Verdict
from muniment.verify.verdicts import PROFILE_EXECUTED, UNJUDGED, UNRUN, score_of

__all__ = ["Taught", "judge_block", "judge_of", "taught_by"]

_VERDICTS = ("PASS", "PARTIAL", "FAIL")
_OF_EXECUTION = frozenset({"test_fail"})
_UNNAMED: JudgeKind = "in_process"


def judge_block(kind: JudgeKind, others: Verdict | None) -> dict[str, Any]:
    """What a result says of its judge: the kind, and the verdict of the other layers, if any was asked."""
    return {"kind": kind} if others is None else {"kind": kind, "others": others}


def judge_of(result: VerifierResult) -> str | None:
    """The kind of judge that ran the output; None where nothing was run, or a verifier of the caller's spoke.

    A result of ours that was run and names no judge was made when every suite shared a process with the code.
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
    """A result as learning reads it."""

    result: VerifierResult
    judge: str | None = None
    set_aside: Outcome | None = None
    """What execution said and nothing is learnt from."""


def taught_by(result: VerifierResult, kinds: Collection[str]) -> Taught:
    """The result, without the word of a judge whose kind may not teach."""
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
