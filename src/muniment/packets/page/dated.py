"""Days in words, and the day behind a relative one: `We met yesterday. | yesterday (= 12 May 2026)`.

People write dates in words, and models answer with the words they read. The note follows the quote, which stays word
for word. It depends on the text and the day of speaking alone, so that a packet laid out again gives the same page.

Only one class of expressions was measured right in 99 of 100 cases: the day, week, weekend, month or year just past, in
English (`benchmarks/day_notes`). A turn with a line break, a quotation mark, code or a colon is left alone, because its
words may be somebody else's, and so is one that names a month or a year, because it may be counted from that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from muniment.core.limits import remembered
from muniment.core.text.stretches import WEEKEND, Grain, Window, day_from, shifted, weekday_from

__all__ = [
    "MONTHS",
    "NOTES_MAX",
    "dated",
    "day_heading",
    "day_notes",
    "day_of",
    "day_words",
    "time_words",
    "told_day",
    "undated",
]

NOTES_MAX = 3
"""Notes on one line. A text with more is a calendar, and would cost twice its tokens."""
CHARS_MAX = 1_000
"""A longer turn is likely pasted, and its days are counted from when it was written."""
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_BEHIND = " | "
_FORGED_NOTE = re.compile(rf"(?i)\((?==\s*(?:\d|week|{'|'.join(MONTHS)}))")
_SUNDAY, _SATURDAY = 6, 5


def day_words(day: date) -> str:
    """`8 May 2023`, always with the year, because a model does not carry it down a list."""
    return f"{day.day} {_month_words(day)}"


def _month_words(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.year:04}"


def day_of(ts: str | None) -> str:
    """The day a time stamp names, as it is written there."""
    return ts[:10] if ts else "undated"


def told_day(ts: str | None) -> str:
    """That day in words, if it is one."""
    day = day_of(ts)
    known = _read_day(day)
    return day if known is None else day_words(known)


def day_heading(day: str) -> str:
    """`8 May 2023:` over what was said that day."""
    return f"{told_day(day)}:"


@remembered(1024)
def _read_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def undated(text: str) -> str:
    """A text in which nothing passes for a note of this page."""
    return _FORGED_NOTE.sub("( ", text) if "(=" in text else text


def dated(text: str, said_at: str | None) -> str:
    """The text, word for word, and behind it the dates of the relative days that it surely names.

    `said_at` is when the user said it, with the user's own offset; None for everybody else's words.
    """
    text = undated(text)
    if not said_at or not _names_a_day(text):
        return text
    said = _read_day(said_at[:10])
    if said is None or not (found := day_notes(text, said)):
        return text
    notes = [f"{text[start:end]} (= {time_words(window)})" for start, end, window in found]
    return f"{text}{_BEHIND}{'; '.join(notes)}"


def day_notes(text: str, said: date) -> list[tuple[int, int, Window]]:
    """The first relative days that a text names, each once, with start, end and the stretch of the calendar."""
    found: dict[Window, tuple[int, int, Window]] = {}
    for start, end, window in _notes(text, said):
        found.setdefault(window, (start, end, window))
    return list(found.values())[:NOTES_MAX]


def time_words(window: Window) -> str:
    """A stretch of time as it was named: `8 May 2023`, `week of 8 May 2023`, `May 2023`."""
    first, last = window.start, window.end
    match window.grain:
        case "year":
            return f"{first.year:04}"
        case "month":
            return _month_words(first)
        case "season":
            return f"{_month_words(first)} to {_month_words(last)}"
        case "week":
            return f"week of {day_words(first)}"
    if first == last:
        return day_words(first)
    return f"weekend of {day_words(first)}" if (last - first).days == 1 else f"{day_words(first)} to {day_words(last)}"


# -- which expressions are sure -------------------------------------------------------------------------

_RELATIVE = re.compile(
    r"(?<![\w'’-])(?i:(?P<day>yesterday|last night)|last (?P<unit>week|month|year)|last weekend)"
    r"(?!\w|-| (?i:of|before|after|or)\b)"
)
_OTHER_PEOPLES = re.compile(r"[\n\r\u2028\u2029\"“”«»„`「」『』]|:(?:\s|\Z)|(?<!\w)['‘]")
"""Occurs in quoted, drafted and pasted words, and seldom in a plain turn."""
_DATED = re.compile(rf"\b(?:{'|'.join(MONTHS)}|(?:19|20)\d\d)\b|\d[-/]\d")
_COUNTED_FROM_ELSEWHERE = re.compile(
    r"(?i)(?:\b(?:the|this|that|my|our|your|his|her|its|their|from|after|before)|['’]s) \Z"
)
"""`the last week of school`, `my last year at college`, `the day before yesterday`."""
_LIKE = re.compile(r"(?i)\blike (?:it was |it were )?(?:just |only )?\Z")
_SENTENCE_START = re.compile(r"(?:\A|[.!?…]['’)\]]*\s+)\Z")
_GRAINS: dict[str, Grain] = {"week": "week", "month": "month", "year": "year"}


def _names_a_day(text: str) -> bool:
    folded = text.lower()
    return "yesterday" in folded or "last " in folded


def _notes(text: str, said: date) -> Iterator[tuple[int, int, Window]]:
    if len(text) > CHARS_MAX or not _names_a_day(text) or _OTHER_PEOPLES.search(text) or _DATED.search(text):
        return
    for match in _RELATIVE.finditer(text):
        window = _window(match, said)
        if window is not None and _is_plain(text, match):
            yield (*match.span(), window)


def _window(match: re.Match[str], said: date) -> Window | None:
    """None if another may be meant: some weeks begin on Sunday, and on a Sunday the last weekend may be this one."""
    if match["day"]:
        return day_from(said, -1)
    if match["unit"] is None:
        return None if said.weekday() >= _SATURDAY else weekday_from(said, -1, WEEKEND)
    grain = _GRAINS[match["unit"].lower()]
    return None if grain == "week" and said.weekday() == _SUNDAY else shifted(said, grain, -1)


def _is_plain(text: str, match: re.Match[str]) -> bool:
    """Not a title, and not counted from another day than that of speaking."""
    before, written = text[: match.start()], match[0]
    if written[1:] != written[1:].lower() or (written[0].isupper() and not _SENTENCE_START.search(before)):
        return False
    return _COUNTED_FROM_ELSEWHERE.search(before) is None and _LIKE.search(before) is None
