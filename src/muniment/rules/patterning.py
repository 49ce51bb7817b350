"""Patterning (RC-24): data weights from a measured response. Offline: it uses no run, ledger or store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass
from functools import partial
from math import isfinite, sqrt
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import Field

from muniment.contracts.rules import PatterningObservable, PatterningPlan, PatterningProbe
from muniment.contracts.runs import EventLog
from muniment.core.canonical import short_id
from muniment.core.outside.calling import outcome_of
from muniment.core.policy import PatterningPolicy
from muniment.core.record import RULECRAFT_VERSION, Absent, Integer, Items, NonEmpty, Number, Record
from muniment.core.stats import Comparison, MeanBounds, check_number, mean_bounds, normal_quantile
from muniment.errors import EvaluationFailed, IllConditioned, InvalidInput, WrongStage
from muniment.learning.records import RunFacts
from muniment.verify.results import is_pass

# == records ==========================================================================================================

Weight = Annotated[Number, Field(ge=0)]


class PatterningEvaluation(Record):
    """Observables measured with `step` of the data moved to a probe (negative: away from it); 0 is the base."""

    probe_id: NonEmpty | None = None
    step: Annotated[Number, Field(gt=-1, lt=1)] = 0
    seed: Integer = 0
    values: dict[str, Number]


class GivenResponse(Record):
    """A response measured elsewhere, such as from gradients: rows are observables, columns are probes."""

    chi: Items[Items[Number]]
    base: dict[str, Number]
    errors: Absent[Items[Items[Number]]] = None
    """Standard errors."""


class PatterningMeasurements(Record):
    """The complete input of a plan, as one document."""

    base_dataset: NonEmpty
    probes: Items[PatterningProbe]
    observables: Items[PatterningObservable]
    base_weights: dict[str, Weight]
    evaluations: Items[PatterningEvaluation] = ()
    response: Absent[GivenResponse] = None
    """Replaces evaluations."""


# == levers ===========================================================================================================

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

_SLACK = 1e-9


class Levers(NamedTuple):
    """The probes, the current mixture (it sums to 1), and the cap of each weight."""

    ids: tuple[str, ...]
    base: Vector
    caps: Vector


class Step(NamedTuple):
    """`size` of the data moved to the probe at this index; the base is Step(None, 0)."""

    probe: int | None
    size: float


def read_levers(probes: Sequence[PatterningProbe], base_weights: Mapping[str, float]) -> Levers:
    """Read the probes and their current weights, in any scale. Raises `InvalidInput` if they make no mixture."""
    ids = tuple(probe.probe_id for probe in probes)
    if len(ids) < 2:
        raise InvalidInput("a mixture of fewer than two probes", path="$.probes", hint="name two probes or more")
    if len(set(ids)) < len(ids):
        raise InvalidInput("two probes of one name", path="$.probes", hint="each probe_id once")
    if set(base_weights) != set(ids):
        odd = sorted(set(base_weights) ^ set(ids))
        raise InvalidInput(
            f"base weights and probes differ: {', '.join(odd)}", path="$.base_weights", hint="one weight for each probe"
        )
    weights = np.array([check_number(f"the base weight of {name}", base_weights[name]) for name in ids])
    if (weights < 0).any() or weights.sum() <= 0:
        raise InvalidInput(
            "base weights are not shares", path="$.base_weights", hint="0 or more, and not all of them 0"
        )
    caps = np.array([_cap(probe) for probe in probes])
    if caps.sum() < 1 - _SLACK:
        raise InvalidInput(
            f"the weights may add up to {caps.sum():g} at most", path="$.probes", hint="raise max_weight: 1 is needed"
        )
    base = weights / weights.sum()
    for name, weight, cap in zip(ids, base, caps, strict=True):
        if weight > cap + _SLACK:
            raise InvalidInput(
                f"the base weight of {name} is {weight:g}, over its max_weight of {cap:g}",
                path="$.base_weights",
                hint="lower the one or raise the other",
            )
    return Levers(ids, base, caps)


def _cap(probe: PatterningProbe) -> float:
    cap = 1.0 if probe.max_weight is None else float(probe.max_weight)
    if not 0 < cap <= 1:
        raise InvalidInput(
            f"max_weight of {probe.probe_id} is {cap:g}", path="$.probes", hint="a share: over 0, up to 1"
        )
    return cap


def moved(levers: Levers, step: Step) -> Vector:
    """Return the mixture after a step."""
    if step.probe is None:
        return levers.base
    target = np.zeros(len(levers.ids))
    target[step.probe] = 1.0
    return levers.base + step.size * (target - levers.base)


def named(levers: Levers, weights: Vector) -> dict[str, float]:
    return {name: float(weight) for name, weight in zip(levers.ids, weights, strict=True)}


def planned_steps(levers: Levers, policy: PatterningPolicy) -> tuple[Step, ...]:
    """The base, and one or two steps for each probe, restricted to mixtures within 0 and the caps.

    A probe with almost no weight is only raised; one at its cap is only lowered.
    """
    epsilon = float(policy.epsilon)
    steps = [Step(None, 0.0)]
    for at, name in enumerate(levers.ids):
        sides = [Step(at, size) for size in (epsilon, -epsilon) if _is_allowed(levers, Step(at, size))]
        if not sides:
            raise InvalidInput(
                f"{name} can be neither raised nor lowered by {epsilon:g}",
                path="$.policy.epsilon",
                hint="take a smaller epsilon, or raise max_weight",
            )
        steps += sides if policy.difference == "central" else sides[:1]
    return tuple(steps)


def _is_allowed(levers: Levers, step: Step) -> bool:
    weights = moved(levers, step)
    return bool((weights >= -_SLACK).all() and (weights <= levers.caps + _SLACK).all())


# == observables ======================================================================================================

_RATES = ("pass_rate", "unknown_rate", "reason_code_rate")
_LOWER_IS_BETTER = ("unknown_rate", "reason_code_rate", "avg_cost")


def check_observables(observables: Sequence[PatterningObservable]) -> None:
    """Check that each observable occurs once and asks for at most one thing, and that at least one asks for
    something.
    """
    ids = [each.obs_id for each in observables]
    if len(set(ids)) < len(ids):
        raise InvalidInput("two observables of one name", path="$.observables", hint="each obs_id once")
    for at, each in enumerate(observables):
        path = f"$.observables[{at}]"
        if each.target_value is not None and each.target_delta is not None:
            raise InvalidInput(
                f"{each.obs_id} asks for a value and for a change", path=path, hint="target_value or target_delta"
            )
        if each.kind == "reason_code_rate" and not each.reason_code:
            raise InvalidInput(f"{each.obs_id} names no reason_code", path=path, hint="name the code to be counted")
        if each.kind in _RATES and each.target_value is not None and not 0 <= each.target_value <= 1:
            raise InvalidInput(f"{each.obs_id} asks for a rate of {each.target_value:g}", path=path, hint="from 0 to 1")
    if not any(_is_asked(each) for each in observables):
        raise InvalidInput(
            "no observable is asked to change", path="$.observables", hint="give one a target_delta or a target_value"
        )


def read_values(answer: Any, observables: Sequence[PatterningObservable], where: str) -> Vector:
    """Read the value of each observable in order. Raises `InvalidInput` for values that cannot be measurements."""
    if not isinstance(answer, Mapping):
        raise InvalidInput(f"{where}: wanted a value for each observable, found {type(answer).__name__}")
    return np.array([_value(answer, each, where) for each in observables], dtype=float)


def _value(answer: Mapping[Any, Any], observable: PatterningObservable, where: str) -> float:
    name = observable.obs_id
    if name not in answer:
        raise InvalidInput(f"{where}: no value of {name}", hint=f"answer all of them, {name} too")
    value = answer[name]
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        raise InvalidInput(f"{where}: {name} is {value!r:.60}", hint="a finite number")
    number = float(value)
    if observable.kind in _RATES and not 0 <= number <= 1:
        raise InvalidInput(f"{where}: {name} is {number:g}, and a rate", hint="from 0 to 1")
    if observable.kind == "avg_cost" and number < 0:
        raise InvalidInput(f"{where}: {name} is {number:g}, and a cost", hint="0 or more")
    return number


# -- requests -----------------------------------------------------------------------------------------


def _is_asked(observable: PatterningObservable) -> bool:
    return observable.target_value is not None or observable.target_delta is not None


def target_of(observable: PatterningObservable, base: float) -> float | None:
    """The requested change; None if the observable should stay as it is."""
    if observable.target_delta is not None:
        return float(observable.target_delta)
    return None if observable.target_value is None else float(observable.target_value) - base


def targets(observables: Sequence[PatterningObservable], base: Vector) -> Vector:
    """The requested changes; 0 for observables that should stay."""
    asked = [target_of(each, float(value)) for each, value in zip(observables, base, strict=True)]
    return np.array([each or 0.0 for each in asked])


def units(observables: Sequence[PatterningObservable], base: Vector) -> Vector:
    """The scale of each observable: 1 for a rate, its base value for a cost, so that token counts do not outweigh
    rates.
    """
    return np.array(
        [
            float(value) if each.kind == "avg_cost" and value > 0 else 1.0
            for each, value in zip(observables, base, strict=True)
        ]
    )


def better_sign(observable: PatterningObservable, base: float) -> Literal[1, -1]:
    """Return 1 if more is better, from the request or else the kind; `custom` observables should not fall."""
    asked = target_of(observable, base)
    if asked:
        return 1 if asked > 0 else -1
    return -1 if observable.kind in _LOWER_IS_BETTER else 1


# == response =========================================================================================================

_Readings = dict[tuple[str | None, float], Vector]  # (probe, step) → observables


@dataclass(frozen=True, slots=True)
class Response:
    """χ of each seed (seeds × observables × probes), the observables at the base, and the errors of a given χ.

    `shapes` records how each probe was measured: central, forward, backward.
    """

    samples: npt.NDArray[np.float64]
    base: Vector
    given_errors: Matrix | None = None
    shapes: tuple[str, ...] = ()
    step: float | None = None

    @property
    def chi(self) -> Matrix:
        mean: Matrix = self.samples.mean(axis=0)
        return mean

    @property
    def errors(self) -> Matrix | None:
        """Standard errors of χ; None if unknown."""
        if self.given_errors is not None:
            return self.given_errors
        seeds = len(self.samples)
        if seeds < 2:
            return None
        errors: Matrix = self.samples.std(axis=0, ddof=1) / sqrt(seeds)
        return errors

    def predicted(self, change: Vector) -> list[MeanBounds]:
        """Predict the effect of changed weights on each observable, to first order.

        The interval covers measurement error, not curvature.
        """
        each = self.samples @ change  # seeds × observables
        if self.given_errors is None:
            return [mean_bounds([float(value) for value in column]) for column in each.T]
        z = normal_quantile(0.975)
        errors = np.sqrt(self.given_errors**2 @ change**2)
        return [
            MeanBounds(float(mean), float(error), float(mean - z * error), float(mean + z * error), 1)
            for mean, error in zip(each[0], errors, strict=True)
        ]


def measured_response(
    evaluations: Sequence[PatterningEvaluation], levers: Levers, observables: Sequence[PatterningObservable]
) -> Response:
    """Compute χ from evaluations; every seed needs the base and the same steps of every probe."""
    by_seed: dict[int, _Readings] = {}
    for at, each in enumerate(evaluations):
        path = f"$.evaluations[{at}]"
        if (each.probe_id is None) != (each.step == 0) or each.probe_id not in (None, *levers.ids):
            raise InvalidInput(
                f"a step of {each.step:g} to {each.probe_id}", path=path, hint="a probe with its step, or neither: base"
            )
        readings = by_seed.setdefault(int(each.seed), {})
        key = (each.probe_id, float(each.step))
        if key in readings:
            raise InvalidInput(f"{each.probe_id or 'the base'} was evaluated twice with seed {each.seed}", path=path)
        readings[key] = read_values(each.values, observables, path)
    if not by_seed:
        raise InvalidInput("no evaluations", path="$.evaluations", hint="evaluate the base and a step for each probe")
    steps = set(next(iter(by_seed.values())))
    for seed, readings in by_seed.items():
        if set(readings) != steps:
            raise InvalidInput(
                f"seed {seed} was not evaluated where the others were", path="$.evaluations", hint="the same for each"
            )
    samples = np.array([_chi(by_seed[seed], levers) for seed in sorted(by_seed)])
    base: Vector = np.mean([by_seed[seed][None, 0.0] for seed in sorted(by_seed)], axis=0)
    sizes = {abs(size) for _, size in steps if size}
    shapes = tuple(_shape([size for probe, size in steps if probe == name]) for name in levers.ids)
    return Response(samples, base, shapes=shapes, step=sizes.pop() if len(sizes) == 1 else None)


def _chi(readings: _Readings, levers: Levers) -> Matrix:
    if (None, 0.0) not in readings:
        raise InvalidInput("the base was not evaluated", path="$.evaluations", hint="a row with no probe and no step")
    base = readings[None, 0.0]
    columns = [_slope({size: row for (probe, size), row in readings.items() if probe == name}, base, name)
               for name in levers.ids]  # fmt: skip
    return np.array(columns).T


def _slope(sides: dict[float, Vector], base: Vector, name: str) -> Vector:
    """The slope at the base. Two sides at unequal distances are weighted so that curvature still cancels."""
    sizes = sorted(sides)
    if len(sizes) == 1:
        (size,) = sizes
        slope: Vector = (sides[size] - base) / size
        return slope
    if len(sizes) != 2 or sizes[0] * sizes[1] >= 0:
        raise InvalidInput(
            f"{name} was evaluated at {len(sizes)} steps", path="$.evaluations", hint="one step, or one to each side"
        )
    low, high = sizes
    weighed: Vector = ((sides[high] - base) * low / high - (sides[low] - base) * high / low) / (low - high)
    return weighed


def _shape(sizes: Sequence[float]) -> str:
    return "central" if len(sizes) == 2 else "forward" if sizes[0] > 0 else "backward"


def given_response(given: GivenResponse, levers: Levers, observables: Sequence[PatterningObservable]) -> Response:
    """Accept a given χ after checking its shape."""
    chi = _matrix(given.chi, levers, observables, "chi")
    errors = None if given.errors is None else _matrix(given.errors, levers, observables, "errors")
    if errors is not None and (errors < 0).any():
        raise InvalidInput("a standard error below 0", path="$.response.errors")
    return Response(chi[np.newaxis], read_values(given.base, observables, "$.response.base"), errors)


def _matrix(
    rows: Sequence[Sequence[float]], levers: Levers, observables: Sequence[PatterningObservable], name: str
) -> Matrix:
    wanted = (len(observables), len(levers.ids))
    if len(rows) != wanted[0] or any(len(row) != wanted[1] for row in rows):
        raise InvalidInput(
            f"{name} should have {wanted[0]} rows of {wanted[1]}",
            path=f"$.response.{name}",
            hint="a row for each observable, a column for each probe",
        )
    return np.array(rows, dtype=float)


# == solution =========================================================================================================

Mask = npt.NDArray[np.bool_]

_SILENT = 1e-12  # relative to the largest response: rounding error, not a result
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Solved:
    """The weights and their diagnostics. `refused` explains why the base weights were kept."""

    weights: Vector
    clipped: bool
    renormalized: bool
    shortened: float
    """The share of the step that was taken; 1 if all of it."""
    ridge: float
    condition: float | None
    """None if infinite."""
    refused: str | None = None


def solve_weights(
    response: Response, levers: Levers, observables: Sequence[PatterningObservable], policy: PatterningPolicy
) -> Solved:
    """Solve for the weights that the observables ask for; an ill-conditioned χ is refused or flagged, depending on
    policy.
    """
    scale = units(observables, response.base)
    basis = _sum_zero(len(levers.ids))
    reduced = response.chi / scale[:, np.newaxis] @ basis
    wanted = targets(observables, response.base) / scale
    is_asked = np.array(
        [target_of(each, float(value)) is not None for each, value in zip(observables, response.base, strict=True)]
    )
    u, sigma, vt = np.linalg.svd(reduced, full_matrices=False)
    condition = _condition(reduced, is_asked)
    ridge = float(policy.ridge_share) * float(sigma[0]) ** 2 + _noise(response, scale, basis)
    refused = _refusal(reduced, is_asked, observables, condition, policy)
    if refused is not None:
        if policy.ill_conditioned == "refuse":
            raise IllConditioned(refused, details={} if condition is None else {"condition_number": condition})
        return Solved(levers.base, False, False, 0.0, ridge, condition, refused)
    step: Vector = basis @ (vt.T @ (sigma / (sigma**2 + ridge) * (u.T @ wanted)))
    longest = float(np.abs(step).max())
    share = min(1.0, float(policy.step_max) / longest) if longest > 0 else 1.0
    raw = levers.base + share * step
    weights, was_clipped = capped_mixture(raw, levers.caps)
    return Solved(weights, was_clipped, True, share, ridge, condition)


def _sum_zero(count: int) -> Matrix:
    """An orthonormal basis of the changes that sum to 0 (Helmert's), one per column."""
    basis = np.zeros((count, count - 1))
    for at in range(1, count):
        basis[:at, at - 1] = 1.0
        basis[at, at - 1] = -at
        basis[:, at - 1] /= np.sqrt(at * (at + 1))
    return basis


def _condition(reduced: Matrix, is_asked: Mask) -> float | None:
    """The condition number: largest over smallest singular value within the mixtures.

    An observable that should stay and does not respond to any probe asks for nothing: its row is left out.
    """
    speaks = np.linalg.norm(reduced, axis=1) > _SILENT * max(float(np.linalg.norm(reduced)), _TINY)
    rows = reduced[is_asked | speaks]
    sigma = np.linalg.svd(rows, compute_uv=False)
    return float(sigma[0] / sigma[-1]) if sigma[-1] > _SILENT * sigma[0] else None


def _noise(response: Response, scale: Vector, basis: Matrix) -> float:
    """The amount noise adds to a squared singular value; the ridge subtracts it again."""
    errors = response.errors
    if errors is None:
        return 0.0
    squared = (errors / scale[:, np.newaxis]) ** 2 @ basis**2
    return float(squared.sum(axis=1).mean())


def _refusal(
    reduced: Matrix,
    is_asked: Mask,
    observables: Sequence[PatterningObservable],
    condition: float | None,
    policy: PatterningPolicy,
) -> str | None:
    lengths = np.linalg.norm(reduced, axis=1)
    silent = [
        each.obs_id
        for each, length, asked in zip(observables, lengths, is_asked, strict=True)
        if asked and length <= _SILENT * max(lengths.max(), 1.0)
    ]
    if silent:
        return f"nothing that was tried moves {', '.join(silent)}"
    if condition is None:
        return "the response is singular: observables that are asked for different changes answer alike"
    if condition > policy.condition_max:
        return f"the condition number of the response is {condition:.4g}, over {policy.condition_max:g}"
    return None


def capped_mixture(raw: Vector, caps: Vector) -> tuple[Vector, bool]:
    """Return weights in [0, cap] that sum to 1, and whether any was cut.

    Renormalising may lift a weight over its cap: it then stays at the cap and the others share the rest.
    """
    weights = np.clip(raw, 0.0, caps)
    was_clipped = bool(np.abs(weights - raw).max() > _TINY)
    is_full = np.zeros(len(raw), dtype=bool)
    for _ in range(len(raw)):
        left, rest = 1.0 - float(caps[is_full].sum()), float(weights[~is_full].sum())
        if rest > 0:
            weights = np.where(is_full, caps, weights * left / rest)
        else:
            room = np.where(is_full, 0.0, caps)
            weights = np.where(is_full, caps, room * left / max(float(room.sum()), _TINY))
        over = ~is_full & (weights > caps + _TINY)
        if not over.any():
            break
        is_full |= over
        was_clipped = True
    return np.minimum(weights, caps), was_clipped


# == planning =========================================================================================================

_DIGITS = 12  # Digits kept from linear algebra: the rest differs between machines.


def make_plan(
    measured: PatterningMeasurements,
    policy: PatterningPolicy,
    *,
    generated_at: str,
    patterning_id: str | None = None,
    canary_suite_id: str | None = None,
    replay_window: dict[str, Any] | None = None,
) -> PatterningPlan:
    """Build the plan from measurements. Deterministic, including its id unless one is given."""
    check_observables(measured.observables)
    levers = read_levers(measured.probes, measured.base_weights)
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
    """A change and its bounds, rounded, as stored in a plan."""
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


# == stages ===========================================================================================================

Stage = Literal["planned", "refused", "replayed", "canaried", "applied", "rolled_back", "failed"]

_STAGES: tuple[Stage, ...] = ("planned", "refused", "replayed", "canaried", "applied", "rolled_back", "failed")
_NEXT = {
    "planned": "replay it next",
    "refused": "its response was ill-conditioned: measure again",
    "replayed": "the canary comes next",
    "canaried": "it may be applied",
    "applied": "it can be rolled back",
    "rolled_back": "it has ended: make another plan",
    "failed": "it has ended: make another plan",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a replay or a canary: whether it held, why not, and the figures."""

    held: bool
    reasons: tuple[str, ...]
    changes: Mapping[str, Any]

    def to_wire(self) -> dict[str, Any]:
        return {"held": self.held, "reasons": list(self.reasons), "changes": dict(self.changes)}


# -- judging ------------------------------------------------------------------------------------------


def judge_evaluations(
    plan: PatterningPlan,
    before: Sequence[Mapping[str, float]],
    after: Sequence[Mapping[str, float]],
    policy: PatterningPolicy,
) -> Trial:
    """Compare evaluations with the base weights and with the plan's, pair by pair (same seed, same tasks).

    It holds if nothing got worse by more than `regress_max`, and the requested changes have the right direction.
    """
    if not before or len(before) != len(after):
        raise InvalidInput(
            f"{len(before)} evaluations before, {len(after)} after", path="$.after", hint="as many, and at least one"
        )
    old = [read_values(row, plan.observables, f"before, {at}") for at, row in enumerate(before)]
    new = [read_values(row, plan.observables, f"after, {at}") for at, row in enumerate(after)]
    base: Vector = np.mean(old, axis=0)
    scales = units(plan.observables, base)
    changes: dict[str, Any] = {}
    reasons: list[str] = []
    for at, observable in enumerate(plan.observables):
        change = mean_bounds([float(b[at] - a[at]) for a, b in zip(old, new, strict=True)])
        changes[observable.obs_id] = {"before": float(base[at]), "change": change.mean, **_bounds(change)}
        planned_base = _plan_base(plan, observable.obs_id, float(base[at]))
        sign = better_sign(observable, planned_base)
        gain = sign * change.mean / scales[at]
        ends = [end for end in (change.lower, change.upper) if end is not None]
        worst = min([gain, *(sign * end / scales[at] for end in ends)]) if policy.judged_by == "bound" else gain
        if worst < -float(policy.regress_max):
            reasons.append(f"{observable.obs_id} is worse by {-worst:.4g}")
        elif target_of(observable, planned_base) and gain <= 0:
            reasons.append(f"{observable.obs_id} was asked to change and did not")
    return Trial(not reasons, tuple(reasons), changes)


def _plan_base(plan: PatterningPlan, obs_id: str, otherwise: float) -> float:
    """The value of an observable when the plan was made."""
    predicted = _results_of(plan).get("predicted")
    found = predicted.get(obs_id) if isinstance(predicted, Mapping) else None
    value = found.get("base") if isinstance(found, Mapping) else None
    return float(value) if isinstance(value, int | float) else otherwise


def _bounds(change: MeanBounds) -> dict[str, float | None]:
    return {"error": change.error, "lower": change.lower, "upper": change.upper}


def judge_comparison(comparison: Comparison) -> Trial:
    """Judge a canary over real runs: the sequential test must have shown it is not harmful. Undecided does not
    count.
    """
    decision = comparison.decision
    held = decision in ("not_harmful", "better")
    results = {"decision": decision, "effect": comparison.effect, "comparison": comparison.to_wire()}
    return Trial(held, () if held else (f"the comparison says {decision}",), results)


# -- the path -----------------------------------------------------------------------------------------


def stage_of(plan: PatterningPlan) -> Stage:
    """The stage of a plan. Raises `InvalidInput` for a plan marked as applied without the preceding stages."""
    said = _results_of(plan).get("stage", "planned")
    if said not in _STAGES or (said == "applied") != plan.applied:
        raise InvalidInput(
            f"a plan that is {'' if plan.applied else 'not '}applied and at stage {said!r:.40}",
            path="$.validation.results.stage",
            hint="take it through replay and canary",
        )
    stage: Stage = said
    return stage


def check_stage(plan: PatterningPlan, wanted: Stage, step: str) -> None:
    """Raise `WrongStage` unless the plan is at the wanted stage; `step` names the attempted step."""
    stage = stage_of(plan)
    if stage != wanted:
        raise WrongStage(
            f"{plan.patterning_id} is {stage}: it cannot be {step}", hint=_NEXT[stage], details={"stage": stage}
        )


def replayed(plan: PatterningPlan, trial: Trial) -> PatterningPlan:
    """Return the plan after its replay."""
    check_stage(plan, "planned", "replayed")
    return _tried(plan, "replay", trial, "replayed")


def canaried(plan: PatterningPlan, trial: Trial) -> PatterningPlan:
    """Return the plan after its canary, which requires a replay that held."""
    check_stage(plan, "replayed", "tried in a canary")
    return _tried(plan, "canary", trial, "canaried")


def applied(plan: PatterningPlan) -> PatterningPlan:
    """Return the plan in force: the only place that sets `applied` to true."""
    check_stage(plan, "canaried", "applied")
    results = _results_of(plan)
    for name in ("replay", "canary"):
        trial = results.get(name)
        if not isinstance(trial, Mapping) or trial.get("held") is not True:
            raise WrongStage(f"the {name} of {plan.patterning_id} did not hold", hint="take it through both")
    return _at(plan, "applied", {}, is_applied=True)


def rolled_back(plan: PatterningPlan, reason: str) -> PatterningPlan:
    """Restore the base weights, from any stage but the final ones."""
    if stage_of(plan) in ("refused", "rolled_back", "failed"):
        check_stage(plan, "applied", "rolled back")
    return _at(plan, "rolled_back", {"rollback": {"reasons": [reason]}})


def weights_in_force(plan: PatterningPlan) -> dict[str, float]:
    """Weights by probe: the plan's if it is applied, else the base weights."""
    return planned_weights(plan) if stage_of(plan) == "applied" else base_weights(plan)


def planned_weights(plan: PatterningPlan) -> dict[str, float]:
    """Weights by probe, as planned."""
    weights = plan.solution.weights
    if len(weights) != len(plan.probes):
        raise InvalidInput(f"{len(weights)} weights for {len(plan.probes)} probes", path="$.solution.weights")
    return {probe.probe_id: float(weight) for probe, weight in zip(plan.probes, weights, strict=True)}


def base_weights(plan: PatterningPlan) -> dict[str, float]:
    """Weights by probe that the plan started from."""
    base = _results_of(plan).get("base_weights")
    ids = [probe.probe_id for probe in plan.probes]
    if not isinstance(base, Mapping) or set(base) != set(ids):
        raise InvalidInput("the plan does not say what its base was", path="$.validation.results.base_weights")
    return {name: check_number(f"the base weight of {name}", base[name]) for name in ids}


def _results_of(plan: PatterningPlan) -> Mapping[str, Any]:
    return plan.validation.results or {}


def _tried(plan: PatterningPlan, name: str, trial: Trial, stage: Stage) -> PatterningPlan:
    if trial.held:
        return _at(plan, stage, {name: trial.to_wire()})
    if plan.validation.rollback_on_regress:
        return _at(plan, "rolled_back", {name: trial.to_wire(), "rollback": {"reasons": list(trial.reasons)}})
    return _at(plan, "failed", {name: trial.to_wire()})


def _at(plan: PatterningPlan, stage: Stage, results: Mapping[str, Any], *, is_applied: bool = False) -> PatterningPlan:
    wire = plan.to_wire()
    wire["validation"]["results"] = {**_results_of(plan), **results, "stage": stage}
    return PatterningPlan.from_wire({**wire, "applied": is_applied})


# == rates ============================================================================================================


class RunRow(NamedTuple):
    """The countable facts of a run; None if unknown."""

    bucket_key: str | None
    passed: bool
    is_unknown: bool
    reason_codes: frozenset[str] | None
    cost: float | None


def row_of_log(log: EventLog) -> RunRow:
    """Read a run from its EventLog. The contract's log has no reason codes; if its open mirror has them, they
    are used.
    """
    verdict, outcome = log.verifier.verdict or "", log.verifier.outcome or "UNKNOWN"
    codes: Any = (log.verifier.model_extra or {}).get("reason_codes")
    named = frozenset(code for code in codes if isinstance(code, str)) if isinstance(codes, list | tuple) else None
    cost = log.cost
    tokens = None if cost is None else (cost.tokens_in, cost.tokens_out)
    known = None if tokens is None or tokens == (None, None) else float(sum(each or 0 for each in tokens))
    return RunRow(log.bucket_key, is_pass(verdict, outcome), outcome == "UNKNOWN", named, known)


def row_of_facts(facts: RunFacts) -> RunRow:
    """Read a run from folded facts."""
    unknown = (facts.outcome or "UNKNOWN") == "UNKNOWN"
    bucket = facts.bucket_key or facts.bucket_derived
    return RunRow(bucket, facts.passed, unknown, frozenset(facts.reason_codes), float(facts.cost))


def read_rates(rows: Iterable[RunRow], observables: Sequence[PatterningObservable]) -> dict[str, float]:
    """The value of each observable over the rows. One without data is refused, not set to zero."""
    listed = list(rows)
    return {each.obs_id: _observed_rate(listed, each) for each in observables}


def _observed_rate(rows: Sequence[RunRow], observable: PatterningObservable) -> float:
    mine = [row for row in rows if observable.bucket_key in (None, row.bucket_key)]
    kind = observable.kind
    if kind == "pass_rate":
        values = [float(row.passed) for row in mine]
    elif kind == "unknown_rate":
        values = [float(row.is_unknown) for row in mine]
    elif kind == "reason_code_rate":
        values = [float(observable.reason_code in row.reason_codes) for row in mine if row.reason_codes is not None]
    elif kind == "avg_cost":
        values = [row.cost for row in mine if row.cost is not None]
    else:
        raise InvalidInput(
            f"{observable.obs_id} cannot be read from runs: its kind is {kind or 'custom'}",
            path="$.observables",
            hint="pass_rate, unknown_rate, reason_code_rate or avg_cost; measure the others yourself",
        )
    if not values:
        where = f" in {observable.bucket_key}" if observable.bucket_key else ""
        raise InvalidInput(
            f"no run{where} says anything of {observable.obs_id}",
            path="$.observables",
            hint="widen the window, or leave the observable out",
        )
    return sum(values) / len(values)


# == patterning measuring =============================================================================================


class TrainAndEvaluate(Protocol):
    """Train on data mixed by these weights (they sum to 1), with this seed; return each observable's value."""

    def __call__(self, weights: Mapping[str, float], seed: int, /) -> Mapping[str, float]: ...


class _Measurement(NamedTuple):
    """A pending measurement: under these weights, with this seed."""

    label: str
    weights: dict[str, float]
    seed: int


def run_patterning(
    train_and_evaluate: TrainAndEvaluate,
    *,
    probes: Sequence[PatterningProbe | Mapping[str, Any]],
    observables: Sequence[PatterningObservable | Mapping[str, Any]],
    base_weights: Mapping[str, float],
    base_dataset: str,
    seed: int,
    generated_at: str,
    policy: PatterningPolicy | None = None,
    executor: Executor | None = None,
    replay: TrainAndEvaluate | None = None,
    canary: TrainAndEvaluate | None = None,
    patterning_id: str | None = None,
) -> PatterningPlan:
    """Measure χ near the base weights, solve for the requested observables, and try the plan.

    With `replay` the plan is replayed (evaluated on earlier tasks), with `canary` it is also tried and, if both hold,
    applied. Without them it remains a proposal, to be continued by `validate_plan`.
    """
    numbers = policy or PatterningPolicy()
    measured = measure_response(
        train_and_evaluate,
        probes=probes,
        observables=observables,
        base_weights=base_weights,
        base_dataset=base_dataset,
        seed=seed,
        policy=numbers,
        executor=executor,
    )
    plan = make_plan(measured, numbers, generated_at=generated_at, patterning_id=patterning_id)
    if replay is None and canary is None:
        return plan
    return validate_plan(plan, replay=replay, canary=canary, seed=seed, policy=numbers, executor=executor)


def measure_response(
    train_and_evaluate: TrainAndEvaluate,
    *,
    probes: Sequence[PatterningProbe | Mapping[str, Any]],
    observables: Sequence[PatterningObservable | Mapping[str, Any]],
    base_weights: Mapping[str, float],
    base_dataset: str,
    seed: int,
    policy: PatterningPolicy,
    executor: Executor | None = None,
) -> PatterningMeasurements:
    """Evaluate the base and one or two steps for each probe, `repeats` times with seeds from `seed` on."""
    asked = PatterningMeasurements.from_wire(
        {
            "base_dataset": base_dataset,
            "probes": [_wire(each) for each in probes],
            "observables": [_wire(each) for each in observables],
            "base_weights": dict(base_weights),
        }
    )
    check_observables(asked.observables)
    levers = read_levers(asked.probes, asked.base_weights)
    planned = [(step, seed + again) for again in range(policy.repeats) for step in planned_steps(levers, policy)]
    questions = [
        _Measurement(
            "the base" if step.probe is None else f"{levers.ids[step.probe]} {step.size:+g}",
            named(levers, moved(levers, step)),
            its_seed,
        )
        for step, its_seed in planned
    ]
    answers = _evaluate(train_and_evaluate, questions, asked.observables, policy, executor)
    evaluations = [
        PatterningEvaluation(
            probe_id=None if step.probe is None else levers.ids[step.probe],
            step=step.size,
            seed=its_seed,
            values=values,
        )
        for (step, its_seed), values in zip(planned, answers, strict=True)
    ]
    return asked.model_copy(update={"evaluations": tuple(evaluations)})


def validate_plan(
    plan: PatterningPlan,
    *,
    replay: TrainAndEvaluate | None = None,
    canary: TrainAndEvaluate | None = None,
    seed: int,
    policy: PatterningPolicy | None = None,
    executor: Executor | None = None,
) -> PatterningPlan:
    """Continue a plan: replay, then canary, then applied. A regression rolls it back and ends it."""
    numbers = policy or PatterningPolicy()

    def tried(judge: TrainAndEvaluate) -> Trial:
        return _compare(plan, judge, seed, numbers, executor)

    check_stage(
        plan, "replayed" if replay is None else "planned", "tried in a canary" if replay is None else "replayed"
    )
    if replay is not None:
        plan = replayed(plan, tried(replay))
    if canary is not None and stage_of(plan) not in ("rolled_back", "failed"):
        plan = canaried(plan, tried(canary))
    return applied(plan) if stage_of(plan) == "canaried" else plan


def observe_logs(
    logs: Iterable[EventLog], observables: Sequence[PatterningObservable | Mapping[str, Any]]
) -> dict[str, float]:
    """Compute the observables from run logs, such as `mem.bank(...).event_logs()`."""
    read = [each if isinstance(each, PatterningObservable) else PatterningObservable.from_wire(each)
            for each in observables]  # fmt: skip
    return read_rates(map(row_of_log, logs), read)


def _wire(given: PatterningProbe | PatterningObservable | Mapping[str, Any]) -> Any:
    return given.to_wire() if isinstance(given, PatterningProbe | PatterningObservable) else given


def _compare(
    plan: PatterningPlan, judge: TrainAndEvaluate, seed: int, policy: PatterningPolicy, executor: Executor | None
) -> Trial:
    seeds = [seed + again for again in range(policy.repeats)]
    questions = [_Measurement("the base", base_weights(plan), each) for each in seeds]
    questions += [_Measurement("the plan", planned_weights(plan), each) for each in seeds]
    answers = _evaluate(judge, questions, plan.observables, policy, executor)
    return judge_evaluations(plan, answers[: len(seeds)], answers[len(seeds) :], policy)


# -- calling ------------------------------------------------------------------------------------------


def _evaluate(
    judge: TrainAndEvaluate,
    questions: Sequence[_Measurement],
    observables: Sequence[PatterningObservable],
    policy: PatterningPolicy,
    executor: Executor | None,
) -> list[dict[str, float]]:
    """Evaluate in order. The first failure stops the rest."""
    if executor is None:
        return [
            _read(outcome_of(partial(judge, dict(asked.weights), asked.seed)), asked, observables, policy)
            for asked in questions
        ]
    futures: list[Future[Mapping[str, float]]] = []
    try:
        futures.extend(_submitted(executor, judge, asked) for asked in questions)
        return [_read(future, asked, observables, policy) for future, asked in zip(futures, questions, strict=True)]
    finally:
        for future in futures:
            future.cancel()


def _submitted(executor: Executor, judge: TrainAndEvaluate, asked: _Measurement) -> Future[Mapping[str, float]]:
    try:
        return executor.submit(judge, dict(asked.weights), asked.seed)
    except RuntimeError as error:  # the executor was shut down, or its workers died
        raise EvaluationFailed(f"{_where(asked)}: the executor takes no work: {error}") from error


def _read(
    future: Future[Any], asked: _Measurement, observables: Sequence[PatterningObservable], policy: PatterningPolicy
) -> dict[str, float]:
    where = _where(asked)
    limit = None if policy.evaluation_timeout_s is None else float(policy.evaluation_timeout_s)
    try:
        error = future.exception(limit)
    except CancelledError:
        raise EvaluationFailed(f"{where}: the executor dropped it") from None
    except TimeoutError:
        raise EvaluationFailed(f"{where}: no answer within {limit:g} s") from None
    if error is not None:
        if not isinstance(error, Exception):
            raise error
        raise EvaluationFailed(
            f"{where}: {type(error).__name__}: {error!s:.200}", details={"weights": asked.weights, "seed": asked.seed}
        ) from error
    try:
        values = read_values(future.result(), observables, where)
    except InvalidInput as problem:
        raise EvaluationFailed(problem.message, hint=problem.hint, details={"seed": asked.seed}) from None
    return {each.obs_id: float(value) for each, value in zip(observables, values, strict=True)}


def _where(asked: _Measurement) -> str:
    return f"evaluating {asked.label} with seed {asked.seed}"
