"""The period that a question is about: "last May", "between June 1 and 3", "before 2024", "周一".

Dates written out, and the relative expressions of `core.text.times.when`, joined to ranges and opened at one end by the
surrounding words. A day of the week alone is the latest one, or the next where the question looks ahead. Uncertain
expressions are ignored. Pure, as `core.text.times.when` is.
"""

# ruff: noqa: E501 - patterns read best with one to a line

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from typing import NamedTuple

from muniment.core.text.analyzer import MONTHS, ascii_words, month_and_day
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.stretches import (
    WEEKEND,
    Window,
    day_from,
    exact_day,
    month_of,
    shifted,
    weekday_from,
    weekend_from,
    year_of,
)
from muniment.core.text.times.when import (
    CJK_PART,
    CUE_WORDS,
    MONTH,
    NUMBER,
    PART,
    WEEKDAY,
    ZH_DAY,
    Relative,
    find_spans,
    likely_ways,
    part_in,
    read_number,
    read_weekday,
)

__all__ = ["query_window"]


class _NamedTime(NamedTuple):
    """A time that a question names, and its place."""

    start: int
    end: int
    window: Window
    has_year: bool = False


def _group(pattern: str, number: int) -> str:
    """Rename the groups of a pattern, as names must be unique."""
    return re.sub(r"\?P<(\w+)>", rf"?P<\g<1>{number}>", pattern)


_FULL = lazy_pattern(
    r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"
    r"|(?<![\d.])(?<!\d[-/])(?P<one>\d{1,2})(?P<mark>[-/.])(?P<two>\d{1,2})(?P=mark)(?P<yn>(?:19|20)\d{2})(?![-/.]?\d)"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {MONTH}\b\.?(?:,? (?P<y1>\d{{4}}))?"
    rf"|\b{_group(MONTH, 2)}\b\.? (?:the )?(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (?P<y2>\d{{4}}))?"
    rf"|\b{_group(MONTH, 3)}\b,?(?: of)? (?P<y3>\d{{4}})\b"
    r"|(?:(?P<zy>\d{4}) ?[年년] ?|(?P<yw>前年|去年|今年|明年|재작년|작년|올해|내년) ?[的의]? ?)?"
    rf"(?P<zm>{NUMBER}) ?[月월]"
    rf"(?: ?(?P<zd>{NUMBER}) ?(?:[日号일]|(?= ?[-~–到至])))?"
    r"|(?P<oy>(?:19|20)\d{2}) ?[年년]"
)
_YEAR_WORDS = {
    word: steps
    for steps, words in {-2: "前年 재작년", -1: "去年 작년 last", 0: "今年 올해 this", 1: "明年 내년 next"}.items()
    for word in words.split()
}
_YEAR_AFTER = lazy_pattern(r",? (?:of )?(?P<which>last|this|next) year\b")
_ABOUT = r"(?:early |late |mid[ -]?)?"
_PLAIN_MONTH = lazy_pattern(
    rf"\b(?:in|of|during|since|after|before|by|early|late|mid|until|till|through|from|between)[ -]{_ABOUT}{MONTH}\b"
)
_PLAIN_YEAR = lazy_pattern(
    rf"\b(?:in|of|during|since|after|before|by|until|till|through|from|between)[ -]{_ABOUT}(?P<y>(?:19|20)\d{{2}})\b"
)
_DIGIT = re.compile(r"\d")
"""Every English date written out has a digit, except a month alone."""
_TIME_WORDS = CUE_WORDS | MONTHS.keys() | frozenset(WEEKDAY[len("(?P<weekday>") : -1].split("|"))

_AHEAD = lazy_pattern(
    r"\b(?:will|shall|should|let[’']s|going to|plans?|planned|planning|scheduled?|upcoming|appointments?|free|available"
    r"|(?:can|could|may) (?:i|we)|(?:am i|are we) [a-z]+ing|do (?:i|we) have|have to|need to)\b"
    r"|安排|计划|打算|预约|要做|예정|계획|약속|일정|할 거"
)
_PAST = lazy_pattern(r"\b(?:did|was|were|had|went)\b|[了过]|[했었았갔]")


