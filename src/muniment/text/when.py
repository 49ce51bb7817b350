"""Time in words: what "yesterday" meant when it was said, and what "last May" means when it is asked.

`resolve` reads the relative expressions of a text against the day it was said on; `date_terms` gives their index terms;
`query_window` reads the one stretch of time that a question is about. English, and the simple forms of Chinese and
Korean. Pure: the day is always an argument, and nothing here looks at a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple

from muniment.text.analyzer import MONTHS, day_term, month_term, year_term
from muniment.text.patterns import lazy_pattern

__all__ = ["Grain", "Window", "date_terms", "query_window", "resolve", "window_terms"]

Grain = Literal["day", "week", "month", "season", "year", "before", "after"]


class Window(NamedTuple):
    """A stretch of days, both ends included, and how exactly it was named."""

    start: date
    end: date
    grain: Grain


_WEEKDAY_NAMES = ("monday mon", "tuesday tue tues", "wednesday wed", "thursday thu thurs", "friday fri", "saturday sat")
_WEEKDAYS = {name: number for number, names in enumerate((*_WEEKDAY_NAMES, "sunday sun")) for name in names.split()}
_ZH_WEEKDAYS = {sign: number for number, sign in enumerate("一二三四五六日")} | {"天": 6}
_KO_WEEKDAYS = {sign: number for number, sign in enumerate("월화수목금토일")}
_SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
_COUNTS = {
    word: value
    for value, words in {
        1: "a an one 一 한 일",
        2: "two couple 两 二 두 이",
        3: "three few several 三 几 세 삼 몇",
        4: "four 四 네 사",
        5: "five 五 다섯 오",
        6: "six 六 여섯 육",
        7: "seven 七 일곱 칠",
        8: "eight 八 여덟 팔",
        9: "nine 九 아홉 구",
        10: "ten 十 열 십",
    }.items()
    for word in words.split()
}
_UNIT_NAMES: dict[Grain, str] = {
    "day": "day days 天 日 일",
    "week": "week weeks 周 星期 礼拜 주 주일",
    "month": "month months 月 달 개월",
    "year": "year years 年 년 해",
}
_UNITS: dict[str, Grain] = {word: grain for grain, words in _UNIT_NAMES.items() for word in words.split()}

_COUNT = r"(?P<n>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|(?:a )?couple(?: of)?|(?:a )?few|several)"
_UNIT = r"(?P<unit>days?|weeks?|months?|years?)"
_WEEKDAY = r"(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tues?|wed|thurs?|fri|sat|sun)"
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_WHICH = r"(?P<which>last|past|previous|this past|this|next|coming|the coming)"

Maker = Callable[[re.Match[str], date], Window | None]


# -- stretches of the calendar ------------------------------------------------------------------------


def _day(moment: date, offset: int) -> Window | None:
    try:
        day = moment + timedelta(days=offset)
    except OverflowError:
        return None
    return Window(day, day, "day")


def _week(moment: date, offset: int) -> Window | None:
    """The week from Monday to Sunday, `offset` weeks away."""
    try:
        monday = moment + timedelta(days=7 * offset - moment.weekday())
        return Window(monday, monday + timedelta(days=6), "week")
    except OverflowError:
        return None


def _month(year: int, month: int) -> Window | None:
    """Month 1…12 of a year; other numbers run on into the years around it."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    if not 1 <= year <= 9998:
        return None
    after = date(year + month // 12, month % 12 + 1, 1)
    return Window(date(year, month, 1), after - timedelta(days=1), "month")


def _year(year: int) -> Window | None:
    return Window(date(year, 1, 1), date(year, 12, 31), "year") if 1 <= year <= 9999 else None


def _shifted(moment: date, grain: Grain, steps: int) -> Window | None:
    if grain == "day":
        return _day(moment, steps)
    if grain == "week":
        return _week(moment, steps)
    return _month(moment.year, moment.month + steps) if grain == "month" else _year(moment.year + steps)


def _exact(year: int, month: int, day: int) -> Window | None:
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return Window(found, found, "day")


def _sign(which: str) -> int:
    return -1 if which in ("last", "past", "previous", "this past") else 0 if which == "this" else 1


# -- relative expressions -----------------------------------------------------------------------------


def _from_count(match: re.Match[str], said: date, sign: int) -> Window | None:
    text = match["n"].removeprefix("a ").removesuffix(" of") if len(match["n"]) > 1 else match["n"]
    count = int(text) if text.isdecimal() else _COUNTS.get(text, 0)
    return _shifted(said, _UNITS[match["unit"]], sign * count) if count else None


def _from_weekday(match: re.Match[str], said: date) -> Window | None:
    wanted, which = _WEEKDAYS[match["weekday"]], match["which"]
    ahead = (wanted - said.weekday()) % 7
    if which and _sign(which) >= 0:
        return _day(said, ahead or 7)
    return _day(said, ahead - 7)


def _from_weekend(match: re.Match[str], said: date) -> Window | None:
    saturday = _day(said, 5 - said.weekday() + 7 * (_sign(match["which"]) if match["which"] else 0))
    if saturday is None or saturday.start == date.max:
        return None
    return Window(saturday.start, saturday.start + timedelta(days=1), "day")


def _from_month_name(match: re.Match[str], said: date) -> Window | None:
    month, sign = MONTHS[match["month"]], _sign(match["which"])
    year = said.year
    if sign < 0 and month >= said.month:
        year -= 1
    elif sign > 0 and month <= said.month:
        year += 1
    return _month(year, month)


def _from_season(match: re.Match[str], said: date) -> Window | None:
    first, sign = _SEASONS[match["season"]], _sign(match["which"])
    year = said.year
    if sign < 0 and first + 2 >= said.month:
        year -= 1
    elif sign > 0 and first <= said.month:
        year += 1
    start, end = _month(year, first), _month(year, first + 2)
    return Window(start.start, end.end, "season") if start and end else None


def _unit_maker(match: re.Match[str], said: date) -> Window | None:
    return _shifted(said, _UNITS[match["unit"]], _sign(match["which"]))


def _days(offset: int) -> Maker:
    return lambda _, said: _day(said, offset)


def _steps(grain: Grain, offset: int) -> Maker:
    return lambda _, said: _shifted(said, grain, offset)


def _zh_weekday(match: re.Match[str], said: date) -> Window | None:
    weeks = {"上": -1, "下": 1}.get(match["which"] or "", 0)
    return _day(said, 7 * weeks + _ZH_WEEKDAYS[match["weekday"]] - said.weekday())


def _ko_weekday(match: re.Match[str], said: date) -> Window | None:
    weeks = {"지난": -1, "다음": 1}.get((match["which"] or "")[:2], 0)
    return _day(said, 7 * weeks + _KO_WEEKDAYS[match["weekday"]] - said.weekday())


_RELATIVE: tuple[tuple[re.Pattern[str], Maker], ...] = tuple(
    (lazy_pattern(pattern), maker)
    for pattern, maker in (
        (r"\bday before yesterday\b|前天|그저께|그제", _days(-2)),
        (r"\byesterday\b|\blast night\b|昨天|昨晚|昨日|어제|어젯밤", _days(-1)),
        (r"\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b|今天|今晚|今日|오늘", _days(0)),
        (r"\bday after tomorrow\b|后天|모레", _days(2)),
        (r"\btomorrow\b|明天|明日|내일", _days(1)),
        (rf"\b{_COUNT} {_UNIT} (?:ago|back|before)\b", lambda match, said: _from_count(match, said, -1)),
        (rf"\bin {_COUNT} {_UNIT}\b|\b{_COUNT.replace('?P<n>', '?P<n2>')} {_UNIT.replace('?P<unit>', '?P<unit2>')} "
         r"from now\b", lambda match, said: _from_count(match, said, 1) if match["n"] else None),
        (rf"\b{_WHICH} {_WEEKDAY}\b", _from_weekday),
        (rf"\b(?P<which>)on {_WEEKDAY}\b", _from_weekday),
        (rf"\b{_WHICH} weekend\b|\b(?:over )?the weekend\b", _from_weekend),
        (rf"\b{_WHICH} (?P<unit>week|month|year)\b", _unit_maker),
        (rf"\b{_WHICH} {_MONTH}\b", _from_month_name),
        (rf"\b{_WHICH} (?P<season>spring|summer|fall|autumn|winter)\b", _from_season),
        (r"(?P<which>上|下|这|本)(?:个)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _zh_weekday),
        (r"(?:上(?:个)?(?:周|星期|礼拜)|지난 ?주)(?![一二三四五六日天말])", _steps("week", -1)),
        (r"(?:下(?:个)?(?:周|星期|礼拜)|다음 ?주)(?![一二三四五六日天말])", _steps("week", 1)),
        (r"上(?:个)?月|지난 ?달", _steps("month", -1)),
        (r"下(?:个)?月|다음 ?달", _steps("month", 1)),
        (r"前年|재작년", _steps("year", -2)),
        (r"去年|(?<!재)작년|지난 ?해", _steps("year", -1)),
        (r"今年|올해", _steps("year", 0)),
        (r"明年|내년", _steps("year", 1)),
        (r"(?P<n>\d{1,3}|[一两二三四五六七八九十几])(?:个)?(?P<unit>天|周|星期|礼拜|月|年)(?:以)?前",
         lambda match, said: _from_count(match, said, -1)),
        (r"(?P<n>\d{1,3}|한|두|세|네|다섯|여섯|몇) ?(?P<unit>일|주|주일|달|개월|년) ?전",
         lambda match, said: _from_count(match, said, -1)),
        (r"(?P<which>지난|이번|다음) ?주? (?P<weekday>[월화수목금토일])요일", _ko_weekday),
    )
)  # fmt: skip
_ANY_RELATIVE = lazy_pattern(
    r"yesterday|today|tonight|tomorrow|last |past |previous |this |next |coming |ago|back|before|from now|in \w+ \w|"
    r"weekend|on [mtwfs]|[前昨今明后上下去这本]|어제|어젯밤|그제|그저께|오늘|내일|모레|지난|다음|이번|작년|올해|내년|전"
)


_AFTER_WHICH = (
    "(?:weekend|night|week|month|year|spring|summer|fall|autumn|winter|mon|tue|wed|thu|fri|sat|sun"
    "|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
)
_AGO = "(?:ago|back|before|from now)"
_ANY_ENGLISH = lazy_pattern(
    rf"yesterday|today|tonight|tomorrow|weekend|days? {_AGO}|weeks? {_AGO}|months? {_AGO}|years? {_AGO}"
    r"|in (?:\d|an? |one|two|three|four|five|six|seven|eight|nine|ten|couple|few|several)"
    rf"|last {_AFTER_WHICH}|past {_AFTER_WHICH}|previous {_AFTER_WHICH}|this {_AFTER_WHICH}|this (?:mor|aft|eve|past)"
    rf"|next {_AFTER_WHICH}|coming {_AFTER_WHICH}|on (?:mon|tue|wed|thu|fri|sat|sun)"
)
"""What an English text must hold to name a time. Its parts begin with letters, which makes it fast to miss."""
_ENGLISH = tuple(pair for pair in _RELATIVE if r"\b" in pair[0].pattern)
_MAY_MATCH = {
    word: places
    for words, places in (
        ("yesterday", (0, 1)),
        ("night", (1,)),
        ("today tonight mor aft eve", (2,)),
        ("tomorrow", (3, 4)),
        ("ago back before", (5,)),
        ("now", (6,)),
        ("mon tue wed thu fri sat sun", (7, 8)),
        ("weekend", (9,)),
        ("week month year", (10,)),
        ("jan feb mar apr may jun jul aug sep oct nov dec", (11,)),
        ("spring summer fall autumn winter", (12,)),
        ("past", (7, 10, 11, 12)),
    )
    for word in words.split()
}
"""The last word of what `_ANY_ENGLISH` finds → which of `_ENGLISH` may match there; what comes after "in" is not: 6."""


def resolve(text: str, said: date) -> list[Window]:
    """The stretches that a text's relative expressions name, seen from the day it was said on."""
    folded = text.casefold()
    return [window for _, window in _spans(folded, said, _likely(folded))]


def _likely(folded: str) -> Sequence[tuple[re.Pattern[str], Maker]]:
    """The patterns that may match."""
    if not folded.isascii():
        return _RELATIVE if _ANY_RELATIVE.search(folded) else ()
    cues = _ANY_ENGLISH.findall(folded)
    if not cues:
        return ()
    places = sorted({place for cue in cues for place in _MAY_MATCH.get(cue.split()[-1], (6,))})
    return [_ENGLISH[place] for place in places]


def _spans(
    folded: str, said: date, patterns: Sequence[tuple[re.Pattern[str], Maker]]
) -> Iterator[tuple[tuple[int, int], Window]]:
    taken: list[tuple[int, int]] = []
    for pattern, maker in patterns:
        for match in pattern.finditer(folded):
            start, end = match.span()
            if any(start < other_end and other_start < end for other_start, other_end in taken):
                continue
            window = maker(match, said)
            if window is not None:
                taken.append((start, end))
                yield (start, end), window


def window_terms(window: Window) -> list[str]:
    """The index terms that stand for a window: as exact as it is, and never a day it does not name."""
    if window.grain in ("before", "after"):
        return []
    years = [year_term(year) for year in range(window.start.year, window.end.year + 1)][:2]
    if window.grain == "year":
        return years
    first, last = window.start.month, window.end.month
    months = [first] if first == last else [first, first % 12 + 1] if window.grain == "season" else [first, last]
    if window.grain == "season":
        months.append(last)
    terms = [month_term(month) for month in months] + years
    if (window.end - window.start).days <= 6:
        for offset in range((window.end - window.start).days + 1):
            day = window.start + timedelta(days=offset)
            terms.append(day_term(day.month, day.day))
    return terms


def date_terms(text: str, said: date) -> list[str]:
    """The index terms of a text's relative expressions; dates written out are the analyzer's."""
    return [term for window in resolve(text, said) for term in window_terms(window)]


# -- questions ----------------------------------------------------------------------------------------

_FULL = lazy_pattern(
    rf"(?P<y>\d{{4}})[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}})(?!\d)"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}\b\.?(?:,? (?P<y1>\d{{4}}))?"
    rf"|\b{_MONTH.replace('?P<month>', '?P<month2>')}\b\.? (?:the )?(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b"
    r"(?:,? (?P<y2>\d{4}))?"
    rf"|\b{_MONTH.replace('?P<month>', '?P<month3>')}\b,?(?: of)? (?P<y3>\d{{4}})\b"
    r"|(?:(?P<zy>\d{4}) ?[年년] ?)?(?P<zm>\d{1,2}) ?[月월](?: ?(?P<zd>\d{1,2}) ?[日号일])?"
    r"|(?P<oy>(?:19|20)\d{2}) ?[年년]"
)
_PLAIN_MONTH = lazy_pattern(
    rf"\b(?:in|of|during|since|after|before|by|early|late|mid|until)[ -](?:early |late |mid[ -]?)?{_MONTH}\b"
)
_PLAIN_YEAR = lazy_pattern(
    r"\b(?:in|of|during|since|after|before|by|until)[ -](?:early |late |mid[ -]?)?(?P<y>(?:19|20)\d{2})\b"
)
_DIGIT = re.compile(r"\d")
"""Every date written out has one, but for a month alone."""
_SIDE_AFTER = lazy_pattern(r"\s*(?P<side>之前|以前|之后|以后|이전|이후|전에|후에)")


def query_window(text: str, now: date) -> Window | None:
    """The stretch of time a question names, or None; of several the first. "before" and "after" open one end."""
    folded = text.casefold()
    found = _named(folded, now)
    if found is None:
        span_and_window = min(_spans(folded, now, _likely(folded)), default=None, key=lambda pair: pair[0])
        if span_and_window is None:
            return None
        found = span_and_window
    (start, end), window = found
    after = _SIDE_AFTER.match(folded, end)
    before = re.search(r"\b(before|after|since|until|by)[ -](?:early |late |mid[ -]?)?\Z", folded[:start])
    side = after["side"] if after else before[1] if before else ""
    if side in ("before", "until", "by", "之前", "以前", "이전", "전에"):
        return Window(date.min, window.start if side != "by" else window.end, "before")
    if side in ("after", "since", "之后", "以后", "이후", "후에"):
        return Window(window.end if side != "since" else window.start, date.max, "after")
    return window


def _named(folded: str, now: date) -> tuple[tuple[int, int], Window] | None:
    """The first date written out: a day, a month of a year, a month, a year."""
    best: tuple[tuple[int, int], Window] | None = None
    has_digit = _DIGIT.search(folded) is not None
    for match in _FULL.finditer(folded) if has_digit else ():
        window = _from_full(match, now)
        if window is not None:
            best = (match.span(), window)
            break
    for pattern in (_PLAIN_MONTH, _PLAIN_YEAR) if has_digit else (_PLAIN_MONTH,):
        plain = pattern.search(folded)
        if plain is None or (best is not None and best[0][0] <= plain.end()):
            continue
        group = "month" if pattern is _PLAIN_MONTH else "y"
        month = MONTHS[plain[group]] if group == "month" else 0
        window = _latest_month(month, now) if month else _year(int(plain["y"]))
        if window is not None:
            best = (plain.span(group), window)
    return best


def _latest_month(month: int, now: date) -> Window | None:
    return _month(now.year if month <= now.month else now.year - 1, month)


def _from_full(match: re.Match[str], now: date) -> Window | None:
    if match["oy"]:
        return _year(int(match["oy"]))
    name = match["month"] or match["month2"] or match["month3"]
    month = MONTHS[name] if name else int(match["m"] or match["zm"])
    year_text = match["y"] or match["y1"] or match["y2"] or match["y3"] or match["zy"]
    day_text = match["d"] or match["d1"] or match["d2"] or match["zd"]
    if not 1 <= month <= 12:
        return None
    if not day_text:
        return _month(int(year_text), month) if year_text else _latest_month(month, now)
    if year_text:
        return _exact(int(year_text), month, int(day_text))
    this_year = _exact(now.year, month, int(day_text))
    if this_year is not None and this_year.start <= now:
        return this_year
    return _exact(now.year - 1, month, int(day_text)) or this_year
