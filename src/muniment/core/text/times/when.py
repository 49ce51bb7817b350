"""Relative time expressions: the meaning of "yesterday" on the day it was written.

`resolve` reads the relative expressions of a text against its day; `window_terms` gives their index terms.
`core.text.times.asked_when` reads questions. English, and the simple forms of Chinese and Korean; uncertain expressions
are ignored. Pure: the day is always an argument.
"""

# ruff: noqa: E501 - patterns read best with one to a line

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from functools import cache
from typing import NamedTuple

from muniment.core.text.analyzer import MONTHS, ascii_words, day_term, month_term, year_term
from muniment.core.text.patterns import Needles, lazy_pattern, needles_of
from muniment.core.text.stretches import (
    WEEKEND,
    Grain,
    Window,
    day_from,
    exact_day,
    month_of,
    part_of,
    shifted,
    weekday_from,
    weekend_from,
)

__all__ = [
    "CJK_PART",
    "CUE_WORDS",
    "MONTH",
    "NUMBER",
    "PART",
    "SEASONS",
    "WEEKDAY",
    "ZH_DAY",
    "Relative",
    "Window",
    "find_spans",
    "likely_ways",
    "part_in",
    "read_number",
    "read_weekday",
    "resolve",
    "season_of",
    "window_terms",
]

_WEEKDAY_NAMES = (
    "monday mon, tuesday tue tues, wednesday wed, thursday thu thur thurs, friday fri, saturday sat, sunday sun"
)
_WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAY_NAMES.split(",")) for name in names.split()}
_SIGNS = {sign: place % 7 for place, sign in enumerate("一二三四五六日월화수목금토일")} | {
    "天": 6,
    "末": WEEKEND,
    "말": WEEKEND,
}
SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
_COUNTS = {
    word: value
    for value, words in {
        1: "a an one 한 일 하루",
        2: "two couple 两 두 이 이틀",
        3: "three few several 几 세 석 삼 몇 사흘",
        4: "four 네 넉 나흘",
        5: "five 다섯 닷새",
        6: "six 여섯 엿새",
        7: "seven 일곱 이레",
        8: "eight 여덟 여드레",
        9: "nine 아홉 아흐레",
        10: "ten 열 열흘",
        11: "eleven",
        12: "twelve",
        15: "보름",
        20: "twenty",
        30: "thirty",
    }.items()
    for word in words.split()
}
_HAN_DIGITS = {sign: value for value, sign in enumerate("一二三四五六七八九", 1)}
_ORDINALS = {
    word: value
    for value, words in {
        1: "first 1st 第一 첫째 첫",
        2: "second 2nd 第二 둘째",
        3: "third 3rd 第三 셋째",
        4: "fourth 4th 第四 넷째",
        5: "fifth 5th 第五 다섯째",
        -1: "last final 最后 마지막",
    }.items()
    for word in words.split()
}
_STEPS = {
    which: steps
    for steps, words in {
        -2: "上上 지지난 저저번",
        -1: "last past previous 上 지난 저번",
        0: "this the 这 本 이번",
        1: "next coming 下 다음",
        2: "下下 다다음",
    }.items()
    for which in words.split()
} | {"this past": -1, "the coming": 1}
_UNIT_NAMES: dict[Grain, str] = {
    "day": "day days 天 일",
    "week": "week weeks 周 星期 礼拜 주 주일",
    "month": "month months 月 달 개월",
    "year": "year years 年 년 해",
}
_UNITS: dict[str, Grain] = {word: grain for grain, words in _UNIT_NAMES.items() for word in words.split()}

_COUNT = (
    r"(?P<n>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty"
    r"|(?:a )?couple(?: of)?|(?:a )?few|several)"
)
_UNIT = r"(?P<unit>days?|weeks?|months?|years?)"
_DAY_NAMES = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
WEEKDAY = rf"(?P<weekday>{_DAY_NAMES})"
_WEEKDAY = rf"(?P<weekday>{_DAY_NAMES}|mon|tues?|wed|thurs?|fri|sat|sun)"
MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_WHICH = r"(?P<which>last|past|previous|this past|this|next|coming|the coming)"
PART = (
    r"\b(?P<nth>first|second|third|fourth|fifth|last|final|1st|2nd|3rd|[45]th)"
    rf" (?P<part>day|weekend|week|half|{_DAY_NAMES}) (?:of|in)"
)
ZH_DAY = "一(?![起直样些定共])|[二三四五六]|日(?![程子期常记历])|天(?![气空])"
CJK_PART = (
    r"[的의]? ?(?:(?P<nth>第[一二三四五]|最后)一?个?(?P<part>天|周末|(?:周|星期|礼拜)[一二三四五六日天]?)"
    r"|(?P<nth_ko>첫째|첫|둘째|셋째|넷째|다섯째|마지막) ?(?P<part_ko>날|주말|주|[월화수목금토일]요일))"
)
NUMBER = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
_ZH_WHICH = r"(?P<which>(?<![晚早路网线马以])上上?|[这本]|下下?)"
_KO_WHICH = r"(?P<which>지지난|저저번|지난|저번|이번|다다음|다음)"
_KO_END = "(?=[^가-힣]|$|에|의|은|는|도|부|까|쯤|만|이|내|동|중|초|간)"