# -- days of the week -----------------------------------------------------------------------------------


def _alone(match: re.Match[str], now: date, looks_ahead: bool) -> Window | None:
    """Return the day of an unqualified weekday: the latest before today, or the next."""
    weekday = read_weekday(match["weekday"])
    if weekday == WEEKEND:
        return _weekend(match, now, looks_ahead)
    ahead = (weekday - now.weekday()) % 7
    return day_from(now, (ahead or 7) if looks_ahead else ahead - 7)


def _in_this_week(match: re.Match[str], now: date) -> Window | None:
    return weekday_from(now, 0, read_weekday(match["weekday"]))


def _weekend(_match: re.Match[str], now: date, looks_ahead: bool) -> Window | None:
    """Return the latest weekend that has begun, or the next."""
    has_begun = now.weekday() >= 5
    return weekend_from(now, 0 if has_begun or looks_ahead else -1)


def _looks_ahead(folded: str) -> bool:
    return _AHEAD.search(folded) is not None and _PAST.search(folded) is None


_BEFORE_DAY = "".join(
    f"|(?<=\\b{word} )" for word in ["since", "until", "till", "before", "after", "by", "from", "between", "through"]
).removeprefix("|")
_THIS_WEEK = Relative((), lazy_pattern(rf"\bthis {WEEKDAY}\b"), _in_this_week)
_ON_DAY = lazy_pattern(rf"\bon {WEEKDAY}\b(?! (?:(?:of |in )?(?:last|this|next) week|before last|of the week))")
_FROM_DAY = lazy_pattern(rf"(?:{_BEFORE_DAY}){WEEKDAY}\b(?! (?:(?:of |in )?(?:last|this|next) week|before last))")
_ON_WEEKEND = lazy_pattern(r"\b(?:over|on|during|at) the weekend\b(?! before)")
_ZH_ALONE = lazy_pattern(rf"(?<![每个])(?:周|星期|礼拜)(?P<weekday>末|{ZH_DAY})")
_KO_ALONE = lazy_pattern(r"(?<!매주 )(?P<weekday>[월화수목금토일]요일|주말)(?!마다)")


def _ways_besides(looks_ahead: bool) -> tuple[tuple[Relative, ...], tuple[Relative, ...]]:
    alone, weekend = partial(_alone, looks_ahead=looks_ahead), partial(_weekend, looks_ahead=looks_ahead)
    first = Relative((), _ON_DAY, alone), Relative((), _FROM_DAY, alone), Relative((), _ON_WEEKEND, weekend)
    return (_THIS_WEEK, *first), (Relative((), _ZH_ALONE, alone), Relative((), _KO_ALONE, alone))


_WAYS_BESIDES = {looks_ahead: _ways_besides(looks_ahead) for looks_ahead in (False, True)}
"""Further expressions of questions, before and after those of `core.text.times.when`, by whether the question looks
ahead, which is determined once for a question and not for each of its days.
"""


def _ways(folded: str, words: Sequence[str] | None = None) -> tuple[Relative, ...]:
    first, last = _WAYS_BESIDES[_looks_ahead(folded)]
    return (*first, *likely_ways(folded, words), *last)


# -- questions ------------------------------------------------------------------------------------------


def query_window(text: str, now: date, words: Sequence[str] | None = None) -> Window | None:
    """Return the period a question names, or None; of several the first. "before" and "after" open one end.

    `words` are the `ascii_words` of an ASCII text, where the caller has them.
    """
    folded = text.casefold()
    if folded.isascii() and _DIGIT.search(folded) is None:
        if words is None:
            words = ascii_words(folded)
        if _TIME_WORDS.isdisjoint(words):  # only digits, or one of these, name a time
            return None
    first = _first_date(folded, now) or _relative(folded, now, words)
    if first is None:
        return None
    is_range, ranged = _ranged(folded, now, first)
    return ranged if is_range else _sided(folded, first)


