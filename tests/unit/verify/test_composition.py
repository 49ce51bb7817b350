"""Layers into one result."""

from __future__ import annotations

import pytest

from muniment.core.policy import FactCheckPolicy
from muniment.verify.facts import SourceText, check_facts
from muniment.verify.outputs import Finding
from muniment.verify.results import Execution, compose_result, is_pass
from products import for_each

HELD = Finding("FORMAT:WORDS", True)
BROKEN = Finding("FORMAT:WORDS", False, "too long")


@pytest.mark.req("RC-17", "RC-01")
@for_each(
    ("findings", "execution", "verdict", "outcome", "passes"),
    [
        ([HELD], None, "PASS", "UNKNOWN", True),
        ([BROKEN], None, "FAIL", "UNKNOWN", False),
        (None, Execution("OK"), "PASS", "OK", True),
        (None, Execution("FAIL", ("test_fail",)), "FAIL", "FAIL", False),
        (None, Execution("UNKNOWN", ("sandbox_timeout",)), "PARTIAL", "UNKNOWN", False),
        ([HELD], Execution("UNKNOWN", ("exec_unavailable",)), "PASS", "UNKNOWN", True),
        ([BROKEN], Execution("OK"), "FAIL", "OK", False),
    ],
)
def test_the_worst_layer_speaks_and_what_was_not_decided_is_no_pass(
    findings: list[Finding] | None, execution: Execution | None, verdict: str, outcome: str, passes: bool
) -> None:
    result = compose_result(findings, None, execution)
    assert (result.verdict, result.outcome) == (verdict, outcome)
    assert is_pass(result.verdict, result.outcome) is passes
    assert (result.failure_cluster_id is None) == (not result.reason_codes and not result.violated_constraints)


def test_an_output_that_says_nothing_is_not_supported() -> None:
    report = check_facts("", [SourceText("d", "The tower is tall.")], policy=FactCheckPolicy())
    result = compose_result(facts=report)
    assert (result.verdict, result.reason_codes) == ("PARTIAL", ("insufficient_evidence",))
