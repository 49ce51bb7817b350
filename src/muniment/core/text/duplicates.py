"""Has this been said already? Overlap (Jaccard) and cosine of words, with pairs of signs for Han, kana and Hangul."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Seen", "Words", "cosine", "read_words", "turns", "words_of"]

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_ASCII_WORD = re.compile("[a-z0-9]+")
_FIRST_CJK = re.compile(f"[{_CJK}]")
_TURNS = frozenset(
    (
        "not",
        "no",
        "never",
        "dont",
        "doesnt",
        "didnt",
        "isnt",
        "wasnt",
        "cant",
        "wont",
        "nor",
        "without",
        "안",
        "못",
    )
)
"""Words that turn a sentence round: texts that differ in one say different things."""
_SIGNS_THAT_TURN = frozenset("不没未无非")
"""Chinese signs that turn a sentence round, wherever they stand in a pair of signs."""


def words_of(text: str) -> list[str]:
    """Words in order, folded; runs of CJK as pairs of neighbours."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower().replace("'", ""))
    text = unicodedata.normalize("NFKC", text)
    words: list[str] = []
    for run in _WORD.findall(text.casefold().replace("'", "").replace("’", "")):
        if len(run) > 2 and _FIRST_CJK.match(run):
            words += [run[at : at + 2] for at in range(len(run) - 1)]
        else:
            words.append(run)
    return words


class Words(NamedTuple):
    """The different words of a text, and the same ones with the longest first."""

    held: frozenset[str]
    longest: tuple[str, ...]


def read_words(text: str) -> Words:
    held = frozenset(words_of(text))
    return Words(held, tuple(sorted(sorted(held), key=len, reverse=True)))


def cosine(one: Iterable[str], other: Iterable[str]) -> float:
    """How alike the words of two texts are, counted, from 0 to 1; 0 where either has none."""
    mine, theirs = Counter(one), Counter(other)
    product = sum(count * theirs[word] for word, count in mine.items())
    size = sum(count * count for count in mine.values()) * sum(count * count for count in theirs.values())
    return product / math.sqrt(size) if size else 0.0


class Seen:
    """Texts taken so far. A text is looked up against those that share one of its first words, the longest being first.

    Two sets that overlap by at least t share a word among the first n - ceil(t n) + 1 of each, so nothing is missed,
    and long words are rare.
    """

    def __init__(self, overlap_min: float) -> None:
        self._min = overlap_min
        self._exact: dict[str, str] = {}
        self._texts: list[tuple[frozenset[str], str]] = []
        self._by_word: dict[str, list[int]] = {}
        self._known: dict[str, Words] = {}

    def find(self, text: str, words: Words | None = None) -> str | None:
        """The name under which a near-duplicate was added. `words` are those of the text, where they are known."""
        if (name := self._exact.get(text.strip())) is not None:
            return name
        words = words or self._words(text)
        looked: set[int] = set()
        for word in self._first(words):
            for at in self._by_word.get(word, ()):
                if at not in looked:
                    looked.add(at)
                    other, name = self._texts[at]
                    if self._alike(words.held, other):
                        return name
        return None

    def add(self, text: str, name: str, words: Words | None = None) -> None:
        self._exact.setdefault(text.strip(), name)
        words = words or self._words(text)
        for word in self._first(words):
            self._by_word.setdefault(word, []).append(len(self._texts))
        self._texts.append((words.held, name))

    def rename(self, old: str, new: str) -> None:
        """What was added under one name is found under another from now on."""
        self._exact = {text: new if name == old else name for text, name in self._exact.items()}
        self._texts = [(held, new if name == old else name) for held, name in self._texts]

    def _first(self, words: Words) -> tuple[str, ...]:
        count = len(words.held)
        return words.longest[: count - math.ceil(self._min * count - 1e-9) + 1]

    def _words(self, text: str) -> Words:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = read_words(text)
        return known

    def _alike(self, one: frozenset[str], other: frozenset[str]) -> bool:
        small, large = len(one), len(other)
        if small > large:
            small, large = large, small
        if small < self._min * large - 1e-9:
            return False
        both = len(one & other)
        if both < self._min * (small + large - both) - 1e-9:
            return False
        return not any(map(turns, one ^ other))


def turns(word: str) -> bool:
    """Does a text that has this word, where another has not, say something else? Numbers do, 三 as well as 3."""
    return word in _TURNS or not _SIGNS_THAT_TURN.isdisjoint(word) or any(map(str.isnumeric, word))
