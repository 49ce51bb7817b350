"""Does memory hold anything on what was asked? Signs of a query as a whole, read from all turns of the scope.

Who asks of one person what another one did finds the words of the question all the same. So what is said by the one
person whom a query names is told from what others say; and turns that ask are left aside, for whoever asks has not said
it. Where nobody is named, everybody counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import analyze, term_hash
from muniment.memory.recall.index import QUESTION, Ints, ScopeIndex
from muniment.memory.recall.query import Query
from muniment.memory.recall.reasons import KIND_SHARE
from muniment.memory.recall.score import Scores, idf

__all__ = ["FOUND_SIGNS", "read_found", "slot_weights"]

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FOUND_SIGNS = (
    "says",  # the most of the query's weight that one passage says: of the one named, or of anybody
    "hears",  # the most that a turn of theirs says and hears around it, of what could be heard
    "rival",  # the most that one passage says of those who are not the one named
    "part",  # of all who say the query's words, how far it is the one named: from -0.5 to 0.5
    "named",  # one person is named
    "query_words",  # the logarithm of the query's length
    "turns",  # the logarithm of the number of turns in the scope
    "nearest",  # the nearest in meaning of theirs, in standard deviations
    "rival_nearest",  # the nearest of those who are not the one named
)
"""The signs, in the order of the columns of `read_found`."""
_QUESTION = term_hash(QUESTION)


def read_found(query: Query, index: ScopeIndex, policy: RecallPolicy, scores: Scores) -> Array:
    """The signs of a query: one row."""
    weights = slot_weights(query, index, [len(index.postings(slot.term)[0]) for slot in query.slots])
    telling = index.kept("tells", lambda: _tells(index))
    if scores.eligible is not None:
        telling = telling & scores.eligible
    (theirs,) = telling.nonzero()
    others = theirs[:0]
    if query.speaker is not None:
        is_named = index.speaker[theirs] == query.speaker
        theirs, others = theirs[is_named], theirs[~is_named]
    says, rival = _said(query, index, weights, (theirs, others))
    heard = [part[theirs] for name in ("words", "kinds") if (part := scores.parts.get(name)) is not None]
    found = {
        "says": says,
        "hears": _most(sum(heard, np.zeros(len(theirs)))) * scores.unit,
        "rival": rival,
        "part": 0.0 if query.speaker is None else _part(query, index, weights, telling),
        "named": query.speaker is not None,
        "query_words": math.log1p(len(query.slots)) / 3,
        "turns": math.log1p(len(index.ts)) / 8,
        "nearest": _nearest(policy, scores, theirs),
        "rival_nearest": _nearest(policy, scores, others),
    }
    return np.array([[float(found[name]) for name in FOUND_SIGNS]])


def slot_weights(query: Query, index: ScopeIndex, counts: Sequence[int]) -> list[float]:
    """What each slot of a query weighs, that so many turns say.

    Whoever speaks need not say their own name, and whether the time fits is told apart from what is said: neither
    weighs anything.
    """
    names = index.kept("names", lambda: _names(index.speakers))
    return [
        0.0 if _is_date(slot.word) or (query.speaker is not None and slot.word in names) else idf(len(index.ts), count)
        for slot, count in zip(query.slots, counts, strict=True)
    ]


def _is_date(word: str) -> bool:
    return word.startswith(("#m", "#d")) or (len(word) == 4 and word.isascii() and word.isdecimal())


def _names(speakers: Sequence[str]) -> frozenset[str]:
    """The terms of the names of those who speak."""
    return frozenset(term for name in speakers for term in analyze(name))


def _tells(index: ScopeIndex) -> Flags:
    tells = np.ones(len(index.ts), bool)
    tells[index.postings(_QUESTION)[0]] = False
    return tells


def _said(query: Query, index: ScopeIndex, weights: Sequence[float], groups: Iterable[Ints]) -> list[float]:
    """For groups of turns the most of the query's weight, a share, that one passage of theirs says; what may stand for
    a word, in part.
    """
    parts = index.parts
    held, whole = np.zeros(len(index.ts) if parts is None else len(parts.turn)), sum(weights)
    if not whole:
        return [0.0 for _ in groups]
    for place, (slot, weight) in enumerate(zip(query.slots, weights, strict=True)):
        if not weight:
            continue
        meant = [kind.terms for kind in query.kinds if place in kind.slots]
        said = _passages(index, slot.term)
        if meant:
            share = np.zeros(len(held))
            for term in {term for terms in meant for term in terms}:
                share[_passages(index, term)] = KIND_SHARE
            share[said] = 1.0
            held += weight * share
        else:
            held[said] += weight
    return [_most(held[turns if parts is None else parts.of(turns)[0]]) / whole for turns in groups]


def _passages(index: ScopeIndex, term: int) -> Ints:
    return (index.postings(term) if index.parts is None else index.part_postings(term))[0]


def _most(values: Array) -> float:
    return float(values.max(initial=0.0))


def _nearest(policy: RecallPolicy, scores: Scores, turns: Ints) -> float:
    near = scores.parts.get("dense_turn")
    return 0.0 if near is None else _most(near[turns] / (policy.dense_turn or 1.0) / 3)


def _part(query: Query, index: ScopeIndex, weights: Sequence[float], telling: Flags) -> float:
    whole = sum(weights)
    total = 0.0
    for slot, weight in zip(query.slots, weights, strict=True):
        said = index.postings(slot.term)[0]
        said = said[telling[said]]
        own = int(np.count_nonzero(index.speaker[said] == query.speaker))
        total += weight * (own + 0.5) / (len(said) + 1)
    return total / whole - 0.5 if whole else 0.0
