"""The values of a LangGraph store opened in this process, and the interface of values, local or remote."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from muniment.integrations.langgraph.texts import features_of
from muniment.memory.kept.search import PathMatch, Wanted, find_values, list_namespaces
from muniment.memory.kept.values import KeptValue, NewValue, Values, micros

if TYPE_CHECKING:
    from langgraph.store.base import IndexConfig

    from muniment.core.ports.models import Clock
    from muniment.store.context import Context
    from muniment.store.ledger import Receipt

__all__ = ["Named", "Namespace", "NearValues", "StoreSettings", "StoreValues"]

Namespace = tuple[str, ...]
Named = tuple[Namespace, str]


class StoreSettings(NamedTuple):
    """Settings of a store: its names, the parts of values it reads, and its clock for expiry."""

    name: str
    tenant_id: str
    user_at: int | None
    user_id: str | None
    index_config: IndexConfig | None
    fields: Sequence[str] | None
    clock: Clock


class StoreValues(Protocol):
    """Operations a store needs of its values."""

    def get(self, named: Sequence[Named]) -> dict[Named, KeptValue]:
        """Values under these names that have not expired."""
        ...

    def search(self, wanted: Wanted) -> list[tuple[KeptValue, float | None]]: ...

    def namespaces(
        self, conditions: Sequence[PathMatch], max_depth: int | None, offset: int, limit: int
    ) -> list[Namespace]: ...

    def put(self, puts: Sequence[NewValue], removed: Sequence[Named] = ()) -> None:
        """Put and remove values in one transaction; names without a value are ignored."""
        ...

    def prolong(self, values: Collection[KeptValue]) -> None: ...

    def sweep(self, *, erase: bool) -> int: ...

    def history(self, labels: Namespace, key: str) -> list[KeptValue]: ...

    def erase(self, named: Sequence[Named]) -> list[Receipt]: ...


class NearValues:
    """Values of a store opened in this process, accessed directly."""

    def __init__(self, ctx: Context, settings: StoreSettings) -> None:
        self._values = Values(ctx, settings.tenant_id, settings.name, settings.user_at, settings.user_id)
        self._features, self._texts = features_of(settings.index_config, ctx.embedder, settings.fields)
        self._clock = settings.clock

    def get(self, named: Sequence[Named]) -> dict[Named, KeptValue]:
        now = micros(self._clock())
        return {name: value for name, value in self._values.get_many(named).items() if now <= value.expires}

    def search(self, wanted: Wanted) -> list[tuple[KeptValue, float | None]]:
        return find_values(self._values, wanted, self._features, self._texts_of, self._clock())

    def namespaces(
        self, conditions: Sequence[PathMatch], max_depth: int | None, offset: int, limit: int
    ) -> list[Namespace]:
        return list_namespaces(self._values, conditions, max_depth, offset, limit, self._clock())

    def put(self, puts: Sequence[NewValue], removed: Sequence[Named] = ()) -> None:
        standing = self._values.get_many(removed) if removed else {}
        gone = [each for each in removed if each in standing]
        if not puts and not gone:
            return
        said = [self._texts.of(new.value, new.index) for new in puts]
        made = iter(self._features.made([text for texts in said for text in texts]))
        features = {self._features.name: [list(islice(made, len(texts))) for texts in said]}
        self._values.write(puts, gone, self._clock(), features)

    def prolong(self, values: Collection[KeptValue]) -> None:
        self._values.prolong(values, self._clock())

    def sweep(self, *, erase: bool) -> int:
        now = self._clock()
        expired = [(each.labels, each.key) for each in self._values.expired(now)]
        if erase:
            self._values.erase(expired)
        else:
            self._values.write([], expired, now)
        return len(expired)

    def history(self, labels: Namespace, key: str) -> list[KeptValue]:
        return self._values.history(labels, key)

    def erase(self, named: Sequence[Named]) -> list[Receipt]:
        return self._values.erase(named)

    def _texts_of(self, value: KeptValue) -> Sequence[str]:
        return self._texts.of(value.value, value.index)
