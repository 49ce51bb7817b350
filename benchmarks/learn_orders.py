"""Learn what parts and terms of an order count for: `src/muniment/store/ledger/data/order_weights.txt`.

    python -m benchmarks.learn_orders --data DIR [--more DIR]      # writes the weights that the package ships

Attacks of our own (`benchmarks.injection_texts`, `benchmarks.injection_families`) against what looks like orders and is
none, and against the texts of `benchmarks.quiet_pools`, of large sets one in so many. What is to be passed is set so
that of texts that nothing was learned from the share `FALSE_RATE` passes it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import default_data
from benchmarks.injection_families import FAMILIES, texts_of
from benchmarks.injection_texts import LANGUAGES, Attack, attacks, harmless, held_back
from benchmarks.orders_fit import ROUNDS, Corpus, Model, fit, read_corpus, texts_where
from benchmarks.quiet_pools import quiet_texts, side_of
from muniment.store.ledger.disguises import readings_of
from muniment.store.ledger.order_weights import OrderWeights, pair_name
from muniment.store.ledger.order_words import sentences_of

__all__ = ["Material", "all_attacks", "learn", "material"]

FILE = Path(__file__).parent.parent / "src/muniment/store/ledger/data/order_weights.txt"
SEED, TEXTS = 1, 60
FALSE_RATE = 0.001
"""The share of the texts set apart for it that may pass."""
_SCALE = 100
_TERM_MIN = 12
"""Terms that count for less are left out: there are many, and they decide nothing."""
_EVERY = {
    "beam_500k": 3, "qmsum": 3, "vehiclemembench": 10, "longmemeval": 2,
}  # fmt: skip
"""Of large sets one text in so many is read."""
_SIBLINGS = {
    "direct orders": "direct", "personas": "persona", "imitated delimiters": "delimiter",
    "orders in tool results": "tool", "polite requests in pages": "polite", "exfiltration by link": "link",
    "hidden in markup": "web", "code comments": "code", "forwarded e-mail": "mail",
    "authority and urgency": "authority", "memory poisoning": "memory", "conditions": "condition",
}  # fmt: skip
"""Families of the grammars that attack in the same way as one that is written out: one family, left out together."""


class Material(NamedTuple):
    """All that is learned from, read."""

    known: dict[str, int]
    told: list[Attack]
    attacks: Corpus
    harmless: Corpus
    quiet: Corpus
    apart: Corpus
    """Texts without orders that set what is to be passed."""


def all_attacks(seed: int = SEED, half: int | None = None) -> list[Attack]:
    """Every attack of our own, and those of another hand, each in the family in which it is left out."""
    drawn = [
        Attack(_SIBLINGS.get(family, family), "", text) for family in FAMILIES for text in texts_of(family, TEXTS, seed)
    ]
    return [*attacks(half=half), *drawn, *(each._replace(family=f"held back: {each.family}") for each in held_back())]


def material(data: Path, more: Path | None) -> Material:
    """Read everything once."""
    told = all_attacks()
    alike = [text for language in LANGUAGES for text in harmless(language)]
    seen = _term_counts(each.text for each in told)
    known = {term: number for number, term in enumerate(sorted(term for term in seen if seen[term] > 1))}
    for term in sorted(_term_counts(alike)):
        known.setdefault(term, len(known))
    quiet = [each for at, each in enumerate(quiet_texts(data, more)) if at // 2 % _EVERY.get(each.of_set, 1) == 0]
    apart = [each for each in quiet if side_of(each) == "set"]
    return Material(
        known,
        told,
        read_corpus((each.text for each in told), known),
        read_corpus(alike, known),
        read_corpus((each.text for each in quiet if side_of(each) == "learned"), known),
        read_corpus((each.text for each in apart), known),
    )


def _term_counts(texts: Iterable[str]) -> Counter[str]:
    """In how many of the texts each term stands."""
    return Counter(
        term
        for text in texts
        for term in {term for reading in readings_of(text) for each in sentences_of(reading) for term in each.terms}
    )


def learn(read: Material, is_taken: NDArray[np.bool_] | None = None, rounds: int = ROUNDS) -> OrderWeights:
    """Weights from the attacks that are taken, or from all; of a term that only others have it knows nothing."""
    taken = np.ones(len(read.told), np.bool_) if is_taken is None else is_taken
    ours = texts_where(read.attacks, taken)
    may_weigh = (_texts_with(ours, len(read.known)) > 1) | (_texts_with(read.harmless, len(read.known)) > 0)
    model = fit(ours, read.harmless, read.quiet, may_weigh, rounds)
    return _whole_numbers(model, read)


def _texts_with(corpus: Corpus, terms: int) -> NDArray[np.int64]:
    of_sentence = np.repeat(np.arange(len(corpus.text_starts) - 1), np.diff(corpus.text_starts))
    of_term = np.repeat(of_sentence, np.diff(corpus.term_starts))
    return np.bincount(np.unique(np.stack([of_term, corpus.terms]), axis=1)[1], minlength=terms)


def _whole_numbers(model: Model, read: Material) -> OrderWeights:
    """The weights as the package has them, and what is to be passed under these."""
    model.terms, model.pairs = np.round(model.terms * _SCALE), np.round(model.pairs * _SCALE)
    model.terms[np.abs(model.terms) < _TERM_MIN] = 0.0
    heaviest = np.sort(model.text_scores(read.apart))[::-1]
    least = int(heaviest[int(len(heaviest) * FALSE_RATE)]) + 1
    terms = {term: int(model.terms[number]) for term, number in read.known.items() if model.terms[number]}
    return OrderWeights(terms, tuple(int(weight) for weight in model.pairs), least)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--more", type=Path, default=None, help="a folder of further texts without orders, as JSONL")
    given = parser.parse_args()
    weights = learn(material(given.data, given.more))
    lines = [
        "# Where from: `python -m benchmarks.learn_orders`. What each part, each two of them and each term count for,",
        "# and what is to be passed. Whole numbers; a tab before each.",
        f"least\t{weights.least}",
        *(f"parts {pair_name(number)}\t{weight}" for number, weight in enumerate(weights.pairs) if weight),
        *(f"term {term}\t{weight}" for term, weight in sorted(weights.terms.items())),
    ]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
