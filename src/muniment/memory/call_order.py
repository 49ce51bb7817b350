"""Which calls a question asks for: by what they did, of which tool they are, that they failed; and which of several
events: what stands before or after another one that it names, the first or the last of those alike.

Only the words and marks of the events themselves count here, not those around them: it is asked which of them it is.
A scope without calls is left as it is.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import numpy.typing as npt

from muniment.core.text.analyzer import term_hash
from muniment.memory._index import ROLES, Ints, ScopeIndex
from muniment.memory.query import Query, read_query
from muniment.memory.results.asked_calls import AskedOrder, asked_order
from muniment.memory.results.call_marks import CALL, did, identified
from muniment.memory.results.effects import READ
from muniment.memory.scoring import Scores, idf

__all__ = ["score_calls"]

Array = npt.NDArray[np.float64]

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
