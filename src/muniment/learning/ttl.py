"""How long a record lasts, as the contracts write it: `session`, `hours:6`, `days:14`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from muniment.core.instants import format_instant, parse_instant
from muniment.errors import InvalidInput
from muniment.learning.stored_memory import StoredMemory

__all__ = ["DAYS_MAX", "Ttl", "expires_at", "has_expired", "parse_ttl", "ttl_text"]

DAYS_MAX = 36_500
"""A hundred years. What shall last longer is pinned."""

_SHAPE = re.compile(r"([a-z]+):([0-9]{1,9})")
_HINT = "session, hours:6 or days:14"


class Ttl(NamedTuple):
    """A time to live. Of a session there is no number: it ends when the session does."""

    unit: Literal["session", "hours", "days"]
    n: int = 0


def parse_ttl(text: str, *, path: str = "$.ttl") -> Ttl:
    """Read a TTL as the contracts write it. `details["reason"]` of the error says what kind of nonsense it is."""
    if text == "session":
        return Ttl("session")
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise _refusal(text, path, "not_a_ttl", "is not a TTL")
    unit, n = found[1], int(found[2])
    if unit != "hours" and unit != "days":
        raise _refusal(text, path, "unknown_unit", "is in no unit of a TTL")
    if n == 0:
        raise _refusal(text, path, "no_time", "leaves no time to live")
    if n > (DAYS_MAX if unit == "days" else DAYS_MAX * 24):
        raise _refusal(text, path, "too_long", f"is more than {DAYS_MAX} days")
    return Ttl("hours" if unit == "hours" else "days", n)


def ttl_text(ttl: Ttl) -> str:
    """`parse_ttl` backwards, without leading zeros."""
    return ttl.unit if ttl.unit == "session" else f"{ttl.unit}:{ttl.n}"


def expires_at(ttl: Ttl, created_at: str) -> str | None:
    """The last instant at which what was made at `created_at` still holds; None where a session's end decides."""
    if ttl.unit == "session":
        return None
    span = timedelta(days=ttl.n) if ttl.unit == "days" else timedelta(hours=ttl.n)
    try:
        return format_instant(parse_instant(created_at, path="$.created_at") + span)
    except OverflowError:
        raise _refusal(ttl_text(ttl), "$.ttl", "too_long", "ends after the year 9999") from None


def has_expired(memory: StoredMemory, now: str | datetime) -> bool:
    """Whether a record's time has run out. A pin shields from that (RC-06)."""
    if memory.status == "pinned" or memory.expires_at is None:
        return False
    return parse_instant(now, path="$.now") > parse_instant(memory.expires_at)


def _refusal(text: str, path: str, reason: str, words: str) -> InvalidInput:
    return InvalidInput(f"{text!r:.60} {words}", path=path, hint=_HINT, details={"reason": reason})
