"""How likely a turn is evidence for what was asked: its signs, measured alike for every query, and what they add up to.

A *sign* is a share, or the logarithm of a count. Two chances are told apart: that memory holds any evidence, by the
signs of the query as a whole (`found`), and that a hit is it where there is some, by the signs of the hit. Its score is
both of them together. Nothing here depends on how many hits are wanted.

The weights are numbers of a file beside this module (`data/evidence.json`), fitted by `benchmarks.learn_evidence` on
many sets of conversations and judged on the one left out. The policy names the file by its digest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.policy import RecallPolicy
from muniment.memory.recall.fitted import read_fitted
from muniment.memory.recall.found import FOUND_SIGNS, slot_weights
from muniment.memory.recall.index import Ints, ScopeIndex
from muniment.memory.recall.query import Query
from muniment.memory.recall.reasons import KIND_SHARE
from muniment.memory.recall.said import Said, only_asking
from muniment.memory.recall.score import Scores, stand_in

__all__ = [
    "FIRST",
    "SIGNS",
    "Calibration",
    "Weights",
    "apply_weights",
    "calibration",
    "chance_of_fact",
    "chances",
    "read_signs",
    "read_weights",
]

Array = npt.NDArray[np.float64]

SIGNS = (
    "own",  # the share of the query's weight that the turn says itself
    "around",  # what it hears of the query in its context, of what could be heard
    "of_best",  # what its place is worth, against the first place
    "place",  # the logarithm of its place
    "best_own",  # the most that one of the first says itself
    "best_around",  # the most that one of the first hears
    "unheard",  # the share of the query's weight that nobody in the scope says
    "by_named",  # said by the one person whom the query names
    "by_other",  # said by somebody else, where it names one
    "other_own",  # the most that one of the first of those others says itself
    "in_time",  # said in the time asked about
    "out_of_time",  # said outside of it
    "asks",  # nothing but a question
    "by_asker",  # said by the one who is asked about
    "turn_words",  # the logarithm of its length
    "query_words",  # the logarithm of the query's
    "turns",  # the logarithm of the number of turns in the scope
    "near",  # nearness in meaning, in standard deviations
    "best_near",  # the nearest of the first
    "near_window",  # nearness of the turns around it
)
"""The signs, in the order of the columns of `read_signs`."""
_COLUMNS = {name: column for column, name in enumerate(SIGNS)}
FIRST = 10
"""The best of a query is sought among so many: `read_signs` is given no fewer, where there are."""
_FALL = 1 - 1e-4
"""A hit is a little less likely than the one above it at least: what is sorted by its chance stays in its place."""
_DIGITS = 10
_LEAST = 1e-6


# -- signs --------------------------------------------------------------------------------------------


def read_signs(
    query: Query,
    index: ScopeIndex,
    policy: RecallPolicy,
    scores: Scores,
    said: Said,
    order: Sequence[int],
    worths: Array,
) -> Array:
    """The signs of the turns in `order`, best first: a row each. `worths` is what their places are worth."""
    count = len(order)
    among = np.array(order, np.int64)
    own, unheard = _coverage(query, index, said, order)
    around = (_part(scores, "words", among) + _part(scores, "kinds", among)) * scores.unit
    worths = worths[:count]
    found = {
        "own": own,
        "around": around,
        "of_best": worths / worths[0] if count and worths[0] > 0 else 0.0,
        "place": np.log1p(np.searchsorted(-worths, -worths)),  # turns worth the same share a place
        "best_own": own[:FIRST].max(initial=0.0),
        "best_around": around[:FIRST].max(initial=0.0),
        "unheard": unheard,
        "asks": stand_in(index.kept("only asks", lambda: only_asking(index)), among),
        "by_asker": _part(scores, "role", among) > 0,
        "turn_words": np.log1p(index.length[among]) / 5,
        "query_words": math.log1p(len(query.slots)) / 3,
        "turns": math.log1p(len(index.ts)) / 8,
    }
    if query.speaker is not None:
        is_named = index.speaker[among] == query.speaker
        found |= {"by_named": is_named, "by_other": ~is_named, "other_own": own[~is_named][:FIRST].max(initial=0.0)}
    if "time" in scores.parts:
        is_within = scores.parts["time"][among] > 0
        found |= {"in_time": is_within, "out_of_time": ~is_within}
    if "dense_turn" in scores.parts:
        near = _part(scores, "dense_turn", among) / (policy.dense_turn or 1.0) / 3
        window = _part(scores, "dense_window", among) / (policy.dense_window or 1.0) / 3
        found |= {"near": near, "best_near": near[:FIRST].max(initial=0.0), "near_window": window}
    signs = np.zeros((count, len(SIGNS)))
    for name, values in found.items():
        signs[:, _COLUMNS[name]] = values
    return signs


def _part(scores: Scores, name: str, among: Ints) -> Array:
    part = scores.parts.get(name)
    return np.zeros(len(among)) if part is None else part[among]


def _coverage(query: Query, index: ScopeIndex, said: Said, order: Sequence[int]) -> tuple[Array, float]:
    """The share of the query's weight that each turn says itself, and the share that nobody in the scope says."""
    weights = slot_weights(query, index, said.counts)
    whole = sum(weights)
    if not whole:
        return np.zeros(len(order)), 0.0
    known: dict[tuple[int, int], float] = {}
    shares = []
    for key in zip(said.slots(order, kinds=False), said.slots(order, kinds=True), strict=True):
        share = known.get(key)
        if share is None:
            held, meant = key
            parts = [
                weight if held >> place & 1 else KIND_SHARE * weight if meant >> place & 1 else 0.0
                for place, weight in enumerate(weights)
            ]
            share = known[key] = sum(parts) / whole
        shares.append(share)
    unheard = sum([weight for weight, count in zip(weights, said.counts, strict=True) if not count])
    return np.array(shares), unheard / whole


