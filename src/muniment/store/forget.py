"""Forgetting (LG-07): erase content wherever it was derived to, keep hashes and tombstones, issue a receipt.

A forget plans, applies and answers in one transaction. The plan starts from the selected entries and items and follows
the evidence index to everything derived from them; each derivation decides what remains of its item
(`store.derivation`). Applying it empties rows by key, as each table declares (`core.ports.schema`). Residue in the
store's files is the engine's responsibility; the receipt is pending until the engine confirms that there is none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from muniment.core.ports.engine import NOT_SCRUBBED, Condition, Delete, Patch, ScrubReport, Transaction, Value
from muniment.core.ports.rows import advance, by_ids, chunked, get, stream, texts
from muniment.core.ports.schema import (
    ENTRIES,
    ITEM_TERMS,
    ITEMS,
    LINKS,
    PLACES,
    PREFIXES,
    SESSIONS,
    TABLES,
    USERS,
    VALUES_SESSION,
    EntryRow,
    Table,
    UserRow,
    column_names,
)
from muniment.core.scope import Trust, holder_of, is_corpus, is_reserved, lock_rank
from muniment.errors import NotFound, StoreDamaged, UnknownScope
from muniment.store.answers import clear_answers
from muniment.store.chain import blob_fault, genesis
from muniment.store.context import Context
from muniment.store.item_terms import remake_terms
from muniment.store.items import (
    HOLDS_BODY,
    Change,
    Item,
    Rewritten,
    add_item,
    empty_items,
    kinds_held,
    latest,
    links_from,
    links_of,
    lock_memory,
    lock_receipts,
    lock_shared,
    receipts_of,
    select_items,
    write_changes,
)
from muniment.store.ledger import (
    LEFT_DAMAGED,
    STATE_PATCHED,
    Erased,
    Receipt,
    check_content,
    check_header,
    named_events,
    read_body,
)
from muniment.store.proofs import prove
from muniment.store.turns import names_of, users_of
from muniment.store.waiting import Waiting, hold_waiting, note_unseen, several_users

__all__ = [
    "FOREIGN",
    "SCRUB_DUE",
    "Selector",
    "carriers_of",
    "empty_rows",
    "forget",
    "note_scrubbed",
    "receipt_change",
]

SCRUB_DUE = "scrub_due"
"""Status of a receipt whose content may remain in the store's files."""
FOREIGN = "foreign"
"""Count in a receipt: rows and links in a damaged store that lead to another user's memory. They were left alone."""
INDEX_DROPPED = "index_dropped"
"""Count in a receipt: users whose damaged index was dropped as a whole and rebuilt."""
_BY_PLACE = ("user_id", "session_id", "seq")
_PROMOTED = ("candidate", "insight")
"""Kinds of items that become facts."""
_CARRYING = ("state_patch", "tool_result")
"""Kinds of entries that may carry the words of an item."""


@dataclass(frozen=True, slots=True)
class Selector:
    """The target of a forget within a tenant: one event, one item, a session, a user, or (none of these) everything."""

    event: str | None = None
    item: tuple[str, str] | None = None
    """(kind, id)"""
    session_id: str | None = None
    user_id: str | None = None
    document: tuple[str, ...] = ()
    """The sessions that are the revisions of a document, of the corpus that is the user."""
    values: tuple[str, ...] = ()
    """Entries that keep values, of the owner that is the user: every version of each value is erased."""

    def receipt_fields(self, tenant_id: str) -> dict[str, str]:
        """Return the request in the form a receipt names it."""
        asked: dict[str, str | None] = {
            "event": self.values[0] if self.values else self.event,
            "session_id": self.session_id,
            "user_id": self.user_id,
            "document": self.document[0] if self.document else None,
        }
        asked |= dict([] if self.item is None else [self.item])
        return {"tenant_id": tenant_id} | {name: value for name, value in asked.items() if value is not None}


class _Entry(NamedTuple):
    """An entry to erase."""

    id: str
    user_id: str
    run_id: str
    hash: bytes


