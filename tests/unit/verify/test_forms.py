"""Which failures are of form, and so are mended first."""

from __future__ import annotations

import pytest

from muniment.verify.results import broken_forms, fails_by_form
from products import for_each


@pytest.mark.req("RC-20")
@for_each(
    ("verdict", "violated", "codes", "fails"),
    [
        ("FAIL", ("FORMAT:JSON_ONLY",), (), True),
        ("FAIL", ("POLICY:NO_NETWORK",), (), True),
        ("FAIL", ("SCHEMA:JSON:out",), (), True),
        ("FAIL", (), ("format_leak",), True),
        ("FAIL", ("CONTENT:CONTAINS", "TOOL:ORDER"), ("numeric_error",), False),
        ("PARTIAL", ("FORMAT:JSON_ONLY",), ("format_leak",), False),
    ],
)
def test_what_fails_by_form(verdict, violated, codes, fails):
    assert fails_by_form(verdict, violated, codes) == fails


def test_what_is_named():
    named = broken_forms(("CONTENT:CONTAINS", "FORMAT:LENGTH"), ("test_fail", "truncation_or_cutoff"))
    assert named == ["FORMAT:LENGTH", "truncation_or_cutoff"]
