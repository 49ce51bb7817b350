"""Search values below a prefix: best match first, or most recently changed first if there is no query.

Search features are stored outside the entries, and in memory between searches: an entry never changes, so neither do
its features. If they are missing (after a rebuild, from a dump, for another embedder), the search creates them.
"""

from __future__ import annotations

import math
import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from muniment.core.canonical import digest_of
from muniment.core.limits import drop_tenant
from muniment.core.ports.rows import by_ids, select, texts
from muniment.core.ports.schema import PLACE_VECTORS, PREFIXES
from muniment.core.text.analyzer import ANALYZER_VERSION, analyze, term_hashes
from muniment.errors import InvalidInput
from muniment.memory.kept.values import KeptValue, Labels, Values, micros, path_of, vector_digest

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader
    from muniment.core.ports.models import Embedder

__all__ = [
    "Features",
    "PathMatch",
    "Query",
    "Ranked",
    "Scores",
    "Texts",
    "Unread",
    "VectorFeatures",
    "Wanted",
    "WordFeatures",
    "best",
    "check_filter",
    "find_values",
    "found_at",
    "given_name",
    "list_namespaces",
    "matches",
    "newest",
    "own_features",
    "vectors_kept",
]


# -- filters -------------------------------------------------------------------------------------------
#
# Filters over stored values: equality, nested objects, dots and `$`-operators, with the semantics of LangGraph's
# stores.


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def check_filter(wanted: Any, path: str = "$.filter") -> None:
    """Reject an invalid filter before anything is read."""
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InvalidInput("a filter is an object of fields", path=path)
    for key, each in wanted.items():
        if isinstance(each, Mapping) and any(str(name).startswith("$") for name in each):
            unknown = [name for name in each if name not in (*_ORDERS, "$eq", "$ne")]
            if unknown:
                raise InvalidInput(f"Unsupported operator: {unknown[0]!s:.40}", path=f"{path}.{key:.40}")
        elif isinstance(each, Mapping):
            check_filter(each, f"{path}.{key:.40}")


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """True if every key of the filter matches."""
    return all(_holds(found_at(value, key), each) for key, each in (wanted or {}).items())


def found_at(value: Mapping[str, Any], key: str) -> Any:
    """The value of a key, or of its dotted path if there is no such key."""
    if key in value or "." not in key:
        return value.get(key)
    found: Any = value
    for label in key.split("."):
        if isinstance(found, Mapping):
            found = found.get(label)
        elif isinstance(found, list) and label.isdecimal() and label.isascii() and int(label) < len(found):
            found = found[int(label)]
        else:
            return None
    return found


