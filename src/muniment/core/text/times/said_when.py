"""Where a text that was said on a day names another day, and which one: "next Friday", said on a Wednesday.

It reads what `core.text.times.when` reads, but for a reader who takes it as true and not for a search, so that what may be meant
otherwise is left alone: "a few days ago", "over the last week", "in two weeks" of a time that is over, "on Friday" where
neither what was nor what will be is told, titles, code, what is quoted from a letter. Pure, as `core.text.times.when` is.
"""

# ruff: noqa: E501 - patterns read best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Literal, NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.analyzer import MONTHS
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import sentence_spans
from muniment.core.text.stretches import Window, day_from, month_of, weekend_from
from muniment.core.text.times.when import MONTH, WEEKDAY, Relative, find_spans, likely_ways, read_weekday

__all__ = ["SaidTime", "Tense", "said_times", "tense_of"]

TEXT_CHARS_MAX = 20_000
"""A longer text is a document: its days are counted from when it was written, which nobody told."""

_SUNDAY = 6

Tense = Literal["past", "future", "unknown"]


class SaidTime(NamedTuple):
    """The words that name a time, by where they stand, and the time."""

    start: int
    end: int
    window: Window


@remembered(8192)
def said_times(text: str, said: date) -> tuple[SaidTime, ...]:
    """The times that a text surely names by the day it was said on, in order; not the day itself, nor what it lies in."""
    return tuple(_read(text, said))


def _read(text: str, said: date) -> list[SaidTime]:
    if len(text) > TEXT_CHARS_MAX:
        return []
    folded = text.lower()
    if len(folded) != len(text):  # a letter that has no small form of one letter would move all that follows it
        folded = "".join(small if len(small := char.lower()) == 1 else char for char in text)
    if not _may_name_a_day(folded):
        return []
    found: list[SaidTime] = []
    elsewhere: list[tuple[int, int]] | None = None
    for start, end in sentence_spans(text):
        if not _may_name_a_day(folded[start:end]):
            continue
        for each in _in_sentence(text, folded, start, end, said):
            if elsewhere is None:
                elsewhere = [match.span() for match in _NOT_SAID.finditer(text)]
            if not any(first <= each.start < last for first, last in elsewhere):
                found.append(each)
    return sorted(found)


