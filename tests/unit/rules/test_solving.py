"""From measurements to weights: χ by differences, ridge, condition number, clip, renormalise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.rules import PatterningObservable, PatterningPlan, PatterningProbe
from muniment.contracts.semantics import check_patterning
from muniment.core.policy import PatterningPolicy
from muniment.errors import IllConditioned, InvalidInput, InvalidRecord
from muniment.rules.patterning import (
    PatterningMeasurements,
    Step,
    capped_mixture,
    make_plan,
    moved,
    planned_steps,
    read_levers,
)

NOW = "2026-01-01T00:00:00Z"
POLICY = PatterningPolicy()


def measured(
    slopes: Any, base: list[float], asked: list[dict[str, Any]], *, sizes: tuple[float, ...] = (0.05, -0.05),
    bend: float = 0.0, noise: float = 0.0, seeds: int = 1, caps: dict[int, float] | None = None,
) -> PatterningMeasurements:  # fmt: skip
    """Evaluations of a response that is known: slopes (observables × probes), perhaps curved, perhaps noisy."""
    table = np.array(slopes, dtype=float)
    probes = [PatterningProbe(probe_id=f"p{at}", max_weight=(caps or {}).get(at)) for at in range(len(base))]
    levers = read_levers(probes, {f"p{at}": share for at, share in enumerate(base)})
    steps = [Step(None, 0.0), *(Step(at, size) for at in range(len(base)) for size in sizes)]
    rows = []
    for seed in range(seeds):
        drawn = np.random.default_rng(seed)
        for step in steps:
            weights = moved(levers, step)
            values = 0.3 + table @ weights + bend * (weights**2).sum() + drawn.normal(0, noise, len(table))
            rows.append(
                {
                    "probe_id": None if step.probe is None else f"p{step.probe}",
                    "step": step.size,
                    "seed": seed,
                    "values": {f"o{at}": float(value) for at, value in enumerate(values)},
                }
            )
    return PatterningMeasurements.from_wire(
        {
            "base_dataset": "distill_v3",
            "probes": [probe.to_wire() for probe in probes],
            "observables": [{"obs_id": f"o{at}", "kind": "custom", **each} for at, each in enumerate(asked)],
            "base_weights": {f"p{at}": share for at, share in enumerate(base)},
            "evaluations": rows,
        }
    )


def told(plan: PatterningPlan) -> dict[str, Any]:
    assert plan.validation.results is not None
    return dict(plan.validation.results)


def plan_of(given: PatterningMeasurements, **numbers: Any) -> PatterningPlan:
    return make_plan(given, PatterningPolicy.from_wire(numbers), generated_at=NOW)


@pytest.mark.req("RC-24")
def test_a_linear_response_is_found_and_turned_round() -> None:
    slopes = [[0.5, 0.1, -0.3], [0.1, 0.4, 0.2]]
    plan = plan_of(measured(slopes, [2, 1, 1], [{"target_delta": 0.02}, {}]), ridge_share=0)
    base = np.array([0.5, 0.25, 0.25])
    expected = np.array(slopes) - (np.array(slopes) @ base)[:, np.newaxis]
    assert np.allclose(told(plan)["chi"], expected)
    change = np.array(plan.solution.weights) - base
    assert np.allclose(np.array(slopes) @ change, [0.02, 0])
    assert told(plan)["predicted"]["o0"]["change"] == pytest.approx(0.02)
    assert told(plan)["predicted"]["o1"]["target"] is None
    assert (plan.solution.clipped, plan.solution.renormalized, plan.applied) == (False, True, False)
    assert plan.chi_estimation.method == "finite_diff"
    assert plan.chi_estimation.epsilon == 0.05
    assert plan.chi_estimation.condition_number == pytest.approx(np.linalg.cond(np.array(slopes) @ _basis()), rel=1e-9)


def _basis() -> Any:
    return np.array([[1, 1], [-1, 1], [0, -2]]) / np.sqrt([2, 6])


@pytest.mark.req("RC-24")
def test_a_value_is_asked_for_as_the_change_to_it() -> None:
    slopes = [[0.5, 0.1], [0.0, 0.3]]
    by_delta = plan_of(measured(slopes, [1, 1], [{"target_delta": 0.02}, {}]))
    by_value = plan_of(measured(slopes, [1, 1], [{"target_value": 0.62}, {}]))
    assert by_value.solution.weights == pytest.approx(by_delta.solution.weights)


@pytest.mark.req("RC-24")
def test_central_differences_cancel_curvature_and_one_side_does_not() -> None:
    slopes, base = [[0.5, 0.1, -0.3]], [0.5, 0.3, 0.2]
    local = np.array(slopes[0]) + 2 * 0.8 * np.array(base)
    truth = local - local @ np.array(base)
    central = told(plan_of(measured(slopes, base, [{"target_delta": 0.01}], bend=0.8)))["chi"][0]
    forward = told(plan_of(measured(slopes, base, [{"target_delta": 0.01}], bend=0.8, sizes=(0.05,))))["chi"][0]
    uneven = told(plan_of(measured(slopes, base, [{"target_delta": 0.01}], bend=0.8, sizes=(0.05, -0.02))))["chi"][0]
    assert np.allclose(central, truth)
    assert np.allclose(uneven, truth)
    assert np.abs(np.array(forward) - truth).max() > 0.02


@pytest.mark.req("RC-24")
def test_repeats_are_averaged_and_their_errors_kept() -> None:
    slopes = [[0.5, 0.1, -0.3]]
    given = measured(slopes, [1, 1, 1], [{"target_delta": 0.02}], noise=0.001, seeds=8)
    plan = plan_of(given)
    sizes = np.array(told(plan)["chi_errors"])
    expected = 0.001 / (np.sqrt(2) * 0.05) / np.sqrt(8)
    assert (sizes > expected / 3).all()
    assert (sizes < expected * 3).all()
    predicted = told(plan)["predicted"]["o0"]
    assert predicted["lower"] < predicted["change"] < predicted["upper"]
    alone = plan_of(measured(slopes, [1, 1, 1], [{"target_delta": 0.02}]))
    assert told(alone)["chi_errors"] is None
    assert told(alone)["predicted"]["o0"]["lower"] is None
    assert "one seed" in str(alone.chi_estimation.notes)
    assert plan.chi_estimation.regularizer is not None
    assert alone.chi_estimation.regularizer is not None
    assert plan.chi_estimation.regularizer > alone.chi_estimation.regularizer, "noise is paid for by the ridge"


@pytest.mark.req("RC-24")
def test_weights_are_clipped_and_what_is_left_renormalised() -> None:
    slopes = [[1.0, 0.0, -0.2]]
    plan = plan_of(measured(slopes, [0.3, 0.4, 0.3], [{"target_delta": 0.5}], caps={0: 0.4}), step_max=1)
    assert plan.solution.clipped
    assert plan.solution.weights[0] == pytest.approx(0.4)
    assert sum(plan.solution.weights) == pytest.approx(1)
    predicted = told(plan)["predicted"]["o0"]["change"]
    change = np.array(plan.solution.weights) - [0.3, 0.4, 0.3]
    assert predicted == pytest.approx(float(np.array(slopes[0]) @ change)), "what is predicted is of these weights"


@pytest.mark.req("RC-24")
def test_a_long_step_is_shortened_as_a_whole() -> None:
    plan = plan_of(measured([[0.5, 0.1, -0.3]], [1, 1, 1], [{"target_delta": 0.3}]), step_max=0.1)
    moves = np.array(plan.solution.weights) - 1 / 3
    assert np.abs(moves).max() == pytest.approx(0.1)
    assert "shortened" in str(plan.notes)


@pytest.mark.req("RC-24")
def test_costs_do_not_drown_rates() -> None:
    rates = [[0.5, 0.1, -0.3], [300.0, -100.0, 50.0]]
    asked = [{"kind": "pass_rate", "target_delta": 0.02}, {"kind": "avg_cost"}]
    plan = plan_of(measured(rates, [1, 1, 1], asked), condition_max=100)
    change = np.array(plan.solution.weights) - 1 / 3
    assert float(np.array(rates[0]) @ change) == pytest.approx(0.02, rel=0.01)
    assert plan.chi_estimation.condition_number is not None
    assert plan.chi_estimation.condition_number < 20


# -- what cannot be turned round ----------------------------------------------------------------------


@pytest.mark.req("RC-24")
@pytest.mark.parametrize(
    ("slopes", "said"),
    [
        ([[0.3, 0.3, 0.3], [0.1, 0.4, 0.2]], "moves o0"),
        ([[0.5, 0.1, -0.3], [0.5, 0.1, -0.3]], "singular"),
        ([[0.5, 0.1, -0.3], [0.5, 0.1, -0.301]], "condition number"),
    ],
)
def test_an_ill_conditioned_response_is_refused_or_said_to_be(slopes: Any, said: str) -> None:
    given = measured(slopes, [1, 1, 1], [{"target_delta": 0.02}, {}])
    with pytest.raises(IllConditioned, match=said) as refused:
        plan_of(given)
    assert refused.value.to_dict()["code"] == "ill_conditioned"
    plan = plan_of(given, ill_conditioned="plan")
    assert plan.solution.weights == pytest.approx([1 / 3] * 3)
    assert told(plan)["stage"] == "refused"
    assert said in str(plan.notes)
    assert not plan.applied


@pytest.mark.req("RC-24")
def test_what_should_stay_and_always_does_is_no_reason_to_refuse() -> None:
    plan = plan_of(measured([[0.5, 0.1, -0.3], [0, 0, 0]], [1, 1, 1], [{"target_delta": 0.02}, {}]))
    assert told(plan)["predicted"]["o0"]["change"] == pytest.approx(0.02, rel=0.01)


# -- a response that is given -------------------------------------------------------------------------


@pytest.mark.req("RC-24")
def test_a_gradient_proxy_is_taken_as_given() -> None:
    shape: dict[str, Any] = {
        "base_dataset": "d",
        "probes": [{"probe_id": "a"}, {"probe_id": "b"}],
        "observables": [{"obs_id": "o", "kind": "pass_rate", "target_delta": 0.01}],
        "base_weights": {"a": 1, "b": 1},
        "response": {"chi": [[0.4, -0.2]], "base": {"o": 0.5}, "errors": [[0.05, 0.05]]},
    }
    plan = plan_of(PatterningMeasurements.from_wire(shape), ridge_share=0)
    assert plan.chi_estimation.method == "grad_proxy"
    assert plan.chi_estimation.epsilon is None
    predicted = told(plan)["predicted"]["o"]
    assert 0 < predicted["lower"] < predicted["change"] < 0.01, "the errors that were given shrink the step"
    shape["response"]["chi"] = [[0.4]]
    with pytest.raises(InvalidInput, match="1 rows of 2"):
        plan_of(PatterningMeasurements.from_wire(shape))
    shape["response"]["chi"] = [[0.4, float("nan")]]
    with pytest.raises(InvalidRecord):
        PatterningMeasurements.from_wire(shape)


# -- bad input ----------------------------------------------------------------------------------------


def test_measurements_must_be_whole() -> None:
    good = measured([[0.5, 0.1]], [1, 1], [{"target_delta": 0.01}], seeds=2).to_wire()

    def refused(match: str, **changes: Any) -> None:
        with pytest.raises(InvalidInput, match=match):
            plan_of(PatterningMeasurements.from_wire({**good, **changes}))

    rows = good["evaluations"]
    refused("not evaluated where the others were", evaluations=rows[:-1])
    refused("evaluated twice", evaluations=[*rows, rows[-1]])
    refused("base was not evaluated", evaluations=[row for row in rows if row["probe_id"] is not None])
    refused("a step of 0.05 to nobody", evaluations=[*rows, {**rows[1], "probe_id": "nobody"}])
    refused("no value of o0", evaluations=[{**rows[0], "values": {}}, *rows[1:]])
    refused("evaluations or a response", evaluations=[])
    refused("fewer than two probes", probes=good["probes"][:1])
    refused("two probes of one name", probes=[good["probes"][0]] * 2)
    refused("differ: p1", base_weights={"p0": 1})
    refused("not shares", base_weights={"p0": 0, "p1": 0})
    refused("no observable is asked", observables=[{"obs_id": "o0"}])
    refused("a value and for a change", observables=[{"obs_id": "o0", "target_delta": 1, "target_value": 1}])
    refused("names no reason_code", observables=[{"obs_id": "o0", "kind": "reason_code_rate", "target_delta": 0.1}])
    refused("is 0.6.*a rate|rate of 2", observables=[{"obs_id": "o0", "kind": "pass_rate", "target_value": 2}])
    refused("add up to 0.8", probes=[{"probe_id": "p0", "max_weight": 0.4}, {"probe_id": "p1", "max_weight": 0.4}])
    refused("over its max_weight", probes=[{"probe_id": "p0", "max_weight": 0.4}, {"probe_id": "p1"}])
    refused("max_weight of p0 is 2", probes=[{"probe_id": "p0", "max_weight": 2}, {"probe_id": "p1"}])


def test_only_steps_that_a_mixture_allows_are_tried() -> None:
    probes = [
        PatterningProbe(probe_id="a"),
        PatterningProbe(probe_id="b", max_weight=0.6),
        PatterningProbe(probe_id="c"),
    ]
    levers = read_levers(probes, {"a": 0.4, "b": 0.59, "c": 0.01})
    steps = planned_steps(levers, POLICY)
    assert steps[0] == Step(None, 0.0)
    assert {step.size for step in steps if step.probe == 0} == {0.05}, "less of a is more of b than b may have"
    assert {step.size for step in steps if step.probe == 1} == {-0.05}
    assert {step.size for step in steps if step.probe == 2} == {0.05}
    with pytest.raises(InvalidInput, match="neither raised nor lowered"):
        planned_steps(levers._replace(caps=levers.base), POLICY)


# -- properties ---------------------------------------------------------------------------------------

shares = st.lists(st.floats(0.01, 1), min_size=2, max_size=6)


@pytest.mark.req("RC-24")
@given(shares, st.data())
def test_any_plan_is_a_mixture_within_its_caps(base: list[float], data: st.DataObject) -> None:
    count = len(base)
    total = sum(base)
    caps = {
        at: data.draw(st.floats(min_value=share / total, max_value=1))
        for at, share in enumerate(base)
        if share % 2 < 0.5
    }
    slopes = data.draw(st.lists(st.floats(-1, 1), min_size=count, max_size=count))
    target = data.draw(st.floats(-1, 1))
    given = measured([slopes], base, [{"target_delta": target}], caps=caps)
    plan = plan_of(given, ill_conditioned="plan", step_max=1)
    weights = np.array(plan.solution.weights)
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert (weights >= 0).all()
    assert all(weights[at] <= cap + 1e-9 for at, cap in caps.items())
    assert check_patterning(plan.to_wire()) == []
    assert PatterningPlan.from_wire(plan.to_wire()).to_bytes() == plan.to_bytes()
    assert plan_of(given, ill_conditioned="plan", step_max=1).to_bytes() == plan.to_bytes()


@given(st.lists(st.tuples(st.floats(-1, 2), st.floats(0.01, 1)), min_size=2, max_size=8))
def test_a_capped_mixture_always_adds_up(pairs: list[tuple[float, float]]) -> None:
    caps = np.array([cap for _, cap in pairs])
    caps = np.minimum(1.0, caps / min(1.0, caps.sum()))
    raw = np.array([weight for weight, _ in pairs])
    weights, was_clipped = capped_mixture(raw, caps)
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert (weights >= 0).all()
    assert (weights <= caps + 1e-12).all()
    if not was_clipped and raw.sum() > 0:
        assert np.allclose(weights, raw / raw.sum())


def test_observables_are_open_records() -> None:
    assert PatterningObservable.from_wire({"obs_id": "o", "mine": 1}).to_wire() == {"obs_id": "o", "mine": 1}
