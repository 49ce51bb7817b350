"""`logit_field_v1`: what it fits, and that it is nearer the truth on thin cells than plain rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.rules_flowmap import World, calibration_error, thin_estimates
from flow_makers import EASY, HARD, NOW, row, rows_of

from muniment.contracts.schemas import validate
from muniment.errors import InvalidInput
from muniment.rules.flow_map import FlowTally, fit_risk, flow_snapshot


def test_weights_are_those_at_which_the_likelihood_is_flat() -> None:
    """By the derivative, worked out here a second time."""
    rows = rows_of(80, 20, codes=()) + rows_of(10, 30, 200, mode="synth", bucket_key=HARD)
    tally = FlowTally().add_all(rows)
    field = fit_risk(tally)
    weights = dict(zip(field.names, field.weights.tolist(), strict=True))
    for name in ("stage=synth→verify", f"bucket={EASY}"):
        misfit = 0.0
        for key in tally.codes:
            for code in sorted({each.code for each in tally.codes}):
                if key.code == "":
                    n, risky = tally.codes[key][0], tally.codes.get(key._replace(code=code), (0, 0))[1]
                    on = name in (f"stage={key.stage}", f"bucket={key.bucket}")
                    misfit += on * (risky - n * field.risk_of(key.bucket, key.stage, code))
        assert misfit == pytest.approx(3.0 * weights[name], abs=1e-5)


def test_features_never_seen_count_nothing() -> None:
    field = fit_risk(FlowTally().add_all(rows_of(8, 2)))
    never = field.risk_of("I9|x|clarity_high", "never→verify", "never")
    assert never == pytest.approx(1 / (1 + math.exp(-field.weights[0])), abs=0.2)


@pytest.mark.soak
@pytest.mark.req("RC-23")
@pytest.mark.parametrize("seed", [1, 2])
def test_thin_cells_are_nearer_the_truth_and_better_calibrated_than_rates(seed: int) -> None:
    world = World(seed)
    tally = FlowTally().add_all(world.rows(1_500))
    rates, fitted, truths = map(np.array, thin_estimates(world, tally, fit_risk(tally)))
    assert len(truths) > 100
    assert np.abs(fitted - truths).mean() < 0.6 * np.abs(rates - truths).mean()
    assert calibration_error(fitted, truths) < 0.5 * calibration_error(rates, truths)


@pytest.mark.req("RC-23")
def test_bounds_of_a_thick_cell_are_narrow_and_those_of_a_thin_one_wide() -> None:
    tally = FlowTally().add_all(rows_of(700, 300) + rows_of(2, 2, 2_000, bucket_key=HARD))
    field = fit_risk(tally)
    (thick, *_), (thin, *_) = field.hotspots(tally, EASY), field.hotspots(tally, HARD)
    assert thick["risk_rate"] == pytest.approx(0.3, abs=0.02)
    assert thick["upper"] - thick["lower"] < 0.07
    assert thin["upper"] - thin["lower"] > 0.3
    assert 0.3 < thin["risk_rate"] < 0.5, "between its own rate and that of the others"


@pytest.mark.req("RC-23")
def test_the_snapshot_names_its_model() -> None:
    rows = list(World(6).rows(300))
    found = flow_snapshot(FlowTally().add_all(rows), "logit_field_v1", now=NOW)
    assert validate("FlowMapSnapshot", found.to_wire()) == []
    assert found.to_bytes() == flow_snapshot(FlowTally().add_all(rows), "logit_field_v1", now=NOW).to_bytes()
    other = flow_snapshot(FlowTally().add_all(World(7).rows(300)), "logit_field_v1", now=NOW)
    assert found.estimator is not None
    assert other.estimator is not None
    assert str(found.estimator.model_ref).startswith("sha256:")
    assert other.estimator.model_ref != found.estimator.model_ref


@pytest.mark.parametrize("rows", [rows_of(1, 0), rows_of(0, 1), [row(passed=None)], rows_of(5, 5)])
def test_the_least_there_can_be_is_fitted(rows: list) -> None:  # type: ignore[type-arg]
    found = flow_snapshot(FlowTally().add_all(rows), "logit_field_v1", now=NOW)
    assert validate("FlowMapSnapshot", found.to_wire()) == []


def test_nothing_cannot_be_learned_from() -> None:
    with pytest.raises(InvalidInput, match="no logs to learn from"):
        fit_risk(FlowTally())
