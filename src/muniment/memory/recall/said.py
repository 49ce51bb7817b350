"""What of a query the turns of a pool say, as bits: the slots, what may stand for them, the marks, the values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from muniment.core.text.analyzer import term_hash
from muniment.core.text.stated.attributes import CHANGE, QUANTITY
from muniment.memory.recall.index import ONLY_ASKS, QUESTION, Ints, Parts, ScopeIndex
from muniment.memory.recall.newer_values import Passage, marks_wanted
from muniment.memory.recall.query import Query
from muniment.memory.recall.score import idf

__all__ = ["Said", "only_asking"]

_CHANGE, _QUANTITY, _QUESTION = term_hash(CHANGE), term_hash(QUANTITY), term_hash(QUESTION)


class Said:
    """A number for each turn of a pool whose bits say what it holds: the slots of the query, its kinds, its marks.

    What a turn of several passages says of the query is what the passage says that says most of it: words that stand
    all over a long text say nothing together.
    """

    def __init__(self, query: Query, index: ScopeIndex, pool: Ints) -> None:
        self._query = query
        slots, kinds = len(query.slots), len(query.kinds)
        words = [[slot.term] for slot in query.slots] + [list(kind.terms) for kind in query.kinds]
        values = [[mark] for mark in marks_wanted(query)]
        self.counts = [len(index.postings(slot.term)[0]) for slot in query.slots]
        """How many turns of the scope say each slot."""
        marked = [
            [index.kept("only asks", lambda: only_asking(index))],
            [index.postings(_QUANTITY)[0]] if query.quantity else [],
            [index.postings(_CHANGE)[0]] if query.state else [],
        ]
        self._slots = (1 << slots) - 1
        self._only_asks, self._quantity, self._change = (1 << (slots + kinds + mark) for mark in range(3))
        self._wide: dict[int, int] = {}
        self._parts: dict[int, list[int]] | None = None
        """Of a scope with long turns: for each turn of the pool, what each of its passages says and states."""
        if index.parts is None:
            said = [[index.postings(term)[0] for term in row] for row in (*words, *values)]
            found = [*said[: len(words)], *marked, *said[len(words) :]]
            self._values = slots + kinds + len(marked)
            self._bits = _bits(found, len(index.ts), pool)
        else:
            self._bits = _bits([[]] * len(words) + marked, len(index.ts), pool)
            said = [[index.part_postings(term)[0] for term in row] for row in (*words, *values)]
            self._values = slots + kinds
            self._parts = self._read_passages(index.parts, pool, said)

    def _read_passages(self, parts: Parts, pool: Ints, said: list[list[Ints]]) -> dict[int, list[int]]:
        """What each passage says and states; what the best of a turn says becomes what the turn says."""
        numbers, starts = parts.of(pool)
        bits = list(_bits(said, len(parts.turn), numbers).values())
        weights = [idf(len(parts.first), count) for count in self.counts]
        known: dict[int, float] = {}
        words = (1 << self._values) - 1
        read: dict[int, list[int]] = {}
        edges = pairwise([*starts.tolist(), len(bits)])
        for ordinal, (start, end) in zip(pool.tolist(), edges, strict=True):
            read[ordinal] = own = bits[start:end]
            best = own[0] & words
            if len(own) > 1:
                most = -1.0
                for each in own:
                    held = each & words
                    weight = known.get(held)
                    if weight is None:
                        wide = self._widened(held)
                        weight = known[held] = sum([one for place, one in enumerate(weights) if wide >> place & 1], 0.0)
                    if weight > most:
                        most, best = weight, held
            self._bits[ordinal] |= best
        return read

    def held(self, ordinal: int) -> int:
        """The slots and the kinds that a turn of the pool says."""
        return self._bits[ordinal] & (self._only_asks - 1)

    def slots(self, ordinals: Iterable[int], *, kinds: bool) -> list[int]:
        """The slots that turns of the pool say; with `kinds`, what may stand for a slot counts for it."""
        if not kinds or not self._query.kinds:
            return [self._bits[ordinal] & self._slots for ordinal in ordinals]
        return [self._widened(self.held(ordinal)) for ordinal in ordinals]

    def may_answer(self, ordinals: Iterable[int]) -> list[bool]:
        """Nothing but a question answers none; where a number is asked for, only a turn that has one does."""
        unfit, needed = self._only_asks, self._quantity if self._query.quantity else 0
        bits = [self._bits[ordinal] for ordinal in ordinals]
        return [not each & unfit and each & needed == needed for each in bits]

    def tells_of_change(self, ordinal: int) -> bool:
        return bool(self._bits[ordinal] & self._change)

    def passages(self, ordinal: int) -> Sequence[Passage]:
        """What the passages of a turn of the pool say of the query, and which values they state."""
        parts = (self._bits[ordinal],) if self._parts is None else self._parts[ordinal]
        return [Passage(bits & self._slots, bits >> self._values) for bits in parts]

    def states(self, ordinal: int, values: int) -> bool:
        """Does some passage of a turn of the pool state one of these values?"""
        parts = (self._bits[ordinal],) if self._parts is None else self._parts[ordinal]
        return any(bits >> self._values & values for bits in parts)

    def _widened(self, held: int) -> int:
        wide = self._wide.get(held)
        if wide is None:
            wide = held & self._slots
            for row, kind in enumerate(self._query.kinds, len(self._query.slots)):
                if held >> row & 1:
                    for slot in kind.slots:
                        wide |= 1 << slot
            self._wide[held] = wide
        return wide


def only_asking(index: ScopeIndex) -> Ints:
    """The turns that are nothing but a question."""
    asking, counts = index.postings(_QUESTION)
    return asking[counts >= ONLY_ASKS]


_NONE: Ints = np.empty(0, np.int32)


def _bits(found: list[list[Ints]], size: int, pool: Ints) -> dict[int, int]:
    """For each turn or passage of the pool, of `size` in all, the rows in which its number stands."""
    bits: dict[int, int] = dict.fromkeys(pool.tolist(), 0)
    flat = np.concatenate([_NONE, *[each for row in found for each in row]])
    is_best = np.zeros(size, bool)
    is_best[pool] = True
    (inside,) = is_best[flat].nonzero()
    ends = np.array(list(accumulate([sum([len(each) for each in row]) for row in found])))
    rows = ends.searchsorted(inside, side="right")
    for number, row in zip(flat[inside].tolist(), rows.tolist(), strict=True):
        bits[number] |= 1 << row
    return bits
