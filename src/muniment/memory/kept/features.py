"""What a text comes to that a search compares: a vector where something embeds it, else the words it has.

The score of a value is the best of its texts: the cosine of two vectors, or the share of the query's words, weighted by
how rare they are among what is searched, that stand in the text. Both are 1 for a text that says all of the query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from muniment.core.canonical import digest_of
from muniment.core.text.analyzer import ANALYZER_VERSION, analyze, term_hashes
from muniment.errors import InvalidInput

if TYPE_CHECKING:
    from muniment.core.ports.models import Embedder

__all__ = [
    "Features",
    "Query",
    "Scores",
    "VectorFeatures",
    "WordFeatures",
    "given_name",
    "own_features",
    "vectors_kept",
]

Floats = NDArray[np.float32]
Query = str | Sequence[float]
"""What is asked: a text, or the vector of one that its asker embedded."""
_FEW = 16
"""Up to so many texts are compared one by one."""
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

    asks_outside: bool
    """Whether something outside, that may take its time, says what a text comes to."""

    @property
    def name(self) -> str:
        """Two of one name give the same bytes for the same text."""
        ...

    def made(self, texts: Sequence[str]) -> list[bytes]:
        """What is kept of each text."""
        ...

    def packed(self, kept: Sequence[bytes]) -> Callable[[Query], Scores]:
        """What scores those whose features these are against a query."""
        ...


class WordFeatures:
    """By words, where nothing embeds. `mark` tells apart what was read of the values."""

    asks_outside = False

    def __init__(self, mark: str) -> None:
        self._mark = mark

    @property
    def name(self) -> str:
        return f"words@{ANALYZER_VERSION}-{self._mark}"

    def made(self, texts: Sequence[str]) -> list[bytes]:
        return [_terms(text).astype("<u8").tobytes() for text in texts]

    def packed(self, kept: Sequence[bytes]) -> Callable[[Query], Scores]:
        if len(kept) <= _FEW:
            return _few_scored([frozenset(np.frombuffer(data, dtype="<u8").tolist()) for data in kept])
        terms = np.frombuffer(b"".join(kept), dtype="<u8")
        lengths = np.fromiter((len(data) // 8 for data in kept), dtype=np.int64, count=len(kept))
        owners = np.repeat(np.arange(len(kept)), lengths)
        order = np.argsort(terms, kind="stable")
        terms, owners = terms[order], owners[order]

        def scored(query: Query) -> Scores:
            assert isinstance(query, str)
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


def _few_scored(kept: Sequence[frozenset[int]]) -> Callable[[Query], Scores]:
    """The same of a few texts, without what arrays cost before they gain anything."""
    lengths = np.array([max(1, len(terms)) for terms in kept])

    def scored(query: Query) -> Scores:
        assert isinstance(query, str)
        scores, found, total = [0.0] * len(kept), [0] * len(kept), 0.0
        for term in _terms(query).tolist():
            holding = [at for at, terms in enumerate(kept) if term in terms]
            weight = math.log1p((len(kept) - len(holding) + 0.5) / (len(holding) + 0.5))
            total += weight
            for at in holding:
                scores[at] += weight
                found[at] += 1
        count = np.array(found)
        return Scores(np.array(scores) / (total or 1.0), count / lengths, count > 0)

    return scored


def _terms(text: str) -> NDArray[np.uint64]:
    return np.array(sorted(set(term_hashes(analyze(text[:_TEXT_CHARS_MAX])))), dtype=np.uint64)


class VectorFeatures:
    """By meaning: the cosine of the vectors that a function gives."""

    asks_outside = True

    def __init__(
        self,
        name: str,
        embed: Callable[[Sequence[str]], Sequence[Sequence[float]] | Floats],
        embed_query: Callable[[str], Sequence[float] | Floats] | None = None,
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
        return _kept(self._embed(list(texts)))

    def packed(self, kept: Sequence[bytes]) -> Callable[[Query], Scores]:
        if len({len(data) for data in kept}) > 1:
            sizes = sorted({len(data) // 4 for data in kept})
            raise InvalidInput(
                f"vectors of {' and '.join(map(str, sizes))} numbers are kept under one embedder's name",
                path="$.embedder",
                hint="give each embedder a name of its own",
            )
        matrix = np.frombuffer(b"".join(kept), dtype="<f4").reshape(len(kept), -1) if kept else None

        def scored(query: Query) -> Scores:
            if matrix is None:
                return Scores(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))
            vector = self._embed_query(query) if isinstance(query, str) else query
            asked = _unit(np.asarray([vector], dtype=np.float64))[0].astype(np.float32)
            if len(asked) != matrix.shape[1]:
                raise InvalidInput(
                    f"a vector of {len(asked)} numbers is not compared with some of {matrix.shape[1]}", path="$.vector"
                )
            scores = (matrix @ asked).astype(np.float64)
            return Scores(scores, np.zeros(len(kept)), np.ones(len(kept), dtype=bool))

        return scored


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)


def own_features(embedder: Embedder | None, fields: Sequence[str] | None) -> tuple[Features, bool]:
    """How a store compares texts itself, which of their fields being read; and whether the texts of a value are one."""
    mark = digest_of([None if fields is None else list(fields), embedder is None])[:8]
    if embedder is None:
        return WordFeatures(mark), True

    def embed_query(query: str) -> Floats:
        row: Floats = embedder.embed_queries([query])[0]
        return row

    return VectorFeatures(f"{embedder.identity}-{mark}", embedder.embed_passages, embed_query), False


def given_name(embedder: str) -> str:
    """Under which name vectors of a caller's embedder are kept: never that of something the store makes itself."""
    return f"given:{embedder}"


def vectors_kept(vectors: Sequence[Sequence[float]], path: str) -> list[bytes]:
    """What is kept of vectors that a caller made."""
    if not vectors:
        return []
    if len({len(each) for each in vectors}) > 1 or not vectors[0]:
        raise InvalidInput("vectors of one embedder have one length, above zero", path=path)
    return _kept(vectors)


def _kept(vectors: Sequence[Sequence[float]] | Floats) -> list[bytes]:
    return [row.astype("<f4").tobytes() for row in _unit(np.asarray(vectors, dtype=np.float64))]
