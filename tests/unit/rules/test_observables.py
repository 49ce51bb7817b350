"""The observables of §5.4: counted in any split, bounded, and read in the right order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.policy import ObservePolicy, RoutePolicy
from muniment.core.stats import wilson_bounds
from muniment.rules.routing import LogRow, Observed, escalation, observables_of, observe
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


@pytest.mark.req("RC-04")
@given(ROWS, st.lists(st.integers(0, 3), max_size=60), st.integers(1, 5))
def test_any_split_in_any_order_merges_to_the_same(rows, places, clusters_max):
    policy = RoutePolicy(observe=ObservePolicy(clusters_max=clusters_max))

    def fold(those):
        seen = Observed(clusters_max=clusters_max)
        for each in those:
            seen.add(each)
        return seen

    whole = observables_of(fold(rows), policy)
    places = [*places, *[0] * len(rows)]
    parts = [[each for each, place in zip(rows, places, strict=False) if place == part] for part in range(4)]
    merged = fold(parts[3][::-1])
    for part in parts[:3]:
        merged = fold(part).merge(merged)
    assert observables_of(merged, policy) == whole
    judged = [each for each in rows if each.verdict is not None]
    assert whole.n == len(judged)
    assert whole.unknown_rate.count == sum(each.outcome == "UNKNOWN" for each in judged)
    assert whole.clustered - whole.uncounted <= whole.clustered


def test_what_is_counted_of_more_clusters_than_are_kept_is_whole():
    chance = Random(1)
    ids = [f"fc_{chance.randrange(400)}" for _ in range(4_000)]
    seen = Observed(clusters_max=50)
    for each in ids:
        seen.add(row("FAIL", verdict="FAIL", cluster_id=each))
    kept = seen.counted()
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
    seen = observe(rows, POLICY)
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


def test_a_window_and_a_bucket():
    rows = [row(at=f"2026-05-0{day}T00:00:00Z", bucket_key=bucket) for day in range(1, 9) for bucket in ("a", "b")]
    seen = observe(rows, POLICY, bucket_key="a", start="2026-05-02T00:00:00Z", end="2026-05-08T00:00:00Z")
    assert seen.n == 6
    assert observe(rows, POLICY, start="2027").n == 0


@pytest.mark.req("RC-04")
def test_thin_is_unknown_and_says_how_many_are_missing():
    seen = observe([row()] * 2, POLICY)
    assert seen.unknown_rate.unknown
    assert seen.unknown_rate.rate is None
    assert seen.unknown_rate.runs_missing == POLICY.observe.thin_n - 2
    (advice,) = escalation(seen, POLICY)
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
    advice = escalation(observe(rows, POLICY), POLICY)
    assert [each.code for each in advice] == codes
    assert all(each.words and each.figures for each in advice)
