"""The levers: shares of the data, and the mixtures near the base that are tried to see what follows.

A step of ε to a probe takes ε of *all* data away in proportion and gives it to the probe: w + ε·(e − w). So every
mixture that is tried is one that could be used, its weights add up to 1, and the answer is exact where it is linear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.contracts.rules import PatterningProbe
from muniment.core.policy import PatterningPolicy
from muniment.core.stats import check_number
from muniment.errors import InvalidInput

__all__ = ["Levers", "Matrix", "Step", "Vector", "moved", "named", "planned_steps", "read_levers"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

_SLACK = 1e-9


class Levers(NamedTuple):
    """The probes, the mixture that is in use (it adds up to 1), and how high each weight may go."""

    ids: tuple[str, ...]
    base: Vector
    caps: Vector


class Step(NamedTuple):
    """`size` of the data moved to the probe at this place; the base is Step(None, 0)."""

    probe: int | None
    size: float


def read_levers(
    probes: Sequence[PatterningProbe], base_weights: Mapping[str, float], policy: PatterningPolicy
) -> Levers:
    """The probes with the weights they have now, in any scale; raises `InvalidInput` where no mixture can be made."""
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
    caps = np.array([_cap(probe, policy) for probe in probes])
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


def _cap(probe: PatterningProbe, policy: PatterningPolicy) -> float:
    cap = float(policy.weight_max if probe.max_weight is None else probe.max_weight)
    if not 0 < cap <= 1:
        raise InvalidInput(
            f"max_weight of {probe.probe_id} is {cap:g}", path="$.probes", hint="a share: over 0, up to 1"
        )
    return cap


def moved(levers: Levers, step: Step) -> Vector:
    """The mixture after a step."""
    if step.probe is None:
        return levers.base
    target = np.zeros(len(levers.ids))
    target[step.probe] = 1.0
    return levers.base + step.size * (target - levers.base)


def named(levers: Levers, weights: Vector) -> dict[str, float]:
    return {name: float(weight) for name, weight in zip(levers.ids, weights, strict=True)}


def planned_steps(levers: Levers, policy: PatterningPolicy) -> tuple[Step, ...]:
    """The base, and one or two steps for each probe: only where the mixture keeps within 0 and the caps.

    A probe that has next to nothing to give is only raised; one at its cap is only lowered.
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
