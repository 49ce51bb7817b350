"""Rank the best turns of a scope for a query, each with its probability of being evidence and the reasons.

All turns are scored by `scoring`; the best `POOL` are ordered by *traits*: shares measured alike for every query, each
with a weight from `data/ranking.json`, in units of the best possible word match. `benchmarks.learn_ranking` fits the
weights. Among the first few with the same content, the newest comes first.
"""

from __future__ import annotations

import math
from datetime import date
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import term_hash
from muniment.memory._index import ROLES, Ints, ScopeIndex
from muniment.memory.evidence import (
    FIRST,
    FOUND_SIGNS,
    MARKS,
    SIGNS,
    Reasons,
    calibration,
    chances,
    read_fitted,
    read_found,
    read_signs,
)
from muniment.memory.query import Query, read_query
from muniment.memory.scoring import (
    Dense,
    Matches,
    Scores,
    idf,
    match_turns,
    nameless_assistant,
    only_asking,
    score,
    share_of,
    weigh,
)
from muniment.memory.tool_results import CALL, READ, AskedOrder, asked_order, did, identified

__all__ = [
    "POOL",
    "TRAITS",
    "Ranked",
    "Ranking",
    "Reach",
    "rank",
    "ranking",
    "score_calls",
    "signs_of",
    "top",
    "traits_of",
]

Array = npt.NDArray[np.float64]

POOL = 60
"""Number of top candidates ordered by their traits."""
TRAITS = (
    "covers",  # the share of the query's weight in the turn itself; 0 for a pure question
    "means",  # the share of the query's weight matched only by a stand-in
    "session",  # the best word match among the other candidates of its session
    "opens",  # the first turn of a session
    "assistant",  # by a nameless assistant, unless the query asks about its words
    "near",  # its rank by nearness in meaning
)
"""The traits, in the column order of `read_traits`."""
_REASONS = {
    "covers": "holds most of it",
    "means": "says what may stand for it",
    "session": "its session speaks of it elsewhere too",
    "opens": "opens its session",
}
_REASONS_AT = [(place, _REASONS[name]) for place, name in enumerate(TRAITS) if name in _REASONS]
_REASON_MIN = 0.08
"""A trait worth at least this much is given as a reason."""
_ASKED_WORDS = 8
"""A pure question of at most this many words says nothing else."""
_NEAREST = 512
"""Ranks by nearness beyond this are all equal."""
_DIGITS = 9
STRETCH = 8
"""The number of turns before and after one that belong to its stretch, the nearest counting most."""
_AMONG = 0.5
"""The minimum share of a turn's own score that a stretch must add to be given as a reason."""


class Reach:
    """The reach of a search, filled in by `rank`."""

    def __init__(self) -> None:
        self.matched = 0
        """Number of allowed turns with a reason to be shown."""
        self.eligible: npt.NDArray[np.bool_] | None = None
        """Mask of these turns; None for all."""


class Ranked(NamedTuple):
    """A found turn and its ranking details."""

    ordinal: int
    score: float
    parts: dict[str, float]
    """The summands of the score."""
    chance: float
    """The probability that it is evidence for the query, from 0 to 1; falls from place to place."""
    reasons: tuple[str, ...]


class Ranking(NamedTuple):
    """The weight of each trait, with and without vectors."""

    words: Array
    vectors: Array


@cache
def ranking(name: str) -> Ranking:
    """The bundled ranking, checked against this digest."""
    held = read_fitted("ranking", name)
    words, vectors = (np.array([held[kind][trait] for trait in TRAITS]) for kind in ("words", "vectors"))
    return Ranking(words, vectors)


