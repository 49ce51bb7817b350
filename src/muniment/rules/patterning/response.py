"""χ, the response: how much each observable changes where a share of the data moves to a probe.

Measured by finite differences, seed by seed: both sides of a difference are evaluated with the same seed, so that what
a seed does to both cancels, and what is left between seeds is the error. Or given, such as from gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from muniment.contracts.rules import PatterningObservable
from muniment.core.stats import MeanBounds, mean_bounds, normal_quantile
from muniment.errors import InvalidInput
from muniment.rules.patterning.levers import Levers, Matrix, Vector
from muniment.rules.patterning.observables import read_values
from muniment.rules.patterning.records import GivenResponse, PatterningEvaluation

__all__ = ["Response", "given_response", "measured_response"]

_Readings = dict[tuple[str | None, float], Vector]  # (probe, step) → observables


@dataclass(frozen=True, slots=True)
class Response:
    """χ of each seed (seeds × observables × probes), the observables at the base, and errors that came with a given χ.

    `shapes` says how each probe was measured: central, forward, backward.
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
        """Standard errors of χ; None where nothing is known of them."""
        if self.given_errors is not None:
            return self.given_errors
        seeds = len(self.samples)
        if seeds < 2:
            return None
        errors: Matrix = self.samples.std(axis=0, ddof=1) / sqrt(seeds)
        return errors

    def predicted(self, change: Vector) -> list[MeanBounds]:
        """What a change of the weights does to each observable, as far as the response is straight.

        The interval is that of the measurement; it knows nothing of curvature.
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
    """χ from evaluations; every seed must have the base and the same steps of every probe."""
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
    """The slope at the base. Two sides at unequal distances are weighed so that curvature cancels all the same."""
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
    """A χ as it was given: taken, once its shape is right."""
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
