"""Searching values below a prefix: by a query, best first; without one, what changed last first.

What is compared is kept beside the entries, and in memory between searches: an entry never changes, so neither does
what was made of it. Where it is missing (a rebuild, a dump, another embedder), whoever searches makes it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muniment.core.limits import drop_tenant
from muniment.core.ports.rows import by_ids, select, texts
from muniment.core.ports.schema import PLACE_VECTORS, PREFIXES
from muniment.memory.kept.names import path_of
from muniment.memory.kept.rows import vector_digest
from muniment.memory.kept.values import KeptValue, Labels, Values

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader
    from muniment.memory.kept.features import Features, Query, Scores

__all__ = ["Ranked", "Texts", "Unread", "best", "newest"]

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
    is_single: bool
    """Whether no value has more than one text."""
    scored: Callable[[Query], Scores]


class Ranked(NamedTuple):
    """What answers a query below a prefix, and how many stand there in all."""

    total: int
    answering: Iterator[tuple[KeptValue, float]]


class FeatureCache:
    """Features of entries, and what was loaded below prefixes. Never the only copy. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._features: dict[tuple[str, str, str], tuple[bytes, ...]] = {}
        self._size = 0
        self._loaded: OrderedDict[tuple[str, ...], _Loaded] = OrderedDict()

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._features, tenant_id)
            drop_tenant(self._loaded, tenant_id)
            self._size = sum(len(data) + 64 for texts in self._features.values() for data in texts)

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


def newest(values: Values, labels: Labels, size: int, seen: Collection[str] = ()) -> Iterator[KeptValue]:
    """What stands below a prefix, what changed last first, page by page; `size` are the most that may be asked for.

    What was `seen` is not read again, and left out.
    """
    if not values.is_seen(labels):
        return
    owner = values.keeps_to(labels)
    if owner is not None:
        yield from _newest_of(values, owner, labels, size, seen)
        return
    where: tuple[Condition, ...] = (("space", "=", values.space), ("prefix", "=", path_of(labels)))
    after: Any = None
    size = max(1, min(size, PAGE_MAX))
    while True:

        def work(reader: Reader, after: Any = after, size: int = size) -> tuple[list[Any], list[KeptValue]]:
            order = ("changed", "entry_id")
            rows = select(reader, PREFIXES, where, order=order, after=after, descending=True, limit=size)
            found = values.read_ids(reader, [row.entry_id for row in rows if row.entry_id not in seen], labels)
            return rows, [found[row.entry_id] for row in rows if row.entry_id in found]

        rows, kept = values.ctx.engine.read(values.tenant_id, work)
        yield from kept
        if len(rows) < size:
            return
        after, size = (rows[-1].changed, rows[-1].entry_id), min(PAGE_MAX, size * 4)


def _newest_of(values: Values, owner: str, labels: Labels, size: int, seen: Collection[str]) -> Iterator[KeptValue]:
    """The same of what is one owner's, where the labels alone do not say whose it is."""
    own = values.ctx.engine.read(values.tenant_id, lambda reader: _own_ids(reader, values, owner, labels))
    ids = [id_ for id_ in reversed(own) if id_ not in seen]
    at, size = 0, max(1, min(size, PAGE_MAX))
    while page := ids[at : at + size]:
        found = values.ctx.engine.read(values.tenant_id, partial(values.read_ids, entry_ids=page, labels=labels))
        yield from (found[id_] for id_ in page if id_ in found)
        at, size = at + size, min(PAGE_MAX, size * 4)


def _own_ids(reader: Reader, values: Values, owner: str, labels: Labels) -> list[str]:
    """The entries of an owner below labels, in the order they changed."""
    rows = values.own_rows(reader, owner, labels)
    return [row.entry_id for row in sorted(rows, key=lambda row: (row.changed, row.entry_id))]


def best(values: Values, labels: Labels, query: Query, features: Features, texts_of: Texts | None, size: int) -> Ranked:
    """What stands below a prefix and answers a query, best first, with its score; `size` as in `newest`.

    Where nothing outside has to be asked what the query comes to, it is one look into the store.
    """
    if not values.is_seen(labels):
        return Ranked(0, iter(()))
    engine, size = values.ctx.engine, max(1, min(size, PAGE_MAX))
    is_at_once = not (features.asks_outside and isinstance(query, str))
    place = _Place.of(values, labels, features)
    held = place.held()

    def work(reader: Reader) -> tuple[_Loaded | list[str], _Pages | None]:
        loaded = place.load(reader) if held is None else held
        if not is_at_once or isinstance(loaded, list):
            return loaded, None
        pages = _Pages(values, labels, loaded, query, size)
        pages.read(reader)
        return loaded, pages

    loaded, pages = (held, None) if held is not None and not is_at_once else engine.read(values.tenant_id, work)
    if isinstance(loaded, list):
        _fill(values, loaded, features, texts_of)
        place, held = _Place.of(values, labels, features), None
        loaded, pages = engine.read(values.tenant_id, work)
        if isinstance(loaded, list):  # forgotten, or written, since: what is there is compared
            loaded = engine.read(values.tenant_id, lambda reader: place.load_there(reader))
    pages = pages or _Pages(values, labels, loaded, query, size)
    return Ranked(len(loaded.ids), iter(pages))


