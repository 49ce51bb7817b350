"""A LangGraph `BaseStore` over a muniment store: each put is a ledger entry, the namespace a column of one index.

A search without a query returns the latest changes first, one with a query the best matches; both cost in proportion to
their results, however many namespaces there are. Reads of a batch see the state before its writes, as in LangGraph's
own stores; all writes of a batch are one transaction.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from muniment.core.instants import format_instant
from muniment.core.outside.system import system_clock
from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.langgraph.earlier import EarlierItems
from muniment.integrations.langgraph.far_values import FarValues
from muniment.integrations.langgraph.near_values import Named, Namespace, NearValues, StoreSettings, StoreValues
from muniment.integrations.langgraph.sweeper import Sweeper
from muniment.integrations.packages import missing
from muniment.memory.kept.search import PathMatch, Wanted
from muniment.memory.kept.values import KeptValue, NewValue, micros, moment

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        ensure_embeddings,
        validate_op_namespace,
    )
    from langgraph.store.base.batch import AsyncBatchedBaseStore
except ModuleNotFoundError as error:
    raise missing("langgraph", "langgraph", error) from error

if TYPE_CHECKING:
    from muniment.core.ports.models import Clock
    from muniment.handles.memory import Memory
    from muniment.store.ledger import Receipt

__all__ = ["AsyncMunimentStore", "MunimentStore"]

_REFRESH_SHARE = 0.1
"""Share of the time to live after which a read extends it, as each extension is a write."""
_SWEEP_MINUTES = 5.0


class MunimentStore(BaseStore):
    """LangGraph's long-term memory in a muniment store.

    `user_at` is the index of the namespace label that names a user: `("memories", "ana")` with `user_at=1` is ana's
    own, and is forgotten with `mem.forget(user_id="ana")`. `index` is LangGraph's, with its embedder and fields; a
    score is then the cosine, as in LangGraph's own stores. Without it the store's embedder is used, or else words: a
    score is then the share of the query's words, weighted by rarity, that occur in the item. `fields` are the paths
    that are searched if there is no `index`, by default all texts of a value. A delete retracts, so that history stays;
    with `erase=True` it forgets. `name` separates stores in one file.

    With `user_id` the store is limited to that user: with `user_at`, to the user's label within the shared store;
    without, to a separate store. `mem` is opened here or connected to. A connection whose key is for one user is
    limited to that user too; values then expire by the server's clock.
    """

    supports_ttl = True

    def __init__(
        self,
        mem: Memory,
        *,
        name: str = "langgraph",
        user_at: int | None = None,
        index: IndexConfig | None = None,
        fields: Sequence[str] | None = None,
        erase: bool = False,
        ttl: TTLConfig | None = None,
        user_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        clock: Clock = system_clock,
    ) -> None:
        self.ttl_config = ttl
        self.index_config = index
        self.embeddings = None if index is None else ensure_embeddings(index.get("embed"))
        self._erase = erase
        self._clock = clock
        user_id = mem._user_id if user_id is None else user_id
        settings = StoreSettings(name, tenant_id, user_at, user_id, index, fields, clock)
        self._values = _values_of(mem, settings)
        # An earlier version had no store limited to one user.
        self._earlier = None if user_id is not None else EarlierItems(mem, name, tenant_id, user_at)
        self._sweeper = Sweeper(self.sweep_ttl)
        self._taken_over = False
        self._taking_over = threading.Lock()

    # -- what LangGraph calls -------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        self._take_over()
        got = self._get([op for op in asked if isinstance(op, GetOp)])
        results = [self._read(op, got) for op in asked]
        writes = {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        self._write(list(writes.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Remove expired values; return how many. Reads skip them even if they were not swept."""
        self._take_over()
        return self._values.sweep(erase=self._erase)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep at intervals in a separate thread, until the future is cancelled or the sweeper is stopped."""
        config = self.ttl_config
        if not config:
            done: Future[None] = Future()
            done.set_result(None)
            return done
        return self._sweeper.start(
            float(sweep_interval_minutes or config.get("sweep_interval_minutes") or _SWEEP_MINUTES)
        )

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the thread; return whether it ended within the timeout in seconds."""
        return self._sweeper.stop(timeout)

    def history(self, namespace: Namespace, key: str) -> list[tuple[dict[str, Any], str, str]]:
        """Every value of an item that was not erased: the value, when it was put, its state."""
        self._take_over()
        held = self._values.history(namespace, key)
        kept = [(each.value, format_instant(moment(each.changed)), each.state) for each in held]
        earlier = [] if self._earlier is None else self._earlier.history(namespace, key)
        return earlier + kept

    def forget(self, namespace: Namespace, key: str) -> list[Receipt]:
        """Erase an item with all its values; return the receipts."""
        self._take_over()
        if self._earlier is not None:
            self._earlier.erase(namespace, key)
        return self._values.erase([(namespace, key)])

    # -- reading --------------------------------------------------------------------------------------

    def _get(self, ops: Sequence[GetOp]) -> dict[Named, KeptValue]:
        live = self._values.get(list(dict.fromkeys((op.namespace, op.key) for op in ops))) if ops else {}
        self._refresh(live[op.namespace, op.key] for op in ops if op.refresh_ttl and (op.namespace, op.key) in live)
        return live

    def _read(self, op: Op, got: dict[Named, KeptValue]) -> Result:
        if isinstance(op, GetOp):
            value = got.get((op.namespace, op.key))
            return None if value is None else _item(value)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list(op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """Items that match the query, best first; if there are too few, other items follow unscored."""
        page = self._values.search(Wanted(op.namespace_prefix, op.query, op.filter, op.offset, op.limit))
        if op.refresh_ttl:
            self._refresh(value for value, _ in page)
        return [_search_item(value, score) for value, score in page]

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = [PathMatch(tuple(each.path), each.match_type == "suffix") for each in op.match_conditions or ()]
        return self._values.namespaces(conditions, op.max_depth, op.offset, op.limit)

    # -- writing --------------------------------------------------------------------------------------

    def _write(self, ops: Sequence[PutOp]) -> None:
        puts = [
            NewValue(op.namespace, op.key, op.value, _plain_index(op.index), op.ttl)
            for op in ops
            if op.value is not None
        ]
        named = [(op.namespace, op.key) for op in ops if op.value is None]
        if self._erase:
            self._values.put(puts)  # first, so that a refusal changes nothing
            self._erase_all(named)
            return
        self._values.put(puts, named)

    def _erase_all(self, named: Sequence[Named]) -> None:
        if self._earlier is not None:
            for namespace, key in named:
                self._earlier.erase(namespace, key)
        if named:
            self._values.erase(named)

    def _refresh(self, values: Iterable[KeptValue]) -> None:
        mortal = {each.entry_id: each for each in values if each.ttl_minutes is not None}
        if mortal:
            now = micros(self._clock())
            due = [each for each in mortal.values() if _is_due(each, now)]
            if due:
                self._values.prolong(due)

    # -- small things ---------------------------------------------------------------------------------

    def _take_over(self) -> None:
        """Migrate the items of an earlier version, once."""
        if self._taken_over:
            return
        with self._taking_over:
            if not self._taken_over and self._earlier is not None and self._earlier.is_there:
                self._earlier.take_over(self._values.put)
            self._taken_over = True


class AsyncMunimentStore(AsyncBatchedBaseStore):
    """A `MunimentStore` for an event loop: requests of one tick go to the store as one batch, in a thread.

    It takes the arguments of `MunimentStore` and must be created inside a running loop. `store` is the underlying
    store.
    """

    supports_ttl = True

    def __init__(self, mem: Memory, **given: Any) -> None:
        super().__init__()
        self.store = MunimentStore(mem, **given)
        self.ttl_config = self.store.ttl_config
        self.index_config = self.store.index_config

    async def __aenter__(self) -> AsyncMunimentStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
        await asyncio.to_thread(self.store.stop_ttl_sweeper)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self.store.abatch(ops)

    async def sweep_ttl(self) -> int:
        return await asyncio.to_thread(self.store.sweep_ttl)

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> asyncio.Future[None]:
        return asyncio.wrap_future(self.store.start_ttl_sweeper(sweep_interval_minutes))

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        return await asyncio.to_thread(self.store.stop_ttl_sweeper, timeout)


def _values_of(mem: Memory, settings: StoreSettings) -> StoreValues:
    if mem._is_near:
        return NearValues(mem._ctx, settings)
    space = mem.store.values(
        settings.name, user_at=settings.user_at, user_id=settings.user_id, tenant_id=settings.tenant_id
    )
    return FarValues(space, settings)


def _plain_index(index: Any) -> Any:
    return list(index) if isinstance(index, tuple) else index


def _is_due(value: KeptValue, now: int) -> bool:
    lifetime = timedelta(minutes=value.ttl_minutes or 0) // timedelta(microseconds=1)
    return now - (value.expires - lifetime) >= lifetime * _REFRESH_SHARE


def _item(value: KeptValue) -> Item:
    return Item(
        value=value.value,
        key=value.key,
        namespace=value.labels,
        created_at=moment(value.made),
        updated_at=moment(value.changed),
    )


def _search_item(value: KeptValue, score: float | None) -> SearchItem:
    return SearchItem(value.labels, value.key, value.value, moment(value.made), moment(value.changed), score)
