"""Ranking that is learnt: what tells one candidate from another beyond the match itself, and what each of it is worth.

A *trait* is a share, measured alike for every query. What a trait is worth is a number of a file beside this module
(`data/ranking.json`), in the unit of all weights, the best match in words; `benchmarks.learn_ranking` fits it on many
sets of conversations and judges it on the one left out. The policy names the file by its digest, or by nothing, and
then ranks without it. Only the best candidates are looked at, so that the size of the scope does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.text.analyzer import term_hash
from muniment.memory.recall.fitted import read_fitted
from muniment.memory.recall.index import QUESTION, Ints, ScopeIndex
from muniment.memory.recall.query import Query
from muniment.memory.recall.said import only_asking
from muniment.memory.recall.score import Dense, Scores, called, held_by, idf, nameless_assistant, stand_in

__all__ = ["POOL", "TRAITS", "Lifted", "Ranking", "ranking", "read_traits", "weigh_traits", "worth_of"]

Array = npt.NDArray[np.float64]

TRAITS = (
    "covers",  # the share of the query's weight that its best passage holds; nothing, where it only asks
    "says",  # the share of the query's words that it says, all counting the same, unless an account is asked for
    "means",  # the share of the query's weight that it does not say itself and that something stands for which it says
    "session",  # the best match in words among the other candidates of its session
    "opens",  # the first turn of a session
    "answers",  # short, and the turn before it asks
    "assistant",  # said by a nameless assistant, unless it is asked what that said
    "named",  # said by the one person whom the query names, unless an account of what was said is asked for
    "near",  # its place by nearness in meaning
)
"""The traits, in the order of the columns of `read_traits`."""
POOL = 60
"""How many of the best candidates are looked at."""
_SHORT_WORDS, _ASKED_WORDS = 12, 8
_NEAREST = 512
"""Beyond so many, a place by nearness is no better than another."""
_DIGITS = 9
_TOLD = {
    "covers": "holds most of it in one place",
    "means": "says what may stand for it",
    "session": "its session speaks of it elsewhere too",
    "opens": "opens its session",
    "answers": "answers a question",
}
_TOLD_AT = [(place, _TOLD[name]) for place, name in enumerate(TRAITS) if name in _TOLD]
_TOLD_MIN = 0.08
"""A trait is named as a reason where it is worth so much."""
_QUESTION = term_hash(QUESTION)


def read_traits(query: Query, index: ScopeIndex, scores: Scores, dense: Dense | None, among: Ints) -> Array:
    """The traits of these turns: a row each."""
    words = scores.parts.get("words")
    session = index.session[among]
    wanted = _wanted(query, index, among)
    is_open = query.speaker is None or query.account  # of an account, what others said to it is a part
    held = {
        "covers": _covered(index, among, wanted),
        "says": None if query.account else _said(wanted, among),
        "means": _meant(query, index, among, wanted),
        "session": None if words is None else _elsewhere(session, words[among]),
        "opens": index.kept("opens", lambda: _opens(index.session))[among],
        "answers": _answers(index, among),
        "assistant": None if query.addressed else nameless_assistant(index)[among],
        "named": None if is_open else index.speaker[among] == query.speaker,
        "near": None if dense is None or dense.turn is None else _nearness(dense.turn, among),
    }
    traits = np.zeros((len(among), len(TRAITS)))
    for column, name in enumerate(TRAITS):
        if (values := held[name]) is not None:
            traits[:, column] = values
    return traits


class _Wanted(NamedTuple):
    """The words of a query that tell what it is about, dates and who is named aside."""

    places: list[int]
    """Which of the slots they are."""
    weights: list[float]
    is_said: list[bool]
    """Does anybody in the scope say it?"""
    held: list[npt.NDArray[np.bool_]]
    """Which passages of the candidates hold it."""
    own: list[npt.NDArray[np.bool_]]
    """Which of the candidates do."""
    starts: Ints | None
    """Where the passages of each candidate begin; None where each is one."""


def _wanted(query: Query, index: ScopeIndex, among: Ints) -> _Wanted:
    names = called(index, query.speakers)
    slots = [
        (place, slot.term, len(index.postings(slot.term)[0]))
        for place, slot in enumerate(query.slots)
        if not slot.word.startswith(("#m", "#d")) and slot.term not in names
    ]
    passages, starts = (among, None) if index.parts is None else index.parts.of(among)
    held = [stand_in(index.part_postings(term)[0], passages) for _, term, _ in slots]
    own = held if starts is None else [np.logical_or.reduceat(each, starts) for each in held]
    weights = [idf(len(index.ts), count) for *_, count in slots]
    return _Wanted([place for place, *_ in slots], weights, [count > 0 for *_, count in slots], held, own, starts)


def _covered(index: ScopeIndex, among: Ints, wanted: _Wanted) -> Array:
    """The share of the query's weight that the best passage of each turn holds."""
    whole = sum(wanted.weights)
    if not whole or not len(among):
        return np.zeros(len(among))
    covered = np.zeros(len(wanted.held[0]))
    for weight, held in zip(wanted.weights, wanted.held, strict=True):
        covered[held] += weight
    if wanted.starts is not None:
        covered = np.maximum.reduceat(covered, wanted.starts)
    only_asks = stand_in(index.kept("only asks", lambda: only_asking(index)), among)
    only_asks &= index.length[among] <= _ASKED_WORDS  # a longer question tells something besides
    return np.where(only_asks, 0.0, covered / whole)


