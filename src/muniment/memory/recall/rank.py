"""The ranked turns of a scope for a query, each with its reasons; of what changed, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.policy import RecallPolicy
from muniment.memory.recall.call_order import score_calls
from muniment.memory.recall.coverage import cover
from muniment.memory.recall.evidence import FIRST, SIGNS, calibration, chances, read_signs
from muniment.memory.recall.found import FOUND_SIGNS, read_found
from muniment.memory.recall.index import Ints, ScopeIndex
from muniment.memory.recall.learnt import POOL, Lifted, ranking, read_traits, weigh_traits, worth_of
from muniment.memory.recall.moments import Exact
from muniment.memory.recall.newest import Order, newest_first
from muniment.memory.recall.query import Query, read_query
from muniment.memory.recall.reasons import Reasons
from muniment.memory.recall.said import Said
from muniment.memory.recall.score import Dense, Scores, score

__all__ = ["Ranked", "Reach", "rank", "signs_of", "top", "traits_of"]


class Reach:
    """How far a search reached: filled in by `rank`."""

    def __init__(self) -> None:
        self.matched = 0
        """Turns that there was a reason to show, within where it was to look."""
        self.eligible: npt.NDArray[np.bool_] | None = None
        """Which these are; None where they are all."""


class Ranked(NamedTuple):
    """A turn that was found, and why it stands where it stands."""

    ordinal: int
    score: float
    parts: Mapping[str, float]
    """The features that the score is the sum of."""
    chance: float
    """How likely it is evidence for the query, from 0 to 1; falls from place to place."""
    reasons: tuple[str, ...]


def rank(
    query: str,
    index: ScopeIndex,
    policy: RecallPolicy,
    now: date,
    k: int,
    dense: Dense | None = None,
    exact_moments: Exact | None = None,
    among: npt.NDArray[np.bool_] | None = None,
    reach: Reach | None = None,
) -> list[Ranked]:
    """The best `k` turns, best first. Equal scores stand in ordinal order; the same inputs give the same list.

    `exact_moments` is asked where sessions said the same thing within one second. `among` says of each turn whether it
    may be found at all.
    """
    if k < 1 or not len(index.ts):
        return []
    placed = _placed(query, index, policy, now, k, dense, exact_moments, among, reach)
    asked, scores, said, order, places, lifted, covering = placed
    best = order.ordinals[:k]
    signs = read_signs(asked, index, policy, scores, said, order.ordinals[: max(k, FIRST)], places)[: len(best)]
    found = read_found(asked, index, policy, scores)
    made = calibration(policy.evidence)
    likely = chances(signs, found, places[: len(best)], made, has_vectors="dense_turn" in scores.parts)
    told = Reasons(query, asked, index.speakers, policy)
    chosen = np.array(best, np.int64)
    names = list(scores.parts)
    columns = [part[chosen].tolist() for part in scores.parts.values()]
    values = list(zip(*columns, strict=True)) or [()] * len(best)
    worths = places[: len(best)].tolist()
    shifts = (places[: len(best)] - scores.total[chosen]).tolist()
    ranked = []
    for place, ordinal in enumerate(best):
        parts = {name: value for name, value in zip(names, values[place], strict=True) if value}
        reasons = told.of(said.held(ordinal), parts)
        reasons += lifted.told(ordinal)
        if ordinal in covering:
            reasons.append(covering[ordinal])
        if shifts[place]:
            parts["order"] = shifts[place]
        if ordinal in order.alike[:1]:
            reasons.append(f"newest of {len(order.alike)} that answer alike")
        elif ordinal in order.newer:
            reasons.append(f"states a later value than {order.newer[ordinal]} that answer alike")
        ranked.append(Ranked(ordinal, worths[place], parts, likely[place], tuple(reasons)))
    return ranked


def signs_of(
    query: str, index: ScopeIndex, policy: RecallPolicy, now: date, k: int, dense: Dense | None = None
) -> tuple[list[int], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The ordinals that `rank` would answer, and the signs by which it tells how likely each is evidence: those of each
    hit, and those of the query.
    """
    if not len(index.ts):
        return [], np.zeros((0, len(SIGNS))), np.zeros((1, len(FOUND_SIGNS)))
    asked, scores, said, order, places, *_ = _placed(query, index, policy, now, k, dense)
    best = order.ordinals[: max(k, FIRST)]
    signs = read_signs(asked, index, policy, scores, said, best, places)[:k]
    return best[:k], signs, read_found(asked, index, policy, scores)


