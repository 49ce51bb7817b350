"""Does a stretch of evidence contain a value: its words, its number, or its day? Pure."""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import date
from itertools import pairwise

from muniment.core.text.analyzer import MONTHS, stem
from muniment.core.text.patterns import ascii_digits, numbers_in_han
from muniment.core.text.times.when import read_number, resolve

__all__ = ["contains_value", "folded", "words_in"]

_WORD = re.compile(r"[^\W_]+(?:['’.,][^\W_]+)*")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_YEAR = re.compile(r"\b(\d{4})\b")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b")
_NUMBER_MAX = 1e15
"""Greater ones are not told apart by a float, and nobody says them."""
_SILENT = frozenset(("a", "an", "the", "my", "our"))
"""Words of a value that say nothing of it."""
_SPOKEN = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100, "thousand": 1000, "once": 1, "twice": 2,
}  # fmt: skip


def folded(text: str) -> str:
    """A text in one form: letters normalised and folded, one kind of apostrophe, single blanks."""
    return " ".join(ascii_digits(unicodedata.normalize("NFKC", text)).casefold().replace("’", "'").split())


def words_in(text: str) -> list[str]:
    """The words of a folded text, without a possessive's ending."""
    return [word.removesuffix("'s") for word in _WORD.findall(text)]


def contains_value(quote: str, value: str | float, ts: str) -> bool:
    """Do the words, said at `ts`, contain this text, number or date, in any form of it?"""
    said = folded(quote)
    if isinstance(value, int | float):
        return abs(value) < _NUMBER_MAX and _has_number(said, float(value))
    told = folded(value)
    return bool(told) and (_has_words(said, told) or _has_day(said, told, ts) or _is_number_of(said, told))


def _has_words(said: str, told: str) -> bool:
    """Every word of the value is one of the quote's, in any form of it; signs that are not spaced stand as they are."""
    if _CJK.search(told):
        return told.replace(" ", "") in said.replace(" ", "")
    held = {stem(word) for word in words_in(said)}
    wanted = [word for word in words_in(told) if word not in _SILENT]
    return bool(wanted) and all(stem(word) in held for word in wanted)


def _is_number_of(said: str, told: str) -> bool:
    try:
        number = float(told.replace(",", ""))
    except ValueError:
        return False
    return math.isfinite(number) and _has_number(said, number)


def _has_number(said: str, number: float) -> bool:
    for word in words_in(said):
        bare = word.replace(",", "")
        if bare.replace(".", "", 1).isdecimal() and float(bare) == number:
            return True
    return number in _spoken(said)


def _spoken(said: str) -> set[float]:
    """The numbers that a text spells out: `two`, `twenty-one`, 十二."""
    found: set[float] = {float(each) for each in numbers_in_han(said)}
    words = re.findall(r"[^\W\d_]+", said)
    for word, after in pairwise([*words, ""]):
        tens, ones = _SPOKEN.get(word), _SPOKEN.get(after, 0)
        if tens is not None:
            found.add(float(tens))
            if 20 <= tens <= 90 and 1 <= ones <= 9:
                found.add(float(tens + ones))
        elif (counted := read_number(word)) > 0:
            found.add(float(counted))
    return found


def _has_day(said: str, told: str, ts: str) -> bool:
    """`2026-05-03`, `2026-05` or `2026`, as the quote names it: in words seen from the day it was said, or spelled."""
    match = _DATE.fullmatch(told)
    if match is None:
        return False
    year, month, day = (None if part is None else int(part) for part in match.groups())
    grain = "day" if day is not None else "month" if month is not None else "year"
    for window in resolve(said, date.fromisoformat(ts[:10])):
        named = (window.start.year, window.start.month, window.start.day)
        if window.grain == grain and named[: 1 + (month is not None) + (day is not None)] == tuple(
            part for part in (year, month, day) if part is not None
        ):
            return True
    return _spells_day(said, year, month, day, int(ts[:4]))


def _spells_day(said: str, year: int | None, month: int | None, day: int | None, said_in: int) -> bool:
    years = {int(each) for each in _YEAR.findall(said)}
    if year not in (years or {said_in}) or month is None:
        return False
    if not any(MONTHS.get(word) == month for word in words_in(said)):
        return False
    return day is None or day in {int(each) for each in _DAY.findall(said)}