def _said(wanted: _Wanted, among: Ints) -> Array:
    """The share of the query's words that each turn says, one counting as much as another."""
    return np.add.reduce(np.array(wanted.own), axis=0) / len(wanted.own) if wanted.own else np.zeros(len(among))


def _meant(query: Query, index: ScopeIndex, among: Ints, wanted: _Wanted) -> Array:
    """The share of the query's weight, what nobody says aside, for which each turn says what may stand for it, and not
    the word itself.
    """
    found, whole = np.zeros(len(among)), 0.0
    stand_ins: dict[int, list[int]] = {}
    for kind in query.kinds:
        for place in kind.slots:
            stand_ins.setdefault(place, []).extend(kind.terms)
    words = zip(wanted.places, wanted.weights, wanted.is_said, wanted.own, strict=True)
    for place, weight, is_said, own in words if stand_ins else ():
        if is_said:
            whole += weight
            if place in stand_ins:
                found[held_by(index, stand_ins[place], among) & ~own] += weight
    return found / whole if whole else found


def _elsewhere(session: Ints, words: Array) -> Array:
    """For each candidate the best match among the others of its session."""
    others = np.where(session[:, np.newaxis] == session, words, 0.0)
    np.fill_diagonal(others, 0.0)
    found: Array = others.max(axis=1, initial=0.0)
    return found


def _opens(session: Ints) -> npt.NDArray[np.bool_]:
    return np.concatenate(([True], session[1:] != session[:-1]))


def _answers(index: ScopeIndex, among: Ints) -> Array:
    before = np.maximum(among - 1, 0)
    is_asked = stand_in(index.postings(_QUESTION)[0], before) & (index.session[before] == index.session[among])
    found: Array = (is_asked & (among > 0)) / (1 + ((1 + index.length[among]) / _SHORT_WORDS) ** 2)
    return found


def _nearness(near: npt.NDArray[np.floating], among: Ints) -> Array:
    """1 for the nearest turn of the scope, falling with the logarithm of its place."""
    count = min(_NEAREST, len(near))
    nearest = np.sort(np.partition(near, len(near) - count)[len(near) - count :])
    places = count - nearest.searchsorted(near[among], side="right")
    return 1 - np.log1p(places) / math.log1p(_NEAREST)


# -- what they are worth ------------------------------------------------------------------------------


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


def weigh_traits(worths: Array, traits: Array) -> Array:
    """What each trait of each candidate adds."""
    return traits * worths


def worth_of(base: Array, added: Array) -> Array:
    """What candidates of this base score are worth with what their traits add."""
    found: Array = (base + np.add.reduce(added, axis=1)).round(_DIGITS)
    return found


class Lifted(NamedTuple):
    """What the traits of candidates add."""

    added: Mapping[int, Sequence[float]]
    """By ordinal, trait by trait."""

    def told(self, ordinal: int) -> list[str]:
        """In words, the traits that lift a turn."""
        added = self.added.get(ordinal)
        return [] if added is None else [said for place, said in _TOLD_AT if added[place] >= _TOLD_MIN]
