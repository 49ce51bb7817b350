"""What changed: of turns that answer alike, the newest first; older statements of the same thing are superseded.

Which turns answer alike is told by what of the query they say themselves, against an *anchor*: the best turn that says
much of it. That need not be the best turn of all: nearness in meaning, or the words around it, may have put one there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.recall.index import ONLY_ASKS, QUESTION, Ints, ScopeIndex
from muniment.recall.query import Query
from muniment.recall.score import USER, held_by, idf, stand_in
from muniment.records.recall_policy import RecallPolicy
from muniment.text.analyzer import term_hash
from muniment.text.attributes import CHANGE, OWN, QUANTITY, name_of, newly

__all__ = ["Order", "newest_first", "superseded"]

Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[np.float64]

_CHANGE, _QUANTITY, _QUESTION = term_hash(CHANGE), term_hash(QUANTITY), term_hash(QUESTION)
ALIKE_SLOTS_MIN = 2
"""One word in common makes no two statements of the same thing, unless it is asked how that stands now."""
_MARKS = frozenset((_CHANGE, _QUANTITY, _QUESTION))
"""What a turn is marked with and does not say: no sign that two say the same."""


class Order(NamedTuple):
    ordinals: Ints
    alike: list[int]
    """Those that answer alike, newest first; empty where fewer than two do."""


class _Matches(NamedTuple):
    """Turns × slots: which turn says what is asked, or what may stand for it."""

    held: Bools
    weights: Array
    attributes: tuple[str | None, ...]
    """The slots' words where they are attributes of a person."""

    def weigh(self) -> Array:
        weight: Array = self.held @ self.weights
        return weight

    def alike(self, anchor: int, match: float, overlap: float) -> Bools:
        """Which turns say as much of what is asked as any does, and the same of it as the anchor."""
        weight, first = self.weigh(), self.held[anchor]
        both, either = (self.held & first) @ self.weights, (self.held | first) @ self.weights
        found: Bools = (weight > 0) & (weight >= match * weight.max()) & (both >= overlap * either)
        return found

    def states_as(self, anchor: int, overlap: float) -> Bools:
        """Which turns state the attribute that the anchor states: the speaker's own, or that of the same other."""
        is_own = np.array([word is not None and word.startswith(OWN) for word in self.attributes], bool)
        is_other = np.array([word is not None for word in self.attributes], bool) & ~is_own
        both = self.held & self.held[anchor]
        found: Bools = (both & is_own).any(axis=1)
        found |= (both & is_other).any(axis=1) & self.alike(anchor, 0.0, overlap)
        return found

    def shares(self, anchor: int, count: int) -> Bools:
        """Which turns say at least so many things that the anchor says."""
        found: Bools = (self.held & self.held[anchor]).sum(axis=1) >= count
        return found


def _matches(query: Query, index: ScopeIndex, among: Ints, *, kinds: bool = True) -> _Matches:
    names = set()
    if query.speaker is not None:
        names = {name.casefold() for name in index.speakers[query.speaker].split()}
    rows, weights, attributes = [], [], []
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
            attributes.append(slot.word if name_of(slot.word) else None)
    held = np.array(rows).T if rows else np.zeros((len(among), 0), bool)
    return _Matches(held, np.array(weights), tuple(attributes))


def newest_first(query: Query, index: ScopeIndex, policy: RecallPolicy, ordinals: Ints, scores: Array) -> Order:
    """Put those of the pool that answer alike in order of time, on the places they hold together.

    Statements that restate the anchor always; where a changing state is asked for, also the sessions that answer
    alike. Only what the same person said: another's later words are no newer state of this one.
    """
    pool = ordinals[: policy.newest_pool]
    if query.looks_back or len(pool) < 2:
        return Order(ordinals, [])
    exact = _matches(query, index, pool, kinds=False)
    if not exact.weights.size:
        return Order(ordinals, [])
    at = _anchor(query, index, policy, pool, exact.weigh())
    anchor = int(pool[at])
    same = exact.alike(at, policy.restated_match, policy.restated_match)
    same &= (index.speaker[pool] == index.speaker[anchor]) & exact.shares(at, ALIKE_SLOTS_MIN)
    same &= _may_answer(query, index, pool)
    restating = [place for place in np.flatnonzero(same).tolist() if _restates(index, policy, int(pool[place]), anchor)]
    places = sorted({at, *restating})
    members = pool[places]
    later = np.where(index.session[members] == index.session[anchor], members, 0)  # within a second, in one session
    changed = ordinals.copy()
    changed[places] = members[np.lexsort((-later, -index.ts[members]))]
    alike: list[int] = changed[places].tolist()
    if query.state:
        reach = changed[: policy.newest_reach]
        changed[: len(reach)], sessions = _newest_sessions_first(query, index, policy, reach, scores, anchor)
        alike = list(dict.fromkeys([*sessions, *alike]))
    return Order(changed, alike if len(alike) > 1 else [])


def _anchor(query: Query, index: ScopeIndex, policy: RecallPolicy, pool: Ints, held: Array) -> int:
    """The place of the best turn that itself says much of what is asked, if possible by whom it is asked about."""
    asked = np.ones(len(pool), bool)
    if query.speaker is not None:
        asked = index.speaker[pool] == query.speaker
    elif query.asker:
        asked = index.role[pool] == USER
    for wanted in (asked & _may_answer(query, index, pool), asked):
        if (held * wanted).any():
            held = held * wanted
            break
    return int(np.argmax(held >= policy.anchor_match * held.max()))


