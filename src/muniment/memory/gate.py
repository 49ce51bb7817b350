"""The gate: what a person's sentence is worth keeping in view, as five scores that rank and never filter.

A linear model over hashed words, pairs of words and letters, fitted on sentences in ten languages that were written for
the project (`tools/fit_gate.py`). Scoring is integer arithmetic, so a sentence scores the same everywhere. Precision is
low, by nature of so small a model: use a score to decide what comes first, not what is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isqrt
from typing import NamedTuple
from zlib import crc32

from muniment.core.limits import remembered
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import read_data
from muniment.store.injection import visible_text

__all__ = ["BUCKETS", "HEADS", "TERMS_MIN", "SentenceScores", "gate_terms", "score_sentences"]

BUCKETS = 13_093
"""A prime, so that five signed bytes for each and the scales fit into 64 KiB."""
SCALE_BYTES = 40
"""The scales come first: for each head a gain and an offset, four bytes each, little-endian."""
_CHARS_MAX = 600
"""A longer sentence is scored by its beginning."""
_WORD_MAX = 24
TERMS_MIN = 24
"""A sentence with fewer terms is scored as if it had this many."""
_FIELD = 3
"""Bytes of a packed sum for each head: enough for the terms of `_CHARS_MAX` characters."""

_TOKEN = lazy_pattern(r"[^\W\d_]+|\d+|[^\w\s]")
_UNSPACED = lazy_pattern("[\u3040-\u30ff\u3400-\u9fff]")


class SentenceScores(NamedTuple):
    """Each from 0 to 255: 128 is where the gate would say yes, 64 and 192 are the margins it was fitted with."""

    safety: int
    """Ignoring it could hurt the speaker or someone close: allergies, conditions, medication, phobias, danger."""
    wish: int
    """A standing wish, order or preference."""
    decision: int
    """A decision or commitment."""
    correction: int
    """It takes back or replaces something said before."""
    own: int
    """The speaker's own, plain and present: not a draft, fiction, quote, joke, hypothetical, or about someone else."""


HEADS = SentenceScores._fields


def score_sentences(sentences: Sequence[str]) -> list[SentenceScores]:
    """Score sentences of a person's turn, each for itself."""
    return [_score(sentence) for sentence in sentences]


def gate_terms(sentence: str) -> list[int]:
    """The buckets of a sentence's terms: words, pairs, how it begins and ends, and runs of letters within words."""
    tokens = _TOKEN.findall(visible_text(sentence[:_CHARS_MAX]))
    buckets: list[int] = []
    last, before = "^", ""
    for token in tokens:
        if not token.isascii() and _UNSPACED.search(token) is not None:
            buckets += _unspaced_terms(token)
            last, before = token[-2:], ""
            continue
        word = "0" if token.isdigit() else token[:_WORD_MAX]
        buckets += _word_terms(word)
        buckets.append(_bucket(f"{last} {word}"))
        if before:
            buckets.append(_bucket(f"{before} {last} {word}"))
        before, last = last, word
    buckets.append(_bucket(f"{last} $"))
    return buckets


@remembered(1 << 13)
def _word_terms(word: str) -> tuple[int, ...]:
    """A word, and its runs of three to five letters, of Korean two to four syllables."""
    marked = f"<{word}>"
    terms = [f"={word}"]
    if len(word) > 1:
        sizes = (3, 4, 5) if word.isascii() else (2, 3, 4)
        terms += [marked[at : at + size] for size in sizes for at in range(len(marked) - size + 1)]
    return tuple(map(_bucket, terms))


def _unspaced_terms(run: str) -> list[int]:
    """Runs of one to three characters of Chinese and Japanese, which stand without spaces."""
    marked = f"<{run}>"
    return [_bucket(marked[at : at + size]) for size in (1, 2, 3) for at in range(len(marked) - size + 1)]


def _bucket(term: str) -> int:
    return crc32(term.encode("utf-8", "surrogatepass")) % BUCKETS


def _score(sentence: str) -> SentenceScores:
    weights, scales = _model()
    buckets = gate_terms(sentence)
    packed = sum(map(weights.__getitem__, buckets)).to_bytes(_FIELD * len(HEADS), "little")
    biased, root = 128 * len(buckets), isqrt(max(len(buckets), TERMS_MIN) << 16)
    scores = []
    for head, (gain, offset) in enumerate(scales):
        total = int.from_bytes(packed[_FIELD * head : _FIELD * (head + 1)], "little") - biased
        scores.append(min(max(((total << 16) // root * gain + offset) >> 16, 0), 255))
    return SentenceScores(*scores)


@cache
def _model() -> tuple[list[int], list[tuple[int, int]]]:
    """The five weights of each bucket packed into one integer, each 128 too high as in the file, and the scales."""
    data = read_data("muniment.memory", "gate.bin")
    numbers = [int.from_bytes(data[at : at + 4], "little", signed=True) for at in range(0, SCALE_BYTES, 4)]
    fields = bytearray(_FIELD * (len(data) - SCALE_BYTES))
    fields[::_FIELD] = data[SCALE_BYTES:]
    width = _FIELD * len(HEADS)
    weights = [int.from_bytes(fields[at : at + width], "little") for at in range(0, len(fields), width)]
    return weights, list(zip(numbers[::2], numbers[1::2], strict=True))