def rank(
    query: str,
    index: ScopeIndex,
    policy: RecallPolicy,
    now: date,
    k: int,
    dense: Dense | None = None,
    among: npt.NDArray[np.bool_] | None = None,
    reach: Reach | None = None,
) -> list[Ranked]:
    """The best `k` turns, best first. Ties are broken by ordinal; the same inputs give the same list.

    `among` masks the turns that may be found.
    """
    if k < 1 or not len(index.ts):
        return []
    found = _put_in_order(query, index, policy, now, k, dense, among, reach)
    signs, any_is = _signs(found, index, policy, k), read_found(found.query, index, policy, found.scores)
    made = calibration(policy.evidence)
    parts_of, scores = found.scores.parts, found.scores
    order, worths = found.order[:k], found.worths[:k]
    likely = chances(signs[: len(order)], any_is, worths, made, has_vectors="dense_turn" in parts_of)
    turns = found.matches.turns[order]
    learnt, moved = found.scored[order] - scores.total[turns], worths - found.scored[order]
    names = [*parts_of, "learnt", "order"]
    rows = zip(*[each.tolist() for each in (*[part[turns] for part in parts_of.values()], learnt, moved)], strict=True)
    reasons = Reasons(query, found.query, index.speakers, found.matches)
    ranked: list[Ranked] = []
    for at, ordinal, worth, chance, row in zip(
        order.tolist(), turns.tolist(), worths.tolist(), likely, rows, strict=True
    ):
        parts = {name: value for name, value in zip(names, row, strict=True) if value}
        why = reasons.of(at, parts)
        if at < len(found.added):
            why += [reason for trait, reason in _REASONS_AT if found.added[at, trait] >= _REASON_MIN]
        why += found.reasons.get(at, ())
        ranked.append(Ranked(ordinal, worth, parts, chance, tuple(why)))
    return ranked


def signs_of(
    query: str, index: ScopeIndex, policy: RecallPolicy, now: date, k: int, dense: Dense | None = None
) -> tuple[list[int], Array, Array]:
    """The ordinals that `rank` would return, and the signs of each hit and of the query."""
    if not len(index.ts):
        return [], np.zeros((0, len(SIGNS))), np.zeros((1, len(FOUND_SIGNS)))
    found = _put_in_order(query, index, policy, now, k, dense)
    ordinals: list[int] = found.matches.turns[found.order[:k]].tolist()
    return ordinals, _signs(found, index, policy, k)[:k], read_found(found.query, index, policy, found.scores)


def traits_of(
    query: str, index: ScopeIndex, policy: RecallPolicy, now: date, dense: Dense | None = None
) -> tuple[Ints, Array, Array]:
    """The candidates ordered by traits, best first: their ordinals, base scores and traits."""
    asked = _read(query, index, now)
    scores = score(asked, index, policy, dense)
    best = top(scores, POOL)
    return best, scores.total[best], read_traits(asked, index, scores, dense, match_turns(asked, index, best))


class _Found(NamedTuple):
    """The ordered candidates of a query. Positions number them in scoring order."""

    query: Query
    scores: Scores
    matches: Matches
    scored: Array
    """Scores by position, traits included."""
    added: Array
    """The contribution of each trait, by position."""
    order: Ints
    """Positions, best first."""
    worths: Array
    """The value of each place; falls from place to place."""
    reasons: dict[int, list[str]]
    """Reasons for a change of rank, by position."""


def _signs(found: _Found, index: ScopeIndex, policy: RecallPolicy, k: int) -> Array:
    count = max(k, FIRST)
    return read_signs(
        found.query, index, policy, found.scores, found.matches.take(found.order[:count]), found.worths[:count]
    )


def _read(query: str, index: ScopeIndex, now: date) -> Query:
    return read_query(query, index.speakers, now, lambda term: len(index.postings(term)[0]))


