"""Constraints on an output: the findings, and what they come to (RC-17). Pure: the same inputs, the same result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from muniment.core.vocabulary import Verdict
from muniment.errors import TooLarge
from muniment.verify.outputs import Finding, Output
from muniment.verify.static.base import Constraint, View

__all__ = ["REASONS_MAX", "evaluate", "reasons_of", "verdict_of"]

REASONS_MAX = 3


def evaluate(output: Output, constraints: Iterable[Constraint]) -> list[Finding]:
    """One finding for each constraint, in their order."""
    view = View(output)
    return [_finding(view, constraint) for constraint in constraints]


def _finding(view: View, constraint: Constraint) -> Finding:
    key, reason = constraint.violated_key, constraint.violated_reason
    try:
        problem = constraint.check(view)
    except TooLarge as error:  # not decided is not held
        message = f"could not be decided: {error.message}"
        return Finding(key, False, message, None, constraint.severity, reason, constraint.NAME)
    if problem is None:
        return Finding(key, True, "", None, constraint.severity, reason, constraint.NAME)
    return Finding(key, False, problem.message, problem.where, constraint.severity, reason, constraint.NAME)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """A fatal violation fails, a minor one leaves it PARTIAL."""
    violated = {finding.severity for finding in findings if not finding.ok}
    return "FAIL" if "fatal" in violated else "PARTIAL" if violated else "PASS"


def reasons_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """One to three reason codes of what is violated: fatal before minor, frequent before rare, then by name."""
    violated = [finding for finding in findings if not finding.ok]
    counts = Counter(finding.reason for finding in violated)
    fatal = {finding.reason for finding in violated if finding.severity == "fatal"}
    return tuple(sorted(counts, key=lambda code: (code not in fatal, -counts[code], code))[:REASONS_MAX])
