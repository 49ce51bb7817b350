"""Wilson and Beta: known values, and what must hold of every count."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.stats import (
    Beta,
    Bounds,
    Prior,
    Tally,
    beta_bounds,
    confidence_sequence,
    difference_bounds,
    incomplete_beta,
    log_beta,
    normal_quantile,
    p_lb95,
    posterior,
    prob_greater,
    runs_needed,
    wilson_bounds,
)
from muniment.errors import InvalidInput
from products import for_each


def wilson_of(tally: Tally) -> Bounds:
    return wilson_bounds(tally.passes, tally.n)


INTERVALS = [wilson_of, beta_bounds, confidence_sequence]

# mpmath 1.4.1, 30 digits
INCOMPLETE = [
    (0.5, 0.5, 0.1, 0.20483276469913345),
    (0.5, 0.5, 0.9, 0.7951672353008665),
    (3.5, 0.5, 0.9, 0.407083822065589),
    (0.5, 8.5, 0.01, 0.31622805574742613),
    (8.5, 0.5, 0.7, 0.015200205440347775),
    (22.5, 0.5, 0.85, 0.007154964955247654),
    (10, 30, 0.2, 0.24135945128079145),
    (100.5, 200.5, 0.35, 0.7261705902512442),
    (1000.5, 9000.5, 0.105, 0.949327281608735),
    (50000.5, 50000.5, 0.501, 0.7364560945866732),
    (1, 1, 0.25, 0.25),
    (2, 5, 0.999, 0.999999999999994),
    (0.5, 500.5, 1e-06, 0.025233432401310058),
    (300.5, 0.5, 0.999, 0.4382726856320491),
]
# scipy 1.17.1: stats.beta.ppf
QUANTILES = [
    (0.5, 0.5, 0.025, 0.001541333133436012),
    (0.5, 3.5, 0.975, 0.5355832430429502),
    (3.5, 0.5, 0.025, 0.46441675695704965),
    (8.5, 0.5, 0.05, 0.792491958319267),
    (15.5, 5.5, 0.025, 0.5358053707591319),
    (15.5, 5.5, 0.975, 0.8976015143169549),
    (100.5, 900.5, 0.025, 0.08256265284306004),
    (5000.5, 5000.5, 0.975, 0.5097986339281972),
    (1, 1, 0.3, 0.3),
    (2, 3, 0.5, 0.3857275681323895),
    (0.5, 100.5, 0.025, 4.898073104397486e-06),
    (20.5, 2.5, 0.05, 0.7704284312976719),
]
# scipy's betainc under 40 × 200 Gauss points
GREATER = [
    ((0.5, 0.5), (1.5, 0.5), 0.2973576327153244),
    ((3.5, 0.5), (0.5, 3.5), 0.9957082620154906),
    ((8.5, 2.5), (5.5, 5.5), 0.9209724441627438),
    ((100.5, 20.5), (95.5, 25.5), 0.7957484723422078),
    ((1000.5, 250.5), (950.5, 300.5), 0.9921350671786423),
    ((0.5, 0.5), (500.5, 500.5), 0.5),
    ((2, 3), (4, 5), 14 / 33),
    ((160.5, 40.5), (3.5, 1.5), 0.642096961216552),
]


@pytest.mark.req("RC-16")
def test_the_figures_of_the_reading() -> None:
    assert [round(wilson_bounds(passes, 3).lower, 2) for passes in range(4)] == [0.0, 0.06, 0.21, 0.44]
    assert round(wilson_bounds(8, 8).lower, 2) == 0.68
    assert runs_needed(0.85) == 22
    assert wilson_bounds(21, 21).lower < 0.85 <= wilson_bounds(22, 22).lower


def test_wilson_is_the_root_of_its_equation() -> None:
    lower, upper = wilson_bounds(15, 20)
    for p in (lower, upper):
        assert abs(0.75 - p) == pytest.approx(1.959963984540054 * math.sqrt(p * (1 - p) / 20), abs=1e-12)


def test_a_confidence_other_than_the_usual() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054, abs=1e-14)
    assert normal_quantile(0.5) == pytest.approx(0, abs=1e-15)
    wide, narrow = wilson_bounds(15, 20, 0.99), wilson_bounds(15, 20, 0.8)
    assert wide.lower < narrow.lower < 0.75 < narrow.upper < wide.upper


@pytest.mark.req("RC-16")
def test_runs_needed_counts_from_what_is_there() -> None:
    assert runs_needed(0.0) == 0
    assert runs_needed(0.4, Tally(3, 3)) == 0
    after = Tally(3, 4)
    more = runs_needed(0.85, after)
    assert more > 22
    assert wilson_bounds(3 + more, 4 + more).lower >= 0.85 > wilson_bounds(2 + more, 3 + more).lower
    assert runs_needed(0.999_999) > 1_000_000
    for target in (0.05, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
        runs = runs_needed(target)
        assert wilson_bounds(runs, runs).lower >= target > wilson_bounds(runs - 1, runs - 1).lower


@pytest.mark.req("RC-16")
def test_nothing_run_is_unknown_and_not_nought() -> None:
    assert Tally().p_hat is None
    assert p_lb95(Tally()) is None
    assert all(bounds(Tally()) == Bounds(0.0, 1.0) for bounds in INTERVALS)
    assert difference_bounds(Tally(), Tally(3, 4)) == Bounds(-1.0, 1.0)


def test_newcombes_own_example() -> None:
    assert difference_bounds(Tally(56, 70), Tally(48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@for_each(("a", "b", "x", "value"), INCOMPLETE)
def test_the_incomplete_beta_function(a: float, b: float, x: float, value: float) -> None:
    assert incomplete_beta(x, a, b) == pytest.approx(value, abs=1e-12)
    assert incomplete_beta(1 - x, b, a) == pytest.approx(1 - value, abs=1e-10)


@for_each(("a", "b", "q", "value"), QUANTILES)
def test_beta_quantiles(a: float, b: float, q: float, value: float) -> None:
    assert Beta(a, b).quantile(q) == pytest.approx(value, rel=1e-10)


@for_each(("mine", "other", "value"), GREATER)
def test_the_chance_that_one_is_above_the_other(
    mine: tuple[float, float], other: tuple[float, float], value: float
) -> None:
    assert prob_greater(Beta(*mine), Beta(*other)) == pytest.approx(value, abs=1e-10)
    assert prob_greater(Beta(*other), Beta(*mine)) == pytest.approx(1 - value, abs=1e-10)


def test_beta_edges() -> None:
    assert log_beta(3, 4) == pytest.approx(math.log(1 / 60), abs=1e-14)
    assert (incomplete_beta(0, 2, 3), incomplete_beta(1, 2, 3)) == (0.0, 1.0)
    assert posterior(Tally(3, 4)) == Beta(3.5, 1.5)
    assert posterior(Tally(3, 4), Prior(1, 1)).mean == pytest.approx(4 / 6)
    assert prob_greater(Beta(2, 3), Beta(2, 3)) == 0.5
    assert Beta(1e7, 1e7).quantile(0.975) == pytest.approx(0.5 + 1.959963984540054 / math.sqrt(8e7), abs=1e-9)


tallies = st.integers(1, 400).flatmap(lambda n: st.builds(Tally, st.integers(0, n), st.just(n)))


@given(tallies)
def test_every_interval_holds_the_observed_rate(tally: Tally) -> None:
    for bounds in INTERVALS:
        lower, upper = bounds(tally)
        assert tally.p_hat is not None
        assert 0 <= lower <= tally.p_hat <= upper <= 1
        assert (lower == 0) == (tally.passes == 0)
        assert (upper == 1) == (tally.fails == 0)


@given(tallies)
def test_a_pass_lifts_and_a_failure_lowers(tally: Tally) -> None:
    for bounds in INTERVALS:
        here, up, down = bounds(tally), bounds(tally.add(True)), bounds(tally.add(False))
        assert up.lower >= here.lower - 1e-12
        assert down.upper <= here.upper + 1e-12
        if tally.passes:
            more = bounds(Tally(tally.passes - 1, tally.n))
            assert more.lower <= here.lower
            assert more.upper <= here.upper


@given(tallies, st.integers(2, 5))
def test_more_runs_at_the_same_rate_narrow_it(tally: Tally, times: int) -> None:
    for bounds in INTERVALS:
        here, more = bounds(tally), bounds(Tally(tally.passes * times, tally.n * times))
        assert here.lower <= more.lower + 1e-12
        assert more.upper <= here.upper + 1e-12


@given(tallies)
def test_looking_all_the_time_costs_width(tally: Tally) -> None:
    fixed, always = wilson_of(tally), confidence_sequence(tally)
    assert always.lower <= fixed.lower
    assert fixed.upper <= always.upper


@given(tallies, tallies)
def test_the_difference_turns_round(mine: Tally, other: Tally) -> None:
    there, back = difference_bounds(mine, other), difference_bounds(other, mine)
    assert there == pytest.approx((-back.upper, -back.lower), abs=1e-12)
    assert -1 <= there.lower <= there.upper <= 1


@for_each(
    ("passes", "n"), [(-1, 3), (4, 3), (1, -1), (True, 3), (1, True), (1.0, 3), (float("nan"), 3), ("1", 3), (None, 3)]
)
def test_what_is_no_count_is_refused(passes: Any, n: Any) -> None:
    with pytest.raises(InvalidInput):
        wilson_bounds(passes, n)
    with pytest.raises(InvalidInput):
        Tally(passes, n)


@for_each("level", [0, 1, -0.1, 1.5, float("nan"), float("inf"), True, "0.95", None])
def test_what_is_no_level_is_refused(level: Any) -> None:
    for call in (
        lambda: wilson_bounds(1, 2, level),
        lambda: confidence_sequence(Tally(1, 2), level),
        lambda: beta_bounds(Tally(1, 2), level),
        lambda: Beta(1, 2).quantile(level),
        lambda: normal_quantile(level),
    ):
        with pytest.raises(InvalidInput):
            call()


@for_each("target", [1, 1.0, -0.1, 2, float("nan"), True])
def test_a_target_that_cannot_be_reached_is_refused(target: Any) -> None:
    with pytest.raises(InvalidInput):
        runs_needed(target)


@for_each("shapes", [(0, 1), (1, 0.01), (1, 1e13), (float("nan"), 1), (1, True)])
def test_shapes_out_of_range_are_refused(shapes: Any) -> None:
    with pytest.raises(InvalidInput):
        Beta(*shapes)
    with pytest.raises(InvalidInput):
        incomplete_beta(0.5, *shapes)
    with pytest.raises(InvalidInput):
        incomplete_beta(1.5, 1, 1)
