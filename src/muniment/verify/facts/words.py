"""A text as a row of words, each with its place, a form that can be compared, and what sort of word it is.

English words are stemmed; numbers have one form however they are written ("1,100", "five million", "5m"); months and
weekdays are dates; runs of Han and kana are cut into pairs of signs, and Hangul words lose their particle. Total and
pure: any string gives a row of words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.analyzer import MONTHS, korean_particles, stem, stop_words
from muniment.core.text.patterns import lazy_pattern
from muniment.verify.facts.lexicon import TURNS, WEIGHTY_STOP_WORDS, negates
from muniment.verify.facts.numerals import (
    ORDINALS,
    chinese_number,
    is_spelled,
    korean_number,
    read_number,
    spelled_number,
)

__all__ = ["Kind", "Word", "is_cjk", "is_hangul", "read_words"]

Kind = Literal["word", "name", "number", "date", "small"]


class Word(NamedTuple):
    """One word: where it stands, the form it is compared by, its sort; `small` words carry no content."""

    text: str
    start: int
    end: int
    key: str
    kind: Kind


_word: Callable[[tuple[str, int, int, str, Kind]], Word] = partial(tuple.__new__, Word)
"""A word of its parts. There are so many of them that a step in between is felt."""
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〇\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff"
_HANGUL = "\uac00-\ud7a3"
_TOKEN = lazy_pattern(
    rf"[{_HAN}]+|[{_HANGUL}]+|\d{{4}}-\d{{2}}-\d{{2}}(?!\d)|(?:[A-Z]\.){{2,}}[A-Z]?|[A-Z]\.[A-Z]\b|[A-Z]+-?\d+\b|\d[A-Z]\b|\d+(?:[.,:]\d+)*"
    rf"|[^\W\d_{_HAN}{_HANGUL}]+(?:['’](?:s|t|re|ve|ll|d|m)\b)?"
)
_ISO = lazy_pattern(r"(\d{4})-(\d{2})-(\d{2})")
_WORD_CHARS_MAX = 64
"""Longer runs are compared by their beginning: they are keys, hashes and noise."""
_AMERICA = frozenset(("US", "U.S", "U.S.", "USA", "U.S.A", "U.S.A."))
_QUARTER = lazy_pattern(r"q([1-4])|([1-4])q")
_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
_WEEKDAYS = {name: f"#w{number}" for number, name in enumerate(_WEEKDAY_NAMES.split())}
_SMALL = (stop_words("english") - WEIGHTY_STOP_WORDS) | TURNS


def read_words(text: str) -> list[Word]:
    """The words of a text in reading order. Whether a word is a name is seen by its capital alone."""
    found = list(_TOKEN.finditer(text))
    words: list[Word] = []
    at = 0
    while at < len(found):
        token = found[at]
        body = token[0]
        start, end = token.span()
        plain = _plain_key(body[:_WORD_CHARS_MAX])
        if plain is not None:
            words.append(_word((body, start, end, *plain)))
            at += 1
            continue
        number = None
        iso = _ISO.fullmatch(body)
        if iso and 1 <= int(iso[2]) <= 12:
            words.extend(_date(iso, start))
        elif body[0].isdecimal() and body[-1].isdecimal():
            number = read_number(text, found, at)
        elif is_cjk(body[0]):
            after = text[end : end + 2].strip()[:1]
            words.extend([_hangul(body, start, after)] if is_hangul(body[0]) else _han(body, start))
        else:
            number = spelled_number(found, at)
            if number is None:
                words.append(Word(body, start, end, *_latin_key(body[:_WORD_CHARS_MAX])))
        if number is not None:
            kind: Kind = "date" if number.key[0] == "#" else "number"
            words.append(Word(text[start : number.end], start, number.end, number.key, kind))
        at += number.tokens if number is not None else 1
    return words


def _date(iso: re.Match[str], start: int) -> Iterator[Word]:
    """2023-05-07 has the words of "7 May 2023"."""
    for part, key in ((1, iso[1]), (2, f"#m{int(iso[2])}"), (3, str(int(iso[3])))):
        left, right = iso.span(part)
        yield Word(iso[part], start + left, start + right, key, "date" if part == 2 else "number")


def is_cjk(char: str) -> bool:
    """Is it a sign of Chinese, Japanese or Korean?"""
    return is_hangul(char) or _is_han(char)


def is_hangul(char: str) -> bool:
    return "\uac00" <= char <= "\ud7a3"


def _is_han(char: str) -> bool:
    return (
        "\u3041" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff" or char in "々〇"
    )


@remembered(1 << 14)
def _plain_key(body: str) -> tuple[str, Kind] | None:
    """The key and kind of a word that is read by itself; None of a number, and of what is cut by its signs."""
    if body[0].isdecimal() or is_cjk(body[0]) or is_spelled(body):
        return None
    return _latin_key(body)


def _latin_key(body: str) -> tuple[str, Kind]:
    if body in _AMERICA:
        return "usa", "name"
    folded = body.casefold().replace("’", "'").replace(".", "")
    if not folded.isascii():
        folded = "".join(char for char in unicodedata.normalize("NFKD", folded) if not "\u0300" <= char <= "\u036f")
    if folded.endswith("n't") or folded in ("nt", "not", "cannot"):
        return "not", "small"
    bare = folded.split("'")[0]
    quarter = _QUARTER.fullmatch(bare)
    if quarter:
        return f"{quarter[1] or quarter[2]}th", "number"
    if folded in ORDINALS:
        return ORDINALS[folded], "number"
    if bare in _WEEKDAYS or bare[:-1] in _WEEKDAYS:
        return _WEEKDAYS.get(bare) or _WEEKDAYS[bare[:-1]], "date"
    if bare in MONTHS and body[:1].isupper():
        return f"#m{MONTHS[bare]}", "date"
    if bare in _SMALL or not bare:
        return bare or folded, "small"
    if body[0].isupper():
        return stem(bare), "name"
    return stem(bare), "word"


def _han(run: str, start: int) -> Iterator[Word]:
    """Numbers with a counter behind them, and pairs of neighbouring signs; a sign alone is itself."""
    at = 0
    stops = stop_words("chinese")
    while at < len(run):
        number = chinese_number(run, at)
        if number is not None:
            yield Word(run[at : number.end], start + at, start + number.end, number.key, "number")
            at = number.end
            continue
        pair = run[at : at + (1 if chinese_number(run, at + 1) else 2)]
        small = pair in stops or any(sign in stops for sign in pair)
        yield Word(pair, start + at, start + at + len(pair), pair, "small" if small else "word")
        at += 1
        if at == len(run) - 1:
            break


def _hangul(run: str, start: int, after: str) -> Word:
    """A word without its particle; a number before or with what it counts."""
    root = run
    for particle in korean_particles():
        if run.endswith(particle) and len(run) - len(particle) > 1:
            root = run[: -len(particle)]
            break
    number = korean_number(root, after)
    if number is not None:
        return Word(run, start, start + len(run), number, "number")
    small = run in stop_words("korean") or negates(run, root)
    return Word(run, start, start + len(run), root, "small" if small else "word")
