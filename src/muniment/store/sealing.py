"""Seals: what was redacted, kept for its owner where the policy says so (`ledger.redact = "seal"`).

A seal is an item beside its event, made in the transaction that writes the event and forgotten with it. It is read by
`unseal` alone: no packet, search, pointer or projection looks at one, and a dump takes it along as it is. The key is
handed in by whoever opens the store and lies nowhere in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from muniment.core.canonical import canonical_text
from muniment.core.ports.engine import Condition, Patch, Reader, Transaction
from muniment.core.ports.rows import get
from muniment.core.ports.schema import ENTRIES
from muniment.core.ports.sealing import BrokenSeal, SealKey
from muniment.core.scope import Scope
from muniment.errors import InvalidInput, MunimentError, NoSealKey, NotFound, StoreDamaged
from muniment.store.context import Context
from muniment.store.items import Change, Item, add_item, checked_item, digest_name, latest, select_items
from muniment.store.ledger.admission import SEALED, Admitted
from muniment.store.ledger.records import LedgerEntry
from muniment.store.ledger.redaction_trace import RedactedValue
from muniment.store.ledger.seals import SealOwner, Unsealed, is_seal_body, open_values, seal_values
from muniment.store.proving.tombstones import forgotten, told_entry
from muniment.store.reports import SealReport

if TYPE_CHECKING:
    from muniment.store.bulk.records import Checked

__all__ = ["KIND", "add_seal", "key_to_seal", "reseal", "seal_fault", "unseal"]

KIND = "seal"
_PAGE_ITEMS = 200
_NO_KEY_HINT = "open the store with seal_key: file:<path>, env:<NAME>, or a function"


# -- writing ------------------------------------------------------------------------------------------


def key_to_seal(ctx: Context, drafts: Sequence[Admitted | Checked]) -> SealKey | None:
    """The key for what these drafts held, under a policy that seals; None where there is nothing to seal.

    A store whose policy seals takes nothing without a key, whether or not there is a secret in it: what works today
    must not fail on the day that somebody pastes a password.
    """
    if not ctx.policy.ledger.redact_secrets:
        return None
    if ctx.seal_keys is None:
        raise NoSealKey('ledger.redact is "seal", and no key was given', path="$.seal_key", hint=_NO_KEY_HINT)
    return ctx.seal_keys()[0] if any(draft.secrets for draft in drafts) else None


def add_seal(
    ctx: Context,
    tx: Transaction,
    scope: Scope,
    key: SealKey | None,
    entry: LedgerEntry,
    values: Sequence[RedactedValue],
) -> None:
    """Keep what was redacted of an entry, in the transaction that writes it."""
    if key is None:
        raise NoSealKey("a secret is to be sealed, and no key was given", path="$.seal_key", hint=_NO_KEY_HINT)
    owner = SealOwner(scope.tenant_id, scope.user_id, entry.id)
    change = Change(
        id=ctx.ids.new(KIND),
        kind=KIND,
        status="sealed",
        body=seal_values(key, owner, values),
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=(entry.id,),
        name=digest_name(entry.id),
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        session_id=scope.session_id,
        run_id=scope.run_id,
    )
    add_item(tx, change)


# -- reading ------------------------------------------------------------------------------------------


def unseal(ctx: Context, tenant_id: str, user_id: str, event_id: str) -> Unsealed:
    """What was redacted of an event of this user's; nothing of one that had nothing redacted, or not sealed."""
    for name, given in (("user_id", user_id), ("event_id", event_id)):
        if not isinstance(given, str) or not given:
            raise InvalidInput(f"{name} should be a non-empty string", path=f"$.{name}")
    owner = SealOwner(tenant_id, user_id, event_id)
    item = ctx.engine.read(tenant_id, lambda reader: _seal_of(reader, owner))
    if item is None:
        return Unsealed(event_id=event_id, values=())
    body = item.plain()
    if not is_seal_body(body):
        raise item.damaged("it is no seal")
    key = _key_named(ctx, body["key_id"])
    try:
        return Unsealed(event_id=event_id, values=tuple(open_values(key, owner, body)))
    except BrokenSeal:
        raise item.damaged("the seal is broken, or is not of this event") from None


