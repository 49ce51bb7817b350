"""The forms in which people lay down, promise, decide and take back, as patterns over one plain sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern, needles_of
from muniment.core.text.word_lists import WordList, forms_in

__all__ = ["has_form", "plain_sentence", "strength_of"]

_WORDS = WordList(__package__, "agreements.txt")
_NAMED = re.compile(r"<(\w[\w ]*)>")
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})


class _Form(NamedTuple):
    pattern: re.Pattern[str]
    strength: int
    needles: tuple[str, ...] | None
    """One of these stands in every sentence that has the form; None where they cannot be told."""

    def is_in(self, plain: str) -> bool:
        if self.needles is not None and not any(map(plain.__contains__, self.needles)):
            return False
        return self.pattern.search(plain) is not None


def plain_sentence(sentence: str) -> str:
    """A sentence as the forms are written: lowered, with straight quotes."""
    return sentence.translate(_STRAIGHT).lower()


def has_form(section: str, plain: str) -> bool:
    """Does a plain sentence have one of the forms of a section?"""
    return any(form.is_in(plain) for form in _unweighed(section, plain.isascii()))


def strength_of(section: str, plain: str) -> int:
    """How strongly a plain sentence says what a section is about, by its strongest form; 0 where it does not."""
    for form in _weighed(section, plain.isascii()):
        if form.is_in(plain):
            return form.strength
    return 0


@cache
def _weighed(section: str, is_ascii: bool) -> tuple[_Form, ...]:
    """The forms of a section whose entries begin with a strength, the strongest first."""
    read = (entry.replace("\n", "").split(" ", 1) for entry in _WORDS.entries(section))
    forms = _possible(((pattern, int(strength)) for strength, pattern in read), is_ascii)
    return tuple(sorted(forms, key=lambda form: -form.strength))


@cache
def _unweighed(section: str, is_ascii: bool) -> tuple[_Form, ...]:
    """The forms of any other section."""
    return tuple(_possible(((form, 0) for entry in _WORDS.entries(section) for form in forms_in(entry)), is_ascii))


def _possible(given: Iterable[tuple[str, int]], is_ascii: bool) -> Iterator[_Form]:
    """Forms of these patterns and strengths; where a sentence is in ASCII alone, those that it can have."""
    for pattern, strength in given:
        source = _spelled(pattern)
        needles = needles_of(source)
        if needles is not None and is_ascii:
            needles = frozenset(filter(str.isascii, needles))
            if not needles:
                continue
        yield _Form(lazy_pattern(source), strength, None if needles is None else tuple(sorted(needles)))


def _spelled(pattern: str) -> str:
    """A pattern with the alternatives of the sections that it names in their place."""
    while found := _NAMED.search(pattern):
        pattern = f"{pattern[: found.start()]}{_WORDS.either(found[1])}{pattern[found.end() :]}"
    return pattern
