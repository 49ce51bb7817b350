"""Which claims of a perspective go into its summary, and in what order they are asked. Nothing is written here.

A claim's worth is its support, what it covers, what it adds to the claims that are in already, and whether it gives a
figure (`RankWeights`). Weights of terms are whole numbers, so that no sum depends on the order of a set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush
from itertools import chain
from math import log

from muniment.contracts.research import Perspective
from muniment.core.policy import RankWeights
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import Seen
from muniment.research.reading.figures import has_figure
from muniment.research.run_records import CheckedClaim

__all__ = ["asked_terms", "best_first", "first_said", "is_flagged", "is_packable"]

_RARENESS_UNIT = 1_000


def is_packable(claim: CheckedClaim) -> bool:
    """Whether a claim may stand in a pack: its source bears it, or may be cited and has no text to say otherwise."""
    return claim.support in ("supported", "unchecked") and bool(claim.citation_cids)


def is_flagged(claim: CheckedClaim) -> bool:
    """Whether a claim is doubtful: its sources do not bear it, or it gives a figure and names no source."""
    if claim.support == "uncited":
        return has_figure(claim.claim)
    return claim.support in ("refuted", "not_supported")


def first_said(claims: Sequence[CheckedClaim], overlap_min: float) -> list[int]:
    """Positions of the claims that stay: of those that say the same in nearly the same words, the best supported."""
    seen = Seen(overlap_min)
    kept: list[int] = []
    for at in sorted(range(len(claims)), key=lambda at: (-claims[at].confidence, at)):
        if seen.find(claims[at].claim) is None:
            seen.add(claims[at].claim, str(at))
            kept.append(at)
    return sorted(kept)


def asked_terms(question: str, perspective: Perspective) -> frozenset[str]:
    """The terms of the question, the perspective's title and, where it has one, its focus."""
    focus = (perspective.model_extra or {}).get("focus", "")
    return frozenset(analyze(f"{question}\n{perspective.title}\n{focus if isinstance(focus, str) else ''}"))


def best_first(
    claims: Sequence[CheckedClaim],
    asked: Set[str],
    weights: RankWeights,
    fits: Callable[[CheckedClaim], bool],
) -> Iterator[CheckedClaim]:
    """The best claim that fits, then the best beside it, and so on; equal ones by position.

    Each that is handed out counts as taken, and `fits` is asked again after it: what does not fit once never will. A
    claim's worth only falls as others are taken, so that it is worked out anew only when it is next in turn.
    """
    terms = [frozenset(analyze(claim.claim)) for claim in claims]
    counts = Counter(chain.from_iterable(terms))
    rareness = {term: round(_RARENESS_UNIT * log(1 + len(claims) / count)) for term, count in counts.items()}
    masses = [_mass(held, rareness) for held in terms]
    answers = _beside_the_best([float(_mass(held & asked, rareness)) for held in terms])
    centres = _beside_the_best([_centrality(held, counts, rareness) for held in terms])
    standing = [
        weights.support * claim.confidence / 100
        + weights.coverage * (2 * answer + centre) / 3  # what was asked for counts twice
        + weights.figure * has_figure(claim.claim)
        for claim, answer, centre in zip(claims, answers, centres, strict=True)
    ]
    said = [0.0] * len(claims)
    compared = [0] * len(claims)
    taken: list[int] = []
    heap = [(-(standing[at] + weights.novelty), at) for at in range(len(claims))]
    heapify(heap)
    while heap:
        _, at = heappop(heap)
        if not fits(claims[at]):
            continue
        if compared[at] == len(taken):
            taken.append(at)
            yield claims[at]
            continue
        shared = max(_mass(terms[at] & terms[other], rareness) for other in taken[compared[at] :])
        said[at] = max(said[at], shared / max(masses[at], 1))
        compared[at] = len(taken)
        heappush(heap, (-(standing[at] + weights.novelty * (1 - said[at])), at))


def _mass(terms: Set[str], rareness: Mapping[str, int]) -> int:
    return sum(map(rareness.__getitem__, terms))


def _centrality(terms: Set[str], counts: Mapping[str, int], rareness: Mapping[str, int]) -> float:
    """How central a claim is: in how many other claims a term of it stands, on average."""
    shared = sum(rareness[term] * (counts[term] - 1) for term in terms)
    return shared / max(_mass(terms, rareness), 1)


def _beside_the_best(values: Sequence[float]) -> list[float]:
    """0 to 1: each as a share of the greatest."""
    best = max(values, default=0.0)
    return [value / best if best else 0.0 for value in values]
