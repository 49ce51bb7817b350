"""Combine wording, doubts and slots into the chance that the source supports a claim, for a unit or a whole output.

Two chances are multiplied: that the source covers the statement (by its wording), and that nothing in it was changed
(by doubts and slots). So a doubt weighs much if the wording is the source's, and little if it is not, as the claim then
has no support anyway. Each is the logistic function of a weighted sum of *signs* (`core.policy`), and the scale of the
product was fitted on datasets held out from the weights. The verdict decides on which side of one half the number
falls. Sums are taken in the order the signs are written here, and the result is rounded: the same texts give the same
number on every machine.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from muniment.core.policy import DoubtWeights, FactCheckPolicy
from muniment.verify.facts._doubts import Doubt
from muniment.verify.facts._source import Claim, Source
from muniment.verify.facts._swaps import Alignment

WORDING_SIGNS = ("ties", "anchors", "window")
DOUBT_SIGNS = tuple(DoubtWeights.model_fields)
CHANGE_SIGNS = (*DOUBT_SIGNS, "swapped", "swapped_far")
_ANCHORS_MAX = 0.5
_SWAPPED_REACH = 2.0
"""Log-odds around the limit of a slot within which `swapped` measures how doubtful the slot is."""
_SWAPPED_MAX = 3.0
_EDGE = 0.2
"""Log-odds into which a number is squeezed if it falls on the wrong side of one half for its verdict."""
_ODDS_MAX = 30.0
_DECIMALS = 6


class Measured(NamedTuple):
    """A unit in the form the score uses."""

    doubts: tuple[Doubt, ...]
    nearness: Nearness
    alignment: Alignment
    is_supported: bool


def read_signs(units: Sequence[Measured], doubts_max: int) -> dict[str, float]:
    """The signs of some units together. Doubts are counted, each kind up to a limit; wording is a mean over words."""
    signs = dict.fromkeys(DOUBT_SIGNS, 0.0)
    for unit in units:
        for doubt in unit.doubts:
            signs[doubt.kind] = min(float(doubts_max), signs[doubt.kind] + doubt.weight)
    mean = _mean([unit.nearness for unit in units])
    signs["ties"] = math.sqrt(mean.ties)
    signs["anchors"] = min(_ANCHORS_MAX, mean.anchors)
    signs["window"] = mean.window
    most = max((unit.alignment.swapped for unit in units), default=-_SWAPPED_REACH)
    signs["swapped"] = min(1.0, max(0.0, (most + _SWAPPED_REACH) / (2 * _SWAPPED_REACH)))
    signs["swapped_far"] = min(_SWAPPED_MAX, max(0.0, most))
    return signs


def _mean(near: Sequence[Nearness]) -> Nearness:
    """The mean over all content words; units without any count only if there is no other."""
    size = sum(one.size for one in near)
    if not size:
        return Nearness()
    fields = [sum(one[at] * one.size for one in near) / size for at in range(1, len(Nearness._fields))]
    return Nearness(size, *fields)


def log_odds(signs: dict[str, float], policy: FactCheckPolicy) -> float:
    """The log-odds that the source supports a claim with these signs, for balanced classes."""
    wording = policy.wording.base
    for name in WORDING_SIGNS:
        wording += getattr(policy.wording, name) * signs[name]
    change = policy.change.base
    weights: dict[str, float] = vars(policy.doubts)
    for name in DOUBT_SIGNS:
        if signs[name]:
            change -= weights[name] * signs[name]
    change -= policy.change.swapped * signs["swapped"] + policy.change.swapped_far * signs["swapped_far"]
    chance = _chance(wording) * _chance(change)
    return policy.slope * math.log(chance / (1 - chance)) + policy.shift


def _chance(odds: float) -> float:
    return 1 / (1 + math.exp(-max(-_ODDS_MAX, min(_ODDS_MAX, odds))))


def support(units: Sequence[Measured], policy: FactCheckPolicy) -> float:
    """The chance that the source supports the units, 0 to 1: at least one half if all are supported, else at most."""
    if not any(unit.nearness.size or unit.doubts or unit.is_supported for unit in units):
        return 0.0
    odds = log_odds(read_signs(units, policy.doubts_max), policy)
    odds = pressed(odds) if all(unit.is_supported for unit in units) else -pressed(-odds)
    return round(_chance(odds), _DECIMALS)


def pressed(odds: float) -> float:
    """Log-odds squeezed above 0: values below the edge are mapped between 0 and it, keeping their order."""
    return odds if odds >= _EDGE else _EDGE * math.exp(max(-_ODDS_MAX, odds - _EDGE))


# -- nearness of wording -------------------------------------------------------------------------------

_REACH = 3
_FORMS_MAX = 3
_TIED = 0.7
"""Nearness to a neighbour in the source that makes a word anchored."""
_STRETCH = 60
"""Length of the source window that is matched with the claim: two or three sentences."""
_PLACES_MAX = 200
"""Maximum occurrences considered for a frequent word."""


class Nearness(NamedTuple):
    """Nearness of a claim's wording; the defaults, of a claim without content words, are neutral."""

    size: int = 0
    """Number of content words."""
    cover: float = 0.0
    """Weight of the words covered by the best sentence and its neighbours, above 1 if these repeat them."""
    held: float = 0.5
    """Share of content words that the source has; another form of a word counts less."""
    ties: float = 0.5
    """How close words that are neighbours in the claim come to each other in the source."""
    anchors: float = 0.5
    """Share of words near one of their neighbours in the source too."""
    window: float = 0.5
    """Largest share of content words in one stretch of the source."""


def measure_nearness(claim: Claim, source: Source) -> Nearness:
    size = len(claim.content)
    if not size:
        return Nearness()
    held = sum(max((form.degree for form in claim.variants[at]), default=0.0) for at in claim.content) / size
    ties, anchors = _ties(claim, source)
    return Nearness(size, claim.covered, held, ties, anchors, _window(claim, source))


def _ties(claim: Claim, source: Source) -> tuple[float, float]:
    """The mean tie of neighbours, and the share of anchored words."""
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
    """Return the largest share of the claim's words within one stretch of the source.

    A repeated word of the claim has the same places each time, so it is processed once.
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
