"""Names of somebody else's making that may be told to a model: short ones, which advise nothing.

A tool's answer can hold anything: a file, a class, a test or a value may be named so that the name is an order
(`always_use_wire.py`). A name is plain that has few words, each of them short, and none that advises. What is not plain
is left out wherever it would be told; nothing is put in its place. It reads names and never sentences: a sentence of a
tool is not told at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = ["NAME_WORDS_MAX", "VALUE_WORDS_MAX", "is_plain", "is_plain_path", "is_plain_value", "name_words"]

VALUE_WORDS_MAX = 4
"""Words of a value that the agent itself gave to a call."""
NAME_WORDS_MAX, _FILE_WORDS_MAX = 3, 4
_WORD_CHARS_MAX = 18
_MILD_VALUE_MAX = 2
_PARTS_MAX = 6
_SPLIT = lazy_pattern(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-zß-ÿ]+|[A-Z]+|\d+|[^\W\d_A-Za-zß-ÿ]+")
_IDENTIFIER = lazy_pattern(r"[A-Za-z]+(?:[_-][A-Za-z]+)?")
_IN_PATH = lazy_pattern(r"[\w.+-]+")

_LISTED = WordList(__package__, "advising_words.txt")


def name_words(name: str) -> list[str]:
    """`KeyNotFoundError` and `key_not_found` as words in lower case."""
    return [word.casefold() for word in _SPLIT.findall(name)]


def is_plain(name: str, words_max: int = NAME_WORDS_MAX) -> bool:
    """May it be told? Nothing that is empty, long, or advises."""
    return _is_plain(name_words(name), words_max, mild_max=0)


def is_plain_value(value: str) -> bool:
    """May it be told that an agent gave this to a call? It chose the word, and a short name of a choice
    (`use_default`) orders nothing.
    """
    mild_max = _MILD_VALUE_MAX if _IDENTIFIER.fullmatch(value) is not None else 0
    return _is_plain(name_words(value), VALUE_WORDS_MAX, mild_max)


def _is_plain(words: Sequence[str], words_max: int, mild_max: int) -> bool:
    """In a name of at most `mild_max` words, words that are mild advise nothing."""
    if not words or len(words) > words_max or any(len(word) > _WORD_CHARS_MAX for word in words):
        return False
    advising, within, mild = _advising()
    folded = "".join(words)
    named = set(words) - mild if len(words) <= mild_max else words
    return advising.isdisjoint(named) and not any(part in folded for part in within)


@cache
def _advising() -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """Words that advise, those that do also where they stand within others, and those that are mild."""
    within = (*_LISTED.words("within"), *_LISTED.words("signs"))
    return frozenset(_LISTED.words("words")), within, frozenset(_LISTED.words("mild"))


def is_plain_path(path: str) -> bool:
    """May a file be named: are all parts of its path plain?"""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts or len(parts) > _PARTS_MAX or not all(_IN_PATH.fullmatch(part) for part in parts):
        return False
    *folders, name = [name_words(part.rsplit(".", 1)[0] or part) for part in parts]
    return all(_is_plain(words, _FILE_WORDS_MAX, mild_max=0) for words in folders) and _is_plain(
        name, _FILE_WORDS_MAX, mild_max=1
    )
