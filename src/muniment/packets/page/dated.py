"""Relative dates in what was said, resolved for the reader: `See you then. | next Friday (= 2026-03-13)`.

A note stands on the page alone, behind the quote, which stays word for word. What it says follows from the text and the
day it was said on, so that whoever lays out the packet again gets the same page.
"""

from __future__ import annotations

import re
from datetime import date

from muniment.core.memos import remembered
from muniment.core.text.stretches import Window
from muniment.core.text.times.said_when import said_times

__all__ = ["NOTES_MAX", "dated", "has_dates", "undated"]

NOTES_MAX = 3
"""Notes on one line: a text with more is a calendar, and would cost twice its tokens."""
_BEHIND = " | "
_FORGED_NOTE = re.compile(r"\((?==\s*(?:\d|week))")


def undated(text: str) -> str:
    """A text in which nothing passes for a note of this page."""
    return _FORGED_NOTE.sub("( ", text) if "(=" in text else text


def dated(text: str, said_at: str | None) -> str:
    """A text, word for word, and behind it what each day means that it names by the day it was said on."""
    text = undated(text)
    said = _day(said_at[:10]) if said_at else None
    if said is None or not said_times(text, said):
        return text
    notes = [
        f"{text[start:end]}{' ' if text[start:end].isascii() else ''}(= {_told(window)})"
        for start, end, window in _first_of_each(text, said)
    ]
    return f"{text}{_BEHIND}{'; '.join(notes)}"


@remembered(1024)
def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def has_dates(text: str, said_at: str | None) -> bool:
    """Does `dated` say anything of it?"""
    return dated(text, said_at) != undated(text)


def _first_of_each(text: str, said: date) -> list[tuple[int, int, Window]]:
    """A time that is named twice is told once."""
    found: dict[Window, tuple[int, int, Window]] = {}
    for start, end, window in said_times(text, said):
        found.setdefault(window, (start, end, window))
    return list(found.values())[:NOTES_MAX]


def _told(window: Window) -> str:
    start, end = window.start.isoformat(), window.end.isoformat()
    match window.grain:
        case "year":
            return start[:4]
        case "month":
            return start[:7]
        case "season":
            return f"{start[:7]} to {end[:7]}"
        case "week":
            return f"week of {start}"
    if start == end:
        return start
    return f"weekend of {start}" if (window.end - window.start).days == 1 else f"{start} to {end}"
