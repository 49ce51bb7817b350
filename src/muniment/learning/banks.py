"""Banks of learned memory: reading records within the banks a run may see, and writing new versions."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import read_canonical
from muniment.core.ports.engine import Condition, Lock
from muniment.core.ports.rows import select, texts
from muniment.core.ports.schema import ITEMS, SESSIONS
from muniment.core.scope import bank_holder, bank_scope, is_bank, owners_seen
from muniment.errors import NotFound
from muniment.learning.records import STORES, CanaryPlan, LessonState, StoredMemory, Tally
from muniment.store.append import append_in, lock_users, opening_draft
from muniment.store.items import Item, latest, lock_memory, lock_shared, select_items, stream_items
from muniment.store.ledger import MEMORY_KEPT, EntryDraft, ToolCall

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.learning.records import MemoryKind, Store
    from muniment.store.admission import Admitted
    from muniment.store.context import Context

__all__ = [
    "Held",
    "find_memory",
    "find_owner",
    "get_memory",
    "held_of",
    "list_memories",
    "list_unbound",
    "lock_bank",
    "lock_banks",
    "memory_drafts",
    "memory_of",
    "newest_versions",
    "searchable_text",
    "store_of",
    "write_bank",
]

KINDS: tuple[MemoryKind, ...] = tuple(kind for kinds in STORES.values() for kind in kinds)
_TOOL = ToolCall(name="bank", ok=True)
_FEW = 8
_BY_AGE = ("created_at", "id", "version")


class Held(NamedTuple):
    """A learned record in its current version."""

    memory: StoredMemory
    owner: str
    text_entry: str | None
    """The turn by which a search finds it."""


def store_of(kind: MemoryKind) -> Store:
    return next(store for store, kinds in STORES.items() if kind in kinds)


class _Version(NamedTuple):
    id: str
    version: int
    receipt_id: str | None


def held_of(item: Item) -> Held:
    item.check()
    body = read_canonical(item.body) if item.body is not None else item.plain()
    return Held(memory_of(body["memory"]), item.user_id or "", body.get("text_entry"))


_UNSAID = dict(StoredMemory(id="m", kind="rule", level="user", version=0, record={}, status="active", created_at=""))


def memory_of(kept: Mapping[str, Any]) -> StoredMemory:
    """The stored record, without validation: it was validated on writing, and a recall reads hundreds."""
    said = {key: tuple(value) if isinstance(value, list) else value for key, value in kept.items()}
    said |= {name: Tally.from_wire(kept[name]) for name in ("with_tally", "without_tally") if name in kept}
    if "lesson" in kept:
        said["lesson"] = LessonState.from_wire(kept["lesson"])
    if "canary" in kept:
        said["canary"] = CanaryPlan.from_wire(kept["canary"])
    if "lesson" in kept:
        said["lesson"] = LessonState.from_wire(kept["lesson"])
    return StoredMemory.unchecked(_UNSAID | said, set(kept))


def find_memory(reader: Reader, owners: Sequence[str], memory_id: str) -> Held | None:
    """Find a record of one of these banks; records of other banks do not exist here (LG-02)."""
    item = latest(reader, memory_id)
    if item is None or item.kind not in KINDS or item.user_id not in owners or item.body is None:
        return None
    return held_of(item)


def get_memory(ctx: Context, scope: Scope, memory_id: Any) -> StoredMemory:
    """Get a record that a run of this scope may see."""
    found = None
    if isinstance(memory_id, str):
        owners = owners_seen(scope)
        found = ctx.engine.read(scope.tenant_id, lambda reader: find_memory(reader, owners, memory_id))
    if found is None:
        raise NotFound(f"no learned record {memory_id!r:.80} in this scope", path="$.memory_id")
    return found.memory


def find_owner(ctx: Context, tenant_id: str, record_id: Any) -> str:
    """Find the bank, by name, that holds a record, a plan or a draft."""
    item = None
    if isinstance(record_id, str):
        item = ctx.engine.read(tenant_id, lambda reader: latest(reader, record_id))
    if item is None or item.user_id is None or not is_bank(item.user_id) or item.body is None:
        raise NotFound(f"no learned record or plan {record_id!r:.80} in this tenant", path="$.record_id")
    return item.user_id


def list_memories(
    reader: Reader,
    owner: str,
    kind: MemoryKind,
    *,
    name: str | None = None,
    newest: int | None = None,
    without: Container[str] = (),
    statuses: Container[str] | None = None,
) -> Iterator[Held]:
    """The current records of one kind in a bank: those of one name, or those in the `newest` versions.

    `without` excludes records the caller already has (with a name only); `statuses` selects by status (without a name).
    """
    where: tuple[Condition, ...] = (("kind", "=", kind), ("user_id", "=", owner))
    if name is not None:
        where = (*where, ("name", "=", name))
    order = _BY_AGE if name is not None else ("id", "version")
    is_named = name is not None
    items: Iterable[Item]
    if newest is not None:
        items = select_items(reader, where, order=order, descending=is_named, limit=newest)
    else:
        items = stream_items(reader, where, order=order, descending=is_named)
    if name is not None:
        yield from _standing(reader, items, without)
        return
    for _, versions in groupby(items, key=attrgetter("id")):
        (last,) = deque(versions, maxlen=1)
        if last.body is not None and (statuses is None or last.status in statuses):  # no others are read
            yield held_of(last)


def list_unbound(
    reader: Reader, owner: str, kind: MemoryKind, newest: int, without: Container[str] = ()
) -> Iterator[Held]:
    """The current records of one kind that belong to no kind of work, among the `newest` versions."""
    where: tuple[Condition, ...] = (("kind", "=", kind), ("user_id", "=", owner), ("name", "=", None))
    items = select_items(reader, where, order=_BY_AGE, descending=True, limit=newest)
    return (held for held in _standing(reader, items, without) if held.memory.record.get("intent_key") is None)


def _standing(reader: Reader, items: Iterable[Item], without: Container[str]) -> Iterator[Held]:
    """The newest version of each record found in any version, without forgotten ones."""
    first: dict[str, Item] = {}
    for item in items:
        if item.id not in without and item.body is not None:
            first.setdefault(item.id, item)
    known = newest_versions(reader, {item.id: item.version for item in first.values()})
    for item in first.values():
        standing = item if known.get(item.id) == item.version else latest(reader, item.id)
        if standing is not None and standing.body is not None:
            yield held_of(standing)


def newest_versions(reader: Reader, known: Mapping[str, int]) -> dict[str, int]:
    """The newest version of each of these records, in one query; `known` gives ids and versions.

    A caller whose version is the newest need not read the record again. Records with many versions, or with something
    forgotten, are omitted.
    """
    few = tuple(id_ for id_, version in known.items() if version <= _FEW)
    versions = select(reader, ITEMS, (("id", "in", few),), into=_Version) if few else []
    found: dict[str, int] = {}
    gone: set[str] = set()
    for id_, version, receipt_id in versions:
        found[id_] = max(version, found.get(id_, 0))
        gone |= set() if receipt_id is None else {id_}
    return {id_: version for id_, version in found.items() if id_ not in gone}


# -- writing ------------------------------------------------------------------------------------------


def lock_bank(tx: Transaction, owner: str, *others: str) -> None:
    """Lock a bank for writing; `others` are the owners of the source data."""
    lock_banks(tx, (owner,), *others)


def lock_banks(tx: Transaction, owners: Sequence[str], *others: str) -> None:
    """Lock several banks that are written in one transaction: all at once and in order, which prevents deadlocks."""
    for owner in sorted(set(owners)):
        tx.do(Lock(("session", owner, "bank")))
    holders = [bank_holder(owner) for owner in owners]
    lock_memory(tx, *owners, *others, *(holder for holder in holders if holder is not None))
    if None in holders:  # data of several users, any of whom may be forgotten
        lock_shared(tx)
    lock_users(tx, *owners, *others)


def write_bank(ctx: Context, tx: Transaction, tenant_id: str, owner: str, drafts: Sequence[EntryDraft]) -> None:
    """Append entries to a bank's session; the transaction must hold its lock."""
    scope = bank_scope(tenant_id, owner)
    append_in(ctx, tx, scope, drafts, _opening(ctx), _newest(tx, owner))


