"""Features of every turn of a scope for one query, words first by BM25 over a turn in its context, and their sum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import analyze, term_hash
from muniment.core.text.stated.attributes import QUANTITY
from muniment.core.text.times.when import Window
from muniment.memory.recall.index import ONLY_ASKS, QUESTION, ROLES, Floats, Ints, Parts, ScopeIndex
from muniment.memory.recall.people import NAMELESS
from muniment.memory.recall.query import Query, Slot
from muniment.memory.recall.reasons import terms_of

__all__ = [
    "USER",
    "Dense",
    "Scores",
    "called",
    "held_by",
    "idf",
    "nameless_assistant",
    "score",
    "score_words",
    "spread",
    "stand_in",
]

_CELLS_MAX = 1 << 20
"""Terms times turns that are scored at once."""
_REACH_MAX = 2
"""A turn's words reach this many places to either side."""

Array = npt.NDArray[np.float64]
S = TypeVar("S")


def idf(total: int, holding: int) -> float:
    """The weight of a term that `holding` of `total` turns have; never negative."""
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def score_words(query: Query, index: ScopeIndex, policy: RecallPolicy) -> tuple[Array, Array | None, float]:
    """For every turn, what of the query's terms it says; what may stand for them, where anything may; and the most that
    a turn could have that says all of them, over and over.

    A turn of several passages has what the best of them has.
    """
    size = len(index.length)
    if not size:
        return np.zeros(0), None, 0.0
    parts = index.parts
    count = size if parts is None else len(parts.turn)
    lexical, covered, whole = np.zeros(count), np.zeros(count), 0.0
    has_kinds = bool(query.kinds and policy.kinds)
    for slots in _portions(query.slots, count):
        dated = [_said_on(index, slot.word) for slot in slots]
        rows = [row for row, slot in enumerate(slots) if dated[row] is not None or len(index.postings(slot.term)[0])]
        heard = _heard_words(index, policy, [slots[row].term for row in rows])
        for place, row in enumerate(rows):
            said = dated[row]
            if said is not None:
                heard[place] += policy.session_date * (said if parts is None else said[parts.turn])
        places, got, each = _where_heard(heard)
        holding = each if parts is None else _turns_of(parts, places, each)
        held = dict(zip(rows, holding.tolist(), strict=True))
        worth = [
            min(slot.repeats, policy.term_repeats_max) * _weight(query, index, policy, slot, held.get(row, 0))
            for row, slot in enumerate(slots)
        ]
        for one in worth:
            whole += one
        weight: Array = np.array([worth[row] for row in rows], np.float64).repeat(each)
        np.add.at(lexical, places, weight * (policy.saturation + 1) * got / (got + policy.saturation))
        if has_kinds:
            np.add.at(covered, places, weight)
    damped = policy.kinds * (1 - policy.kinds_damping * float(covered.max()) / whole) if has_kinds and whole else 0.0
    most = whole * (policy.saturation + 1)
    if parts is not None:
        lexical = np.maximum.reduceat(lexical, parts.first)
    return lexical, _score_kinds(query, index, policy, damped) if damped else None, most


def _weight(query: Query, index: ScopeIndex, policy: RecallPolicy, slot: Slot, holding: int) -> float:
    """The weight of a slot that so many turns hear.

    What a speaker is called says little: others call them by it ("Hi Kate!"), and who speaks is known. Its weight is
    that among those whom they speak with: elsewhere nobody calls them by it, and in a large scope it would weigh like
    the rarest of words.
    """
    if not query.speakers or slot.term not in called(index, query.speakers):
        return idf(len(index.length), holding)
    company = _company(index, query.speakers)
    if company is None:
        return policy.called * idf(len(index.length), holding)
    ordinals, _ = index.postings(slot.term)
    inside = int(np.count_nonzero(company[ordinals]))
    size = int(np.count_nonzero(company))
    return policy.called * idf(size, min(size, max(inside, round(holding * inside / max(len(ordinals), 1)))))


