"""Student's interval of a mean: known quantiles, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from muniment.core.stats import mean_bounds, student_quantile
from muniment.errors import InvalidInput
from products import for_each


@for_each(
    ("p", "freedom", "value"),
    [
        (0.975, 1, 12.706204736),
        (0.975, 4, 2.776445105),
        (0.95, 10, 1.812461123),
        (0.5, 3, 0.0),
        (0.025, 4, -2.776445105),
    ],
)
def test_quantiles_are_those_of_the_tables(p: float, freedom: int, value: float) -> None:
    assert student_quantile(p, freedom) == pytest.approx(value, rel=1e-8)


def test_an_interval_holds_the_mean_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(3).normal(1, 2, (4_000, 4))
    bounds = [mean_bounds([float(value) for value in row]) for row in drawn]
    held = [each.lower <= 1 <= each.upper for each in bounds if each.lower is not None and each.upper is not None]
    assert len(held) == 4_000
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_one_value_says_nothing_of_its_error() -> None:
    alone = mean_bounds([2.0])
    assert (alone.mean, alone.error, alone.lower, alone.n) == (2.0, None, None, 1)
    assert mean_bounds([2, 2]).to_wire() == {"mean": 2.0, "error": 0.0, "lower": 2.0, "upper": 2.0, "n": 2}


@pytest.mark.parametrize("values", [[], [float("nan")], [True]])
def test_what_is_no_sample_is_refused(values: list[float]) -> None:
    with pytest.raises(InvalidInput):
        mean_bounds(values)
    with pytest.raises(InvalidInput):
        student_quantile(0.9, 0)
