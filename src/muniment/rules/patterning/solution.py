"""χ turned round: which weights bring the change that is asked for, within what a mixture can be.

The change δ of the weights adds up to 0, so it is sought among the directions that do: ridge least squares there,
χ·δ ≈ target. What is held asks for a change of 0. Then the step is shortened to `step_max`, clipped to [0, w_max]
and renormalised so that no cap is passed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muniment.contracts.rules import PatterningObservable
from muniment.core.policy import PatterningPolicy
from muniment.errors import IllConditioned
from muniment.rules.patterning.levers import Levers, Matrix, Vector
from muniment.rules.patterning.observables import target_of, targets, units
from muniment.rules.patterning.response import Response

__all__ = ["Solved", "capped_mixture", "solve_weights"]

Mask = npt.NDArray[np.bool_]

_SILENT = 1e-12  # of the largest response: rounding, not an answer
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Solved:
    """The weights and how they came about. `refused` says why they are those of the base."""

    weights: Vector
    clipped: bool
    renormalized: bool
    shortened: float
    """The share of the step that was taken; 1 where all of it was."""
    ridge: float
    condition: float | None
    """None where it is infinite."""
    refused: str | None = None


def solve_weights(
    response: Response, levers: Levers, observables: Sequence[PatterningObservable], policy: PatterningPolicy
) -> Solved:
    """The weights for what the observables ask; an ill-conditioned χ is refused, or said to be, by policy."""
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
    """An orthonormal basis of the changes that add up to 0 (Helmert's), one a column."""
    basis = np.zeros((count, count - 1))
    for at in range(1, count):
        basis[:at, at - 1] = 1.0
        basis[at, at - 1] = -at
        basis[:, at - 1] /= np.sqrt(at * (at + 1))
    return basis


def _condition(reduced: Matrix, is_asked: Mask) -> float | None:
    """The largest over the smallest singular value that a mixture leaves.

    An observable that should stay, and does whatever is tried, asks for nothing: its row is left out.
    """
    speaks = np.linalg.norm(reduced, axis=1) > _SILENT * max(float(np.linalg.norm(reduced)), _TINY)
    rows = reduced[is_asked | speaks]
    sigma = np.linalg.svd(rows, compute_uv=False)
    return float(sigma[0] / sigma[-1]) if sigma[-1] > _SILENT * sigma[0] else None


def _noise(response: Response, scale: Vector, basis: Matrix) -> float:
    """What noise adds to a squared singular value: as much as that is taken off again by the ridge."""
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
    """Weights in [0, cap] that add up to 1, and whether any had to be cut.

    Renormalising may lift a weight over its cap: then it stays at the cap and the others share what is left.
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
