"""What came of a record lately: counts that fade from run to run, and who is handed a lesson by them. Pure.

A use counts half as much after each half-life, counted in judged runs of its kind of work and not in days: where
nothing happens nothing is forgotten. What helped in a world that is gone gives way to what helps now, and nobody has to
tell that the world has changed. Nothing here decides where a lesson stands.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from muniment.core.policy import LessonPolicy
from muniment.core.stats import Beta, prob_greater
from muniment.learning.lesson_state import LessonStage
from muniment.learning.lessons.uses import Uses

__all__ = ["Lately", "chance_of", "lately_of", "share_of"]

_DOUBT_GIVEN = 2.0
"""An active lesson has the benefit of the doubt: what it is handed to falls where it looks worse than doing without."""


class Lately(NamedTuple):
    """Faded counts of a record."""

    passes: float = 0.0
    n: float = 0.0
    """Of runs that had it."""
    other_passes: float = 0.0
    other_n: float = 0.0
    """Of runs that it fitted and that did without."""
    written: float = 1.0
    """What an outcome of the run that it was written of counts by now."""
    uses: int = 0
    """Both arms, each counted once."""


def lately_of(found: Uses, half_life_runs: float) -> Lately:
    """The uses of a record as they count now."""
    sums = {"had": (0.0, 0.0), "held_out": (0.0, 0.0)}
    for use, age in zip(found.uses, found.ages, strict=True):
        weight = 0.5 ** (age / half_life_runs)
        passes, n = sums[use.arm]
        sums[use.arm] = passes + weight * use.passed, n + weight
    (passes, n), (other_passes, other_n) = sums["had"], sums["held_out"]
    return Lately(
        passes=round(passes, 1),
        n=round(n, 1),
        other_passes=round(other_passes, 1),
        other_n=round(other_n, 1),
        written=round(0.5 ** (found.written / half_life_runs), 2),
        uses=len(found.uses),
    )


def share_of(stage: LessonStage, lately: Lately, policy: LessonPolicy) -> float:
    """Of the runs that a lesson on trial or active fits, how many are handed it: the chance that it helps, by what came
    of it lately, once there are enough uses to ask and some did without. Both arms keep a holdout's share, and trials a
    larger one to compare with.
    """
    least, most = policy.holdout_share, 1 - policy.holdout_share
    if stage == "trial":
        most = min(most, 1 - policy.trial_holdout_share)
    start = policy.trial_share if stage == "trial" else most
    if lately.uses < policy.trial_uses_min or not lately.other_n:
        return start
    chance = chance_of(*lately[:4]) * (1.0 if stage == "trial" else _DOUBT_GIVEN)
    return min(max(chance, least), most)


@lru_cache(maxsize=4096)
def chance_of(passes: float, n: float, other_passes: float, other_n: float) -> float:
    """That runs with a thing pass more often than runs without it."""
    return prob_greater(
        Beta(1 + passes, 1 + max(0.0, n - passes)), Beta(1 + other_passes, 1 + max(0.0, other_n - other_passes))
    )
