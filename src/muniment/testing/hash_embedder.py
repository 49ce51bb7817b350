"""An embedder without weights: hashed words and letter n-grams. For tests; it has no notion of meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from muniment.core.limits import Memo
from muniment.errors import InvalidInput
from muniment.memory.embedding import unit_rows

__all__ = ["HashEmbedder", "load_hash"]

_VERSION = 1
_WORD = re.compile(r"\w+")
_TEXT_CHARS_MAX = 32_768


def load_hash(rest: str) -> HashEmbedder:
    """Load the embedder `hash`."""
    if rest:
        raise InvalidInput("nothing follows the name hash")
    return HashEmbedder()


class HashEmbedder:
    """An embedder that adds or subtracts one, for each word and its bigrams and trigrams, at a place picked by the
    hash.
    """

    def __init__(self, dim: int = 128) -> None:
        self._dim = dim
        self._places: Memo[str, tuple[int, int]] = Memo()

    @property
    def identity(self) -> str:
        return f"hash@{_VERSION}-{self._dim}-{'0' * 16}"

    @property
    def dim(self) -> int:
        return self._dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        sums = np.zeros((len(texts), self._dim), dtype=np.float64)
        for row, text in enumerate(texts):
            for word in _WORD.findall(text[:_TEXT_CHARS_MAX].casefold()):
                for gram in _grams(word):
                    place, sign = self._place(gram)
                    sums[row, place] += sign
        return unit_rows(sums)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embed(texts)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embed(texts)

    def _place(self, gram: str) -> tuple[int, int]:
        known = self._places.get(gram)
        if known is None:
            value = int.from_bytes(blake2b(gram.encode("utf-8", "replace"), digest_size=8).digest(), "little")
            known = ((value >> 1) % self._dim, 1 if value & 1 else -1)
            if len(self._places) >= 65_536:
                self._places.clear()
            self._places[gram] = known
        return known


def _grams(word: str) -> list[str]:
    edged = f"^{word}$"
    return [edged] + [edged[at : at + size] for size in (2, 3) for at in range(len(edged) - size + 1)]