@dataclass(slots=True)
class _Plan:
    """The rows that one forget erases and rewrites."""

    entries: dict[str, _Entry] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    rewritten: list[Change] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """Text of the selected events, by which hooks find the same events among those they hold."""
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, count: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + count

    @property
    def ids(self) -> list[str]:
        return [*self.entries, *self.items]

    @property
    def users(self) -> set[str]:
        """Return the names that own what is erased."""
        users = {entry.user_id for entry in self.entries.values()}
        return users | {item.user_id for item in self.items.values() if item.user_id}

    @property
    def holders(self) -> set[str] | None:
        """Return the users whose memory is affected; None if some of it was shared."""
        owners: set[str | None] = {entry.user_id for entry in self.entries.values()}
        owners |= {item.user_id for item in self.items.values()} | {change.user_id for change in self.rewritten}
        holders = {_holder(owner) for owner in owners}
        return None if None in holders else {holder for holder in holders if holder is not None}


def forget(ctx: Context, tenant_id: str, selector: Selector) -> Receipt:
    """Erase the selection and everything derived from it; returns the receipt.

    On SQLite it is complete, unless a reader holds the write-ahead log; on PostgreSQL it is pending until a scrub.
    """
    receipt_id = ctx.ids.new("rcp")
    now = ctx.now()
    with ExitStack() as held:
        files = _Files(held)
        waiting = hold_waiting(ctx, tenant_id, selector, held) if ctx.may_have_hooks else None

        def work(tx: Transaction) -> tuple[_Plan, Receipt, list[bytes]]:
            plan = _plan(ctx, tx, tenant_id, selector, waiting)
            salts = _apply(ctx, tx, plan, receipt_id, files, waiting)
            return plan, _write_receipt(ctx, tx, plan, selector, tenant_id, receipt_id, now), salts

        plan, receipt, salts = ctx.engine.write(tenant_id, work)
    _index_again(ctx, tenant_id, plan)
    ctx.clear_caches(tenant_id)
    report = ctx.engine.scrub(salts)
    if report == NOT_SCRUBBED:
        return receipt
    return ctx.engine.write(tenant_id, lambda tx: note_scrubbed(ctx, tx, receipt_id, 1, report)) or receipt


# -- the plan -----------------------------------------------------------------------------------------


def _plan(ctx: Context, tx: Transaction, tenant_id: str, selector: Selector, waiting: Waiting | None) -> _Plan:
    """Plan everything to erase or rewrite, starting from the selection. Writes nothing."""
    _lock_writers(ctx, tx, selector)
    plan = _Plan()
    try:
        _select(ctx, tx, tenant_id, selector, plan)
    except UnknownScope:
        if waiting is None or not waiting.is_some():
            raise
    if plan.entries or plan.items:
        _follow_evidence(ctx, tx, plan)
    plan.add(LEFT_DAMAGED, sum(not item.is_sound for item in plan.items.values()))
    return plan


def _lock_writers(ctx: Context, tx: Transaction, selector: Selector) -> None:
    """Block writers from deriving from what is being erased. A caller that empties a whole tenant stops its writers
    itself.
    """
    users: list[str]
    if selector.event is not None:
        entry = get(tx, ENTRIES, (selector.event,))
        users = [] if entry is None else [entry.user_id]
    elif selector.item is not None:
        item = latest(tx, selector.item[1])
        users = [] if item is None or item.user_id is None else [item.user_id]
    elif selector.user_id is None and selector.session_id is not None:
        where: tuple[Condition, ...] = (("session_id", "=", selector.session_id),)
        users = texts(tx, SESSIONS, "user_id", where, limit=2)
        users += _document_owners(ctx, tx, where)
    else:
        users = [] if selector.user_id is None else list(names_of(tx, selector.user_id))
        if selector.session_id is not None:
            own: tuple[Condition, ...] = (("user_id", "in", tuple(users)), ("session_id", "=", selector.session_id))
            users += _document_owners(ctx, tx, own)
    if selector.user_id is not None and (selector.event is not None or selector.item is not None):
        users = [user_id for user_id in users if user_id == selector.user_id]  # never wait for another's writer
    lock_memory(tx, *users)
    lock_shared(tx)


def _select(ctx: Context, tx: Transaction, tenant_id: str, selector: Selector, plan: _Plan) -> None:
    if selector.event is not None:
        entry = get(tx, ENTRIES, (selector.event,))
        if entry is None or (selector.user_id is not None and entry.user_id != selector.user_id):
            raise NotFound(f"no event {selector.event!r} in this scope", path="$.event")
        if is_corpus(entry.user_id) and entry.session_id == VALUES_SESSION:
            _take_values(tx, [entry.id], plan)
        elif is_corpus(entry.user_id):  # its title and headings are in every chunk: a document is erased whole
            whole = Selector(session_id=entry.session_id, user_id=entry.user_id)
            _select(ctx, tx, tenant_id, whole, plan)
        else:
            _take_entry(tx, plan, entry)
            plan.texts += _said(entry)
    elif selector.item is not None:
        _take_item(tx, plan, selector)
    elif selector.values:
        _take_values(tx, selector.values, plan)
    else:
        where = _scope_of(tx, selector)
        _take_scope(tx, tenant_id, plan, where)
        if owners := _document_owners(ctx, tx, where):
            _take_scope(tx, tenant_id, plan, (("user_id", "in", owners),))


