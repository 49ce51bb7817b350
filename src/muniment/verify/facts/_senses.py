"""Relations between words in general English: same sense, wider sense, opposite, or none.

`data/relations.bin` is derived from WordNet by `tools/make_word_relations.py`; its licence is in the same folder. It is
loaded on first use, and only the lines of words that are looked up are parsed.
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
"""Similarity of two words: same sense, one step wider or narrower, two senses of one wider."""
LIKE = 0.7
"""Similarity from which a word counts as another."""


class Senses(NamedTuple):
    """A stem and its groups: of verbs, of verbs of a wider sense, of nouns."""

    key: str
    verbs: frozenset[int]
    above: frozenset[int]
    nouns: frozenset[int]


class _Table(NamedTuple):
    """Sorted lines `word|verb groups|noun groups|opposites|marks`, and the wider groups of each verb group."""

    lines: list[str]
    wider: list[str]


@cache
def _table() -> _Table:
    text = zlib.decompress(read_data(__package__, "relations.bin", _DIGEST)).decode("utf-8")
    lines, _, wider = text.partition("\n\n")
    return _Table(lines.split("\n"), wider.split("\n"))


class _Entry(NamedTuple):
    """The table's entry for a word."""

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
    """True for a word that is lower-case inside a sentence."""
    return "o" in _entry(term).marks


def is_irregular(form: str) -> bool:
    """True for an irregular verb form as written: bought, wrote."""
    return "i" in _entry(form).marks


def is_verb(term: str) -> bool:
    """True if the stem can be a verb's, or that of a noun derived from one."""
    return bool(_entry(term).verbs)


def relation(one: str, other: str) -> float:
    """Similarity of two stems: 1 the same, 0 unrelated."""
    return 1.0 if one == other else nearest_kin(one, read_senses((other,)))[0]


def read_senses(keys: Iterable[str]) -> list[Senses]:
    """Senses of some words, prepared for comparison with many others."""
    return [Senses(key, *_entry(key)[:3]) for key in keys]


def nearest_kin(key: str, others: Iterable[Senses]) -> tuple[float, str]:
    """The most similar of some other words, and how well it can replace this one; an empty word if none can."""
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
            if value == SAME:  # no other word is more similar
                break
    return best, which


def opposed(term: str) -> frozenset[str]:
    """Stems of opposite meaning."""
    return _entry(term).opposites