def _put_in_order(
    query: str,
    index: ScopeIndex,
    policy: RecallPolicy,
    now: date,
    k: int,
    dense: Dense | None,
    among: npt.NDArray[np.bool_] | None = None,
    reach: Reach | None = None,
) -> _Found:
    asked = _read(query, index, now)
    scores = score_calls(query, asked, index, now, score(asked, index, policy, dense))
    if among is not None:
        scores = scores._replace(eligible=among if scores.eligible is None else scores.eligible & among)
    if reach is not None:
        reach.eligible = scores.eligible
        reach.matched = len(index.ts) if scores.eligible is None else int(np.count_nonzero(scores.eligible))
    matches = match_turns(asked, index, top(scores, max(k, POOL)))
    scored = scores.total[matches.turns]
    order: Ints = np.arange(len(scored))
    added = np.zeros((0, len(TRAITS)))
    if policy.ranking:
        made = ranking(policy.ranking)
        weights = made.vectors if "dense_turn" in scores.parts else made.words
        added = read_traits(asked, index, scores, dense, matches.take(order[:POOL])) * weights
        scored[:POOL] = (scored[:POOL] + np.add.reduce(added, axis=1)).round(_DIGITS)
        scored[POOL:] = np.minimum(scored[POOL:], scored[:POOL].min(initial=np.inf))  # the rest was not examined
        order = np.concatenate((np.lexsort((matches.turns[:POOL], -scored[:POOL])), order[POOL:]))
    worths, reasons = scored[order], dict[int, list[str]]()
    if asked.account and policy.stretch and len(order) > 1:
        order, worths, near = _by_stretch(index, policy.stretch, scores, matches, scored, order)
        reasons = {position: ["stands among turns that match"] for position in near}
    order, alike = _newest_first(asked, index, matches, order, policy.newest, dense)
    if alike:
        reasons.setdefault(alike[0], []).append(f"newest of {len(alike)} that answer alike")
    return _Found(asked, scores, matches, scored, added, order, worths, reasons)


# -- traits -------------------------------------------------------------------------------------------


def read_traits(query: Query, index: ScopeIndex, scores: Scores, dense: Dense | None, matches: Matches) -> Array:
    """The traits of some turns: a row each."""
    turns, weights = matches.turns, matches.weights
    words = scores.parts.get("words")
    session = index.session[turns]
    is_said = np.array(matches.counts, np.int64) > 0
    only_asks = only_asking(index)[turns] & (index.length[turns] <= _ASKED_WORDS)
    held = {
        "covers": np.where(only_asks, 0.0, share_of(weights, matches.words)),
        "means": share_of(weights * is_said, matches.meant),
        "session": None if words is None else _elsewhere(session, words[turns]),
        "opens": index.kept("opens", lambda: _opens(index.session))[turns],
        "assistant": None if query.addressed else nameless_assistant(index)[turns],
        "near": None if dense is None or dense.turn is None else _nearness(dense.turn, turns),
    }
    traits = np.zeros((len(turns), len(TRAITS)))
    for column, name in enumerate(TRAITS):
        if (values := held[name]) is not None:
            traits[:, column] = values
    return traits


def _elsewhere(session: Ints, words: Array) -> Array:
    """For each candidate, the best word match among the others of its session."""
    others = np.where(session[:, np.newaxis] == session, words, 0.0)
    np.fill_diagonal(others, 0.0)
    found: Array = others.max(axis=1, initial=0.0)
    return found


def _opens(session: Ints) -> npt.NDArray[np.bool_]:
    return np.concatenate(([True], session[1:] != session[:-1]))


def _nearness(near: npt.NDArray[np.floating], turns: Ints) -> Array:
    """1 for the nearest turn of the scope, falling with the logarithm of the rank."""
    count = min(_NEAREST, len(near))
    nearest = np.sort(np.partition(near, len(near) - count)[len(near) - count :])
    places = count - nearest.searchsorted(near[turns], side="right")
    return 1 - np.log1p(places) / math.log1p(_NEAREST)


# -- stretches ----------------------------------------------------------------------------------------


