"""The plan (RC-24): weights with what they rest on, as a document. It is a proposal: nothing is applied here."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from muniment.contracts.rules import PatterningPlan
from muniment.core.canonical import short_id
from muniment.core.policy import PatterningPolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.stats import MeanBounds
from muniment.errors import InvalidInput
from muniment.rules.patterning.levers import Levers, Vector, named, read_levers
from muniment.rules.patterning.observables import check_observables, target_of
from muniment.rules.patterning.records import PatterningMeasurements
from muniment.rules.patterning.response import Response, given_response, measured_response
from muniment.rules.patterning.solution import Solved, solve_weights

__all__ = ["make_plan"]

_DIGITS = 12  # of what linear algebra answers: the rest differs between machines


def make_plan(
    measured: PatterningMeasurements,
    policy: PatterningPolicy,
    *,
    generated_at: str,
    patterning_id: str | None = None,
    canary_suite_id: str | None = None,
    replay_window: dict[str, Any] | None = None,
) -> PatterningPlan:
    """The plan of what was measured. Same inputs, same plan, its id too unless one is given."""
    check_observables(measured.observables)
    levers = read_levers(measured.probes, measured.base_weights, policy)
    if (measured.response is None) == (not measured.evaluations):
        raise InvalidInput("evaluations or a response", path="$.evaluations", hint="one of the two, and not both")
    method: Literal["finite_diff", "grad_proxy"] = "finite_diff" if measured.response is None else "grad_proxy"
    response = (
        measured_response(measured.evaluations, levers, measured.observables)
        if measured.response is None
        else given_response(measured.response, levers, measured.observables)
    )
    solved = solve_weights(response, levers, measured.observables, policy)
    weights = [_rounded(weight) for weight in solved.weights]
    inputs = {"measured": measured.to_wire(), "policy": policy.to_wire(), "generated_at": generated_at}
    validation: dict[str, Any] = {
        "canary_suite_id": canary_suite_id,
        "replay_window": replay_window,
        "rollback_on_regress": policy.rollback_on_regress,
        "results": _results(measured, levers, response, solved, np.array(weights)),
    }
    return PatterningPlan.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "patterning_id": patterning_id or short_id("pat", inputs),
            "generated_at": generated_at,
            "base_dataset": measured.base_dataset,
            "probes": [probe.to_wire() for probe in measured.probes],
            "observables": [each.to_wire() for each in measured.observables],
            "chi_estimation": {
                "method": method,
                "epsilon": response.step,
                "regularizer": _rounded(solved.ridge),
                "condition_number": None if solved.condition is None else _rounded(solved.condition),
                "notes": _method_notes(response),
            },
            "solution": {"weights": weights, "clipped": solved.clipped, "renormalized": solved.renormalized},
            "validation": validation,
            "applied": False,
            "notes": _notes(solved),
        }
    )


def _results(
    measured: PatterningMeasurements, levers: Levers, response: Response, solved: Solved, weights: Vector
) -> dict[str, Any]:
    errors = response.errors
    predicted = response.predicted(weights - levers.base)
    return {
        "stage": "planned" if solved.refused is None else "refused",
        "base_weights": named(levers, levers.base),
        "chi": [[_rounded(value) for value in row] for row in response.chi],
        "chi_errors": None if errors is None else [[_rounded(value) for value in row] for row in errors],
        "predicted": {
            each.obs_id: {
                "base": _rounded(base),
                "target": target_of(each, float(base)),
                **_change_fields(change),
            }
            for each, base, change in zip(measured.observables, response.base, predicted, strict=True)
        },
    }


def _change_fields(change: MeanBounds) -> dict[str, Any]:
    """A change and its bounds, rounded, as a plan has them."""
    wire = change.to_wire()
    shown = {name: value if value is None else _rounded(value) for name, value in wire.items() if name != "n"}
    return {"change": shown.pop("mean"), **shown}


def _rounded(value: float) -> float:
    return float(f"{float(value):.{_DIGITS}g}")


def _method_notes(response: Response) -> str | None:
    parts = []
    if response.shapes and set(response.shapes) != {"central"}:
        parts.append("differences by probe: " + ", ".join(response.shapes))
    if response.errors is None:
        parts.append("one seed: the error of the response is not known")
    return "; ".join(parts) or None


def _notes(solved: Solved) -> str | None:
    if solved.refused is not None:
        return f"refused: {solved.refused}. The weights are those of the base."
    if solved.shortened < 1:
        return f"the step was shortened to {solved.shortened:.3g} of what was asked: a response holds nearby alone"
    return None