def _relative(folded: str, now: date, words: Sequence[str] | None) -> _NamedTime | None:
    found = min(find_spans(folded, now, _ways(folded, words)), default=None, key=lambda pair: pair[0])
    return None if found is None else _NamedTime(*found[0], found[1])


# -- dates written out ----------------------------------------------------------------------------------


def _first_date(folded: str, now: date) -> _NamedTime | None:
    """Return the first date written out: a day, a month of a year or a part of one, a month, a year."""
    best: _NamedTime | None = None
    has_digit = _DIGIT.search(folded) is not None or not folded.isascii()
    for match in _FULL.finditer(folded) if has_digit else ():
        best = _from_full(match, now)
        if best is not None:
            break
    for pattern in (_PLAIN_MONTH, _PLAIN_YEAR) if has_digit else (_PLAIN_MONTH,):
        plain = pattern.search(folded)
        if plain is None or (best is not None and best.start <= plain.end()):
            continue
        group = "month" if pattern is _PLAIN_MONTH else "y"
        start, end = plain.span(group)
        found = _month_at(folded, start, end, now) if group == "month" else _year_at(start, end, int(plain["y"]))
        best = found or best
    return None if best is None else _with_part(folded, best)


def _month_at(folded: str, start: int, end: int, now: date) -> _NamedTime | None:
    """Return a month by its English name: the latest, or that of the year after it."""
    month, behind = MONTHS[folded[start:end]], _YEAR_AFTER.match(folded, end)
    if behind is None:
        window = _latest_month(month, now)
    else:
        window, end = month_of(now.year + _YEAR_WORDS[behind["which"]], month), behind.end()
    return None if window is None else _NamedTime(start, end, window, behind is not None)


def _year_at(start: int, end: int, year: int) -> _NamedTime | None:
    window = year_of(year)
    return None if window is None else _NamedTime(start, end, window, has_year=True)


def _latest_month(month: int, now: date) -> Window | None:
    return month_of(now.year if month <= now.month else now.year - 1, month)


def _from_full(match: re.Match[str], now: date) -> _NamedTime | None:
    start, end = match.span()
    if match["oy"]:
        return _year_at(start, end, int(match["oy"]))
    if match["mark"]:
        read = month_and_day(int(match["one"]), int(match["two"]), match["mark"])
        window = None if read is None else exact_day(int(match["yn"]), *read)
        return None if window is None else _NamedTime(start, end, window, has_year=True)
    name = match["month"] or match["month2"] or match["month3"]
    month = MONTHS[name] if name else read_number(match["m"] or match["zm"])
    year_text = match["y"] or match["y1"] or match["y2"] or match["y3"] or match["zy"]
    day_text = match["d"] or match["d1"] or match["d2"] or match["zd"]
    if not 1 <= month <= 12:
        return None
    year = int(year_text) if year_text else None
    behind = _YEAR_AFTER.match(match.string, end) if name and year is None else None
    if behind is not None:
        year, end = now.year + _YEAR_WORDS[behind["which"]], behind.end()
    elif match["yw"]:
        year = now.year + _YEAR_WORDS[match["yw"]]
    window = _in_year(month, read_number(day_text) if day_text else 0, year, now)
    return None if window is None else _NamedTime(start, end, window, year is not None)


def _in_year(month: int, day: int, year: int | None, now: date) -> Window | None:
    """Return a day, or a month where `day` is 0; without a year the latest."""
    if year is not None:
        return exact_day(year, month, day) if day else month_of(year, month)
    if not day:
        return _latest_month(month, now)
    this_year = exact_day(now.year, month, day)
    if this_year is not None and this_year.start <= now:
        return this_year
    return exact_day(now.year - 1, month, day) or this_year


_PART_BEFORE = lazy_pattern(rf"{PART} (?:the month of )?{_ABOUT}\Z")
_PART_AFTER = lazy_pattern(CJK_PART)
_WEEK_OF = lazy_pattern(r"\bweek (?:of|starting|beginning)(?: on)? (?:the )?\Z")


