"""What changed: of turns that answer alike, the newest first; and which older ones a later one says otherwise.

Which turns answer alike is told by what of the query they say themselves, against an *anchor*: the best turn that says
much of it. That need not be the best turn of all: nearness in meaning, or the words around it, may have put one there.

A few dozen turns at most: plain numbers in lists, whose bits say what a turn says, are quicker here than arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import term_hash
from muniment.core.text.stated.attributes import ADDS, CHANGE, OWN, QUANTITY, ended, name_of
from muniment.memory.recall.index import ROLES, Ints, ScopeIndex
from muniment.memory.recall.moments import Exact, Moments
from muniment.memory.recall.newer_values import Stating, newer_above, wanted_values
from muniment.memory.recall.query import Query
from muniment.memory.recall.reasons import MARKS
from muniment.memory.recall.said import Said
from muniment.memory.recall.score import USER, idf, nameless_assistant

__all__ = ["Order", "newest_first"]

Array = npt.NDArray[np.float64]

_ADDS, _CHANGE, _QUANTITY = term_hash(ADDS), term_hash(CHANGE), term_hash(QUANTITY)
_ASSISTANT = ROLES.index("assistant")

ALIKE_SLOTS_MIN = 2
"""One word in common makes no two statements of the same thing, unless it is asked how that stands now."""


class Order(NamedTuple):
    ordinals: list[int]
    alike: list[int]
    """The candidates that answer alike, newest first; empty where fewer than two do."""
    newer: Mapping[int, int] = MappingProxyType({})
    """The candidates that state a later value than others, each with how many those are."""


class _Scope(NamedTuple):
    """What the questions below are asked of."""

    query: Query
    turns: ScopeIndex
    policy: RecallPolicy
    said: Said
    moments: Moments
    wanted: int = 0
    """The values that may answer (`newer_values`); 0 where none is asked for, or none of the kind is stated."""

    def may_answer(self, turns: Sequence[int]) -> list[bool]:
        """Who only asks does not answer; nor, unless it is asked what it said, an assistant without a name, which
        repeats and suggests; nor, where a value is asked for that others state, who states none.
        """
        may = self.said.may_answer(turns)
        if not self.query.addressed:
            repeats = nameless_assistant(self.turns)[list(turns)].tolist()
            may = [each and not repeat for each, repeat in zip(may, repeats, strict=True)]
        if not self.wanted:
            return may
        return [each and self.said.states(turn, self.wanted) for each, turn in zip(may, turns, strict=True)]


class _Matches:
    """Which of some turns says what is asked, or what may stand for it."""

    def __init__(self, scope: _Scope, turns: Sequence[int], *, kinds: bool = True) -> None:
        query, index, said = scope.query, scope.turns, scope.said
        names = set()
        if query.speaker is not None:
            names = {name.casefold() for name in index.speakers[query.speaker].split()}
        held = said.slots(turns, kinds=kinds)
        is_held = 0
        for each in held:
            is_held |= each
        self.weights: dict[int, float] = {}
        """By the bit of a slot that some turn of the scope says, or one of these in other words."""
        self.attributes: list[str] = []
        """The words of those slots that are attributes of a person."""
        asked = own = other = 0
        for place, slot in enumerate(query.slots):
            bit = 1 << place
            if (said.counts[place] or is_held & bit) and slot.word not in names:
                self.weights[bit] = idf(len(index.ts), said.counts[place])
                asked |= bit
                if name_of(slot.word):
                    self.attributes.append(slot.word)
                    own, other = (own | bit, other) if slot.word.startswith(OWN) else (own, other | bit)
        self.held = [each & asked for each in held]
        self._different = set(self.held)
        self._own, self._other = own, other
        self._known: dict[int, float] = {}

    def weigh(self, held: int) -> float:
        """The weight of what is said."""
        weight = self._known.get(held)
        if weight is None:
            weight = self._known[held] = sum([weight for bit, weight in self.weights.items() if held & bit], 0.0)
        return weight

    def alike(self, anchor: int, match: float, overlap: float) -> list[bool]:
        """Which turns say as much of what is asked as any does, and the same of it as the anchor."""
        weigh, first = self.weigh, self.held[anchor]
        least = match * max(map(weigh, self._different))
        alike = {
            held: (weight := weigh(held)) > 0
            and weight >= least
            and weigh(held & first) >= overlap * weigh(held | first)
            for held in self._different
        }
        return [alike[held] for held in self.held]

    def states_as(self, anchor: int, overlap: float) -> list[bool]:
        """Which turns state the attribute that the anchor states: the speaker's own, or that of the same other."""
        first = self.held[anchor]
        if not first & (self._own | self._other):
            return [False] * len(self.held)
        same = self.alike(anchor, 0.0, overlap)
        return [
            bool(held & first & self._own) or (bool(held & first & self._other) and is_alike)
            for held, is_alike in zip(self.held, same, strict=True)
        ]

    def shares(self, anchor: int, count: int) -> list[bool]:
        """Which turns say at least so many things that the anchor says."""
        first = self.held[anchor]
        return [(held & first).bit_count() >= count for held in self.held]


