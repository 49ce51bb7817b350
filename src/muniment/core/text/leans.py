"""Does a turn lean on what was said before it? "Yes, that one." says little to who has not heard what it answers.

Told by small words in English, Spanish, German, French, Chinese and Korean (`data/leans.txt`), by where they stand
and by how much else there is. Only the beginning of a turn is read, so that it costs the same for any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList, forms_in

__all__ = ["LEANS", "WHOLLY", "leans"]

LEANS = "#lean"
"""The term of a turn that leans on what was said before it."""
WHOLLY = 2
"""How often that term counts where the turn is little else."""

_CHARS_READ = 400
_SHORT_WORDS = 12
"""So many words are a reply; a longer turn that begins like one goes on to say something of its own."""
_FRAGMENT_WORDS = 4
_PERSON_WORDS = 16
"""A pronoun further on mostly stands for what the turn itself has named."""
_SHORT_SIGNS = 14
"""What `_SHORT_WORDS` is in Chinese, and in Korean without blanks."""

_LISTS = WordList(__package__, "leans.txt")
_WORD = lazy_pattern(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+")
_ASCII_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*|[0-9]+")
_CJK = lazy_pattern(r"[\u4e00-\u9fff\uac00-\ud7a3]")
_HANGUL = lazy_pattern(r"[\uac00-\ud7a3]")
_SIGN = lazy_pattern(r"[^\W_]")


class _Small(NamedTuple):
    """The small words of the languages that part words by blanks; the file says what each section is."""

    passed_over: frozenset[str]
    replies: frozenset[str]
    joining: frozenset[str]
    pointing: frozenset[str]
    persons: frozenset[str]
    fragments: frozenset[str]
    alone: frozenset[str]
    subjects: frozenset[str]
    kin: frozenset[str]
    asking: frozenset[str]
    phrases: dict[str, tuple[tuple[str, ...], ...]]
    """By their first word."""


@cache
def _small() -> _Small:
    phrases: dict[str, tuple[tuple[str, ...], ...]] = {}
    for phrase in [tuple(form.split()) for entry in _LISTS.entries("phrases") for form in forms_in(entry)]:
        phrases[phrase[0]] = (*phrases.get(phrase[0], ()), phrase)

    def words(section: str) -> frozenset[str]:
        return frozenset(_LISTS.words(section))

    return _Small(
        passed_over=words("passed over"),
        replies=words("replies"),
        joining=words("joining"),
        pointing=words("pointing"),
        persons=words("persons"),
        fragments=words("fragments"),
        alone=words("alone"),
        subjects=words("subjects"),
        kin=words("kin"),
        asking=words("asking"),
        phrases=phrases,
    )


@cache
def _cjk(section: str) -> re.Pattern[str]:
    return re.compile("|".join(_LISTS.words(section)))


def leans(text: str) -> int:
    """0 for a turn that stands by itself, 1 where its beginning leans on what came before it, `WHOLLY` where it is
    little but that: a reply, an echo, a fragment, a pronoun and what is said of it.
    """
    head = text[:_CHARS_READ].strip()
    if not head:
        return 0
    if head.isascii():
        words = _ASCII_WORD.findall(head.lower())
    elif _CJK.search(head[:_SHORT_SIGNS]):
        return _leans_cjk(head, len(text) > _CHARS_READ)
    else:
        words = [word.casefold().replace("’", "'") for word in _WORD.findall(head)]
    small = _small()
    start = next((place for place, word in enumerate(words) if word not in small.passed_over), len(words))
    said = words[start:]
    if not said:
        return WHOLLY if words and words[0] not in small.alone else 0
    is_short = len(said) <= _SHORT_WORDS
    if _begins_leaning(said, small, asks=head.endswith("?")):
        return WHOLLY if is_short else 1
    if len(said) <= _FRAGMENT_WORDS and _is_fragment(said, small):
        return WHOLLY
    if small.persons.isdisjoint(said[:_PERSON_WORDS]):
        return 0
    written = _WORD.findall(head)
    return 1 if _stands_for_a_person(written[start:], said, small) else 0


def _begins_leaning(said: Sequence[str], small: _Small, *, asks: bool) -> bool:
    first = said[0]
    if any(tuple(said[: len(phrase)]) == phrase for phrase in small.phrases.get(first, ())):
        return True
    if first in small.asking:  # "Which one?" leans, "Where do you live?" does not
        return len(said) < _ASKED_WHOLE and asks
    if first in small.pointing:
        brings_up = len(said) > 2 and said[1] in _IS and (first == "there" or (first == "this" and said[2] in _OWNERS))
        return not brings_up
    return first in small.replies or first in small.joining


_ASKED_WHOLE = 4
_IS = frozenset(("is", "was", "are", "were"))
_OWNERS = frozenset(("my", "our", "a", "an"))
"""Whoever says "this is my …" or "there is a …" brings up something that was not spoken of."""


def _is_fragment(said: Sequence[str], small: _Small) -> bool:
    """A few words that make no sentence: what they are of was said before."""
    if said[0] in small.alone or (said[0] in small.subjects and len(said) > 1):
        return False
    return len(said) < 3 or said[0] in small.fragments or said[0].isdecimal()


def _stands_for_a_person(written: Sequence[str], said: Sequence[str], small: _Small) -> bool:
    """Is there a "he" near the beginning, and nobody before it whom the turn itself has named?"""
    for place, word in enumerate(said[:_PERSON_WORDS]):
        if word in small.persons:
            return True
        if word in small.kin or (place and written[place][0].isupper() and word not in small.subjects):
            return False
    return False


def _leans_cjk(head: str, goes_on: bool) -> int:
    is_korean = _HANGUL.search(head[:_SHORT_SIGNS]) is not None
    language = "korean" if is_korean else "chinese"
    signs = len(_SIGN.findall(head))
    is_short = not goes_on and signs <= _SHORT_SIGNS
    first = _SIGN.search(head)
    if first is not None and _cjk(language).match(head, first.start()):
        return WHOLLY if is_short else 1
    if signs <= _FRAGMENT_WORDS - (0 if is_korean else 1):
        return WHOLLY
    return 1 if _cjk(f"{language} persons").search(head[: 2 * _SHORT_SIGNS]) else 0
