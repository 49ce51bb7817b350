"""Whether what a lesson brings has changed: a test over its own uses, in the order they came. Pure.

The uses that had it are split at every place; the likelihood of one pass rate before and a lower one after is set
against that of one rate for all. The best split is told where its log likelihood ratio is over a threshold, which was
set by simulation so that a lesson whose rate stays the same is seldom told to have changed, however often one looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

from muniment.core.stats import Tally

__all__ = ["ChangePoint", "find_drop"]

_BEFORE_MIN, _AFTER_MIN = 4, 5
"""Outcomes that each side of a split needs."""


class ChangePoint(NamedTuple):
    """Where a pass rate dropped."""

    place: int
    """The first outcome after the change."""
    evidence: float
    """The log likelihood ratio of two rates against one."""
    before: Tally
    after: Tally

    @property
    def words(self) -> str:
        """`passed 1 of the last 8 with it, 14 of 20 before`."""
        before, after = self.before, self.after
        return f"passed {after.passes} of the last {after.n} with it, {before.passes} of {before.n} before"


def find_drop(outcomes: Sequence[bool], threshold: float, known: Tally = Tally()) -> ChangePoint | None:  # noqa: B008
    """The best place to say that the pass rate dropped; None where one rate explains the outcomes about as well.

    `known` are outcomes of before the first one: what is known of it from elsewhere.
    """
    best: ChangePoint | None = None
    total, passes = len(outcomes) + known.n, sum(outcomes) + known.passes
    alone = _log_likelihood(passes, total)
    after_passes = 0
    for place in range(len(outcomes) - 1, -1, -1):
        after_passes += outcomes[place]
        after_n = len(outcomes) - place
        before_n, before_passes = total - after_n, passes - after_passes
        if after_n < _AFTER_MIN or before_n < _BEFORE_MIN:
            continue
        if after_passes * before_n >= before_passes * after_n:  # no drop
            continue
        ratio = _log_likelihood(before_passes, before_n) + _log_likelihood(after_passes, after_n) - alone
        if ratio >= threshold and (best is None or ratio > best.evidence):
            best = ChangePoint(place, ratio, Tally(before_passes, before_n), Tally(after_passes, after_n))
    return best


def _log_likelihood(passes: float, n: float) -> float:
    """Of so many passes at the rate that suits them best."""
    fails = n - passes
    return (passes * log(passes / n) if passes > 0 else 0.0) + (fails * log(fails / n) if fails > 0 else 0.0)
