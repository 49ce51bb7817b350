"""RFC 3339 date-times as instants that compare: offsets applied, fractions of any length, leap seconds.

Unlike `core.instants`, which reads what people write, this refuses what names no instant (no offset, a bare date).
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

__all__ = ["Instant", "parse_rfc3339"]

_DATE_TIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)


class Instant(NamedTuple):
    """Seconds since year 1 in UTC, then the fraction's digits without trailing zeros: tuples of these order as time."""

    seconds: int
    fraction: str


def parse_rfc3339(text: str) -> Instant | None:
    """The instant a date-time names, or None when it names none."""
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, offset_hours, offset_minutes = match.groups()[6:]
    if hour > 23 or minute > 59 or second > 60 or int(offset_hours or 0) > 23 or int(offset_minutes or 0) > 59:
        return None
    try:
        days = date(year, month, day).toordinal()
    except ValueError:
        return None
    offset = (int(offset_hours or 0) * 60 + int(offset_minutes or 0)) * 60
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return Instant(seconds + (offset if sign == "-" else -offset), (fraction or "").rstrip("0"))
