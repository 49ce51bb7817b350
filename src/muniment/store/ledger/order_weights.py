"""How much a text reads like an order to a model: what its parts and terms count for, as was learned.

The weights (`data/order_weights.txt`) are whole numbers that `benchmarks.learn_orders` wrote. A window is a sentence,
or two in a row: its terms count together, divided by the root of their number, and so does every part and every two
parts that stand in it. A root is rounded the same everywhere, so the same text weighs the same on every machine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from itertools import combinations_with_replacement
from math import sqrt
from typing import NamedTuple

from muniment.core.text.word_lists import read_data
from muniment.store.ledger.order_words import PARTS, Sentence, sentences_of

__all__ = ["TERMS_MIN", "OrderWeights", "order_weight", "pair_name", "pair_numbers"]

_COUNT = len(PARTS)
TERMS_MIN = 12
"""Fewer terms count as so many: one word by itself is no order."""
_LIGHTEST = -1e9
"""What a text without a word weighs."""


def pair_numbers(bits: int) -> list[int]:
    """The numbers of the parts that are set, and of each two of them."""
    parts = [number for number in range(_COUNT) if bits >> number & 1]
    return [_number(one, other) for at, one in enumerate(parts) for other in parts[at:]]


def _number(one: int, other: int) -> int:
    """The place of two parts, the first not behind the second; of a part with itself: its own."""
    return one * (2 * _COUNT - one + 1) // 2 + other - one


def pair_name(number: int) -> str:
    """What stands for a pair in the file of weights."""
    one, other = list(combinations_with_replacement(PARTS, 2))[number]
    return one if one == other else f"{one}+{other}"


class OrderWeights(NamedTuple):
    """What every term and every two parts count for, and what is to be passed."""

    terms: dict[str, int]
    pairs: tuple[int, ...]
    least: int

    def heaviest(self, sentences: list[Sentence]) -> float:
        """How much the heaviest window weighs above what is to be passed."""
        get, worths = self.terms.get, dict[int, int]()
        heaviest = _LIGHTEST
        last_bits = last_total = last_count = 0
        for bits, said in sentences:
            terms = _once(said)
            total, count = sum([get(term, 0) for term in terms]), len(terms)
            windows = [(bits, total, count)]
            if last_bits or last_count:
                windows.append((bits | last_bits, total + last_total, count + last_count))
            for held, told, among in windows:
                worth = worths.get(held)
                if worth is None:
                    worth = worths[held] = sum([self.pairs[number] for number in pair_numbers(held)])
                heaviest = max(heaviest, worth + told / sqrt(max(among, TERMS_MIN)) - self.least)
            last_bits, last_total, last_count = bits, total, count
        return heaviest


def _once(terms: Sequence[str]) -> Collection[str]:
    """The terms of a sentence; of one that says few words over and over, each once: saying it again is no order."""
    distinct = dict.fromkeys(terms)
    return distinct if 2 * len(distinct) < len(terms) else terms


@cache
def _weights() -> OrderWeights:
    pairs, terms, least = [0] * (_COUNT * (_COUNT + 1) // 2), dict[str, int](), 0
    for line in read_data("muniment.store.ledger", "order_weights.txt").decode("utf-8").splitlines():
        name, _, weight = line.rpartition("\t")
        kind, _, told = name.partition(" ")
        if kind == "term":
            terms[told] = int(weight)
        elif kind == "parts":
            one, _, other = told.partition("+")
            pairs[_number(PARTS.index(one), PARTS.index(other or one))] = int(weight)
        elif kind == "least":
            least = int(weight)
    return OrderWeights(terms, tuple(pairs), least)


def order_weight(text: str, weights: OrderWeights | None = None) -> float:
    """How much the heaviest window of a text in lower case weighs; above 0 it reads like an order."""
    return (_weights() if weights is None else weights).heaviest(sentences_of(text))
