"""The forms in which people lay down, promise, decide and take back, as patterns over one plain sentence."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from muniment.core.text.word_lists import WordList

__all__ = ["has_form", "plain_sentence", "strength_of"]

_WORDS = WordList(__package__, "agreements.txt")
_NAMED = re.compile(r"<(\w[\w ]*)>")
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})


class _Form(NamedTuple):
    pattern: re.Pattern[str]
    strength: int


def plain_sentence(sentence: str) -> str:
    """A sentence as the forms are written: lowered, with straight quotes."""
    return sentence.translate(_STRAIGHT).lower()


def has_form(section: str, plain: str) -> bool:
    """Does a plain sentence have one of the forms of a section?"""
    return _pattern(section).search(plain) is not None


def strength_of(section: str, plain: str) -> int:
    """How strongly a plain sentence says what a section is about, by its strongest form; 0 where it does not."""
    for form in _forms(section):
        if form.pattern.search(plain):
            return form.strength
    return 0


@cache
def _forms(section: str) -> tuple[_Form, ...]:
    """The strongest first."""
    read = (entry.replace("\n", "").split(" ", 1) for entry in _WORDS.entries(section))
    forms = [_Form(re.compile(_spelled(pattern)), int(strength)) for strength, pattern in read]
    return tuple(sorted(forms, key=lambda form: -form.strength))


@cache
def _pattern(section: str) -> re.Pattern[str]:
    return re.compile(_spelled(_WORDS.either(section)))


def _spelled(pattern: str) -> str:
    """A pattern with the alternatives of the sections that it names in their place."""
    while found := _NAMED.search(pattern):
        pattern = f"{pattern[: found.start()]}{_WORDS.either(found[1])}{pattern[found.end() :]}"
    return pattern
