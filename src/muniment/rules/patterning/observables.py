"""What is observed: which values make sense, what is asked of each, and which way is worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np

from muniment.contracts.rules import PatterningObservable
from muniment.errors import InvalidInput
from muniment.rules.patterning.levers import Vector

__all__ = ["better_sign", "check_observables", "read_values", "target_of", "targets", "units"]

_RATES = ("pass_rate", "unknown_rate", "reason_code_rate")
_LOWER_IS_BETTER = ("unknown_rate", "reason_code_rate", "avg_cost")


def check_observables(observables: Sequence[PatterningObservable]) -> None:
    """Each is there once, asks for one thing at most, and something is asked for at all."""
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
    """The value of each observable in order; raises `InvalidInput` for what no measurement can be."""
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


# -- what is asked ------------------------------------------------------------------------------------


def _is_asked(observable: PatterningObservable) -> bool:
    return observable.target_value is not None or observable.target_delta is not None


def target_of(observable: PatterningObservable, base: float) -> float | None:
    """The change that is asked for; None where it should stay as it is."""
    if observable.target_delta is not None:
        return float(observable.target_delta)
    return None if observable.target_value is None else float(observable.target_value) - base


def targets(observables: Sequence[PatterningObservable], base: Vector) -> Vector:
    """The change asked of each; 0 of those that should stay."""
    asked = [target_of(each, float(value)) for each, value in zip(observables, base, strict=True)]
    return np.array([each or 0.0 for each in asked])


def units(observables: Sequence[PatterningObservable], base: Vector) -> Vector:
    """What counts as one: a rate as it stands, a cost in shares of what it was, so that tokens do not drown points."""
    return np.array(
        [
            float(value) if each.kind == "avg_cost" and value > 0 else 1.0
            for each, value in zip(observables, base, strict=True)
        ]
    )


def better_sign(observable: PatterningObservable, base: float) -> Literal[1, -1]:
    """1 where more is better. What is asked for says so; else the kind does, and what is `custom` should not fall."""
    asked = target_of(observable, base)
    if asked:
        return 1 if asked > 0 else -1
    return -1 if observable.kind in _LOWER_IS_BETTER else 1
