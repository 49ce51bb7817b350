"""Bounds held against what can be worked out exactly: fractions, closed forms, the standard library; and refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from math import comb, factorial
from statistics import NormalDist, fmean, stdev
from typing import Any

import pytest

from muniment.core.stats import (
    JEFFREYS,
    Beta,
    Bounds,
    Prior,
    Tally,
    beta_bounds,
    difference_bounds,
    incomplete_beta,
    log_beta,
    log_share_above,
    mean_bounds,
    normal_quantile,
    p_lb95,
    posterior,
    prob_greater,
    runs_needed,
    student_quantile,
    wilson_bounds,
)
from muniment.errors import InvalidInput
from products import for_each

SHAPES = [(1, 1), (1, 9), (9, 1), (2, 3), (3, 2), (7, 7), (12, 30), (30, 12), (40, 4), (4, 40), (60, 60)]
ANEW = "correct it and call again; nothing was written"
PLACES = [Fraction(place, 64) for place in (1, 3, 8, 20, 31, 32, 33, 44, 56, 61, 63)]


def share_above(x: Fraction, a: int, b: int) -> Fraction:
    """1 - I_x(a, b) of whole shapes: the chance of fewer than a passes in a + b - 1 runs."""
    n = a + b - 1
    return sum((comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a)), Fraction())


def chance_above(mine: tuple[int, int], other: tuple[int, int]) -> Fraction:
    """That a draw of Beta(*mine) is above one of Beta(*other), for whole shapes."""

    def beta(a: int, b: int) -> Fraction:
        return Fraction(factorial(a - 1) * factorial(b - 1), factorial(a + b - 1))

    (a, b), (c, d) = other, mine
    return sum((beta(a + k, b + d) / ((d + k) * beta(1 + k, d) * beta(a, b)) for k in range(c)), Fraction())


def logarithm(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


@for_each(("a", "b"), SHAPES)
def test_shares_of_whole_shapes(a: int, b: int) -> None:
    for x in PLACES:
        above = share_above(x, a, b)
        assert incomplete_beta(float(x), a, b) == pytest.approx(float(1 - above), abs=1e-13)
        assert Beta(a, b).cdf(float(x)) == incomplete_beta(float(x), a, b)
        assert log_share_above(float(x), a, b) == pytest.approx(logarithm(above), rel=1e-11, abs=1e-13)


def test_next_to_nothing_above_is_told_to_full_precision() -> None:
    x = Fraction(63, 64)
    assert log_share_above(float(x), 5, 400) == pytest.approx(logarithm(share_above(x, 5, 400)), rel=1e-13)
    assert log_share_above(1 / 64, 200, 2) == pytest.approx(-float(1 - share_above(Fraction(1, 64), 200, 2)), rel=1e-12)


@for_each(("a", "b"), SHAPES)
def test_quantiles_lead_back_to_their_rate(a: int, b: int) -> None:
    for q in (1e-9, 0.001, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999):
        x = Beta(a, b).quantile(q)
        assert 0 < x < 1
        assert float(1 - share_above(Fraction(x), a, b)) == pytest.approx(q, rel=1e-11)


def test_quantiles_of_closed_forms() -> None:
    for q in (0.01, 0.2, 0.5, 0.9, 0.999):
        assert Beta(1, 1).quantile(q) == pytest.approx(q, rel=1e-13)
        assert Beta(1, 3).quantile(q) == pytest.approx(1 - (1 - q) ** (1 / 3), rel=1e-12)
        assert Beta(4, 1).quantile(q) == pytest.approx(q**0.25, rel=1e-12)
        assert Beta(0.5, 0.5).quantile(q) == pytest.approx(math.sin(math.pi * q / 2) ** 2, rel=1e-12)
        assert incomplete_beta(q, 0.5, 0.5) == pytest.approx(2 / math.pi * math.asin(math.sqrt(q)), rel=1e-13)
        assert incomplete_beta(q, 0.1, 1) == pytest.approx(q**0.1, rel=1e-13)


def test_log_beta_of_whole_and_half_shapes() -> None:
    for a, b in [*SHAPES, (9, 10), (10, 10), (11, 9), (500, 3), (700, 900)]:
        exact = Fraction(factorial(a - 1) * factorial(b - 1), factorial(a + b - 1))
        assert log_beta(a, b) == pytest.approx(logarithm(exact), rel=2e-15, abs=1e-13)
    assert log_beta(0.5, 0.5) == pytest.approx(math.log(math.pi), rel=1e-14)
    assert log_beta(12.5, 10.5) == pytest.approx(math.lgamma(12.5) + math.lgamma(10.5) - math.lgamma(23), rel=1e-13)


def test_the_chance_of_whole_shapes() -> None:
    for mine in [(1, 2), (5, 2), (30, 12), (3, 40)]:
        for other in [(1, 1), (2, 5), (12, 30), (8, 8)]:
            assert prob_greater(Beta(*mine), Beta(*other)) == pytest.approx(float(chance_above(mine, other)), abs=1e-12)


def test_what_is_surely_above_is_so_and_never_more_than_surely() -> None:
    high, low = Beta(1e6, 1), Beta(1, 1e6)
    assert prob_greater(high, low) == pytest.approx(1, abs=1e-12)
    assert prob_greater(low, high) == pytest.approx(0, abs=1e-12)
    assert 0 <= prob_greater(low, high) <= prob_greater(high, low) <= 1
    assert prob_greater(Beta(1e6, 1e6), Beta(1, 1)) == pytest.approx(0.5, abs=1e-10)
    assert prob_greater(Beta(0.1, 1e6), Beta(0.1, 0.1)) == pytest.approx(
        1 - prob_greater(Beta(0.1, 0.1), Beta(0.1, 1e6)), abs=1e-12
    )


def test_a_wide_one_against_a_very_narrow_one_is_its_share_beyond_it() -> None:
    """Summed over the narrow one: over the wide one, the other's steep rise would fall between two points."""
    beyond = float(share_above(Fraction(1, 4), 2, 2))
    wide, narrow = Beta(2, 2), Beta(1e8, 3e8)
    assert prob_greater(wide, narrow) == pytest.approx(beyond, abs=1e-8)
    assert prob_greater(narrow, wide) == pytest.approx(1 - beyond, abs=1e-8)
    tilted = Beta(2, 5)
    assert prob_greater(tilted, Beta(3e8, 1e8)) == pytest.approx(float(share_above(Fraction(3, 4), 2, 5)), abs=1e-8)