def _newest_sessions_first(
    query: Query, index: ScopeIndex, policy: RecallPolicy, reach: Ints, scores: Array, anchor: int
) -> tuple[Ints, list[int]]:
    """What the newest session says stands above what older ones say; and the turns that say it, if of several.

    Statements of an attribute are ordered one by one, within a session too. What else of the older sessions speaks of
    it goes with them: "she moved to Chicago", said beside what names Rachel, is as old as that.
    """
    matches = _matches(query, index, reach)
    likely = _likely(query, index, policy, reach, scores[: len(reach)], matches, anchor)
    is_attribute = bool(matches.states_as(int(np.flatnonzero(reach == anchor)[0]), 0.0).any())
    sessions = index.session[reach].tolist()
    said: dict[int, tuple[int, int]] = {}
    latest: dict[int, tuple[int, int]] = {}
    for at in np.flatnonzero(likely).tolist():
        when = -int(index.ts[reach[at]]), -int(reach[at]) if is_attribute else 0  # so that the newest sorts first
        said[at] = when
        latest[sessions[at]] = min(when, latest.get(sessions[at], when))
    if not is_attribute:
        said = {at: latest[sessions[at]] for at in said}
    newest = min(said.values())
    if all(when == newest for when in said.values()):
        return reach, []
    is_older = np.array([latest.get(session, newest) > newest for session in sessions])
    is_older &= matches.held.any(axis=1) & (np.arange(len(reach)) < policy.newest_pool)
    places = np.flatnonzero(likely | is_older).tolist()
    order = sorted(places, key=lambda at: (said.get(at, latest[sessions[at]]), at))
    changed = reach.copy()
    changed[places] = reach[order]
    return changed, [int(reach[at]) for at in order if at in said]


def _likely(
    query: Query, index: ScopeIndex, policy: RecallPolicy, reach: Ints, scores: Array, matches: _Matches, anchor: int
) -> Bools:
    """Which turns answer as the anchor does.

    Where it states an attribute of a person, those that state it too, in whatever words. Else those that say much the
    same of what is asked; one that tells of a change need say less of it. A question answers none, and where a number
    is asked for, only a turn that has one answers. From farther down comes only what the newest session says.
    """
    at = int(np.flatnonzero(reach == anchor)[0])
    is_sure = query.current or query.quantity
    overlap = policy.newest_overlap if is_sure else policy.supposed_overlap
    likely = matches.alike(at, policy.newest_match, overlap)
    likely &= scores >= policy.newest_score * scores[at]
    if not is_sure:
        likely &= matches.shares(at, ALIKE_SLOTS_MIN)
    likely[policy.newest_pool :] = False
    states = matches.states_as(at, policy.newest_overlap)
    if states.any():
        likely = states
    else:
        changed = held_by(index, [_CHANGE], reach) & (index.ts[reach] > index.ts[anchor])
        changed &= matches.alike(at, policy.changed_match, policy.changed_match)
        likely |= changed & (scores >= policy.changed_score * scores[at])
    likely &= index.speaker[reach] == index.speaker[anchor]
    likely &= _may_answer(query, index, reach)
    likely[at] = True
    newest = reach[likely][np.lexsort((reach[likely], index.ts[reach[likely]]))[-1]]
    likely[policy.newest_pool :] &= index.session[reach[policy.newest_pool :]] == index.session[newest]
    return likely


def _may_answer(query: Query, index: ScopeIndex, among: Ints) -> Bools:
    asking, counts = index.postings(_QUESTION)
    may = ~stand_in(asking[counts >= ONLY_ASKS], among)
    return may & held_by(index, [_QUANTITY], among) if query.quantity else may


def _restates(index: ScopeIndex, policy: RecallPolicy, one: int, other: int) -> bool:
    """The two say much the same, and not the very same."""
    left, right = index.terms(one) - _MARKS, index.terms(other) - _MARKS
    return left != right and len(left & right) >= policy.restated_overlap * min(len(left), len(right))


def superseded(query: Query, index: ScopeIndex, policy: RecallPolicy, alike: list[int]) -> dict[int, int]:
    """Older statements of the same thing by the same speaker, with another value → the newest one."""
    if len(alike) < 2:
        return {}
    newest, among = alike[0], np.array(alike)
    matches = _matches(query, index, among)
    full = (matches.weigh() >= policy.superseded_match * matches.weights.sum()) & (not query.gathers)
    by_attribute = matches.states_as(0, policy.restated_match)
    ended_by = [term_hash(newly(word)) for word in matches.attributes if word is not None]
    has_changed = bool(held_by(index, ended_by, among[:1])[0])
    found = {}
    for place, ordinal in enumerate(alike[1:], 1):
        left, right = index.terms(ordinal), index.terms(newest)
        says_otherwise = bool(left - right) and bool(right - left)
        is_same = full[0] and full[place] and _restates(index, policy, ordinal, newest)
        is_ended = bool(by_attribute[place]) and has_changed
        if says_otherwise and (is_same or is_ended) and index.speaker[ordinal] == index.speaker[newest]:
            found[ordinal] = newest
    return found
