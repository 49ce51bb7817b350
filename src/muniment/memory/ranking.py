"""Ranking: the best turns of a scope for a query, each with the chance that it is evidence and the reasons.

All turns are scored by `scoring`; the best `POOL` of them are put in order by *traits*: shares that are measured alike
for every query, each with a weight of `data/ranking.json`, in the unit of all weights, the best match in words.
`benchmarks.learn_ranking` fits the weights. Of the first few that say the same, the newest comes first.
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
"""How many of the best candidates are put in order by their traits."""
TRAITS = (
    "covers",  # the share of the query's weight that it holds itself; nothing, where it only asks
    "means",  # the share of the query's weight that it does not say itself and that something stands for which it says
    "session",  # the best match in words among the other candidates of its session
    "opens",  # the first turn of a session
    "assistant",  # said by a nameless assistant, unless it is asked what that said
    "near",  # its place by nearness in meaning
)
"""The traits, in the order of the columns of `read_traits`."""
_REASONS = {
    "covers": "holds most of it",
    "means": "says what may stand for it",
    "session": "its session speaks of it elsewhere too",
    "opens": "opens its session",
}
_REASONS_AT = [(place, _REASONS[name]) for place, name in enumerate(TRAITS) if name in _REASONS]
_REASON_MIN = 0.08
"""A trait is named as a reason where it is worth so much."""
_ASKED_WORDS = 8
"""A turn that only asks, in no more words than these, tells nothing besides."""
_NEAREST = 512
"""Beyond so many, a place by nearness is no better than another."""
_DIGITS = 9
STRETCH = 8
"""How many turns before and after one belong to its stretch, the nearest counting most."""
_AMONG = 0.5
"""What of its own score a stretch adds to a turn at least where that is given as a reason."""


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
    parts: dict[str, float]
    """The features that the score is the sum of."""
    chance: float
    """How likely it is evidence for the query, from 0 to 1; falls from place to place."""
    reasons: tuple[str, ...]


class Ranking(NamedTuple):
    """What each trait is worth, with vectors and without."""

    words: Array
    vectors: Array


@cache
def ranking(name: str) -> Ranking:
    """The ranking of this digest: the one that the package has."""
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
    """The best `k` turns, best first. Equal scores stand in ordinal order; the same inputs give the same list.

    `among` says of each turn whether it may be found at all.
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
    """The ordinals that `rank` would answer, and what gives their chances: the signs of each hit, and of the query."""
    if not len(index.ts):
        return [], np.zeros((0, len(SIGNS))), np.zeros((1, len(FOUND_SIGNS)))
    found = _put_in_order(query, index, policy, now, k, dense)
    ordinals: list[int] = found.matches.turns[found.order[:k]].tolist()
    return ordinals, _signs(found, index, policy, k)[:k], read_found(found.query, index, policy, found.scores)


def traits_of(
    query: str, index: ScopeIndex, policy: RecallPolicy, now: date, dense: Dense | None = None
) -> tuple[Ints, Array, Array]:
    """The candidates that traits put in order, best first: their ordinals, base scores and traits."""
    asked = _read(query, index, now)
    scores = score(asked, index, policy, dense)
    best = top(scores, POOL)
    return best, scores.total[best], read_traits(asked, index, scores, dense, match_turns(asked, index, best))


class _Found(NamedTuple):
    """The candidates of a query in their order. A position counts them as they were scored."""

    query: Query
    scores: Scores
    matches: Matches
    scored: Array
    """What each is worth, by position, its traits included."""
    added: Array
    """What each trait adds, by position."""
    order: Ints
    """Positions, best first."""
    worths: Array
    """What each place is worth; falls from place to place."""
    reasons: dict[int, list[str]]
    """Why one stands higher or lower than it scored, by position."""


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
        scored[POOL:] = np.minimum(scored[POOL:], scored[:POOL].min(initial=np.inf))  # nobody looked at these
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
    """For each candidate the best match among the others of its session."""
    others = np.where(session[:, np.newaxis] == session, words, 0.0)
    np.fill_diagonal(others, 0.0)
    found: Array = others.max(axis=1, initial=0.0)
    return found


def _opens(session: Ints) -> npt.NDArray[np.bool_]:
    return np.concatenate(([True], session[1:] != session[:-1]))


def _nearness(near: npt.NDArray[np.floating], turns: Ints) -> Array:
    """1 for the nearest turn of the scope, falling with the logarithm of its place."""
    count = min(_NEAREST, len(near))
    nearest = np.sort(np.partition(near, len(near) - count)[len(near) - count :])
    places = count - nearest.searchsorted(near[turns], side="right")
    return 1 - np.log1p(places) / math.log1p(_NEAREST)


# -- stretches ----------------------------------------------------------------------------------------


def _by_stretch(
    index: ScopeIndex, share: float, scores: Scores, matches: Matches, scored: Array, order: Ints
) -> tuple[Ints, Array, list[int]]:
    """Add to each of the best what the turns around it score, the nearer the more; the best is worth what it was.

    Where an account of what was said is asked for, a stretch of turns is wanted, many of which do not name what it is
    about. Answers the order, what its places are worth, and which positions gain much.
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
"""Of the most weight that one of them says, what the anchor says; what another says of what the anchor says; what both
say of what either does; and the words in common of all that the shorter one has."""
_RESTATED_NEAR, _NEAREST_FEW = 0.2, 0.6
"""The same where both are among the nearest ten in meaning: vectors find a newer value in other words."""


def _newest_first(
    query: Query, index: ScopeIndex, matches: Matches, order: Ints, count: int, dense: Dense | None
) -> tuple[Ints, list[int]]:
    """Put those of the first that restate the best of them in order of time, on the places that they hold together.

    Only what the same person said: another's later words are no newer state of this one. Who only asks states nothing;
    nor does an assistant without a name, which repeats and suggests, unless it is asked what it said.
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
    """What sorts turns by time; what was said within one second by the order of writing. Documents have none."""
    is_spoken = ROLES[index.role[turn]] in ("user", "assistant")
    return -int(index.ts[turn]), -index.written_number(turn) if is_spoken else 0