def traits_of(
    query: str, index: ScopeIndex, policy: RecallPolicy, now: date, dense: Dense | None = None
) -> tuple[Ints, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The candidates that what was learnt is about, best first: their ordinals, base scores and traits."""
    asked = _read(query, index, now)
    scores = score(asked, index, policy, dense)
    best = top(scores, POOL)
    return best, scores.total[best], read_traits(asked, index, scores, dense, best)


class _Placed(NamedTuple):
    """What a search comes to before its hits are told."""

    query: Query
    scores: Scores
    """What every turn scores."""
    said: Said
    """What the best say."""
    order: Order
    places: npt.NDArray[np.float64]
    """What each place is worth."""
    lifted: Lifted
    """What was learnt of the best."""
    covering: Mapping[int, str]
    """Why one stands higher or lower for the others, in words, by ordinal."""


def _read(query: str, index: ScopeIndex, now: date) -> Query:
    return read_query(query, index.speakers, now, lambda term: len(index.postings(term)[0]))


def _placed(
    query: str,
    index: ScopeIndex,
    policy: RecallPolicy,
    now: date,
    k: int,
    dense: Dense | None,
    exact_moments: Exact | None = None,
    among: npt.NDArray[np.bool_] | None = None,
    reach: Reach | None = None,
) -> _Placed:
    asked = _read(query, index, now)
    scores = score_calls(query, asked, index, now, score(asked, index, policy, dense))
    if among is not None:
        scores = scores._replace(eligible=among if scores.eligible is None else scores.eligible & among)
    if reach is not None:
        reach.eligible = scores.eligible
        reach.matched = len(index.ts) if scores.eligible is None else int(np.count_nonzero(scores.eligible))
    pool = top(scores, max(k, POOL, policy.newest_reach, policy.diversity_pool))
    lifted = Lifted({})
    if policy.ranking:
        pool, scores, lifted = _learnt(asked, index, policy, pool, scores, dense)
    pool, places, covering = cover(asked, index, policy, pool, scores)
    said = Said(asked, index, pool)
    order = newest_first(asked, index, policy, said, pool, places, exact_moments)
    return _Placed(asked, scores, said, order, places, lifted, covering)


def _learnt(
    query: Query, index: ScopeIndex, policy: RecallPolicy, pool: Ints, scores: Scores, dense: Dense | None
) -> tuple[Ints, Scores, Lifted]:
    """The pool with its best put in order by what was learnt, the scores with what that adds, and what it is.

    The totals of the pool are changed where they stand: a scope may have many, and who scored it hands them over.
    """
    best, rest = pool[:POOL], pool[POOL:]
    base = scores.total[best]
    made = ranking(policy.ranking)
    added_by = weigh_traits(
        made.vectors if "dense_turn" in scores.parts else made.words, read_traits(query, index, scores, dense, best)
    )
    worth = worth_of(base, added_by)
    order = np.lexsort((best, -worth))
    total, added = scores.total, np.zeros(len(scores.total))
    total[best] = worth
    added[best] = worth - base
    if len(rest):  # none of those that were not looked at stands above one that was
        limit = float(worth.min())
        over = np.maximum(total[rest] - limit, 0.0)
        total[rest] -= over
        added[rest] = -over
    parts = {**scores.parts, "learnt": added}
    lifted = Lifted(dict(zip(best.tolist(), added_by.tolist(), strict=True)))
    return np.concatenate((best[order], rest)), scores._replace(parts=parts), lifted


def top(scores: Scores, k: int) -> Ints:
    """The ordinals of the best `k` eligible turns, by score and then by ordinal."""
    total = scores.total
    places: Ints | None = None
    if scores.eligible is not None:
        (places,) = scores.eligible.nonzero()
        total = total[places]
    if len(total) > _STEP * 2 * k:  # what is among the best of all is no worse than the last of the best of some
        places, total = _best_of(total, places, _least(total[::_STEP], k))
    if len(total) > k:
        places, total = _best_of(total, places, _least(total, k))
    order = (-total).argsort(kind="stable")[:k]
    return order if places is None else places[order]


_STEP = 16
"""Of a large scope every so many turns are looked at first."""


def _least(total: npt.NDArray[np.float64], k: int) -> float:
    """What the last of the best `k` has."""
    return float(np.partition(total, len(total) - k)[len(total) - k])


def _best_of(total: npt.NDArray[np.float64], places: Ints | None, least: float) -> tuple[Ints, npt.NDArray[np.float64]]:
    (kept,) = (total >= least).nonzero()
    return kept if places is None else places[kept], total[kept]
