"""The value of a statement: the name, the noun or the day that stands behind the words that state it."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from muniment.core.text.analyzer import stem
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.stated.statement_table import DATE, Reading
from muniment.core.text.word_lists import WordList

__all__ = ["Value", "read_value", "value_words", "words_in"]

VALUE_CHARS_MAX = 80


class Value(NamedTuple):
    """What is said of a key."""

    text: str
    words: frozenset[str] | None
    """Stems; None where nothing in particular is named: "I sold my car"."""
    is_named: bool
    end: int


_WORD = lazy_pattern(r"[^\W_]+(?:['’&-][^\W_]+)*|&")
_PLAIN_WORD = lazy_pattern(r"[^\W_]+")
_ANY_CASE = lazy_pattern("[A-ZÀ-ÖØ-Þ]")
_DATE = lazy_pattern(DATE)
_MONTH_DAY = lazy_pattern(r"(?i)(?P<month>[a-z]{3})[a-z]*|(?P<day>\d{1,2})")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905 - a list of words
_LISTS = WordList(__package__, "statements.txt")
_TITLES = ("Dr", "Mr", "Mrs", "Ms", "Prof", "St")
_SKIPPED_MAX = 6
"""So many words may stand before the name of a place: "a small flat in the old part of"."""


@cache
def words_in(section: str) -> frozenset[str]:
    """The words of a section of `data/statements.txt`."""
    return frozenset(_LISTS.words(section))


@cache
def _generic() -> frozenset[str]:
    return frozenset(map(stem, words_in("generic")))


def read_value(text: str, reading: Reading, match: re.Match[str], end: int) -> Value | None:
    """The value of a match, before the end of its sentence; None where the statement is none without one."""
    at = match.end()
    match reading:
        case "none":
            return Value("", None, False, at)
        case "group":
            words = match.groupdict().get("value")
            return Value("", None, False, at) if not words else _of(words, match.end("value"), is_named=True)
        case "day":
            return _day(text, at)
        case "place":
            return _place(text, at, end)
        case "name":
            return _name(text, at, end)
        case "may be named":
            return _name(text, at, end) or Value("", None, False, at)
        case "thing":
            return _name(text, at, end) or _noun(text, at, end)
        case "words":
            return _noun(text, at, end, is_named=True)


def value_words(text: str) -> frozenset[str]:
    """The words that a value is known by, whatever stands around them."""
    found = (word.casefold() for word in _PLAIN_WORD.findall(text))
    return frozenset(stem(word) for word in found if word not in words_in("articles"))


def _of(text: str, end: int, *, is_named: bool) -> Value:
    words = value_words(text) - _generic()
    return Value(text, words or None, is_named and bool(words), end)


def _day(text: str, at: int) -> Value | None:
    found = _DATE.match(text, at)
    if found is None:
        return None
    if found[0][:4].isdigit():
        return Value(found[0], frozenset((found[0][5:],)), True, found.end())
    parts = {name: part for each in _MONTH_DAY.finditer(found[0]) for name, part in each.groupdict().items() if part}
    month = _MONTHS.index(parts["month"].casefold()) + 1 if parts.get("month", "").casefold() in _MONTHS else 0
    return Value(found[0], frozenset((f"{month:02d}-{int(parts['day']):02d}",)), True, found.end())


def _tokens(text: str, at: int, end: int) -> list[re.Match[str]]:
    """The words of the clause that begins there: one blank apart, so no sign stands between them."""
    found: list[re.Match[str]] = []
    for token in _WORD.finditer(text, at, min(end, at + VALUE_CHARS_MAX)):
        gap = text[found[-1].end() if found else at : token.start()]
        if gap not in ("", " ", "\xa0") and not (gap == ". " and found[-1][0] in _TITLES):
            break
        found.append(token)
    return found


def _name(text: str, at: int, end: int, *, region: bool = False) -> Value | None:
    """The name that begins there, an article aside: `Acme`, `the Red Cross`, `Rio de Janeiro`; with a region that
    stands behind it: `Portland, Oregon`.
    """
    tokens = _tokens(text, at, end)
    while tokens and tokens[0][0].casefold() in words_in("articles"):
        tokens = tokens[1:]
    kept: list[re.Match[str]] = []
    for token in tokens:
        word = token[0].casefold()
        is_capital = token[0][0].isupper()
        if word in words_in("value ends") or not (
            is_capital or token[0].isdigit() or (kept and word in words_in("links"))
        ):
            break
        kept.append(token)
    while kept and kept[-1][0].casefold() in words_in("links"):
        kept.pop()
    if not kept or not kept[0][0][0].isupper():
        return None
    stop = kept[-1].end()
    if region:
        more = re.compile(r", ([A-Z][\w-]+(?: [A-Z][\w-]+)?)(?=[\s,.!;]|$)").match(text, stop, end)
        if (
            more is not None
            and more[1].casefold() not in words_in("value ends")
            and not more[1].startswith(("I'", "My", "We"))
        ):
            stop = more.end()
    said = re.sub(r"['’]s$", "", text[kept[0].start() : stop])
    return Value(said, value_words(said) or None, True, stop)


def _noun(text: str, at: int, end: int, *, is_named: bool = False) -> Value | None:
    """Up to four words that begin there: `a law firm`."""
    tokens = _tokens(text, at, end)
    while tokens and tokens[0][0].casefold() in words_in("articles"):
        tokens = tokens[1:]
    kept: list[re.Match[str]] = []
    for token in tokens[:4]:
        if token[0].casefold() in words_in("value ends"):
            break
        kept.append(token)
    return _of(text[kept[0].start() : kept[-1].end()], kept[-1].end(), is_named=is_named) if kept else None


def _place(text: str, at: int, end: int) -> Value | None:
    """A name, or the first name behind what kind of place it is: "a small flat in the north of Lisbon"."""
    found = _name(text, at, end, region=True)
    if found is not None:
        return found
    tokens = _tokens(text, at, end)
    if not tokens:
        return None
    for token in tokens[1 : _SKIPPED_MAX + 1]:
        if token[0][0].isupper():
            return _name(text, token.start(), end, region=True)
        if token[0].casefold() in words_in("value ends") - {"in", "of", "near", "on"}:
            break
    first = tokens[0][0].casefold()
    if (
        _ANY_CASE.search(text) is None
        and first not in words_in("articles")
        and first not in words_in("kinds of place")
        and first not in words_in("value ends")
    ):
        return _noun(text, at, end, is_named=True)  # somebody who writes without capitals
    return _noun(text, at, end)
