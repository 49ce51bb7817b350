"""Failing by form (RC-20, RC-26): a broken format, schema or policy, put right before anything is tried anew."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["broken_forms", "fails_by_form"]

_KEYS = ("FORMAT:", "SCHEMA:", "POLICY:")
"""Constraints about how an answer stands there, not about whether it is right."""
_CODES = frozenset({"format_leak", "truncation_or_cutoff"})


def broken_forms(violated: Iterable[str], reason_codes: Iterable[str]) -> list[str]:
    """The constraints and reason codes held against an answer that are about its form."""
    return [*(key for key in violated if key.startswith(_KEYS)), *(code for code in reason_codes if code in _CODES)]


def fails_by_form(verdict: str, violated: Iterable[str], reason_codes: Iterable[str]) -> bool:
    """A FAIL on format or policy: the same answer, put right, may pass; more attempts would break the same thing."""
    return verdict == "FAIL" and bool(broken_forms(violated, reason_codes))
