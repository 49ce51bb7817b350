"""The order of the best candidates where a question needs several turns.

Where several things are asked for, one session seldom holds them all: each turn that is taken from a session makes its
others worth a little less. Where an account of what was said is asked for, it is a stretch of turns that is wanted,
many of which do not name what it is about: a turn that stands among others which score is worth more.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.policy import RecallPolicy
from muniment.memory.recall.index import Ints, ScopeIndex
from muniment.memory.recall.query import Query
from muniment.memory.recall.score import Scores

__all__ = ["Covering", "cover"]

STRETCH = 8
"""How many turns before and after one belong to its stretch, the nearest counting most."""
_TOLD_MIN = 0.5
"""What of its own score a stretch adds to a turn at least where that is told as a reason."""


class Covering(NamedTuple):
    """The pool in its final order but for time."""

    pool: Ints
    worths: npt.NDArray[np.float64]
    """What each place is worth, which never rises."""
    told: Mapping[int, str]
    """Why a turn stands higher or lower than its score, in words, by ordinal."""


def cover(query: Query, index: ScopeIndex, policy: RecallPolicy, pool: Ints, scores: Scores) -> Covering:
    """Put the best of a pool in the order in which they answer together."""
    size = min(len(pool), policy.diversity_pool)
    if query.account and policy.stretch and size > 1:
        return _by_stretch(index, policy.stretch, pool, scores, size)
    if query.gathers and policy.diversity and size > 1:
        return _over_sessions(index, policy.diversity, pool, scores, size)
    return Covering(pool, scores.total[pool], {})


def _over_sessions(index: ScopeIndex, step: float, pool: Ints, scores: Scores, size: int) -> Covering:
    """Each turn that is taken from a session makes its others worth a step less."""
    total = scores.total[pool]
    whole: list[float] = total[:size].tolist()
    sessions: list[int] = index.session[pool[:size]].tolist()
    waiting: dict[int, list[int]] = {}
    for place in range(size - 1, -1, -1):
        waiting.setdefault(sessions[place], []).append(place)
    taken = dict.fromkeys(waiting, 0)
    heads = [(-whole[places[-1]], places.pop()) for places in waiting.values()]  # each session's best, the best first
    heapify(heads)
    order: list[int] = []
    worths = total.copy()
    while heads:
        worth, best = heappop(heads)
        worths[len(order)] = -worth
        order.append(best)
        session = sessions[best]
        taken[session] += 1
        if waiting[session]:
            place = waiting[session].pop()
            heappush(heads, (-_lessened(whole[place], step, taken[session]), place))
    passed = [int(pool[was]) for place, was in enumerate(order) if was < place]
    told = dict.fromkeys(passed, "stands below what other sessions say")
    return Covering(_reordered(pool, order), np.minimum.accumulate(worths), told)


def _lessened(worth: float, step: float, times: int) -> float:
    """One step after the other, as the turns were taken: a product would be rounded elsewise."""
    for _ in range(times):
        worth -= step
    return worth


def _by_stretch(index: ScopeIndex, share: float, pool: Ints, scores: Scores, size: int) -> Covering:
    """What the turns around one score is added to its own, the nearer the more; the best is worth what it was."""
    best = pool[:size]
    own = scores.total[best]
    around = np.zeros(size)
    last = len(scores.total) - 1
    for distance in range(1, STRETCH + 1):
        for there in (best - distance, best + distance):
            at = there.clip(0, last)
            is_there = (at == there) & (index.session[at] == index.session[best])
            if scores.eligible is not None:
                is_there &= scores.eligible[at]
            around += np.where(is_there, scores.total[at], 0.0).clip(0.0) * (1 - distance / (STRETCH + 1))
    around *= share
    worths = own + around
    if (most := float(own.max())) > 0:
        worths *= most / float(worths.max())
    order = np.lexsort((best, -worths))
    total = scores.total[pool]
    total[:size] = worths[order]
    is_told = around >= _TOLD_MIN * np.abs(own)
    told = dict.fromkeys(best[is_told].tolist(), "stands among turns that match")
    return Covering(_reordered(pool, order.tolist()), np.minimum.accumulate(total), told)


def _reordered(pool: Ints, order: list[int]) -> Ints:
    made = pool.copy()
    made[: len(order)] = pool[order]
    return made
