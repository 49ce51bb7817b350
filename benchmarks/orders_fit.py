"""Fit what parts and terms of an order count for: logistic regression over windows of texts, with numpy alone.

A window is a sentence of a text, or two in a row. Which window of an attack is the order is not told: the heaviest
under the present weights is taken. Of texts without orders a sample of windows is taken, and in every further round the
heaviest ones as well. A seed and the same texts give the same weights.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muniment.store.ledger.disguises import readings_of
from muniment.store.ledger.order_weights import TERMS_MIN, pair_numbers
from muniment.store.ledger.order_words import PARTS, sentences_of

__all__ = ["ROUNDS", "Corpus", "Model", "fit", "joined", "read_corpus", "texts_where"]

PAIRS = len(PARTS) * (len(PARTS) + 1) // 2
_NEVER = -1e9
ROUNDS, _STEPS = 4, 150
_SAMPLE, _HARD = 30_000, 15_000
_PULL_TERMS, _PULL_PAIRS = 2e-6, 1e-3
_HARMLESS_TIMES = 3.0

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Corpus(NamedTuple):
    """Texts as sentences: where those of each text begin, and for each its parts and where its terms begin."""

    text_starts: Ints
    bits: Ints
    term_starts: Ints
    terms: Ints
    """Numbers of the terms that may have a weight, sentence after sentence."""
    counts: Ints
    """How many terms each sentence has, those without a weight included."""


def read_corpus(texts: Iterable[str], known: Mapping[str, int]) -> Corpus:
    """The sentences of every reading of each text."""
    text_starts, bits, term_starts, terms, counts = [0], array("q"), array("q", [0]), array("q"), array("q")
    for text in texts:
        for reading in readings_of(text):
            for sentence in sentences_of(reading):
                bits.append(sentence.bits)
                terms.extend([number for term in sentence.terms if (number := known.get(term, -1)) >= 0])
                term_starts.append(len(terms))
                counts.append(len(sentence.terms))
        text_starts.append(len(bits))
    return Corpus(*(np.array(each, np.int64) for each in (text_starts, bits, term_starts, terms, counts)))


def joined(corpora: Sequence[Corpus]) -> Corpus:
    """The texts of several corpora as one."""
    text_starts, term_starts = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    sentences = terms = 0
    for each in corpora:
        text_starts.append(each.text_starts[1:] + sentences)
        term_starts.append(each.term_starts[1:] + terms)
        sentences, terms = sentences + len(each.bits), terms + len(each.terms)
    rest = ([each.bits for each in corpora], [each.terms for each in corpora], [each.counts for each in corpora])
    bits, held, counts = (np.concatenate(each) for each in rest)
    return Corpus(np.concatenate(text_starts), bits, np.concatenate(term_starts), held, counts)


def texts_where(corpus: Corpus, is_taken: NDArray[np.bool_]) -> Corpus:
    """The texts of a corpus for which it is said so."""
    lengths = np.diff(corpus.text_starts)
    of_sentence = np.repeat(is_taken, lengths)
    term_lengths = np.diff(corpus.term_starts)
    of_term = np.repeat(of_sentence, term_lengths)
    return Corpus(
        np.concatenate(([0], np.cumsum(lengths[is_taken]))),
        corpus.bits[of_sentence],
        np.concatenate(([0], np.cumsum(term_lengths[of_sentence]))),
        corpus.terms[of_term],
        corpus.counts[of_sentence],
    )


class Model:
    """Weights of terms and pairs while they are learned."""

    def __init__(self, terms: int) -> None:
        self.terms, self.pairs, self.bias = np.zeros(terms), np.zeros(PAIRS), -3.0

    def window_scores(self, corpus: Corpus) -> Floats:
        """What each sentence weighs by itself, and what with the next one: two rows."""
        sums = np.concatenate(([0.0], np.cumsum(self.terms[corpus.terms])))
        told = sums[corpus.term_starts[1:]] - sums[corpus.term_starts[:-1]]
        single = self._worths(corpus.bits) + told / np.sqrt(np.maximum(TERMS_MIN, corpus.counts))
        both = np.full_like(single, _NEVER)
        if len(told) > 1:
            count = np.sqrt(np.maximum(TERMS_MIN, corpus.counts[:-1] + corpus.counts[1:]))
            both[:-1] = self._worths(corpus.bits[:-1] | corpus.bits[1:]) + (told[:-1] + told[1:]) / count
        both[_last_sentences(corpus)] = _NEVER  # no window goes over the end of a text
        return np.stack([single, both])

    def _worths(self, bits: Ints) -> Floats:
        distinct, where = np.unique(bits, return_inverse=True)
        worths: Floats = np.array([self.pairs[pair_numbers(int(each))].sum() for each in distinct])
        return worths[where]

    def text_scores(self, corpus: Corpus) -> Floats:
        """What the heaviest window of each text weighs."""
        best = self.window_scores(corpus).max(axis=0)
        bounds = pairwise(corpus.text_starts.tolist())
        return np.array([best[one:other].max() if other > one else _NEVER for one, other in bounds])


def _last_sentences(corpus: Corpus) -> Ints:
    ends = corpus.text_starts[1:] - 1
    return ends[ends >= corpus.text_starts[:-1]]


class _Rows(NamedTuple):
    """Windows as rows of a sparse matrix: numbers of pairs and of terms, and what each term is divided by."""

    pairs: Ints
    pair_rows: Ints
    terms: Ints
    term_rows: Ints
    roots: Floats
    rows: int


def _rows_of(corpus: Corpus, windows: Sequence[tuple[int, int]]) -> _Rows:
    """Of windows: the number of a sentence, and 1 where the next one belongs to it."""
    pairs, pair_rows = array("q"), array("q")
    terms, term_rows, roots = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for row, (at, wide) in enumerate(windows):
        numbers = pair_numbers(int(corpus.bits[at]) | (int(corpus.bits[at + 1]) if wide else 0))
        pairs.extend(numbers)
        pair_rows.extend([row] * len(numbers))
        held = corpus.terms[corpus.term_starts[at] : corpus.term_starts[at + 1 + wide]]
        terms.append(held)
        term_rows.append(np.full(len(held), row))
        roots.append(np.full(len(held), 1 / np.sqrt(max(TERMS_MIN, int(corpus.counts[at : at + 1 + wide].sum())))))
    return _Rows(
        np.array(pairs, np.int64), np.array(pair_rows, np.int64),
        np.concatenate(terms), np.concatenate(term_rows), np.concatenate(roots), len(windows),
    )  # fmt: skip


def _heaviest_windows(model: Model, corpus: Corpus, *, by_parts: bool) -> list[tuple[int, int]]:
    """Of each text the window that weighs most, or before anything is learned the one with the most parts."""
    if by_parts:
        counts = np.bitwise_count(corpus.bits).astype(np.float64)
        wide = np.full_like(counts, -1.0)
        wide[:-1] = np.bitwise_count(corpus.bits[:-1] | corpus.bits[1:]) + 0.5
        wide[_last_sentences(corpus)] = -1.0
        scores = np.stack([counts, wide])
    else:
        scores = model.window_scores(corpus)
    best, found = scores.max(axis=0), []
    for one, other in pairwise(corpus.text_starts.tolist()):
        if other > one:
            at = one + int(np.argmax(best[one:other]))
            found.append((at, int(scores[1, at] > scores[0, at])))
    return found


def fit(attacks: Corpus, harmless: Corpus, quiet: Corpus, may_weigh: NDArray[np.bool_], rounds: int = ROUNDS) -> Model:
    """Weights under which attacks weigh more than what is harmless or quiet; of terms only those that may weigh."""
    model = Model(len(may_weigh))
    draw = np.random.default_rng(0)
    ends = set(_last_sentences(quiet).tolist())
    at, wide = draw.integers(0, len(quiet.bits), _SAMPLE).tolist(), draw.integers(0, 2, _SAMPLE).tolist()
    chosen = {(one, far) for one, far in zip(at, wide, strict=True) if not (far and one in ends)}
    last = set(_last_sentences(harmless).tolist())
    alike = [(one, far) for one in range(len(harmless.bits)) for far in (0, 1) if not (far and one in last)]
    for number in range(rounds):
        orders = _heaviest_windows(model, attacks, by_parts=number == 0)
        if number:
            scores = model.window_scores(quiet)
            for far in (0, 1):
                hard = np.argpartition(-scores[far], min(_HARD, len(quiet.bits) - 1))[:_HARD]
                chosen |= {(int(one), far) for one in hard if scores[far, one] > _NEVER}
        parts = (_rows_of(attacks, orders), _rows_of(quiet, sorted(chosen)), _rows_of(harmless, alike))
        shares = (parts[1].rows / parts[0].rows, 1.0, _HARMLESS_TIMES)
        _descend(model, parts, shares, may_weigh)
    return model


def _descend(model: Model, parts: tuple[_Rows, ...], shares: tuple[float, ...], may_weigh: NDArray[np.bool_]) -> None:
    """Steps of Adam down the loss, with a pull of every weight to nothing. The first part is orders."""
    firsts = np.cumsum([0, *(each.rows for each in parts)])
    whole = int(firsts[-1])
    pair_rows = np.concatenate([each.pair_rows + first for each, first in zip(parts, firsts[:-1], strict=True)])
    term_rows = np.concatenate([each.term_rows + first for each, first in zip(parts, firsts[:-1], strict=True)])
    pairs, terms = np.concatenate([each.pairs for each in parts]), np.concatenate([each.terms for each in parts])
    roots = np.concatenate([each.roots for each in parts])
    told = np.zeros(whole)
    told[: parts[0].rows] = 1.0
    counts = np.repeat(shares, [each.rows for each in parts])
    counts /= counts.sum()
    momenta = [[np.zeros(len(model.terms))] * 2, [np.zeros(PAIRS)] * 2, [np.zeros(1)] * 2]
    for step in range(1, _STEPS + 1):
        score = np.bincount(pair_rows, model.pairs[pairs], whole) + model.bias
        score += np.bincount(term_rows, model.terms[terms] * roots, whole)
        off = (1 / (1 + np.exp(-np.clip(score, -30, 30))) - told) * counts
        slopes = (
            (np.bincount(terms, off[term_rows] * roots, len(model.terms)) + _PULL_TERMS * model.terms) * may_weigh,
            np.bincount(pairs, off[pair_rows], PAIRS) + _PULL_PAIRS * model.pairs,
            np.array([off.sum()]),
        )
        pace = 0.3 * (1 - step / (_STEPS + 1)) + 0.01
        moves = []
        for momentum, slope in zip(momenta, slopes, strict=True):
            momentum[0] = 0.9 * momentum[0] + 0.1 * slope
            momentum[1] = 0.99 * momentum[1] + 0.01 * slope * slope
            moves.append(pace * (momentum[0] / (1 - 0.9**step)) / (np.sqrt(momentum[1] / (1 - 0.99**step)) + 1e-6))
        model.terms -= moves[0]
        model.pairs -= 0.3 * moves[1]
        model.bias -= float(moves[2][0])
