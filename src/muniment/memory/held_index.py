"""The index of a user in memory: put together once, and extended by what was written since."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from muniment.core.ports.engine import Reader
from muniment.core.text.analyzer import ANALYZER_VERSION
from muniment.memory.indexing import SegmentCache, segments_of
from muniment.memory.recall.index import StoredIndex
from muniment.memory.recall.segments import Segment, drop_turns, fingerprint
from muniment.memory.turn_reading import entries_by_id
from muniment.store.blocks import Listed, list_blocks, load_blocks
from muniment.store.context import Context
from muniment.store.turns import speaker_of

__all__ = ["IndexCache", "load_index"]

INDEXES_MAX, INDEX_TURNS_MAX = 64, 1_000_000
"""Indexes that are kept, and the turns in all of them: one alone may have more."""


def load_index(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, without: frozenset[str] = frozenset()
) -> StoredIndex:
    """The index of a user as of this transaction. Only what was written since the last call is read.

    `without` names sessions that are left out, as if they had never been in it.
    """
    listed = list_blocks(reader, segments_of(user_id))
    cache = ctx.cache(IndexCache)
    held = cache.get((tenant_id, user_id))
    if held is None or held.parts.keys() != {entry.digest for entry in listed}:
        held = _bring_up(ctx, reader, tenant_id, user_id, listed, held)
        cache.put((tenant_id, user_id), held)
    return held.index.without(without) if without else held.index


class _Part(NamedTuple):
    """A block that an index was made of."""

    ids: tuple[str, ...]
    fingerprint: int


@dataclass(frozen=True, slots=True)
class HeldIndex:
    """An index, and what it was made of."""

    parts: Mapping[bytes, _Part]
    """By digest."""
    index: StoredIndex
    is_current: bool
    """All its terms were given by the present analyzer."""


class IndexCache:
    """Indexes by tenant and user; those that were asked for least recently are let go. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], HeldIndex] = OrderedDict()
        self._turns = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str]) -> HeldIndex | None:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: tuple[str, str], held: HeldIndex) -> None:
        with self._lock:
            self._drop(key)
            self._held[key] = held
            self._turns += len(held.index)
            while len(self._held) > 1 and (len(self._held) > INDEXES_MAX or self._turns > INDEX_TURNS_MAX):
                self._drop(next(iter(self._held)))

    def _drop(self, key: tuple[str, str]) -> None:
        found = self._held.pop(key, None)
        if found is not None:
            self._turns -= len(found.index)

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
            self._turns = 0


def _bring_up(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, listed: Sequence[Listed], held: HeldIndex | None
) -> HeldIndex:
    """The index over these blocks: the one that is held with more turns, or one put together from all of them."""

    def names(ids: Sequence[str]) -> list[str]:
        spoken = {entry.id: speaker_of(entry) for entry in entries_by_id(reader, tenant_id, ids)}
        return [spoken.get(id_, "") for id_ in ids]

    def load(wanted: Sequence[Listed]) -> list[Segment]:
        return load_blocks(reader, tenant_id, segments_of(user_id), wanted, ctx.cache(SegmentCache))

    if held is not None and held.is_current:
        fresh = [entry for entry in listed if entry.digest not in held.parts]
        segments = load(fresh)
        parts = dict(held.parts)
        gone = [parts.pop(key) for key in held.parts.keys() - {entry.digest for entry in listed}]
        parts |= _parts(fresh, segments)
        added = _added(gone, segments)
        if added is not None:
            return HeldIndex(parts, held.index.extended(added, names), is_current=True)
    segments = load(listed)
    is_current = all(segment.analyzer == ANALYZER_VERSION for segment in segments)
    return HeldIndex(_parts(listed, segments), StoredIndex(segments, names), is_current)


def _parts(listed: Sequence[Listed], segments: Sequence[Segment]) -> dict[bytes, _Part]:
    pairs = zip(listed, segments, strict=True)
    return {entry.digest: _Part(segment.ids, fingerprint(segment)) for entry, segment in pairs}


def _added(gone: Sequence[_Part], segments: Sequence[Segment]) -> list[Segment] | None:
    """What new blocks hold besides the turns of those that they took the place of; None where they are not those with
    more turns behind them, as after a forget."""
    if any(segment.analyzer != ANALYZER_VERSION for segment in segments):
        return None
    known = frozenset().union(*(part.ids for part in gone))
    added = list(segments) if not known else []
    if known:
        added = [left for segment in segments if (left := drop_turns(segment, known)) is not None]
    before, after = sum(part.fingerprint for part in gone), sum(map(fingerprint, segments))
    return added if (before + sum(map(fingerprint, added)) - after) % (1 << 64) == 0 else None
