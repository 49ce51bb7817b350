"""Counting logs: exact, bounded, and the same however they are split and in whatever order they come."""

from __future__ import annotations

import random
from typing import Any

import pytest
from benchmarks.rules_flowmap import World
from flow_makers import NOW, row
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.core.policy import FlowMapPolicy
from muniment.errors import InvalidInput
from muniment.rules.flow_map import (
    NO_CODE,
    OTHER,
    CodeKey,
    FlowRow,
    FlowTally,
    FlowTask,
    Names,
    Rung,
    Tried,
    flow_snapshot,
    is_risky,
    k_band,
)
from products import for_each

SMALL = FlowMapPolicy(buckets_max=3, stages_max=2, codes_max=3, levels_max=2, ridges=(1.0,))


def some_rows() -> st.SearchStrategy[list[FlowRow]]:
    names = st.sampled_from(["a", "b", "c", "d", "numeric_error", "test_fail", "ü\n", ""])
    made = st.builds(
        row,
        st.integers(0, 10**6),
        passed=st.sampled_from([True, False, None]),
        codes=st.lists(names, max_size=3).map(tuple),
        mode=st.sampled_from(["main", "synth", "tree", "own"]),
        bucket_key=st.one_of(st.none(), names),
        tier=st.one_of(st.none(), names),
        cost=st.floats(0, 1e9),
        hints=st.integers(0, 2),
        rules=st.integers(0, 2),
        is_first=st.booleans(),
        is_planned=st.booleans(),
        task=st.one_of(st.none(), some_tasks()),
    )
    return st.lists(made, min_size=1, max_size=40)


def some_tasks() -> st.SearchStrategy[FlowTask]:
    modes, tiers = st.sampled_from(["main", "kroll", "synth", "own"]), st.sampled_from([None, "probe", "full", "x"])
    rungs = st.lists(st.builds(Rung, modes, tiers, st.integers(1, 6)), max_size=4).map(tuple)
    tried = st.builds(Tried, modes, tiers, st.sampled_from([True, False, None]), st.floats(0, 1e6))
    return st.builds(FlowTask, rungs, st.lists(tried, min_size=1, max_size=8).map(tuple))


@pytest.mark.soak
@pytest.mark.req("RC-23")
@pytest.mark.parametrize("policy", [SMALL, FlowMapPolicy(ridges=(1.0,))], ids=["capped", "roomy"])
@pytest.mark.parametrize("estimator", ["aggregate_v1", "logit_field_v1"])
def test_any_split_and_any_order_gives_the_same_snapshot(policy: FlowMapPolicy, estimator: Any) -> None:
    @settings(max_examples=60 if estimator == "aggregate_v1" else 8, deadline=None)
    @given(some_rows(), st.randoms(use_true_random=False), st.integers(1, 5))
    def check(rows: list[FlowRow], shuffle: random.Random, parts: int) -> None:
        whole = FlowTally(policy).add_all(rows)
        mixed = rows[:]
        shuffle.shuffle(mixed)
        tallies = [FlowTally(policy).add_all(mixed[at::parts]) for at in range(parts)]
        shuffle.shuffle(tallies)
        merged = FlowTally(policy)
        for each in tallies:
            merged.merge(each)
        expected = flow_snapshot(whole, estimator, now=NOW).to_bytes()
        assert flow_snapshot(merged, estimator, now=NOW).to_bytes() == expected

    check()


@pytest.mark.req("RC-23")
def test_cells_do_not_grow_with_logs_or_with_names() -> None:
    """A stream that invents a bucket, a code and a mode for every log."""
    tally = FlowTally(SMALL)
    sizes = []
    for number in range(3_000):
        name = f"n{number}"
        tally.add(row(number, passed=False, codes=(name,), mode=name, tier=name, bucket_key=name))
        sizes.append(tally.cells_n)
    # one more of each, for what is told apart no further; hints, rules and attempts have 2 × 2 × 3 levels
    assert max(sizes) <= (3 + 1) * (2 + 1) * (3 + 2) + (3 + 1) * (2 + 1) * (2 + 1) * 12
    assert tally.folded == ("bucket", "stage", "code", "mode", "tier")
    assert sum(sum(counts[::2]) for key, counts in tally.codes.items() if key.code == "") == 3_000
    snapshot = flow_snapshot(tally, "aggregate_v1", now=NOW)
    assert "told apart" in str(snapshot.notes) or "tells apart" in str(snapshot.notes)
    assert any(spot.reason_code == OTHER for spot in snapshot.risk.stage_hotspots or ())


