"""First names: how they are spelled, what else somebody of a name is called, and when a word is a slip for a name.

`name_key` is what spellings of one name have in common and is indexed beside the name; `called` knows nicknames and
spellings (`data/names.txt`), in the letters that `latin_names.plain` writes; `is_slip` tells a misspelling from another
name. Everything is linear in the length of what it reads, and names are short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice

from muniment.core.limits import remembered
from muniment.core.text.analyzer import MONTHS, stop_words
from muniment.core.text.latin_names import plain
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = [
    "NAME",
    "also_called",
    "called",
    "capitalised",
    "is_abjad",
    "is_everyday_word",
    "is_name",
    "is_slip",
    "name_key",
    "name_terms",
    "without_vowels",
]

NAME = "#n"
"""What the terms of names begin with; the rest is their `name_key`."""
NAME_TERMS_MAX = 256
"""Of a longer list of names the first: a register is not a turn that tells of people."""

_LISTS = WordList(__package__, "names.txt")

_ABJAD = lazy_pattern(r"[\u05d0-\u05ea\u0620-\u064a\u067e\u0686\u0698\u06a9\u06af]")


# -- spelling -------------------------------------------------------------------------------------------


def is_abjad(word: str) -> bool:
    """Is it written without its vowels?"""
    return not word.isascii() and _ABJAD.search(word) is not None


_SOUNDS = lazy_pattern(r"sch|sh|ph|ck|ch|th|(?<=[bcdfgjklmnpqrstvwxz])h|h$|[cqxzw]")
_SPOKEN = {"sch": "s", "sh": "s", "ph": "f", "ck": "k", "ch": "k", "th": "t", "h": "", "c": "k", "q": "k", "x": "ks"}
_SPOKEN |= {"z": "s", "w": "v"}
_SOFT_C = re.compile("c(?=[eiy])")
_DOUBLED = re.compile(r"(.)\1+")
_VOWELS = re.compile("[aeiouy]+")


@remembered(4096)
def name_key(word: str) -> str:
    """What the spellings of a name have in common: its consonants as they sound, where there are vowels between them.

    Empty for a name with fewer than three consonants: too many names would share it.
    """
    spelled = plain(word)
    sounds = _SOUNDS.sub(lambda match: _SPOKEN[match[0]], _SOFT_C.sub("s", spelled))
    key = _VOWELS.sub("a", _DOUBLED.sub(r"\1", sounds)).rstrip("a")
    return key if len(key) - key.count("a") >= 3 else ""


@remembered(1024)
def without_vowels(spelled: str) -> str:
    """The consonants of a plain name, doubled ones once."""
    return _DOUBLED.sub(r"\1", _VOWELS.sub("", _DOUBLED.sub(r"\1", spelled)))


# -- what is a name ---------------------------------------------------------------------------------------


@cache
def _called() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, forms in _LISTS.pairs("forms"):
        for form in (name, *forms.split()):
            found.setdefault(form, set()).add(name)
    return {form: frozenset(names) for form, names in found.items()}


@cache
def _names() -> frozenset[str]:
    return frozenset(_called()) | frozenset(_LISTS.words("names"))


@cache
def _everyday() -> frozenset[str]:
    return frozenset(_LISTS.words("words"))


def called(spelled: str) -> frozenset[str]:
    """The names of those who may be called so, by a plain form. Two forms may be one person's where they share one."""
    return _called().get(spelled, frozenset())


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    return {name: (name, *forms.split()) for name, forms in _LISTS.pairs("forms")}


def also_called(spelled: str) -> list[str]:
    """What else somebody who is called so may be called: plain forms, in order."""
    names = _forms()
    return sorted({form for name in called(spelled) for form in names[name]} - {spelled} - _everyday())


def is_name(spelled: str) -> bool:
    """Is it a name that is known, in plain letters?"""
    return spelled in _names()


def is_everyday_word(spelled: str) -> bool:
    """Is it a name that is a word as well: "will", "grace"?"""
    return spelled in _everyday()


# -- slips ------------------------------------------------------------------------------------------------

