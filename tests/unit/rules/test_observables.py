"""The observables of §5.4: counted in any split, bounded, and read in the right order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.policy import RoutePolicy
from muniment.core.stats import wilson_bounds
from muniment.rules import routing
from muniment.rules.routing import LogRow, RunCounts, escalation, observables_of
from products import for_each

POLICY = RoutePolicy()
CODES = ("sandbox_denied", "exec_unavailable", "insufficient_evidence", "memory_overinject", "numeric_error")


def row(outcome="OK", *codes, verdict="PASS", **more):
    passed = verdict == "PASS" and outcome != "FAIL"
    return LogRow(verdict=verdict, outcome=outcome, reason_codes=codes, passed=passed, **more)


ROWS = st.lists(
    st.builds(
        lambda verdict, outcome, codes, violated, cluster: LogRow(
            verdict=verdict,
            outcome=outcome,
            reason_codes=tuple(codes),
            violated=tuple(violated),
            cluster_id=cluster,
            passed=verdict == "PASS" and outcome != "FAIL",
        ),
        st.sampled_from([None, "PASS", "PARTIAL", "FAIL"]),
        st.sampled_from(["OK", "FAIL", "UNKNOWN"]),
        st.lists(st.sampled_from(CODES), max_size=3),
        st.lists(st.just("FORMAT:JSON_ONLY"), max_size=1),
        st.one_of(st.none(), st.sampled_from([f"fc_{number}" for number in range(12)])),
    ),
    max_size=60,
)


def observed(rows):
    counts = RunCounts()
    for each in rows:
        counts.add(each)
    return observables_of(counts, POLICY)


@pytest.mark.req("RC-04")
@given(ROWS)
def test_rates_do_not_depend_on_order(rows):
    whole = observed(rows)
    assert observed(rows[::-1]) == whole
    judged = [each for each in rows if each.verdict is not None]
    assert whole.n == len(judged)
    assert whole.unknown_rate.count == sum(each.outcome == "UNKNOWN" for each in judged)


def test_counts_of_kept_clusters_are_whole(monkeypatch):
    monkeypatch.setattr(routing, "_CLUSTERS_MAX", 50)
    chance = Random(1)
    ids = [f"fc_{chance.randrange(400)}" for _ in range(4_000)]
    seen = RunCounts()
    for each in ids:
        seen.add(row("FAIL", verdict="FAIL", cluster_id=each))
    kept = seen.kept_clusters()
    assert len(kept) == 50
    assert all(count == ids.count(id_) for id_, count in kept.items())
    assert len(seen.clusters) <= 100


@pytest.mark.req("RC-04")
def test_every_rate_as_the_contract_counts_it():
    rows = [
        *[row("UNKNOWN", "sandbox_timeout")] * 3,
        *[row("UNKNOWN", "insufficient_evidence", verdict="PARTIAL")] * 2,
        *[row("FAIL", "praxis_tactic_overinject", verdict="FAIL", violated=("FORMAT:JSON_ONLY",), cluster_id="fc_1")]
        * 4,
        row("OK"),
        LogRow(None, None),
    ]
    seen = observed(rows)
    counts = {name: getattr(seen, name).count for name in type(seen).model_fields if name.endswith("_rate")}
    assert seen.n == 10
    assert counts == {
        "pass_rate": 4,
        "confirmed_rate": 1,
        "unknown_rate": 5,
        "exec_unavailable_rate": 3,
        "l1_violation_rate": 4,
        "insufficient_evidence_rate": 2,
        "overinject_rate": 4,
    }
    assert (seen.unknown_rate.lower, seen.unknown_rate.upper) == wilson_bounds(5, 10)
    (cluster,) = seen.cluster_recurrence
    assert (cluster.cluster_id, cluster.count, cluster.share, cluster.recurs) == ("fc_1", 4, 0.4, True)


@pytest.mark.req("RC-04")
def test_thin_is_unknown_and_says_how_many_are_missing():
    seen = observed([row()] * 2)
    assert seen.unknown_rate.unknown
    assert seen.unknown_rate.rate is None
    assert seen.unknown_rate.runs_missing == POLICY.thin_n - 2
    (advice,) = escalation(seen)
    assert advice.code == "too_few_runs"
    assert "4 more" in advice.words


@pytest.mark.req("RC-04")
@for_each(
    ("rows", "codes"),
    [
        ([row("UNKNOWN", "exec_unavailable")] * 30, ["get_sandbox"]),
        (
            [row("UNKNOWN", "exec_unavailable")] * 20 + [row("UNKNOWN", "insufficient_evidence")] * 20,
            ["get_sandbox", "grader_waits"],
        ),
        ([row("UNKNOWN", "insufficient_evidence")] * 30 + [row()] * 5, ["get_grader"]),
        ([row("FAIL", "insufficient_evidence", verdict="FAIL")] * 30, ["ask_for_evidence"]),
        ([row("UNKNOWN")] * 30, ["add_execution_check"]),
        ([row("OK", verdict="FAIL", violated=("FORMAT:LENGTH",))] * 30, ["repair_format"]),
        ([row("OK", "memory_overinject")] * 30, ["cut_injection"]),
        ([row()] * 30 + [row("FAIL", verdict="FAIL", cluster_id="fc")] * 3, ["cluster_recurs"]),
        ([row()] * 30 + [row("UNKNOWN", "exec_unavailable")], ["steady"]),
    ],
)
def test_what_the_rates_ask_for(rows, codes):
    advice = escalation(observed(rows))
    assert [each.code for each in advice] == codes
    assert all(each.words and each.figures for each in advice)
