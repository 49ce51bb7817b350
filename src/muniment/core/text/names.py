"""First names, from `data/names.txt`, in the letters that `latin_names.plain` writes."""

from __future__ import annotations

from functools import cache

from muniment.core.text.word_lists import WordList

__all__ = ["is_everyday_word", "is_name"]

_LISTS = WordList(__package__, "names.txt")


@cache
def _names() -> frozenset[str]:
    forms = {form for name, others in _LISTS.pairs("forms") for form in (name, *others.split())}
    return frozenset(forms | set(_LISTS.words("names")))


@cache
def _everyday() -> frozenset[str]:
    return frozenset(_LISTS.words("words"))


def is_name(spelled: str) -> bool:
    """Is it a name that is known, in plain letters?"""
    return spelled in _names()


def is_everyday_word(spelled: str) -> bool:
    """Is it a name that is a word as well: "will", "grace"?"""
    return spelled in _everyday()
