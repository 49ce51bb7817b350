"""How words are related in general English: one sense, a wider sense, the opposite, or not at all.

`data/relations.bin` is made of WordNet by `tools/make_word_relations.py`; its licence stands beside it. Read once, when
something in it is first asked for.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Set
from functools import cache
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.word_lists import read_data

__all__ = [
    "LIKE",
    "SAME",
    "Senses",
    "is_irregular",
    "is_ordinary",
    "is_verb",
    "nearest_kin",
    "read_senses",
    "relation",
    "table_opposed",
]

_DIGEST = "c6d7ddc520029f1b0b3636184513767b313bbeb5d04c78a83dc6120b6532cef0"
SAME, WIDER, SISTER = 0.9, 0.7, 0.35
"""How well a word stands for another: of one sense, one step wider or narrower, two senses of one wider."""
LIKE = 0.7
"""And one of a group any member of which may restate another (`synonyms`)."""


class _Tables(NamedTuple):
    senses: dict[str, frozenset[int]]
    """A stem → the groups of verbs it stands in."""
    wider: list[tuple[int, ...]]
    nouns: dict[str, frozenset[int]]
    opposites: dict[str, frozenset[str]]
    ordinary: frozenset[str]
    irregular: frozenset[str]


class Senses(NamedTuple):
    """A stem and the groups it stands in: of verbs, of verbs of a wider sense, of nouns."""

    key: str
    verbs: frozenset[int]
    above: frozenset[int]
    nouns: frozenset[int]


@cache
def _tables() -> _Tables:
    blocks = zlib.decompress(read_data(__package__, "relations.bin", _DIGEST)).decode("utf-8").split("\n\n")
    verbs, nouns, opposites, ordinary, irregular = (block.split("\n") for block in blocks)
    wider: list[tuple[int, ...]] = []
    members: list[str] = []
    for line in verbs:
        words, _, above = line.partition("|")
        members.append(words)
        wider.append(tuple(map(int, above.split())))
    opposed: dict[str, set[str]] = {}
    for pair in opposites:
        one, two = pair.split(" ")
        opposed.setdefault(one, set()).add(two)
        opposed.setdefault(two, set()).add(one)
    return _Tables(
        _groups(members),
        wider,
        _groups(nouns),
        {word: frozenset(others) for word, others in opposed.items()},
        frozenset(ordinary),
        frozenset(irregular),
    )


def _groups(lines: list[str]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(lines):
        for word in line.split(" "):
            found.setdefault(word, set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


def is_ordinary(term: str) -> bool:
    """Is it a word that is written small inside a sentence?"""
    return term in _tables().ordinary


def is_irregular(form: str) -> bool:
    """Is it an irregular form of a verb, as it is written: bought, wrote?"""
    return form in _tables().irregular


def is_verb(term: str) -> bool:
    """Can the stem be a verb's, or a noun's that is made of one?"""
    return term in _tables().senses


@remembered(1 << 14)
def _above(term: str) -> frozenset[int]:
    tables = _tables()
    return frozenset(up for sense in tables.senses.get(term, ()) for up in tables.wider[sense])


def relation(one: str, other: str) -> float:
    """How well a word can stand for another, by their stems: 1 the same, 0 not related."""
    return 1.0 if one == other else nearest_kin(one, read_senses((other,)), frozenset())[0]


def read_senses(keys: Iterable[str]) -> list[Senses]:
    """What the tables say of some words, to compare many others with them."""
    tables = _tables()
    none: frozenset[int] = frozenset()
    return [Senses(key, tables.senses.get(key, none), _above(key), tables.nouns.get(key, none)) for key in keys]


def nearest_kin(key: str, others: Iterable[Senses], like: Set[str]) -> tuple[float, str]:
    """How well one of some other words can stand for this one, and which; an empty word where none can. Those of
    `like` can at least as well as a wider word."""
    (_, verbs, above, nouns), best, which = read_senses((key,))[0], 0.0, ""
    if not (verbs or nouns or like):
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
        if value < LIKE and other in like:
            value = LIKE
        if value > best:
            best, which = value, other
            if value == SAME:  # no other word stands for it better
                break
    return best, which


def table_opposed(term: str) -> frozenset[str]:
    """Stems of words that mean the opposite."""
    return _tables().opposites.get(term, frozenset())