def test_the_moments_of_a_beta() -> None:
    beta = Beta(3, 5)
    assert (beta.mean, beta.variance) == (pytest.approx(3 / 8), pytest.approx(15 / (64 * 9)))


def test_normal_quantiles_are_those_of_the_standard_library() -> None:
    for p in (1e-12, 0.001, 0.025, 0.2, 0.5, 0.6, 0.9, 0.975, 0.9999):
        assert normal_quantile(p) == pytest.approx(NormalDist().inv_cdf(p), rel=1e-9, abs=1e-12)


def test_student_quantiles_of_closed_forms() -> None:
    for p in (0.001, 0.1, 0.4, 0.5, 0.6, 0.9, 0.995):
        assert student_quantile(p, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-11, abs=1e-15)
        assert student_quantile(p, 2) == pytest.approx((2 * p - 1) / math.sqrt(2 * p * (1 - p)), rel=1e-11, abs=1e-15)
    assert student_quantile(0.9, 10**6) == pytest.approx(NormalDist().inv_cdf(0.9), rel=1e-5)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_score_intervals_at_every_confidence_are_roots_of_their_equation(confidence: float) -> None:
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    for passes, n in [(1, 2), (1, 20), (15, 20), (19, 20), (499, 1000)]:
        for p in wilson_bounds(passes, n, confidence):
            assert (passes / n - p) ** 2 == pytest.approx(z * z * p * (1 - p) / n, rel=1e-9)
        assert p_lb95(Tally(passes, n)) == wilson_bounds(passes, n).lower
    for n in range(1, 25):
        none, every = wilson_bounds(0, n, confidence), wilson_bounds(n, n, confidence)
        assert none == (0.0, pytest.approx(z * z / (n + z * z)))
        assert every == (pytest.approx(n / (n + z * z)), 1.0)
        assert (none.lower, every.upper) == (0.0, 1.0)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_newcombes_hybrid_is_made_of_two_score_intervals(confidence: float) -> None:
    mine, other = Tally(7, 9), Tally(4, 11)
    here, there = wilson_bounds(7, 9, confidence), wilson_bounds(4, 11, confidence)
    gap = 7 / 9 - 4 / 11
    lower = gap - math.hypot(7 / 9 - here.lower, there.upper - 4 / 11)
    upper = gap + math.hypot(here.upper - 7 / 9, 4 / 11 - there.lower)
    assert difference_bounds(mine, other, confidence) == pytest.approx((lower, upper), rel=1e-12)
    assert difference_bounds(Tally(), mine) == difference_bounds(mine, Tally()) == Bounds(-1.0, 1.0)
    assert difference_bounds(Tally(1, 1), Tally(0, 1)).upper == 1.0
    assert difference_bounds(Tally(0, 1), Tally(1, 1)).lower == -1.0


def test_runs_needed_at_another_confidence_and_after_some_runs() -> None:
    for confidence in (0.5, 0.8, 0.99):
        for after in (Tally(), Tally(0, 3), Tally(5, 9)):
            for target in (0.1, 0.6, 0.9):
                more = runs_needed(target, after, confidence)
                at = wilson_bounds(after.passes + more, after.n + more, confidence).lower
                assert at >= target
                if more:
                    short = wilson_bounds(after.passes + more - 1, after.n + more - 1, confidence).lower
                    assert short < target
    assert runs_needed(0.2, Tally(1, 1)) == 0
    assert runs_needed(0.3, Tally(1, 1)) == 1


