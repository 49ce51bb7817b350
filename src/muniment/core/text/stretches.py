"""Calendar periods: days, weeks, weekends, months, years, parts of months. Pure arithmetic, no words.

Results outside the calendar are None.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Literal, NamedTuple

__all__ = [
    "WEEKEND",
    "Grain",
    "Window",
    "day_from",
    "exact_day",
    "month_of",
    "part_of",
    "shifted",
    "weekday_from",
    "weekend_from",
    "year_of",
]

Grain = Literal["day", "week", "month", "season", "year", "range", "before", "after"]
WEEKEND = 7
"""A weekend, where days of the week are counted from Monday = 0."""


class Window(NamedTuple):
    """A range of days, both ends included, and how exactly it was named."""

    start: date
    end: date
    grain: Grain


def day_from(moment: date, offset: int) -> Window | None:
    try:
        day = moment + timedelta(days=offset)
    except OverflowError:
        return None
    return Window(day, day, "day")


def _week_from(moment: date, offset: int) -> Window | None:
    """Return the week from Monday to Sunday, `offset` weeks away."""
    try:
        monday = moment + timedelta(days=7 * offset - moment.weekday())
        return Window(monday, monday + timedelta(days=6), "week")
    except OverflowError:
        return None


def weekday_from(moment: date, weeks: int, weekday: int) -> Window | None:
    """Return a day of the week this many weeks away; `WEEKEND` for its last two."""
    if weekday == WEEKEND:
        return weekend_from(moment, weeks)
    return day_from(moment, 7 * weeks + weekday - moment.weekday())


def weekend_from(moment: date, weeks: int) -> Window | None:
    saturday = day_from(moment, 7 * weeks + 5 - moment.weekday())
    if saturday is None or saturday.start == date.max:
        return None
    return Window(saturday.start, saturday.start + timedelta(days=1), "day")


def month_of(year: int, month: int) -> Window | None:
    """Return month 1…12 of a year; other numbers run on into neighbouring years."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    if not 1 <= year <= 9998:
        return None
    after = date(year + month // 12, month % 12 + 1, 1)
    return Window(date(year, month, 1), after - timedelta(days=1), "month")


def year_of(year: int) -> Window | None:
    return Window(date(year, 1, 1), date(year, 12, 31), "year") if 1 <= year <= 9999 else None


def shifted(moment: date, grain: Grain, steps: int) -> Window | None:
    """Return the day, week, month or year this many of them away."""
    if grain == "day":
        return day_from(moment, steps)
    if grain == "week":
        return _week_from(moment, steps)
    return month_of(moment.year, moment.month + steps) if grain == "month" else year_of(moment.year + steps)


def exact_day(year: int, month: int, day: int) -> Window | None:
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return Window(found, found, "day")


def part_of(whole: Window, count: int, unit: str | int) -> Window | None:
    """Return the first (1), second (2), … or last (-1) day, week, half, weekday (0…6) or weekend of a month or a year.

    Weeks are sevens of days from the first, and the last week is the last seven.
    """
    if isinstance(unit, int):
        return _weekday_of(whole, count, unit)
    if unit == "half":
        middle = whole.start + timedelta(days=15 if whole.grain == "month" else 181)
        first, second = Window(whole.start, middle - timedelta(days=1), "range"), Window(middle, whole.end, "range")
        return {1: first, 2: second, -1: second}.get(count)
    days = 1 if unit == "day" else 7
    start = whole.end - timedelta(days=days - 1) if count < 0 else whole.start + timedelta(days=days * (count - 1))
    end = start + timedelta(days=days - 1)
    return Window(start, end, "day" if days == 1 else "week") if end <= whole.end else None


def _weekday_of(whole: Window, count: int, weekday: int) -> Window | None:
    wanted = 5 if weekday == WEEKEND else weekday
    if count < 0:
        day = whole.end - timedelta(days=(whole.end.weekday() - wanted) % 7)
    else:
        day = whole.start + timedelta(days=(wanted - whole.start.weekday()) % 7 + 7 * (count - 1))
    end = day + timedelta(days=1) if weekday == WEEKEND and day < date.max else day
    return Window(day, end, "day") if whole.start <= day <= whole.end else None
