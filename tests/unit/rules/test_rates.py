"""Observables read from runs."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.contracts.rules import PatterningObservable
from muniment.contracts.runs import EventLog
from muniment.errors import InvalidInput
from muniment.learning.records import RunFacts
from muniment.rules.patterning import read_rates, row_of_facts, row_of_log
from products import for_each


def log(verdict: str, outcome: str, **more: Any) -> EventLog:
    verifier = {"verdict": verdict, "outcome": outcome} | more.pop("verifier", {})
    wire = {"schema_version": "0.5.15", "trace_id": "t", "x_ref": "x", "selected_rules": [], "verifier": verifier}
    return EventLog.from_wire(wire | more)


def observed(kind: str, **more: Any) -> PatterningObservable:
    return PatterningObservable.from_wire({"obs_id": "o", "kind": kind} | more)


LOGS = [
    log("PASS", "OK", bucket_key="I1|a|clarity_low", cost={"tokens_in": 100, "tokens_out": 20}),
    log("PASS", "UNKNOWN", bucket_key="I1|a|clarity_low", cost={"tokens_in": 200, "tokens_out": None}),
    log("PASS", "FAIL", bucket_key="I1|b|clarity_low", cost={"tool_calls": 3}),
    log("FAIL", "UNKNOWN", verifier={"reason_codes": ["numeric_error"]}),
]


@pytest.mark.req("RC-24")
@for_each(
    ("observable", "value"),
    [
        (observed("pass_rate"), 0.5),
        (observed("pass_rate", bucket_key="I1|a|clarity_low"), 1.0),
        (observed("unknown_rate"), 0.5),
        (observed("avg_cost"), 160.0),
        (observed("reason_code_rate", reason_code="numeric_error"), 1.0),
    ],
)
def test_rates_of_logs(observable: PatterningObservable, value: float) -> None:
    assert read_rates(map(row_of_log, LOGS), [observable]) == {"o": value}


@pytest.mark.parametrize(
    "observable",
    [
        observed("custom"),
        observed("pass_rate", bucket_key="I3|none|clarity_low"),
        observed("reason_code_rate", reason_code="x", bucket_key="I1|a|clarity_low"),
    ],
)
def test_what_no_run_speaks_of_is_refused(observable: PatterningObservable) -> None:
    with pytest.raises(InvalidInput):
        read_rates(map(row_of_log, LOGS), [observable])


def test_rates_of_folded_runs() -> None:
    facts = RunFacts(
        trace_id="t", x_summary="task", verdict="FAIL", outcome="FAIL", passed=False, reason_codes=("numeric_error",),
        cost=12, at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    row = row_of_facts(facts)
    assert (row.passed, row.is_unknown, row.reason_codes, row.cost) == (False, False, {"numeric_error"}, 12)
