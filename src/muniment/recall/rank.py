"""The ranked turns of a scope for a query, each with its reasons; of what changed, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt

from muniment.recall.index import Ints, ScopeIndex
from muniment.recall.query import Query, read_query
from muniment.recall.score import Dense, Scores, held_by, idf, score
from muniment.records.recall_policy import RecallPolicy

__all__ = ["Ranked", "rank", "top"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A turn that was found, and why it stands where it stands."""

    ordinal: int
    score: float
    parts: Mapping[str, float]
    """The features that the score is the sum of."""
    superseded_by: int | None
    """The ordinal of a later statement of the same thing."""
    reasons: tuple[str, ...]


def rank(
    query: str, index: ScopeIndex, policy: RecallPolicy, now: date, k: int, dense: Dense | None = None
) -> list[Ranked]:
    """The best `k` turns, best first. Equal scores stand in ordinal order; the same inputs give the same list."""
    if k < 1 or not len(index.ts):
        return []
    asked = read_query(query, index.speakers, now)
    scores = score(asked, index, policy, dense)
    pool = top(scores, max(k, policy.newest_pool, policy.diversity_pool))
    pool, places = _diverse(asked, index, policy, pool, scores)
    order = _newest_first(asked, index, policy, pool, places)
    superseded = _superseded(asked, index, policy, order.alike)
    held = _Held(asked, index, order.ordinals[:k])
    ranked = []
    for place, ordinal in enumerate(order.ordinals[:k].tolist()):
        parts = {name: float(part[ordinal]) for name, part in scores.parts.items() if part[ordinal]}
        reasons = held.reasons(place, parts) + _reasons(parts, index, ordinal)
        shift = float(places[place] - scores.total[ordinal])
        if shift:
            parts["order"] = shift
        if ordinal in order.alike[:1]:
            reasons.append(f"newest of {len(order.alike)} that answer alike")
        if ordinal in superseded:
            reasons.append("superseded by a later statement")
        ranked.append(Ranked(ordinal, float(places[place]), parts, superseded.get(ordinal), tuple(reasons)))
    return ranked


def top(scores: Scores, k: int) -> Ints:
    """The ordinals of the best `k` eligible turns, by score and then by ordinal."""
    places = np.flatnonzero(scores.eligible)
    total = scores.total[places]
    if len(places) > k:
        least = np.partition(total, len(total) - k)[len(total) - k]
        kept = total >= least
        places, total = places[kept], total[kept]
    return places[np.lexsort((places, -total))][:k]


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
    left, sessions = total[:size].copy(), index.session[pool[:size]]
    order, places = [], total.copy()
    for place in range(size):
        best = int(np.argmax(left))
        order.append(best)
        places[place] = left[best]
        left[sessions == sessions[best]] -= policy.diversity
        left[best] = -np.inf
    shuffled = pool.copy()
    shuffled[:size] = pool[order]
    return shuffled, np.minimum.accumulate(places)


# -- what changed -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Order:
    ordinals: Ints
    alike: list[int]
    """Those that answer alike, newest first; empty where fewer than two do."""


