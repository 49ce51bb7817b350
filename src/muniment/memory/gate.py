"""The gate: five scores per sentence that estimate how much it is worth keeping in view. They rank, never filter.

A linear model over hashed words, pairs of words and letters, fitted on sentences in ten languages that were written for
the project (`tools/fit_gate.py`). Scoring is integer arithmetic, so a sentence scores the same everywhere. Precision is
low, by nature of so small a model: use a score to decide the order, not the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import repeat
from math import isqrt
from typing import NamedTuple
from zlib import crc32

from muniment.core.limits import remembered
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import read_data
from muniment.store.injection import visible_text

__all__ = ["HEADS", "SCALE_BYTES", "TERMS_MIN", "SentenceScores", "gate_terms", "score_sentences"]

TERMS_MIN = 24
"""A sentence with fewer terms is scored as if it had this many."""
SCALE_BYTES = 40
"""The scales come first in the file: for each score a gain and an offset, four bytes each, little-endian."""
_CHARS_MAX = 600
"""A longer sentence is scored by its beginning."""
_WORD_MAX = 24
_KEY_BYTES = 3
_FIELD_BITS = 24
"""Bits of a packed sum for each score: enough for the terms of `_CHARS_MAX` characters."""

_TOKEN = lazy_pattern(r"[^\W\d_]+|\d+|[^\w\s]")
_QUOTES = str.maketrans(dict.fromkeys("“”„«»「」『』", '"'))
_UNSPACED = lazy_pattern("[\u3040-\u30ff\u3400-\u9fff]")


class SentenceScores(NamedTuple):
    """Scores from 0 to 255: 128 is the decision threshold, 64 and 192 are the margins used in fitting."""

    safety: int
    """Ignoring it could hurt the speaker or someone close: allergies, conditions, medication, phobias, danger."""
    wish: int
    """A standing wish, order or preference."""
    decision: int
    """A decision or commitment."""
    correction: int
    """It retracts or replaces an earlier statement."""
    own: int
    """The speaker's own, plain and present: not a draft, fiction, quote, joke, hypothetical, or about someone else."""


HEADS = SentenceScores._fields


def score_sentences(sentences: Sequence[str]) -> list[SentenceScores]:
    """Score the sentences of a person's turn, each independently."""
    return [_score(sentence) for sentence in sentences]


def gate_terms(sentence: str) -> list[int]:
    """The keys of a sentence's terms: words, two and three in a row, its two ends, and runs of letters within words."""
    tokens = _TOKEN.findall(visible_text(sentence[:_CHARS_MAX]).translate(_QUOTES))
    keys: list[int] = []
    last, before = "^", ""
    for token in tokens:
        if not token.isascii() and _UNSPACED.search(token) is not None:
            keys += _unspaced_terms(token)
            last, before = token[-2:], ""
            continue
        word = "0" if token.isdigit() else token[:_WORD_MAX]
        keys += _word_terms(word)
        keys.append(_key(f"{last} {word}"))
        if before:
            keys.append(_key(f"{before} {last} {word}"))
        before, last = last, word
    keys.append(_key(f"{last} $"))
    return keys


@remembered(1 << 13)
def _word_terms(word: str) -> tuple[int, ...]:
    """A word, and its runs of three to five letters (two to four syllables in Korean)."""
    marked = f"<{word}>"
    terms = [f"={word}"]
    if len(word) > 1:
        sizes = (3, 4, 5) if word.isascii() else (2, 3, 4)
        terms += [marked[at : at + size] for size in sizes for at in range(len(marked) - size + 1)]
    return tuple(map(_key, terms))


def _unspaced_terms(run: str) -> list[int]:
    """Runs of one to three characters of Chinese and Japanese, which are written without spaces."""
    marked = f"<{run}>"
    return [_key(marked[at : at + size]) for size in (1, 2, 3) for at in range(len(marked) - size + 1)]


def _key(term: str) -> int:
    """A 24-bit checksum; an unknown term hardly ever collides with a known one."""
    return crc32(term.encode("utf-8", "surrogatepass")) >> 8


def _score(sentence: str) -> SentenceScores:
    weights, scales = _model()
    keys = gate_terms(sentence)
    packed = sum(map(weights.get, keys, repeat(0)))
    root = isqrt(max(len(keys), TERMS_MIN) << 16)
    scores = []
    for gain, offset in scales:
        total = ((packed + _HALF) & _MASK) - _HALF
        packed = (packed - total) >> _FIELD_BITS
        scores.append(min(max(((total << 16) // root * gain + offset) >> 16, 0), 255))
    return SentenceScores(*scores)


_MASK, _HALF = (1 << _FIELD_BITS) - 1, 1 << (_FIELD_BITS - 1)


@cache
def _model() -> tuple[dict[int, int], list[tuple[int, int]]]:
    """The weights of each known term packed into one integer, and the scales."""
    data = read_data("muniment.memory", "gate.bin")
    numbers = [int.from_bytes(data[at : at + 4], "little", signed=True) for at in range(0, SCALE_BYTES, 4)]
    weights = {
        int.from_bytes(data[at : at + _KEY_BYTES]): sum(
            (weight - 128) << (_FIELD_BITS * head)
            for head, weight in enumerate(data[at + _KEY_BYTES : at + _ROW_BYTES])
        )
        for at in range(SCALE_BYTES, len(data), _ROW_BYTES)
    }
    return weights, list(zip(numbers[::2], numbers[1::2], strict=True))


_ROW_BYTES = _KEY_BYTES + len(HEADS)