_SLIP_MIN, _TWO_SLIPS_MIN = 4, 8
"""A name of so many letters may have one letter wrong, of so many two."""
_SOUND_ALIKE = str.maketrans("czyq", "ksjk")
"""Letters that a name may begin with for each other."""


def is_slip(spelled: str, name: str) -> bool:
    """Is one plain form a misspelling of the other: a letter or two wrong, left out, put in or changed about?

    Not where it is a name of its own, nor where the end makes another name of it: Mario is no slip for Maria. A letter
    that is doubled or not is none.
    """
    if is_name(spelled) or spelled[:1].translate(_SOUND_ALIKE) != name[:1].translate(_SOUND_ALIKE):
        return False
    left, right = _DOUBLED.sub(r"\1", spelled), _DOUBLED.sub(r"\1", name)
    if left == right:
        return spelled != name
    if min(len(left), len(right)) < _SLIP_MIN or _ends_otherwise(left, right):
        return False
    return _are_near(left, right, 1 if len(right) < _TWO_SLIPS_MIN else 2)


def _ends_otherwise(left: str, right: str) -> bool:
    """Do two forms differ only in an end that tells a woman's name from a man's?"""
    short, long = sorted((left, right), key=len)
    if long.startswith(short):
        return long[len(short) :] != "e"
    return left[:-1] == right[:-1] and left[-1] in "aeiou" and right[-1] in "aeiou"


def _are_near(left: str, right: str, most: int) -> bool:
    """Are two words so few edits apart, of which changing two neighbours about is one?"""
    if abs(len(left) - len(right)) > most:
        return False
    before: list[int] = []
    last = list(range(len(right) + 1))
    for row, one in enumerate(left, 1):
        this = [row]
        for column, other in enumerate(right, 1):
            cost = min(last[column] + 1, this[-1] + 1, last[column - 1] + (one != other))
            if row > 1 and column > 1 and one == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            this.append(cost)
        if min(this) > most:
            return False
        before, last = last, this
    return last[-1] <= most


# -- names in a text ----------------------------------------------------------------------------------------

_CAPITALISED = lazy_pattern(r"[^\W\d_a-z][^\W\d_A-Z]{3,31}(?!\w)")
_ASCII_CAPITALISED = re.compile("[A-Z][a-z]{3,31}(?![A-Za-z0-9_])")
_WEEKDAYS = frozenset(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
_WORD_BEFORE_MAX = 34


def capitalised(text: str) -> Iterator[tuple[str, bool]]:
    """The words that begin with a capital and may be names, and whether each stands in running text, where a capital
    tells something: behind a word without one or a small word, or behind another name that stands there.
    """
    end = -2
    for match in (_ASCII_CAPITALISED if text.isascii() else _CAPITALISED).finditer(text):
        word, start = match[0], match.start()
        before = text[start - 1 : start]
        if before.isalnum() or not word[0].isupper() or word.casefold() in _no_names():
            continue
        is_told = start == end + 1 or (before == " " and _is_small(text, start - 1))
        if is_told:
            end = match.end()
        yield word, is_told


def _is_small(text: str, end: int) -> bool:
    """Is the word that ends there without a capital or a small one, and does no sentence end with it?"""
    start = max(text.rfind(" ", max(0, end - _WORD_BEFORE_MAX), end) + 1, end - _WORD_BEFORE_MAX, 0)
    word = text[start:end]
    return (word[:1].islower() and word[-1] not in ".!?:") or word.casefold() in stop_words("english")


@cache
def _no_names() -> frozenset[str]:
    """Words that are no names though they are written with a capital."""
    return stop_words("english") | MONTHS.keys() | _WEEKDAYS


def name_terms(text: str) -> list[str]:
    """The terms that the names in a text are found by however they are spelled, each once.

    A name is a word with a capital in running text; elsewhere, where any word may have one, what is known as a name.
    """
    words = dict.fromkeys([word for word, is_told in capitalised(text) if is_told or is_name(plain(word))])
    keys = [name_key(word) for word in islice(words, NAME_TERMS_MAX)]
    return list(dict.fromkeys([NAME + key for key in keys if key]))