def _by_stretch(
    index: ScopeIndex, share: float, scores: Scores, matches: Matches, scored: Array, order: Ints
) -> tuple[Ints, Array, list[int]]:
    """Add the scores of surrounding turns to each of the best, nearer turns counting more; keep the maximum unchanged.

    Used when an account is requested: the answer is a stretch of turns, many of which do not name the topic. Returns
    the order, the values of its places, and the positions that gained much.
    """
    first = order[:POOL]
    best, own = matches.turns[first], scored[first]
    total = scores.total.copy()
    total[matches.turns] = scored
    around = np.zeros(len(first))
    for distance in range(1, STRETCH + 1):
        for there in (best - distance, best + distance):
            at = there.clip(0, len(total) - 1)
            is_there = (at == there) & (index.session[at] == index.session[best])
            if scores.eligible is not None:
                is_there &= scores.eligible[at]
            around += np.where(is_there, total[at], 0.0).clip(0.0) * (1 - distance / (STRETCH + 1))
    around *= share
    worths = own + around
    if (most := float(own.max())) > 0:
        worths *= most / float(worths.max())
    by_worth = np.lexsort((best, -worths))
    places = np.concatenate((worths[by_worth], scored[order[POOL:]]))
    gaining: list[int] = first[around >= _AMONG * np.abs(own)].tolist()
    return np.concatenate((first[by_worth], order[POOL:])), np.minimum.accumulate(places), gaining


# -- what changed -------------------------------------------------------------------------------------

_ANCHOR, _MATCH, _OVERLAP, _RESTATED = 0.75, 0.6, 0.5, 0.3
"""Thresholds as shares of the larger weight: the anchor's own share; another turn's share of the anchor's; the overlap
of both; and, of all its words, the share of the shorter turn's words that both have.
"""
_RESTATED_NEAR, _NEAREST_FEW = 0.2, 0.6
"""The same for turns that are both among the ten nearest: vectors find a newer value in other words."""


def _newest_first(
    query: Query, index: ScopeIndex, matches: Matches, order: Ints, count: int, dense: Dense | None
) -> tuple[Ints, list[int]]:
    """Sort the top turns that restate the best one by time, within the places they hold.

    Only turns of the same speaker count: another person's later words are no newer state of this one. Pure questions
    state nothing; nor does a nameless assistant, which repeats and suggests, unless the query asks about its words.
    """
    first = order[:count]
    if query.looks_back or len(first) < 2:
        return order, []
    turns, held, weights = matches.turns[first], matches.words[:, first], matches.weights
    weighed = weigh(weights, held)
    may = ~only_asking(index)[turns]
    if not query.addressed:
        may &= ~nameless_assistant(index)[turns]
    strong = np.where(may, weighed, 0.0)
    if query.speaker is not None and (own := np.where(index.speaker[turns] == query.speaker, strong, 0.0)).any():
        strong = own
    if not strong.any():
        return order, []
    anchor = int((strong >= _ANCHOR * strong.max()).argmax())
    both, either = held & held[:, [anchor]], held | held[:, [anchor]]
    alike = may & (index.speaker[turns] == index.speaker[turns[anchor]])
    alike &= (weighed >= _MATCH * weighed[anchor]) & (weigh(weights, both) >= _OVERLAP * weigh(weights, either))
    alike[anchor] = False
    near = np.zeros(len(turns)) if dense is None or dense.turn is None else _nearness(dense.turn, turns)
    shares = np.where((near >= _NEAREST_FEW) & (near[anchor] >= _NEAREST_FEW), _RESTATED_NEAR, _RESTATED)
    pairs = [(place, int(turns[place])) for place in alike.nonzero()[0].tolist()]
    places = [place for place, turn in pairs if _restates(index, turn, int(turns[anchor]), float(shares[place]))]
    if not places:
        return order, []
    places = sorted([anchor, *places])
    newest = sorted(places, key=lambda place: _newer_first(index, int(turns[place])))
    changed = order.copy()
    changed[places] = first[newest]
    return changed, first[newest].tolist()


def _newer_first(index: ScopeIndex, turn: int) -> tuple[int, int]:
    """Sort key by time, then by write order within one second. Documents have no time."""
    is_spoken = ROLES[index.role[turn]] in ("user", "assistant")
    return -int(index.ts[turn]), -index.written_number(turn) if is_spoken else 0


