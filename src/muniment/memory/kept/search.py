"""Searching values below a prefix: by a query, best first; without one, what changed last first.

What is compared is kept beside the entries, and in memory between searches: an entry never changes, so neither does
what was made of it. Where it is missing (a rebuild, a dump, another embedder), whoever searches makes it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muniment.core.ports.rows import by_ids, select, texts
from muniment.core.ports.schema import PLACE_VECTORS, PREFIXES
from muniment.memory.kept.names import path_of
from muniment.memory.kept.rows import vector_digest
from muniment.memory.kept.values import KeptValue, Labels, Values, put_features

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader
    from muniment.memory.kept.features import Features, Query, Scores

__all__ = ["Texts", "Unread", "best", "newest"]

Texts = Callable[[KeptValue], Sequence[str]]
"""The texts of a value that a search reads."""


class Unread(Exception):
    """Of these values nothing is kept that could be compared, and whoever asks did not say what their texts are."""

    def __init__(self, values: Sequence[KeptValue]) -> None:
        super().__init__(f"{len(values)} values are unread")
        self.values = values


BYTES_MAX = 256 * 1024 * 1024
PREFIXES_MAX = 64
PAGE_MAX = 512
_FILL = 500


@dataclass(frozen=True, slots=True)
class _Loaded:
    """All below a prefix that has something to compare."""

    mark: str
    ids: list[str]
    owners: NDArray[np.int64]
    """Of each text, which of the ids it is of."""
    scored: Callable[[Query], Scores]


class FeatureCache:
    """Features of entries, and what was loaded below prefixes. Never the only copy. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._features: dict[tuple[str, str, str], tuple[bytes, ...]] = {}
        self._size = 0
        self._loaded: OrderedDict[tuple[str, ...], _Loaded] = OrderedDict()

    def clear(self) -> None:
        with self._lock:
            self._features.clear()
            self._loaded.clear()
            self._size = 0

    def known(self, tenant_id: str, embedder: str, ids: Sequence[str]) -> dict[str, tuple[bytes, ...]]:
        held = self._features
        return {id_: found for id_ in ids if (found := held.get((tenant_id, embedder, id_))) is not None}

    def keep(self, tenant_id: str, embedder: str, found: dict[str, tuple[bytes, ...]]) -> None:
        with self._lock:
            self._size += sum(len(data) + 64 for texts in found.values() for data in texts)
            if self._size > BYTES_MAX:
                self._features.clear()
                self._size = 0
            self._features.update({(tenant_id, embedder, id_): texts for id_, texts in found.items()})

    def loaded(self, key: tuple[str, ...], mark: str) -> _Loaded | None:
        with self._lock:
            held = self._loaded.get(key)
            return held if held is not None and held.mark == mark else None

    def keep_loaded(self, key: tuple[str, ...], loaded: _Loaded) -> None:
        with self._lock:
            self._loaded[key] = loaded
            self._loaded.move_to_end(key)
            while len(self._loaded) > PREFIXES_MAX:
                self._loaded.popitem(last=False)


def newest(values: Values, labels: Labels, size: int) -> Iterator[KeptValue]:
    """What stands below a prefix, what changed last first, page by page; `size` are the most that may be asked for."""
    if not values.is_seen(labels):
        return
    owner = values.keeps_to(labels)
    if owner is not None:
        yield from _newest_of(values, owner, labels, size)
        return
    where: tuple[Condition, ...] = (("space", "=", values.space), ("prefix", "=", path_of(labels)))
    after: Any = None
    size = max(1, min(size, PAGE_MAX))
    while True:

        def work(reader: Reader, after: Any = after, size: int = size) -> tuple[list[Any], list[KeptValue]]:
            order = ("changed", "entry_id")
            rows = select(reader, PREFIXES, where, order=order, after=after, descending=True, limit=size)
            found = values.read_ids(reader, [row.entry_id for row in rows], labels)
            return rows, [found[row.entry_id] for row in rows if row.entry_id in found]

        rows, kept = values.ctx.engine.read(values.tenant_id, work)
        yield from kept
        if len(rows) < size:
            return
        after, size = (rows[-1].changed, rows[-1].entry_id), min(PAGE_MAX, size * 4)


def _newest_of(values: Values, owner: str, labels: Labels, size: int) -> Iterator[KeptValue]:
    """The same of what is one owner's, where the labels alone do not say whose it is."""
    ids = [*reversed(_own_ids(values, owner, labels))]
    at, size = 0, max(1, min(size, PAGE_MAX))
    while page := ids[at : at + size]:
        found = values.ctx.engine.read(
            values.tenant_id, lambda reader, page=page: values.read_ids(reader, page, labels)
        )  # type: ignore[misc]
        yield from (found[id_] for id_ in page if id_ in found)
        at, size = at + size, min(PAGE_MAX, size * 4)


def _own_ids(values: Values, owner: str, labels: Labels) -> list[str]:
    """The entries of an owner below labels, in the order they changed."""
    rows = values.ctx.engine.read(values.tenant_id, lambda reader: values.own_rows(reader, owner, labels))
    return [row.entry_id for row in sorted(rows, key=lambda row: (row.changed, row.entry_id))]