def _take_entry(tx: Transaction, plan: _Plan, row: EntryRow) -> None:
    """Add an entry that holds content. If that is not its own, which may be elsewhere, the store is damaged."""
    if row.receipt_id is not None and row.body is None and row.salt is None:
        return
    plan.entries[row.id] = _Entry(row.id, row.user_id, row.run_id, row.hash)
    try:
        check_content(row)
    except StoreDamaged:
        plan.add(LEFT_DAMAGED)
    else:
        plan.add(LEFT_DAMAGED, blob_fault(tx, row) is not None)


def _said(row: EntryRow) -> list[str]:
    content = None
    with suppress(StoreDamaged):
        content = (read_body(row) or {}).get("content")
    return [content] if isinstance(content, str) and content else []


def _take_item(tx: Transaction, plan: _Plan, selector: Selector) -> None:
    """Add an item by name, and the candidates that a fact was promoted from, which hold the same words."""
    assert selector.item is not None
    kind, id_ = selector.item
    item = latest(tx, id_)
    if item is None or item.kind != kind or (selector.user_id is not None and item.user_id != selector.user_id):
        raise NotFound(f"no {kind} {id_!r} in this scope", path=f"$.{kind}")
    if item.body is None:
        return
    plan.items[id_] = item
    if kind != "fact":
        return
    sources = sorted(link.source_id for link in links_of(tx, id_))
    for origin in by_ids(tx, ITEMS, sources, where=(("kind", "in", _PROMOTED), ("newest", "=", 1)), into=Item):
        if _is_shared(_holder(item.user_id), _holder(origin.user_id)):
            plan.items.setdefault(origin.id, origin)


class _KeptValue(NamedTuple):
    entry_id: str
    space: str
    path: str
    name: str


def _take_values(tx: Transaction, entry_ids: Sequence[str], plan: _Plan) -> None:
    """Add every entry that ever kept a value under these names."""
    names = {each[1:] for each in by_ids(tx, PLACES, entry_ids, column="entry_id", into=_KeptValue)}
    found = by_ids(tx, PLACES, sorted({name for _, _, name in names}), column="name", into=_KeptValue)
    ids = {*entry_ids, *(each.entry_id for each in found if each[1:] in names)}
    for row in by_ids(tx, ENTRIES, sorted(ids)):
        _take_entry(tx, plan, row)


def _scope_of(tx: Transaction, selector: Selector) -> tuple[Condition, ...]:
    """Return the conditions for the selector's scope, which must exist and be unambiguous."""
    where: tuple[Condition, ...] = ()
    if selector.user_id is not None:
        where = (*where, ("user_id", "in", names_of(tx, selector.user_id)))
    if selector.session_id is not None:
        where = (*where, ("session_id", "=", selector.session_id))
    if selector.document:
        where = (*where, ("session_id", "in", selector.document))
    sessions = texts(tx, SESSIONS, "user_id", where, limit=2) or texts(
        tx, ENTRIES, "user_id", where, order=_BY_PLACE, limit=1
    )
    if not sessions:
        raise UnknownScope("nothing is stored for this scope", hint="check the tenant, user and session ids")
    if selector.session_id is not None and selector.user_id is None:
        if len(sessions) > 1:
            raise several_users(selector.session_id)
        where = (*where, ("user_id", "=", sessions[0]))
    return where


def _document_owners(ctx: Context, tx: Transaction, where: tuple[Condition, ...]) -> tuple[str, ...]:
    """Return the owners of documents supplied only for items of a scope: they are erased with them."""
    owned = {kind: derivation.owners for kind, derivation in ctx.derivations.items() if derivation.owners is not None}
    items = select_items(tx, (*where, ("kind", "in", tuple(owned)), HOLDS_BODY))
    owners: set[str] = set()
    for item in items:
        with suppress(StoreDamaged):  # an unreadable item names no documents
            owners.update(owned[item.kind](item))
    return tuple(sorted(owners))


