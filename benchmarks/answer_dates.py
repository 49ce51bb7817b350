"""Dates of an answer in one form, so that two ways of naming a day are compared as the day they name.

What is told by a date is resolved: keys of sets, and models after them, say "the Sunday before 25 May 2023", which is
21 May 2023. Weeks run from Monday, and the weekend before a Sunday is the one before its own, as on a page
(`packets.page`), whose words for stretches of time are those used here.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date

from muniment.core.text.analyzer import MONTHS, NUMBER_WORDS, date_at
from muniment.core.text.stretches import Grain, Window, day_from, shifted, weekend_from
from muniment.packets.page import time_words

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_GRAINS: dict[str, Grain] = {"day": "day", "week": "week", "month": "month", "year": "year"}
_COUNTS = NUMBER_WORDS | {"a": "1", "one": "1"}
_STEPS_MAX = 4
"""Digits of a count; with more it leaves every calendar."""
_MONTH = "|".join(sorted(MONTHS, key=lambda name: (-len(name), name)))
_YEAR_FIRST = re.compile(
    r"(?<![\w.,/-])(?P<year>(?:19|20)\d\d)"
    r"(?:-(?P<number>0[1-9]|1[0-2])(?![\w-]|[.,/]\d)"
    rf"| (?P<name>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\w|:\d))"
)
"""Forms that the analyzer leaves as they are: `2023-05`, `2023 May 7`."""
_BESIDE = re.compile(
    rf"\b(?:the |(?P<count>\d{{1,{_STEPS_MAX}}}|{'|'.join(_COUNTS)}) )?"
    rf"(?P<what>{'|'.join((*_GRAINS, 'weekend', *_DAYS))})s? (?P<side>before|after) (?:the )?"
)


def in_dates(text: str) -> str:
    """A text as it is compared: folded, with its dates in one form."""
    return one_form(unicodedata.normalize("NFKC", text).casefold())


def one_form(folded: str) -> str:
    """A folded text with dates in forms that `core.text.analyzer` reads, and what is told by a day resolved."""
    if not any(char.isdecimal() for char in folded):
        return folded
    folded = _YEAR_FIRST.sub(_turned, folded)
    parts: list[str] = []
    done = 0
    for found in _BESIDE.finditer(folded):
        if found.start() < done:
            continue
        read = date_at(folded, found.end())
        window = _beside(found, read[0]) if read is not None else None
        if read is None or window is None:
            continue
        parts += [folded[done : found.start()], time_words(window).casefold()]
        done = read[1]
    return "".join((*parts, folded[done:]))


def _turned(found: re.Match[str]) -> str:
    month = int(found["number"] or MONTHS[found["name"]])
    named = next(name for name, number in MONTHS.items() if number == month)
    return " ".join(part for part in (found["day"], named, found["year"]) if part)


def _beside(found: re.Match[str], moment: date) -> Window | None:
    """So many days, weeks, Sundays before or after a day; None where that is none."""
    told = found["count"] or "one"
    count = int(_COUNTS.get(told, told))
    if not count:
        return None
    is_before, what = found["side"] == "before", found["what"]
    if what in _GRAINS:
        return shifted(moment, _GRAINS[what], -count if is_before else count)
    if what == "weekend":
        return weekend_from(moment, -count if is_before else count - (moment.weekday() < 5))
    return _weekday(moment, _DAYS.index(what), -count if is_before else count)


def _weekday(moment: date, weekday: int, count: int) -> Window | None:
    """The first, second, … such day of the week behind a day, or, where `count` is negative, before it."""
    if count < 0:
        return day_from(moment, -((moment.weekday() - weekday - 1) % 7 + 1) + 7 * (count + 1))
    return day_from(moment, (weekday - moment.weekday() - 1) % 7 + 1 + 7 * (count - 1))
