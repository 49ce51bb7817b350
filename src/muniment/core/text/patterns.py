"""The budget of work for analysing a text, determined by the text alone, so that it is the same everywhere.

Every reader of a text is linear in it, but some read a sentence once for each pattern. So work is bounded by the size
of the text and its number of pieces, never by a clock.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Set
from functools import cache
from typing import Any, NamedTuple, cast

# -- patterns -------------------------------------------------------------------------------------------


class _Lazy:
    def __init__(self, source: str | Callable[[], str]) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        source = self._source if isinstance(self._source, str) else self._source()
        found = source if name == "pattern" else getattr(re.compile(source), name)
        setattr(self, name, found)  # from now on as quick as that of the pattern itself
        return found


def lazy_pattern(source: str | Callable[[], str]) -> re.Pattern[str]:
    """Compile a pattern on first use, as most processes need only some of them.

    A callable, as for a pattern built from a word list, is called then.
    """
    return cast("re.Pattern[str]", _Lazy(source))


class Sign(NamedTuple):
    """A feature that shows how a text asks."""

    cues: frozenset[str]
    """Words at least one of which every English text with this feature contains."""
    pattern: re.Pattern[str]

    def is_in(self, folded: str, words: Set[str] | None) -> bool:
        """Return whether a text has the feature. `words` are those of an ASCII text, for a quick rejection."""
        return (words is None or not self.cues.isdisjoint(words)) and self.pattern.search(folded) is not None


def sign(cues: str, pattern: str) -> Sign:
    """Make a sign; `cues` are words separated by spaces."""
    return Sign(frozenset(cues.split()), lazy_pattern(pattern))


# -- words in every match -----------------------------------------------------------------------------

Needles = frozenset[str]

_NEEDLES_MAX = 32
_LONG = 4
"""Length from which a needle is rare enough: beyond it, fewer needles beat longer ones."""
_WIDTHLESS = frozenset("bBAZ")
_REPEATED = re.compile(r"([*+?]|\{(\d*)(?:,\d*)?\})[?+]?")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_OPENING = re.compile(r"\((\?:|\?=|\?!|\?<=|\?<!|\?P<\w+>)?")


def needles_of(source: str) -> Needles | None:
    """Return words one of which occurs in every match of a pattern; None where none can be derived.

    Searching for a few words takes a fraction of the time of a pattern. The pattern is one of ours, without flags, back
    references and atomic groups.
    """
    found, at = _alternatives(source, 0)
    if at != len(source):
        raise ValueError(f"not a pattern that is understood here, from {at} on: {source!r:.200}")
    return None if found is None else _shortest(found)


def needle_sets_of(source: str) -> tuple[Needles, ...]:
    """Return sets of words, from each of which every match of a pattern contains one: those of `needles_of`, and where
    the pattern is not a choice of several, the longest of its other required words.
    """
    told, at = _told(source, 0)
    if at < len(source):
        best = needles_of(source)
        return () if best is None else (best,)
    sets = [_shortest(each) for each in told if len(each) <= _NEEDLES_MAX]
    best = _best(sets)
    if best is None:
        return ()
    long = [each for each in sets if each != best and sum(map(len, each)) >= _LONG * len(each)]
    return best, *sorted(long, key=lambda each: (-sum(map(len, each)) / len(each), sorted(each)))[:1]


def _shortest(found: Needles) -> Needles:
    """Drop needles that contain another one."""
    return frozenset(word for word in found if not any(word != other and other in word for other in found))


def _alternatives(source: str, at: int) -> tuple[Needles | None, int]:
    found, at = _sequence(source, at)
    while source[at : at + 1] == "|":
        other, at = _sequence(source, at + 1)
        found = None if found is None or other is None else found | other
    return (None if found is None or len(found) > _NEEDLES_MAX else found), at


def _sequence(source: str, at: int) -> tuple[Needles | None, int]:
    """Return the best needles of a sequence, and its end."""
    told, at = _told(source, at)
    return _best(told), at


def _told(source: str, at: int) -> tuple[list[Needles], int]:
    """Return the needles of each part of a sequence, and its end."""
    told: list[Needles] = []
    run = ""
    while at < len(source) and source[at] not in "|)":
        sign, at, inner, is_widthless = _part(source, at)
        repeated = None if is_widthless else _REPEATED.match(source, at)
        at = repeated.end() if repeated is not None else at
        may_lack = repeated is not None and (repeated[1] in "*?" or repeated[2] in ("", "0"))
        if inner is not None and not may_lack:
            told.append(inner)
        if is_widthless:
            continue
        if sign is not None and not may_lack:
            run += sign
        if (sign is None or repeated is not None) and run:
            told.append(frozenset((run,)))
            run = ""
    if run:
        told.append(frozenset((run,)))
    return told, at


def _part(source: str, at: int) -> tuple[str | None, int, Needles | None, bool]:
    """Return the next part: its character, its end, the needles of its matches, and whether it is empty."""
    sign = source[at]
    if sign == "(":
        opening = cast("re.Match[str]", _OPENING.match(source, at))
        inner, end = _alternatives(source, opening.end())
        kind = opening[1] or ""
        return None, end + 1, None if "!" in kind else inner, kind in ("?=", "?!", "?<=", "?<!")
    if sign == "[":
        held = cast("re.Match[str]", _CLASS.match(source, at))
        return held[0][1] if len(held[0]) == 3 else None, held.end(), None, False
    if sign == "\\":
        escaped = source[at + 1]
        is_itself = not escaped.isalnum()
        return escaped if is_itself else None, at + 2, None, escaped in _WIDTHLESS
    return None if sign == "." else sign, at + 1, None, sign in "^$"


def _best(told: Iterable[Needles]) -> Needles | None:
    """Rank needles: long ones before short ones, then few, then the longest."""

    def worth(needles: Needles) -> tuple[int, int, int, list[str]]:
        shortest = min(map(len, needles))
        return min(_LONG, shortest), -len(needles), shortest, sorted(needles)

    return max(told, key=worth, default=None)


# -- characters -----------------------------------------------------------------------------------------


_ACCENTED = lazy_pattern("[\u00c0-\u024f\u0300-\u036f\u0386-\u03ce\u1e00-\u1fff]+")
"""Accents, and letters of Latin and Greek that may have some. Cyrillic is excluded: й is a different letter from и."""


def plain_letters(text: str) -> str:
    """Return composed text (NFC) without the accents on its Latin and Greek letters."""
    return text if text.isascii() else _ACCENTED.sub(lambda match: _plain(match[0]), text)


def _plain(letters: str) -> str:
    return "".join([_plain_letter(letter) for letter in letters])


@cache
def _plain_letter(letter: str) -> str:
    return "".join([part for part in unicodedata.normalize("NFD", letter) if not "\u0300" <= part <= "\u036f"])


_OTHER_DIGIT = lazy_pattern(r"[^\D0-9]")


def ascii_digits(text: str) -> str:
    """Replace the digits of every script by 0 to 9."""
    return _OTHER_DIGIT.sub(lambda match: str(unicodedata.digit(match[0])), text)


_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_MYRIADS, _MYRIAD = "万萬", 10**4
_NUMERAL = lazy_pattern("[零〇一二三四五六七八九两兩十][零〇一二三四五六七八九两兩十百千万萬亿億]{1,30}")
_YEAR_SIGNS = 4


def numbers_in_han(run: str) -> list[str]:
    """Replace numbers written with several Chinese numerals: 十二 is 12, 三百 is 300, 二〇一九 is 2019.

    A single character is too often part of another word, and two adjacent digits mean an approximate number.
    """
    found = []
    for numeral in _NUMERAL.findall(run):
        if all(sign in _DIGITS for sign in numeral):
            if len(numeral) >= _YEAR_SIGNS:
                found.append("".join([str(_DIGITS[sign]) for sign in numeral]).lstrip("0") or "0")
        else:
            found.append(str(_value(numeral)))
    return found


def _value(numeral: str) -> int:
    """Evaluate: a unit multiplies the digit before it, and 万 or 亿 everything since the last greater one."""
    whole = myriads = part = digit = 0
    for sign in numeral:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign in _UNITS:
            part, digit = part + (digit or 1) * _UNITS[sign], 0
        elif sign in _MYRIADS:
            myriads, part, digit = myriads + (part + digit) * _MYRIAD, 0, 0
        else:
            whole, myriads, part, digit = whole + (myriads + part + digit) * _MYRIAD**2, 0, 0, 0
    return whole + myriads + part + digit


# -- work -----------------------------------------------------------------------------------------------


_PIECE_END = re.compile(r"[.!?;。！？；\n]++")
"""End of a sentence, a clause or a line."""


def analysed_chars(text: str, chars_max: int, pieces_max: int) -> int:
    """Return how many characters of a text are analysed: all of a usual one."""
    reach = min(len(text), chars_max)
    if reach <= pieces_max:  # a piece has a character at least
        return reach
    for number, end in enumerate(_PIECE_END.finditer(text, 0, reach), 1):
        if number == pieces_max:
            return end.end()
    return reach