def _restates(index: ScopeIndex, one: int, other: int, share: float) -> bool:
    """True if the two differ and share at least this part of the shorter one's words."""
    left, right = index.terms(one) - MARKS, index.terms(other) - MARKS
    return left != right and len(left & right) >= share * min(len(left), len(right))


# -- the best -----------------------------------------------------------------------------------------


def top(scores: Scores, k: int) -> Ints:
    """The ordinals of the best `k` eligible turns, by score and then by ordinal."""
    total = scores.total
    places: Ints | None = None
    if scores.eligible is not None:
        (places,) = scores.eligible.nonzero()
        total = total[places]
    if len(total) > _STEP * 2 * k:  # the k-th best of a sample is a lower bound for the k-th best of all
        places, total = _best_of(total, places, _least(total[::_STEP], k))
    if len(total) > k:
        places, total = _best_of(total, places, _least(total, k))
    order = (-total).argsort(kind="stable")[:k]
    return order if places is None else places[order]


_STEP = 16
"""Sampling step in large scopes."""


def _least(total: Array, k: int) -> float:
    """The score of the k-th best."""
    return float(np.partition(total, len(total) - k)[len(total) - k])


def _best_of(total: Array, places: Ints | None, least: float) -> tuple[Ints, Array]:
    (kept,) = (total >= least).nonzero()
    return kept if places is None else places[kept], total[kept]


# -- call order ----------------------------------------------------------------------------------------
#
# Questions about calls: by effect, by tool, by failure; and by order: the event before or after another one that the
# question names, or the first or last of several alike. Only the words and marks of the events themselves count here,
# not those around them, since the question is which event it is. A scope without calls is unaffected.


ASKED_FOR = 1.5
"""Bonus of the event asked for, in units of the best possible word match;"""
NEXT = 0.6
"""and each further one, against the one before it."""
MARKED = 0.5
"""Bonus of a call that has all the marks a question asks for;"""
NAMED = 0.5
"""and of the event that the question names as a reference, so that a reader sees both."""
COUNT = 4
_NAMED_MAX = 3
_ALIKE, _AS_MUCH, _MEANT = 0.98, 0.85, 0.6
"""Shares of an event's maximum match at which others count as the named one, as alike, and as meant."""
_CALL, _READ = term_hash(CALL), term_hash(did(READ))


def score_calls(text: str, asked: Query, index: ScopeIndex, now: date, scores: Scores) -> Scores:
    """The scores plus the bonuses for calls with the requested marks and for events in the requested order."""
    if not len(index.postings(_CALL)[0]):
        return scores
    order = asked_order(text)
    beside, named = _ordered(order, index, now)
    parts = {"marked": _marked(asked, index), "asked_order": beside, "named_event": named}
    if order is not None and order.side is not None:
        del parts["marked"]  # the effect belongs to the named event, not to the one asked for
    found = {name: added for name, added in parts.items() if added.any()}
    if not found:
        return scores
    total = scores.total
    for added in found.values():
        total = total + added
    eligible = scores.eligible
    if eligible is not None:
        eligible = eligible | (beside > 0) | (named > 0)
    return scores._replace(total=total, parts={**scores.parts, **found}, eligible=eligible)


def _marked(asked: Query, index: ScopeIndex) -> Array:
    """The bonus of each call for its own marks: those of its effect, not of its subject, which words match as well.

    A turn inherits the words around it, but not the effects of calls around it.
    """
    marks = [slot for slot in asked.slots if slot.word.startswith(CALL) and not slot.word.startswith(identified(""))]
    held = np.zeros(len(index.ts))
    for slot in marks:
        held[index.postings(slot.term)[0]] += MARKED / len(marks)
    return held


