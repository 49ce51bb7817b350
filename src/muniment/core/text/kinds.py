"""Common knowledge of words: hyponyms and synonyms.

A question asks for "pets" and the memory says "my two dogs". Without a model, a hand-written table of everyday life
(`data/kinds.txt`) closes a part of that gap: `widen` maps the terms of a query to groups of terms that an answer may
contain.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from muniment.core.text.analyzer import analyze, irregular_forms
from muniment.core.text.word_lists import WordList

__all__ = ["Group", "widen"]

_KINDS = WordList(__package__, "kinds.txt")

Group = tuple[frozenset[str], frozenset[str]]
"""The terms of a head, and the terms that may replace it."""


@cache
def _heads() -> dict[str, list[tuple[str, str]]]:
    """Map the first character of a term to the heads that may have such a term, and the words of their lines."""
    found: dict[str, list[tuple[str, str]]] = {}
    irregular = irregular_forms()
    for heads, members in _KINDS.pairs():
        for head in heads.split(","):
            signs = {irregular.get(word, word)[0] for word in head.split()} if head.isascii() else set(head)
            for sign in signs:
                found.setdefault(sign, []).append((head, members))
    return found


@cache
def _table(sign: str) -> dict[str, list[tuple[frozenset[str], str]]]:
    """Map, for heads under one character, a term of a head to all its terms, and the words of its line."""
    found: dict[str, list[tuple[frozenset[str], str]]] = {}
    for head, members in _heads()[sign]:
        terms = frozenset(_key_terms(head))
        if terms:
            found.setdefault(min(terms), []).append((terms, members))
    return found


@cache
def _group(members: str) -> frozenset[str]:
    """Return the terms of a line's words."""
    return frozenset(term for word in members.split() for term in _key_terms(word))


def _key_terms(word: str) -> list[str]:
    """Return the distinguishing terms of a word: for Chinese and Korean only the pairs, where there are any."""
    terms = analyze(word)
    pairs = [term for term in terms if not term.isascii() and len(term) == 2 and term[0] != "^"]
    return pairs or [term for term in terms if term[0] != "^"]


def widen(terms: Iterable[str]) -> list[Group]:
    """Map the terms of a question to terms that an answer may contain, excluding those of the question.

    Of two matching heads, one inside the other ("country", "european country"), the narrower one counts.
    """
    asked = set(terms)
    merged: dict[frozenset[str], frozenset[str]] = {}
    heads = _heads()  # read lazily: stemming every word of the table takes a while
    for term in sorted(asked):
        for head, members in _table(term[0]).get(term, ()) if term[0] in heads else ():
            if head <= asked:
                merged[head] = merged.get(head, frozenset()) | (_group(members) - asked)
    return [(head, group) for head, group in merged.items() if group and not any(head < other for other in merged)]
