"""Tallies, windows and averages: one at a time is the same as all at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.stats import Ema, Tally, Window
from muniment.errors import InvalidInput
from products import for_each

outcomes = st.lists(st.booleans(), max_size=60)
numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(outcomes, outcomes)
def test_tallies_add_up(first: list[bool], second: list[bool]) -> None:
    one_by_one = Tally()
    for passed in first:
        one_by_one = one_by_one.add(passed)
    assert one_by_one == Tally.of(first)
    assert Tally.of(first).merge(Tally.of(second)) == Tally.of(second + first)
    assert Tally.of(first + second).less(Tally.of(second)) == Tally.of(first)
    assert Tally.from_wire(one_by_one.to_wire()) == one_by_one
    assert one_by_one.passes + one_by_one.fails == one_by_one.n


@given(outcomes, st.integers(1, 20))
def test_a_window_is_the_tail(seen: list[bool], size: int) -> None:
    window = Window(size)
    for passed in seen:
        window = window.add(passed)
    assert window.tally == Tally.of(seen[-size:])
    assert Window(size, window.recent) == window


@given(numbers, st.floats(0.01, 1))
def test_an_average_is_the_weighted_mean(values: list[float], weight: float) -> None:
    average = Ema(weight).add_all(values)
    weights = [weight * (1 - weight) ** (len(values) - 1 - index) for index in range(len(values))]
    exact = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
    assert average.value == pytest.approx(exact, rel=1e-9, abs=1e-6)
    assert average.n == len(values)
    assert min(values) - 1e-6 <= average.value <= max(values) + 1e-6
    stored = Ema(average.weight, average.total, average.mass, average.n)
    assert stored.add(1.0) == Ema(weight).add_all([*values, 1.0])


def test_the_first_value_is_the_average_of_one() -> None:
    assert Ema(0.1).value is None
    assert Ema(0.1).add(0.7).value == pytest.approx(0.7, abs=1e-15)


@for_each("weight", [0, -0.1, 1.1, float("nan"), True, "0.1", None])
def test_weights_out_of_range_are_refused(weight: Any) -> None:
    with pytest.raises(InvalidInput):
        Ema(weight)


@pytest.mark.parametrize("state", [(0.1, float("nan")), (0.1, 0.0, 2.0, 1), (0.1, 0.0, 0.0, 1), (0.1, 0.0, 0.5, 0)])
def test_states_that_never_were_are_refused(state: Any) -> None:
    with pytest.raises(InvalidInput):
        Ema(*state)


@for_each("value", [float("nan"), float("inf"), True, "1", None])
def test_values_that_are_no_numbers_are_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        Ema(0.1).add(value)


@for_each("window", [(0,), (-1,), (True,), (2, "111"), (3, "1x"), (3, None), (2.0,)])
def test_windows_that_are_none_are_refused(window: Any) -> None:
    with pytest.raises(InvalidInput):
        Window(*window)


@for_each("passed", [1, 0, None, "PASS", 1.0])
def test_only_true_and_false_are_outcomes(passed: Any) -> None:
    for call in (Tally().add, Window(3).add, lambda seen: Tally.of([seen])):
        with pytest.raises(InvalidInput):
            call(passed)


@for_each("wire", [None, [], {}, {"passes": 1}, {"passes": 1, "n": 2, "x": 3}, {"passes": 3, "n": 2}])
def test_wires_that_are_no_tally_are_refused(wire: Any) -> None:
    with pytest.raises(InvalidInput):
        Tally.from_wire(wire)


def test_taking_out_what_was_not_in_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Tally(1, 2).less(Tally(0, 3))
