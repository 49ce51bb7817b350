"""Scores of all turns of a scope for one query: BM25 over a turn in its context, speakers, nearness in meaning."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import analyze, term_hash
from muniment.core.text.times.when import Window
from muniment.memory._index import ONLY_ASKS, QUESTION, ROLES, Floats, Ints, ScopeIndex
from muniment.memory.query import NAMELESS, Query, Slot

__all__ = [
    "USER",
    "Dense",
    "Matches",
    "Scores",
    "called",
    "idf",
    "match_turns",
    "nameless_assistant",
    "only_asking",
    "score",
    "score_words",
    "share_of",
    "slot_weights",
    "spread",
    "weigh",
    "weigh_dense",
]

_CELLS_MAX = 1 << 20
"""Maximum terms times turns scored at once."""
_REACH_MAX = 2
"""A turn's words extend this many places to either side."""

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
S = TypeVar("S")


def idf(total: int, holding: int) -> float:
    """The weight of a term that `holding` of `total` turns have; never negative."""
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def score_words(query: Query, index: ScopeIndex, policy: RecallPolicy) -> tuple[Array, Array | None, float]:
    """For every turn: its score for the query's terms, the score for stand-ins if there are any, and the maximum
    possible score of a turn with all terms repeated.
    """
    size = len(index.length)
    if not size:
        return np.zeros(0), None, 0.0
    lexical, covered, whole = np.zeros(size), np.zeros(size), 0.0
    has_kinds = bool(query.kinds and policy.kinds)
    context = {1: policy.before_1, 2: policy.before_2, -1: policy.after_1, -2: policy.after_2}
    for slots in _portions(query.slots, size):
        dated = [_said_on(index, slot.word) for slot in slots]
        rows = [row for row, slot in enumerate(slots) if dated[row] is not None or len(index.postings(slot.term)[0])]
        terms = [(slots[row].term,) for row in rows]
        heard = _heard(index, policy.length, terms, {0: policy.own, **context}, _leaning(index, policy))
        for place, row in enumerate(rows):
            said = dated[row]
            if said is not None:
                heard[place] += policy.session_date * said
        places, got, holding = _where_heard(heard)
        held = dict(zip(rows, holding.tolist(), strict=True))
        worth = [
            min(slot.repeats, policy.term_repeats_max) * _weight(query, index, policy, slot, held.get(row, 0))
            for row, slot in enumerate(slots)
        ]
        for one in worth:
            whole += one
        weight: Array = np.array([worth[row] for row in rows], np.float64).repeat(holding)
        np.add.at(lexical, places, weight * (policy.saturation + 1) * got / (got + policy.saturation))
        if has_kinds:
            np.add.at(covered, places, weight)
    damped = policy.kinds * (1 - policy.kinds_damping * float(covered.max()) / whole) if has_kinds and whole else 0.0
    most = whole * (policy.saturation + 1)
    return lexical, _score_kinds(query, index, policy, damped) if damped else None, most


def _weight(query: Query, index: ScopeIndex, policy: RecallPolicy, slot: Slot, holding: int) -> float:
    """The weight of a slot that `holding` turns have.

    A speaker's name says little: others address them by it ("Hi Kate!"), and the speaker is known anyway. It is
    weighted among the turns of their conversations: elsewhere nobody uses it, and in a large scope it would weigh like
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
    """The terms of these speakers' names."""

    def work_out() -> frozenset[int]:
        return frozenset(term_hash(term) for number in speakers for term in analyze(index.speakers[number]))

    return index.kept(("called", speakers), work_out)


