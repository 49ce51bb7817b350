"""A `ScopeIndex` over segments: the same arrays as an index in memory, put together from blocks.

Ordinals follow (session by its first time stamp, then its id; place in the session), whatever the order of writing: an
imported store ranks like the one it came from. The index holds no names; who speaks is looked up in the ledger.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from muniment.recall.index import Ints
from muniment.recall.segments import Segment, join_names

__all__ = ["StoredIndex"]

_EMPTY: tuple[Ints, Ints] = (np.empty(0, np.int32), np.empty(0, np.int32))
POSTINGS_KEPT = 1 << 20
"""Postings that were looked up are kept until there are so many of them: a search asks for a term several times."""
TERMS_KEPT = 4096
"""The same for terms of turns."""
Names = Callable[[Sequence[str]], Sequence[str]]
"""From ids of turns to the names of those who spoke them."""


class StoredIndex:
    """The turns of one user. Built once for a state of the segments, then only read, by any thread."""

    def __init__(self, segments: Sequence[Segment], names: Names) -> None:
        self._segments = segments
        self._starts = [0]
        for segment in segments:
            self._starts.append(self._starts[-1] + len(segment))
        sessions, session = join_names([(segment.sessions, segment.session) for segment in segments])
        _, speaker = join_names([(segment.speakers, segment.speaker) for segment in segments])
        seq, ts = _joined(segments, "seq"), _joined(segments, "ts").astype(np.int64)
        rank = _ranks(sessions, session, ts)[session] if len(session) else np.empty(0, np.int64)
        order = _order(rank, seq)
        self._order = order
        self._place: Ints | None = None
        """Ordinals by number in the order of writing; None where the two are the same."""
        if order is not None:
            rank, speaker, ts = rank[order], speaker[order], ts[order]
            self._place = np.empty(len(order), np.int32)
            self._place[order] = np.arange(len(order), dtype=np.int32)
        self.session: Ints = rank.astype(np.int32)
        self.ts: Ints = ts
        self.role: Ints = self._ordered("role").astype(np.int8)
        self.length: Ints = self._ordered("length").astype(np.int32)
        numbers, first = np.unique(speaker, return_index=True)
        by_voice = np.argsort(first)
        renumbered = np.empty(int(numbers[-1]) + 1 if len(numbers) else 0, np.int32)
        renumbered[numbers[by_voice]] = np.arange(len(numbers), dtype=np.int32)
        self.speaker: Ints = renumbered[speaker]
        self.speakers: Sequence[str] = tuple(names([self.id(ordinal) for ordinal in first[by_voice].tolist()]))
        self._directory = _Directory(segments)
        self._postings: dict[int, tuple[Ints, Ints]] = {}
        self._postings_kept = 0
        self._terms: dict[int, frozenset[int]] = {}
        self._aligned: tuple[Hashable, Ints | None] | None = None

    def __len__(self) -> int:
        return self._starts[-1]

    def _ordered(self, name: str) -> Ints:
        joined = _joined(self._segments, name)
        return joined if self._order is None else joined[self._order]

    def _find(self, ordinal: int) -> tuple[Segment, int]:
        """The segment that holds a turn, and its number there."""
        number = ordinal if self._order is None else int(self._order[ordinal])
        block = bisect_right(self._starts, number) - 1
        return self._segments[block], number - self._starts[block]

    def id(self, ordinal: int) -> str:
        """The event that the turn is."""
        segment, number = self._find(ordinal)
        return segment.ids[number]

    def ids(self) -> list[str]:
        """All events, in ordinal order."""
        flat = [id_ for segment in self._segments for id_ in segment.ids]
        return flat if self._order is None else [flat[number] for number in self._order.tolist()]

    def aligned(self, state: Hashable, ids: Callable[[], Sequence[str]]) -> Ints | None:
        """For each turn its place among `ids`, or None where one is missing: rows kept elsewhere, in ordinal order.

        `state` names what `ids` gives; it is asked for again only when another state is.
        """
        if self._aligned is None or self._aligned[0] != state:
            self._aligned = state, _places(self.ids(), ids())
        return self._aligned[1]

    def postings(self, term: int) -> tuple[Ints, Ints]:
        found = self._postings.get(term)
        if found is None:
            found = self._looked_up(term)
            if self._postings_kept > POSTINGS_KEPT:
                self._postings, self._postings_kept = {}, 0
            self._postings[term] = found
            self._postings_kept += len(found[0]) + 16
        return found

    def _looked_up(self, term: int) -> tuple[Ints, Ints]:
        docs: list[Ints] = []
        counts: list[Ints] = []
        for block, begin, end in self._directory.places(term):
            terms = self._segments[block].terms
            docs.append(terms.docs[begin:end] + np.uint32(self._starts[block]))
            counts.append(terms.counts[begin:end])
        if not docs:
            return _EMPTY
        numbers = docs[0] if len(docs) == 1 else np.concatenate(docs)
        counted = (counts[0] if len(counts) == 1 else np.concatenate(counts)).astype(np.int32)
        if self._place is None:
            return numbers.astype(np.int32), counted
        ordinals = self._place[numbers]
        sort = np.argsort(ordinals)
        return ordinals[sort], counted[sort]

    def terms(self, ordinal: int) -> frozenset[int]:
        found = self._terms.get(ordinal)
        if found is None:
            segment, number = self._find(ordinal)
            found = segment.terms_of(number)
            if len(self._terms) >= TERMS_KEPT:
                self._terms = {}
            self._terms[ordinal] = found
        return found


class _Directory:
    """Where the postings of each term lie, over all segments: one look instead of one for each of them."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        tables = [segment.terms for segment in segments]
        hashes = np.concatenate([table.hashes for table in tables]) if tables else np.empty(0, np.uint64)
        order = np.argsort(hashes, kind="stable")  # runs that are sorted already: a merge
        self._hashes = hashes[order]
        sizes = [len(table.hashes) for table in tables]
        self._blocks = np.repeat(np.arange(len(tables), dtype=np.int32), sizes)[order]
        self._begins = _flat([table.offsets[:-1] for table in tables])[order]
        self._ends = _flat([table.offsets[1:] for table in tables])[order]

    def places(self, term: int) -> list[tuple[int, int, int]]:
        """(segment, from, to) in the order of the segments."""
        hashes, wanted = self._hashes, np.uint64(term)
        at = int(hashes.searchsorted(wanted))
        end = at
        while end < len(hashes) and hashes[end] == wanted:
            end += 1
        if at == end:
            return []
        return list(
            zip(self._blocks[at:end].tolist(), self._begins[at:end].tolist(), self._ends[at:end].tolist(), strict=True)
        )


