"""What ours is measured against, written out: plain BM25, and the recipe of the baselines.

Both in full and on purpose apart from the package: documents are built one by one, context is copied into each.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.data import Turn
from muniment.core.text.analyzer import porter_stem, stop_words

__all__ = ["Bm25", "Plain", "Recipe", "estimate_tokens", "standard"]

_WHEN = "muniment.core.text.times.when"
_when: Any = import_module(_WHEN if find_spec("muniment.core.text.times") else "muniment.core.text.when")
"""Where other checkouts have it, since they are measured with these modules too."""
STOP_WORDS = stop_words("english")
Array = npt.NDArray[np.float64]

_WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff\uac00-\ud7a3\u3040-\u30ff]+")
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip

_stem = lru_cache(maxsize=1 << 16)(porter_stem)


def words(text: str, *, plain: bool = False) -> list[str]:
    """Lower-case words, CJK in bigrams; unless `plain`, stems without stop words."""
    out: list[str] = []
    for word in _WORD.findall(text.lower()):
        if not word.isascii():
            out += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
        elif plain:
            out.append(word)
        elif word == "may" or word not in STOP_WORDS:
            out.append(_stem(word))
    return out


class Bm25:
    """BM25, k1 1.2, b 0.75."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        lengths = np.array([len(document) for document in documents], np.float64)
        self._size = len(documents)
        self._norm = 1.2 * (0.25 + 0.75 * lengths / max(lengths.mean(), 1e-9))
        gathered: dict[str, list[tuple[int, int]]] = {}
        for place, document in enumerate(documents):
            for word, count in Counter(document).items():
                gathered.setdefault(word, []).append((place, count))
        self._postings = {word: np.array(rows) for word, rows in gathered.items()}

    def scores(self, terms: Sequence[str]) -> Array:
        total = np.zeros(self._size)
        for term in terms:
            rows = self._postings.get(term)
            if rows is not None:
                places, counts = rows[:, 0], rows[:, 1]
                weight = math.log(1 + (self._size - len(rows) + 0.5) / (len(rows) + 0.5))
                total[places] += weight * counts * 2.2 / (counts + self._norm[places])
        return total


def standard(values: Array) -> Array:
    deviation = float(values.std())
    return (values - values.mean()) / deviation if deviation > 0 else np.zeros(len(values))


class Plain:
    """BM25 over each turn's words as they stand; if `named`, its speaker's name among them and no stop words."""

    def __init__(self, turns: Sequence[Turn], *, named: bool = False) -> None:
        self._named = named
        self._index = Bm25([self._words(f"{turn.speaker} {turn.text}" if named else turn.text) for turn in turns])

    def scores(self, question: str) -> Array:
        return self._index.scores(self._words(question))

    def _words(self, text: str) -> list[str]:
        return [word for word in words(text, plain=True) if not self._named or word not in STOP_WORDS]


def _date_words(window: _when.Window) -> list[str]:
    day = [str(window.start.day)] if window.grain == "day" else []
    month = [_MONTHS[window.start.month - 1]] if window.grain != "year" else []
    return [_stem(word) for word in (*day, *month, str(window.start.year))]


class Recipe:
    """The turn twice, two turns before and after in the session, dates as words; z-scores, and 1.2 for the speaker."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        own = [words(turn.text) for turn in turns]
        documents = []
        for place, turn in enumerate(turns):
            document = own[place] * 2
            for near in range(max(0, place - 2), min(len(turns), place + 3)):
                if near != place and turns[near].session == turn.session:
                    document = document + own[near]
            said = turn.said_at.date()
            for window in (_when.Window(said, said, "day"), *_when.resolve(turn.text, said)):
                document = document + _date_words(window)
            documents.append(document)
        self._index = Bm25(documents)
        self._speakers = [turn.speaker.casefold().split(" ")[0] for turn in turns]

    def scores(self, question: str, turn: Array | None = None, window: Array | None = None) -> Array:
        total = standard(self._index.scores(words(question)))
        named = set(re.findall(r"\w+", question.casefold())) & set(self._speakers) - {"user", "assistant", ""}
        if len(named) == 1:
            total = total + 1.2 * np.array([speaker in named for speaker in self._speakers])
        if turn is not None:
            total = total + 1.2 * standard(turn)
        if window is not None:
            total = total + 0.5 * standard(window)
        return total


_PIECE = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<digits>\d{1,3})|(?P<han>[\u3400-\u9fff])|(?P<hangul>[\uac00-\ud7a3])"
    r"|(?P<kana>[\u3040-\u30ff])|(?P<cyrillic>[\u0400-\u04ff]+)|(?P<line>\n)|(?P<marks>[^\w\s]+)|(?P<rest>\w)"
)
_COST = {"digits": 1.14, "han": 0.71, "hangul": 0.68, "kana": 0.68, "line": 0.8, "marks": 1.0, "rest": 1.0}


def estimate_tokens(text: str) -> float:
    """The regex estimator of the baselines: 2–5 % mean error against o200k."""
    total = 0.0
    for match in _PIECE.finditer(text):
        kind, size = match.lastgroup or "rest", len(match[0])
        if kind == "word":
            total += 0.99 + 0.20 * max(0, size - 6)
        elif kind == "cyrillic":
            total += 0.88 + 0.10 * size
        else:
            total += _COST[kind]
    return total