_UNIT_WORDS = "day days week weeks month months year years"
_WEEKDAY_WORDS = " ".join(_WEEKDAYS)
_WHICH_WORDS = "last past previous this next coming"

Maker = Callable[[re.Match[str], date], Window | None]


# -- words and signs ----------------------------------------------------------------------------------


def read_number(text: str) -> int:
    """Read digits, Chinese numbers up to 99, and the counting words above; 0 for anything else."""
    if text.isdecimal():
        return int(text)
    if text in _COUNTS:
        return _COUNTS[text]
    tens, ten, ones = text.rpartition("十")
    if any(sign not in _HAN_DIGITS for sign in (tens, ones) if sign):
        return 0
    return (_HAN_DIGITS.get(tens, 1) * 10 if ten else 0) + _HAN_DIGITS.get(ones, 0)


def read_weekday(text: str) -> int:
    """Return Monday 0 … Sunday 6, or `WEEKEND`, for an English name, a character, or a name that ends or begins with one."""
    known = _WEEKDAYS.get(text)
    if known is None:
        known = _SIGNS[text[0] if text.endswith("요일") else text[-1]]
    return known


def part_in(match: re.Match[str], whole: Window) -> Window | None:
    """Return the part of a month or a year that a match of `PART` or of `CJK_PART` names."""
    groups = match.groupdict()
    nth, part = groups["nth"] or groups.get("nth_ko"), groups["part"] or groups.get("part_ko")
    if nth is None or part is None:
        return None
    unit: str | int
    if part in ("day", "天", "날"):
        unit = "day"
    elif part in ("week", "half"):
        unit = part
    elif part in _UNITS:
        unit = "week"
    else:
        unit = WEEKEND if part == "weekend" else read_weekday(part)
    return part_of(whole, _ORDINALS[nth], unit)


# -- relative expressions -----------------------------------------------------------------------------


def _from_count(match: re.Match[str], said: date, sign: int) -> Window | None:
    text = match["n"].removeprefix("a ").removesuffix(" of") if len(match["n"]) > 1 else match["n"]
    count = read_number(text)
    return shifted(said, _UNITS[match["unit"].removeprefix("个")], sign * count) if count else None


def _from_weekday(match: re.Match[str], said: date) -> Window | None:
    ahead = (_WEEKDAYS[match["weekday"]] - said.weekday()) % 7
    if match["which"] and _STEPS[match["which"]] >= 0:
        return day_from(said, ahead or 7)
    return day_from(said, ahead - 7)


def _weekday_of_week(match: re.Match[str], said: date) -> Window | None:
    return weekday_from(said, _STEPS[match["which"]] if match["which"] else -2, _WEEKDAYS[match["weekday"]])


def _weekday_before_last(match: re.Match[str], said: date) -> Window | None:
    return day_from(said, (_WEEKDAYS[match["weekday"]] - said.weekday()) % 7 - 14)


def _from_weekend(match: re.Match[str], said: date) -> Window | None:
    return weekend_from(said, _STEPS[match["which"]] if match["which"] else 0)


def _before_last(match: re.Match[str], said: date) -> Window | None:
    unit = match["unit"]
    return weekend_from(said, -2) if unit == "weekend" else shifted(said, _UNITS[unit], -2)


def _from_month_name(match: re.Match[str], said: date) -> Window | None:
    month, steps = MONTHS[match["month"]], _STEPS[match["which"]]
    year = said.year
    if steps < 0 and month >= said.month:
        year -= 1
    elif steps > 0 and month <= said.month:
        year += 1
    return month_of(year, month)


def _from_season(match: re.Match[str], said: date) -> Window | None:
    first, steps = SEASONS[match["season"]], _STEPS[match["which"]]
    year = said.year
    if steps < 0 and first + 2 >= said.month:
        year -= 1
    elif steps > 0 and first <= said.month:
        year += 1
    return season_of(year, match["season"])


