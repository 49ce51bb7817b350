"""Constraints on an output: the findings, and what they come to (RC-17). Pure: the same inputs, the same result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from muniment.core.limits import checkpoint
from muniment.core.ports.models import RubricJudge
from muniment.core.scope import Verdict
from muniment.errors import InvalidRecord, Issue, TooLarge
from muniment.verify.outputs import Finding, Output
from muniment.verify.static.base import Constraint, View

__all__ = ["REASONS_MAX", "check_answerable", "evaluate", "reasons_of", "verdict_of"]

REASONS_MAX = 3
_GRADER_HINT = "give a grader: grader=… in Python, --grader URL#NAME on the command line; or leave these out"


def evaluate(
    output: Output, constraints: Iterable[Constraint], grader: RubricJudge | None = None, path: str = "$.constraints"
) -> list[Finding]:
    """One finding for each constraint, in their order. One that needs a grader is refused where there is none."""
    asked = tuple(constraints)
    if grader is None:
        check_answerable(asked, path)
    view = View(output, grader)
    return [_finding(view, constraint) for constraint in asked]


def check_answerable(constraints: Iterable[Constraint], path: str = "$.constraints") -> None:
    """Raise for every constraint that only a grader can decide: left out, it would look as if it held."""
    issues = [
        Issue(place, f"{name} needs a grader, and none is given", "unsupported_constraint")
        for index, each in enumerate(constraints)
        for place, name in _asking(each, f"{path}[{index}]")
    ]
    if issues:
        raise InvalidRecord("these constraints cannot be checked", issues, hint=_GRADER_HINT)


def _asking(constraint: Constraint, path: str) -> Iterator[tuple[str, str]]:
    here = f"{path}.{constraint.NAME}"
    if constraint.NEEDS_GRADER:
        yield here, constraint.NAME
    for index, each in enumerate(getattr(constraint, "constraints", ())):
        yield from _asking(each, f"{here}[{index}]")


def _finding(view: View, constraint: Constraint) -> Finding:
    checkpoint()
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
