"""Features of every turn of a scope for one query, and their sum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.policy.recall import RecallPolicy
from muniment.core.text.analyzer import term_hash
from muniment.core.text.attributes import QUANTITY
from muniment.core.text.when import Window
from muniment.memory.recall.index import ONLY_ASKS, QUESTION, ROLES, Floats, Ints, ScopeIndex
from muniment.memory.recall.query import Query
from muniment.memory.recall.reasons import terms_of
from muniment.memory.recall.words import score_words

__all__ = ["USER", "Dense", "Scores", "held_by", "score", "stand_in"]

USER, _ASSISTANT = ROLES.index("user"), ROLES.index("assistant")
_QUESTION, _QUANTITY = term_hash(QUESTION), term_hash(QUANTITY)

Array = npt.NDArray[np.float64]


class Dense(NamedTuple):
    """How near each turn, and the window it stands in, is to the query; arrays over the ordinals."""

    turn: Floats | None = None
    window: Floats | None = None


class Scores(NamedTuple):
    total: Array
    parts: Mapping[str, Array]
    """What the total is the sum of, by feature."""
    eligible: npt.NDArray[np.bool_] | None
    """Turns that there is a reason to show at all; None where there is one for each."""


def score(query: Query, index: ScopeIndex, policy: RecallPolicy, dense: Dense | None = None) -> Scores:
    """The features of every turn and their sum."""
    index.prepare(terms_of(query))
    lexical, kinds = score_words(query, index, policy)
    words = lexical if kinds is None else lexical + kinds
    best = float(words.max(initial=0.0))
    parts: dict[str, Array] = {}
    if best > 0:
        parts["words"] = lexical / best
        if kinds is not None and kinds.any():
            parts["kinds"] = kinds / best
    if query.speaker is not None:
        parts["speaker"] = np.where(index.speaker == query.speaker, policy.speaker, 0.0)
    wanted = _ASSISTANT if query.addressed else USER if query.asker else None
    if wanted is not None:
        parts["role"] = np.where(index.role == wanted, policy.role, 0.0)
    within = None if query.window is None else _said_within(index.ts, query.window)
    if within is not None:
        parts["time"] = np.where(within, policy.time, 0.0)
    if query.current and len(index.ts):
        parts["recency"] = policy.recency * _recency(index.ts)
    if len(index.postings(_QUESTION)[0]):
        parts["question"] = _question(index, policy)
    if query.quantity and policy.number:
        parts["number"] = np.zeros(len(index.ts))
        parts["number"][index.postings(_QUANTITY)[0]] = policy.number
    near = _nearness(policy, dense) if dense is not None and len(index.ts) else {}
    parts |= near
    total = np.zeros(len(index.ts))
    for part in parts.values():
        total += part
    if near:
        return Scores(total, parts, None)
    return Scores(total, parts, words > 0 if within is None else (words > 0) | within)


def _question(index: ScopeIndex, policy: RecallPolicy) -> Array:
    """What is taken off the turns that ask."""
    asking, counts = index.postings(_QUESTION)

    def work_out() -> Array:
        part = np.zeros(len(index.ts))
        part[asking] = np.where(counts >= ONLY_ASKS, -policy.question_only, -policy.question)
        return part

    return index.kept(("question", policy.question_only, policy.question), work_out)


def _nearness(policy: RecallPolicy, dense: Dense) -> dict[str, Array]:
    """Nearness in meaning, as far as it is known and counts."""
    features = (
        ("dense_turn", policy.dense_turn, dense.turn),
        ("dense_window", policy.dense_window, dense.window),
    )
    return {name: _standard(near, weight) for name, weight, near in features if near is not None and weight}


def held_by(index: ScopeIndex, terms: Sequence[int], among: Ints) -> npt.NDArray[np.bool_]:
    """Which of the turns `among` have one of the terms in their own text."""
    found = np.zeros(len(among), bool)
    for term in terms:
        ordinals, _ = index.postings(term)
        if len(ordinals):
            found |= stand_in(ordinals, among)
    return found


def stand_in(ordinals: Ints, among: Ints) -> npt.NDArray[np.bool_]:
    """Which of the turns `among` stand in a list of ordinals that ascend."""
    if not len(ordinals):
        return np.zeros(len(among), bool)
    places = np.minimum(ordinals.searchsorted(among), len(ordinals) - 1)
    found: npt.NDArray[np.bool_] = ordinals[places] == among
    return found


# -- time and vectors ---------------------------------------------------------------------------------


def _seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _said_within(ts: Ints, window: Window) -> npt.NDArray[np.bool_]:
    return (ts >= _seconds(window.start)) & (ts < _seconds(window.end) + 86_400)


def _recency(ts: Ints) -> Array:
    """0 for the oldest turn of the scope, 1 for the newest, even between by time."""
    first, last = int(ts.min()), int(ts.max())
    return np.asarray((ts - first) / max(last - first, 1), np.float64)


def _standard(near: Floats, weight: float) -> Array:
    """Standard deviations from the mean, weighed."""
    apart = near.astype(np.float64)
    count = len(apart)
    apart -= np.add.reduce(apart) / count
    deviation = math.sqrt(float(np.add.reduce(apart * apart) / count))
    if not deviation > 0:
        return np.zeros(count)
    apart /= deviation
    apart *= weight
    return apart
