"""Words that name one relation: who asks for somebody's spouse is answered by whom they are married to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from muniment.core.limits import remembered
from muniment.core.text.analyzer import stem
from muniment.core.text.word_lists import WordList

__all__ = [
    "denies",
    "doubts",
    "inside_names",
    "is_form",
    "leads_on",
    "may_answer",
    "names_same",
    "opens",
    "states",
    "tells_little",
]

_GROUPS = WordList(__package__, "relations.txt")
_ALIKE_MIN = 5
"""So many letters that two words begin with make them forms of one: "citizen" and "citizenship"."""


@cache
def leads_on() -> frozenset[str]:
    """Words that no name begins with."""
    return frozenset(_GROUPS.words("leads on"))


@cache
def states() -> frozenset[str]:
    """Words behind which stands what is said, not what it is said of."""
    return frozenset(_GROUPS.words("states"))


@cache
def tells_little() -> frozenset[str]:
    """Words that ask for nothing by themselves."""
    return frozenset(_GROUPS.words("tells little"))


@cache
def opens() -> frozenset[str]:
    """Words that a statement may begin with before what it is about is named."""
    return frozenset(_GROUPS.words("opens"))


@cache
def inside_names() -> frozenset[str]:
    """Words that may stand between two parts of one name."""
    return frozenset(_GROUPS.words("inside names"))


@cache
def _denying() -> frozenset[str]:
    return frozenset(_GROUPS.words("denies"))


@cache
def _doubting() -> frozenset[str]:
    return frozenset(_GROUPS.words("doubts"))


def denies(words: Sequence[str]) -> bool:
    """Do words of a statement, in lower case, say that it does not hold, or holds no more?"""
    return (
        not _denying().isdisjoint(words)
        or any(word.endswith(("n't", "n’t")) for word in words)
        or ("used", "to") in pairwise(words)
    )


def doubts(words: Sequence[str]) -> bool:
    """Do words of a statement, in lower case, say that it may hold, is to or should?"""
    return not _doubting().isdisjoint(words)


@cache
def _groups() -> dict[str, frozenset[int]]:
    """The stem of a word → the numbers of the groups it stands in."""
    found: dict[str, set[int]] = {}
    for number, line in enumerate(_GROUPS.entries()):
        for word in line.split():
            found.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


@cache
def _asked() -> dict[str, frozenset[str]]:
    """The stem of a word of a question → those of the words that may answer it, and not the other way round."""
    return {
        stem(word): frozenset(map(stem, answers.split()))
        for words, answers in _GROUPS.pairs("asked")
        for word in words.split()
    }


@remembered(1024)
def may_answer(asked: str) -> frozenset[str]:
    """The stems that may stand in a statement for a word of a question; forms of one word are not among them."""
    groups = _groups()
    own = groups.get(asked, frozenset())
    same = {word for word, numbers in groups.items() if not own.isdisjoint(numbers)} if own else set()
    return frozenset(same | _asked().get(asked, frozenset()) | {asked})


def names_same(asked: str, stated: str) -> bool:
    """May a word of a question and a word of a statement, both stems, name the same relation?"""
    return is_form(asked, stated) or stated in may_answer(asked)


def is_form(asked: str, stated: str) -> bool:
    """Are two stems the same, or forms of one word? What asks by itself for a place is no form of what names one."""
    if asked in _asked():
        return False
    if asked == stated:
        return True
    shorter, longer = sorted((asked, stated), key=len)
    return len(shorter) >= _ALIKE_MIN and longer.startswith(shorter)