# -- what they add up to ------------------------------------------------------------------------------


class Weights(NamedTuple):
    """Weights of signs and of products of two signs, with vectors and without."""

    terms: tuple[Ints, Ints]
    """The two columns that each term is the product of; behind the last sign stands a column of ones."""
    words: Array
    vectors: Array


class Calibration(NamedTuple):
    """From signs to chances."""

    hit: Weights
    """Of a hit's signs: is it evidence, where there is any?"""
    found: Weights
    """Of the query's signs: is there any?"""
    fact: tuple[float, float]
    """Of a fact's match."""


@cache
def calibration(name: str) -> Calibration:
    """The calibration of this digest: the one that the package has."""
    held = read_fitted("evidence", name)
    return Calibration(
        read_weights(held["hit"], SIGNS), read_weights(held["found"], FOUND_SIGNS), (held["fact"][0], held["fact"][1])
    )


def read_weights(held: Mapping[str, Any], signs: Sequence[str]) -> Weights:
    """Weights as the data file has them, over these signs."""
    places = {sign: place for place, sign in enumerate((*signs, "1"))}
    pairs = [[places[sign] for sign in f"{term}*1".split("*")[:2]] for term in held["terms"]]
    first, second = np.array(pairs, np.int64).T
    words, vectors = (np.array(held[kind], np.float64) for kind in ("words", "vectors"))
    return Weights((first, second), words, vectors)


def apply_weights(made: Weights, signs: Array, *, has_vectors: bool) -> Array:
    """The chance of each row, from 0 to 1."""
    whole = np.ones((len(signs), signs.shape[1] + 1))
    whole[:, :-1] = signs
    first, second = made.terms
    weights = made.vectors if has_vectors else made.words
    total = np.add.reduce(whole[:, first] * whole[:, second] * weights, axis=1)
    found: Array = 1 / (1 + np.exp(-total.clip(-40, 40)))
    return found


def chances(signs: Array, found: Array, worths: Array, made: Calibration, *, has_vectors: bool) -> list[float]:
    """The chance of each hit, from 0 to 1: that there is evidence at all, times that it is this hit where there is.

    The order of the hits is the ranking's: none is above the one before it, and one whose place is worth less is below
    it. `found` is the row of the query's signs.
    """
    any_is = float(apply_weights(made.found, found, has_vectors=has_vectors)[0])
    each = apply_weights(made.hit, signs, has_vectors=has_vectors) * any_is
    most, before = 1.0, math.inf
    likely: list[float] = []
    for chance, worth in zip(each.tolist(), worths.tolist(), strict=True):
        if worth < before:
            most, before = most * _FALL, worth
        most = most if most < chance else chance
        likely.append(most)
    rounded: list[float] = np.maximum(likely, _LEAST).round(_DIGITS).tolist()
    return rounded


def chance_of_fact(match: float, made: Calibration) -> float:
    """The chance that a fact is evidence, by the share of what is asked for that it holds; 0 where that is nothing."""
    bias, slope = made.fact
    return round(1 / (1 + math.exp(-(bias + slope * match))), _DIGITS) if match > 0 else 0.0
