"""`logit_field_v1`: what it fits, that it is better on thin cells than plain rates, and that its bytes repeat."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import numpy as np
import pytest
from benchmarks.rules_flowmap import World, thin_estimates
from flow_makers import EASY, HARD, NOW, row, rows_of

from muniment.contracts.schemas import validate
from muniment.core.policy import FlowMapPolicy
from muniment.errors import InvalidInput
from muniment.rules.flow_map import FlowTally, calibration_error, data_of, fit_field, fit_fields, flow_snapshot

POLICY = FlowMapPolicy()


# -- regression -------------------------------------------------------------------------------------------


def test_weights_are_those_at_which_the_likelihood_is_flat() -> None:
    """By the derivative, worked out here a second time."""
    rows = [("a",), ("b",), ("a", "b"), ()]
    n, y = [[10, 10, 10, 10]] * 4, [[8, 7, 9, 8], [3, 2, 3, 1], [6, 5, 7, 6], [4, 5, 5, 6]]
    data = data_of(rows, n, y, 10)
    field = fit_field(data, (2.0,))
    weights = dict(zip(field.names, field.weights.tolist(), strict=True))
    for name in ("a", "b"):
        misfit = 0.0
        for features, count, met in zip(rows, n, y, strict=True):
            logit = weights["1"] + sum(weights[each] for each in features)
            misfit += (name in features) * (sum(met) - sum(count) / (1 + math.exp(-logit)))
        assert misfit == pytest.approx(2.0 * weights[name], abs=1e-6)


def test_features_with_most_runs_behind_them_are_kept() -> None:
    rows = [("common", f"rare{at}") for at in range(50)]
    data = data_of(rows, [[1, 1, 1, 1]] * 50, [[0, 1, 0, 0]] * 50, 4)
    assert data.names == ("1", "common", "rare0", "rare1")


def test_features_never_seen_say_nothing() -> None:
    data = data_of([("a",), ("b",)], [[5] * 4] * 2, [[4] * 4, [1] * 4], 10)
    field = fit_field(data, (1.0,))
    assert field.predict(("never",))[0] == field.predict(())[0]


def test_a_cell_that_always_fails_is_fitted_and_not_infinite() -> None:
    field = fit_field(data_of([("a",), ("b",)], [[50] * 4] * 2, [[50] * 4, [0] * 4], 10), (0.3, 30.0))
    assert np.isfinite(field.weights).all()
    assert 0.95 < field.predict(("a",))[0] < 1
    assert 0 < field.predict(("b",))[0] < 0.05


def test_rows_apart_and_rows_together_are_fitted_to_the_same_weights() -> None:
    made = random.Random(2)
    rows = [(f"x{at % 7}", f"y{at % 3}") for at in range(42)]
    n = [[made.randrange(1, 9) for _ in range(4)] for _ in rows]
    y = [[made.randrange(count + 1) for count in counts] for counts in n]
    together: dict[tuple[str, ...], list[list[int]]] = {}
    for features, tried, met in zip(rows, n, y, strict=True):
        sums = together.setdefault(features, [[0] * 4, [0] * 4])
        for fold in range(4):
            sums[0][fold] += tried[fold]
            sums[1][fold] += met[fold]
    fewer = data_of(
        list(together), [each[0] for each in together.values()], [each[1] for each in together.values()], 20
    )
    one, other = fit_field(data_of(rows, n, y, 20), (1.0, 10.0)), fit_field(fewer, (1.0, 10.0))
    assert one.model_ref == other.model_ref


def test_calibration_error_is_the_distance_in_bins() -> None:
    chance, n = np.array([0.25, 0.25, 0.75]), np.array([10.0, 10.0, 20.0])
    assert calibration_error(chance, n, np.array([2.0, 3.0, 15.0])) == 0.0
    assert calibration_error(chance, n, np.array([5.0, 5.0, 15.0])) == pytest.approx(0.125)


# -- thin cells -------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """How far estimates of thin cells are from the truth: by themselves, and as a whole at each height."""

    error: float
    gap: float


def judged(estimates: list[float], truths: list[float]) -> Judged:
    said, true = np.array(estimates), np.array(truths)
    return Judged(float(np.abs(said - true).mean()), calibration_error(said, np.ones_like(said), true))


@pytest.mark.soak
@pytest.mark.req("RC-23")
@pytest.mark.parametrize("seed", [1, 2])
def test_thin_cells_are_nearer_the_truth_and_better_calibrated_than_rates(seed: int) -> None:
    world = World(seed)
    field = fit_fields(FlowTally(POLICY).add_all(world.rows(1_500)))
    rates_, fitted_, truths = thin_estimates(world, field)
    assert len(truths) > 100
    rates, fitted = judged(rates_, truths), judged(fitted_, truths)
    assert fitted.error < 0.6 * rates.error
    assert fitted.gap < 0.5 * rates.gap


@pytest.mark.soak
@pytest.mark.req("RC-23")
def test_held_out_runs_are_predicted_better_than_by_rates() -> None:
    held = fit_fields(FlowTally(POLICY).add_all(World(4).rows(1_500))).risk.calibration
    assert held.brier < held.brier_raw
    assert held.log_loss < held.log_loss_raw
    assert held.ece < held.ece_raw


def test_bounds_of_a_thick_cell_are_narrow_and_those_of_a_thin_one_wide() -> None:
    rows = rows_of(700, 300) + rows_of(2, 2, 2_000, bucket_key=HARD)
    field = fit_fields(FlowTally(POLICY).add_all(rows))
    (thick, *_), (thin, *_) = field.hotspots(EASY), field.hotspots(HARD)
    assert thick["risk_rate"] == pytest.approx(0.3, abs=0.02)
    assert thick["upper"] - thick["lower"] < 0.07
    assert thin["upper"] - thin["lower"] > 0.3
    assert 0.3 < thin["risk_rate"] < 0.5, "between its own rate and that of the others"


# -- gains ------------------------------------------------------------------------------------------------


@pytest.mark.req("RC-23")
def test_a_gain_is_the_difference_of_the_same_runs_with_it_and_without() -> None:
    """Hints were given where runs are easy: crude rates double their worth."""
    made, rows = random.Random(8), []
    for number in range(6_000):
        bucket = made.choice((EASY, HARD))
        hints = made.random() < (0.8 if bucket == EASY else 0.2)
        passed = made.random() < (0.75 if bucket == EASY else 0.35) + 0.1 * hints
        rows.append(row(number, passed=passed, hints=int(hints), bucket_key=bucket))
    (hints_,), _ = fit_fields(FlowTally(POLICY).add_all(rows)).interventions("*")
    assert hints_["crude_gain"] > 0.25
    assert hints_["gain_pass"] == pytest.approx(0.1, abs=0.03)
    assert hints_["lower"] < 0.1 < hints_["upper"]


def test_what_comes_together_is_told_together() -> None:
    """A mode, its tier and its attempts: none of them takes a share of the gain from the others."""
    rows = rows_of(400, 400) + rows_of(560, 240, 1_000, mode="kroll", tier="probe")
    told, alone = fit_fields(FlowTally(POLICY).add_all(rows)).interventions("*")
    assert alone == []
    assert {each["intervention"] for each in told} == {"mode:kroll", "tier:probe"}
    assert all(each["gain_pass"] == pytest.approx(0.2, abs=0.03) for each in told)


def test_thin_gains_are_drawn_towards_none() -> None:
    rows = rows_of(50, 50) + rows_of(3, 0, 200, rules=1)
    (rules,), _ = fit_fields(FlowTally(POLICY).add_all(rows)).interventions("*")
    assert 0 < rules["gain_pass"] < rules["crude_gain"]
    assert rules["lower"] < 0


# -- snapshots ----------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("RC-23")
def test_the_snapshot_names_its_model_and_how_it_held() -> None:
    rows = list(World(6).rows(300))
    found = flow_snapshot(FlowTally(POLICY).add_all(rows), "logit_field_v1", now=NOW)
    again = flow_snapshot(FlowTally(POLICY).add_all(reversed(rows)), "logit_field_v1", now=NOW)
    assert found.to_bytes() == again.to_bytes()
    assert validate("FlowMapSnapshot", found.to_wire()) == []
    estimator = found.estimator
    assert estimator is not None
    assert str(estimator.model_ref).startswith("sha256:")
    assert "held-out folds" in str(estimator.calibration)
    assert "Brier" in str(estimator.calibration)
    other = flow_snapshot(FlowTally(POLICY).add_all(World(7).rows(300)), "logit_field_v1", now=NOW)
    assert other.estimator is not None
    assert other.estimator.model_ref != estimator.model_ref


@pytest.mark.parametrize("rows", [rows_of(1, 0), rows_of(0, 1), [row(passed=None)], rows_of(5, 5)])
def test_the_least_there_can_be_is_fitted(rows: list) -> None:  # type: ignore[type-arg]
    found = flow_snapshot(FlowTally(POLICY).add_all(rows), "logit_field_v1", now=NOW)
    assert validate("FlowMapSnapshot", found.to_wire()) == []


def test_nothing_cannot_be_learnt_from() -> None:
    with pytest.raises(InvalidInput, match="no logs to learn from"):
        fit_fields(FlowTally(POLICY))
