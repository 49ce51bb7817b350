"""Tests that may be looked at after every run: how often they are wrong, and that they do speak."""

from __future__ import annotations

import json
from functools import cache
from math import log
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment.core.stats import (
    STAKES,
    Comparison,
    Tally,
    confidence_sequence,
    difference_sequence,
    evidence_above,
    evidence_below,
    rate_test,
)
from muniment.errors import InvalidInput
from products import for_each

ALPHA = 0.05
EDGE = log(1 / ALPHA)


# -- one rate -----------------------------------------------------------------------------------------


@cache
def bounds_of(looks: int) -> dict[tuple[int, int], Any]:
    """What is said of every count up to so many looks."""
    return {(s, n): confidence_sequence(Tally(s, n)) for n in range(1, looks + 1) for s in range(n + 1)}


@pytest.mark.soak
@pytest.mark.req("RC-16")
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9])
def test_the_sequence_holds_the_rate_at_every_look(p: float) -> None:
    """Over all looks of a stream at once, in at least 95 % of the streams."""
    table = bounds_of(80)
    seen = np.random.default_rng(7).random((2000, 80)) < p
    passes = seen.cumsum(axis=1)
    missed = sum(
        any(not table[s, n].lower <= p <= table[s, n].upper for n, s in enumerate(stream, 1))
        for stream in passes.tolist()
    )
    assert missed / 2000 <= ALPHA