def _ordered(asked: AskedOrder | None, index: ScopeIndex, now: date) -> tuple[Array, Array]:
    """The bonus of events by their order; and the larger bonus for being the event that the question names."""
    added, named = np.zeros((2, len(index.ts)))
    if asked is not None and asked.side is not None:
        named[_add_beside(asked, index, now, added)] = NAMED
    elif asked is not None:
        _add_end(asked, index, now, added)
    is_named = named > added
    return np.where(is_named, 0.0, added), np.where(is_named, named, 0.0)


def _said(text: str, index: ScopeIndex, now: date) -> Array:
    """The weight of a question part's words and marks in each turn itself."""
    query = read_query(text, index.speakers, now, lambda term: len(index.postings(term)[0]))
    index.prepare([slot.term for slot in query.slots])
    held = np.zeros(len(index.ts))
    for slot in query.slots:
        ordinals, _ = index.postings(slot.term)
        held[ordinals] += idf(len(index.ts), len(ordinals))
    return held


def _among_calls(said: Array, index: ScopeIndex) -> Array:
    """Restrict matches to calls, unless other turns match clearly better: a later report of a call is not the call."""
    calls = np.zeros(len(said))
    ordinals, _ = index.postings(_CALL)
    calls[ordinals] = said[ordinals]
    return calls if calls.max(initial=0.0) >= _MEANT * said.max(initial=0.0) else said


def _add_beside(asked: AskedOrder, index: ScopeIndex, now: date, added: Array) -> Ints:
    """Add bonuses to the events on the requested side of the named one, nearest first; return the possible reference
    events.
    """
    named = _among_calls(_said(asked.event, index, now), index)
    most = named.max(initial=0.0)
    if not most > 0:
        return np.zeros(0, np.int64)
    events: Ints = np.flatnonzero(named >= _ALIKE * most)
    if asked.event_end == "last" or (asked.event_end is None and asked.side == "after"):
        events = events[::-1]
    events = events[: _NAMED_MAX if asked.event_end is None else 1]
    wanted = _said(asked.wanted, index, now)
    for place, event in enumerate(events.tolist()):
        begin, end = index.session.searchsorted((index.session[event], index.session[event] + 1))
        side = np.arange(event - 1, begin - 1, -1) if asked.side == "before" else np.arange(event + 1, end)
        found = _meant(asked, index, side, wanted)
        _add(added, found[::-1] if asked.end == "first" else found, ASKED_FOR * NEXT ** (place / 2))
    return events


def _meant(asked: AskedOrder, index: ScopeIndex, side: Ints, wanted: Array) -> Ints:
    """The events on one side that are meant, in order: by speaker, else by match.

    An agent that wrote nothing there is represented by its calls; a user is not.
    """
    if asked.speaks is not None:
        spoken: Ints = side[index.role[side] == ROLES.index(asked.speaks)]
        if len(spoken) or asked.speaks == "user":
            return spoken
    there = np.zeros(len(wanted))
    there[side] = wanted[side]
    said = _among_calls(there, index)[side]
    most = said.max(initial=0.0)
    meant: Ints = side[said >= _MEANT * most] if most > 0 else side
    if asked.is_state:
        looked_up: Ints = meant[np.isin(meant, index.postings(_READ)[0])]
        return looked_up if len(looked_up) else meant
    return meant


def _add_end(asked: AskedOrder, index: ScopeIndex, now: date, added: Array) -> None:
    """Add the bonus to the first or last of the best matching calls."""
    if asked.speaks is not None:
        return
    said = _among_calls(_said(asked.wanted, index, now), index)
    most = said.max(initial=0.0)
    if most > 0:
        alike = np.flatnonzero(said >= _AS_MUCH * most)
        _add(added, alike[::-1] if asked.end == "last" else alike, ASKED_FOR)


def _add(added: Array, ordinals: Ints, worth: float) -> None:
    """Add the full bonus to the first, and less to each further one."""
    for each in ordinals[:COUNT].tolist():
        added[each] = max(added[each], worth)
        worth *= NEXT