def season_of(year: int, name: str) -> Window | None:
    """Return the season that begins in a year, by its English name."""
    first = SEASONS[name]
    start, end = month_of(year, first), month_of(year, first + 2)
    return Window(start.start, end.end, "season") if start and end else None


_CJK_SEASONS = dict(zip("春夏秋冬봄여가겨", ("spring", "summer", "autumn", "winter") * 2, strict=True))


def _cjk_season(match: re.Match[str], said: date) -> Window | None:
    """Return a season of the named year; of last or next without one, as in English."""
    name, which = _CJK_SEASONS[match["season"][0]], match["which"]
    if which in _YEAR_STEPS:
        return season_of(said.year + _YEAR_STEPS[which], name)
    first, steps = SEASONS[name], _STEPS[which]
    passed = first + 2 < said.month if steps < 0 else first <= said.month
    return season_of(said.year + (0 if steps == 0 or passed == (steps < 0) else steps), name)


_YEAR_STEPS = {
    word: steps
    for steps, words in {-2: "前年 재작년", -1: "去年 작년", 0: "今年 올해", 1: "明年 내년"}.items()
    for word in words.split()
}


def _half_year(match: re.Match[str], said: date) -> Window | None:
    back = match["back"] or match["back_zh"] or match["back_ko"]
    return shifted(said, "month", -6 if back else 6)


def _fortnight(match: re.Match[str], said: date) -> Window | None:
    return shifted(said, "week", -2 if match["back"] else 2)


def _week_from_day(match: re.Match[str], said: date) -> Window | None:
    day = match["weekday"]
    ahead = 1 if day == "tomorrow" else (_WEEKDAYS[day] - said.weekday()) % 7 or 7
    return day_from(said, ahead + 7)


def _unit_maker(match: re.Match[str], said: date) -> Window | None:
    return shifted(said, _UNITS[match["unit"]], _STEPS[match["which"]])


def _part_maker(match: re.Match[str], said: date) -> Window | None:
    whole = _unit_maker(match, said)
    return None if whole is None else part_in(match, whole)


def _days(offset: int) -> Maker:
    return lambda _, said: day_from(said, offset)


def _years(offset: int) -> Maker:
    return lambda _, said: shifted(said, "year", offset)


def _cjk_week(match: re.Match[str], said: date) -> Window | None:
    steps, day = _STEPS[match["which"]], match["weekday"]
    return weekday_from(said, steps, read_weekday(day)) if day else shifted(said, "week", steps)


def _cjk_month(match: re.Match[str], said: date) -> Window | None:
    """Return a month, a numbered day of it, or a part of it."""
    month = shifted(said, "month", _STEPS[match["which"]])
    if month is None:
        return None
    if match["day"]:
        return exact_day(month.start.year, month.start.month, read_number(match["day"]))
    return part_in(match, month) or month


def _ko_weekday(match: re.Match[str], said: date) -> Window | None:
    steps, weekday = _STEPS[match["which"]], read_weekday(match["weekday"])
    if steps == -1:
        return day_from(said, (weekday - said.weekday()) % 7 - 7)
    return weekday_from(said, steps, weekday)


class Relative(NamedTuple):
    """A relative time expression."""

    needed: tuple[frozenset[str], ...]
    """Sets of words, from each of which a matching English text has one. Empty for other languages only."""
    pattern: re.Pattern[str]
    maker: Maker


def _word_sets(text: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(words.split()) for words in text.split("+") if words)


