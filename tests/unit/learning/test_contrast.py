"""What separates passing from failing runs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_makers import greedy_against_random, many_runs, run, runs_with

from effort import examples
from muniment.core.policy.learning import FoldPolicy
from muniment.core.stats.bounds import Beta, prob_greater
from muniment.learning.fold.contrast import contrast, separations_of, window
from muniment.learning.stored_memory import RunFacts

POLICY = FoldPolicy()


@pytest.mark.req("RC-10")
def test_a_feature_that_separates_is_told_with_its_counts() -> None:
    (found,) = contrast(greedy_against_random(), POLICY)
    assert found.feature == "own:strategy=greedy"
    assert found.helps
    assert (found.with_tally.passes, found.with_tally.n, found.with_tally.cost_sum) == (8, 9, 90)
    assert (found.without_tally.passes, found.without_tally.n) == (1, 9)
    assert found.difference == pytest.approx(7 / 9)
    assert found.probability == pytest.approx(prob_greater(Beta(9, 2), Beta(2, 9)), abs=1e-9)
    assert found.doubt >= 1 - found.probability


def test_both_directions_are_told() -> None:
    runs = [
        *runs_with({"a": "x"}, 9, 0, "x"),
        *runs_with({"a": "y"}, 4, 5, "y"),
        *runs_with({"a": "z"}, 0, 9, "z"),
    ]
    assert {one.feature: one.helps for one in contrast(runs, POLICY)} == {"own:a=x": True, "own:a=z": False}


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_told_below_support(count: int) -> None:
    runs = [*runs_with({"a": "x"}, count, 0, "x"), *runs_with({"a": "y"}, 0, 200, "y")]
    assert contrast(runs, POLICY.model_copy(update={"confidence_min": 0.0})) == []
    assert separations_of(["own:a=x"], runs, POLICY) == {}


def test_nothing_is_told_of_a_small_difference_however_sure() -> None:
    runs = [*runs_with({"a": "x"}, 300, 300, "x"), *runs_with({"a": "y"}, 240, 360, "y")]
    wide = POLICY.model_copy(update={"peers_max": 2_000})
    assert contrast(runs, wide) == []
    assert [one.feature for one in contrast(runs, wide.model_copy(update={"separation_min": 0.05}))] == ["own:a=x"]


def test_where_all_end_alike_nothing_separates() -> None:
    assert contrast(runs_with({"a": "x"}, 9, 0) + runs_with({"a": "y"}, 9, 0, "s"), POLICY) == []
    assert contrast([], POLICY) == []


def test_features_of_the_same_runs_are_one_and_the_most_telling_speaks() -> None:
    runs = [
        *runs_with({"strategy": "greedy"}, 8, 1, "g", tools=("search", "book")),
        *runs_with({"strategy": "random"}, 1, 8, "r", tools=("search",)),
    ]
    (found,) = contrast(runs, POLICY)
    assert found.feature == "own:strategy=greedy"
    assert {"order:search>book", "tool:book", "steps:2"} <= set(found.also)


def test_features_of_nearly_the_same_runs_are_merged() -> None:
    def made(name: str, passed: bool, strategy: str, mark: str) -> RunFacts:
        return run(name, passed, own_features={"strategy": strategy, "mark": mark})

    runs = [made(f"g{place:02}", place > 0, "greedy", "on" if place else "off") for place in range(20)]
    runs += [made(f"r{place:02}", place == 0, "random", "off") for place in range(20)]
    assert len(contrast(runs, POLICY)) == 1


def test_what_the_verifier_said_never_separates() -> None:
    runs = [
        *(run(f"p{place}", True, kept=("FORMAT:JSON_ONLY",)) for place in range(9)),
        *(run(f"f{place}", False, violated=("FORMAT:JSON_ONLY",), reason_codes=("x",)) for place in range(9)),
    ]
    assert contrast(runs, POLICY) == []


def test_looking_at_many_useless_features_tells_few_falsely() -> None:
    """At a confidence of 0.9 about one family in ten may tell something (15 here, give or take 4); else most would."""
    told = alone = 0
    for seed in range(150):
        draw = random.Random(seed)
        runs = [
            run(f"t{place:03}", draw.random() < 0.5, own_features={f"f{one}": draw.random() < 0.5 for one in range(25)})
            for place in range(40)
        ]
        told += bool(contrast(runs, POLICY))
        names = [f"own:f{one}=true" for one in range(25)]
        each = separations_of(names, runs, POLICY).values()
        alone += any(one.probability >= 0.9 and abs(one.difference) >= 0.2 for one in each)
    assert told <= 22
    assert alone >= 100


@settings(max_examples=examples(20), deadline=None)
@given(many_runs(), st.randoms(use_true_random=False))
def test_the_order_of_the_runs_makes_no_difference(runs: list[RunFacts], shuffler: random.Random) -> None:
    told = contrast(runs, POLICY.model_copy(update={"confidence_min": 0.5}))
    mixed = [*runs, *runs[:3]]
    shuffler.shuffle(mixed)
    assert contrast(mixed, POLICY.model_copy(update={"confidence_min": 0.5})) == told
    for one in told:
        assert min(one.with_tally.n, one.without_tally.n) >= POLICY.support_min
        assert abs(one.difference) >= POLICY.separation_min
        assert one.with_tally.n + one.without_tally.n == len(runs)
        assert 0.5 <= one.probability <= 1
        assert 0 <= one.doubt <= 0.5


def test_the_window_takes_the_newest_each_once() -> None:
    runs = [run(f"t{place}", True, at=f"2026-05-0{place}T00:00:00.000000Z") for place in (3, 1, 2, 1)]
    assert [one.trace_id for one in window(runs, POLICY.model_copy(update={"peers_max": 2}))] == ["t2", "t3"]


def test_the_chance_is_exact_for_many_runs_too() -> None:
    runs = [*runs_with({"a": "x"}, 820, 180, "x"), *runs_with({"a": "y"}, 780, 220, "y")]
    found = separations_of(["own:a=x"], runs, POLICY.model_copy(update={"peers_max": 5_000}))["own:a=x"]
    assert found.probability == pytest.approx(prob_greater(Beta(821, 181), Beta(781, 221)), abs=1e-8)
