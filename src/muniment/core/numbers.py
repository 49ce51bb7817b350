"""Numbers as callers give them."""

from __future__ import annotations

from typing import Any

__all__ = ["whole"]


def whole(value: Any) -> Any:
    """An integral float is an integer, as JSON Schema has it: `256.0` is 256. Anything else is left for its judge."""
    return int(value) if type(value) is float and value.is_integer() else value
