"""How good an answer is, without a judge: words in common with the key, dates in one form, declined or not, citations.

- `f1`: of the words of answer and key, stems without articles, numbers as digits, dates in one form ("the Sunday before
  25 May 2023" is 21 May 2023); the best of the keys where there are several. `f1_plain`: LoCoMo's, with neither.
- `contains`: the key's words stand in the answer, one after the other.
- `declined`: the answer says that it is not known (`_DECLINED`). Meant for questions that nothing answers, and counted
  beside those that something does. `trapped`: it gives what another speaker did.
- `cites`: a mark of the page stands in it; `literal`: the letter of an example; `unknown`: a number that is on no line;
  `right`: one of the lines that it cites is gold; `cited_recall`: the share of gold that is cited.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

from muniment.core.text.analyzer import porter_stem
from muniment.core.text.citation_marks import MARK, numbers_in

__all__ = ["Score", "contains", "f1", "has_declined", "one_form", "score", "words_of"]

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_ARTICLES = frozenset(("a", "an", "the", "and"))
_stem = lru_cache(maxsize=1 << 15)(porter_stem)

_MONTH = "|".join(f"{month}|{month[:3]}" for month in _MONTHS)
_DATE = re.compile(
    r"\b(?:"
    r"(?P<iy>(?:19|20)\d\d)-(?P<im>\d\d)(?:-(?P<id>\d\d))?"
    rf"|(?P<ay>(?:19|20)\d\d),? (?P<am>{_MONTH})\.? (?P<ad>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"|(?P<bd>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<bm>{_MONTH})\.?,? (?P<by>(?:19|20)\d\d)"
    rf"|(?P<cm>{_MONTH})\.? (?P<cd>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<cy>(?:19|20)\d\d)"
    rf"|(?P<dm>{_MONTH})\.?,? (?P<dy>(?:19|20)\d\d)"
    r")\b"
)
_BEFORE = re.compile(
    rf"\b(?:the )?(?P<what>day|week|weekend|{'|'.join(_DAYS)}) before (?P<day>\d{{1,2}}) "
    rf"(?P<month>{'|'.join(_MONTHS)}) "
    r"(?P<year>\d{4})\b"
)
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_DECLINED = re.compile(
    r"\b(?:"
    r"(?:is|was|are|were|been|it'?s|has)? ?not (?:been )?(?:explicitly |directly |clearly |specifically )?"
    r"(?:mentioned|specified|stated|said|provided|given|known|available|found|recorded|told|discussed|indicated|clear|"
    r"in (?:the |my )?memory|disclosed|listed)"
    r"|(?:does|do|did)(?: not|n'?t) (?:explicitly |directly |clearly |specifically )?"
    r"(?:say|mention|state|specify|know|provide|contain|hold|tell|answer|indicate|have)"
    r"|(?:isn|wasn|aren|weren|hasn)'?t (?:been )?(?:mentioned|specified|stated|said|provided|known|clear)"
    r"|no (?:mention|information|answer|evidence|specific information|record|details?|memory|data)"
    r"|nothing (?:in memory|is said|was said|mentioned|about)"
    r"|unknown|unspecified|unmentioned|unclear|n/a|cannot (?:be )?(?:determined?|answer|find|tell|say)"
    r"|can'?t (?:be )?(?:determined?|answer|find|tell|say)|unable to|i(?:'m| am) (?:sorry|not sure)"
    r")\b"
)
_LITERAL = re.compile(r"\[(?:n|number|mark|x|#|source|line)\]", re.IGNORECASE)


class Score(NamedTuple):
    """What is measured of one answer."""

    f1: float
    f1_plain: float
    contains: bool
    declined: bool
    trapped: bool
    cites: bool
    literal: bool
    unknown: bool
    right: bool
    cited_recall: float


def score(answer: str, keys: Sequence[str], *, gold: frozenset[str], marks: Mapping[str, str], trap: str = "") -> Score:
    """An answer against its keys; `marks` are those of the page, by turn id."""
    said = MARK.sub("", answer)
    cited = {marks[number] for number in numbers_in(answer) if number in marks}
    return Score(
        max((f1(said, key) for key in keys), default=0.0),
        max((f1(said, key, is_plain=True) for key in keys), default=0.0),
        any(contains(said, key) for key in keys),
        has_declined(said),
        bool(trap) and (contains(said, trap) or f1(said, trap) >= 0.5),
        bool(cited),
        bool(_LITERAL.search(answer)),
        any(number not in marks for number in numbers_in(answer)),
        bool(cited & gold),
        len(cited & gold) / len(gold) if gold else 0.0,
    )


def has_declined(answer: str) -> bool:
    return _DECLINED.search(answer.lower().replace("’", "'")) is not None


# -- words in common ----------------------------------------------------------------------------------


def words_of(text: str, *, is_plain: bool = False) -> list[str]:
    """Stems, without articles; unless `is_plain`, dates in one form and numbers as digits."""
    text = text.lower().replace("’", "'")
    if is_plain:
        return [_stem(word) for word in re.sub(r"[^\w\s]", "", text).split() if word not in _ARTICLES]
    numbers = {name: str(value) for value, name in enumerate(_NUMBERS)}
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", one_form(text).replace("'s", ""))
    return [_stem(numbers.get(word, word)) for word in _WORD.findall(text) if word not in _ARTICLES]


def f1(answer: str, key: str, *, is_plain: bool = False) -> float:
    said, wanted = Counter(words_of(answer, is_plain=is_plain)), Counter(words_of(key, is_plain=is_plain))
    common = (said & wanted).total()
    return 2 * common / (said.total() + wanted.total()) if common else 0.0


def contains(answer: str, key: str) -> bool:
    said, wanted = words_of(answer), words_of(key)
    return bool(wanted) and any(
        said[start : start + len(wanted)] == wanted for start in range(len(said) - len(wanted) + 1)
    )


# -- dates --------------------------------------------------------------------------------------------


def one_form(text: str) -> str:
    """Dates as `7 may 2023` or `may 2023`, and what is told by one as the day, weekend or week that it is."""
    return _BEFORE.sub(_before, _DATE.sub(_written, text.lower()))


def _written(found: re.Match[str]) -> str:
    year = next(found[name] for name in ("iy", "ay", "by", "cy", "dy") if found[name])
    day = next((found[name] for name in ("id", "ad", "bd", "cd") if found[name]), "")
    if found["im"]:
        number = int(found["im"])
        if not 1 <= number <= 12:
            return found[0]
    else:
        name = next(found[each] for each in ("am", "bm", "cm", "dm") if found[each])
        number = next(place for place, month in enumerate(_MONTHS, 1) if month.startswith(name))
    return f"{int(day)} {_MONTHS[number - 1]} {year}" if day else f"{_MONTHS[number - 1]} {year}"


def _before(found: re.Match[str]) -> str:
    try:
        day = date(int(found["year"]), 1 + _MONTHS.index(found["month"]), int(found["day"]))
    except ValueError:
        return found[0]
    match found["what"]:
        case "day":
            return _told(day - timedelta(days=1))
        case "week":
            start = day - timedelta(days=7 + day.weekday())
            return f"week of {_told(start)}"
        case "weekend":
            saturday = day - timedelta(days=1 + (day.weekday() + 1) % 7)
            return f"weekend of {_told(saturday)}"
    back = (day.weekday() - _DAYS.index(found["what"]) - 1) % 7 + 1
    return _told(day - timedelta(days=back))


def _told(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
