"""How words are related in general English: one sense, a wider sense, the opposite, or not at all.

`data/relations.bin` is made of WordNet by `tools/make_word_relations.py`; its licence stands beside it. Read once, when
something in it is first asked for; of its lines only those of the words that are asked for are taken apart.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.word_lists import read_data

_DIGEST = "a9daac05959d86e0f4e7aa5d7dfb2d4bb8ecda6c9972c62630adf03cfb8b2463"
SAME, WIDER, SISTER = 0.9, 0.7, 0.35
"""How well a word stands for another: of one sense, one step wider or narrower, two senses of one wider."""
LIKE = 0.7
"""What stands for a word at least so well is taken for it."""


class Senses(NamedTuple):
    """A stem and the groups it stands in: of verbs, of verbs of a wider sense, of nouns."""

    key: str
    verbs: frozenset[int]
    above: frozenset[int]
    nouns: frozenset[int]


class _Table(NamedTuple):
    """Sorted lines `word|verb groups|noun groups|opposites|marks`, and for each group of verbs the wider ones."""

    lines: list[str]
    wider: list[str]


@cache
def _table() -> _Table:
    text = zlib.decompress(read_data(__package__, "relations.bin", _DIGEST)).decode("utf-8")
    lines, _, wider = text.partition("\n\n")
    return _Table(lines.split("\n"), wider.split("\n"))


class _Entry(NamedTuple):
    """What the table says of a word."""

    verbs: frozenset[int] = frozenset()
    above: frozenset[int] = frozenset()
    nouns: frozenset[int] = frozenset()
    opposites: frozenset[str] = frozenset()
    marks: str = ""


@remembered(1 << 14)
def _entry(term: str) -> _Entry:
    lines, wider = _table()
    place = bisect_left(lines, f"{term}|")
    if place == len(lines) or not lines[place].startswith(f"{term}|"):
        return _Entry()
    _, verbs, nouns, opposites, marks = lines[place].split("|")
    groups = frozenset(map(int, verbs.split()))
    above = frozenset(int(up) for group in groups for up in wider[group].split())
    return _Entry(groups, above, frozenset(map(int, nouns.split())), frozenset(opposites.split()), marks)


def is_ordinary(term: str) -> bool:
    """Is it a word that is written small inside a sentence?"""
    return "o" in _entry(term).marks


def is_irregular(form: str) -> bool:
    """Is it an irregular form of a verb, as it is written: bought, wrote?"""
    return "i" in _entry(form).marks


def is_verb(term: str) -> bool:
    """Can the stem be a verb's, or a noun's that is made of one?"""
    return bool(_entry(term).verbs)


def relation(one: str, other: str) -> float:
    """How well a word can stand for another, by their stems: 1 the same, 0 not related."""
    return 1.0 if one == other else nearest_kin(one, read_senses((other,)))[0]


def read_senses(keys: Iterable[str]) -> list[Senses]:
    """What the tables say of some words, to compare many others with them."""
    return [Senses(key, *_entry(key)[:3]) for key in keys]


def nearest_kin(key: str, others: Iterable[Senses]) -> tuple[float, str]:
    """How well one of some other words can stand for this one, and which; an empty word where none can."""
    (_, verbs, above, nouns), best, which = read_senses((key,))[0], 0.0, ""
    if not (verbs or nouns):
        return best, which
    for other, their_verbs, their_above, their_nouns in others:
        value = 0.0
        if verbs and their_verbs:
            if not verbs.isdisjoint(their_verbs):
                value = SAME
            elif not above.isdisjoint(their_verbs) or not verbs.isdisjoint(their_above):
                value = WIDER
            elif not above.isdisjoint(their_above):
                value = SISTER
        if not value and not nouns.isdisjoint(their_nouns):
            value = SAME
        if value > best:
            best, which = value, other
            if value == SAME:  # no other word stands for it better
                break
    return best, which


def opposed(term: str) -> frozenset[str]:
    """Stems of words that mean the opposite."""
    return _entry(term).opposites
