"""The default embedder: the mean of WordLlama's token vectors (256-d), read from its wheel with numpy alone.

The tokenizer is Llama 2's. In its vocabulary a space begins a piece and never ends one, and no piece joins a
line feed or a character past U+2E80 (CJK, Hangul, kana, emoji) to a neighbour: cutting there first changes nothing,
and the cuts are words that repeat, so their pieces are remembered. The rank of a merge is the id of what it makes.

Half-precision weights add up exactly in double precision, so the sum of a text's vectors has no rounding
that an order or a batch could move.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muniment.core.limits import Memo
from muniment.core.outside.system import install_command
from muniment.errors import IntegrityFailure
from muniment.memory.outside.weights import digest_files, map_tensors, package_files, unit_rows

__all__ = ["LlamaPieces", "WordLlamaEmbedder"]

_HINT = install_command("vectors")
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_VERSION = 1
"""Of the method: raise it when the same weights would give other vectors."""

_TEXT_CHARS_MAX = 32_768
"""A text is embedded by its beginning; past this the mean of a text says little anyway."""

_ROWS_MAX = 4_096
_CACHE_WORDS_MAX = 262_144
_CACHE_CHARS_MAX = 48

_SPACE = "▁"
_BLANK_RANK = 1 << 30
"""Runs of spaces merge after everything else."""

_CUT = re.compile(
    f"[\u2e80-\ufffc\ufffe-\U0010ffff]|\n|{_SPACE}*[^{_SPACE}\n\u2e80-\ufffc\ufffe-\U0010ffff]+|{_SPACE}+"
)


class LlamaPieces:
    """Llama 2's byte-pair pieces, as ids; control tokens spelled out in a text are plain text."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._ids = vocabulary
        self._bytes = [vocabulary[f"<0x{value:02X}>"] for value in range(256)]
        self._cache: Memo[str, tuple[int, ...]] = Memo()

    @classmethod
    def read(cls, path: Path) -> LlamaPieces:
        try:
            return cls(json.loads(path.read_bytes())["model"]["vocab"])
        except (ValueError, KeyError, TypeError) as cause:
            raise IntegrityFailure(f"{path.name} is not the tokenizer that was expected") from cause

    def ids(self, text: str) -> list[int]:
        """The ids of a text's pieces, in order."""
        if not text:
            return []
        cache = self._cache
        ids: list[int] = []
        for word in _CUT.findall(_SPACE + text.replace(" ", _SPACE)):
            found = cache.get(word)
            if found is None:
                found = self._word_ids(word)
                if len(word) <= _CACHE_CHARS_MAX:
                    if len(cache) >= _CACHE_WORDS_MAX:
                        cache.clear()
                    cache[word] = found
            ids.extend(found)
        return ids

    def _word_ids(self, word: str) -> tuple[int, ...]:
        whole = self._ids.get(word)
        if whole is not None and len(word) == 1:
            return (whole,)
        ids: list[int] = []
        for piece in self._merge(word):
            known = self._ids.get(piece)
            if known is None:
                ids.extend(self._bytes[value] for value in piece.encode("utf-8", "replace"))
            else:
                ids.append(known)
        return tuple(ids)

    def _rank(self, piece: str) -> int | None:
        known = self._ids.get(piece)
        if known is None:
            return None
        return known + _BLANK_RANK if piece[-1] == _SPACE else known

    def _merge(self, word: str) -> list[str]:
        """Joins neighbours, lowest rank first and leftmost among equals, until no join is in the vocabulary."""
        pieces: list[str] = list(word)
        size = len(pieces)
        after = list(range(1, size + 1))
        before = list(range(-1, size - 1))
        heap: list[tuple[int, int, str]] = []

        def offer(left: int, right: int) -> None:
            joined = pieces[left] + pieces[right]
            rank = self._rank(joined)
            if rank is not None:
                heapq.heappush(heap, (rank, left, joined))

        for left in range(size - 1):
            offer(left, left + 1)
        while heap:
            _, left, joined = heapq.heappop(heap)
            right = after[left]
            if not pieces[left] or right >= size or pieces[left] + pieces[right] != joined:
                continue  # a neighbour was joined elsewhere since this was offered
            pieces[left], pieces[right] = joined, ""
            after[left] = after[right]
            if after[left] < size:
                before[after[left]] = left
                offer(left, after[left])
            if before[left] >= 0:
                offer(before[left], left)
        return [piece for piece in pieces if piece]


class WordLlamaEmbedder:
    """Mean of token vectors, 256-d; tens of thousands of short texts a second, and no model to run."""

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        self._paths = (weights, tokenizer)
        self._pieces = LlamaPieces.read(tokenizer)
        tensors = map_tensors(weights)
        if "embedding.weight" not in tensors or tensors["embedding.weight"].ndim != 2:
            raise IntegrityFailure(f"{weights.name} does not hold a table of token vectors")
        self._table: NDArray[np.float16] = tensors["embedding.weight"]

    @classmethod
    def load(cls) -> WordLlamaEmbedder:
        weights, tokenizer = package_files("wordllama", (_WEIGHTS, _TOKENIZER), hint=_HINT)
        return cls(weights, tokenizer)

    @cached_property
    def identity(self) -> str:
        return f"wordllama@{_VERSION}-{self.dim}-{digest_files(*self._paths)}"

    @property
    def dim(self) -> int:
        return int(self._table.shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        sums = np.zeros((len(texts), self.dim), dtype=np.float64)
        for row, text in enumerate(texts):
            ids = self._pieces.ids(text[:_TEXT_CHARS_MAX]) if text.strip() else []
            for at in range(0, len(ids), _ROWS_MAX):
                sums[row] += self._table[ids[at : at + _ROWS_MAX]].astype(np.float64).sum(axis=0)
        return unit_rows(sums)
