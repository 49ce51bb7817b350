"""Conditions that hold in the transaction of the write they are for: If-Match, and Idempotency-Key (LG-06).

A request with a condition gets a context of its own: the same store, caches and policy, but an engine that checks the
condition first thing in the first transaction that writes, so that nothing can come between the check and the write.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from muniment.core.canonical import canonical_bytes, digest, salted_digest
from muniment.core.ports.engine import Engine, Lock, Reader, Transaction
from muniment.core.ports.models import Ids
from muniment.core.ports.rows import get
from muniment.core.ports.schema import ENTRIES, IDEMPOTENCY_KEYS, IdempotencyKeyRow
from muniment.errors import Conflict, Forgotten, IdempotencyMismatch, StaleState
from muniment.store.append import put_keys
from muniment.store.context import Context
from muniment.store.items import Item, latest
from muniment.store.tombstones import forgotten, load_entry

__all__ = ["Repeated", "Request", "Versioned", "guarded", "key_hash"]

T = TypeVar("T")


class Repeated(Conflict):
    """The same request was carried out before; `details.event_id` is what it wrote."""

    usual_hint = "it was done; read what stands now: its answer is no longer kept"


class Request(NamedTuple):
    """A request under an idempotency key, and who it is for."""

    tenant_id: str
    user_id: str
    key: str
    said: bytes
    """What was asked, to tell another request under the same key."""


def key_hash(request: Request) -> bytes:
    """The hash of an idempotency key, as the ledger has it: keys of `observe` and of everything else are one kind."""
    return digest(canonical_bytes(["muniment.idempotency.v1", request.tenant_id, request.user_id, request.key]))


class Versioned(NamedTuple):
    """What an ETag, or If-Match, is about: an item, as far as whoever asks may know of it."""

    item_id: str
    sees: Callable[[Item], bool]

    def version(self, reader: Reader) -> int:
        """The number of the item's newest version; 0 before there is one, and of one that is another's (X-09)."""
        item = latest(reader, self.item_id)
        return 0 if item is None or not self.sees(item) else item.version


def guarded(ctx: Context, request: Request | None, versioned: Versioned | None, wanted: int | None) -> Context:
    """The context under which a request is carried out; the store's own where there is nothing to hold."""
    if request is None and wanted is None:
        return ctx
    for name in ("counter", "derived"):
        getattr(ctx, name)  # made once, by the context that stays
    own = copy.copy(ctx)
    noted = _NotedIds(ctx.ids)
    own.ids = noted
    first, last = _first(request, versioned, wanted), _last(request, noted)
    own.engine = cast("Engine", _GuardedEngine(ctx.engine, first, _next_of(versioned, wanted), last))
    return own


def _first(request: Request | None, versioned: Versioned | None, wanted: int | None) -> Callable[[Transaction], None]:
    def check(tx: Transaction) -> None:
        if request is not None:
            _check_key(tx, request)
        if versioned is not None and wanted is not None:
            tx.do(Lock(("if_match", versioned.item_id)))  # one of those that name a version at a time
            _must_be(tx, versioned, (wanted,))

    return check


def _next_of(versioned: Versioned | None, wanted: int | None) -> Callable[[Transaction], None]:
    """Whoever names no version takes no such lock, and may have come between: then ours is not the next one."""

    def check(tx: Transaction) -> None:
        if versioned is not None and wanted is not None:
            _must_be(tx, versioned, (wanted, wanted + 1))

    return check


def _must_be(tx: Transaction, versioned: Versioned, versions: tuple[int, ...]) -> None:
    current = versioned.version(tx)
    if current not in versions:
        words = f"it is at version {current}, not {versions[0]}"
        raise StaleState(words, details={"id": versioned.item_id, "current_version": current})


def _check_key(tx: Transaction, request: Request) -> None:
    named = key_hash(request)
    tx.do(Lock(("idempotency", request.user_id, named.hex())))
    key = get(tx, IDEMPOTENCY_KEYS, (request.user_id, named))
    if key is None:
        return
    entry_id = key.entry_id
    entry_row = get(tx, ENTRIES, (entry_id,))
    said = "what this idempotency key wrote was forgotten"
    if entry_row is None:
        raise Forgotten(said, details={"id": entry_id, "receipt_id": None})
    entry = load_entry(tx, request.tenant_id, entry_row)
    if entry.is_forgotten:
        raise forgotten(entry, said)
    if key.request_hash != salted_digest(entry_row.salt or b"", request.said):
        raise IdempotencyMismatch("this idempotency key was used for another request", details={"id": entry_id})
    raise Repeated("this was done before under the same idempotency key", details={"event_id": entry_id})


def _last(request: Request | None, noted: _NotedIds) -> Callable[[Transaction], bool]:
    """Remember the key with the first event that was written; was there one?"""

    def remember(tx: Transaction) -> bool:
        if request is None:
            return True
        for entry_id in noted.events:
            row = get(tx, ENTRIES, (entry_id,))
            if row is not None:
                said = salted_digest(row.salt or b"", request.said)
                put_keys(tx, [IdempotencyKeyRow(request.user_id, key_hash(request), entry_id, said)])
                return True
        return False

    return remember


class _NotedIds:
    """The store's ids; those of events are noted as they are minted."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self.events: list[str] = []

    def new(self, prefix: str) -> str:
        made = self._ids.new(prefix)
        if prefix == "evt":
            self.events.append(made)
        return made

    def salts(self, count: int) -> list[bytes]:
        return self._ids.salts(count)


class _GuardedEngine:
    """An engine whose first writing transaction begins with `first` and ends with `then`; `last` ends it, and those
    after it, until it is satisfied."""

    def __init__(
        self,
        engine: Engine,
        first: Callable[[Transaction], None],
        then: Callable[[Transaction], None],
        last: Callable[[Transaction], bool],
    ) -> None:
        self._engine, self._first, self._then, self._last = engine, first, then, last
        self._is_checked = self._is_kept = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def write(self, tenant_id: str, work: Callable[[Transaction], T]) -> T:
        def held(tx: Transaction) -> tuple[T, bool]:
            if not self._is_checked:
                self._first(tx)
            answer = work(tx)
            if not self._is_checked:
                self._then(tx)
            return answer, self._is_kept or self._last(tx)

        answer, self._is_kept = self._engine.write(tenant_id, held)
        self._is_checked = True
        return answer
