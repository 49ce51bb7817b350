"""The checks every bound shares: what is not a count, a rate or a number is refused by name."""

from __future__ import annotations

from math import isfinite
from typing import Any

from muniment.errors import InvalidInput

__all__ = ["check_counts", "check_number", "check_open_rate"]


def check_counts(passes: Any, n: Any) -> None:
    """`0 <= passes <= n`, both whole numbers; a boolean or 3.0 is neither."""
    for name, value in (("passes", passes), ("n", n)):
        if type(value) is not int or value < 0:
            raise InvalidInput(f"{name} is {value!r}: not a count", hint="a whole number, 0 or more")
    if passes > n:
        raise InvalidInput(f"{passes} passes of {n} runs", hint="no more passes than runs")


def check_number(name: str, value: Any) -> float:
    """A finite number; a boolean is none."""
    if type(value) not in (int, float) or not isfinite(value):
        raise InvalidInput(f"{name} is {value!r}: not a number", hint="a finite number")
    return float(value)


def check_open_rate(name: str, value: Any) -> float:
    """A number strictly between 0 and 1: a confidence, an alpha, a threshold that can be tested."""
    number = check_number(name, value)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} is {value!r}: not between 0 and 1", hint="strictly between 0 and 1")
    return number