def called(index: ScopeIndex, speakers: tuple[int, ...]) -> frozenset[int]:
    """The terms of what these are called."""

    def work_out() -> frozenset[int]:
        return frozenset(term_hash(term) for number in speakers for term in analyze(index.speakers[number]))

    return index.kept(("called", speakers), work_out)


def _company(index: ScopeIndex, speakers: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    """The turns of the sessions in which one of these speaks; None where that is all of them, or they are nobody."""
    if not speakers:
        return None

    def work_out() -> tuple[npt.NDArray[np.bool_] | None]:
        speaks = np.zeros(len(index.speakers), bool)
        speaks[list(speakers)] = True
        sessions = np.zeros(int(index.session.max(initial=-1)) + 1, bool)
        sessions[index.session[speaks[index.speaker]]] = True
        company = sessions[index.session]
        return (None if company.all() else company,)

    return index.kept(("company", speakers), work_out)[0]


def _turns_of(parts: Parts, places: Ints, each: Ints) -> Ints:
    """Of passages row by row, so many in each: how many turns they are of."""
    turns = parts.turn[places]
    again = np.flatnonzero(turns[1:] == turns[:-1]) + 1
    ends = np.cumsum(each)
    rows = ends.searchsorted(again, side="right")
    inside = rows[again > (ends - each)[rows]]  # the first of a row is no other one's turn
    found: Ints = each - np.bincount(inside, minlength=len(each))
    return found


def _score_kinds(query: Query, index: ScopeIndex, policy: RecallPolicy, damped: float) -> Array:
    size = len(index.length)
    kinds = np.zeros(size)
    weights = {0: 1.0, 1: policy.kinds_before, -1: policy.kinds_after}
    for group in _portions(query.kinds, size):
        heard = _heard(index, policy.length, [kind.terms for kind in group], weights)
        places, got, holding = _where_heard(heard)
        weight = np.array([damped * idf(size, count) for count in holding.tolist()], np.float64).repeat(holding)
        np.add.at(kinds, places, weight * got / (got + 1))
    return kinds


def _portions(asked: Sequence[S], size: int) -> Iterator[Sequence[S]]:
    """Portions of `asked`, each small enough that its rows over all turns take little memory."""
    step = max(1, _CELLS_MAX // size)
    for at in range(0, len(asked), step):
        yield asked[at : at + step]


def _where_heard(heard: Array) -> tuple[Ints, Array, Ints]:
    """Row by row: the places that hear something, what they hear, and how many they are in each row."""
    count, size = heard.shape
    flat = heard.ravel()
    (cells,) = (flat != 0).nonzero()  # of flags, a tenth of the time that it takes of numbers
    starts = np.arange(0, count * size + 1, size)
    ends = cells.searchsorted(starts)
    holding = ends[1:] - ends[:-1]
    return cells - starts[:-1].repeat(holding), flat[cells], holding


def _heard_words(index: ScopeIndex, policy: RecallPolicy, terms: Sequence[int]) -> Array:
    """For each term, how much every passage hears of it: from itself, and from the turns around its own."""
    context = {1: policy.before_1, 2: policy.before_2, -1: policy.after_1, -2: policy.after_2}
    leaning = _leaning(index, policy)
    if index.parts is None:
        return _heard(index, policy.length, [(term,) for term in terms], {0: policy.own, **context}, leaning)
    parts, size, count = index.parts, len(index.length), len(terms)
    if not count:
        return np.zeros((0, len(parts.turn)))
    found = [index.part_postings(term) for term in terms]
    sizes = [len(numbers) for numbers, _ in found]
    numbers = np.concatenate([numbers for numbers, _ in found])
    values = np.concatenate([counts for _, counts in found]) * _brevity(index, policy.length)[numbers]
    rows = np.arange(count).repeat(sizes)
    turns = parts.turn[numbers]
    cells = rows * size + turns
    starts = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1]))) if len(cells) else np.empty(0, np.int64)
    if len(starts):  # what a turn passes on is what its best passage says
        best = np.maximum.reduceat(values, starts)
        around = spread(index, turns[starts], best, context, rows[starts] * size, count, leaning)
        heard: Array = around.reshape(count, size).take(parts.turn, axis=1)
    else:
        heard = np.zeros((count, len(parts.turn)))
    heard[rows, numbers] += policy.own * values  # a passage has a term in one place
    return heard