def _seal_of(reader: Reader, owner: SealOwner) -> Item | None:
    row = get(reader, ENTRIES, (owner.event_id,))
    if row is None or row.user_id != owner.user_id:
        raise NotFound(f"no event {owner.event_id!r:.80} in this scope", path="$.event_id")
    entry = told_entry(reader, owner.tenant_id, row)
    if entry.is_forgotten:
        raise forgotten(entry, f"the event {entry.id} was forgotten, and what was sealed of it too")
    if SEALED not in entry.flags:
        return None
    where: tuple[Condition, ...] = (
        ("kind", "=", KIND), ("user_id", "=", owner.user_id), ("name", "=", digest_name(owner.event_id))
    )  # fmt: skip
    found = select_items(reader, where, limit=2)
    if len(found) != 1 or found[0].body is None:
        raise StoreDamaged(f"what was sealed of the event {entry.id} is missing", details={"id": entry.id})
    return found[0]


def _key_named(ctx: Context, key_id: str) -> SealKey:
    if ctx.seal_keys is None:
        raise NoSealKey("no key was given", path="$.seal_key", hint=_NO_KEY_HINT)
    for key in ctx.seal_keys():
        if key.id == key_id:
            return key
    raise NoSealKey(
        f"this was sealed with the key {key_id:.40}, which was not given",
        path="$.seal_key",
        hint="add the key with which it was sealed behind the others; `muniment store reseal` brings all to the first",
        details={"key_id": key_id},
    )


# -- upkeep -------------------------------------------------------------------------------------------


def reseal(ctx: Context, tenant_id: str) -> SealReport:
    """Bring every seal of a tenant to the first key; what none of the keys opens is counted and left as it is."""
    if ctx.seal_keys is None:
        raise NoSealKey("no key was given", path="$.seal_key", hint=_NO_KEY_HINT)
    keys = {key.id: key for key in reversed(ctx.seal_keys())}
    first = next(reversed(keys.values()))
    counts = dict.fromkeys(("resealed", "kept", "locked"), 0)
    place: tuple[str, int] | None = None
    while True:
        items = ctx.engine.read(tenant_id, partial(_page, place))
        ids = [item.id for item in items if item.body is not None]
        for name in ctx.engine.write(tenant_id, partial(_reseal_page, tenant_id, ids, keys, first)):
            counts[name] += 1
        if len(items) < _PAGE_ITEMS:
            return SealReport(tenant_id=tenant_id, key_id=first.id, **counts)
        place = (items[-1].id, items[-1].version)


def _page(after: tuple[str, int] | None, reader: Reader) -> list[Item]:
    return select_items(reader, (("kind", "=", KIND),), after=after, limit=_PAGE_ITEMS)


def _reseal_page(
    tenant_id: str, ids: Sequence[str], keys: Mapping[str, SealKey], first: SealKey, tx: Transaction
) -> list[str]:
    return [_reseal(tx, tenant_id, id_, keys, first) for id_ in ids]


def _reseal(tx: Transaction, tenant_id: str, item_id: str, keys: Mapping[str, SealKey], first: SealKey) -> str:
    item = latest(tx, item_id)
    if item is None or item.body is None:  # forgotten meanwhile
        return "kept"
    body = item.plain()
    if not is_seal_body(body):
        raise item.damaged("it is no seal")
    if body["key_id"] == first.id:
        return "kept"
    key = keys.get(body["key_id"])
    if key is None:
        return "locked"
    owner = SealOwner(tenant_id, item.user_id or "", body["event_id"])
    try:
        values = [
            RedactedValue(
                each.place,
                each.kind,
                each.value,
                None if each.start is None or each.end is None else (each.start, each.end),
                bool(each.is_name),
            )
            for each in open_values(key, owner, body)
        ]
    except BrokenSeal:
        raise item.damaged("the seal is broken") from None
    made = checked_item(item._replace(body=canonical_text(seal_values(first, owner, values))))
    where: tuple[Condition, ...] = (("id", "=", item.id), ("version", "=", item.version))
    tx.do(Patch("items", where, {"body": made.body, "digest": made.digest}))
    return "resealed"


def seal_fault(item: Item, sources: frozenset[str]) -> str | None:
    """What is wrong with a seal, as far as can be told without the key; None where it holds."""
    try:
        body = item.plain()
    except MunimentError as error:
        return error.message
    if not is_seal_body(body):
        return "its body is not that of a seal"
    if item.version != 1 or item.status != "sealed" or item.name != digest_name(body["event_id"]):
        return "version, status or name are not those of a seal"
    return None if body["event_id"] in sources else f"its link to {body['event_id']} is missing"
