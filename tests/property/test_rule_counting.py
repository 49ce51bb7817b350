"""Statistics of rules: counted bit by bit or all at once, in whatever order the runs come, they are the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.contracts.rules import RuleRecord
from muniment.core.policy import RulePolicy
from muniment.rules._records import RuleUse
from muniment.rules._statistics import RuleStats, published, stats_of, use_order

POLICY = RulePolicy()
RULE = RuleRecord.from_wire(
    {
        "schema_version": "0.5.15",
        "rule_id": "r1",
        "version": "1",
        "type": "StrategyRule",
        "status": "temporary",
        "body": "Call search.",
        "applicability": {},
        "evidence": {},
        "tests": {"regression_tests": [], "counterexample_tests": []},
        "metrics": {},
    }
)


def _use(parts: dict[str, Any]) -> RuleUse:
    plain = {key: value for key, value in parts.items() if value is not None}
    second = plain.pop("second")
    return RuleUse.from_wire(plain | {"rule_id": "r1", "version": "1", "at": f"2026-05-01T00:00:{second:02}Z"})


USES = st.lists(
    st.fixed_dictionaries(
        {
            "trace_id": st.integers(0, 200).map("t{:03}".format),
            "second": st.integers(0, 20),  # few instants: ties are the rule
            "arm": st.sampled_from(["active", "canary", "holdout", "baseline"]),
            "passed": st.booleans(),
            "confirmed": st.booleans(),
            "violated": st.booleans(),
            "cost": st.one_of(st.integers(0, 50), st.floats(0, 1e6)),
            "bucket_key": st.sampled_from([None, "I1|a|clarity_low", "I3|b|clarity_high"]),
            "cluster_id": st.sampled_from([None, "fc_1", "fc_2"]),
            "x_digest": st.sampled_from([None, "x", "y"]),
        }
    ).map(_use),
    max_size=60,
    unique_by=lambda one: one.trace_id,
)


@pytest.mark.req("RC-16")
@given(uses=USES, cuts=st.lists(st.integers(0, 60), max_size=6), data=st.data())
@settings(max_examples=examples(50), deadline=None)
def test_added_in_any_split_it_is_what_a_recomputation_gives(uses: list[RuleUse], cuts: list[int], data: Any) -> None:
    whole = stats_of(data.draw(st.permutations(uses)), "r1", POLICY)
    ordered = sorted(uses, key=use_order)
    bit_by_bit = RuleStats.empty("r1", None, POLICY)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(ordered)], strict=True):
        bit_by_bit = bit_by_bit.add_all(ordered[start:end])
    one_by_one = RuleStats.empty("r1", None, POLICY)
    for use in ordered:
        one_by_one = one_by_one.add_all([use])
    assert whole == bit_by_bit == one_by_one
    assert whole.to_wire() == one_by_one.to_wire()
    assert published(RULE, whole).to_bytes() == published(RULE, bit_by_bit).to_bytes()


@pytest.mark.req("RC-16")
@given(uses=USES)
@settings(max_examples=examples(30), deadline=None)
def test_counts_add_up_and_bounds_are_in_order(uses: list[RuleUse]) -> None:
    stats = stats_of(uses, "r1", POLICY)
    assert stats.with_counts.runs.n + stats.without_counts.runs.n == len(uses)
    assert sum(counts.runs.passes for counts in stats.arms.values()) == sum(use.passed for use in uses)
    named = [use for use in uses if use.bucket_key is not None]
    assert sum(tally.n for tallies in stats.buckets.values() for tally in tallies.values()) == len(named)
    for key in (None, *stats.buckets):
        for one in (stats.rate(key), stats.delta(key)):
            assert one.unknown == (POLICY.stats.thin_n > one.K)
            if one.p_hat is not None and one.p_lb95 is not None:
                assert -1 <= one.p_lb95 <= one.p_hat <= 1
    assert stats.utility is None or -1 <= stats.utility <= 1