def _take_scope(tx: Transaction, tenant_id: str, plan: _Plan, where: tuple[Condition, ...]) -> None:
    """Add the entries and items of a scope.

    In a damaged file a row may claim a scope that is not its own. An entry is taken if its chain or its header places
    it there; an altered item is left alone if all of its evidence is another user's.
    """
    heads = {(session.user_id, session.session_id): session for session in stream(tx, SESSIONS, where)}
    owners: set[str] = set()
    rows = stream(tx, ENTRIES, where, order=_BY_PLACE)
    for place, group in groupby(rows, key=lambda row: (row.user_id, row.session_id)):
        head = heads.pop(place, None)
        owners.add(place[0])
        _take_session(tx, tenant_id, plan, group, b"" if head is None else head.head_hash)
    plan.add(LEFT_DAMAGED, sum(session.head_seq > 0 for session in heads.values()))
    kinds = tuple(kind for kind in kinds_held(tx) if kind != "receipt")
    for item in select_items(tx, (("kind", "in", kinds), *where)):
        if item.body is None:
            continue
        if not item.is_sound and _is_made_of_others(tx, item, owners):
            plan.add(FOREIGN)
            plan.add(LEFT_DAMAGED)
        else:
            plan.items[item.id] = item


def _take_session(tx: Transaction, tenant_id: str, plan: _Plan, rows: Iterator[EntryRow], head_hash: bytes) -> None:
    """Add the entries of one session; entries that its chain lacks are counted as damage."""
    before: EntryRow | None = None
    row = next(rows, None)
    expected = 1
    while row is not None:
        after = next(rows, None)
        if _is_linked(tenant_id, before, row, after, head_hash) or _has_own_header(tenant_id, row):
            plan.add(LEFT_DAMAGED, row.seq != expected)
            _take_entry(tx, plan, row)
            expected, before = row.seq + 1, row
        else:
            plan.add(FOREIGN)
            plan.add(LEFT_DAMAGED)
        row = after
    plan.add(LEFT_DAMAGED, before is None or before.hash != head_hash)


def _is_linked(
    tenant_id: str, before: EntryRow | None, row: EntryRow, after: EntryRow | None, head_hash: bytes
) -> bool:
    """Return whether a neighbour in the chain, or its end, vouches for the entry."""
    if row.seq == 1:
        return row.prev_hash == genesis(tenant_id, row.user_id, row.session_id).hash
    return (
        (before is not None and before.hash == row.prev_hash)
        or (after is not None and after.prev_hash == row.hash)
        or row.hash == head_hash
    )


def _has_own_header(tenant_id: str, row: EntryRow) -> bool:
    try:
        check_header(tenant_id, row)
    except StoreDamaged:
        return False
    return True


def _is_made_of_others(tx: Transaction, item: Item, owners: Collection[str]) -> bool:
    users = set(users_of(tx, [link.source_id for link in links_of(tx, item.id)]))
    return bool(users) and users.isdisjoint(owners)


# -- derived items ------------------------------------------------------------------------------------


class Carrier(NamedTuple):
    """An entry that carries the words of an item."""

    item_id: str
    id: str
    user_id: str
    run_id: str
    hash: bytes
    salt: bytes
    metadata: dict[str, Any]
    is_altered: bool
    """Altered, so it may carry anything."""
    trust: Trust
    place: tuple[str, str, str, int]
    """Its sort key in ledger order."""

    def has_lost(self, lost: Collection[str]) -> bool:
        """Return whether all its evidence is lost, or an event that it names is."""
        metadata = self.metadata
        sources = metadata.get("sources")
        named = sources if isinstance(sources, list) else []
        return (
            (bool(named) and all(source in lost for source in named))
            or metadata.get("from") in lost
            or any(event in lost for event in named_events(metadata.get("patch")))
        )


class _CarrierRow(NamedTuple):
    id: str
    user_id: str
    session_id: str
    run_id: str
    seq: int
    recorded_at: str
    trust: Trust
    content_hash: bytes
    hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None


