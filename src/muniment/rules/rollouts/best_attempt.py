"""Which of several attempts stands (RC-20), and that a later one never takes the place of a better one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from muniment.contracts.runs import VerifierResult
from muniment.verify.results import is_pass, score_of

__all__ = ["Stood", "best_of", "is_confirmed", "rank_of", "replaces", "score_in"]


class Stood(NamedTuple):
    """An attempt as it is compared with others."""

    result: VerifierResult
    answer: str
    """In one line."""
    cost: float = 0.0


def is_confirmed(result: VerifierResult) -> bool:
    return is_pass(result.verdict, result.outcome) and result.outcome == "OK"


def rank_of(result: VerifierResult) -> int:
    """3 passed and confirmed, 2 passed and unknown, 1 in part, 0 failed."""
    if is_pass(result.verdict, result.outcome):
        return 3 if result.outcome == "OK" else 2
    return int(result.verdict == "PARTIAL" and result.outcome != "FAIL")


def score_in(result: VerifierResult) -> float:
    """The verifier's score, else what its words are worth."""
    return score_of(result.verdict, result.outcome) if result.score is None else result.score


def best_of(attempts: Sequence[Stood]) -> int:
    """The number of the one that stands: by rank, score, how many others answer the same, cost, and being first."""
    agreed = Counter(_compared_text(each.answer) for each in attempts)

    def key(number: int) -> tuple[float, float, int, float, int]:
        each = attempts[number]
        return (-rank_of(each.result), -score_in(each.result), -agreed[_compared_text(each.answer)], each.cost, number)

    return min(range(len(attempts)), key=key)


def replaces(synthesis: VerifierResult, standing: VerifierResult) -> bool:
    """May a synthesis take the place of what stands? What is confirmed stays; else it may if it is no worse."""
    if is_confirmed(standing):
        return False
    mine, other = rank_of(synthesis), rank_of(standing)
    return mine > other or (mine == other and mine > 0 and score_in(synthesis) >= score_in(standing))


def _compared_text(answer: str) -> str:
    """An answer as it is compared: folded, without marks at its ends."""
    return " ".join(answer.casefold().split()).strip(" .。*`\"'")