def _matches(
    query: Query, index: ScopeIndex, among: Ints, *, kinds: bool = True
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Turns × slots: which turn says what is asked, or with `kinds` what may stand for it; and the slots' weights."""
    names = set()
    if query.speaker is not None:
        names = {name.casefold() for name in index.speakers[query.speaker].split()}
    rows, weights = [], []
    for place, slot in enumerate(query.slots):
        if slot.word in names:
            continue
        holding, _ = index.postings(slot.term)
        terms = [slot.term]
        if kinds:
            terms += [term for kind in query.kinds if place in kind.slots for term in kind.terms]
        found = held_by(index, terms, among)
        if len(holding) or found.any():
            rows.append(found)
            weights.append(idf(len(index.ts), len(holding)))
    if not rows:
        return np.zeros((len(among), 0), bool), np.zeros(0)
    return np.array(rows).T, np.array(weights)


def _newest_first(
    query: Query, index: ScopeIndex, policy: RecallPolicy, ordinals: Ints, scores: npt.NDArray[np.float64]
) -> _Order:
    """Put those of the pool that answer as the best one does in order of time, on the places they hold together.

    Statements that restate the best one always; where a changing state is asked for, also the sessions that answer
    alike. Only what the same person said: another's later words are no newer state of this one.
    """
    pool = ordinals[: policy.newest_pool]
    if query.looks_back or len(pool) < 2:
        return _Order(ordinals, [])
    exact, weights = _matches(query, index, pool, kinds=False)
    if not weights.size:
        return _Order(ordinals, [])
    voice = index.speaker[pool] == index.speaker[pool[0]]
    same = _alike(exact, weights, policy.restated_match, policy.restated_match) & voice
    leader = int(pool[0])
    restating = [at for at in np.flatnonzero(same).tolist() if at and _restates(index, policy, int(pool[at]), leader)]
    places = [0, *restating]
    members = pool[places]
    changed = ordinals.copy()
    changed[places] = members[np.lexsort((-members, -index.ts[members]))]
    alike: list[int] = changed[places].tolist()
    if query.state:
        pool = changed[: policy.newest_pool]
        likely = _alike(*_matches(query, index, pool), policy.newest_match, policy.newest_overlap) & voice
        likely &= scores[: len(pool)] >= policy.newest_score * scores[0]
        changed[: len(pool)], sessions = _newest_session_first(index, pool, np.flatnonzero(likely))
        alike = list(dict.fromkeys([*sessions, *alike]))
    return _Order(changed, alike if len(alike) > 1 else [])


def _newest_session_first(index: ScopeIndex, pool: Ints, places: Ints) -> tuple[Ints, list[int]]:
    """On these places, what the newest session says stands above what older ones say; and the turns, if of several."""
    members = pool[places]
    sessions = index.session[members].tolist()
    latest: dict[int, int] = {}
    for session, ts in zip(sessions, index.ts[members].tolist(), strict=True):
        latest[session] = max(ts, latest.get(session, ts))
    order = sorted(range(len(members)), key=lambda at: (-latest[sessions[at]], at))
    changed = pool.copy()
    changed[places] = members[order]
    return changed, changed[places].tolist() if len(latest) > 1 else []


def _alike(
    matches: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64], match: float, overlap: float
) -> npt.NDArray[np.bool_]:
    """Which turns say as much of what is asked as the best of them does, and the same of it as the first."""
    held = matches @ weights
    both, either = (matches & matches[0]) @ weights, (matches | matches[0]) @ weights
    found: npt.NDArray[np.bool_] = (held > 0) & (held >= match * held.max()) & (both >= overlap * either)
    return found


def _restates(index: ScopeIndex, policy: RecallPolicy, one: int, other: int) -> bool:
    """The two say much the same, and not the very same."""
    left, right = index.terms(one), index.terms(other)
    return left != right and len(left & right) >= policy.restated_overlap * min(len(left), len(right))


def _superseded(query: Query, index: ScopeIndex, policy: RecallPolicy, alike: list[int]) -> dict[int, int]:
    """Older statements of the same thing by the same speaker, with another value → the newest one."""
    if query.gathers or len(alike) < 2:
        return {}
    newest = alike[0]
    matches, weights = _matches(query, index, np.array(alike))
    full = matches @ weights >= policy.superseded_match * weights.sum()
    return {
        ordinal: newest
        for ordinal, answers in zip(alike[1:], full[1:].tolist(), strict=True)
        if answers
        and full[0]
        and index.speaker[ordinal] == index.speaker[newest]
        and index.terms(ordinal) - index.terms(newest)
        and index.terms(newest) - index.terms(ordinal)
        and _restates(index, policy, ordinal, newest)
    }


# -- reasons ------------------------------------------------------------------------------------------


class _Held:
    """What of the query the ranked turns hold themselves."""

    def __init__(self, query: Query, index: ScopeIndex, ordinals: Ints) -> None:
        self._query = query
        self._slots = [held_by(index, [slot.term], ordinals) for slot in query.slots]
        self._kinds = [held_by(index, kind.terms, ordinals) for kind in query.kinds]

    def reasons(self, place: int, parts: Mapping[str, float]) -> list[str]:
        words = [slot.word for slot, held in zip(self._query.slots, self._slots, strict=True) if held[place]]
        kinds = [
            " ".join(self._query.slots[slot].word for slot in kind.slots)
            for kind, held in zip(self._query.kinds, self._kinds, strict=True)
            if held[place]
        ]
        reasons = []
        if words:
            reasons.append("says " + ", ".join(words))
        if kinds:
            reasons.append("may speak of " + ", ".join(kinds))
        if not reasons and ("words" in parts or "kinds" in parts):
            reasons.append("stands beside what matches")
        return reasons


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