def test_the_posterior_counts_the_prior_on_its_side() -> None:
    assert JEFFREYS == (0.5, 0.5)
    assert posterior(Tally(2, 5), Prior(3, 7)) == Beta(5, 10)
    lower, upper = beta_bounds(Tally(2, 5), 0.8, Prior(3, 7))
    assert lower == pytest.approx(Beta(5, 10).quantile(0.1), rel=1e-12)
    assert upper == pytest.approx(max(0.4, Beta(5, 10).quantile(0.9)), rel=1e-12)
    assert beta_bounds(Tally(5, 9)) == pytest.approx((Beta(5.5, 4.5).quantile(0.025), Beta(5.5, 4.5).quantile(0.975)))


def test_a_strong_prior_does_not_push_the_interval_off_the_observed_rate() -> None:
    assert beta_bounds(Tally(1, 2), 0.5, Prior(1, 999)).upper == 0.5
    assert beta_bounds(Tally(1, 2), 0.5, Prior(999, 1)).lower == 0.5
    assert beta_bounds(Tally(0, 2), 0.5, Prior(5, 5)).lower == 0.0
    assert beta_bounds(Tally(2, 2), 0.5, Prior(5, 5)).upper == 1.0


def test_the_interval_of_a_mean() -> None:
    values = [1.0, 2.5, 4.0, 4.5, 11.0]
    for confidence in (0.5, 0.95):
        found = mean_bounds(values, confidence)
        error = stdev(values) / math.sqrt(5)
        reach = student_quantile((1 + confidence) / 2, 4) * error
        assert found.n == 5
        assert found.mean == pytest.approx(fmean(values))
        assert found.error == pytest.approx(error)
        assert (found.lower, found.upper) == (pytest.approx(found.mean - reach), pytest.approx(found.mean + reach))
    assert mean_bounds(values) == mean_bounds(values, 0.95)
    assert mean_bounds([3]).to_wire() == {"mean": 3.0, "error": None, "lower": None, "upper": None, "n": 1}


@for_each(
    ("call", "message", "hint"),
    [
        (lambda: runs_needed(1.0), "no number of runs reaches 1.0", "a target from 0 to below 1"),
        (lambda: runs_needed("x"), "target is 'x': not a number", "a finite number"),
        (lambda: wilson_bounds(1, 2, 1), "confidence is 1: not between 0 and 1", "strictly between 0 and 1"),
        (lambda: beta_bounds(Tally(1, 2), 0), "confidence is 0: not between 0 and 1", "strictly between 0 and 1"),
        (lambda: mean_bounds([1, 2], 2), "confidence is 2: not between 0 and 1", "strictly between 0 and 1"),
        (lambda: normal_quantile(0), "p is 0: not between 0 and 1", "strictly between 0 and 1"),
        (lambda: student_quantile(1, 3), "p is 1: not between 0 and 1", "strictly between 0 and 1"),
        (lambda: student_quantile(0.9, 0), "0 degrees of freedom", "a whole number, 1 or more"),
        (lambda: student_quantile(0.9, 2.5), "2.5 degrees of freedom", "a whole number, 1 or more"),
        (lambda: mean_bounds([]), "the mean of no values", "give at least one"),
        (lambda: mean_bounds([1, None]), "a value is None: not a number", "a finite number"),
        (lambda: incomplete_beta(1.5, 1, 1), "x is 1.5: not in [0, 1]", ANEW),
        (lambda: incomplete_beta(-0.5, 1, 1), "x is -0.5: not in [0, 1]", ANEW),
        (lambda: incomplete_beta(None, 1, 1), "x is None: not a number", "a finite number"),
        (lambda: Beta(0.05, 1), "a shape is 0.05", "from 0.1 to 1e+12"),
        (lambda: incomplete_beta(0.5, 1, 2e12), "a shape is 2000000000000.0", "from 0.1 to 1e+12"),
        (lambda: Beta(1, None), "a shape is None: not a number", "a finite number"),
        (lambda: Beta(1, 2).quantile(1), "q is 1: not between 0 and 1", "strictly between 0 and 1"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_by_its_name(call: Callable[[], Any], message: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        call()
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_the_ends_of_what_is_allowed_are_allowed() -> None:
    assert runs_needed(0) == 0
    assert (incomplete_beta(0, 1, 1), incomplete_beta(1, 1, 1)) == (0.0, 1.0)
    for shape in (0.1, 1e12):
        assert Beta(shape, shape).mean == 0.5
        assert Beta(shape, shape).quantile(0.5) == pytest.approx(0.5, rel=1e-9)