_WAYS: tuple[Relative, ...] = tuple(
    Relative(_word_sets(words), lazy_pattern(pattern), maker)
    for words, pattern, maker in (
        ("", r"(?<![\d.])(?P<n>\d{1,3}|[一两二三四五六七八九十]{1,3}|几)(?P<unit>天|周|个?星期|个?礼拜|个月|年)(?:[之以])?前",
         lambda match, said: _from_count(match, said, -1)),
        ("", r"(?<![\d.])(?P<n>\d{1,3}|[一两二三四五六七八九十]{1,3})(?P<unit>天|周|个?星期|个?礼拜|个月|年)(?:[之以])?后(?![天来])",
         lambda match, said: _from_count(match, said, 1)),
        ("", r"大前天|그끄저께", _days(-3)),
        ("", r"大后天|글피", _days(3)),
        ("yesterday", r"\bday before yesterday\b|前天|그저께|그제", _days(-2)),
        ("night + before + last", r"\bnight before last\b", _days(-2)),
        ("yesterday night", r"\byesterday\b|\blast night\b|昨[天晚日夜]|어제|어젯밤|어저께", _days(-1)),
        ("today tonight morning afternoon evening",
         r"\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b|今[天晚日早]|오늘", _days(0)),
        ("tomorrow", r"\bday after tomorrow\b|后天|(?:내일 ?)?모레", _days(2)),
        ("tomorrow", r"\btomorrow\b|明[天日晚早]|내일", _days(1)),
        ("half + year",
         r"\bhalf a year (?P<back>ago|back)\b|\bin half a year\b|半年(?:[之以])?(?:(?P<back_zh>前)|后)|반 ?년 ?(?:(?P<back_ko>전)|후|뒤)", _half_year),
        ("fortnight", r"\b(?:a|one) fortnight (?P<back>ago|back)\b|\bin a fortnight\b", _fortnight),
        (f"{_WEEKDAY_WORDS} tomorrow + from", r"\ba week from (?P<weekday>tomorrow|" + _DAY_NAMES + r")\b", _week_from_day),
        (f"{_UNIT_WORDS} + ago back before",
         rf"\b{_COUNT} {_UNIT} (?:ago|back|before)\b", lambda match, said: _from_count(match, said, -1)),
        (f"{_UNIT_WORDS} + in", rf"\bin {_COUNT} {_UNIT}\b", lambda match, said: _from_count(match, said, 1)),
        (f"{_UNIT_WORDS} + now today", rf"\b{_COUNT} {_UNIT} from (?:now|today)\b",
         lambda match, said: _from_count(match, said, 1)),
        ("first second third fourth fifth last final 1st 2nd 3rd 4th 5th + of in + month year",
         rf"{PART} (?P<which>last|previous|this|the|next) (?P<unit>month|year)\b", _part_maker),
        (f"{_WEEKDAY_WORDS} + week",
         rf"\b{_WEEKDAY} (?:of |in )?(?:(?P<which>last|this|next) week|the week before last)\b", _weekday_of_week),
        (f"{_WEEKDAY_WORDS} + week", rf"\b(?P<which>last|this|next) week(?:'s|,| on)? {_WEEKDAY}\b", _weekday_of_week),
        (f"{_WEEKDAY_WORDS} + before", rf"\b{_WEEKDAY} before last\b", _weekday_before_last),
        ("week weekend month year + before + last", r"\b(?P<unit>weekend|week|month|year) before last\b", _before_last),
        (f"{_WEEKDAY_WORDS} + {_WHICH_WORDS}", rf"\b{_WHICH} {_WEEKDAY}\b", _from_weekday),
        (f"{_WEEKDAY_WORDS} + on", rf"\b(?P<which>)on {_WEEKDAY}\b", _from_weekday),
        ("weekend", rf"\b{_WHICH} weekend\b|\b(?:over )?the weekend\b", _from_weekend),
        (f"week month year + {_WHICH_WORDS}", rf"\b{_WHICH} (?P<unit>week|month|year)\b", _unit_maker),
        (f"{' '.join(MONTHS)} + {_WHICH_WORDS}", rf"\b{_WHICH} {MONTH}\b", _from_month_name),
        (f"{' '.join(SEASONS)} + {_WHICH_WORDS}",
         rf"\b{_WHICH} (?P<season>spring|summer|fall|autumn|winter)\b", _from_season),
        ("", rf"{_ZH_WHICH}一?个?(?:周|星期|礼拜)(?P<weekday>末|{ZH_DAY})?", _cjk_week),
        ("", rf"{_KO_WHICH} ?주 ?(?:(?P<weekday>말|[월화수목금토일]요일)|{_KO_END})", _cjk_week),
        ("", rf"{_KO_WHICH} ?(?P<weekday>[월화수목금토일]요일)", _ko_weekday),
        ("", rf"{_ZH_WHICH}(?:一?个)?月(?:份|{CJK_PART}|(?P<day>{NUMBER})[日号])?", _cjk_month),
        ("", rf"(?:{_KO_WHICH} ?|(?<![가-힣])(?P<this>이))달(?: ?(?:{CJK_PART}|(?P<day>\d{{1,2}}) ?일)|{_KO_END})",
         lambda match, said: _cjk_month(match, said) if match["which"] else shifted(said, "month", 0)),
        ("", r"(?P<which>前年|去年|今年|明年) ?的?(?P<season>[春夏秋冬])(?:天|季)?", _cjk_season),
        ("", rf"(?P<which>재작년|(?<!재)작년|올해|(?<!내)내년|지난|이번|다음) ?해? ?(?P<season>봄|여름|가을|겨울){_KO_END}", _cjk_season),
        ("", r"前年|재작년", _years(-2)),
        ("", r"去年|(?<!재)작년|지난 ?해", _years(-1)),
        ("", r"今年|올해", _years(0)),
        ("", r"明年|(?<!내)내년", _years(1)),
        ("", r"后年|내후년", _years(2)),
        ("", rf"(?P<n>하루|이틀|사흘|나흘|닷새|엿새|이레|여드레|아흐레|열흘|보름) ?(?P<way>전|후|뒤){_KO_END}",
         lambda match, said: day_from(said, read_number(match["n"]) * (-1 if match["way"] == "전" else 1))),
        ("", r"(?<![\d월])(?<!월 )(?P<n>\d{1,3}|한|두|세|석|네|넉|다섯|여섯|일곱|여덟|아홉|열|일|이|삼|몇) ?"
         rf"(?P<unit>일|주일|주|달|개월|년|해) ?(?P<way>전|후|뒤){_KO_END}",
         lambda match, said: _from_count(match, said, -1 if match["way"] == "전" else 1)),
    )
)  # fmt: skip
"""Expressions in order: earlier ones win where two would match the same words."""
_ANY_RELATIVE = lazy_pattern(
    r"yesterday|today|tonight|tomorrow|last |past |previous |this |next |coming |ago|back|before|from now|in \w+ \w|half a year|fortnight|week from|"
    r"weekend|on [mtwfs]|(?:day|week|half) (?:of|in) |[前昨今明后上下去这本]|어제|어젯밤|어저께|그제|그저께|그끄저께|오늘"
    r"|내일|모레|글피|지난|다음|이번|저번|이달|작년|올해|내년|내후년|[전후뒤]"
)