def _with_part(folded: str, named: _NamedTime) -> _NamedTime:
    """Return the requested part of a month (first week, last day, …) or the week of a day."""
    before = folded[: named.start]
    if named.window.grain == "day":
        whole = _WEEK_OF.search(before)
        week = shifted(named.window.start, "week", 0) if whole is not None else None
        return named if whole is None or week is None else named._replace(start=whole.start(), window=week)
    match = _PART_BEFORE.search(before)
    start, end = (match.start() if match is not None else named.start), named.end
    if match is None:
        match = _PART_AFTER.match(folded, named.end)
        end = match.end() if match is not None else end
    window = None if match is None else part_in(match, named.window)
    return named if window is None else named._replace(start=start, end=end, window=window)


# -- from one to another --------------------------------------------------------------------------------

_JOIN = lazy_pattern(
    r"\s*(?P<how>to|until|till|through|thru|and|[-~–—]|到|至|和|与|부터|에서|와|과)\s*(?:on |the )?(?P<rest>)"
)
_BOTH = frozenset(["and", "和", "与", "와", "과"])
"""Words that join the ends of a range only after "between"."""
_BETWEEN = re.compile(r"\bbetween (?:the )?\Z")
_BETWEEN_AFTER = re.compile(r"\s*(?:之间|期间|사이)")
_DAY_AFTER = lazy_pattern(
    rf"(?P<d>{NUMBER})(?:st|nd|rd|th)?(?![\d:])(?: ?[日号일])?(?:,? (?P<y>\d{{4}})\b)?(?! ?[月월a-z])"
)
_DAY_BEFORE = lazy_pattern(r"\b(?P<d>\d{1,2})(?:st|nd|rd|th)? ?(?P<how>-|–|—|~|to|until|till|through|and) ?(?:the )?\Z")
_MONTH_NAME, _DAY_NAME, _YEAR_NUMBER = (
    lazy_pattern(rf"{MONTH}\b"),
    lazy_pattern(rf"{WEEKDAY}\b"),
    lazy_pattern(r"(?P<y>(?:19|20)\d{2})\b"),
)


def _ranged(folded: str, now: date, first: _NamedTime) -> tuple[bool, Window | None]:
    """Return whether another time is joined to the first one, and the period between them; None if invalid."""
    is_between = _BETWEEN.search(folded[: first.start]) is not None
    if first.window.grain == "day" and first.window.start == first.window.end:
        before = _DAY_BEFORE.search(folded[: first.start])
        if before is not None:
            has_between = _BETWEEN.search(folded[: before.start()]) is not None
            day = first.window.start
            start = exact_day(day.year, day.month, int(before["d"]))
            if start is not None and start.start < day and (has_between or before["how"] not in _BOTH):
                return True, _between(start.start, day)
    join = _JOIN.match(folded, first.end)
    if join is None:
        return False, None
    last = _joined(folded, now, first, join.end())
    if last is None:
        return False, None
    if join["how"] in _BOTH and not is_between and _BETWEEN_AFTER.match(folded, last.end) is None:
        return False, None
    first, last = _same_year(first, last)
    return True, _between(first.window.start, last.window.end)


def _joined(folded: str, now: date, first: _NamedTime, at: int) -> _NamedTime | None:
    """Return the end of a range that starts with `first`, read from `at` on; None if there is none."""
    if full := _FULL.match(folded, at):
        return _from_full(full, now)
    if first.window.grain == "day" and (day := _DAY_AFTER.match(folded, at)):
        start = first.window.start
        window = exact_day(int(day["y"]) if day["y"] else start.year, start.month, read_number(day["d"]))
        return None if window is None else _NamedTime(at, day.end(), window, bool(day["y"]) or first.has_year)
    if month := _MONTH_NAME.match(folded, at):
        return _month_at(folded, at, month.end(), now)
    if name := _DAY_NAME.match(folded, at):
        window = _alone(name, now, _looks_ahead(folded))
        return None if window is None else _NamedTime(at, name.end(), window)
    if year := _YEAR_NUMBER.match(folded, at):
        return _year_at(at, year.end(), int(year["y"]))
    spans = [(span, window) for span, window in find_spans(folded, now, _ways(folded)) if span[0] == at]
    return _NamedTime(*spans[0][0], spans[0][1]) if spans else None


