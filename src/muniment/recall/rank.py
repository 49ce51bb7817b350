"""The ranked turns of a scope for a query, each with its reasons; of what changed, the newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.recall.index import Ints, ScopeIndex
from muniment.recall.moments import Exact
from muniment.recall.newest import newest_first, superseded
from muniment.recall.query import Query, read_query
from muniment.recall.said import Said
from muniment.recall.score import Dense, Scores, score
from muniment.records.recall_policy import RecallPolicy
from muniment.text.attributes import name_of

__all__ = ["Ranked", "rank", "top"]


class Ranked(NamedTuple):
    """A turn that was found, and why it stands where it stands."""

    ordinal: int
    score: float
    parts: Mapping[str, float]
    """The features that the score is the sum of."""
    superseded_by: int | None
    """The ordinal of a later statement of the same thing."""
    reasons: tuple[str, ...]


def rank(
    query: str,
    index: ScopeIndex,
    policy: RecallPolicy,
    now: date,
    k: int,
    dense: Dense | None = None,
    exact_moments: Exact | None = None,
) -> list[Ranked]:
    """The best `k` turns, best first. Equal scores stand in ordinal order; the same inputs give the same list.

    `exact_moments` is asked where sessions said the same thing within one second.
    """
    if k < 1 or not len(index.ts):
        return []
    asked = read_query(query, index.speakers, now)
    scores = score(asked, index, policy, dense)
    pool = top(scores, max(k, policy.newest_reach, policy.diversity_pool))
    pool, places = _diverse(asked, index, policy, pool, scores)
    said = Said(asked, index, pool)
    order = newest_first(asked, index, policy, said, pool, places, exact_moments)
    outdated = superseded(asked, index, policy, said, order.alike)
    best = order.ordinals[:k]
    told = _Told(asked)
    among = np.array(best, np.int64)
    names = list(scores.parts)
    columns = [part[among].tolist() for part in scores.parts.values()]
    values = list(zip(*columns, strict=True)) or [()] * len(best)
    worths = places[: len(best)].tolist()
    shifts = (places[: len(best)] - scores.total[among]).tolist()
    ranked = []
    for place, ordinal in enumerate(best):
        parts = {name: value for name, value in zip(names, values[place], strict=True) if value}
        reasons = told.reasons(said.held(ordinal), parts) + _reasons(parts, index, ordinal)
        if shifts[place]:
            parts["order"] = shifts[place]
        if ordinal in order.alike[:1]:
            reasons.append(f"newest of {len(order.alike)} that answer alike")
        if ordinal in outdated:
            reasons.append("superseded by a later statement")
        ranked.append(Ranked(ordinal, worths[place], parts, outdated.get(ordinal), tuple(reasons)))
    return ranked


def top(scores: Scores, k: int) -> Ints:
    """The ordinals of the best `k` eligible turns, by score and then by ordinal."""
    places = np.flatnonzero(scores.eligible)
    total = scores.total if len(places) == len(scores.total) else scores.total[places]
    if len(places) > k:
        least = np.partition(total, len(total) - k)[len(total) - k]
        kept = np.flatnonzero(total >= least)
        places, total = places[kept], total[kept]
    return places[np.argsort(-total, kind="stable")][:k]


def _diverse(
    query: Query, index: ScopeIndex, policy: RecallPolicy, pool: Ints, scores: Scores
) -> tuple[Ints, npt.NDArray[np.float64]]:
    """The pool in its final order but for time, and the score of each place, which never rises.

    Where several things are asked for, each turn already taken from a session makes its others worth a little less.
    """
    total = scores.total[pool]
    size = min(len(pool), policy.diversity_pool)
    if not query.gathers or not policy.diversity or size < 2:
        return pool, total
    left: list[float] = total[:size].tolist()
    sessions: list[int] = index.session[pool[:size]].tolist()
    waiting: dict[int, list[int]] = {}
    for place in range(size - 1, -1, -1):
        waiting.setdefault(sessions[place], []).append(place)
    heads = [(-left[places[-1]], places.pop()) for places in waiting.values()]  # each session's best, the best first
    heapify(heads)
    order: list[int] = []
    worths = total.copy()
    while heads:
        worth, best = heappop(heads)
        worths[len(order)] = -worth
        order.append(best)
        others = waiting[sessions[best]]
        for other in others:
            left[other] -= policy.diversity
        if others:
            heappush(heads, (-left[others[-1]], others.pop()))
    shuffled = pool.copy()
    shuffled[:size] = pool[order]
    return shuffled, np.minimum.accumulate(worths)


# -- reasons ------------------------------------------------------------------------------------------


class _Told:
    """What of the query a turn holds itself, in words; many turns hold the same."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._known: dict[int, tuple[str, ...]] = {}

    def reasons(self, held: int, parts: Mapping[str, float]) -> list[str]:
        if held not in self._known:
            self._known[held] = tuple(self._told(held))
        reasons = list(self._known[held])
        if not reasons and ("words" in parts or "kinds" in parts):
            reasons.append("stands beside what matches")
        return reasons

    def _told(self, held: int) -> Iterator[str]:
        slots = self._query.slots
        said = [slot.word for place, slot in enumerate(slots) if held >> place & 1]
        words = [word for word in said if name_of(word) is None]
        states = [name for word in said if (name := name_of(word)) is not None]
        kinds = [
            " ".join(slots[slot].word for slot in kind.slots)
            for place, kind in enumerate(self._query.kinds, len(slots))
            if held >> place & 1
        ]
        if words:
            yield "says " + ", ".join(words)
        if states:
            yield "states " + ", ".join(dict.fromkeys(states))
        if kinds:
            yield "may speak of " + ", ".join(dict.fromkeys(kinds))


def _reasons(parts: Mapping[str, float], index: ScopeIndex, ordinal: int) -> list[str]:
    reasons = []
    if "speaker" in parts:
        reasons.append(f"said by {index.speakers[int(index.speaker[ordinal])]}")
    if "role" in parts:
        reasons.append("said by the one asked about")
    if "time" in parts:
        reasons.append("said in the time asked about")
    if "recency" in parts:
        reasons.append("recent, and the present state is asked for")
    if parts.get("dense_turn", 0) > 0 or parts.get("dense_window", 0) > 0:
        reasons.append("near in meaning")
    return reasons
