"""What attempts at running something say about it: OK, FAIL or UNKNOWN, and why (RC-17). Pure.

UNKNOWN is the answer whenever execution did not decide: it could not run, was cut off, or did not agree with itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from muniment.core.vocabulary import Outcome
from muniment.verify.sandbox.port import Observation

__all__ = ["Attempt", "HarnessKind", "Judgement", "attempt_of", "judge"]

HarnessKind = Literal["command", "pytest"]

_CANNOT_RUN = (126, 127)  # what a shell says of a program that is not there, or is none
_PYTEST_TESTS_FAILED, _PYTEST_INTERRUPTED = 1, 2  # 2 is also a file that cannot be collected
_NOT_STARTED = re.compile(r"runpy.*^ModuleNotFoundError: ", re.MULTILINE | re.DOTALL)
"""Python itself says that pytest, or something it is made of, is not there."""
_PASSED = re.compile(r"^(?:=+ )?(?:.*, )?(\d+) passed\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run: did it pass, fail, or (with a reason) not decide."""

    outcome: Outcome
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The word of execution; `reason_codes` is empty for OK alone."""

    outcome: Outcome
    reason_codes: tuple[str, ...] = ()


def attempt_of(seen: Observation, kind: HarnessKind) -> Attempt:
    """Read one observation."""
    if seen.error_class in ("sandbox_timeout", "sandbox_denied", "exec_unavailable"):
        return Attempt("UNKNOWN", seen.error_class)
    if seen.error_class in ("cap_exceeded", "action_refused", "invalid_action") or seen.exit_code is None:
        return Attempt("UNKNOWN", "sandbox_denied")
    if seen.exit_code in _CANNOT_RUN:
        return Attempt("UNKNOWN", "exec_unavailable")
    if kind == "pytest":
        if not seen.stdout.strip() and _NOT_STARTED.search(seen.stderr):
            return Attempt("UNKNOWN", "exec_unavailable")
        return _pytest_attempt(seen.exit_code, seen.stdout)
    return Attempt("OK") if seen.exit_code == 0 else Attempt("FAIL", "test_fail")


def _pytest_attempt(exit_code: int, stdout: str) -> Attempt:
    """Exit 0 counts only with a report of passed tests: code under test can end the process early with 0."""
    if exit_code == 0:
        said = _PASSED.findall(stdout)
        return Attempt("OK") if said and int(said[-1]) > 0 else Attempt("UNKNOWN", "exec_unavailable")
    if exit_code in (_PYTEST_TESTS_FAILED, _PYTEST_INTERRUPTED) or exit_code > 5:
        return Attempt("FAIL", "test_fail")
    return Attempt("UNKNOWN", "exec_unavailable")  # internal error, usage, no test collected


def judge(attempts: Sequence[Attempt]) -> Judgement:
    """All attempts together: one that could not run leaves it open, and so do two that disagree."""
    if not attempts:
        return Judgement("UNKNOWN", ("exec_unavailable",))
    reasons = [attempt.reason for attempt in attempts if attempt.reason and attempt.outcome == "UNKNOWN"]
    if len({attempt.outcome for attempt in attempts}) > 1:
        return Judgement("UNKNOWN", tuple(dict.fromkeys([*reasons, "env_nondeterminism"])))
    first = attempts[0]
    if first.outcome == "UNKNOWN":
        return Judgement("UNKNOWN", tuple(dict.fromkeys(reasons)))
    return Judgement(first.outcome, () if first.reason is None else (first.reason,))