def carriers_of(tx: Transaction, item_ids: Iterable[str], known: Collection[str] = ()) -> Iterator[Carrier]:
    """Yield the entries that still hold these items' words, except those already known.

    An entry that only touched an item carries none of its words.
    """
    links = [link for link in by_ids(tx, LINKS, sorted(item_ids), column="item_id") if link.source_id not in known]
    where: tuple[Condition, ...] = (("kind", "in", _CARRYING), HOLDS_BODY)
    sources = sorted({link.source_id for link in links})
    rows = {row.id: row for row in by_ids(tx, ENTRIES, sources, where=where, into=_CarrierRow)}
    read = {id_: _metadata(row) for id_, row in rows.items()}
    for source, item_id in links:
        if source not in rows:
            continue
        row, metadata = rows[source], read[source]
        if metadata is not None and metadata.get("id") != item_id and metadata.get("event") != STATE_PATCHED:
            continue
        place = (row.recorded_at, row.user_id, row.session_id, row.seq)
        salt, is_altered = row.salt or b"", metadata is None
        yield Carrier(
            item_id, row.id, row.user_id, row.run_id, row.hash, salt, metadata or {}, is_altered, row.trust, place
        )


def _metadata(row: _CarrierRow) -> dict[str, Any] | None:
    """Return an entry's metadata; None where it was altered."""
    try:
        return (read_body(row) or {}).get("metadata") or {}
    except StoreDamaged:
        return None


@dataclass(slots=True)
class _Derived:
    """The part of the evidence graph derived from what is erased."""

    items: dict[str, Item] = field(default_factory=dict)
    sources: dict[str, set[str]] = field(default_factory=dict)
    """By item: those of its source entries and items that were reached."""
    of_run: dict[str, set[str]] = field(default_factory=dict)
    """By item that covers a whole run: the reached entries of that run. It falls with any of them."""
    carriers: dict[str, list[Carrier]] = field(default_factory=dict)
    holders: dict[str, str | None] = field(default_factory=dict)
    """By id, the user whose memory contains it; None for shared items."""


def _holder(owner: str | None) -> str | None:
    return owner if owner is None or not is_reserved(owner) else holder_of(owner)


def _follow_evidence(ctx: Context, tx: Transaction, plan: _Plan) -> None:
    """Ask each derivation once what remains of its item, sources before what was derived from them."""
    derived = _reach(ctx, tx, plan)
    lost = set(plan.ids)
    left: dict[str, Rewritten] = {}
    own: dict[str, set[str]] = {}

    def lose_carriers(item_id: str) -> None:
        for carrier in derived.carriers.get(item_id, ()):
            if carrier.id not in lost and (item_id in lost or carrier.has_lost(lost)):
                plan.entries[carrier.id] = _Entry(carrier.id, carrier.user_id, carrier.run_id, carrier.hash)
                plan.add(LEFT_DAMAGED, carrier.is_altered)
                own.setdefault(item_id, set()).add(carrier.id)
                lost.add(carrier.id)

    for item_id in list(plan.items):
        lose_carriers(item_id)
    order = deque(_in_order(derived))
    asked: set[str] = set()
    while order:
        id_ = order.popleft()
        changed = {id_} if id_ in lost else lost | left.keys()
        if id_ in lost or changed.isdisjoint(derived.sources[id_]):
            continue
        item = derived.items.get(id_)
        before = len(lost), id_ in left
        if derived.of_run.get(id_, set()) & lost:
            rest = None
        elif item is None:
            continue
        else:
            made_by = derived.carriers.get(id_, ())
            rest = _without(ctx, item, frozenset(lost - own.get(id_, set())), frozenset(left.keys() - {id_}), made_by)
        if rest is None:
            lost.add(id_)
            left.pop(id_, None)
            if item is not None:
                plan.items[id_] = item
        elif item is not None and (item.version > 1 or rest != Rewritten(item.plain(), item.status, item.trust)):
            left[id_] = rest  # its earlier versions may hold more than the newest
        lose_carriers(id_)
        asked.add(id_)
        if before != (len(lost), id_ in left):  # in a circle of evidence, ask those again that were asked too early
            again = {id_, *own.get(id_, ())}
            order.extend(each for each in asked if each not in lost and not again.isdisjoint(derived.sources[each]))
    plan.rewritten = [_rewritten(derived.items[id_], rest) for id_, rest in left.items()]