def _heard(
    index: ScopeIndex,
    share: float,
    rows: Sequence[Sequence[int]],
    weights: Mapping[int, float],
    leaning: Array | None = None,
) -> Array:
    """For each row of terms, how much every turn hears of them, from itself and its neighbours."""
    size = len(index.length)
    if not rows:
        return np.zeros((0, size))
    found = [[index.postings(term) for term in row] for row in rows]
    flat = [each for row in found for each in row]
    ordinals = np.concatenate([ordinals for ordinals, _ in flat])
    values = np.concatenate([counts for _, counts in flat]) * _turn_brevity(index, share)[ordinals]
    sizes = [sum([len(ordinals) for ordinals, _ in row]) for row in found]
    starts = np.arange(0, len(rows) * size, size).repeat(sizes)
    return spread(index, ordinals, values, weights, starts, len(rows), leaning).reshape(len(rows), size)


def _turn_brevity(index: ScopeIndex, share: float) -> Array:
    """What a word of each turn counts: the longer a turn, the less each of its words."""
    return index.kept(("turn brevity", share), lambda: _brief(index.length, share))


def _brevity(index: ScopeIndex, share: float) -> Array:
    """What a word of each passage counts."""
    if index.parts is None:
        return _turn_brevity(index, share)
    length = index.parts.length
    return index.kept(("brevity", share), lambda: _brief(length, share))


def _brief(length: Ints, share: float) -> Array:
    length = np.maximum(length, 1)
    mean = int(np.add.reduce(length)) / len(length)
    return np.asarray(1 / (1 - share + share * length / mean))


def _leaning(index: ScopeIndex, policy: RecallPolicy) -> Array | None:
    """How much each turn leans on those around it; None where all do in full, as among people.

    An assistant repeats what it answers, at length: its words say little of the turns beside it, and theirs of it. In a
    session where one speaks, a turn leans only as far as it is short.
    """

    def work_out() -> tuple[Array | None]:
        speaks = nameless_assistant(index)
        if not speaks.any():
            return (None,)
        in_chat = np.isin(index.session, index.session[speaks])
        short = policy.chat_context / (1 + (index.length / policy.chat_length) ** 2)
        return (np.where(in_chat, short, 1.0),)

    return index.kept(("leaning", policy.chat_context, policy.chat_length), work_out)[0]


def nameless_assistant(index: ScopeIndex) -> npt.NDArray[np.bool_]:
    """Which turns an assistant said that goes by no name of its own."""

    def work_out() -> npt.NDArray[np.bool_]:
        nameless = np.array([name.casefold().strip() in NAMELESS for name in index.speakers], bool)
        found: npt.NDArray[np.bool_] = nameless[index.speaker] & (index.role == _ASSISTANT)
        return found

    return index.kept("nameless assistant", work_out)


def spread(
    index: ScopeIndex,
    ordinals: Ints,
    values: Array,
    weights: Mapping[int, float],
    starts: Ints | None = None,
    count: int = 1,
    leaning: Array | None = None,
) -> Array:
    """Values and their neighbours', over all ordinals: `weights[d]` of a value goes to the turn d places later, so far
    as that turn is `leaning` on others.

    `starts` says where each value's row begins, of `count` rows that are spread side by side and answered end to end.
    """
    size = len(index.session)
    offsets, shares = _columns(tuple(weights.items()))
    if not len(offsets) or not len(ordinals):
        return np.zeros(size * count)
    there = ordinals + offsets
    received = values * shares
    received *= index.kept("fenced", lambda: _fenced(index.session))[there] == index.session[ordinals]
    if leaning is not None:
        others = offsets[:, 0] != _REACH_MAX
        received[others] *= leaning[np.clip(there[others] - _REACH_MAX, 0, size - 1)]
    if starts is not None:
        there += starts
    gathered = np.bincount(there.ravel(), received.ravel(), minlength=size * count + 2 * _REACH_MAX)
    return gathered[_REACH_MAX:-_REACH_MAX].astype(np.float64, copy=False)


