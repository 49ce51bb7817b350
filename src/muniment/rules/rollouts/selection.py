"""Which summaries a synthesis reads (RC-20): good ones that are not all alike. Greedy, and the same every time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import NamedTuple

from muniment.contracts.runs import RolloutSelectBlock, RolloutSummary
from muniment.core.policy import RolloutPolicy
from muniment.core.text.sentences import cosine, words_of
from muniment.rules.rollouts.summaries import summary_text

__all__ = ["METHOD", "Selection", "diversity_of", "select_summaries"]

METHOD = "score+diversity"
_DIGITS = 6

Words = Sequence[str]


class Selection(NamedTuple):
    """The chosen summaries, best first, each with the score it was chosen by; and the block that tells of it."""

    chosen: tuple[RolloutSummary, ...]
    block: RolloutSelectBlock


def select_summaries(summaries: Sequence[RolloutSummary], policy: RolloutPolicy) -> Selection:
    """At each step the one whose score and unlikeness to those chosen weigh most. Ties go to the earlier id."""
    words = {each.summary_id: words_of(summary_text(each)) for each in summaries}
    left = sorted(summaries, key=lambda each: each.summary_id)
    chosen: list[RolloutSummary] = []
    while left and len(chosen) < policy.top_m:
        scores = [_score(each, chosen, words, policy.diversity_weight) for each in left]
        place = max(range(len(left)), key=lambda at: (scores[at], -at))
        chosen.append(left.pop(place).model_copy(update={"selection_score": round(scores[place], _DIGITS)}))
    return Selection(tuple(chosen), _block(summaries, chosen, words))


def diversity_of(words: Sequence[Words]) -> float | None:
    """1 − the mean cosine of all pairs; None where there is no pair."""
    pairs = [cosine(one, other) for one, other in combinations(words, 2)]
    return round(1 - fsum(pairs) / len(pairs), _DIGITS) if pairs else None


def _score(
    summary: RolloutSummary, chosen: Sequence[RolloutSummary], words: Mapping[str, Words], weight: float
) -> float:
    mine = words[summary.summary_id]
    likeness = [cosine(mine, words[each.summary_id]) for each in chosen]
    unlike = 1 - fsum(likeness) / len(likeness) if likeness else 1.0
    return (1 - weight) * (summary.verifier_score or 0.0) + weight * unlike


def _block(
    summaries: Sequence[RolloutSummary], chosen: Sequence[RolloutSummary], words: Mapping[str, Words]
) -> RolloutSelectBlock:
    return RolloutSelectBlock.from_wire(
        {
            "rollouts_n": len(summaries),
            "top_m": len(chosen),
            "selection_method": METHOD,
            "selected_summary_ids": [each.summary_id for each in chosen],
            "diversity_score": diversity_of([words[each.summary_id] for each in chosen]),
        }
    )
