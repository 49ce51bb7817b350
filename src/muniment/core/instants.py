"""Time stamps: one fixed-width UTC form that sorts as text, a parser of what people write, RFC 3339 exactly."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.errors import InvalidInput

__all__ = [
    "Instant",
    "check_window",
    "format_instant",
    "in_zone",
    "local_form",
    "offset_minutes",
    "parse_instant",
    "parse_rfc3339",
]


def format_instant(moment: datetime) -> str:
    """Format an aware datetime in the canonical form."""
    if not isinstance(moment, datetime):
        raise InvalidInput(f"a clock should give a datetime, not {type(moment).__name__}", path="$.clock")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    elif moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


def parse_instant(value: str | datetime, *, path: str = "$.ts") -> datetime:
    """Parse a caller's point in time as an aware UTC datetime."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
        if moment.tzinfo is UTC:
            return moment
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, AttributeError, TypeError):
        raise InvalidInput(
            f"{value!r:.60} is not a point in time",
            path=path,
            hint="write ISO 8601, such as 2026-05-01T12:00:00Z",
        ) from None


_MINUTE = timedelta(minutes=1)


def offset_minutes(value: str | datetime) -> int:
    """Return the offset of a caller's time from UTC in minutes; 0 if it names no instant or no offset."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
        offset = moment.utcoffset()
    except (ValueError, OverflowError, AttributeError, TypeError):
        return 0
    return 0 if offset is None or offset % _MINUTE else offset // _MINUTE


def in_zone(value: str | datetime, zone: tzinfo) -> str | datetime:
    """Return a point in time in this zone's local time.

    An explicit offset is kept, except UTC, which says nothing about a location; a time without an offset is taken as
    local to the zone. Invalid input is left for later checks to refuse.
    """
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
        if moment.tzinfo is None:
            return moment.replace(tzinfo=zone)
        return value if moment.utcoffset() else moment.astimezone(zone)
    except (ValueError, OverflowError, AttributeError, TypeError):
        return value


def local_form(instant: str, minutes: int) -> str:
    """Return a canonical instant as local time this many minutes ahead of UTC."""
    try:
        moment = datetime.fromisoformat(instant).astimezone(timezone(timedelta(minutes=minutes)))
    except (ValueError, OverflowError):  # beyond the calendar
        return instant
    return moment.isoformat(timespec="microseconds")


def check_window(start_at: str | None, end_at: str | None) -> None:
    """Check a window from `start_at` until before `end_at`, both in the canonical form; either may be open."""
    if start_at is not None and end_at is not None and end_at <= start_at:
        raise InvalidInput("the window ends before it starts", path="$.until", hint="swap since and until")


_DATE_TIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)


class Instant(NamedTuple):
    """Seconds since year 1 in UTC, then the fraction's digits without trailing zeros, so that tuples sort by time."""

    seconds: int
    fraction: str


_KNOWN_CHARS_MAX = 64


def parse_rfc3339(text: str) -> Instant | None:
    """Return the instant a date-time names, or None when it names none."""
    return _known(text) if len(text) <= _KNOWN_CHARS_MAX else _read(text)


@remembered(4096)
def _known(text: str) -> Instant | None:
    """Parse with a cache, as the times of a conversation recur."""
    return _read(text)


def _read(text: str) -> Instant | None:
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