@lru_cache(maxsize=64)
def _columns(weights: tuple[tuple[int, float], ...]) -> tuple[Ints, Array]:
    """How far a value goes, counted from the fence before the first turn; and how much of it."""
    given = [(offset + _REACH_MAX, weight) for offset, weight in weights if weight]
    return (
        np.array([offset for offset, _ in given], np.int64)[:, np.newaxis],
        np.array([weight for _, weight in given], np.float64)[:, np.newaxis],
    )


def _fenced(session: Ints) -> Ints:
    """The sessions of the turns between places that are no turn's: beyond the first and the last one is nobody."""
    fenced = np.full(len(session) + 2 * _REACH_MAX, -1, session.dtype)
    fenced[_REACH_MAX:-_REACH_MAX] = session
    return fenced


class _Days(NamedTuple):
    """The day on which each turn was said."""

    years: Ints
    months: Ints
    days: Ints


def _said_on(index: ScopeIndex, word: str) -> npt.NDArray[np.bool_] | None:
    """The turns whose date has the term: a month, a day of a month, a year. None where the term is no date."""
    if word.startswith("#m"):
        return np.equal(_days(index).months, int(word[2:]))
    if word.startswith("#d"):
        month, _, day = word[2:].partition("-")
        said = _days(index)
        return np.equal(said.months, int(month)) & np.equal(said.days, int(day))
    if len(word) == 4 and word.isascii() and word.isdecimal():
        return np.equal(_days(index).years, int(word))
    return None


def _days(index: ScopeIndex) -> _Days:
    """Worked out when a query names a date. Turns side by side were often said on one day: few are looked at."""

    def work_out() -> _Days:
        dates = index.ts // 86_400
        starts = np.flatnonzero(np.concatenate(([True], dates[1:] != dates[:-1])))
        days = dates[starts].astype("datetime64[D]")
        months = days.astype("datetime64[M]")
        numbers = months.astype(np.int64)
        lasting = np.diff(starts, append=len(dates))
        return _Days(
            np.repeat(numbers // 12 + 1970, lasting),
            np.repeat(numbers % 12 + 1, lasting),
            np.repeat((days - months).astype(np.int64) + 1, lasting),
        )

    return index.kept("days", work_out)


USER, _ASSISTANT = ROLES.index("user"), ROLES.index("assistant")
_QUESTION, _QUANTITY = term_hash(QUESTION), term_hash(QUANTITY)


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
    unit: float = 0.0
    """What the best match in words has, of what it could have if it said every word of the query: a share."""


def score(query: Query, index: ScopeIndex, policy: RecallPolicy, dense: Dense | None = None) -> Scores:
    """The features of every turn and their sum."""
    index.prepare(terms_of(query))
    lexical, kinds, most = score_words(query, index, policy)
    words = lexical if kinds is None else lexical + kinds
    best = float(words.max(initial=0.0))
    parts: dict[str, Array] = {}
    if best > 0:
        parts["words"] = lexical / best
        if kinds is not None and kinds.any():
            parts["kinds"] = kinds / best
    if query.speaker is not None:
        parts["speaker"] = np.multiply(index.speaker == query.speaker, policy.speaker)
    company = _company(index, query.speakers)
    if company is not None and policy.company:
        parts["company"] = np.multiply(company, policy.company)
    wanted = _ASSISTANT if query.addressed else USER if query.asker else None
    if wanted is not None:
        parts["role"] = np.multiply(index.role == wanted, policy.role)
    within = None if query.window is None else _said_within(index.ts, query.window)
    if within is not None:
        parts["time"] = np.multiply(within, policy.time)
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
    eligible = None if near else words > 0 if within is None else (words > 0) | within
    return Scores(total, parts, eligible, best / most if most else 0.0)


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
