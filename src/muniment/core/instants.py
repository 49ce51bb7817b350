"""Time stamps as text: one fixed-width UTC form that sorts as it reads, and the one parser for what people write.

`2026-05-01T12:00:00.000000Z`. Input may be any ISO 8601 date-time, or a date; without an offset it is read as UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime

from muniment.errors import InvalidInput

__all__ = ["format_instant", "parse_instant"]


def format_instant(moment: datetime) -> str:
    """An aware datetime in the one form."""
    if not isinstance(moment, datetime):
        raise InvalidInput(f"a clock should give a datetime, not {type(moment).__name__}", path="$.clock")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    elif moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


def parse_instant(value: str | datetime, *, path: str = "$.ts") -> datetime:
    """What a caller gave as a point in time, as an aware UTC datetime."""
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
