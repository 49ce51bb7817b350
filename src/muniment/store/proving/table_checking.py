"""What stands beside the chains and is no projection, checked table by table: tenants, users, ids, idempotency keys,
marks, proofs. Says what is not as it was written; writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from muniment.core.ports.engine import Count, Reader
from muniment.core.ports.rows import ASKED_MAX, Where, by_ids, first, get, stream, stream_texts
from muniment.core.ports.schema import ENTRIES, IDEMPOTENCY_KEYS, ITEMS, SESSIONS, TENANTS, USERS, IdempotencyKeyRow
from muniment.store.append import number_of_key
from muniment.store.context import Context
from muniment.store.ledger.foreign import is_instant
from muniment.store.proving.proofs import proof_faults
from muniment.store.reports import Differing

__all__ = ["key_fault", "lost_keys", "table_faults"]

_HASH_BYTES = 32


def table_faults(ctx: Context, reader: Reader, tenant: str, counts: dict[str, int]) -> list[Differing]:
    """Everything of a tenant's other tables that is not as it was written."""

    def differing(kind: str, id_: str, reason: str, version: int = 0) -> Differing:
        return Differing(tenant_id=tenant, kind=kind, id=id_, version=version, reason=reason)

    found: list[Differing] = []
    entered = get(reader, TENANTS, ())
    if entered is None:
        found.append(differing("tenant", tenant, "its row is missing"))
    elif (
        not is_instant(entered.created_at)
        or first(reader, SESSIONS, (("created_at", "=", entered.created_at),)) is None
    ):
        found.append(differing("tenant", tenant, "none of its sessions began when it is said to have"))
    found += [differing("id", id_, reason) for id_, reason in _id_faults(reader)]
    found += [differing("user", user_id, reason) for user_id, reason in _user_faults(reader)]
    found += [differing("idempotency", user_id, reason) for user_id, reason in lost_keys(reader)]
    for key in stream(reader, IDEMPOTENCY_KEYS):
        fault = key_fault(reader, key)
        if fault is not None:
            found.append(differing("idempotency", key.entry_id, fault))
    if ctx.derived.marks is not None:
        found += [differing("mark", id_, reason) for id_, reason in ctx.derived.marks(reader, ())]
    found += [differing(*fault[:2], fault.reason, fault.version) for fault in proof_faults(ctx, reader, counts)]
    return found


def key_fault(reader: Reader, key: IdempotencyKeyRow) -> str | None:
    """What is wrong with an idempotency key; None where it belongs to an event of its user."""
    entry = first(reader, ENTRIES, (("id", "=", key.entry_id),), into=_Owned)
    if entry is None or entry.user_id != key.user_id:
        return "an idempotency key names an event that is none of its user"
    if len(key.key_hash) != _HASH_BYTES or (key.request_hash is None) != (entry.receipt_id is not None):
        return "an idempotency key is not as it was written"
    if key.request_hash is not None and len(key.request_hash) != _HASH_BYTES:
        return "an idempotency key is not as it was written"
    return None


def _user_faults(reader: Reader) -> Iterator[tuple[str, str]]:
    """Users whose entries are not those that their rows count, numbered from 1 on without a gap."""
    tails = {row.user_id: row.tail for row in stream(reader, USERS)}
    for user_id in sorted(tails.keys() | set(stream_texts(reader, SESSIONS, "user_id"))):
        of_user: Where = (("user_id", "=", user_id),)
        held = reader.do(Count("entries", of_user))
        last = first(reader, ENTRIES, of_user, into=_Number, order=("user_id", "n"), descending=True)
        if not tails.get(user_id, 0) == held == (0 if last is None else last.n):
            yield user_id, "its entries are not those that were counted"


class _Number(NamedTuple):
    n: int


class _Owned(NamedTuple):
    id: str
    user_id: str
    receipt_id: str | None


class _Id(NamedTuple):
    id: str


def _id_faults(reader: Reader) -> Iterator[tuple[str, str]]:
    """Ids that both an event and an item have."""
    of_items = (item.id for item in stream(reader, ITEMS, (("version", "=", 1),), into=_Id))
    while ids := list(islice(of_items, ASKED_MAX)):
        yield from (
            (row.id, "both an event and an item have this id") for row in by_ids(reader, ENTRIES, ids, into=_Id)
        )


def lost_keys(reader: Reader) -> Iterator[tuple[str, str]]:
    """Users whose idempotency keys are not those that were written: what was sent under one may be written again."""
    written = {row.user_id: row.key_sum for row in stream(reader, USERS)}
    held = Counter[str]()
    for row in stream(reader, IDEMPOTENCY_KEYS):
        held[row.user_id] += number_of_key(row.key_hash, row.entry_id)
    for user_id in sorted(written.keys() | held.keys()):
        if held[user_id] != written.get(user_id, 0):
            yield user_id, "an idempotency key is missing or altered"