def _reach(ctx: Context, tx: Transaction, plan: _Plan) -> _Derived:
    """Read everything derived from the selection, breadth first along the evidence."""
    ids_of_run = [each.id_of_run for each in ctx.derivations.values() if each.id_of_run is not None]
    projected = {kind for kind, each in ctx.derivations.items() if each.is_projection}
    found = _Derived()
    found.holders |= {entry.id: _holder(entry.user_id) for entry in plan.entries.values()}
    found.holders |= {item.id: _holder(item.user_id) for item in plan.items.values()}
    users = plan.users | {user for user in map(_holder, plan.users) if user is not None}
    entries: Collection[_Entry] = plan.entries.values()
    frontier = plan.ids
    fresh: Collection[Item] = list(plan.items.values())
    while frontier:
        carriers = [
            carrier
            for carrier in carriers_of(tx, [item.id for item in fresh if item.kind in projected], plan.entries)
            if _is_shared(_holder(carrier.user_id), found.holders.get(carrier.item_id))
        ]
        for carrier in carriers:
            found.carriers.setdefault(carrier.item_id, []).append(carrier)
        new_carriers = {carrier.id: carrier for carrier in carriers if carrier.id not in found.holders}
        found.holders |= {id_: _holder(carrier.user_id) for id_, carrier in new_carriers.items()}
        runs: dict[str, _Entry | Carrier] = {}
        written: list[_Entry | Carrier] = [*entries, *new_carriers.values()]
        for entry in written:
            for id_of in ids_of_run:
                runs.setdefault(id_of(entry.run_id), entry)
        for id_, entry in runs.items():
            found.of_run.setdefault(id_, set()).add(entry.id)
        for carrier in new_carriers.values():
            for id_of in ids_of_run:
                found.of_run.setdefault(id_of(carrier.run_id), set()).add(carrier.id)
        frontier = [*frontier, *new_carriers, *(id_ for id_ in runs if id_ not in found.holders)]
        fresh = _derive(tx, plan, found, frontier, runs, users)
        frontier = [item.id for item in fresh]
        entries = ()
    return found


def _derive(
    tx: Transaction,
    plan: _Plan,
    found: _Derived,
    frontier: Sequence[str],
    runs: Mapping[str, _Entry | Carrier],
    users: Collection[str],
) -> list[Item]:
    """Add what was derived from the frontier; returns the newly reached items."""
    links = links_from(tx, frontier, users if _may_be_turns(plan, found, frontier) else (), known=plan.items)
    new_ids = {link.item_id for link in links} | runs.keys()
    new_ids = {id_ for id_ in new_ids if id_ not in found.items and id_ not in plan.items}
    rows = {item.id: item for item in by_ids(tx, ITEMS, sorted(new_ids), into=Item, order=("id", "version"))}
    for id_, entry in runs.items():
        item = rows.get(id_)
        if item is None:  # items learned from a run may exist without the item itself
            found.holders.setdefault(id_, _holder(entry.user_id))
        if id_ in new_ids and (item is None or item.body is not None):
            found.sources.setdefault(id_, set()).update(found.of_run[id_])
    fresh: list[Item] = []
    for id_ in sorted(new_ids & rows.keys()):
        item = rows[id_]
        if item.body is not None and any(
            _is_shared(found.holders.get(source), _holder(item.user_id))
            for source in [*(link.source_id for link in links if link.item_id == id_), *found.of_run.get(id_, ())]
        ):
            found.items[id_] = item
            found.holders[id_] = _holder(item.user_id)
            fresh.append(item)
    missing = {link.item_id for link in links} & new_ids - rows.keys()
    plan.add(LEFT_DAMAGED, len(missing))  # their evidence is here, and they are not
    for source, id_ in links:
        if id_ in found.items and _is_shared(found.holders.get(source), found.holders[id_]):
            found.sources.setdefault(id_, set()).add(source)
        elif id_ in rows and rows[id_].body is not None and id_ not in plan.items:
            plan.add(FOREIGN)
            plan.add(LEFT_DAMAGED, not rows[id_].is_sound)
    return fresh


def _may_be_turns(plan: _Plan, found: _Derived, ids: Iterable[str]) -> bool:
    """Return whether a lineage may name one of these: turns, and records of banks."""
    for id_ in ids:
        item = found.items.get(id_) or plan.items.get(id_)
        if id_ in plan.entries or (item is not None and is_reserved(item.user_id or "")):
            return True
    return False


def _is_shared(one: str | None, other: str | None) -> bool:
    """Return whether two things may be linked as evidence: both in one user's memory, or one of them shared.

    Nothing of one user derives from another's text, so any other link was forged.
    """
    return one is None or other is None or one == other