def _company(index: ScopeIndex, speakers: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    """The turns of sessions in which one of these speaks; None if that is all of them or there is no such speaker."""
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
    """Split `asked` into portions small enough that their rows over all turns take little memory."""
    step = max(1, _CELLS_MAX // size)
    for at in range(0, len(asked), step):
        yield asked[at : at + step]


def _where_heard(heard: Array) -> tuple[Ints, Array, Ints]:
    """For each row: the non-zero places, their values, and their number."""
    count, size = heard.shape
    flat = heard.ravel()
    (cells,) = (flat != 0).nonzero()  # ten times faster on flags than on numbers
    starts = np.arange(0, count * size + 1, size)
    ends = cells.searchsorted(starts)
    holding = ends[1:] - ends[:-1]
    return cells - starts[:-1].repeat(holding), flat[cells], holding


def _heard(
    index: ScopeIndex,
    share: float,
    rows: Sequence[Sequence[int]],
    weights: Mapping[int, float],
    leaning: Array | None = None,
) -> Array:
    """For each row of terms, every turn's score from itself and its neighbours."""
    size = len(index.length)
    if not rows:
        return np.zeros((0, size))
    found = [[index.postings(term) for term in row] for row in rows]
    flat = [each for row in found for each in row]
    ordinals = np.concatenate([ordinals for ordinals, _ in flat])
    values = np.concatenate([counts for _, counts in flat]) * _brevity(index, share)[ordinals]
    sizes = [sum([len(ordinals) for ordinals, _ in row]) for row in found]
    starts = np.arange(0, len(rows) * size, size).repeat(sizes)
    return spread(index, ordinals, values, weights, starts, len(rows), leaning).reshape(len(rows), size)


def _brevity(index: ScopeIndex, share: float) -> Array:
    """The length normalisation of each turn: the longer a turn, the less each of its words counts."""

    def work_out() -> Array:
        length = np.maximum(index.length, 1)
        mean = int(np.add.reduce(length)) / len(length)
        return np.asarray(1 / (1 - share + share * length / mean))

    return index.kept(("brevity", share), work_out)


def _leaning(index: ScopeIndex, policy: RecallPolicy) -> Array | None:
    """The degree to which each turn depends on its neighbours; None if all do fully, as among people.

    An assistant repeats at length what it answers: its words say little about neighbouring turns, and theirs little
    about it. In a session with one speaker, a turn depends on its neighbours only as far as it is short.
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
    """Mask of the turns by an assistant without a name."""

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
    """Spread values to neighbours, over all ordinals: `weights[d]` of a value goes to the turn d places later, scaled
    by that turn's `leaning`.

    `starts` gives the start of each value's row, for `count` rows that are spread together and returned end to end.
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
    """Offsets from the padding before the first turn, and their weights."""
    given = [(offset + _REACH_MAX, weight) for offset, weight in weights if weight]
    return (
        np.array([offset for offset, _ in given], np.int64)[:, np.newaxis],
        np.array([weight for _, weight in given], np.float64)[:, np.newaxis],
    )


def _fenced(session: Ints) -> Ints:
    """The session numbers, padded on both sides with turns of no session."""
    fenced = np.full(len(session) + 2 * _REACH_MAX, -1, session.dtype)
    fenced[_REACH_MAX:-_REACH_MAX] = session
    return fenced


class _Days(NamedTuple):
    """The day of each turn."""

    years: Ints
    months: Ints
    days: Ints


def _said_on(index: ScopeIndex, word: str) -> npt.NDArray[np.bool_] | None:
    """The turns whose date has the term: a month, a day of a month, a year. None if the term is no date."""
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
    """Computed when a query names a date. Adjacent turns often share a day, so few are examined."""

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
_QUESTION = term_hash(QUESTION)


class Dense(NamedTuple):
    """The nearness of each turn, and of its window, to the query; arrays over the ordinals."""

    turn: Floats | None = None
    window: Floats | None = None
    known: Flags | None = None
    """Mask of turns with a vector; None for all. The others count as the mean."""


class Scores(NamedTuple):
    total: Array
    parts: Mapping[str, Array]
    """The summands of the total, by feature."""
    eligible: npt.NDArray[np.bool_] | None
    """Turns with a reason to be shown at all; None for all."""
    unit: float = 0.0
    """The best word match, as a share of the score of a turn with every word of the query."""


def score(query: Query, index: ScopeIndex, policy: RecallPolicy, dense: Dense | None = None) -> Scores:
    """The features of every turn and their sum."""
    index.prepare([*query.terms, _QUESTION])
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
    if len(index.postings(_QUESTION)[0]):
        parts["question"] = _question(index, policy)
    near = _nearness(policy, dense) if dense is not None and len(index.ts) else {}
    parts |= near
    total = np.zeros(len(index.ts))
    for part in parts.values():
        total += part
    eligible = None if near else words > 0 if within is None else (words > 0) | within
    return Scores(total, parts, eligible, best / most if most else 0.0)


def _question(index: ScopeIndex, policy: RecallPolicy) -> Array:
    """The penalty of turns that ask."""
    asking, counts = index.postings(_QUESTION)

    def work_out() -> Array:
        part = np.zeros(len(index.ts))
        part[asking] = np.where(counts >= ONLY_ASKS, -policy.question_only, -policy.question)
        return part

    return index.kept(("question", policy.question_only, policy.question), work_out)


def _nearness(policy: RecallPolicy, dense: Dense) -> dict[str, Array]:
    """The contribution of nearness in meaning, if known and weighted."""
    features = (
        ("dense_turn", policy.dense_turn, dense.turn),
        ("dense_window", policy.dense_window, dense.window),
    )
    return {
        name: _standard(near, weight, dense.known) for name, weight, near in features if near is not None and weight
    }


# -- matches of the best turns ------------------------------------------------------------------------------


class Matches(NamedTuple):
    """The query words in some turns themselves."""

    turns: Ints
    """Their ordinals."""
    words: Flags
    """By slot and turn: True if the word occurs."""
    meant: Flags
    """By slot and turn: True if only a stand-in occurs."""
    weights: Array
    """The weight of each slot; 0 for dates and names of speakers."""
    counts: list[int]
    """The number of turns of the scope with each slot."""

    def take(self, positions: Ints) -> Matches:
        """Select positions, in that order."""
        return self._replace(
            turns=self.turns[positions], words=self.words[:, positions], meant=self.meant[:, positions]
        )


def match_turns(query: Query, index: ScopeIndex, turns: Ints) -> Matches:
    """Match these turns against a query."""
    slots = len(query.slots)
    rows = [[index.postings(slot.term)[0]] for slot in query.slots]
    rows += [[index.postings(term)[0] for term in kind.terms] for kind in query.kinds]
    held = np.zeros((len(rows), len(turns)), bool)
    sizes = [sum([len(each) for each in row]) for row in rows]
    if sum(sizes):
        flat = np.concatenate([each for row in rows for each in row])
        at = np.full(len(index.ts), -1)
        at[turns] = np.arange(len(turns))
        positions = at[flat]
        (inside,) = (positions >= 0).nonzero()
        held[np.arange(len(rows)).repeat(sizes)[inside], positions[inside]] = True
    words, meant = held[:slots], np.zeros((slots, len(turns)), bool)
    for row, kind in enumerate(query.kinds, slots):
        meant[list(kind.slots)] |= held[row]
    meant &= ~words
    counts = [len(row[0]) for row in rows[:slots]]
    return Matches(turns, words, meant, slot_weights(query, index, counts), counts)


def slot_weights(query: Query, index: ScopeIndex, counts: Sequence[int]) -> Array:
    """The weight of each slot of a query, given the number of turns with it.

    Speakers need not use their own name, and dates match by time stamp: neither has a weight.
    """
    names = called(index, query.speakers) if query.speakers else frozenset()
    total = len(index.ts)
    return np.array(
        [
            0.0 if _is_date(slot.word) or slot.term in names else idf(total, count)
            for slot, count in zip(query.slots, counts, strict=True)
        ],
        np.float64,
    )


def _is_date(word: str) -> bool:
    return word.startswith(("#m", "#d")) or (len(word) == 4 and word.isascii() and word.isdecimal())


def weigh(weights: Array, held: Flags) -> Array:
    """The weight of the slots that each turn holds."""
    found: Array = np.add.reduce(weights[:, np.newaxis] * held, axis=0)
    return found


def share_of(weights: Array, held: Flags) -> Array:
    """The share of the whole weight that each turn holds."""
    whole = float(np.add.reduce(weights))
    return weigh(weights, held) / whole if whole else np.zeros(held.shape[1])


def only_asking(index: ScopeIndex) -> Flags:
    """Mask of the turns that are pure questions."""

    def work_out() -> Flags:
        asking, counts = index.postings(_QUESTION)
        found = np.zeros(len(index.ts), bool)
        found[asking[counts >= ONLY_ASKS]] = True
        return found

    return index.kept("only asks", work_out)


def _said_within(ts: Ints, window: Window) -> Flags:
    start, end = (int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) for day in window[:2])
    found: Flags = (ts >= start) & (ts < end + 86_400)
    return found


# -- vectors ------------------------------------------------------------------------------------------


def _standard(near: Floats, weight: float, known: Flags | None) -> Array:
    """Weighted standard deviations from the mean of the known values."""
    apart = near.astype(np.float64)
    counted = apart if known is None else apart[known]
    apart -= np.add.reduce(counted) / len(counted)
    counted = apart if known is None else apart[known]
    deviation = math.sqrt(float(np.add.reduce(counted * counted) / len(counted)))
    if not deviation > _EVEN:
        return np.zeros(len(apart))
    apart /= deviation
    apart *= weight
    return apart


_EVEN = 1e-9
"""A deviation up to this is rounding error."""
_LATIN_END = "\u024f"
"""The last letter of the Latin blocks."""


def weigh_dense(policy: RecallPolicy, identity: str, query: str) -> RecallPolicy:
    """The policy for a query: vectors have no weight if the embedder cannot read its script."""
    if identity.partition("@")[0] not in policy.dense_english or not _is_foreign(query):
        return policy
    return policy.model_copy(update={"dense_turn": 0.0, "dense_window": 0.0})


def _is_foreign(query: str) -> bool:
    """True if most of its letters are not Latin."""
    if query.isascii():
        return False
    letters = [char for char in query if char.isalpha()]
    return 2 * sum(char > _LATIN_END for char in letters) > len(letters)
