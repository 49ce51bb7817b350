"""What stands around the words of a claim, in the claim and in the sentences of the source. One object for each claim.

What a sentence shows of a word is looked up once, however many slots of the claim have the word beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muniment.verify.facts.claims import Claim
from muniment.verify.facts.related import nearest_kin
from muniment.verify.facts.slots import Slot
from muniment.verify.facts.source import Source
from muniment.verify.facts.synonyms import alike

__all__ = ["CONTEXT_REACH", "Context", "Surroundings"]

CONTEXT_REACH = 10
_CONTEXT_MAX = 8
_CLOSE_MAX = 3
_NEAR_WORTH = 0.3
"""What stands in the sentence before or behind counts so much."""
_FAR_WORTH = 0.6
"""What stands in the same sentence, but further away than in the claim, counts so much."""
_SLACK = 3

Context = Sequence[tuple[int, float]]
"""The words of content around a slot, the nearest first, and what each counts."""


class _Sight(NamedTuple):
    """What a sentence shows of a word of the claim."""

    whole: float
    """How well it holds the word, wherever it stands."""
    beside: float
    """How well the sentence before or behind does."""
    forms: list[tuple[float, list[int]]]
    """Its forms there: how well each stands for it, and its places."""


class Surroundings:
    """A claim beside its source."""

    def __init__(self, claim: Claim, source: Source) -> None:
        self._claim = claim
        self._source = source
        self._sights: dict[int, dict[int, _Sight]] = {}
        self._kin: dict[tuple[str, int], tuple[float, str]] = {}

    def context(self, slot: Slot) -> Context:
        """What stands around a slot."""
        first, last = slot.at, slot.end - 1
        near = [
            (min(abs(at - first), abs(at - last)), at)
            for at in self._claim.content
            if -CONTEXT_REACH <= at - first <= CONTEXT_REACH + 1 + last - first and not first <= at <= last
        ]
        near.sort()
        words, rarity = self._claim.words, self._source.rarity
        return [(at, 1.0 / (1.0 + apart / 4) * rarity(words[at].key)) for apart, at in near[:_CONTEXT_MAX]]

    def frame(self, context: Context) -> float:
        """How much of a context the best sentences have, wherever it stands in them."""
        best = 0.0
        for place in self._claim.tops:
            sights = self._sights.setdefault(place, {})
            held = total = 0.0
            for at, weight in context:
                total += weight
                held += weight * (sights.get(at) or self._see(place, at)).whole
            best = max(best, held / total if total else 0.5)
        return best

    def ties(self, context: Context, place: int, shift: int) -> tuple[float, float]:
        """How much of a context a sentence has near the slot's word (`shift`: from the claim's place to it); and how
        much of the nearest words of it stands close to that word."""
        sights = self._sights.setdefault(place, {})
        held = total = close_held = close_total = 0.0
        for number, (at, weight) in enumerate(context):
            _, worth, forms = sights.get(at) or self._see(place, at)
            close = 0.0
            for degree, spots in forms:
                far = degree * _FAR_WORTH
                if far > worth:
                    worth = far
                if degree > close:
                    for spot in spots:
                        if -_SLACK <= spot - at - shift <= _SLACK:
                            close = degree
                            break
            total += weight
            held += weight * (close if close > worth else worth)
            if number < _CLOSE_MAX:
                close_total += weight
                close_held += weight * close
        return (held / total, close_held / close_total) if total else (0.5, 0.5)

    def _see(self, place: int, at: int) -> _Sight:
        rows, holds = self._source.positions(place), self._source.holds
        whole = beside = 0.0
        forms: list[tuple[float, list[int]]] = []
        for key, degree in self._claim.variants[at]:
            spots = rows.get(key)
            if spots is not None:
                forms.append((degree, spots))
                whole = max(whole, degree)
            elif holds(place - 1, key) or holds(place + 1, key):
                beside = max(beside, degree * _NEAR_WORTH)
        found = _Sight(max(whole, beside), beside, forms)
        self._sights[place][at] = found
        return found

    def kin(self, key: str, places: Sequence[int]) -> tuple[float, str]:
        """How well a word of some sentences can stand for this one, and which."""
        best, which = 0.0, ""
        for place in places:
            found = self._kin.get((key, place))
            if found is None:
                source = self._source
                is_there = key in source.content(place)
                found = (1.0, key) if is_there else nearest_kin(key, source.senses(place), alike(key))
                self._kin[key, place] = found
            if found[0] > best:
                best, which = found
        return best, which