_ENGLISH = tuple(each for each in _WAYS if each.needed)
_CUES = {
    word: tuple(place for place, each in enumerate(_ENGLISH) if word in each.needed[0])
    for each in _ENGLISH
    for word in each.needed[0]
}
"""Map words to the indexes in `_ENGLISH` of expressions they may be part of."""
CUE_WORDS = frozenset(_CUES)


def resolve(text: str, said: date, words: Sequence[str] | None = None) -> list[Window]:
    """Return the periods that a text's relative expressions name, seen from its day.

    `words` are the `ascii_words` of an ASCII text, where the caller has them.
    """
    folded = text.casefold()
    likely = likely_ways(folded, words)
    return [window for _, window in find_spans(folded, said, likely)] if likely else []


def likely_ways(folded: str, words: Sequence[str] | None = None) -> Sequence[Relative]:
    """Return the expressions that may occur in a text, judged by its words alone."""
    if not folded.isascii():
        return _held_ways(folded) if _ANY_RELATIVE.search(folded) else ()
    if words is None:
        words = ascii_words(folded)
    cues = CUE_WORDS.intersection(words)
    if not cues:
        return ()
    held = frozenset(words)
    ways = [_ENGLISH[place] for place in sorted({place for cue in cues for place in _CUES[cue]})]
    return [each for each in ways if not any(map(held.isdisjoint, each.needed))]


def _held_ways(folded: str) -> list[Relative]:
    """Return the expressions of any language whose required words a text has."""
    held = folded.__contains__
    return [each for each, words in zip(_WAYS, _needles(), strict=True) if words is None or any(map(held, words))]


@cache
def _needles() -> tuple[Needles | None, ...]:
    return tuple(needles_of(each.pattern.pattern) for each in _WAYS)


def find_spans(folded: str, said: date, ways: Sequence[Relative]) -> Iterator[tuple[tuple[int, int], Window]]:
    """Yield the times a text names with their places, which never overlap."""
    taken: list[tuple[int, int]] = []
    for _, pattern, maker in ways:
        for match in pattern.finditer(folded):
            start, end = match.span()
            place = bisect(taken, (start, end))
            if (place and taken[place - 1][1] > start) or (place < len(taken) and taken[place][0] < end):
                continue
            window = maker(match, said)
            if window is not None:
                taken.insert(place, (start, end))
                yield (start, end), window


def window_terms(window: Window) -> list[str]:
    """Return the index terms for a window: as exact as it is, and never a day it does not name."""
    if window.grain in ("before", "after"):
        return []
    years = [year_term(year) for year in range(window.start.year, window.end.year + 1)][:2]
    if window.grain == "year":
        return years
    first, last = window.start.month, window.end.month
    lasting = (window.end.year - window.start.year) * 12 + last - first
    months = [(first - 1 + step) % 12 + 1 for step in range(lasting + 1)] if lasting < 3 else []
    terms = [month_term(month) for month in months] + years
    if (window.end - window.start).days <= 6:
        for offset in range((window.end - window.start).days + 1):
            day = window.start + timedelta(days=offset)
            terms.append(day_term(day.month, day.day))
    return terms