def _restates(index: ScopeIndex, one: int, other: int, share: float) -> bool:
    """Do the two have such a share of their words in common, and not all of them?"""
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
    if len(total) > _STEP * 2 * k:  # what is among the best of all is no worse than the last of the best of some
        places, total = _best_of(total, places, _least(total[::_STEP], k))
    if len(total) > k:
        places, total = _best_of(total, places, _least(total, k))
    order = (-total).argsort(kind="stable")[:k]
    return order if places is None else places[order]


_STEP = 16
"""Of a large scope every so many turns are looked at first."""


def _least(total: Array, k: int) -> float:
    """What the last of the best `k` has."""
    return float(np.partition(total, len(total) - k)[len(total) - k])


def _best_of(total: Array, places: Ints | None, least: float) -> tuple[Ints, Array]:
    (kept,) = (total >= least).nonzero()
    return kept if places is None else places[kept], total[kept]


# -- call order ----------------------------------------------------------------------------------------
#
# Which calls a question asks for: by what they did, of which tool they are, that they failed; and which of several
# events: what stands before or after another one that it names, the first or the last of those alike. Only the
# words and marks of the events themselves count here, not those around them: it is asked which of them it is. A
# scope without calls is left as it is.


ASKED_FOR = 1.5
"""What the event adds that is asked for, in the unit of all weights, the best match in words;"""
NEXT = 0.6
"""and each further one, against the one before it."""
MARKED = 0.5
"""What a call adds that has all the marks which a question asks for;"""
NAMED = 0.5
"""and the event that the question names beside it: who reads the answer wants to see both."""
COUNT = 4
_NAMED_MAX = 3
_ALIKE, _AS_MUCH, _MEANT = 0.98, 0.85, 0.6
"""Of the most that an event says, what others say that are the one named as well, that are alike, that are meant."""
_CALL, _READ = term_hash(CALL), term_hash(did(READ))


def score_calls(text: str, asked: Query, index: ScopeIndex, now: date, scores: Scores) -> Scores:
    """The scores with what calls add that have the marks a question asks for, and what the place of an event among
    others adds, where it asks for that.
    """
    if not len(index.postings(_CALL)[0]):
        return scores
    order = asked_order(text)
    beside, named = _ordered(order, index, now)
    parts = {"marked": _marked(asked, index), "asked_order": beside, "named_event": named}
    if order is not None and order.side is not None:
        del parts["marked"]  # what was done is the event that is named, and not the one asked for
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
    """What its own marks add to each call: those of what it did, not of what it was about, which words say as well.

    A turn hears the words around it; what was done there it has not done itself.
    """
    marks = [slot for slot in asked.slots if slot.word.startswith(CALL) and not slot.word.startswith(identified(""))]
    held = np.zeros(len(index.ts))
    for slot in marks:
        held[index.postings(slot.term)[0]] += MARKED / len(marks)
    return held


def _ordered(asked: AskedOrder | None, index: ScopeIndex, now: date) -> tuple[Array, Array]:
    """What the place of an event among others adds; and what it adds to be the one that the question names, where that
    is more.
    """
    added, named = np.zeros((2, len(index.ts)))
    if asked is not None and asked.side is not None:
        named[_add_beside(asked, index, now, added)] = NAMED
    elif asked is not None:
        _add_end(asked, index, now, added)
    is_named = named > added
    return np.where(is_named, 0.0, added), np.where(is_named, named, 0.0)


def _said(text: str, index: ScopeIndex, now: date) -> Array:
    """What of a part of the question each turn says itself: the weight of its words and marks."""
    query = read_query(text, index.speakers, now, lambda term: len(index.postings(term)[0]))
    index.prepare([slot.term for slot in query.slots])
    held = np.zeros(len(index.ts))
    for slot in query.slots:
        ordinals, _ = index.postings(slot.term)
        held[ordinals] += idf(len(index.ts), len(ordinals))
    return held


def _among_calls(said: Array, index: ScopeIndex) -> Array:
    """What calls alone say, unless others say clearly more: who tells of a call later is not the call."""
    calls = np.zeros(len(said))
    ordinals, _ = index.postings(_CALL)
    calls[ordinals] = said[ordinals]
    return calls if calls.max(initial=0.0) >= _MEANT * said.max(initial=0.0) else said


def _add_beside(asked: AskedOrder, index: ScopeIndex, now: date, added: Array) -> Ints:
    """The events that stand on the side asked for of the one that is named, the nearest first; answers those that may
    be the one named.
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
    """Those on one side that are asked for, in their order: by who speaks, else by what of it they say.

    An agent that said nothing there speaks by its calls; a user does not.
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
    """Of the calls that say as much of what is asked as any, the first or the last."""
    if asked.speaks is not None:
        return
    said = _among_calls(_said(asked.wanted, index, now), index)
    most = said.max(initial=0.0)
    if most > 0:
        alike = np.flatnonzero(said >= _AS_MUCH * most)
        _add(added, alike[::-1] if asked.end == "last" else alike, ASKED_FOR)


def _add(added: Array, ordinals: Ints, worth: float) -> None:
    """The first of them gets so much, each further one less."""
    for each in ordinals[:COUNT].tolist():
        added[each] = max(added[each], worth)
        worth *= NEXT
