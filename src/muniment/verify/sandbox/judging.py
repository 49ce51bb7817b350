"""What attempts at running something say about it: OK, FAIL or UNKNOWN, and why (RC-17). Pure.

UNKNOWN is the answer whenever execution did not decide: it could not run, was cut off, did not agree with itself, or
could only have been decided by the word of the code under test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from muniment.core.scope import Outcome
from muniment.verify.sandbox.port import Observation

__all__ = [
    "Attempt",
    "HarnessKind",
    "Judgement",
    "SuiteReport",
    "attempt_of",
    "both_ways",
    "judge",
    "read_report",
    "suite_attempt",
]

HarnessKind = Literal["command", "pytest"]

_CANNOT_RUN = (126, 127)  # what a shell says of a program that is not there, or is none
_NOT_STARTED = re.compile(r"^ModuleNotFoundError: No module named 'pytest'", re.MULTILINE)
_ENDED = (1, 2)  # pytest: tests failed; something could not be collected
_DECIDED = ("passed", "skipped")
MESSAGE_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run: did it pass, fail, or (with a reason) not decide."""

    outcome: Outcome
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The word of execution; `reason_codes` is empty for OK alone."""

    outcome: Outcome
    reason_codes: tuple[str, ...] = ()
    message: str | None = None


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """What came over the judge's pipe."""

    expected: tuple[str, ...] | None
    """The tests as they are without the output; None where they cannot be told."""
    collected: tuple[str, ...] = ()
    results: Mapping[str, str] | None = None
    """passed, failed or skipped, by the test's id; None where nothing was run."""
    doubts: tuple[str, ...] = ()
    exit_code: int | None = None


def read_report(data: bytes, nonce: str) -> SuiteReport | None:
    """The report, if it is one and knows the nonce."""
    try:
        said = json.loads(data)
        if not isinstance(said, dict) or said.get("nonce") != nonce:
            return None
        results = said.get("results")
        return SuiteReport(
            expected=None if said["expected"] is None else tuple(map(str, said["expected"])),
            collected=tuple(map(str, said.get("collected", ()))),
            results=None if results is None else {str(name): str(word) for name, word in results.items()},
            doubts=tuple(map(str, said.get("doubts", ()))),
            exit_code=said.get("exit"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def attempt_of(seen: Observation) -> Attempt:
    """Read one run of a command."""
    stopped = _stopped(seen)
    if stopped is not None:
        return stopped
    return Attempt("OK") if seen.exit_code == 0 else Attempt("FAIL", "test_fail")


def _stopped(seen: Observation) -> Attempt | None:
    """A run that was cut off, refused, or had nothing to run."""
    if seen.error_class in ("sandbox_timeout", "sandbox_denied", "exec_unavailable"):
        return Attempt("UNKNOWN", seen.error_class)
    if seen.error_class in ("cap_exceeded", "action_refused", "invalid_action") or seen.exit_code is None:
        return Attempt("UNKNOWN", "sandbox_denied")
    return Attempt("UNKNOWN", "exec_unavailable") if seen.exit_code in _CANNOT_RUN else None


def suite_attempt(seen: Observation, code: Observation | None, report: SuiteReport | None) -> Attempt:
    """Read one run of a suite: the judge's sandbox, that of the code where it has one, and the report."""
    if code is not None and code.error_class in ("sandbox_timeout", "sandbox_denied", "exec_unavailable"):
        return Attempt("UNKNOWN", code.error_class)
    if code is not None and code.error_class in ("cap_exceeded", "action_refused", "invalid_action"):
        return Attempt("UNKNOWN", "sandbox_denied")
    stopped = _stopped(seen)
    if stopped is not None:
        return stopped
    if report is None:
        is_missing = seen.exit_code == 1 and _NOT_STARTED.search(seen.stderr) is not None
        if seen.exit_code == 0 or is_missing:  # code in the same process can end it early, and with 0
            return Attempt("UNKNOWN", "exec_unavailable")
        return Attempt("FAIL", "test_fail")
    return _reported(report)


def _reported(report: SuiteReport) -> Attempt:
    if report.expected is None:
        return _undecided("the tests cannot be counted without the output")
    results = report.results or {}
    has_failed = "failed" in results.values() or report.exit_code in _ENDED
    if has_failed:
        return Attempt("FAIL", "test_fail")
    if report.doubts:
        return _undecided("; ".join(report.doubts))
    if report.exit_code != 0 or not report.expected:  # internal error, usage, no test
        return Attempt("UNKNOWN", "exec_unavailable")
    is_whole = report.collected == report.expected and set(results) == set(report.expected)
    if not is_whole:
        return _undecided("the tests are not those that the suite has without the output")
    if set(results.values()) - set(_DECIDED) or "passed" not in results.values():
        return Attempt("UNKNOWN", "exec_unavailable")
    return Attempt("OK")


def _undecided(why: str) -> Attempt:
    return Attempt("UNKNOWN", "exec_unavailable", f"not judged: {why}"[:MESSAGE_CHARS_MAX])


def both_ways(inside: Attempt) -> Attempt:
    """What failed from outside, by what it did in one process with its tests: it failed if it failed there as well.

    What passes there alone was forged, or needs more of the code than its plain values; which of them is not known.
    """
    if inside.outcome != "OK":
        return inside
    return _undecided("it passes only where the code shares a process with its tests")


def judge(attempts: Sequence[Attempt]) -> Judgement:
    """All attempts together: one that could not run leaves it open, and so do two that disagree."""
    if not attempts:
        return Judgement("UNKNOWN", ("exec_unavailable",))
    reasons = [attempt.reason for attempt in attempts if attempt.reason and attempt.outcome == "UNKNOWN"]
    message = next((attempt.message for attempt in attempts if attempt.message), None)
    if len({attempt.outcome for attempt in attempts}) > 1:
        return Judgement("UNKNOWN", tuple(dict.fromkeys([*reasons, "env_nondeterminism"])), message)
    first = attempts[0]
    if first.outcome == "UNKNOWN":
        return Judgement("UNKNOWN", tuple(dict.fromkeys(reasons)), message)
    return Judgement(first.outcome, () if first.reason is None else (first.reason,))
