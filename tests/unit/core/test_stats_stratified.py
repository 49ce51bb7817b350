"""Two arms within strata: exact, and blind to what differs between them."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.stats import (
    Stratum,
    chance_of,
    difference_within,
    least_chance,
    pooled_difference,
    z_score,
)


@st.composite
def small_strata(draw: st.DrawFn) -> list[Stratum]:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        n, other_n = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        found.append(Stratum(n, draw(st.integers(0, n)), other_n, draw(st.integers(0, other_n))))
    return found


def by_counting(strata: list[Stratum]) -> float:
    """Every way to deal the passes of each stratum to its runs, counted one by one."""
    seen = sum(one.passes for one in strata if one.n and one.other_n)
    ways = []
    for one in strata:
        if one.n and one.other_n:
            runs = range(one.n + one.other_n)
            dealt = combinations(runs, one.passes + one.other_passes)
            ways.append([sum(place < one.n for place in passed) for passed in dealt])
    sums = [sum(parts) for parts in product(*ways)]
    return (sum(each > seen for each in sums) + sum(each == seen for each in sums) / 2) / len(sums)


@settings(max_examples=examples(80), deadline=None)
@given(small_strata())
def test_the_chance_is_what_counting_every_deal_gives(strata: list[Stratum]) -> None:
    found = chance_of(strata)
    assert found == pytest.approx(by_counting(strata), abs=1e-12)
    assert least_chance(strata) <= found + 1e-12
    swapped = [Stratum(one.other_n, one.other_passes, one.n, one.passes) for one in strata]
    assert found + chance_of(swapped) == pytest.approx(1, abs=1e-12)
    assert pooled_difference(swapped) == pytest.approx(-pooled_difference(strata), abs=1e-12)
    assert z_score(swapped) == pytest.approx(-z_score(strata), abs=1e-9)


def test_what_differs_between_strata_moves_nothing() -> None:
    """Each stratum passes alike in both arms; put together the arm would look twice as good."""
    strata = [Stratum(18, 16, 2, 2), Stratum(2, 0, 18, 1)]
    assert abs(pooled_difference(strata)) < 0.1
    assert chance_of(strata) > 0.3
    whole = Stratum(*(sum(column) for column in zip(*strata, strict=True)))
    assert whole.difference > 0.6
    assert chance_of([whole]) < 1e-3


def test_nothing_is_known_of_an_empty_arm() -> None:
    for strata in ([], [Stratum(5, 5, 0, 0)], [Stratum(0, 0, 5, 1)]):
        assert pooled_difference(strata) == 0
        assert chance_of(strata) == 0.5
        assert z_score(strata) == 0
        assert difference_within(strata) == (-1, 1)


@pytest.mark.parametrize("times", [4, 40])
def test_the_interval_holds_the_truth_as_often_as_it_says(times: int) -> None:
    """Many thin strata and few thick ones, each with a difficulty of its own and the same difference of .3."""
    draw = random.Random(7)
    held = 0
    for _ in range(300):
        strata = []
        for _ in range(160 // times):
            base = draw.uniform(0, 0.7)
            arms = [sum(draw.random() < base + 0.3 * arm for _ in range(times // 2)) for arm in (1, 0)]
            strata.append(Stratum(times // 2, arms[0], times // 2, arms[1]))
        low, high = difference_within(strata, 0.9)
        held += low <= 0.3 <= high
    assert 255 <= held <= 288


def test_large_strata_are_exact_and_quick() -> None:
    strata = [Stratum(1000, 820, 1000, 780)] * 2
    assert 0 < chance_of(strata) < 0.005