def _in_order(derived: _Derived) -> list[str]:
    """Sort items sources first, as far as the evidence has no cycles; then the others."""
    carried = {carrier.id: id_ for id_, carriers in derived.carriers.items() for carrier in carriers}
    waiting = {
        id_: {carried.get(source, source) for source in sources} - {id_} for id_, sources in derived.sources.items()
    }
    waiting = {id_: {source for source in sources if source in waiting} for id_, sources in waiting.items()}
    leads_to: dict[str, list[str]] = {}
    for id_, sources in waiting.items():
        for source in sources:
            leads_to.setdefault(source, []).append(id_)
    ready = deque(id_ for id_, sources in waiting.items() if not sources)
    order: list[str] = []
    while ready:
        id_ = ready.popleft()
        order.append(id_)
        for next_id in leads_to.get(id_, ()):
            waiting[next_id].discard(id_)
            if not waiting[next_id]:
                ready.append(next_id)
    return [*order, *(id_ for id_, sources in waiting.items() if sources)]


def _without(
    ctx: Context, item: Item, lost: frozenset[str], rewritten: frozenset[str], made_by: Iterable[Carrier]
) -> Rewritten | None:
    """Return what the item's derivation leaves of it: nothing for an undeclared kind or an altered item."""
    derivation = ctx.derivations.get(item.kind)
    if derivation is None:
        return None
    gone = lost | rewritten if derivation.copies else lost
    try:
        if derivation.without_of is not None:
            ordered = sorted((each for each in made_by if not each.is_altered), key=lambda each: each.place)
            return derivation.without_of(item, gone, ordered)
        left = derivation.without(item, gone)
    except StoreDamaged:
        return None
    return Rewritten(left, item.status, item.trust) if isinstance(left, dict) else left


def _rewritten(item: Item, left: Rewritten) -> Change:
    return Change(
        id=item.id,
        kind=item.kind,
        status=left.status,
        body=left.body,
        created_at=item.created_at,
        trust=left.trust,
        name=item.name,
        user_id=item.user_id,
        agent_id=item.agent_id,
        session_id=item.session_id,
        run_id=item.run_id,
    )


# -- applying it --------------------------------------------------------------------------------------


def _apply(
    ctx: Context, tx: Transaction, plan: _Plan, receipt_id: str, files: _Files, waiting: Waiting | None
) -> list[bytes]:
    """Empty and rewrite the rows; returns the salts of dropped answers, whose rows may have moved."""
    plan.counts["files"] = files.erase(ctx, tx, plan)
    if waiting is not None:
        plan.counts |= waiting.erase(plan.texts, plan.users)
    touched = [*plan.ids, *(change.id for change in plan.rewritten)]
    plan.counts |= empty_rows(ctx, tx, touched, list(plan.entries), receipt_id)
    plan.add(LEFT_DAMAGED, len(plan.entries) - plan.counts["entries"])  # whose ids in the file are no ids
    answers = clear_answers(tx, plan.holders)
    plan.counts |= answers.counts
    write_changes(tx, plan.rewritten)
    remake_terms(ctx, tx, [change.id for change in plan.rewritten])
    return answers.salts


class _Files:
    """Files of forgotten items, through all attempts at the transaction.

    Files go first: if the store fails afterwards, the forget was not acknowledged. `held` keeps their directories
    locked until the store has forgotten too.
    """

    def __init__(self, held: ExitStack) -> None:
        self._held = held
        self._done: list[tuple[str, int]] | None = None
        """The versions of items whose files are gone; None until that is known."""
        self._removed = 0

    def erase(self, ctx: Context, tx: Transaction, plan: _Plan) -> int:
        """Remove the files; returns how many went, in this attempt and before."""
        found = [
            (derivation.erase_files, select_items(tx, (("id", "=", id_), HOLDS_BODY)))
            for id_, item in plan.items.items()
            if (derivation := ctx.derivations.get(item.kind)) is not None and derivation.erase_files is not None
        ]
        versions = [(item.id, item.version) for _, items in found for item in items]
        if versions == self._done:
            return self._removed
        self._done = None
        self._held.close()  # an earlier attempt met other versions
        for erase_files, items in found:
            with suppress(StoreDamaged):  # an unreadable item names no files
                self._removed += erase_files(items, self._held)
        self._done = versions
        return self._removed


