"""How near the wording of a claim is to the source: numbers from 0 to about 1, which alone say nothing of truth."""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

from muniment.verify.facts.claims import Claim
from muniment.verify.facts.source import Source

__all__ = ["Nearness", "measure_nearness"]

_REACH = 3
_FORMS_MAX = 3
_TIED = 0.7
"""A word is anchored that stands so near to one of its neighbours in the source."""
_STRETCH = 60
"""Words of the source among which as much of the claim as possible is looked for: two or three sentences."""
_PLACES_MAX = 200
"""Of a word that stands more often only the first places are looked at."""


class Nearness(NamedTuple):
    """Of a claim without a word of content nothing is near, and nothing far."""

    size: int = 0
    """Its words of content."""
    cover: float = 0.0
    """Weight of the words that the best sentence and its neighbours hold, more than 1 where these repeat them."""
    held: float = 0.5
    """Words of content that the source holds; another form of a word counts less."""
    ties: float = 0.5
    """How near words that stand close in the claim come to each other in the source."""
    anchors: float = 0.5
    """Words that stand near one of their neighbours in the source too."""
    window: float = 0.5
    """Words of content that one stretch of the source holds."""


def measure_nearness(claim: Claim, source: Source) -> Nearness:
    size = len(claim.content)
    if not size:
        return Nearness()
    held = sum(max((form.degree for form in claim.variants[at]), default=0.0) for at in claim.content) / size
    ties, anchors = _ties(claim, source)
    return Nearness(size, claim.covered, held, ties, anchors, _window(claim, source))


def _ties(claim: Claim, source: Source) -> tuple[float, float]:
    """The mean tie of neighbours, and the share of words that are anchored."""
    best = [0.0] * len(claim.content)
    total, count = 0.0, 0
    for place, left in enumerate(claim.content):
        ones = claim.variants[left][:_FORMS_MAX]
        for other, right in enumerate(claim.content[place + 1 : place + 1 + _REACH], start=place + 1):
            if claim.words[left].key == claim.words[right].key:
                continue
            count += 1
            others = claim.variants[right][:_FORMS_MAX]
            if not ones or not others:
                continue
            tie = max(
                source.closeness(one.key, two.key, right - left) * one.degree * two.degree if one.key != two.key else 0
                for one in ones
                for two in others
            )
            total += tie
            best[place], best[other] = max(best[place], tie), max(best[other], tie)
    if not count:
        return 0.5, 0.5
    return total / count, sum(tie > _TIED for tie in best) / len(best)


def _window(claim: Claim, source: Source) -> float:
    """The largest share of the claim's words that stand within one stretch of the source.

    A word that the claim has several times stands in the same places each time, and is looked at once.
    """
    times = Counter(claim.variants[at] for at in claim.content)
    counts = list(times.values())
    found = sorted(
        (spot, number, form.degree)
        for number, forms in enumerate(times)
        for form in forms
        for spot in source.places[form.key][:_PLACES_MAX]
    )
    last = [(-1, 0.0)] * len(counts)
    inside: deque[tuple[int, int]] = deque()
    held = most = 0.0
    for spot, number, degree in found:
        while inside and inside[0][0] < spot - _STRETCH:
            gone, of = inside.popleft()
            if last[of][0] == gone:
                held -= counts[of] * last[of][1]
                last[of] = (-1, 0.0)
        held += counts[number] * (degree - last[number][1])
        last[number] = (spot, degree)
        inside.append((spot, number))
        most = max(most, held)
    return min(1.0, most / len(claim.content))
