"""Call the caller's own verifier; any answer or exception yields a VerifierResult."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muniment.contracts.runs import VerifierResult
from muniment.core.outside.calling import outcome_of
from muniment.core.record import RULECRAFT_VERSION
from muniment.errors import InvalidRecord
from muniment.verify.outputs import Output
from muniment.verify.results import UNJUDGED, UNRUN, says_nothing

_WORDS = {True: ("PASS", "OK"), False: ("FAIL", "FAIL")}


def judged(
    verifier: Callable[..., Any], output: Output, task: str, verifier_id: str, timeout_s: float | None = None
) -> VerifierResult:
    """Convert the verifier's answer to a result: a VerifierResult, its plain form, or a bool for passed."""
    answer = outcome_of(lambda: verifier(output, task), timeout_s)
    if not answer.done():
        return failure(verifier_id, UNRUN, f"the verifier took longer than {timeout_s:g} s")
    error = answer.exception()
    if error is not None:
        return failure(verifier_id, UNRUN, f"the verifier raised {type(error).__name__}: {error}")
    result: Any = answer.result()
    if isinstance(result, VerifierResult):
        return result
    if isinstance(result, bool):
        verdict, outcome = _WORDS[result]
        result = {"verifier_id": verifier_id, "verdict": verdict, "outcome": outcome}
    try:
        return VerifierResult.from_wire({"schema_version": RULECRAFT_VERSION, **dict(result)})
    except (InvalidRecord, ValueError, TypeError):
        return failure(verifier_id, UNRUN, "the verifier answered no result")


def failure(verifier_id: str, code: str, words: str) -> VerifierResult:
    """The result if nothing could be judged. A verifier that never ran has not failed the output."""
    verdict, outcome = UNJUDGED if code == UNRUN else _WORDS[False]
    plain = {
        "schema_version": RULECRAFT_VERSION,
        "verifier_id": verifier_id,
        "verdict": verdict,
        "outcome": outcome,
        "reason_codes": [code],
        "notes": words[:500],
    }
    return VerifierResult.from_wire(plain)


def is_unjudged(result: VerifierResult) -> bool:
    """True if the verifier did not do its work, so that nothing is known."""
    return says_nothing(result.verdict, result.outcome, result.reason_codes)
