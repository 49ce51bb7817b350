"""What stands beside the chains and is no projection, checked table by table: tenants, ids, idempotency keys, marks,
objects, proofs. Says what is not as it was written; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from muniment.core.ports.engine import Count, Reader
from muniment.core.ports.rows import ASKED_MAX, Where, by_ids, first, get, stream, stream_texts, texts
from muniment.core.ports.schema import ENTRIES, IDEMPOTENCY, IDS, ITEMS, SESSIONS, TENANTS, USERS, IdempotencyRow
from muniment.store.context import Context
from muniment.store.idempotency import KEY_KIND, KeptKey
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
    for key in stream(reader, IDEMPOTENCY):
        fault = key_fault(reader, key)
        if fault is not None:
            found.append(differing("idempotency", key.entry_id, fault))
    if ctx.derived.marks is not None:
        found += [differing("mark", id_, reason) for id_, reason in ctx.derived.marks(reader, ())]
    found += [differing(*fault[:2], fault.reason, fault.version) for fault in proof_faults(ctx, reader, counts)]
    return found


def key_fault(reader: Reader, key: IdempotencyRow) -> str | None:
    """What is wrong with an idempotency key; None where it belongs to an event of its user."""
    entry = first(reader, ENTRIES, (("id", "=", key.entry_id),), into=_Owned)
    if entry is None or entry.user_id != key.user_id:
        return "an idempotency key names an event that is none of its user"
    if len(key.key_hash) != _HASH_BYTES or (key.request_hash is None) != (entry.receipt_id is not None):
        return "an idempotency key is not as it was written"
    if key.request_hash is not None and len(key.request_hash) != _HASH_BYTES:
        return "an idempotency key is not as it was written"
    kept = _kept_keys(reader, key.entry_id)
    if kept and not any(each.is_of(key) for each in kept):
        return "an idempotency key is not as it was written"
    return None


def _kept_keys(reader: Reader, entry_id: str) -> list[KeptKey]:
    """The keys of an event among the ids; none of those that a version of before wrote."""
    where: Where = (("id", ">", f"{entry_id}\n"), ("id", "<", f"{entry_id}\n\x7f"))
    return [KeptKey.of(id_) for id_ in texts(reader, IDS, "id", where)]


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


class _Kind(NamedTuple):
    id: str
    kind: str


def _id_faults(reader: Reader) -> Iterator[tuple[str, str]]:
    """Ids that stand for something else than what has them, for nothing, or nowhere."""
    of_events = (row.id for row in stream(reader, ENTRIES, into=_Id))
    while ids := list(islice(of_events, ASKED_MAX)):
        held = {row.id: row.kind for row in by_ids(reader, IDS, ids)}
        yield from ((id_, "the id of an event is not kept as one") for id_ in ids if held.get(id_) != "event")
    of_items = stream(reader, ITEMS, (("version", "=", 1),), into=_Kind)
    while items := list(islice(of_items, ASKED_MAX)):
        held = {row.id: row.kind for row in by_ids(reader, IDS, [item.id for item in items])}
        yield from (
            (item.id, f"the id of a {item.kind} is not kept as one") for item in items if held.get(item.id) != item.kind
        )
    yield from lost_keys(reader)
    kept = (row for row in stream(reader, IDS) if row.kind != KEY_KIND)
    while rows := list(islice(kept, ASKED_MAX)):
        events = {row.id for row in by_ids(reader, ENTRIES, [row.id for row in rows if row.kind == "event"], into=_Id)}
        made = {row.id for row in by_ids(reader, ITEMS, [row.id for row in rows if row.kind != "event"], into=_Id)}
        yield from ((row.id, f"the {row.kind} of this id is missing") for row in rows if row.id not in events | made)


def lost_keys(reader: Reader) -> Iterator[tuple[str, str]]:
    """Events whose idempotency key is no longer there: what was sent under it would be written again."""
    stored = stream(reader, IDS, (("kind", "=", KEY_KIND),))
    while rows := list(islice(stored, ASKED_MAX)):
        kept = [KeptKey.of(row.id) for row in rows]
        held = {
            (key.entry_id, key.key_hash.hex())
            for key in by_ids(reader, IDEMPOTENCY, [key.entry_id for key in kept], column="entry_id")
        }
        missing = "the idempotency key under which it was written is missing"
        yield from ((key.entry_id, missing) for key in kept if key[:2] not in held)