def newest_first(
    query: Query,
    index: ScopeIndex,
    policy: RecallPolicy,
    said: Said,
    ordinals: Ints,
    scores: Array,
    exact_moments: Exact | None = None,
) -> Order:
    """Put those of the pool that answer alike in order of time, on the places they hold together.

    Statements that restate the anchor always; where a changing state is asked for, also the sessions that answer
    alike. Only what the same person said: another's later words are no newer state of this one.
    """
    changed: list[int] = ordinals.tolist()
    pool = changed[: policy.newest_pool]
    is_then = query.window is not None and not query.current  # asked for as it was at some time
    if query.looks_back or is_then or len(pool) < 2:
        return Order(changed, [])
    wanted = _wanted(query, said, changed[: policy.newest_reach])
    scope = _Scope(query, index, policy, said, Moments(index, exact_moments), wanted)
    exact = _Matches(scope, pool, kinds=False)
    if not exact.weights:
        return Order(changed, [])
    may = scope.may_answer(pool)
    at = _anchor(scope, pool, exact, may)
    anchor = pool[at]
    alike = exact.alike(at, policy.restated_match, policy.restated_match)
    shares = exact.shares(at, ALIKE_SLOTS_MIN)
    speaker = index.speaker
    places = [
        place
        for place, turn in enumerate(pool)
        if place == at
        or (
            alike[place]
            and shares[place]
            and may[place]
            and speaker[turn] == speaker[anchor]
            and _restates(index, policy, turn, anchor)
        )
    ]
    members = _by_time(scope, [pool[place] for place in places], anchor)
    for place, turn in zip(places, members, strict=True):
        changed[place] = turn
    found = members
    if query.state:
        reach = changed[: policy.newest_reach]
        changed[: len(reach)], sessions = _newest_sessions_first(scope, reach, scores[: len(reach)].tolist(), anchor)
        found = list(dict.fromkeys([*sessions, *found]))
    newer: Mapping[int, int] = {}
    if wanted:
        reach = changed[: policy.newest_reach]
        changed[: len(reach)], newer = _newer_values_above(scope, reach)
    return Order(changed, found if len(found) > 1 else [], newer)


def _wanted(query: Query, said: Said, reach: Sequence[int]) -> int:
    """The values that may answer, where a value is asked for and stated; else 0."""
    if not (query.quantity or query.measures):
        return 0
    found = [each.values for turn in reach for each in said.passages(turn)]
    wanted = wanted_values(query, found)
    return wanted if any(values & wanted for values in found) else 0


def _newer_values_above(scope: _Scope, reach: list[int]) -> tuple[list[int], Mapping[int, int]]:
    """Who states a value later than another turn does comes to stand right above it; and above how many each came.

    What stands between them keeps its order. The assistant repeats and suggests: its words change nothing, unless it
    is asked what it said.
    """
    query, index, policy, said, moments, wanted = scope
    places = [
        place
        for place, turn in enumerate(reach)
        if said.states(turn, wanted) and (query.addressed or index.role[turn] != _ASSISTANT)
    ]
    if len(places) < 2:
        return reach, {}
    told = moments.of([reach[place] for place in places])
    stating = {
        place: Stating(turn, int(index.session[turn]), int(index.speaker[turn]), when, said.passages(turn))
        for place, when in zip(places, told, strict=True)
        for turn in (reach[place],)
    }
    weigh = _Matches(scope, reach, kinds=False).weigh
    above = newer_above(stating, wanted, weigh, policy.anchor_match, policy.restated_overlap)
    order: dict[int, None] = {}
    newer: dict[int, int] = {}
    for place in range(len(reach)):
        for each in above.get(place, ()):
            if place not in order and each not in order:
                order[each] = None
            newer[reach[each]] = newer.get(reach[each], 0) + 1
        order.setdefault(place)
    return [reach[place] for place in order], newer


def _by_time(scope: _Scope, turns: Sequence[int], anchor: int) -> list[int]:
    """The newest first; at the same moment, the later one of the anchor's session."""
    if len(turns) < 2:
        return list(turns)
    session = scope.turns.session
    when = dict(zip(turns, scope.moments.of(turns), strict=True))
    return sorted(
        turns,
        key=lambda turn: (-when[turn][0], -when[turn][1], -turn if session[turn] == session[anchor] else 0),
    )


