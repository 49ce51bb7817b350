"""Words that can stand for each other, and words that exclude each other: general English.

`data/synonyms.txt` has groups any member of which may restate another, and pairs of such groups that contradict each
other.
"""

from __future__ import annotations

from functools import cache

from muniment.core.text.analyzer import stem
from muniment.core.text.word_lists import WordList

__all__ = ["alike", "opposed"]

_WORDS = WordList(__package__, "synonyms.txt")


@cache
def _groups() -> dict[str, frozenset[str]]:
    """A stem → the stems that may stand for it."""
    found: dict[str, set[str]] = {}
    sides = [side for pair in _WORDS.entries("opposed") for side in pair.split("|")]
    for group in (*_WORDS.entries("alike"), *sides):
        members = {stem(word) for word in group.split()}
        for member in members:
            found.setdefault(member, set()).update(members)
    return {member: frozenset(others - {member}) for member, others in found.items()}


@cache
def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _WORDS.entries("opposed"):
        left, right = ({stem(word) for word in side.split()} for side in pair.split("|"))
        for one, other in ((left, right), (right, left)):
            for member in one - other:
                found.setdefault(member, set()).update(other - one)
    return {member: frozenset(group) for member, group in found.items()}


def alike(term: str) -> frozenset[str]:
    """Stems of words that may restate the word of this stem."""
    return _groups().get(term, frozenset())


def opposed(term: str) -> frozenset[str]:
    """Stems of words that contradict the word of this stem."""
    return _opposites().get(term, frozenset())
