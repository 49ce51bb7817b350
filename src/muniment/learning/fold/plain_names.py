"""Names of somebody else's making that may be told to a model: short ones, which advise nothing.

A tool's answer can hold anything: a file, a class, a test or a value may be named so that the name is an order
(`always_use_wire.py`). A name is plain that has few words, each of them short, and none that advises. What is not plain
is left out wherever it would be told; nothing is put in its place. It reads names and never sentences: a sentence of a
tool is not told at all.
"""

from __future__ import annotations

from functools import cache

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = ["VALUE_WORDS_MAX", "is_plain", "is_plain_path", "name_words"]

VALUE_WORDS_MAX = 4
"""Words of a value that the agent itself gave to a call."""
_WORDS_MAX, _FILE_WORDS_MAX = 3, 4
_WORD_CHARS_MAX = 18
_PARTS_MAX = 6
_SPLIT = lazy_pattern(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-zß-ÿ]+|[A-Z]+|\d+|[^\W\d_A-Za-zß-ÿ]+")
_IN_PATH = lazy_pattern(r"[\w.+-]+")

_LISTED = WordList(__package__, "advising_words.txt")


def name_words(name: str) -> list[str]:
    """`KeyNotFoundError` and `key_not_found` as words in lower case."""
    return [word.casefold() for word in _SPLIT.findall(name)]


def is_plain(name: str, words_max: int = _WORDS_MAX) -> bool:
    """May it be told? Nothing that is empty, long, or advises."""
    words = name_words(name)
    if not words or len(words) > words_max or any(len(word) > _WORD_CHARS_MAX for word in words):
        return False
    advising, within = _advising()
    folded = "".join(words)
    return advising.isdisjoint(words) and not any(part in folded for part in within)


@cache
def _advising() -> tuple[frozenset[str], tuple[str, ...]]:
    """Words that advise, and those that do also where they stand within others."""
    return frozenset(_LISTED.words("words")), (*_LISTED.words("within"), *_LISTED.words("signs"))


def is_plain_path(path: str) -> bool:
    """May a file be named: are all parts of its path plain?"""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts or len(parts) > _PARTS_MAX or not all(_IN_PATH.fullmatch(part) for part in parts):
        return False
    return all(is_plain(part.rsplit(".", 1)[0] or part, _FILE_WORDS_MAX) for part in parts)