def _anchor(scope: _Scope, pool: Sequence[int], exact: _Matches, may: Sequence[bool]) -> int:
    """The place of the best turn that itself says much of what is asked, if possible by whom it is asked about."""
    query, index = scope.query, scope.turns
    weights = [exact.weigh(held) for held in exact.held]
    asked = [True] * len(pool)
    if query.speaker is not None:
        asked = [speaker == query.speaker for speaker in index.speaker[pool].tolist()]
    elif query.asker:
        asked = [role == USER for role in index.role[pool].tolist()]
    for wanted in ([a and b for a, b in zip(asked, may, strict=True)], asked):
        kept = [weight if is_wanted else 0.0 for weight, is_wanted in zip(weights, wanted, strict=True)]
        if any(kept):
            weights = kept
            break
    least = scope.policy.anchor_match * max(weights)
    return next(place for place, weight in enumerate(weights) if weight >= least)


def _newest_sessions_first(
    scope: _Scope, reach: list[int], scores: Sequence[float], anchor: int
) -> tuple[list[int], list[int]]:
    """What the newest session says stands above what older ones say; and the turns that say it, if of several.

    Statements of an attribute are ordered one by one, within a session too. What else of the older sessions speaks of
    it goes with them: "she moved to Chicago", said beside what names Rachel, is as old as that.
    """
    matches = _Matches(scope, reach)
    times = scope.turns.ts[reach].tolist()
    sessions = scope.turns.session[reach].tolist()
    likely = _likely(scope, reach, scores, matches, anchor, times, sessions)
    if len(likely) < 2:
        return reach, []
    is_attribute = any(matches.states_as(reach.index(anchor), 0.0))
    told: dict[int, tuple[int, int, int]] = {}
    latest: dict[int, tuple[int, int, int]] = {}
    for at, (second, within) in zip(likely, scope.moments.of([reach[at] for at in likely]), strict=True):
        when = -second, -within, -reach[at] if is_attribute else 0  # so that the newest sorts first
        told[at] = when
        latest[sessions[at]] = min(when, latest.get(sessions[at], when))
    if not is_attribute:
        told = {at: latest[sessions[at]] for at in told}
    newest = min(told.values())
    if all(when == newest for when in told.values()):
        return reach, []
    near = min(len(reach), scope.policy.newest_pool)
    older = [at for at in range(near) if matches.held[at] and latest.get(sessions[at], newest) > newest]
    places = sorted({*likely, *older})
    order = sorted(places, key=lambda at: (told.get(at, latest[sessions[at]]), at))
    changed = reach.copy()
    for place, at in zip(places, order, strict=True):
        changed[place] = reach[at]
    return changed, [reach[at] for at in order if at in told]


def _likely(
    scope: _Scope,
    reach: Sequence[int],
    scores: Sequence[float],
    matches: _Matches,
    anchor: int,
    times: Sequence[int],
    sessions: Sequence[int],
) -> list[int]:
    """The places of the turns that answer as the anchor does.

    Where it states an attribute of a person, those that state it too, in whatever words. Else those that say much the
    same of what is asked; one that tells of a change need say less of it. A question answers none, and where a number
    is asked for, only a turn that has one answers. From farther down comes only what the newest session says.
    """
    query, index, policy, said, moments, _ = scope
    at = reach.index(anchor)
    likely = matches.states_as(at, policy.newest_overlap)
    if not any(likely):
        is_sure = query.current or query.quantity
        alike = matches.alike(at, policy.newest_match, policy.newest_overlap if is_sure else policy.supposed_overlap)
        shares = [True] * len(reach) if is_sure else matches.shares(at, ALIKE_SLOTS_MIN)
        changed = matches.alike(at, policy.changed_match, policy.changed_match)
        least, least_changed = policy.newest_score * scores[at], policy.changed_score * scores[at]
        likely = [
            (alike[place] and shares[place] and place < policy.newest_pool and scores[place] >= least)
            or (
                times[place] > times[at]
                and said.tells_of_change(turn)
                and ((changed[place] and scores[place] >= least_changed) or _gives_up(query, index.terms(turn)))
            )
            for place, turn in enumerate(reach)
        ]
    may = scope.may_answer(reach)
    speaker = index.speaker
    found = [
        place
        for place, turn in enumerate(reach)
        if place == at or (likely[place] and may[place] and speaker[turn] == speaker[anchor])
    ]
    if len(found) < 2:
        return found
    when = moments.of([reach[place] for place in found])
    _, _, newest = max((*moment, reach[place]) for moment, place in zip(when, found, strict=True))
    return [place for place in found if place < policy.newest_pool or sessions[place] == index.session[newest]]


def _gives_up(query: Query, terms: frozenset[int]) -> bool:
    """Does a turn with these terms say that something asked for is given up?"""
    return any(term_hash(ended(slot.word)) in terms for slot in query.slots)


def _restates(index: ScopeIndex, policy: RecallPolicy, one: int, other: int) -> bool:
    """The two say much the same, and not the very same."""
    left, right = _words(index.terms(one)), _words(index.terms(other))
    return left != right and len(left & right) >= policy.restated_overlap * min(len(left), len(right))


def _words(terms: frozenset[int]) -> frozenset[int]:
    return terms - MARKS - {_ADDS}