def _newest(tx: Transaction, owner: str) -> str:
    """The instant of the bank's newest record: new records depend on it, so they are dated after it."""
    return max(texts(tx, SESSIONS, "head_recorded_at", (("user_id", "=", owner),)), default="")


def _opening(ctx: Context) -> Admitted:
    from muniment.store.admission import admit

    return admit(opening_draft({"task_type": "bank"}), ctx.policy.ledger)


def memory_drafts(changes: Iterable[StoredMemory], before: Mapping[str, StoredMemory | None]) -> list[EntryDraft]:
    """The entries of new versions: a turn if the text changed, a patch if only figures or status did."""
    texts: dict[str, str] = {id_: searchable_text(held) for id_, held in before.items() if held is not None}
    drafts: list[EntryDraft] = []
    for memory in changes:
        text = searchable_text(memory)
        said: dict[str, Any] = {"event": MEMORY_KEPT, "id": memory.id, "memory": memory.to_wire()}
        is_turn = bool(text) and text != texts.get(memory.id)
        texts[memory.id] = text
        drafts.append(
            EntryDraft(
                kind="tool_result" if is_turn else "state_patch",
                role="tool" if is_turn else "system",
                content=text if is_turn else "",
                tool=_TOOL if is_turn else None,
                trust="assistant" if not is_turn else "tool",
                metadata=said,
            )
        )
    return drafts


def searchable_text(memory: StoredMemory) -> str:
    """The text of a record for search; empty for a seed, a capsule, or a pruned record."""
    record: Mapping[str, Any] = memory.record
    if memory.status == "pruned":
        return ""
    match memory.kind:
        case "reasoning":
            return _joined(record.get("summary"), record.get("transcript"), " ".join(_texts(record.get("tags"))))
        case "tactic":
            injection = record.get("injection")
            content = injection.get("content") if isinstance(injection, Mapping) else None
            return _joined(record.get("summary"), content)
        case "rule":
            return _joined(record.get("title"), record.get("body"))
        case _:
            return ""


def _joined(*parts: Any) -> str:
    return "\n".join(part for part in dict.fromkeys(parts) if isinstance(part, str) and part)


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []
