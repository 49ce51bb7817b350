"""Which sentences to cite for a claim, and which words of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

from muniment.contracts.runs import FGFCEvidence
from muniment.core.policy import FactCheckPolicy
from muniment.core.text.patterns import lazy_pattern
from muniment.verify.facts.claims import Claim
from muniment.verify.facts.source import Source

__all__ = ["cite", "pick_evidence"]

_SPACED = lazy_pattern(r"\S+")
_WORD_CHARS_MAX = 100
"""Text without spaces counts as a word for each so many characters."""


def pick_evidence(claim: Claim, source: Source, policy: FactCheckPolicy) -> list[int]:
    """Sentences that together hold most of the claim: the one that holds most, then each that adds enough."""
    held: dict[str, dict[int, float]] = {}
    for key, form in dict.fromkeys((claim.words[at].key, form) for at in claim.content for form in claim.variants[at]):
        worth = form.degree * source.rarity(form.key)
        by_place = held.setdefault(key, {})
        for place in source.spread[form.key]:
            by_place[place] = max(by_place.get(place, 0.0), worth)
    total = sum(max(by_place.values()) for by_place in held.values())
    have = dict.fromkeys(held, 0.0)
    picked: list[int] = []
    while len(picked) < policy.evidence_max:
        gains: dict[int, float] = {}
        for key, by_place in held.items():
            for place, worth in by_place.items():
                if worth > have[key]:
                    gains[place] = gains.get(place, 0.0) + worth - have[key]
        best = max(gains, key=lambda place: (gains[place], -place), default=-1)
        if best < 0 or (picked and gains[best] < policy.evidence_gain_min * total):
            break
        picked.append(best)
        for key, by_place in held.items():
            have[key] = max(have[key], by_place.get(best, 0.0))
    return picked


def cite(place: int, keys: Collection[str], source: Source, policy: FactCheckPolicy) -> FGFCEvidence:
    """A sentence of the source as evidence; a long one is cut to the stretch that holds most of the given words."""
    sentence = source.sentences[place]
    document = source.documents[sentence.document]
    text = document.text[sentence.start : sentence.end]
    most = policy.quote_words_max
    parts = text.split()
    if len(parts) <= most and max(map(len, parts), default=0) <= _WORD_CHARS_MAX:
        ref = f"{document.source}:{document.id}#c{sentence.start}-{sentence.end}"
        return FGFCEvidence(source=document.source, ref=ref, quote=text)
    spans = _pieces(text)
    marks, ends = [0] * len(spans), [end for _, end in spans]
    for word in sentence.words:
        if word.kind != "small" and word.key in keys:
            marks[bisect_right(ends, word.start)] += 1
    first = max(range(max(1, len(spans) - most + 1)), key=lambda at: (sum(marks[at : at + most]), -at))
    start, end = spans[first][0], spans[min(len(spans), first + most) - 1][1]
    ref = f"{document.source}:{document.id}#c{sentence.start + start}-{sentence.start + end}"
    return FGFCEvidence(source=document.source, ref=ref, quote=text[start:end])


def _pieces(text: str) -> list[tuple[int, int]]:
    """Words between spaces; a run without a space is cut."""
    return [
        (start, min(found.end(), start + _WORD_CHARS_MAX))
        for found in _SPACED.finditer(text)
        for start in range(found.start(), found.end(), _WORD_CHARS_MAX)
    ]
