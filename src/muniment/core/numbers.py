"""Numbers as callers give them, and counts that are found by halving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["furthest", "whole"]


def whole(value: Any) -> Any:
    """An integral float is an integer, as JSON Schema has it: `256.0` is 256. Anything else is left for its judge."""
    return int(value) if type(value) is float and value.is_integer() else value


def furthest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest count up to `most` found to hold by halving; what is returned, unless 0, was seen to hold."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
