"""Features of every turn of a scope for one query, and their sum.

Words are scored by BM25 over a turn in its context, which is spread here, from the postings of single turns: a turn
receives the words of its neighbours in the session, each divided by how long the neighbour is. All in numpy over the
ordinals; only the postings of the query's terms are touched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from muniment.recall.index import ONLY_ASKS, QUESTION, ROLES, Floats, Ints, ScopeIndex
from muniment.recall.query import Query
from muniment.recall.said import terms_of
from muniment.records.recall_policy import RecallPolicy
from muniment.text.analyzer import term_hash
from muniment.text.attributes import QUANTITY
from muniment.text.when import Window

__all__ = ["USER", "Dense", "Scores", "held_by", "idf", "score", "spread", "stand_in"]

USER, _ASSISTANT = ROLES.index("user"), ROLES.index("assistant")
_QUESTION, _QUANTITY = term_hash(QUESTION), term_hash(QUANTITY)

_CELLS_MAX = 1 << 20
"""Terms times turns that are scored at once."""

Array = npt.NDArray[np.float64]
S = TypeVar("S")


class Dense(NamedTuple):
    """How near each turn, and the window it stands in, is to the query; arrays over the ordinals."""

    turn: Floats | None = None
    window: Floats | None = None


class Scores(NamedTuple):
    total: Array
    parts: Mapping[str, Array]
    """What the total is the sum of, by feature."""
    eligible: npt.NDArray[np.bool_]
    """Turns that there is a reason to show at all."""


def idf(total: int, holding: int) -> float:
    """The weight of a term that `holding` of `total` turns have; never negative."""
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def spread(
    index: ScopeIndex,
    ordinals: Ints,
    values: Array,
    weights: Mapping[int, float],
    rows: Ints | None = None,
    count: int = 1,
) -> Array:
    """Values and their neighbours', over all ordinals: `weights[d]` of a value goes to the turn d places later.

    `rows` says which of `count` rows each value belongs to; they are spread side by side, and answered end to end.
    """
    session = index.session
    size = len(session)
    offsets = [[offset] for offset, weight in weights.items() if weight]
    if not offsets or not len(ordinals):
        return np.zeros(size * count)
    there = ordinals + np.array(offsets, ordinals.dtype)
    near = np.minimum(np.maximum(there, 0), size - 1)
    received = values * np.array([[weight] for weight in weights.values() if weight])
    received *= (near == there) & (session[near] == session[ordinals])
    if rows is not None:
        near = near + rows * size
    gathered = np.bincount(near.ravel(), received.ravel(), minlength=size * count)
    return gathered.astype(np.float64, copy=False)


def score(query: Query, index: ScopeIndex, policy: RecallPolicy, dense: Dense | None = None) -> Scores:
    """The features of every turn and their sum."""
    index.prepare(terms_of(query))
    lexical, kinds = _words(query, index, policy)
    words = lexical + kinds
    best = float(words.max(initial=0.0))
    parts: dict[str, Array] = {}
    if best > 0:
        parts["words"] = lexical / best
        if kinds.any():
            parts["kinds"] = kinds / best
    eligible = words > 0
    if query.speaker is not None:
        parts["speaker"] = np.where(index.speaker == query.speaker, policy.speaker, 0.0)
    wanted = _ASSISTANT if query.addressed else USER if query.asker else None
    if wanted is not None:
        parts["role"] = np.where(index.role == wanted, policy.role, 0.0)
    if query.window is not None:
        within = _said_within(index.ts, query.window)
        parts["time"] = np.where(within, policy.time, 0.0)
        eligible |= within
    if query.current and len(index.ts):
        parts["recency"] = policy.recency * _recency(index.ts)
    asking, counts = index.postings(_QUESTION)
    if len(asking):
        parts["question"] = np.zeros(len(index.ts))
        parts["question"][asking] = np.where(counts >= ONLY_ASKS, -policy.question_only, -policy.question)
    if query.quantity and policy.number:
        parts["number"] = np.zeros(len(index.ts))
        parts["number"][index.postings(_QUANTITY)[0]] = policy.number
    dense = dense or Dense()
    for name, weight, near in (
        ("dense_turn", policy.dense_turn, dense.turn),
        ("dense_window", policy.dense_window, dense.window),
    ):
        if near is not None and len(near) and weight:
            parts[name] = _standard(near, weight)
            eligible[:] = True
    total = np.zeros(len(index.ts))
    for part in parts.values():
        total += part
    return Scores(total, parts, eligible)


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


# -- words --------------------------------------------------------------------------------------------


def _words(query: Query, index: ScopeIndex, policy: RecallPolicy) -> tuple[Array, Array]:
    """BM25 over turns in context: of the query's terms, and of what may stand for them."""
    size = len(index.length)
    lexical, kinds = np.zeros(size), np.zeros(size)
    if not size:
        return lexical, kinds
    shorter = _Shorter(index, policy)
    weights = {
        0: policy.own,
        1: policy.before_1,
        2: policy.before_2,
        -1: policy.after_1,
        -2: policy.after_2,
    }
    dates = _Dates(index.ts)
    covered, whole = np.zeros(size), 0.0
    for slots in _portions(query.slots, size):
        dated = [dates.holding(slot.word) for slot in slots]
        rows = [row for row, slot in enumerate(slots) if dated[row] is not None or len(index.postings(slot.term)[0])]
        heard = shorter.heard([(slots[row].term,) for row in rows], weights)
        for place, row in enumerate(rows):
            said = dated[row]
            if said is not None:
                heard[place] += policy.session_date * said
        places, got, holding = _where_heard(heard)
        held = dict(zip(rows, holding, strict=True))
        worth = [
            min(slot.repeats, policy.term_repeats_max) * idf(size, held.get(row, 0)) for row, slot in enumerate(slots)
        ]
        for each in worth:
            whole += each
        weight: Array = np.repeat(np.array([worth[row] for row in rows], np.float64), holding)
        np.add.at(lexical, places, weight * (policy.saturation + 1) * got / (got + policy.saturation))
        np.add.at(covered, places, weight)
    damped = policy.kinds * (1 - policy.kinds_damping * float(covered.max()) / whole) if whole else 0.0
    if not damped:
        return lexical, kinds
    weights = {0: 1.0, 1: policy.kinds_before, -1: policy.kinds_after}
    for group in _portions(query.kinds, size):
        places, got, holding = _where_heard(shorter.heard([kind.terms for kind in group], weights))
        weight = np.repeat(np.array([damped * idf(size, count) for count in holding], np.float64), holding)
        np.add.at(kinds, places, weight * got / (got + 1))
    return lexical, kinds


