"""The values of a LangGraph store over a connection: each call is one request, unless a search has to be prepared.

Texts are extracted from values here, where LangGraph is; the server compares them. An index of LangGraph's embeds here
too, and vectors are sent. The server's clock decides when values expire.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from muniment.core.instants import parse_instant
from muniment.core.ports.schema import NEVER
from muniment.errors import InvalidInput
from muniment.integrations.langgraph.near_values import Named, Namespace, StoreSettings
from muniment.integrations.langgraph.texts import ItemTexts, embedder_of, index_fields
from muniment.memory.kept.records import NamespaceMatch, StoredValue, ValuePut, ValueRef, ValueTexts
from muniment.memory.kept.search import PathMatch, Wanted, check_filter
from muniment.memory.kept.values import KeptValue, NewValue, micros

if TYPE_CHECKING:
    from muniment.handles.value_space import ValueSpace
    from muniment.store.ledger import Receipt

__all__ = ["FarValues"]


class FarValues:
    """Values over a connection."""

    def __init__(self, space: ValueSpace, settings: StoreSettings) -> None:
        self._space = space
        self._embedder = embedder_of(settings.index_config)
        index = settings.index_config
        self._texts = ItemTexts(settings.fields if index is None else index_fields(index), joined=False)
        self._compared: dict[str, Any] = {}
        """Tells the server how values are compared."""
        if self._embedder is not None:
            self._compared["embedder"] = self._embedder.name
        elif settings.fields is not None:
            self._compared["fields"] = list(settings.fields)

    def get(self, named: Sequence[Named]) -> dict[Named, KeptValue]:
        found = map(_kept, self._space.get([_ref(each) for each in named]))
        return {(each.labels, each.key): each for each in found}

    def search(self, wanted: Wanted) -> list[tuple[KeptValue, float | None]]:
        try:
            check_filter(wanted.filter)
        except InvalidInput as error:
            raise ValueError(error.message) from None  # the error of LangGraph's own stores
        asked: dict[str, Any] = dict(self._compared)
        if wanted.query and self._embedder is not None:
            asked["vector"] = self._embedder.of_query(wanted.query)
        while True:
            answer = self._space.search(
                wanted.labels,
                query=wanted.query,
                filter=None if wanted.filter is None else dict(wanted.filter),
                limit=wanted.limit,
                offset=wanted.offset,
                **asked,
            )
            if not answer.unread:
                return [(_kept(each.value), each.score) for each in answer.found]
            self._fill([_kept(each) for each in answer.unread])

    def _fill(self, values: Sequence[KeptValue]) -> None:
        """Send the features the server lacks: after a rebuild, or with another embedder."""
        said = [self._texts.of(each.value, each.index) for each in values]
        told = self._told(said)
        filled = [ValueTexts(event_id=each.entry_id, **more) for each, more in zip(values, told, strict=True)]
        if not self._space.fill(filled, **self._compared):
            raise InvalidInput("what a search compares could not be kept", hint="search again")

    def namespaces(
        self, conditions: Sequence[PathMatch], max_depth: int | None, offset: int, limit: int
    ) -> list[Namespace]:
        matches = [NamespaceMatch(path=each.path, is_suffix=each.is_suffix) for each in conditions]
        found = self._space.namespaces(matches, max_depth=max_depth, offset=offset, limit=limit)
        return [tuple(each) for each in found]

    def put(self, puts: Sequence[NewValue], removed: Sequence[Named] = ()) -> None:
        said = [self._texts.of(new.value, new.index) for new in puts]
        sent = []
        for new, compared in zip(puts, self._told(said), strict=True):
            more = {"index": new.index, "ttl_minutes": new.ttl_minutes}
            more = {name: each for name, each in more.items() if each is not None} | compared
            given = {"namespace": new.labels, "key": new.key, "value": dict(new.value), **more}
            sent.append(ValuePut.of_given(given, "this cannot be put"))
        if sent or removed:
            self._space.put(sent, removed=[_ref(each) for each in removed], **self._compared)

    def _told(self, said: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Form in which each value's texts are sent: the texts, or their vectors."""
        if self._embedder is None:
            return [{"texts": tuple(texts)} for texts in said]
        made = iter(self._embedder.of_texts([text for texts in said for text in texts]))
        return [{"vectors": tuple(tuple(next(made)) for _ in texts)} for texts in said]

    def prolong(self, values: Collection[KeptValue]) -> None:
        self._space.prolong([_ref((each.labels, each.key)) for each in values])

    def sweep(self, *, erase: bool) -> int:
        return self._space.sweep(erase=erase)

    def history(self, labels: Namespace, key: str) -> list[KeptValue]:
        return [_kept(each) for each in self._space.history(labels, key)]

    def erase(self, named: Sequence[Named]) -> list[Receipt]:
        return self._space.forget([_ref(each) for each in named])


def _ref(named: Named) -> ValueRef:
    return ValueRef(namespace=named[0], key=named[1])


def _kept(told: StoredValue) -> KeptValue:
    index = list(told.index) if isinstance(told.index, tuple) else told.index
    return KeptValue(
        told.event_id,
        told.namespace,
        told.key,
        told.value,
        index,
        told.ttl_minutes,
        told.status,
        micros(parse_instant(told.created_at)),
        micros(parse_instant(told.updated_at)),
        NEVER if told.expires_at is None else micros(parse_instant(told.expires_at)),
    )
