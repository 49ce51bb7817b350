"""What a text comes to that a search compares: a vector where something embeds it, else the words it has.

The score of a value is the best of its texts: the cosine of two vectors, or the share of the query's words, weighted by
how rare they are among what is searched, that stand in the text. Both are 1 for a text that says all of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from muniment.core.text.analyzer import ANALYZER_VERSION, analyze, term_hashes

__all__ = ["Features", "Scores", "VectorFeatures", "WordFeatures"]

Floats = NDArray[np.float32]
_TEXT_CHARS_MAX = 65_536


@dataclass(frozen=True, slots=True)
class Scores:
    """Of each text, how well it answers; and where two do alike, how much of it does."""

    scores: NDArray[np.float64]
    density: NDArray[np.float64]
    answers: NDArray[np.bool_]
    """Whether it answers at all."""


class Features(Protocol):
    """How texts are compared."""

    @property
    def name(self) -> str:
        """Two of one name give the same bytes for the same text."""
        ...

    def made(self, texts: Sequence[str]) -> list[bytes]:
        """What is kept of each text."""
        ...

    def packed(self, kept: Sequence[bytes]) -> Callable[[str], Scores]:
        """What scores those whose features these are against a query."""
        ...


class WordFeatures:
    """By words, where nothing embeds."""

    @property
    def name(self) -> str:
        return f"words@{ANALYZER_VERSION}"

    def made(self, texts: Sequence[str]) -> list[bytes]:
        return [_terms(text).astype("<u8").tobytes() for text in texts]

    def packed(self, kept: Sequence[bytes]) -> Callable[[str], Scores]:
        terms = np.frombuffer(b"".join(kept), dtype="<u8")
        lengths = np.fromiter((len(data) // 8 for data in kept), dtype=np.int64, count=len(kept))
        owners = np.repeat(np.arange(len(kept)), lengths)
        order = np.argsort(terms, kind="stable")
        terms, owners = terms[order], owners[order]

        def scored(query: str) -> Scores:
            asked = _terms(query)
            scores, found, total = np.zeros(len(kept)), np.zeros(len(kept)), 0.0
            starts, ends = np.searchsorted(terms, asked, "left"), np.searchsorted(terms, asked, "right")
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                count = end - start
                weight = float(np.log1p((len(kept) - count + 0.5) / (count + 0.5)))
                total += weight
                scores[owners[start:end]] += weight
                found[owners[start:end]] += 1
            return Scores(scores / total if total else scores, found / np.maximum(lengths, 1), found > 0)

        return scored


def _terms(text: str) -> NDArray[np.uint64]:
    return np.array(sorted(set(term_hashes(analyze(text[:_TEXT_CHARS_MAX])))), dtype=np.uint64)


class VectorFeatures:
    """By meaning: the cosine of the vectors that a function gives."""

    def __init__(
        self,
        name: str,
        embed: Callable[[Sequence[str]], Sequence[Sequence[float]] | Floats],
        embed_query: Callable[[str], Sequence[float]] | None = None,
    ) -> None:
        self._name = name
        self._embed = embed
        self._embed_query = embed_query or (lambda query: embed([query])[0])

    @property
    def name(self) -> str:
        return self._name

    def made(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        return [row.astype("<f4").tobytes() for row in _unit(np.asarray(self._embed(list(texts)), dtype=np.float64))]

    def packed(self, kept: Sequence[bytes]) -> Callable[[str], Scores]:
        matrix = np.frombuffer(b"".join(kept), dtype="<f4").reshape(len(kept), -1) if kept else None

        def scored(query: str) -> Scores:
            if matrix is None:
                return Scores(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))
            asked = _unit(np.asarray([self._embed_query(query)], dtype=np.float64))[0].astype(np.float32)
            scores = (matrix @ asked).astype(np.float64)
            return Scores(scores, np.zeros(len(kept)), np.ones(len(kept), dtype=bool))

        return scored


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)