def _portions(asked: Sequence[S], size: int) -> Iterator[Sequence[S]]:
    """So many at a time that their rows over all turns stay small."""
    step = max(1, _CELLS_MAX // size)
    for at in range(0, len(asked), step):
        yield asked[at : at + step]


def _where_heard(heard: Array) -> tuple[Ints, Array, list[int]]:
    """Row by row: the turns that hear something, what they hear, and how many they are in each row."""
    flat = heard.ravel()
    cells = np.flatnonzero(flat > 0)
    starts = np.arange(len(heard) + 1) * heard.shape[1]
    ends = cells.searchsorted(starts)
    holding = ends[1:] - ends[:-1]
    return cells - np.repeat(starts[:-1], holding), flat[cells], holding.tolist()


class _Shorter:
    """The longer a turn, the less each of its words counts."""

    def __init__(self, index: ScopeIndex, policy: RecallPolicy) -> None:
        self._index = index
        self._share = policy.length
        self._length = np.maximum(index.length, 1)
        self._mean = self._length.mean()

    def heard(self, rows: Sequence[Sequence[int]], weights: Mapping[int, float]) -> Array:
        """For each row of terms, how much every turn hears of them, from itself and its neighbours."""
        if not rows:
            return np.zeros((0, len(self._length)))
        found = [[self._index.postings(term) for term in row] for row in rows]
        flat = [each for row in found for each in row]
        ordinals = np.concatenate([ordinals for ordinals, _ in flat])
        counts = np.concatenate([counts for _, counts in flat])
        values = counts * (1 / (1 - self._share + self._share * self._length[ordinals] / self._mean))
        sizes = [sum([len(ordinals) for ordinals, _ in row]) for row in found]
        numbers = np.repeat(np.arange(len(rows)), sizes)
        return spread(self._index, ordinals, values, weights, numbers, len(rows)).reshape(len(rows), -1)


class _Dates:
    """Which turns were said in a month, on a day of a month, in a year; worked out when a query names one."""

    def __init__(self, ts: Ints) -> None:
        self._ts = ts
        self._parts: tuple[Ints, Ints, Ints] | None = None

    def holding(self, word: str) -> npt.NDArray[Any] | None:
        """The turns whose date has the term, or None where the term is no date."""
        if word.startswith("#m"):
            return np.equal(self._split()[1], int(word[2:]))
        if word.startswith("#d"):
            month, _, day = word[2:].partition("-")
            _, months, days = self._split()
            return np.equal(months, int(month)) & np.equal(days, int(day))
        if len(word) == 4 and word.isascii() and word.isdecimal():
            return np.equal(self._split()[0], int(word))
        return None

    def _split(self) -> tuple[Ints, Ints, Ints]:
        """Years, months, days. Turns side by side were often said on one day, so that few days are taken apart."""
        if self._parts is None:
            dates = self._ts // 86_400
            starts = np.flatnonzero(np.concatenate(([True], dates[1:] != dates[:-1])))
            days = dates[starts].astype("datetime64[D]")
            months = days.astype("datetime64[M]")
            numbers = months.astype(np.int64)
            lasting = np.diff(starts, append=len(dates))
            self._parts = (
                np.repeat(numbers // 12 + 1970, lasting),
                np.repeat(numbers % 12 + 1, lasting),
                np.repeat((days - months).astype(np.int64) + 1, lasting),
            )
        return self._parts


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
