"""The values of one store of an agent: put, read, searched, removed, erased under namespaces and keys.

LangGraph's long-term memory uses this over a connection (`muniment.integrations.langgraph`). Arguments are checked
here; `muniment.memory.kept` does the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from muniment.core.instants import format_instant
from muniment.core.ports.schema import NEVER
from muniment.core.record import Items, Number, Record
from muniment.errors import InvalidInput
from muniment.memory.kept.records import (
    FoundValue,
    FoundValues,
    NamespaceMatch,
    StoredValue,
    ValuePut,
    ValueRef,
    ValueTexts,
)
from muniment.memory.kept.search import (
    PathMatch,
    Unread,
    VectorFeatures,
    Wanted,
    check_filter,
    find_values,
    given_name,
    list_namespaces,
    own_features,
    vectors_kept,
)
from muniment.memory.kept.values import KeptValue, NewValue, Values, micros, moment

if TYPE_CHECKING:
    from muniment.core.record import JsonObject
    from muniment.memory.kept.search import Features
    from muniment.store.context import Context
    from muniment.store.ledger import Receipt

__all__ = ["ValueSpace"]

AT_ONCE_MAX = 10_000
"""The most values that one call puts, reads or returns."""
R = TypeVar("R", bound=Record)


class _Vector(Record):
    vector: Items[Number]


class ValueSpace:
    """Values under namespaces and keys, of a store or of one user: `mem.store.values(name)`. Thread-safe.

    Each value comes with its search keys: texts, which the store embeds or indexes by words, or vectors of the caller's
    named embedder. `fields` names the fields that the texts come from.
    """

    def __init__(self, ctx: Context, name: str, tenant_id: str, user_at: int | None, user_id: str | None) -> None:
        if user_at is not None:
            _counted(user_at, "user_at", least=0)
        self._ctx = ctx
        self._values = Values(ctx, tenant_id, name, user_at, user_id)

    # -- writing --------------------------------------------------------------------------------------

    def put(
        self,
        values: Sequence[ValuePut | Mapping[str, Any]],
        *,
        removed: Sequence[ValueRef | Mapping[str, Any]] = (),
        fields: Sequence[str] | None = None,
        embedder: str | None = None,
    ) -> int:
        """Put values under their names, and remove those under others, in one transaction; returns how many.

        Earlier values stay in history. A name may occur only once in a call.
        """
        puts = _given(ValuePut, values, "$.values")
        gone = [_name(each) for each in _given(ValueRef, removed, "$.removed")]
        names = [(each.namespace, each.key) for each in puts] + gone
        if len(set(names)) < len(names):
            raise InvalidInput("a name stands twice", path="$.values", hint="put each name once in a call")
        features, kept = self._compared(puts, fields, embedder)
        standing = self._values.get_many(gone) if gone else {}
        new = [NewValue(each.namespace, each.key, each.value, _index(each.index), each.ttl_minutes) for each in puts]
        self._values.write(new, [each for each in gone if each in standing], self._ctx.clock(), {features: kept})
        return len(new) + len(standing)

    def fill(
        self,
        values: Sequence[ValueTexts | Mapping[str, Any]],
        *,
        fields: Sequence[str] | None = None,
        embedder: str | None = None,
    ) -> int:
        """Store the search keys of values that a search reported as unread; returns how many values."""
        given = _given(ValueTexts, values, "$.values")
        features, kept = self._compared(given, fields, embedder)
        return self._values.fill({each.event_id: made for each, made in zip(given, kept, strict=True)}, features)

    def prolong(self, names: Sequence[ValueRef | Mapping[str, Any]]) -> int:
        """Restart the lifetime of values, as long as given when they were put; returns how many."""
        found = self._got(names)
        mortal = [each for each in found if each.ttl_minutes is not None]
        self._values.prolong(mortal, self._ctx.clock())
        return len(mortal)

    def sweep(self, *, erase: bool = False) -> int:
        """Remove expired values; returns how many. Reads never return them, swept or not.

        With `erase` they are forgotten, with their history.
        """
        now = self._ctx.clock()
        expired = [(each.labels, each.key) for each in self._values.expired(now)]
        if erase:
            self._values.erase(expired)
        else:
            self._values.write([], expired, now)
        return len(expired)

    def forget(self, names: Sequence[ValueRef | Mapping[str, Any]]) -> list[Receipt]:
        """Erase values with all their versions; returns the receipts."""
        return self._values.erase([_name(each) for each in _given(ValueRef, names, "$.names")])

    # -- reading --------------------------------------------------------------------------------------

    def get(self, names: Sequence[ValueRef | Mapping[str, Any]]) -> list[StoredValue]:
        """The unexpired values under these names; names without a value are left out."""
        return [_stored(each) for each in self._got(names)]

    def search(
        self,
        namespace: Sequence[str] = (),
        *,
        query: str | None = None,
        filter: JsonObject | None = None,
        limit: int = 10,
        offset: int = 0,
        fields: Sequence[str] | None = None,
        embedder: str | None = None,
        vector: Sequence[float] | None = None,
    ) -> FoundValues:
        """Values below a namespace: matches of a query, best first; else the last changed first.

        With the name of the caller's own `embedder` the query is given by its `vector`. `filter` maps fields to values
        they must equal, or to `$gt`, `$gte`, `$lt`, `$lte`, `$ne`.
        """
        labels = _labels(namespace)
        check_filter(filter)
        page = _counted(offset, "offset"), _counted(limit, "limit", most=AT_ONCE_MAX)
        if query is not None and not isinstance(query, str):
            raise InvalidInput("query should be a text", path="$.query")
        try:
            found = find_values(
                self._values,
                Wanted(labels, query, filter, *page, vector=_vector(vector, query, embedder)),
                self._features(fields, embedder),
                None,
                self._ctx.clock(),
            )
        except Unread as missing:
            return FoundValues(found=(), unread=tuple(map(_stored, missing.values)))
        return FoundValues(found=tuple(_found(*each) for each in found))

    def namespaces(
        self,
        matches: Sequence[NamespaceMatch | Mapping[str, Any]] = (),
        *,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """The namespaces that hold values, in order: those with the given prefix or suffix, cut to a depth."""
        conditions = [PathMatch(each.path, each.is_suffix) for each in _given(NamespaceMatch, matches, "$.matches")]
        depth = None if max_depth is None else _counted(max_depth, "max_depth", least=1)
        page = _counted(offset, "offset"), _counted(limit, "limit", most=AT_ONCE_MAX)
        return list_namespaces(self._values, conditions, depth, *page, self._ctx.clock())

    def history(self, namespace: Sequence[str], key: str) -> list[StoredValue]:
        """Every value ever put under a name and not erased, oldest first."""
        name = ValueRef.of_given({"namespace": namespace, "key": key}, "not the name of a value")
        return [_stored(each) for each in self._values.history(name.namespace, name.key)]

    # -- helpers --------------------------------------------------------------------------------------

    def _got(self, names: Sequence[ValueRef | Mapping[str, Any]]) -> list[KeptValue]:
        asked = dict.fromkeys(_name(each) for each in _given(ValueRef, names, "$.names"))
        found = self._values.get_many(list(asked))
        now = micros(self._ctx.clock())
        return [found[name] for name in asked if name in found and now <= found[name].expires]

    def _features(self, fields: Sequence[str] | None, embedder: str | None) -> Features:
        if embedder is None:
            return own_features(self._ctx.embedder, fields)[0]
        if not isinstance(embedder, str) or not 0 < len(embedder) <= 200:
            raise InvalidInput("an embedder has a name of at most 200 characters", path="$.embedder")
        return VectorFeatures(given_name(embedder), _no_texts)

    def _compared(
        self, given: Sequence[ValuePut | ValueTexts], fields: Sequence[str] | None, embedder: str | None
    ) -> tuple[str, list[list[bytes]]]:
        """The search keys of each value, and the name of what made them."""
        features = self._features(fields, embedder)
        if embedder is not None:
            vectors = [each.vectors or () for each in given]
            made = vectors_kept([vector for some in vectors for vector in some], "$.values")
            return features.name, _dealt(made, [len(some) for some in vectors])
        joined = own_features(self._ctx.embedder, fields)[1]
        texts = [[text for text in each.texts or () if text.strip()] for each in given]
        said = [["\n".join(some)] if joined and some else some for some in texts]
        return features.name, _dealt(features.made([text for some in said for text in some]), list(map(len, said)))


def _dealt(made: Sequence[bytes], counts: Sequence[int]) -> list[list[bytes]]:
    rest = iter(made)
    return [[next(rest) for _ in range(count)] for count in counts]


def _vector(vector: Any, query: str | None, embedder: str | None) -> Sequence[float] | None:
    """The query's vector, for the caller's own embedder."""
    if embedder is None and vector is not None:
        raise InvalidInput("a vector is of an embedder", path="$.embedder", hint="name it")
    if embedder is None or not query:
        return None
    if vector is None:
        raise InvalidInput("the vector of the query is missing", path="$.vector", hint="embed it as the values were")
    return _Vector.of_given({"vector": vector}, "not a vector").vector


def _no_texts(_: Sequence[str]) -> Sequence[Sequence[float]]:
    raise InvalidInput("an embedder of the caller's is not asked here", path="$.vectors")


def _given(cls: type[R], values: Any, path: str) -> list[R]:
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence) or len(values) > AT_ONCE_MAX:
        raise InvalidInput(f"wanted an array of at most {AT_ONCE_MAX}", path=path)
    return [
        each if isinstance(each, cls) else cls.of_given(each, f"not a valid {cls.__name__}", path=f"{path}[{at}]")
        for at, each in enumerate(values)
    ]


def _labels(namespace: Sequence[str]) -> tuple[str, ...]:
    return NamespaceMatch.of_given({"path": namespace}, "not a namespace").path


def _name(ref: ValueRef) -> tuple[tuple[str, ...], str]:
    return ref.namespace, ref.key


def _counted(value: Any, name: str, *, least: int = 0, most: int | None = None) -> int:
    if type(value) is not int or value < least or (most is not None and value > most):
        bound = f"from {least} to {most}" if most is not None else f"of at least {least}"
        raise InvalidInput(f"{name} should be a whole number {bound}", path=f"$.{name}")
    return value


def _index(index: Any) -> Any:
    return list(index) if isinstance(index, tuple) else index


def _stored(value: KeptValue) -> StoredValue:
    told: dict[str, Any] = {"index": value.index, "ttl_minutes": value.ttl_minutes}
    if value.expires != NEVER:
        told["expires_at"] = format_instant(moment(value.expires))
    return StoredValue(
        event_id=value.entry_id,
        namespace=value.labels,
        key=value.key,
        value=value.value,
        status=value.state,
        created_at=format_instant(moment(value.made)),
        updated_at=format_instant(moment(value.changed)),
        **{name: each for name, each in told.items() if each is not None},
    )


def _found(value: KeptValue, score: float | None) -> FoundValue:
    stored = _stored(value)
    return FoundValue(value=stored) if score is None else FoundValue(value=stored, score=score)
