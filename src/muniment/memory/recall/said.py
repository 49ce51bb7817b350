"""What of a query each of the best turns says itself: looked up once, for all that ask about it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import numpy as np

from muniment.core.text.analyzer import term_hash
from muniment.core.text.attributes import CHANGE, QUANTITY
from muniment.memory.recall.index import ONLY_ASKS, QUESTION, Ints, ScopeIndex
from muniment.memory.recall.query import Query

__all__ = ["MARKS", "Said", "terms_of"]

_CHANGE, _QUANTITY, _QUESTION = term_hash(CHANGE), term_hash(QUANTITY), term_hash(QUESTION)
MARKS = frozenset((_CHANGE, _QUANTITY, _QUESTION))
"""What a turn is marked with and does not say."""


def terms_of(query: Query) -> list[int]:
    """All that is looked up for a query, each once."""
    terms = [slot.term for slot in query.slots]
    for kind in query.kinds:
        terms += kind.terms
    return list(dict.fromkeys([*terms, *MARKS]))


class Said:
    """A number for each turn of a pool whose bits say what it holds: the slots of the query, its kinds, its marks."""

    def __init__(self, query: Query, index: ScopeIndex, pool: Ints) -> None:
        self._query = query
        slots, kinds = len(query.slots), len(query.kinds)
        found = [[index.postings(slot.term)[0]] for slot in query.slots]
        self.counts = [len(row[0]) for row in found]
        """How many turns of the scope say each slot."""
        found += [[index.postings(term)[0] for term in kind.terms] for kind in query.kinds]
        found.append([index.kept("only asks", lambda: _only_asking(index))])
        found.append([index.postings(_QUANTITY)[0]] if query.quantity else [])
        found.append([index.postings(_CHANGE)[0]] if query.state else [])
        self._slots = (1 << slots) - 1
        self._only_asks, self._quantity, self._change = (1 << (slots + kinds + mark) for mark in range(3))
        self._bits = _bits(found, index, pool)
        self._wide: dict[int, int] = {}

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


def _only_asking(index: ScopeIndex) -> Ints:
    """The turns that are nothing but a question."""
    asking, counts = index.postings(_QUESTION)
    return asking[counts >= ONLY_ASKS]


def _bits(found: list[list[Ints]], index: ScopeIndex, pool: Ints) -> dict[int, int]:
    """For each turn of the pool, the rows of ordinals in which it stands."""
    bits: dict[int, int] = dict.fromkeys(pool.tolist(), 0)
    flat = np.concatenate([each for row in found for each in row])
    is_best = np.zeros(len(index.ts), bool)
    is_best[pool] = True
    (inside,) = is_best[flat].nonzero()
    ends = np.array(list(accumulate([sum([len(each) for each in row]) for row in found])))
    rows = ends.searchsorted(inside, side="right")
    for ordinal, row in zip(flat[inside].tolist(), rows.tolist(), strict=True):
        bits[ordinal] |= 1 << row
    return bits
