"""Days as a page tells them, in words, and relative dates resolved: `See you then. | next Friday (= 13 March 2026)`.

A model answers with the words that it read, and people write a day so. A note stands on the page alone, behind the
quote, which stays word for word. What it says follows from the text and the day it was said on, so that whoever lays
out the packet again gets the same page.
"""

from __future__ import annotations

import re
from datetime import date

from muniment.core.limits import remembered
from muniment.core.text.stretches import Window
from muniment.core.text.times.said_when import said_times

__all__ = [
    "MONTHS",
    "NOTES_MAX",
    "dated",
    "day_heading",
    "day_named",
    "day_of",
    "day_words",
    "has_dates",
    "named_times",
    "time_words",
    "told_day",
    "undated",
]

NOTES_MAX = 3
"""Notes on one line: a text with more is a calendar, and would cost twice its tokens."""
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_BEHIND = " | "
_FORGED_NOTE = re.compile(rf"(?i)\((?==\s*(?:\d|week|{'|'.join(MONTHS)}))")


def day_words(day: date) -> str:
    """`8 May 2023`. The year is always told: a model does not carry it down a list."""
    return f"{day.day} {month_words(day)}"


def month_words(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.year:04}"


def day_of(ts: str | None) -> str:
    """The day a time stamp names, as it is written there."""
    return ts[:10] if ts else "undated"


def told_day(ts: str | None) -> str:
    """That day in words, where it is one."""
    day = day_of(ts)
    known = day_named(day)
    return day if known is None else day_words(known)


def day_heading(day: str) -> str:
    """`8 May 2023:` over what was said that day."""
    return f"{told_day(day)}:"


def undated(text: str) -> str:
    """A text in which nothing passes for a note of this page."""
    return _FORGED_NOTE.sub("( ", text) if "(=" in text else text


def dated(text: str, said_at: str | None) -> str:
    """A text, word for word, and behind it what each day means that it names by the day it was said on."""
    text = undated(text)
    said = day_named(said_at[:10]) if said_at else None
    if said is None or not said_times(text, said):
        return text
    notes = [
        f"{text[start:end]}{' ' if text[start:end].isascii() else ''}(= {time_words(window)})"
        for start, end, window in named_times(text, said)
    ]
    return f"{text}{_BEHIND}{'; '.join(notes)}"


@remembered(1024)
def day_named(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def has_dates(text: str, said_at: str | None) -> bool:
    """Does `dated` say anything of it?"""
    return dated(text, said_at) != undated(text)


def named_times(text: str, said: date) -> list[tuple[int, int, Window]]:
    """The times of which `dated` tells, by where they stand; one that is named twice is told once."""
    found: dict[Window, tuple[int, int, Window]] = {}
    for start, end, window in said_times(text, said):
        found.setdefault(window, (start, end, window))
    return list(found.values())[:NOTES_MAX]


def time_words(window: Window) -> str:
    """A stretch of time as it was named: `8 May 2023`, `week of 8 May 2023`, `May 2023`."""
    first, last = window.start, window.end
    match window.grain:
        case "year":
            return f"{first.year:04}"
        case "month":
            return month_words(first)
        case "season":
            return f"{month_words(first)} to {month_words(last)}"
        case "week":
            return f"week of {day_words(first)}"
    if first == last:
        return day_words(first)
    return f"weekend of {day_words(first)}" if (last - first).days == 1 else f"{day_words(first)} to {day_words(last)}"
