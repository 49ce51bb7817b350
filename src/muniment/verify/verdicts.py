"""What a verdict and an outcome say together (RC-01), how layers become one of each (RC-17), what they score.

L1 (static checks) and the fact check speak the verdict, L3 (execution) speaks the outcome. A grader model, L2, is not
asked here: what it says routes further work and decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from muniment.core.scope import Outcome, Verdict

__all__ = [
    "DEFAULT_SCORES",
    "PROFILE_EXECUTED",
    "PROFILE_STATIC",
    "UNJUDGED",
    "UNRUN",
    "Scores",
    "compose_layers",
    "is_pass",
    "says_nothing",
    "score_of",
    "worst_verdict",
]

PROFILE_STATIC = "v_l1_only"
PROFILE_EXECUTED = "v_l1+l3_exec"

_SEVERITY: dict[Verdict, int] = {"PASS": 0, "PARTIAL": 1, "FAIL": 2}


def is_pass(verdict: str, outcome: str) -> bool:
    """RC-01, and the only place where it is written: nothing is a PASS whose outcome is known to be wrong."""
    return verdict == "PASS" and outcome != "FAIL"


@dataclass(frozen=True, slots=True)
class Scores:
    """What a result scores that was given no score of its own."""

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
    """The worst verdict of several checks; of none, PASS: nothing was held against it."""
    return max(verdicts, key=_SEVERITY.__getitem__, default="PASS")


def compose_layers(verdicts: Iterable[Verdict], execution: Outcome | None = None) -> tuple[Verdict, Outcome]:
    """The verdict and the outcome of a verification.

    `verdicts` are those of L1 and of the fact check; `execution` is the word of L3, None where nothing was run. Without
    L3 the outcome is UNKNOWN, whatever the verdict: a broken format does not say that the answer is wrong. A failed
    execution fails the verdict as well.
    """
    verdict = worst_verdict(verdicts)
    if execution is None:
        return verdict, "UNKNOWN"
    return ("FAIL" if execution == "FAIL" else verdict), execution


UNRUN = "exec_unavailable"
"""The reason code of what never ran, or could not be looked at: it has not failed, and counts for nothing."""
UNJUDGED: tuple[Verdict, Outcome] = ("PARTIAL", "UNKNOWN")
"""The verdict and outcome of such a run."""


def says_nothing(verdict: str, outcome: str, reason_codes: Collection[str] | None) -> bool:
    """A verifier that could not do its work neither passed the run nor failed it."""
    return (verdict, outcome) == UNJUDGED and UNRUN in (reason_codes or ())
