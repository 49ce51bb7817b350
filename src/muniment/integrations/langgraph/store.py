"""A LangGraph `BaseStore` whose items are documents of a muniment store.

Each namespace is a corpus of its own, each item a document, each put a revision. A search reads what stands with
muniment's own recall: by words, and by meaning where the store has an embedder. Reads of a batch see what stood before
its writes, as in LangGraph's own stores; what it puts is put in one transaction, each delete is one of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import short_id
from muniment.core.instants import format_instant, parse_instant
from muniment.core.outside.system import system_clock
from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.keyed_documents import Kept, KeyedDocuments, Put, put_all
from muniment.integrations.langgraph.filters import matches
from muniment.integrations.packages import missing

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )
except ModuleNotFoundError as error:
    raise missing("langgraph", "langgraph", error) from error

if TYPE_CHECKING:
    from muniment.core.ports.outside import Clock
    from muniment.handles.memory import Memory

__all__ = ["MunimentStore"]

Namespace = tuple[str, ...]

_HITS_MAX = 1000
_REFRESH_SHARE = 0.1
"""A read moves an expiry only once this share of the time to live has passed, since each move is a write."""


class MunimentStore(BaseStore):
    """LangGraph's long-term memory in a muniment store.

    `user_at` says which label of a namespace names a user: `("memories", "ana")` with `user_at=1` is ana's own, and
    goes with `mem.forget(user_id="ana")`. `fields` are the paths that a search reads, by default all texts of a value.
    A delete retracts, so that history stays; with `erase=True` it forgets. `name` keeps stores in one file apart.
    """

    supports_ttl = True

    def __init__(
        self,
        mem: Memory,
        *,
        name: str = "langgraph",
        user_at: int | None = None,
        fields: Sequence[str] | None = None,
        erase: bool = False,
        ttl: TTLConfig | None = None,
        tenant_id: str = DEFAULT_TENANT,
        clock: Clock = system_clock,
    ) -> None:
        self.ttl_config = ttl
        self._mem = mem
        self._name = name
        self._user_at = user_at
        self._fields = None if fields is None else tuple(fields)
        self._erase = erase
        self._tenant_id = tenant_id
        self._clock = clock
        self._namespaces = KeyedDocuments(mem, short_id("lgn", name), tenant_id=tenant_id)

    # -- what LangGraph calls -------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        results = [None if isinstance(op, PutOp) else self._read(op) for op in asked]
        writes = {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        self._put([op for op in writes.values() if op.value is not None])  # first: what is refused leaves all as it was
        for op in writes.values():
            if op.value is None:
                self._documents_of(op.namespace).take(op.key, erase=self._erase)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Take out what has expired; answers how many. Reads leave it out whether or not it was swept."""
        swept = 0
        for namespace in self._matching(()):
            documents = self._documents_of(namespace)
            for kept in documents.all():
                if self._is_expired(kept):
                    swept += documents.take(kept.key, erase=self._erase)
        return swept

    def history(self, namespace: Namespace, key: str) -> list[tuple[dict[str, Any], str, str]]:
        """Every value an item has had that was not erased: the value, when it was put, how it stands."""
        return [(_value(kept), kept.written_at, status) for kept, status in self._documents_of(namespace).history(key)]

    # -- reading --------------------------------------------------------------------------------------

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            kept = self._live(self._documents_of(op.namespace).get(op.key))
            return None if kept is None else self._item(op.namespace, kept, refreshes=op.refresh_ttl)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """What answers the query, best first; where that is fewer than asked for, other items follow unscored."""
        end = op.offset + op.limit
        namespaces = list(self._matching(op.namespace_prefix))
        found: dict[tuple[Namespace, str], tuple[Namespace, Kept, float | None]] = {}
        if op.query:
            found |= {(hit[0], hit[1].key): hit for hit in self._scored(namespaces, op, end)}
        if len(found) < end:
            for other in self._unscored(namespaces, op):
                found.setdefault((other[0], other[1].key), other)
        page = islice(found.values(), op.offset, end)
        return [_scored_item(self._item(space, kept, refreshes=op.refresh_ttl), score) for space, kept, score in page]

    def _scored(self, namespaces: list[Namespace], op: SearchOp, end: int) -> list[tuple[Namespace, Kept, float]]:
        """The items by score. Each namespace is an index of its own, so across several the order is approximate."""
        k = min(_HITS_MAX, max(1, end) * (8 if op.filter else 2))
        hits: list[tuple[Namespace, Kept, float]] = []
        for namespace in namespaces:
            found = self._documents_of(namespace).find(op.query or "", k)
            fitting = ((namespace, kept, score) for kept, score in found if self._is_asked(kept, op))
            hits += islice(fitting, end)
        return sorted(hits, key=lambda hit: -hit[2])

    def _is_asked(self, kept: Kept, op: SearchOp) -> bool:
        is_indexed = kept.value["index"] is not False
        return is_indexed and not self._is_expired(kept) and matches(_value(kept), op.filter)

    def _unscored(self, namespaces: list[Namespace], op: SearchOp) -> Iterator[tuple[Namespace, Kept, None]]:
        """The items in the order in which they were first put."""
        for namespace in namespaces:
            for kept in sorted(self._documents_of(namespace).all(), key=lambda kept: (_created_at(kept), kept.key)):
                if self._live(kept) and matches(_value(kept), op.filter):
                    yield namespace, kept, None

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        fitting = (each for each in self._matching(()) if all(_fits(each, condition) for condition in conditions))
        filled = (each for each in fitting if any(map(self._live, self._documents_of(each).all())))
        cut = dict.fromkeys(each if op.max_depth is None else each[: op.max_depth] for each in filled)
        return sorted(cut)[op.offset : op.offset + op.limit]

    def _matching(self, prefix: Namespace) -> Iterator[Namespace]:
        for kept in self._namespaces.all():
            labels = kept.value["namespace"]
            assert isinstance(labels, list)
            namespace = tuple(map(str, labels))
            if namespace[: len(prefix)] == tuple(prefix):
                yield namespace

    # -- writing --------------------------------------------------------------------------------------

    def _put(self, ops: Sequence[PutOp]) -> None:
        keys: dict[Namespace, list[str]] = {}
        for op in ops:
            keys.setdefault(op.namespace, []).append(op.key)
        before = {namespace: self._documents_of(namespace).get_many(held) for namespace, held in keys.items()}
        puts = [self._put_of(op, self._live(before[op.namespace].get(op.key))) for op in ops]
        for namespace in keys:
            labels = list(namespace)
            puts.append(Put(self._namespaces, short_id("ns", labels), {"namespace": labels}, "/".join(labels)))
        put_all(puts)

    def _put_of(self, op: PutOp, before: Kept | None) -> Put:
        assert op.value is not None
        now = format_instant(self._clock())
        said = {
            "item": dict(op.value),
            "index": op.index,
            "created_at": now if before is None else _created_at(before),
            "updated_at": now,
            "ttl_minutes": op.ttl,
            "read_at": now,
        }
        return Put(self._documents_of(op.namespace), op.key, said, self._text(said))

    def _item(self, namespace: Namespace, kept: Kept, *, refreshes: bool) -> Item:
        if refreshes and kept.value["ttl_minutes"] is not None:
            self._refresh(namespace, kept)
        return Item(
            value=_value(kept),
            key=kept.key,
            namespace=namespace,
            created_at=parse_instant(_created_at(kept)),
            updated_at=parse_instant(str(kept.value["updated_at"])),
        )

    def _refresh(self, namespace: Namespace, kept: Kept) -> None:
        now = self._clock()
        if now - _read_at(kept) >= _ttl(kept) * _REFRESH_SHARE:
            said = {**kept.value, "read_at": format_instant(now)}
            self._documents_of(namespace).put(kept.key, said, self._text(said))

    def _text(self, said: Mapping[str, Any]) -> str:
        """What a search reads of a value: the texts at the paths it is indexed by, or all there are."""
        index = said["index"]
        if index is False:
            return ""
        fields = self._fields if index is None else index
        if fields is None:
            return "\n".join(_leaves(said["item"]))
        return "\n".join(text for field in fields for text in get_text_at_path(said["item"], tokenize_path(field)))

    # -- small things ---------------------------------------------------------------------------------

    def _documents_of(self, namespace: Namespace) -> KeyedDocuments:
        at = self._user_at
        user_id = namespace[at] if at is not None and at < len(namespace) else None
        return KeyedDocuments(
            self._mem, short_id("lg", [self._name, *namespace]), user_id=user_id, tenant_id=self._tenant_id
        )

    def _live(self, kept: Kept | None) -> Kept | None:
        return None if kept is None or self._is_expired(kept) else kept

    def _is_expired(self, kept: Kept) -> bool:
        return kept.value["ttl_minutes"] is not None and self._clock() > _read_at(kept) + _ttl(kept)


def _value(kept: Kept) -> dict[str, Any]:
    item = kept.value["item"]
    assert isinstance(item, dict)
    return dict(item)


def _created_at(kept: Kept) -> str:
    return str(kept.value["created_at"])


def _read_at(kept: Kept) -> datetime:
    return parse_instant(str(kept.value["read_at"]))


def _ttl(kept: Kept) -> timedelta:
    minutes = kept.value["ttl_minutes"]
    assert isinstance(minutes, int | float)
    return timedelta(minutes=minutes)


def _scored_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


def _fits(namespace: Namespace, condition: MatchCondition) -> bool:
    if len(namespace) < len(condition.path):
        return False
    turn: Callable[[Sequence[str]], Iterable[str]] = reversed if condition.match_type == "suffix" else iter
    return all(wanted in ("*", label) for label, wanted in zip(turn(namespace), turn(condition.path), strict=False))


def _leaves(value: Any, name: str = "") -> Iterator[str]:
    """Texts and numbers with the name they stand under, in order."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, str(key))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each, name)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)