def _same_year(first: _NamedTime, last: _NamedTime) -> tuple[_NamedTime, _NamedTime]:
    """Copy the year of one end to the other; the end of a range comes after its start."""
    if last.has_year and not first.has_year:
        first = _moved(first, last.window.end.year)
    elif first.has_year and not last.has_year:
        last = _moved(last, first.window.start.year)
    if last.window.end < first.window.start and not last.has_year:
        if (first.window.start - last.window.end).days < 7 and (week := day_from(last.window.end, 7)):
            return first, last._replace(window=week)
        last = _moved(last, last.window.end.year + 1)
    return first, last


def _moved(named: _NamedTime, year: int) -> _NamedTime:
    start = named.window.start
    window = exact_day(year, start.month, start.day) if named.window.grain == "day" else month_of(year, start.month)
    return named if window is None or named.window.grain not in ("day", "month") else named._replace(window=window)


def _between(start: date, end: date) -> Window | None:
    if end < start:
        return None
    return Window(start, end, "day" if (end - start).days < 7 else "range")


# -- open at one end ------------------------------------------------------------------------------------

_SIDE_AFTER = lazy_pattern(
    r"\s*(?P<side>之前|以前|之后|以后|以来|开始|为止|起|前(?!天)|后(?!天)|이전|이후|전(?:에|까지)?(?![가-힣])|후에|까지|부터"
    r"|(?:and )?(?:onwards?|on\b|forward)|or later|or earlier)"
)
_SIDE_BEFORE = lazy_pattern(
    r"(?:\b(?P<unit>days?|weeks?|months?|years?|nights?) )?"
    r"(?:\b(?P<side>before|prior to|earlier than|after|later than|since|starting|starting from|until|till|up to|up until|through|by|from)"
    rf"[ -](?:the )?{_ABOUT}|(?P<cjk>截至|截止到?|直到|自从?|从))\Z"
)
_SIDES = {
    word: side
    for side, words in {
        "before": "before,prior to,earlier than,之前,以前,前,이전,전,전에,전까지",
        "until": "until,till,up to,up until,through,or earlier,为止,까지,截至,截止,截止到,直到",
        "by": "by",
        "after": "after,later than,之后,以后,后,후에",
        "since": "since,starting,starting from,or later,以来,起,开始,이후,부터,onward,onwards,on,forward,and onward,and onwards,"
        "and on,and forward,自,自从",
    }.items()
    for word in words.split(",")
}


def _sided(folded: str, named: _NamedTime) -> Window | None:
    """Open the period at one end after words such as "before" and "after", which exclude the named time."""
    window = named.window
    after, before = _SIDE_AFTER.match(folded, named.end), _SIDE_BEFORE.search(folded[: named.start])
    word = after["side"] if after is not None else ""
    if before is not None and (not word or before["side"] not in (None, "from")):
        word = before["side"] or before["cjk"]
        if before["unit"]:  # "the week before June 3"
            return _beside(before["unit"], word, window)
    side = _SIDES.get(word, "")
    one = timedelta(days=1)
    if side == "until" and window.grain not in ("day", "week"):
        side = "before"
    if side == "before":
        return Window(date.min, window.start - one, "before") if window.start > date.min else None
    if side in ("until", "by"):
        return Window(date.min, window.end, "before")
    if side == "after":
        return Window(window.end + one, date.max, "after") if window.end < date.max else None
    return Window(window.start, date.max, "after") if side == "since" else window


def _beside(unit: str, word: str, window: Window) -> Window | None:
    """Return the day before or after a day; other distances are not read."""
    if unit == "day" and window.start == window.end and word in ("before", "after"):
        return day_from(window.start, -1 if word == "before" else 1)
    return None
