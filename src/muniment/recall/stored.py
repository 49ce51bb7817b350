"""A `ScopeIndex` over segments: the same arrays as an index in memory, put together from blocks.

Ordinals follow (session by its first time stamp, then its id; place in the session), whatever the order of writing: an
imported store ranks like the one it came from. The index holds no names; who speaks is looked up in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from muniment.recall.index import Ints
from muniment.recall.segments import Segment, join_names

__all__ = ["StoredIndex"]

_EMPTY: tuple[Ints, Ints] = (np.empty(0, np.int32), np.empty(0, np.int32))
Names = Callable[[Sequence[str]], Sequence[str]]
"""From ids of turns to the names of those who spoke them."""


class StoredIndex:
    """The turns of one user. Built once for a state of the segments, then only read."""

    def __init__(self, segments: Sequence[Segment], names: Names) -> None:
        self._segments = segments
        self._starts = np.cumsum([0, *(len(segment) for segment in segments)])
        sessions, session = join_names([(segment.sessions, segment.session) for segment in segments])
        _, speaker = join_names([(segment.speakers, segment.speaker) for segment in segments])
        seq, ts = _joined(segments, "seq"), _joined(segments, "ts").astype(np.int64)
        order = _order(sessions, session, seq, ts)
        self._place = np.empty(len(order), np.int32)
        self._place[order] = np.arange(len(order), dtype=np.int32)
        self._order = order
        self.session: Ints = session[order].astype(np.int32)
        self.speaker: Ints = speaker[order].astype(np.int32)
        self.role: Ints = _joined(segments, "role")[order].astype(np.int8)
        self.ts: Ints = ts[order]
        self.length: Ints = _joined(segments, "length")[order].astype(np.int32)
        _, first = np.unique(speaker, return_index=True)
        self.speakers: Sequence[str] = tuple(names([self._id(number) for number in first.tolist()]))

    def __len__(self) -> int:
        return len(self._order)

    def _id(self, number: int) -> str:
        block = int(np.searchsorted(self._starts, number, side="right")) - 1
        return self._segments[block].ids[number - int(self._starts[block])]

    def id(self, ordinal: int) -> str:
        """The event that the turn is."""
        return self._id(int(self._order[ordinal]))

    def ids(self) -> list[str]:
        """All events, in ordinal order."""
        flat = [id_ for segment in self._segments for id_ in segment.ids]
        return [flat[number] for number in self._order]

    def postings(self, term: int) -> tuple[Ints, Ints]:
        docs: list[Ints] = []
        counts: list[Ints] = []
        for segment, start in zip(self._segments, self._starts[:-1].tolist(), strict=True):
            terms = segment.terms
            at = int(terms.hashes.searchsorted(np.uint64(term)))
            if at < len(terms.hashes) and int(terms.hashes[at]) == term:
                begin, end = int(terms.offsets[at]), int(terms.offsets[at + 1])
                docs.append(terms.docs[begin:end].astype(np.int64) + start)
                counts.append(terms.counts[begin:end])
        if not docs:
            return _EMPTY
        ordinals = self._place[np.concatenate(docs)]
        sort = np.argsort(ordinals)
        return ordinals[sort], np.concatenate(counts)[sort].astype(np.int32)

    def terms(self, ordinal: int) -> frozenset[int]:
        number = int(self._order[ordinal])
        block = int(np.searchsorted(self._starts, number, side="right")) - 1
        return self._segments[block].terms_of(number - int(self._starts[block]))


def _joined(segments: Sequence[Segment], name: str) -> Ints:
    return np.concatenate([getattr(segment, name) for segment in segments]) if segments else np.empty(0, np.int64)


def _order(sessions: Sequence[str], session: Ints, seq: Ints, ts: Ints) -> Ints:
    """Numbers of turns in ordinal order."""
    if not len(session):
        return np.empty(0, np.int64)
    starts = np.full(len(sessions), np.iinfo(np.int64).max)
    np.minimum.at(starts, session, ts)
    by_start = sorted(range(len(sessions)), key=lambda number: (int(starts[number]), sessions[number]))
    rank = np.empty(len(sessions), np.int64)
    rank[by_start] = np.arange(len(sessions))
    return np.lexsort((seq, rank[session]))