class _Pages:
    """What answers a query, page by page: each is read when it is asked for, the first where it is read ahead."""

    def __init__(self, values: Values, labels: Labels, loaded: _Loaded, query: Query, size: int) -> None:
        self._values, self._labels, self._size = values, labels, size
        self._ranked = _ranked(loaded, loaded.scored(query), size) if loaded.ids else iter(())
        self._ahead: list[tuple[KeptValue, float]] | None = None

    def read(self, reader: Reader) -> None:
        self._ahead = self._page(reader, list(islice(self._ranked, self._size)))

    def __iter__(self) -> Iterator[tuple[KeptValue, float]]:
        if self._ahead is not None:
            yield from self._ahead
            self._size = min(PAGE_MAX, self._size * 4)
        while page := list(islice(self._ranked, self._size)):
            yield from self._values.ctx.engine.read(
                self._values.tenant_id,
                lambda reader, page=page: self._page(reader, page),  # type: ignore[misc]
            )
            self._size = min(PAGE_MAX, self._size * 4)

    def _page(self, reader: Reader, page: Sequence[tuple[str, float]]) -> list[tuple[KeptValue, float]]:
        found = self._values.read_ids(reader, [id_ for id_, _ in page], self._labels)
        return [(found[id_], score) for id_, score in page if id_ in found]


def _ranked(loaded: _Loaded, scores: Scores, size: int) -> Iterator[tuple[str, float]]:
    """The ids that answer, best first: each by the best of its texts, then by how much of it answers, then newest.

    The first `size` of many are found without ordering them all.
    """
    count = len(loaded.ids)
    if loaded.is_single and len(loaded.owners) <= size:
        told = zip(
            scores.scores.tolist(),
            scores.density.tolist(),
            loaded.owners.tolist(),
            scores.answers.tolist(),
            strict=True,
        )
        for score, _, place, _ in sorted((each for each in told if each[3]), reverse=True):
            yield loaded.ids[place], score
        return
    total, density = np.full(count, -np.inf), np.zeros(count)
    answering = np.flatnonzero(scores.answers)
    owners = loaded.owners[answering]
    if loaded.is_single:
        total[owners], density[owners] = scores.scores[answering], scores.density[answering]
    else:
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


class _Place(NamedTuple):
    """Where is searched, by what, and as of which commit."""

    values: Values
    labels: Labels
    features: Features
    mark: str

    @classmethod
    def of(cls, values: Values, labels: Labels, features: Features) -> _Place:
        return cls(values, labels, features, values.ctx.engine.mark())

    @property
    def _key(self) -> tuple[str, ...]:
        values, owner = self.values, self.values.keeps_to(self.labels)
        return (values.tenant_id, values.space, self.features.name, path_of(self.labels), owner or "")

    def held(self) -> _Loaded | None:
        """What was loaded before, where nothing was committed since."""
        return self.values.ctx.cache(FeatureCache).loaded(self._key, self.mark)

    def load(self, reader: Reader) -> _Loaded | list[str]:
        """All that stands there; or the ids of those of which nothing is kept that could be compared."""
        ids, found = self._known(reader)
        missing = [id_ for id_ in ids if id_ not in found]
        return missing or self._loaded(ids, found)

    def load_there(self, reader: Reader) -> _Loaded:
        """What stands there and can be compared."""
        return self._loaded(*self._known(reader))

    def _known(self, reader: Reader) -> tuple[list[str], dict[str, tuple[bytes, ...]]]:
        values, name = self.values, self.features.name
        cache, tenant_id = values.ctx.cache(FeatureCache), values.tenant_id
        owner = values.keeps_to(self.labels)
        if owner is None:
            where: tuple[Condition, ...] = (("space", "=", values.space), ("prefix", "=", path_of(self.labels)))
            ids = texts(reader, PREFIXES, "entry_id", where)
        else:
            ids = _own_ids(reader, values, owner, self.labels)
        found = cache.known(tenant_id, name, ids)
        unknown = [id_ for id_ in ids if id_ not in found]
        if unknown:
            read = _read(reader, unknown, name)
            cache.keep(tenant_id, name, read)
            found |= read
        return ids, found

    def _loaded(self, ids: list[str], found: dict[str, tuple[bytes, ...]]) -> _Loaded:
        kept, owners = [], []
        for place, id_ in enumerate(ids):
            for data in found.get(id_, ()):
                kept.append(data)
                owners.append(place)
        is_single = len(set(owners)) == len(owners)
        loaded = _Loaded(self.mark, ids, np.array(owners, dtype=np.int64), is_single, self.features.packed(kept))
        self.values.ctx.cache(FeatureCache).keep_loaded(self._key, loaded)
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


def _fill(values: Values, ids: Sequence[str], features: Features, texts_of: Texts | None) -> None:
    """Make what is missing, and keep it."""
    engine, tenant_id = values.ctx.engine, values.tenant_id
    for at in range(0, len(ids), _FILL):
        chunk = ids[at : at + _FILL]
        kept = engine.read(tenant_id, lambda reader, chunk=chunk: values.read_ids(reader, chunk))  # type: ignore[misc]
        if texts_of is None:
            if kept:
                raise Unread(list(kept.values()))
            continue
        said = {id_: list(texts_of(value)) for id_, value in kept.items()}
        made = iter(features.made([text for texts_said in said.values() for text in texts_said]))
        of_ids = {id_: tuple(islice(made, len(texts_said))) for id_, texts_said in said.items()}
        values.fill(of_ids, features.name)
