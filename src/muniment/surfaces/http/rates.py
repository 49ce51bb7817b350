"""How much a caller may still ask, as headers: `RateLimit` and `RateLimit-Policy`, as the IETF's draft has them.

    RateLimit-Policy: "key";q=6000;w=60        so many requests in so many seconds
    RateLimit: "key";r=5998;t=1                so many are left, and in so many seconds all of them are there again

Of one who is refused `t` is when the next request will be taken, as `Retry-After` says.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from math import ceil, floor
from typing import Any, Literal, NamedTuple, Protocol

from muniment.errors import RateLimited

__all__ = ["WINDOW_S", "Allowance", "Limit", "note_refused", "note_taken", "set_rate_headers"]

WINDOW_S = 60
_STATE = "allowance"

Limit = Literal["key", "address"]
"""Whose limit it is: that of a key, or of an address whose keys were refused."""


class _Headers(Protocol):
    def __setitem__(self, name: str, value: str, /) -> None: ...


class Allowance(NamedTuple):
    """What is left of a limit."""

    limit: Limit
    quota: int
    left: int
    again_s: int


def note_taken(scope: MutableMapping[str, Any], limit: Limit, quota: int, left: float | None) -> None:
    """One was taken, and `left` is what stays; None where nobody knows."""
    if left is not None:
        again_s = ceil((quota - left) * WINDOW_S / quota) if quota else WINDOW_S
        _note(scope, Allowance(limit, quota, floor(left), again_s))


def note_refused(scope: MutableMapping[str, Any], limit: Limit, quota: int, refused: RateLimited) -> None:
    """None was left."""
    _note(scope, Allowance(limit, quota, 0, int(refused.details.get("retry_after_s", WINDOW_S))))


def _note(scope: MutableMapping[str, Any], allowance: Allowance) -> None:
    scope.setdefault("state", {})[_STATE] = allowance


def set_rate_headers(scope: MutableMapping[str, Any], headers: _Headers) -> None:
    """Tell whoever was counted what is left; who was not counted is told nothing."""
    allowance: Allowance | None = scope.get("state", {}).get(_STATE)
    if allowance is not None:
        limit, quota, left, again_s = allowance
        headers["RateLimit-Policy"] = f'"{limit}";q={quota};w={WINDOW_S}'
        headers["RateLimit"] = f'"{limit}";r={left};t={again_s}'
