"""A LangGraph `BaseStore` over a muniment store: each put an entry of the ledger, the namespace a column of one index.

A search without a query shows what changed last first, one with a query what answers best; both cost what they show,
however many namespaces there are. Reads of a batch see what stood before its writes, as in LangGraph's own stores; all
that it writes is one transaction.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from muniment.core.instants import format_instant
from muniment.core.outside.system import system_clock
from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.langgraph.earlier import EarlierItems
from muniment.integrations.langgraph.filters import matches
from muniment.integrations.langgraph.opened import context_of
from muniment.integrations.langgraph.sweeper import Sweeper
from muniment.integrations.langgraph.texts import features_of
from muniment.integrations.packages import missing
from muniment.memory.kept.search import best, newest
from muniment.memory.kept.values import KeptValue, NewValue, Values, micros, moment

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
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
    from muniment.core.ports.outside import Clock
    from muniment.handles.memory import Memory
    from muniment.store.ledger.records import Receipt

__all__ = ["AsyncMunimentStore", "MunimentStore"]

Namespace = tuple[str, ...]
Named = tuple[Namespace, str]

_REFRESH_SHARE = 0.1
"""A read moves an expiry only once this share of the time to live has passed, since each move is a write."""
_SWEEP_MINUTES = 5.0


class MunimentStore(BaseStore):
    """LangGraph's long-term memory in a muniment store.

    `user_at` says which label of a namespace names a user: `("memories", "ana")` with `user_at=1` is ana's own, and
    goes with `mem.forget(user_id="ana")`. `index` is LangGraph's: what embeds, and which fields; a score is then the
    cosine, as in LangGraph's own stores. Without it the store's embedder serves, and without that words: a score is
    the share of the query's words, by their rarity, that stand in the item. `fields` are the paths that are read where
    there is no `index`, by default all texts of a value. A delete retracts, so that history stays; with `erase=True`
    it forgets. `name` keeps stores in one file apart.
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
        tenant_id: str = DEFAULT_TENANT,
        clock: Clock = system_clock,
    ) -> None:
        ctx = context_of(mem)
        self.ttl_config = ttl
        self.index_config = index
        self.embeddings = None if index is None else ensure_embeddings(index.get("embed"))
        self._user_at = user_at
        self._erase = erase
        self._clock = clock
        self._values = Values(ctx, tenant_id, name, user_at)
        self._features, self._texts = features_of(index, ctx.embedder, fields)
        self._earlier = EarlierItems(mem, name, tenant_id, self._holder_of)
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
        """Take out what has expired; answers how many. Reads leave it out whether or not it was swept."""
        self._take_over()
        now = self._clock()
        expired = [(each.labels, each.key) for each in self._values.expired(now)]
        if self._erase:
            self._erase_all(expired)
        else:
            self._values.write([], expired, now)
        return len(expired)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep every so many minutes, in a thread of its own, until the future is cancelled or it is stopped."""
        config = self.ttl_config
        if not config:
            done: Future[None] = Future()
            done.set_result(None)
            return done
        return self._sweeper.start(
            float(sweep_interval_minutes or config.get("sweep_interval_minutes") or _SWEEP_MINUTES)
        )

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Whether the thread has stopped within so many seconds."""
        return self._sweeper.stop(timeout)

    def history(self, namespace: Namespace, key: str) -> list[tuple[dict[str, Any], str, str]]:
        """Every value an item has had that was not erased: the value, when it was put, how it stands."""
        self._take_over()
        held = self._values.history(namespace, key)
        kept = [(each.value, format_instant(moment(each.changed)), each.state) for each in held]
        return self._earlier.history(namespace, key) + kept

    def forget(self, namespace: Namespace, key: str) -> list[Receipt]:
        """Erase an item in all that it ever was; answers the receipts."""
        self._take_over()
        self._earlier.erase(namespace, key)
        return self._values.erase([(namespace, key)])

    # -- reading --------------------------------------------------------------------------------------

    def _get(self, ops: Sequence[GetOp]) -> dict[Named, KeptValue]:
        found = self._values.get_many(list(dict.fromkeys((op.namespace, op.key) for op in ops))) if ops else {}
        live = {named: value for named, value in found.items() if not self._is_expired(value)}
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
        """What answers the query, best first; where that is fewer than asked for, other items follow unscored."""
        end = op.offset + op.limit
        found: dict[str, tuple[KeptValue, float | None]] = {}
        if op.query:
            texts = lambda value: self._texts.of(value.value, value.index)  # noqa: E731
            ranked = best(self._values, op.namespace_prefix, op.query, self._features, texts, end)
            asked = ((value, score) for value, score in ranked if self._is_asked(value, op))
            found = {value.entry_id: (value, score) for value, score in islice(asked, end)}
        if len(found) < end:
            others = (value for value in newest(self._values, op.namespace_prefix, end) if value.entry_id not in found)
            for value in islice((value for value in others if self._is_asked(value, op)), end - len(found)):
                found[value.entry_id] = (value, None)
        page = list(islice(found.values(), op.offset, end))
        if op.refresh_ttl:
            self._refresh(value for value, _ in page)
        return [_search_item(value, score) for value, score in page]

    def _is_asked(self, value: KeptValue, op: SearchOp) -> bool:
        return not self._is_expired(value) and matches(value.value, op.filter)

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        found = self._values.namespaces(_fixed_prefix(conditions), self._clock())
        fitting = (each for each in found if all(_fits(each, condition) for condition in conditions))
        cut = fitting if op.max_depth is None else (each[: op.max_depth] for each in fitting)
        return list(islice(_each_once(cut), op.offset, op.offset + op.limit))

    # -- writing --------------------------------------------------------------------------------------

    def _write(self, ops: Sequence[PutOp]) -> None:
        puts = [NewValue(op.namespace, op.key, op.value, op.index, op.ttl) for op in ops if op.value is not None]
        named = [(op.namespace, op.key) for op in ops if op.value is None]
        if self._erase:
            self._put(puts)  # first: what is refused leaves all as it was
            self._erase_all(named)
            return
        standing = self._values.get_many(named) if named else {}
        self._put(puts, [each for each in named if each in standing])

    def _put(self, puts: Sequence[NewValue], removed: Sequence[Named] = ()) -> None:
        if not puts and not removed:
            return
        said = [self._texts.of(new.value, _plain_index(new.index)) for new in puts]
        made = iter(self._features.made([text for texts in said for text in texts]))
        features = {self._features.name: [list(islice(made, len(texts))) for texts in said]}
        puts = [new._replace(index=_plain_index(new.index)) for new in puts]
        self._values.write(puts, removed, self._clock(), features)

    def _erase_all(self, named: Sequence[Named]) -> None:
        for namespace, key in named:
            self._earlier.erase(namespace, key)
        if named:
            self._values.erase(named)

    def _refresh(self, values: Iterable[KeptValue]) -> None:
        now = self._clock()
        due = {each.entry_id: each for each in values if each.ttl_minutes is not None and _is_due(each, micros(now))}
        if due:
            self._values.prolong(due.values(), now)

    def _is_expired(self, value: KeptValue) -> bool:
        return micros(self._clock()) > value.expires

    # -- small things ---------------------------------------------------------------------------------

    def _holder_of(self, namespace: Namespace) -> str | None:
        at = self._user_at
        return namespace[at] if at is not None and at < len(namespace) else None

    def _take_over(self) -> None:
        """What an earlier version put, once."""
        if self._taken_over:
            return
        with self._taking_over:
            if not self._taken_over and self._earlier.is_there:
                self._earlier.take_over(self._put)
            self._taken_over = True


class AsyncMunimentStore(AsyncBatchedBaseStore):
    """A `MunimentStore` for an event loop: what is asked for in one tick goes to the store as one batch, in a thread.

    It takes the arguments of `MunimentStore` and is made where a loop runs. `store` is the store below.
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


def _fixed_prefix(conditions: Iterable[MatchCondition]) -> Namespace:
    """The labels that every namespace asked for begins with."""
    for condition in conditions:
        if condition.match_type == "prefix":
            path = tuple(condition.path)
            return path[: path.index("*")] if "*" in path else path
    return ()


def _fits(namespace: Namespace, condition: MatchCondition) -> bool:
    if len(namespace) < len(condition.path):
        return False
    turn: Callable[[Sequence[str]], Iterable[str]] = reversed if condition.match_type == "suffix" else iter
    return all(wanted in ("*", label) for label, wanted in zip(turn(namespace), turn(condition.path), strict=False))


def _each_once(namespaces: Iterable[Namespace]) -> Iterator[Namespace]:
    """They come in order, so that those that are alike stand side by side."""
    last: Namespace | None = None
    for each in namespaces:
        if each != last:
            yield each
        last = each
