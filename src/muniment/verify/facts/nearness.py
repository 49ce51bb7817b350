"""How near the wording of a claim is to the source: numbers from 0 to about 1, which alone say nothing of truth."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from muniment.verify.facts.claims import Claim
from muniment.verify.facts.source import Source

__all__ = ["Nearness", "measure_nearness"]

_REACH = 3
_FORMS_MAX = 3


class Nearness(NamedTuple):
    cover: float = 0.0
    """Weight of the words that the best sentence and its neighbours hold."""
    pairs: float = 0.0
    """Neighbouring words that are neighbours in the source too."""
    ties: float = 0.0
    """How near words that stand close in the claim come to each other in the source."""
    words: float = 0.0
    """Words that the source holds."""
    pronouns: float = 0.0
    """How many pronouns of the third person there are."""


def measure_nearness(claim: Claim, source: Source) -> Nearness:
    keys = [word.key for word in claim.words]
    if not keys:
        return Nearness()
    held = sum(key in source.places for key in keys) / len(keys)
    neighbours = list(pairwise(keys))
    pairs = sum(pair in source.pairs for pair in neighbours) / len(neighbours) if neighbours else held
    pronouns = sum(role == "pronoun" for role in claim.roles)
    return Nearness(claim.covered, pairs, _ties(claim, source), held, float(pronouns))


def _ties(claim: Claim, source: Source) -> float:
    total, count = 0.0, 0
    for place, left in enumerate(claim.content):
        for right in claim.content[place + 1 : place + 1 + _REACH]:
            ones, others = claim.variants[left], claim.variants[right]
            if claim.words[left].key == claim.words[right].key:
                continue
            count += 1
            if not ones or not others:
                continue
            total += max(
                source.closeness(one.key, two.key, right - left) * one.degree * two.degree if one.key != two.key else 0
                for one in ones[:_FORMS_MAX]
                for two in others[:_FORMS_MAX]
            )
    return total / count if count else 0.5