def best(
    values: Values, labels: Labels, query: Query, features: Features, texts_of: Texts | None, size: int
) -> Iterator[tuple[KeptValue, float]]:
    """What stands below a prefix and answers a query, best first, with its score; `size` as in `newest`."""
    loaded = _load(values, labels, features, texts_of) if values.is_seen(labels) else None
    if loaded is None or not loaded.ids:
        return
    size = max(1, min(size, PAGE_MAX))
    ranked = _ranked(loaded, loaded.scored(query), size)
    while page := list(islice(ranked, size)):
        found = values.ctx.engine.read(
            values.tenant_id,
            lambda reader, page=page: values.read_ids(reader, [id_ for id_, _ in page], labels),  # type: ignore[misc]
        )
        yield from ((found[id_], score) for id_, score in page if id_ in found)
        size = min(PAGE_MAX, size * 4)


def _ranked(loaded: _Loaded, scores: Scores, size: int) -> Iterator[tuple[str, float]]:
    """The ids that answer, best first: each by the best of its texts, then by how much of it answers, then newest.

    The first `size` of many are found without ordering them all.
    """
    count = len(loaded.ids)
    total, density = np.full(count, -np.inf), np.zeros(count)
    answering = np.flatnonzero(scores.answers)
    owners = loaded.owners[answering]
    np.maximum.at(total, owners, scores.scores[answering])
    np.maximum.at(density, owners, scores.density[answering])
    there = np.flatnonzero(total > -np.inf)
    given = 0
    if len(there) > 4 * size:
        least = np.partition(total[there], len(there) - size)[len(there) - size]
        leading = there[total[there] >= least]
        for place in leading[np.lexsort((-leading, -density[leading], -total[leading]))].tolist():
            yield loaded.ids[place], float(total[place])
        given = len(leading)
    order = there[np.lexsort((-there, -density[there], -total[there]))]
    for place in order[given:].tolist():
        yield loaded.ids[place], float(total[place])


def _load(values: Values, labels: Labels, features: Features, texts_of: Texts | None) -> _Loaded:
    ctx, tenant_id, prefix = values.ctx, values.tenant_id, path_of(labels)
    cache = ctx.cache(FeatureCache)
    owner = values.keeps_to(labels)
    key = (tenant_id, values.space, features.name, prefix, owner or "")
    mark = ctx.engine.mark()
    held = cache.loaded(key, mark)
    if held is not None:
        return held
    where: tuple[Condition, ...] = (("space", "=", values.space), ("prefix", "=", prefix))
    if owner is None:
        ids = ctx.engine.read(tenant_id, lambda reader: texts(reader, PREFIXES, "entry_id", where))
    else:
        ids = _own_ids(values, owner, labels)
    found = cache.known(tenant_id, features.name, ids)
    missing = [id_ for id_ in ids if id_ not in found]
    if missing:
        read = ctx.engine.read(tenant_id, lambda reader: _read(reader, missing, features.name))
        read |= _filled(values, [id_ for id_ in missing if id_ not in read], features, texts_of)
        cache.keep(tenant_id, features.name, read)
        found |= read
    kept, owners = [], []
    for place, id_ in enumerate(ids):
        for data in found.get(id_, ()):
            kept.append(data)
            owners.append(place)
    loaded = _Loaded(mark, ids, np.array(owners, dtype=np.int64), features.packed(kept))
    cache.keep_loaded(key, loaded)
    return loaded


def _read(reader: Reader, ids: Sequence[str], embedder: str) -> dict[str, tuple[bytes, ...]]:
    """What is kept of these entries; nothing of one that was altered, which is made again."""
    found: dict[str, list[bytes]] = {}
    unsound: set[str] = set()
    asked: tuple[Condition, ...] = (("embedder", "=", embedder),)
    for row in by_ids(
        reader, PLACE_VECTORS, ids, column="entry_id", where=asked, order=("entry_id", "embedder", "number")
    ):
        if row.digest != vector_digest(row.entry_id, embedder, row.number, row.data):
            unsound.add(row.entry_id)
        texts_held = found.setdefault(row.entry_id, [])
        if row.number >= 0:
            texts_held.append(row.data)
    return {id_: tuple(held) for id_, held in found.items() if id_ not in unsound}


def _filled(
    values: Values, ids: Sequence[str], features: Features, texts_of: Texts | None
) -> dict[str, tuple[bytes, ...]]:
    """Make what is missing, and keep it."""
    filled: dict[str, tuple[bytes, ...]] = {}
    if texts_of is None and ids:
        kept = values.ctx.engine.read(values.tenant_id, lambda reader: values.read_ids(reader, ids[:_FILL]))
        if kept:
            raise Unread(list(kept.values()))
        return {}
    assert texts_of is not None or not ids
    for at in range(0, len(ids), _FILL):
        chunk = ids[at : at + _FILL]
        kept = values.ctx.engine.read(values.tenant_id, lambda reader, chunk=chunk: values.read_ids(reader, chunk))  # type: ignore[misc]
        said = {id_: list(texts_of(value)) for id_, value in kept.items()}
        made = iter(features.made([text for texts_said in said.values() for text in texts_said]))
        of_ids = {id_: tuple(islice(made, len(texts_said))) for id_, texts_said in said.items()}
        values.ctx.engine.write(
            values.tenant_id,
            lambda tx, of_ids=of_ids: put_features(tx, list(of_ids), features.name, list(of_ids.values())),  # type: ignore[misc]
        )
        filled |= of_ids
    return filled
