"""What a number counts: the unit beside it, under one name however it is written (`data/units.txt`)."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.core.text.word_lists import WordList
from muniment.verify.facts.words import Word

__all__ = ["unit_of"]

_UNITS = {form: unit for unit, forms in WordList(__package__, "units.txt").pairs() for form in forms.split()}
_SIGNS_BEFORE = frozenset("$€£¥₩")
_CJK_UNITS = sorted((form for form in _UNITS if not form.isascii() and form[0].isalpha()), key=lambda form: -len(form))


def unit_of(text: str, words: Sequence[Word], at: int) -> str | None:
    """The unit of the number at a place: a sign before or behind it, or the word behind it."""
    word = words[at]
    before, behind = text[word.start - 1 : word.start], text[word.end : word.end + 8].lstrip(" -")
    if before in _SIGNS_BEFORE:
        return _UNITS.get(before)
    if behind[:1] in ("%", "％", "°"):
        return _UNITS[behind[:1]]
    for form in _CJK_UNITS:
        if behind.startswith(form):
            return _UNITS[form]
    if at + 1 < len(words) and words[at + 1].start - word.end <= 1:
        return _UNITS.get(words[at + 1].text.casefold())
    return None