def _holds(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return all(_compare(found, name, other) for name, other in wanted.items())
        return isinstance(found, Mapping) and matches(found, wanted)
    if isinstance(wanted, list | tuple):
        is_alike = isinstance(found, list | tuple) and len(found) == len(wanted)
        return is_alike and all(map(_holds, found, wanted))
    return bool(found == wanted)


def _compare(found: Any, name: str, other: Any) -> bool:
    """Numbers compare with numbers and strings with strings; other pairs never match."""
    if name == "$eq":
        return bool(found == other)
    if name == "$ne":
        return bool(found != other)
    if name not in _ORDERS:
        raise ValueError(f"Unsupported operator: {name}")
    both = (found, other)
    if all(isinstance(each, int | float) for each in both) or all(isinstance(each, str) for each in both):
        return _ORDERS[name](found, other)
    return False


# -- features ------------------------------------------------------------------------------------------
#
# Features are the searchable form of a text: a vector if there is an embedder, otherwise its words. The score of a
# value is the best of its texts: the cosine of two vectors, or the share of the query's words found in the text,
# weighted by rarity among the searched values. Both are 1 for a text with all of the query.


Floats = NDArray[np.float32]
Query = str | Sequence[float]
"""A query: a text, or its vector if the caller embedded it."""
_FEW = 16
"""Up to this many texts are compared one by one."""
_TEXT_CHARS_MAX = 65_536


@dataclass(frozen=True, slots=True)
class Scores:
    """The score of each text, and a tie-breaker: how much of it matches."""

    scores: NDArray[np.float64]
    density: NDArray[np.float64]
    answers: NDArray[np.bool_]
    """True for texts that match at all."""


class Features(Protocol):
    """A way to compare texts."""

    asks_outside: bool
    """True if features come from an external service that may be slow."""

    @property
    def name(self) -> str:
        """An identifier; features with the same name give the same bytes for the same text."""
        ...

    def made(self, texts: Sequence[str]) -> list[bytes]:
        """The stored features of each text."""
        ...

    def packed(self, kept: Sequence[bytes]) -> Callable[[Query], Scores]:
        """A function that scores these features against a query."""
        ...


class WordFeatures:
    """Word features, used without an embedder. `mark` distinguishes different selections of fields."""

    asks_outside = False

    def __init__(self, mark: str) -> None:
        self._mark = mark

    @property
    def name(self) -> str:
        return f"words@{ANALYZER_VERSION}-{self._mark}"

    def made(self, texts: Sequence[str]) -> list[bytes]:
        return [_terms(text).astype("<u8").tobytes() for text in texts]

    def packed(self, kept: Sequence[bytes]) -> Callable[[Query], Scores]:
        if len(kept) <= _FEW:
            return _few_scored([frozenset(np.frombuffer(data, dtype="<u8").tolist()) for data in kept])
        terms = np.frombuffer(b"".join(kept), dtype="<u8")
        lengths = np.fromiter((len(data) // 8 for data in kept), dtype=np.int64, count=len(kept))
        owners = np.repeat(np.arange(len(kept)), lengths)
        order = np.argsort(terms, kind="stable")
        terms, owners = terms[order], owners[order]

        def scored(query: Query) -> Scores:
            assert isinstance(query, str)
            asked = _terms(query)
            scores, found, total = np.zeros(len(kept)), np.zeros(len(kept)), 0.0
            starts, ends = np.searchsorted(terms, asked, "left"), np.searchsorted(terms, asked, "right")
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                count = end - start
                weight = float(np.log1p((len(kept) - count + 0.5) / (count + 0.5)))
                total += weight
                scores[owners[start:end]] += weight
                found[owners[start:end]] += 1
            return Scores(scores / total if total else scores, found / np.maximum(lengths, 1), found > 0)

        return scored


def _few_scored(kept: Sequence[frozenset[int]]) -> Callable[[Query], Scores]:
    """Score a few texts without the overhead of arrays."""
    lengths = np.array([max(1, len(terms)) for terms in kept])

    def scored(query: Query) -> Scores:
        assert isinstance(query, str)
        scores, found, total = [0.0] * len(kept), [0] * len(kept), 0.0
        for term in _terms(query).tolist():
            holding = [at for at, terms in enumerate(kept) if term in terms]
            weight = math.log1p((len(kept) - len(holding) + 0.5) / (len(holding) + 0.5))
            total += weight
            for at in holding:
                scores[at] += weight
                found[at] += 1
        count = np.array(found)
        return Scores(np.array(scores) / (total or 1.0), count / lengths, count > 0)

    return scored


def _terms(text: str) -> NDArray[np.uint64]:
    return np.array(sorted(set(term_hashes(analyze(text[:_TEXT_CHARS_MAX])))), dtype=np.uint64)


class VectorFeatures:
    """Vector features: the cosine of vectors from a given function."""

    asks_outside = True

    def __init__(
        self,
        name: str,
        embed: Callable[[Sequence[str]], Sequence[Sequence[float]] | Floats],
        embed_query: Callable[[str], Sequence[float] | Floats] | None = None,
    ) -> None:
        self._name = name
        self._embed = embed
        self._embed_query = embed_query or (lambda query: embed([query])[0])

    @property
    def name(self) -> str:
        return self._name

    def made(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        return _kept(self._embed(list(texts)))

    def packed(self, kept: Sequence[bytes]) -> Callable[[Query], Scores]:
        if len({len(data) for data in kept}) > 1:
            sizes = sorted({len(data) // 4 for data in kept})
            raise InvalidInput(
                f"vectors of {' and '.join(map(str, sizes))} numbers are kept under one embedder's name",
                path="$.embedder",
                hint="give each embedder a name of its own",
            )
        matrix = np.frombuffer(b"".join(kept), dtype="<f4").reshape(len(kept), -1) if kept else None

        def scored(query: Query) -> Scores:
            if matrix is None:
                return Scores(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))
            vector = self._embed_query(query) if isinstance(query, str) else query
            asked = _unit(np.asarray([vector], dtype=np.float64))[0].astype(np.float32)
            if len(asked) != matrix.shape[1]:
                raise InvalidInput(
                    f"a vector of {len(asked)} numbers is not compared with some of {matrix.shape[1]}", path="$.vector"
                )
            scores = (matrix @ asked).astype(np.float64)
            return Scores(scores, np.zeros(len(kept)), np.ones(len(kept), dtype=bool))

        return scored


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)


def own_features(embedder: Embedder | None, fields: Sequence[str] | None) -> tuple[Features, bool]:
    """The store's own features for these fields, and whether a value's texts are joined into one."""
    mark = digest_of([None if fields is None else list(fields), embedder is None])[:8]
    if embedder is None:
        return WordFeatures(mark), True

    def embed_query(query: str) -> Floats:
        row: Floats = embedder.embed_queries([query])[0]
        return row

    return VectorFeatures(f"{embedder.identity}-{mark}", embedder.embed_passages, embed_query), False


def given_name(embedder: str) -> str:
    """The name for vectors of a caller's embedder, distinct from every name of the store's own features."""
    return f"given:{embedder}"


def vectors_kept(vectors: Sequence[Sequence[float]], path: str) -> list[bytes]:
    """The stored form of vectors computed by a caller."""
    if not vectors:
        return []
    if len({len(each) for each in vectors}) > 1 or not vectors[0]:
        raise InvalidInput("vectors of one embedder have one length, above zero", path=path)
    return _kept(vectors)


def _kept(vectors: Sequence[Sequence[float]] | Floats) -> list[bytes]:
    return [row.astype("<f4").tobytes() for row in _unit(np.asarray(vectors, dtype=np.float64))]


Texts = Callable[[KeptValue], Sequence[str]]
"""Extracts the searchable texts of a value."""


class Unread(Exception):
    """Raised if values lack features and the caller did not supply their texts."""

    def __init__(self, values: Sequence[KeptValue]) -> None:
        super().__init__(f"{len(values)} values are unread")
        self.values = values


BYTES_MAX = 256 * 1024 * 1024
PREFIXES_MAX = 64
PAGE_MAX = 512
_FILL = 500


@dataclass(frozen=True, slots=True)
class _Loaded:
    """All features below a prefix."""

    mark: str
    ids: list[str]
    owners: NDArray[np.int64]
    """The index of the owning id, for each text."""
    is_single: bool
    """True if no value has more than one text."""
    scored: Callable[[Query], Scores]


class Ranked(NamedTuple):
    """The matches below a prefix, and the number of values there."""

    total: int
    answering: Iterator[tuple[KeptValue, float]]


class FeatureCache:
    """Features of entries, and those loaded below prefixes. Never the only copy. Thread-safe."""

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
    """The values below a prefix, most recently changed first, page by page; `size` is the maximum needed.

    Values in `seen` are skipped without being read.
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
    """`newest` for one owner's values, if the labels alone do not determine the owner."""
    own = values.ctx.engine.read(values.tenant_id, lambda reader: _own_ids(reader, values, owner, labels))
    ids = [id_ for id_ in reversed(own) if id_ not in seen]
    at, size = 0, max(1, min(size, PAGE_MAX))
    while page := ids[at : at + size]:
        found = values.ctx.engine.read(values.tenant_id, partial(values.read_ids, entry_ids=page, labels=labels))
        yield from (found[id_] for id_ in page if id_ in found)
        at, size = at + size, min(PAGE_MAX, size * 4)


def _own_ids(reader: Reader, values: Values, owner: str, labels: Labels) -> list[str]:
    """The ids of an owner's entries below labels, in order of change."""
    rows = values.own_rows(reader, owner, labels)
    return [row.entry_id for row in sorted(rows, key=lambda row: (row.changed, row.entry_id))]


def best(values: Values, labels: Labels, query: Query, features: Features, texts_of: Texts | None, size: int) -> Ranked:
    """The values below a prefix that match a query, best first, with scores; `size` as in `newest`.

    Without an external embedder it takes a single read transaction.
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
        if isinstance(loaded, list):  # forgotten or written meanwhile: compare the values that are there
            loaded = engine.read(values.tenant_id, lambda reader: place.load_there(reader))
    pages = pages or _Pages(values, labels, loaded, query, size)
    return Ranked(len(loaded.ids), iter(pages))


class _Pages:
    """The matches of a query, page by page: each page is read on demand, the first optionally ahead."""

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
    """Matching ids, best first: by each value's best text, then by how much of it matches, then newest.

    The first `size` of many are found without sorting them all.
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
    """The scope of a search: prefix, features and commit."""

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
        """The features already loaded, if nothing was committed since."""
        return self.values.ctx.cache(FeatureCache).loaded(self._key, self.mark)

    def load(self, reader: Reader) -> _Loaded | list[str]:
        """All features in scope, or the ids of values that lack them."""
        ids, found = self._known(reader)
        missing = [id_ for id_ in ids if id_ not in found]
        return missing or self._loaded(ids, found)

    def load_there(self, reader: Reader) -> _Loaded:
        """The existing features in scope."""
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
    """The stored features of these entries; those of altered entries are dropped and created again."""
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
    """Create and store missing features."""
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


# -- finding -------------------------------------------------------------------------------------------
#
# Queries over the values of a store, for every public interface: a page of matching values, or of namespaces. It sorts
# the results of `search` and `Values`, and writes nothing but search features.


class Wanted(NamedTuple):
    """A query: a prefix, a filter and a page."""

    labels: Labels
    query: str | None
    filter: Mapping[str, Any] | None
    offset: int
    limit: int
    vector: Sequence[float] | None = None
    """The vector of the query, if the caller embedded it."""


class PathMatch(NamedTuple):
    """A namespace prefix or suffix; `*` matches any label."""

    path: Labels
    is_suffix: bool


def find_values(
    values: Values, wanted: Wanted, features: Features, texts_of: Texts | None, now: datetime
) -> list[tuple[KeptValue, float | None]]:
    """The values that match the query, best first; if they are too few, other values follow unscored.

    Without `texts_of` no features are created: missing ones raise `Unread`.
    """
    at, end = micros(now), wanted.offset + wanted.limit

    def is_wanted(value: KeptValue) -> bool:
        return at <= value.expires and matches(value.value, wanted.filter)

    found: list[tuple[KeptValue, float | None]] = []
    seen: set[str] = set()
    if wanted.query:
        query = wanted.query if wanted.vector is None else wanted.vector
        ranked = best(values, wanted.labels, query, features, texts_of, end)
        for value, score in ranked.answering:
            seen.add(value.entry_id)
            if is_wanted(value):
                found.append((value, score))
                if len(found) == end:
                    break
        if len(seen) == ranked.total:  # every value there matched
            return found[wanted.offset : end]
    if len(found) < end:
        others = (value for value in newest(values, wanted.labels, end, seen) if is_wanted(value))
        found += ((value, None) for value in islice(others, end - len(found)))
    return found[wanted.offset : end]


def list_namespaces(
    values: Values, conditions: Sequence[PathMatch], max_depth: int | None, offset: int, limit: int, now: datetime
) -> list[Labels]:
    """The namespaces that match every condition, in order, cut to a depth and deduplicated."""
    found = values.namespaces(_fixed_prefix(conditions), now)
    fitting = (each for each in found if all(_fits(each, condition) for condition in conditions))
    cut = fitting if max_depth is None else (each[:max_depth] for each in fitting)
    return list(islice(_each_once(cut), offset, offset + limit))


def _fixed_prefix(conditions: Iterable[PathMatch]) -> Labels:
    """The labels with which every requested namespace begins."""
    for condition in conditions:
        if not condition.is_suffix:
            path = condition.path
            return path[: path.index("*")] if "*" in path else path
    return ()


def _fits(namespace: Labels, condition: PathMatch) -> bool:
    if len(namespace) < len(condition.path):
        return False
    turn: Callable[[Sequence[str]], Iterable[str]] = reversed if condition.is_suffix else iter
    return all(wanted in ("*", label) for label, wanted in zip(turn(namespace), turn(condition.path), strict=False))


def _each_once(namespaces: Iterable[Labels]) -> Iterator[Labels]:
    """Deduplicate sorted namespaces."""
    last: Labels | None = None
    for each in namespaces:
        if each != last:
            yield each
        last = each