def empty_rows(
    ctx: Context, tx: Transaction, ids: Sequence[str], entry_ids: Sequence[str], receipt_id: str
) -> dict[str, int]:
    """Empty every row that holds content of these subjects, and remove the entries among them from the indexes; returns
    how many rows of each table changed.
    """
    counts = {
        spec.name: empty_items(tx, ids, receipt_id) if spec is ITEMS else _empty(tx, spec, ids, receipt_id)
        for spec in TABLES
        if spec.subject is not None
    }
    for spec in (ITEM_TERMS, PLACES, PREFIXES):
        del counts[spec.name]  # the entries and items themselves are counted
    touched = sorted(users_of(tx, entry_ids), key=lock_rank)
    advance(tx, USERS, [UserRow(user_id, tail=0, indexed=0, embedded=0, generation=1) for user_id in touched])
    try:
        return counts | ctx.derived.index.remove(tx, entry_ids)
    except StoreDamaged:  # an index that cannot be read goes as a whole
        counts[INDEX_DROPPED] = 0
        for user_id in users_of(tx, entry_ids):
            counts[INDEX_DROPPED] += 1
            counts["blocks"] = counts.get("blocks", 0) + ctx.derived.index.reset(tx, user_id)
        return counts


def _empty(tx: Transaction, spec: Table[Any], ids: Sequence[str], receipt_id: str) -> int:
    """Apply the table's declared erasure to its rows of these subjects."""
    if spec.forget == "keep":
        return 0
    assert spec.subject is not None
    values: dict[str, Value] = {column.name: None for column in spec.columns if column.content or column.cleared}
    if "receipt_id" in column_names(spec):
        values["receipt_id"] = receipt_id
    count = 0
    for chunk in chunked(ids):
        where: tuple[Condition, ...] = ((spec.subject, "in", chunk),)
        count += tx.do(Delete(spec.name, where)) if spec.forget == "drop" else tx.do(Patch(spec.name, where, values))
    return count


def _index_again(ctx: Context, tenant_id: str, plan: _Plan) -> None:
    """Reindex the users whose damaged index was dropped, as far as their ledger can be read."""
    if not plan.counts.get(INDEX_DROPPED):
        return

    users = ctx.engine.read(tenant_id, lambda reader: users_of(reader, list(plan.entries)))
    with suppress(StoreDamaged):  # `verify` and searches report it
        for user_id in users:
            ctx.derived.index.follow(ctx, tenant_id, user_id)


# -- the receipt --------------------------------------------------------------------------------------


def _write_receipt(
    ctx: Context, tx: Transaction, plan: _Plan, selector: Selector, tenant_id: str, receipt_id: str, now: str
) -> Receipt:
    erased = (
        *(Erased(kind="event", id=entry.id, hash=entry.hash.hex()) for entry in plan.entries.values()),
        *(Erased(kind=item.kind, id=item.id) for item in plan.items.values()),
    )
    receipt = Receipt(
        receipt_id=receipt_id,
        tenant_id=tenant_id,
        requested_at=now,
        selector=selector.receipt_fields(tenant_id),
        erased=erased,
        counts={name: count for name, count in plan.counts.items() if count},
        scrubbed=False,
        note="",
    )
    receipt = _scrubbed(ctx, receipt, NOT_SCRUBBED).concerning(receipts_of(receipt.user_among(plan.users)))
    prove(ctx, tx, [add_item(tx, receipt_change(receipt, SCRUB_DUE))])
    return receipt


def receipt_change(receipt: Receipt, status: str) -> Change:
    """Return a version of a receipt, in the list of the user it concerns."""
    return Change(
        id=receipt.receipt_id,
        kind="receipt",
        status=status,
        body=receipt.to_wire(),
        created_at=receipt.requested_at,
        trust="user",
        name=receipt.concerns,
    )


def note_scrubbed(ctx: Context, tx: Transaction, receipt_id: str, version: int, report: ScrubReport) -> Receipt | None:
    """Record in a receipt what was done to the files; returns its newest version, None if there is none.

    A receipt that is no longer pending is left unchanged: another process has scrubbed meanwhile. So is one whose
    version differs from that before the scrub: an import has emptied more, and its words may remain in the files.
    """
    lock_receipts(tx)
    item = latest(tx, receipt_id)
    if item is None or item.kind != "receipt":
        return None
    receipt = Receipt.from_wire(item.plain())
    if item.status == SCRUB_DUE and item.version == version:
        receipt = _scrubbed(ctx, receipt, report)
        prove(ctx, tx, write_changes(tx, [receipt_change(receipt, SCRUB_DUE if report.due else "issued")]))
    return receipt


def _scrubbed(ctx: Context, receipt: Receipt, report: ScrubReport) -> Receipt:
    """Return the receipt with what was done to the files."""
    unseen = note_unseen(ctx.address) if ctx.may_have_hooks else ""
    note = f"{report.note}{receipt.left_note}{unseen}"
    return receipt.model_copy(update={"scrubbed": report.clean and receipt.is_clean, "note": note})