_CUES = (
    *(
        "day",
        "week",
        "month",
        "year",
        "tomorrow",
        "night",
        "ago",
        "last ",
        "next ",
        "spring",
        "summer",
        "fall",
        "autumn",
    ),
    *(
        "winter",
        *(f" {month}" for month in ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov")),
    ),
    " dec",
)
_CJK_CUE = lazy_pattern("[前昨明后上下去어그내모글지다저이작전후뒤]")


def _may_name_a_day(folded: str) -> bool:
    """Every text that names another day has one of these, and most texts have none."""
    return any(cue in folded for cue in _CUES) or (not folded.isascii() and _CJK_CUE.search(folded) is not None)


_NOT_SAID = lazy_pattern(r"(?s:```.*?(?:```|\Z))|`[^`\n]*`|(?m:^[ \t]*>[^\n]*)")
"""Code, and lines quoted from somebody who said them another day."""


def _in_sentence(text: str, folded: str, start: int, end: int, said: date) -> Iterator[SaidTime]:
    sentence = folded[start:end]
    likely = likely_ways(sentence)
    tense = tense_of(sentence)
    ways: Sequence[Relative] = (*_BY_TENSE[tense], *likely)
    for (first, last), window in find_spans(sentence, said, ways):
        if window.start <= said <= window.end or (window.grain == "week" and said.weekday() == _SUNDAY):
            continue  # where a week begins on Sunday, "last week" said on one is another
        words = _Words(text[start:end], sentence, first, last, tense)
        if not words.may_mean_else():
            yield SaidTime(start + first, start + _whole(sentence, last), window)


_TAIL = lazy_pattern(r"(?:['’]s)?(?: (?:night|morning|afternoon|evening|noon)(?:['’]s)?)?(?![\w])")


def _whole(sentence: str, end: int) -> int:
    """Where the expression ends with what belongs to it: "last Friday night", "tomorrow's"."""
    tail = _TAIL.match(sentence, end)
    return end if tail is None else tail.end()


# -- was it, or will it be? ---------------------------------------------------------------------------

_FUTURE = lazy_pattern(
    r"\b(?:will|won't|won’t|shall|going to|gonna|plan(?:s|ning)? (?:to|on|for)|planning|upcoming|appointments?|due|let's|let’s"
    r"|can't wait|can’t wait|looking forward|hop(?:e|ing) to|about to|(?:want|need|have|has)(?:s)? to|remind|don't forget|deadline"
    r"|see you|starts|begins|leaves|arrives|opens|ends|expires)\b|['’]ll\b"
    r"|[会将要]|打算|计划|准备|예정|계획|거예요|거야|겠|려고"
)
_PAST = lazy_pattern(
    r"\b(?:was|were|did|didn't|didn’t|had|went|got|came|saw|met|took|made|bought|found|told|said|gave|felt|left|lost|won|ate|flew"
    r"|ran|spent|began|brought|built|caught|drove|fell|heard|held|kept|knew|led|paid|sang|sat|sent|slept|spoke|stood|swam|taught"
    r"|thought|threw|understood|woke|wore|wrote|[a-z]{3,}ed)\b"
)


def tense_of(sentence: str) -> Tense:
    """Does a sentence in small letters tell of what was, or of what will be?"""
    ahead, back = _FUTURE.search(sentence) is not None, _PAST.search(sentence) is not None
    if ahead == back:
        return "unknown"
    return "future" if ahead else "past"


def _day_by_tense(match: re.Match[str], said: date, step: int) -> Window | None:
    ahead = (read_weekday(match["weekday"]) - said.weekday()) % 7
    return day_from(said, (ahead or 7) if step > 0 else ahead - 7)


def _weekend_by_tense(_: re.Match[str], said: date, step: int) -> Window | None:
    return weekend_from(said, 0 if step > 0 or said.weekday() >= 5 else -1)


def _month_by_tense(match: re.Match[str], said: date, step: int) -> Window | None:
    month = MONTHS[match["month"]]
    if step > 0:
        return month_of(said.year if month >= said.month else said.year + 1, month)
    return month_of(said.year if month <= said.month else said.year - 1, month)


def _ways_of(step: int) -> tuple[Relative, ...]:
    return (
        Relative((), _ON_DAY, lambda match, said: _day_by_tense(match, said, step)),
        Relative((), _THE_WEEKEND, lambda match, said: _weekend_by_tense(match, said, step)),
        Relative((), _IN_MONTH, lambda match, said: _month_by_tense(match, said, step)),
    )


_ON_DAY = lazy_pattern(
    rf"\bon {WEEKDAY}\b(?! (?:(?:of |in )?(?:last|this|next) week|before last|of the week|nights|mornings|afternoons|evenings))"
)
_THE_WEEKEND = lazy_pattern(r"\b(?:over|on|during|at|for) the weekend\b(?! (?:before|after|of))")
_IN_MONTH = lazy_pattern(
    rf"\b(?:in|during|until|till|since) (?:early |late |mid[ -]?)?{MONTH}\b(?!,? (?:of )?(?:\d|last year|next year|this year)|\.\w)"
)
_BY_TENSE: dict[Tense, tuple[Relative, ...]] = {"past": _ways_of(-1), "future": _ways_of(1), "unknown": ()}


# -- what may be meant otherwise ----------------------------------------------------------------------

_ONLY_BY_TENSE = lazy_pattern(rf"on {WEEKDAY}|(?:over )?the weekend")
_VAGUE = lazy_pattern(r"\b(?:few|several|couple|previous|past (?:week|month|year))\b| before$|[几몇]")
_COUNTED_AHEAD = lazy_pattern(r"in .+|.+(?:后|후|뒤)")
_COUNTED = lazy_pattern(r".* (?:ago|back|now|today)|.*[前전]")
_HEDGED = lazy_pattern(
    r"(?:\b(?:about|around|roughly|approximately|nearly|almost|over|under|than|least|most|or|to|and|maybe|like|some)|[-–~.,/\d])\s*\Z|[多약]\Z|大约\Z"
)
_THE = lazy_pattern(r"\b(?:the|every|each|our|my|their|his|her|no|better|brighter|of) \Z")
_STEP_FIRST = lazy_pattern(r"(?:last|next|tomorrow)\b")
_DATED = lazy_pattern(
    rf"\s*[,(（:–—-]*\s*(?:=|on |the )?\s*(?:{MONTH}\b\.? ?\d|\d{{1,4}}[-/.月]\d|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? [a-z]|\d{{4}}\b)"
)
_OR_SO = lazy_pattern(r" or (?:so|two|three|next)\b| to back\b| (?:and|or) (?:the|every) ")
_NAME = lazy_pattern(rf"\b(?:{MONTH}|mon|tues?|wed|thurs?|fri|sat|sun)$")
_VERB = lazy_pattern(
    r" (?:be|have|not|help|seem|take|cause|sound|look|also|well|need|come|surprise|get|make|mean|or may)\b"
)
_PART_OF_DAY = lazy_pattern(r" (?:Night|Morning|Afternoon|Evening)s?\b")
_CJK_ELSE = lazy_pattern(
    r"(?:[以之年]前[天年]|[以之然今最先此]后[天年]|过去年)|그제(?:서)?야|(?<![가-힣])[일이삼] ?(?:일|주|달|년|해) ?[전후뒤]"
)


class _Words(NamedTuple):
    """An expression of time in its sentence, as written and in small letters."""

    written: str
    folded: str
    start: int
    end: int
    tense: Tense

    def may_mean_else(self) -> bool:
        said = self.folded[self.start : self.end]
        before, after = self.folded[: self.start], self.folded[self.end :]
        if _ONLY_BY_TENSE.fullmatch(said) and self.tense == "unknown":
            return True
        if _VAGUE.search(said) or _DATED.match(after) or _OR_SO.match(after):
            return True
        if _COUNTED_AHEAD.fullmatch(said) and self.tense != "future" and not _IN_MONTH.match(said):
            return True
        if _COUNTED.fullmatch(said) and _HEDGED.search(before):
            return True
        if _STEP_FIRST.match(said) and _THE.search(before):
            return True
        return self._is_a_name(said, after) or self._is_another_word(said, before, after)

    def _is_a_name(self, said: str, after: str) -> bool:
        """A title, or a word in small letters that is a month or a day only with a capital."""
        written = self.written[self.start : self.end]
        name = _NAME.search(said)
        if name is not None and not written[name.start()].isupper():
            return True
        if name is not None and name[0] == "may" and _VERB.match(after):
            return True
        if not written[0].isupper():
            return False
        last = written.rpartition(" ")[2]
        is_title = " " in written and last[0].isupper() and last.lower() not in _PROPER
        return self.start > 0 or is_title or _PART_OF_DAY.match(self.written[self.end :]) is not None

    def _is_another_word(self, said: str, before: str, after: str) -> bool:
        if before[-1:] in _OPENING and after[:1] in _CLOSING and before and after:
            return True
        if said.isascii():
            return False
        around = before[-2:] + said + after[:2]
        return _CJK_ELSE.search(around) is not None or ("先天" in self.folded and said == "后天")


_PROPER = frozenset(MONTHS) | frozenset(WEEKDAY[len("(?P<weekday>") : -1].split("|"))
_OPENING, _CLOSING = frozenset("\"'“‘*_《「『"), frozenset("\"'”’*_》」』")
