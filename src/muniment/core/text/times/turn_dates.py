"""The dates that a turn is indexed by: each day, month or year that its text may mean on the day it was sent.

The certain expressions of `core.text.times.when`, and those that only an index may use: a feast ("at Christmas"), a day
by its number alone ("on the 5th"), a day of the week alone, a season alone. Those that may be past or future count as
both unless the sentence decides: a wrong day is found only by queries for that very day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from datetime import date
from functools import cache
from itertools import islice
from typing import Literal

from muniment.core.text.analyzer import ascii_words
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.stretches import Window, day_from, exact_day, month_of, part_of
from muniment.core.text.times.when import (
    CUE_WORDS,
    SEASONS,
    WEEKDAY,
    ZH_DAY,
    read_weekday,
    resolve,
    season_of,
    window_terms,
)
from muniment.core.text.word_lists import WordList, forms_in

__all__ = ["date_terms", "feast_terms"]

_WORD = re.compile(r"[^\W_]+")
_WEEKDAYS = frozenset(WEEKDAY[len("(?P<weekday>") : -1].split("|"))
_ORDINALS = frozenset(f"{day}{end}" for day in range(1, 32) for end in ("st", "nd", "rd", "th"))
_MONTH = "of the month"

_FEASTS = WordList(__package__, "feasts.txt")
DAYS_MAX = 64
"""Weekdays, or days by number, read in a text; of a longer list, as a timetable, the first."""
_AROUND = 160
"""Characters around a day that are searched for its sentence."""
_SENTENCE_END = lazy_pattern(r"[.!?;\n。！？；]")


def date_terms(text: str, said: date, words: Sequence[str] | None = None) -> list[str]:
    """Return the index terms of the times a text names, relative to its day; the analyzer handles written-out dates.

    `words` are the `ascii_words` of an ASCII text, where the caller has them.
    """
    if text.isascii():
        words = ascii_words(text) if words is None else words
        if _telling().isdisjoint(words):
            return []
    folded = text.casefold()
    windows = resolve(text, said, words)
    terms = [term for window in windows for term in window_terms(window)] if windows else []
    held = None if words is None else frozenset(words)
    further = [term for window in _further(folded, said, held) for term in window_terms(window)]
    further += feast_terms(folded, said.year, held)
    if not further:
        return terms
    known = frozenset(terms)
    return terms + [term for term in dict.fromkeys(further) if term not in known]


@cache
def _telling() -> frozenset[str]:
    """Words without any of which an ASCII text has no term here."""
    return CUE_WORDS | _WEEKDAYS | _ORDINALS | SEASONS.keys() | {_MONTH.rpartition(" ")[2]} | _feasts()[0].keys()


def feast_terms(folded: str, year: int, words: Set[str] | None = None) -> list[str]:
    """Return the index terms of the feasts in a lower-case text: the day, without the year.

    `words` are those of an ASCII text, for a quick rejection.
    """
    by_word, by_sign = _feasts()
    feasts = (
        [each for word in sorted(by_word.keys() & words) for each in by_word[word]] if words is not None else by_sign
    )
    windows = [day_of(year) for pattern, day_of in feasts if pattern.search(folded)]
    terms = [term for window in windows if window is not None for term in window_terms(window)]
    return [term for term in dict.fromkeys(terms) if term[0] == "#"]


DayOf = Callable[[int], Window | None]
"""Maps a year to the day of a feast in it."""
Feast = tuple[re.Pattern[str], DayOf]


@cache
def _feasts() -> tuple[dict[str, list[Feast]], list[Feast]]:
    """Return the feasts by the word that their names begin with, for texts in ASCII; and all of them."""
    by_word: dict[str, list[Feast]] = {}
    every: list[Feast] = []
    for when, names in _FEASTS.pairs():
        day_of = _feast_day(*map(int, when.split("-")))
        for name in forms_in(names):
            form = name.replace(" ", "[ -]").replace("'", "['’]")
            # A letter of a language without blanks may adjoin it, so \b does not match.
            feast = lazy_pattern(rf"{form}(?![a-z])"), day_of
            every.append(feast)
            first = _WORD.match(name)
            if first is not None and first[0].isascii():
                by_word.setdefault(first[0], []).append(feast)
    return by_word, every


def _feast_day(month: int, day: int, weekday: int = 0) -> DayOf:
    if not weekday:
        return lambda year: exact_day(year, month, day)
    return lambda year: None if (whole := month_of(year, month)) is None else _weekday_in(whole, day, weekday - 1)


_LAST_WEEK = 5


def _weekday_in(month: Window, week: int, weekday: int) -> Window | None:
    return part_of(month, -1 if week == _LAST_WEEK else week, weekday)


# -- past or future -----------------------------------------------------------------------------------------

_ON_DAY = lazy_pattern(rf"\b(?:on|by|until|till|for|this) {WEEKDAY}\b")
_ZH_DAY = lazy_pattern(rf"(?<![每个上下这本])(?:周|星期|礼拜)(?P<weekday>末|{ZH_DAY})")
_KO_DAY = lazy_pattern(r"(?<!매주 )(?<!지난 )(?<!지난주 )(?P<weekday>[월화수목금토일]요일)(?!마다)")
_NUMBERED = lazy_pattern(
    r"\b(?:on|by|until|till|since|from|before|after|for) the (?P<day>\d{1,2})(?:st|nd|rd|th)\b"
    r"(?= *(?:[.,;:!?)\n]|$|(?:at|and|or|for|to|with|because|so|but|in the|when|if|we|i|he|she|they|it)\b))"
    r"|(?<![\d月.第])(?P<day_zh>\d{1,2})号(?![线楼馆店房间桌门车码院机厅])"
    r"|(?<![\d월년.])(?<![월년] )(?P<day_ko>\d{1,2})일(?=에(?! 한 번)|까지|부터)"
)
_SEASON = lazy_pattern(
    r"\b(?:in|over|during|for|by)(?: the)? (?P<season>spring|summer|autumn|winter)\b|\bin the (?P<fall>fall)\b"
)
_OF_MONTH = lazy_pattern(
    r"\b(?:end|middle|beginning|start) of the month\b|(?<![个下上这本\d])月[底初末]"
    r"|(?<![가-힣\d])월 ?[말초](?=에|까|부|$|[^가-힣])"
)


def _further(folded: str, said: date, words: Set[str] | None) -> Iterator[Window]:
    """`words` are those of an ASCII text, which rule out most expressions."""
    days = [_ON_DAY] if words is not None else [_ON_DAY, _ZH_DAY, _KO_DAY]
    for pattern in days if words is None or not _WEEKDAYS.isdisjoint(words) else ():
        for match in islice(pattern.finditer(folded), DAYS_MAX):
            yield from _either(match, said, _weekday_near)
    numbered = words is None or not _ORDINALS.isdisjoint(words)
    for match in islice(_NUMBERED.finditer(folded), DAYS_MAX) if numbered else ():
        yield from _either(match, said, _numbered_near)
    for match in _SEASON.finditer(folded) if words is None or not SEASONS.keys().isdisjoint(words) else ():
        window = season_of(said.year, match["season"] or match["fall"])
        if window is not None:
            yield window
    if (words is None or _MONTH in folded) and _OF_MONTH.search(folded):
        month = month_of(said.year, said.month)
        if month is not None:
            yield month


Near = Callable[[re.Match[str], date, int], Window | None]


def _either(match: re.Match[str], said: date, near: Near) -> Iterator[Window]:
    """Yield the day before, the day after, or both, depending on the sentence."""
    tense = _tense_around(match)
    for step, other in ((-1, "future"), (1, "past")):
        if tense != other:
            window = near(match, said, step)
            if window is not None:
                yield window


def _tense_around(match: re.Match[str]) -> Tense:
    text, (start, end) = match.string, match.span()
    before = text[max(0, start - _AROUND) : start]
    after = text[end : end + _AROUND]
    last = _SENTENCE_END.search(after)
    ends = [found.end() for found in _SENTENCE_END.finditer(before)]
    return _tense_of(before[ends[-1] if ends else 0 :] + match[0] + after[: last.start() if last else None])


# -- was it, or will it be? ---------------------------------------------------------------------------

Tense = Literal["past", "future", "unknown"]
_FUTURE = lazy_pattern(
    r"\b(?:will|won't|won’t|shall|going to|gonna|plan(?:s|ning)? (?:to|on|for)|planning|upcoming|appointments?|due"
    r"|let's|let’s|can't wait|can’t wait|looking forward|hop(?:e|ing) to|about to|(?:want|need|have|has)(?:s)? to"
    r"|remind|don't forget|deadline|see you|starts|begins|leaves|arrives|opens|ends|expires)\b|['’]ll\b"
    r"|[会将要]|打算|计划|准备|예정|계획|거예요|거야|겠|려고"
)
_PAST = lazy_pattern(
    r"\b(?:was|were|did|didn't|didn’t|had|went|got|came|saw|met|took|made|bought|found|told|said|gave|felt|left|lost|won|ate|flew"
    r"|ran|spent|began|brought|built|caught|drove|fell|heard|held|kept|knew|led|paid|sang|sat|sent|slept|spoke|stood|swam|taught"
    r"|thought|threw|understood|woke|wore|wrote|[a-z]{3,}ed)\b"
)


def _tense_of(sentence: str) -> Tense:
    """Return whether a lower-case sentence is about the past, or the future."""
    ahead, back = _FUTURE.search(sentence) is not None, _PAST.search(sentence) is not None
    if ahead == back:
        return "unknown"
    return "future" if ahead else "past"


def _weekday_near(match: re.Match[str], said: date, step: int) -> Window | None:
    weekday = read_weekday(match["weekday"]) % 7
    ahead = (weekday - said.weekday()) % 7
    return day_from(said, (ahead or 7) if step > 0 else ahead - 7)


def _numbered_near(match: re.Match[str], said: date, step: int) -> Window | None:
    """Return the next or the latest day of that number; the day itself is both."""
    groups = match.groupdict()
    day = int(groups["day"] or groups["day_zh"] or groups["day_ko"])
    months = (0, 1, 2) if step > 0 else (0, -1, -2)
    for offset in months:
        month = month_of(said.year, said.month + offset)
        found = None if month is None else exact_day(month.start.year, month.start.month, day)
        if found is not None and (found.start - said).days * step >= 0:
            return found
    return None