def _places(wanted: Sequence[str], among: Sequence[str]) -> Ints | None:
    if wanted == among:
        return np.arange(len(wanted))
    places = {id_: place for place, id_ in enumerate(among)}
    found = [places.get(id_, -1) for id_ in wanted]
    return None if -1 in found else np.array(found, np.int64)


def _flat(arrays: Sequence[Ints]) -> Ints:
    return np.concatenate(arrays) if arrays else np.empty(0, np.uint32)


def _joined(segments: Sequence[Segment], name: str) -> Ints:
    return np.concatenate([getattr(segment, name) for segment in segments]) if segments else np.empty(0, np.int64)


def _ranks(sessions: Sequence[str], session: Ints, ts: Ints) -> Ints:
    """The place of each session among all: by its first time stamp, then its id."""
    starts = np.full(len(sessions), np.iinfo(np.int64).max)
    np.minimum.at(starts, session, ts)
    by_start = sorted(zip(starts.tolist(), sessions, range(len(sessions)), strict=True))
    ranks = np.empty(len(sessions), np.int64)
    ranks[[number for _, _, number in by_start]] = np.arange(len(sessions))
    return ranks


def _order(rank: Ints, seq: Ints) -> Ints | None:
    """Numbers of turns in ordinal order; None where they were written in it."""
    if len(rank) < 2:
        return None
    behind = (rank[1:] > rank[:-1]) | ((rank[1:] == rank[:-1]) & (seq[1:] > seq[:-1]))
    return None if behind.all() else np.lexsort((seq, rank))
