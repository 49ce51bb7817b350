"""The forms in which people lay down, promise, decide and take back, as patterns over one plain sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
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
    needles: frozenset[str] | None
    """One of these stands in every sentence that has the form; None where they cannot be told."""


class _Section:
    """The forms of a section in order, by what a sentence must hold to have one: most hold none of it."""

    def __init__(self, forms: Iterable[_Form]) -> None:
        self._forms = tuple(forms)
        self._untold = tuple([place for place, form in enumerate(self._forms) if form.needles is None])
        told: dict[str, tuple[int, ...]] = {}
        for place, form in enumerate(self._forms):
            for needle in sorted(form.needles or ()):
                told[needle] = (*told.get(needle, ()), place)
        self._places = told

    def first_in(self, plain: str) -> _Form | None:
        """The first of the forms that a plain sentence has."""
        held = [places for needle, places in self._places.items() if needle in plain]
        for place in sorted({*self._untold, *chain.from_iterable(held)}) if held else self._untold:
            if self._forms[place].pattern.search(plain) is not None:
                return self._forms[place]
        return None


def plain_sentence(sentence: str) -> str:
    """A sentence as the forms are written: lowered, with straight quotes."""
    return sentence.translate(_STRAIGHT).lower()


def has_form(section: str, plain: str) -> bool:
    """Does a plain sentence have one of the forms of a section?"""
    return _unweighed(section, plain.isascii()).first_in(plain) is not None


def strength_of(section: str, plain: str) -> int:
    """How strongly a plain sentence says what a section is about, by its strongest form; 0 where it does not."""
    form = _weighed(section, plain.isascii()).first_in(plain)
    return 0 if form is None else form.strength


@cache
def _weighed(section: str, is_ascii: bool) -> _Section:
    """The forms of a section whose entries begin with a strength, the strongest first."""
    read = (entry.replace("\n", "").split(" ", 1) for entry in _WORDS.entries(section))
    forms = _possible(((pattern, int(strength)) for strength, pattern in read), is_ascii)
    return _Section(sorted(forms, key=lambda form: -form.strength))


@cache
def _unweighed(section: str, is_ascii: bool) -> _Section:
    """The forms of any other section."""
    return _Section(_possible(((form, 0) for entry in _WORDS.entries(section) for form in forms_in(entry)), is_ascii))


def _possible(given: Iterable[tuple[str, int]], is_ascii: bool) -> Iterator[_Form]:
    """Forms of these patterns and strengths; where a sentence is in ASCII alone, those that it can have."""
    for pattern, strength in given:
        source = _spelled(pattern)
        needles = needles_of(source)
        if needles is not None and is_ascii:
            needles = frozenset(filter(str.isascii, needles))
            if not needles:
                continue
        yield _Form(lazy_pattern(source), strength, needles)


def _spelled(pattern: str) -> str:
    """A pattern with the alternatives of the sections that it names in their place."""
    while found := _NAMED.search(pattern):
        pattern = f"{pattern[: found.start()]}{_WORDS.either(found[1])}{pattern[found.end() :]}"
    return pattern
