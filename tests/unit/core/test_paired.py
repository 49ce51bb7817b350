"""Bounds on paired differences: the same bytes each time, around the mean, narrower with more pairs."""

from __future__ import annotations

from statistics import fmean

import pytest

from muniment.core.stats import paired_bounds
from muniment.errors import InvalidInput

SOME = [0.5, -0.25, 0.0, 1.0, 0.25, 0.0, 0.75, -0.5, 0.25, 0.5]


def test_the_same_differences_give_the_same_bounds() -> None:
    assert paired_bounds(SOME) == paired_bounds(list(SOME))
    assert paired_bounds(SOME) != paired_bounds(SOME, seed=1)


def test_bounds_hold_the_mean_and_narrow_with_more_pairs() -> None:
    few, many = paired_bounds(SOME), paired_bounds(SOME * 20)
    for bounds in (few, many):
        assert bounds.lower < fmean(SOME) < bounds.upper
    assert many.upper - many.lower < (few.upper - few.lower) / 3


def test_what_is_always_so_has_no_width() -> None:
    assert paired_bounds([0.5] * 12) == (0.5, 0.5)
    assert paired_bounds([0.25]) == (0.25, 0.25)


def test_the_order_of_a_long_row_is_drawn_from_evenly() -> None:
    """A row of which the first half is 0 and the second 1: no half is drawn more often."""
    bounds = paired_bounds([0.0] * 1000 + [1.0] * 1000)
    assert 0.47 < bounds.lower < 0.5 < bounds.upper < 0.53


def test_more_confidence_is_wider() -> None:
    sure, less = paired_bounds(SOME, confidence=0.99), paired_bounds(SOME, confidence=0.8)
    assert sure.lower < less.lower <= less.upper < sure.upper


@pytest.mark.parametrize("given", [[], [float("nan")], ["1"]])
def test_what_is_no_difference_is_refused(given: list[float]) -> None:
    with pytest.raises(InvalidInput):
        paired_bounds(given)