def test_what_is_told_apart_is_counted_exactly() -> None:
    """Whatever was pushed out meanwhile: the counts of those that stay are those of all their logs."""
    rows = [row(number, passed=False, codes=(f"c{number % 40}",)) for number in range(400)]
    tally = FlowTally(SMALL).add_all(rows)
    kept = {key.code: counts for key, counts in tally.codes.items() if key.code not in ("", OTHER)}
    assert len(kept) == 3
    assert all(sum(counts[::2]) == sum(counts[1::2]) == 10 for counts in kept.values())
    (rest,) = [counts for key, counts in tally.codes.items() if key.code == OTHER]
    assert sum(rest[::2]) == 370


def test_codes_of_the_contract_are_told_apart_first() -> None:
    unknown = [row(number, passed=False, codes=(f"c{number}",)) for number in range(50)]
    known = [row(100 + number, passed=False, codes=("test_fail",)) for number in range(5)]
    for rows in (unknown + known, known + unknown):
        tally = FlowTally(SMALL).add_all(rows)
        assert sum(sum(counts[::2]) for key, counts in tally.codes.items() if key.code == "test_fail") == 5


@pytest.mark.soak
@given(st.lists(st.text(max_size=3), max_size=60), st.randoms(use_true_random=False))
def test_names_kept_depend_on_no_order(names: list[str], shuffle: random.Random) -> None:
    def kept(given: list[str]) -> set[str]:
        register = Names(5, ("a", "b"))
        for name in given:
            if name not in register:
                register.offer(name)
        assert len(register) <= 5
        return set(register)

    mixed = names[:]
    shuffle.shuffle(mixed)
    assert kept(names) == kept(mixed)
    assert {"a", "b"} & set(names) <= kept(names)


@pytest.mark.req("RC-23")
@for_each(
    ("verdict", "outcome", "risky"),
    [
        ("PASS", "OK", False),
        ("PASS", "UNKNOWN", True),
        ("PASS", "FAIL", True),
        ("PARTIAL", "OK", True),
        ("FAIL", "OK", True),
    ],
)
def test_risk_is_the_contracts(verdict: str, outcome: str, risky: bool) -> None:
    assert is_risky(verdict, outcome) is risky


def test_a_log_counts_once_for_each_of_its_codes() -> None:
    tally = FlowTally(FlowMapPolicy()).add_all(
        [row(1, passed=False, codes=("test_fail", "", "test_fail", "format_leak"))]
    )
    bucket, stage = "I1|math|clarity_high", "main→verify"
    assert {key: sum(counts) for key, counts in tally.codes.items()} == {
        CodeKey(bucket, stage, ""): 2,
        CodeKey(bucket, stage, "test_fail"): 2,
        CodeKey(bucket, stage, "format_leak"): 2,
    }


def test_what_goes_wrong_without_a_code_says_so() -> None:
    tally = FlowTally(FlowMapPolicy()).add_all([row(1, passed=False), row(2)])
    assert {key.code for key in tally.codes} == {"", NO_CODE}


def test_a_run_whose_verifier_could_not_tell_is_at_risk_and_neither_pass_nor_fail() -> None:
    tally = FlowTally(FlowMapPolicy()).add_all([row(1, passed=None, codes=("exec_unavailable",)), row(2)])
    assert (tally.n, tally.judged_n) == (2, 1)
    assert sum(sum(counts[1::2]) for key, counts in tally.codes.items() if key.code == "exec_unavailable") == 1


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf"), 1e300])
def test_a_cost_that_is_none_is_refused(cost: float) -> None:
    with pytest.raises(InvalidInput, match="cost"):
        FlowTally(FlowMapPolicy()).add(row(cost=cost))


def test_tallies_of_two_policies_are_not_one() -> None:
    with pytest.raises(InvalidInput, match="two policies"):
        FlowTally(SMALL).merge(FlowTally(FlowMapPolicy()))


def test_attempts_stand_in_bands() -> None:
    assert [k_band(k) for k in (0, 1, 2, 4, 5, 8)] == ["1", "1", "2-4", "2-4", "5+", "5+"]


def test_merging_leaves_the_other_tally_as_it_was() -> None:
    one, two = (FlowTally(SMALL).add_all(World(seed).rows(50)) for seed in (1, 2))
    before = flow_snapshot(two, "aggregate_v1", now=NOW).to_bytes()
    one.merge(two)
    one.add_all(World(3).rows(50))
    assert flow_snapshot(two, "aggregate_v1", now=NOW).to_bytes() == before
