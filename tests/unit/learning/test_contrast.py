"""What separates passing from failing runs."""

from __future__ import annotations

import random
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_makers import greedy_against_random, many_runs, run, runs_with

from effort import examples
from muniment.core.policy import FoldPolicy
from muniment.learning._contrast import contrast, window
from muniment.learning.records import IntentParts, RunFacts

POLICY = FoldPolicy()


@pytest.mark.req("RC-10")
def test_a_feature_that_separates_is_told_with_its_counts() -> None:
    (found,) = contrast(greedy_against_random(), POLICY)
    assert found.feature == "own:strategy=greedy"
    assert found.helps
    assert (found.with_tally.passes, found.with_tally.n, found.with_tally.cost_sum) == (8, 9, 90)
    assert (found.without_tally.passes, found.without_tally.n) == (1, 9)
    assert found.difference == pytest.approx(7 / 9)
    luck = (sum(comb(9, k) * comb(9, 9 - k) for k in (9,)) + comb(9, 8) * comb(9, 1) / 2) / comb(18, 9)
    assert found.probability == pytest.approx(1 - luck, abs=1e-12)
    assert found.bounds.lower < found.difference < found.bounds.upper
    assert found.doubt >= 1 - found.probability


def test_both_directions_are_told() -> None:
    runs = [
        *runs_with({"a": "x"}, 9, 0, "x"),
        *runs_with({"a": "y"}, 4, 5, "y"),
        *runs_with({"a": "z"}, 0, 9, "z"),
    ]
    assert {one.feature: one.helps for one in contrast(runs, POLICY)} == {"own:a=x": True, "own:a=z": False}


@pytest.mark.soak
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
    assert {"order:search>book", "tool:book"} <= set(found.also)


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


@pytest.mark.soak
def test_looking_at_many_useless_features_tells_few_falsely() -> None:
    """At a confidence of 0.9 about one family in ten may tell something (15 here, give or take 4); else most would."""
    told = 0
    for seed in range(150):
        draw = random.Random(seed)
        runs = [
            run(f"t{place:03}", draw.random() < 0.5, own_features={f"f{one}": draw.random() < 0.5 for one in range(25)})
            for place in range(40)
        ]
        told += bool(contrast(runs, POLICY))
    assert told <= 22


@pytest.mark.soak
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
        assert one.with_tally.n + one.without_tally.n == len(one.compared) <= len(runs)
        assert 0.5 <= one.probability <= 1
        assert 0 <= one.doubt <= 0.5


def test_the_window_takes_the_newest_each_once() -> None:
    runs = [run(f"t{place}", True, at=f"2026-05-0{place}T00:00:00.000000Z") for place in (3, 1, 2, 1)]
    assert [one.trace_id for one in window(runs, POLICY.model_copy(update={"peers_max": 2}))] == ["t2", "t3"]


# -- within tasks -----------------------------------------------------------------------------------------


def world(seed: int, effect: float, *, tasks: int = 12, times: int = 8) -> list[RunFacts]:
    """Tasks of very different difficulty. The harder one is, the more `dig` is called; `ask` has the effect."""
    draw = random.Random(seed)
    runs = []
    for task in range(tasks):
        hard = draw.random() < 0.5
        for time in range(times):
            asks, digs = draw.random() < 0.5, draw.random() < (0.85 if hard else 0.15)
            rate = (0.1 if hard else 0.8 - effect) + effect * asks
            tools = ("look", *(["dig"] if digs else []), *(["ask"] if asks else []), "end")
            name = f"t{task:02}.{time}"
            runs.append(run(name, draw.random() < rate, tools, x_summary=f"Do task {'abcdefghijklmnop'[task]}."))
    return runs


@pytest.mark.req("TM-15")
def test_an_effect_within_tasks_is_told_with_its_power() -> None:
    """An effect of .45 in twelve tasks of eight runs is found in nine worlds of ten, with its sign and size."""
    names = {"order:ask>end", "tool:ask"}
    worlds = [contrast(world(seed, 0.45), POLICY) for seed in range(40)]
    found = [one for told in worlds for one in told if names & {one.feature, *one.also}]
    assert len(found) >= 36
    assert all(one.helps for one in found)
    assert all(one.strata > 6 for one in found)
    assert sum(one.bounds.lower <= 0.45 <= one.bounds.upper for one in found) >= 0.8 * len(found)


def test_strata_that_disagree_tell_nothing() -> None:
    runs = []
    for task in range(6):
        for n in range(10):
            asks = n % 2 == 0
            passed = asks if task < 3 else (not asks) if task < 5 else n % 4 < 2
            runs.append(run(f"t{task}.{n}", passed, ("ask",) if asks else ("dig",), x_summary=f"Task {'abcdef'[task]}"))
    assert contrast(runs, POLICY.model_copy(update={"confidence_min": 0.1, "separation_min": 0.05})) == []


# -- which runs are comparable ----------------------------------------------------------------------------


def test_what_a_run_does_is_not_compared_between_tasks_where_no_family_is_named() -> None:
    nothing = IntentParts(domain_tag="travel")
    runs = [
        run(f"t{n}", n % 2 == 0, ("ask",) if n % 2 == 0 else ("dig",), x_summary=f"About {letter * 3}", intent=nothing)
        for n, letter in enumerate("abcdefghijklmnopqrst")
    ]
    assert contrast(runs, POLICY) == []
    named = [one.model_copy(update={"intent": IntentParts(task_family="booking")}) for one in runs]
    assert contrast(named, POLICY) != [], "of one family by the caller's word"
    own = [one.model_copy(update={"own_features": {"way": "a" if one.passed else "b"}}) for one in runs]
    assert [one.feature for one in contrast(own, POLICY)] == ["own:way=a"], "what the caller sets answers to no task"


def test_requests_of_one_form_are_comparable_where_no_family_is_named() -> None:
    runs = [
        run(
            f"t{n}",
            n % 2 == 0,
            ("ask",) if n % 2 == 0 else ("dig",),
            x_summary=f"Find order {n}.",
            intent=IntentParts(),
        )
        for n in range(20)
    ]
    assert [one.strata for one in contrast(runs, POLICY)] == [1]


def until_passed(seed: int, effect: float = 0.0, tasks: int = 40) -> list[RunFacts]:
    """Each task is tried until it passes, four times at the most; more is thought of it from try to try."""
    draw = random.Random(seed)
    runs = []
    for task in range(tasks):
        for time in range(4):
            thinks = draw.random() < 0.05 + 0.3 * time
            passed = draw.random() < 0.3 + effect * thinks
            at = f"2026-05-01T12:{task:02}:0{time}.000000Z"
            own = {"thinks": thinks}
            words = f"Task {'abcdefghijklmnopqrst'[task // 2]}{'xy'[task % 2]}."
            runs.append(run(f"t{task:02}.{time}", passed, x_summary=words, own_features=own, at=at))
            if passed:
                break
    return runs


@pytest.mark.req("TM-15")
def test_that_tasks_are_tried_until_they_pass_makes_nothing_of_what_grows_with_the_tries() -> None:
    """The last try of each is the one that passed. What is done more in later tries is no reason for it."""
    assert sum(bool(contrast(until_passed(seed), POLICY)) for seed in range(40)) <= 6
    assert sum(bool(contrast(until_passed(seed, 0.55), POLICY)) for seed in range(40)) >= 36


def test_tasks_that_are_tried_whatever_came_before_are_compared_with_themselves() -> None:
    runs = world(1, 0.45)
    assert {one.strata > 1 for one in contrast(runs, POLICY)} == {True}