def test_the_sequence_closes_in() -> None:
    widths = [
        bounds.upper - bounds.lower
        for n in (10, 100, 1000, 10_000)
        if (bounds := confidence_sequence(Tally(n * 8 // 10, n)))
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.05


def test_its_ends_are_where_the_capital_reaches_the_edge() -> None:
    """With nothing but passes the mixture is B(s+½, ½)/B(½, ½) over p^s."""
    assert confidence_sequence(Tally(1, 1)).lower == pytest.approx(0.5 * ALPHA, abs=1e-12)
    assert confidence_sequence(Tally(2, 2)).lower == pytest.approx((0.375 * ALPHA) ** 0.5, abs=1e-12)


@pytest.mark.req("RC-16", "RC-20")
@pytest.mark.parametrize("threshold", [0.05, 0.5, 0.85])
def test_neither_claim_about_a_threshold_comes_too_often(threshold: float) -> None:
    """At the threshold itself, the hardest case, 2,000 streams of 60 looks."""
    above = {(s, n): evidence_above(Tally(s, n), threshold) >= EDGE for n in range(1, 61) for s in range(n + 1)}
    below = {(s, n): evidence_below(Tally(s, n), threshold) >= EDGE for n in range(1, 61) for s in range(n + 1)}
    passes = (np.random.default_rng(3).random((2000, 60)) < threshold).cumsum(axis=1).tolist()
    for claims in (above, below):
        wrong = sum(any(claims[s, n] for n, s in enumerate(stream, 1)) for stream in passes)
        assert wrong / 2000 <= ALPHA


def test_a_dead_zone_and_an_easy_case_are_told() -> None:
    assert rate_test(Tally(0, 6), 0.05) == "undecided"
    assert rate_test(Tally(0, 90), 0.05) == "below"
    assert rate_test(Tally(22, 22), 0.85) == "undecided"
    assert rate_test(Tally(30, 30), 0.85) == "above"
    assert rate_test(Tally(), 0.5) == "undecided"


@given(st.integers(0, 200).flatmap(lambda n: st.builds(Tally, st.integers(0, n), st.just(n))), st.floats(0.01, 0.99))
@example(Tally(14, 38), 0.015625)
def test_evidence_rises_with_each_pass(tally: Tally, threshold: float) -> None:
    assert evidence_above(tally.add(True), threshold) >= evidence_above(tally, threshold) - 1e-9
    assert evidence_below(tally.add(False), threshold) >= evidence_below(tally, threshold) - 1e-9
    assert min(evidence_above(tally, threshold), evidence_below(tally, threshold)) < EDGE
    mirrored = evidence_below(Tally(tally.fails, tally.n), 1 - threshold)
    assert evidence_above(tally, threshold) == pytest.approx(mirrored, abs=1e-6)


def test_evidence_is_not_made_of_rounding() -> None:
    """Where next to no weight is left on one side, what is left must not be noise times a huge likelihood ratio."""
    for tally in (Tally(14, 38), Tally(100, 200), Tally(390, 400)):
        for threshold in (0.01, 0.015625, 0.05):
            assert evidence_above(tally, threshold) > EDGE
            assert evidence_below(tally, threshold) < 0


def test_the_difference_of_two_sequences() -> None:
    lower, upper = difference_sequence(Tally(90, 100), Tally(40, 100))
    assert 0 < lower < 0.5 < upper
    assert difference_sequence(Tally(), Tally()) == (-1.0, 1.0)


@for_each("threshold", [0, 1, -0.5, float("nan"), True, None])
def test_thresholds_out_of_range_are_refused(threshold: Any) -> None:
    for call in (evidence_above, evidence_below, rate_test):
        with pytest.raises(InvalidInput):
            call(Tally(1, 2), threshold)


# -- two arms -----------------------------------------------------------------------------------------


def claimed(gains: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """For each stream (a row of gains), did its game ever reach the edge? What `Comparison` does, all rows at once."""
    total = np.zeros(gains.shape)
    for stake in STAKES:
        total += np.exp(np.cumsum(np.log1p(stake * gains), axis=1)) / len(STAKES)
    reached: np.ndarray[Any, Any] = (total >= 1 / ALPHA).any(axis=1)
    return reached


def gaps(candidate: float, baseline: float, streams: int, looks: int, seed: int) -> np.ndarray[Any, Any]:
    draw = np.random.default_rng(seed)
    mine = (draw.random((streams, looks)) < candidate).astype(np.float64)
    other: np.ndarray[Any, Any] = draw.random((streams, looks)) < baseline
    return mine - other


@pytest.mark.req("RC-16", "RC-18")
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.97])
def test_a_neutral_candidate_is_seldom_called_anything_else(rate: float) -> None:
    """2,000 streams, 500 looks each, stopping at the first claim."""
    seen = gaps(rate, rate, 2000, 500, 11)
    assert claimed(-seen).mean() <= ALPHA
    assert claimed(seen).mean() <= ALPHA


@pytest.mark.req("RC-16", "RC-18")
def test_a_harm_of_the_margin_is_seldom_called_harmless() -> None:
    assert claimed(gaps(0.75, 0.8, 2000, 500, 12) + 0.05).mean() <= ALPHA


@pytest.mark.req("RC-16", "RC-18")
def test_harm_is_found() -> None:
    assert claimed(-gaps(0.70, 0.8, 500, 800, 13)).mean() > 0.9
    assert claimed(-gaps(0.75, 0.8, 200, 2000, 14)).mean() > 0.8
    assert claimed(gaps(0.8, 0.8, 200, 2000, 15) + 0.05).mean() > 0.8


@pytest.mark.parametrize(("candidate", "seed"), [(0.8, 1), (0.5, 2), (0.95, 3)])
def test_the_record_plays_the_game_of_the_simulation(candidate: float, seed: int) -> None:
    draw = Random(seed)
    state = Comparison()
    seen = []
    for _ in range(400):
        mine, other = draw.random() < candidate, draw.random() < 0.8
        state = state.add("baseline", other).add("candidate", mine)
        seen.append(float(mine) - float(other))
    row = np.array([seen])
    games = {"worse": -row, "not_harmful": row + 0.05, "better": row}
    assert set(state.claims) == {name for name, gains in games.items() if claimed(gains)[0]}
    assert state.rounds == 400
    assert state.effect == pytest.approx(sum(seen) / 400)


def fed(state: Comparison, candidate: float, baseline: float, n: int, seed: int, share: float = 0.5) -> Comparison:
    draw = Random(seed)
    while state.candidate.n < n and state.decision == "undecided":
        if draw.random() < share:
            state = state.add("candidate", draw.random() < candidate)
        else:
            state = state.add("baseline", draw.random() < baseline)
    return state


def test_decisions() -> None:
    assert Comparison().decision == "undecided"
    assert Comparison().effect is None
    assert fed(Comparison(), 0.5, 0.8, 400, 1).decision == "harmful"
    assert fed(Comparison(), 0.8, 0.8, 4000, 2).decision == "not_harmful"
    good = Comparison()
    for index in range(300):
        good = good.add_pair(True, index % 3 == 0)
    assert good.decision == "better"


def test_a_canary_of_five_percent_is_decided() -> None:
    state = fed(Comparison(), 0.5, 0.85, 200, 5, share=0.05)
    assert state.decision == "harmful"
    assert state.baseline.n > 5 * state.candidate.n
    assert state.rounds <= state.candidate.n


def test_waiting_outcomes_make_one_round() -> None:
    state = Comparison()
    for passed in (True, False, True):
        state = state.add("baseline", passed)
    assert (state.rounds, state.baseline_waiting) == (0, Tally(2, 3))
    state = state.add("candidate", True)
    assert (state.rounds, state.baseline_waiting, state.candidate_waiting) == (1, Tally(), Tally())
    assert state.better == pytest.approx([log(1 + stake / 3) for stake in STAKES])


def test_the_stakes_share_one_capital() -> None:
    won = Comparison().add_pair(True, False)
    assert won.better_peak == pytest.approx(log(sum(1 + stake for stake in STAKES) / len(STAKES)))
    assert won.not_harmful_peak == pytest.approx(log(sum(1 + 1.05 * stake for stake in STAKES) / len(STAKES)))
    assert won.worse_peak == 0.0


def test_a_pair_leaves_what_waits_alone() -> None:
    waiting = Comparison().add("baseline", True)
    after = waiting.add_pair(True, False)
    assert after.baseline_waiting == Tally(1, 1)
    assert (after.rounds, after.baseline, after.candidate) == (1, Tally(1, 2), Tally(1, 1))


def test_a_task_tried_several_times_is_one_round_and_less_of_a_draw() -> None:
    once = Comparison().add_pair(True, False).add_pair(False, True)
    twice = Comparison().add_matched(Tally(1, 2), Tally(1, 2))
    assert (twice.rounds, twice.candidate, twice.baseline) == (1, Tally(1, 2), Tally(1, 2))
    assert twice.better == Comparison().better, "as many with as without: nothing was staked"
    assert max(once.better) < 0, "the same outcomes as two rounds cost something"
    assert Comparison().add_matched(Tally(1, 1), Tally(0, 1)) == Comparison().add_pair(True, False)
    waiting = Comparison().add("baseline", True).add_matched(Tally(2, 2), Tally(0, 2))
    assert (waiting.baseline_waiting, waiting.baseline) == (Tally(1, 1), Tally(1, 3))
    for sides in ((Tally(), Tally(1, 1)), (Tally(1, 1), Tally())):
        with pytest.raises(InvalidInput):
            Comparison().add_matched(*sides)


def test_tasks_that_differ_and_are_tried_twice_are_seldom_told_to_gain_by_nothing() -> None:
    """Half of the tasks gain by it what the other half loses: the tries of one task are alike, and count as one."""
    random, wrong = Random(7), 0
    for _ in range(300):
        seen = Comparison()
        for _ in range(60):
            gain = random.choice((-0.4, 0.4))
            mine, other = (sum(random.random() < rate for _ in range(2)) for rate in (0.5 + gain, 0.5))
            seen = seen.add_matched(Tally(mine, 2), Tally(other, 2))
        wrong += "better" in seen.claims
    assert wrong <= 300 * 0.05


def test_what_was_shown_stays_shown() -> None:
    state = Comparison()
    for _ in range(60):
        state = state.add_pair(False, True)
    assert state.decision == "harmful"
    shown = state.claims
    for _ in range(60):
        state = state.add_pair(True, False)
    assert max(state.worse) < 0
    assert set(shown) <= set(state.claims)


def test_worse_by_less_than_the_margin_is_not_harmful_in_the_end() -> None:
    state = Comparison(margin=0.3)
    for index in range(3000):
        state = state.add_pair(index % 10 != 0, True)
    assert state.claims == ("worse", "not_harmful")
    assert state.decision == "not_harmful"


@given(st.lists(st.tuples(st.sampled_from(["candidate", "baseline"]), st.booleans()), max_size=40))
def test_it_survives_storage_at_any_point(events: list[Any]) -> None:
    straight = stored = Comparison()
    for arm, passed in events:
        straight = straight.add(arm, passed)
        stored = Comparison.from_wire(json.loads(json.dumps(stored.to_wire()))).add(arm, passed)
    assert stored == straight
    assert straight.candidate.n + straight.baseline.n == len(events)


def test_bad_comparisons_are_refused() -> None:
    for wrong in (0, 1, -0.1, float("nan"), True):
        with pytest.raises(InvalidInput):
            Comparison(margin=wrong)
        with pytest.raises(InvalidInput):
            Comparison(alpha=wrong)
    with pytest.raises(InvalidInput):
        Comparison().add("control", True)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        Comparison().add("candidate", 1)  # type: ignore[arg-type]


@for_each(
    "change",
    [
        {"rounds": -1},
        {"rounds": 1.5},
        {"worse": [0.0]},
        {"worse": None},
        {"better": [float("nan")] * len(STAKES)},
        {"candidate": {"passes": 2, "n": 1}},
        {"margin": "0.05"},
        {"more": 1},
    ],
)
def test_wires_that_are_no_comparison_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Comparison.from_wire({**Comparison().to_wire(), **change})
    with pytest.raises(InvalidInput):
        Comparison.from_wire([])


@pytest.mark.req("RC-16")
@pytest.mark.parametrize("seed", range(4))
def test_two_comparisons_joined_hold_what_one_of_all_outcomes_holds(seed: int) -> None:
    random = Random(seed)
    first, second, whole = Comparison(), Comparison(), Comparison()
    for number in range(60):
        pair = random.random() < 0.7, random.random() < 0.5
        whole = whole.add_pair(*pair)
        if number < 25:
            first = first.add_pair(*pair)
        else:
            second = second.add_pair(*pair)
    joined = first.followed_by(second)
    assert (joined.candidate, joined.baseline, joined.rounds) == (whole.candidate, whole.baseline, whole.rounds)
    for name in ("worse", "not_harmful", "better"):
        assert getattr(joined, name) == pytest.approx(getattr(whole, name))
        assert getattr(joined, f"{name}_peak") <= getattr(whole, f"{name}_peak") + 1e-9, "it claims no more"
    with pytest.raises(InvalidInput):
        first.followed_by(Comparison(margin=0.1))
