"""Forgetting (LG-07): erase content wherever it was derived to, keep hashes and tombstones, give a receipt.

Which tables hold content, and how their rows are found, is declared in `core.ports.schema`; what a derived item becomes
without a lost source is declared in `handles.derived`. This file only walks those declarations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from muniment.core.ports.engine import Condition, Delete, Patch, ScrubReport, Transaction, Value
from muniment.core.ports.kept_rows import VALUES_SESSION
from muniment.core.ports.rows import advance, by_ids, chunked, get, texts
from muniment.core.ports.schema import (
    ENTRIES,
    ITEMS,
    LINKS,
    PLACES,
    PREFIXES,
    SESSIONS,
    TABLES,
    USERS,
    EntryRow,
    Table,
    UserRow,
    column_names,
)
from muniment.core.scope import is_corpus, lock_rank
from muniment.errors import NotFound, StoreDamaged, UnknownScope
from muniment.store.context import Context
from muniment.store.idempotency import clear_answers
from muniment.store.item_entries import entries_of_items, items_of_runs, origins_of
from muniment.store.items import (
    HOLDS_BODY,
    Change,
    Item,
    Rewritten,
    empty_items,
    kinds_held,
    latest,
    links_from,
    lock_memory,
    lock_receipts,
    lock_shared,
    receipts_of,
    select_items,
    write_changes,
)
from muniment.store.ledger.records import LEFT_DAMAGED, LEFT_EVENTS, LEFT_ITEMS, Erased, Receipt
from muniment.store.ledger.rows import EntryReceipt
from muniment.store.named_sources import entries_naming, items_made_from, items_naming, words_left, words_of
from muniment.store.proofs import prove
from muniment.store.proving.ends import followed
from muniment.store.proving.strays import altered_entries, claimed_entries, is_foreign_item
from muniment.store.turns import holders_of, names_of, users_of
from muniment.store.waiting import Waiting, hold_waiting, note_unseen, several_users

__all__ = ["SCRUB_DUE", "Selector", "empty_rows", "forget", "note_scrubbed", "receipt_change"]

SCRUB_DUE = "scrub_due"
"""The status of a receipt for what may still lie in the store's files."""
FOREIGN = "foreign"
"""Count of a receipt: rows that say they are part of it and are another's, and links that lead to another's; they were
left alone."""
INDEX_DROPPED = "index_dropped"
"""Count of a receipt: users whose index was damaged, and went whole."""
_BY_PLACE = ("user_id", "session_id", "seq")
_OF_MANY = tuple(spec.name for spec in TABLES if spec.forget == "reindex")
NEEDLES_MAX = 100_000
"""How many salts the engine is given to look for; of more than that, an even sample."""


@dataclass(frozen=True, slots=True)
class Selector:
    """What to forget within a tenant: one event, one item, a session, a user, or (none of these) everything."""

    event: str | None = None
    item: tuple[str, str] | None = None
    """(kind, id)"""
    session_id: str | None = None
    user_id: str | None = None
    document: tuple[str, ...] = ()
    """The sessions that are the revisions of a document, of the corpus that is the user."""
    values: tuple[str, ...] = ()
    """Entries that keep values, of the owner that is the user: each value goes in all that it ever was."""

    def receipt_fields(self, tenant_id: str) -> dict[str, str]:
        """What was to be forgotten, as a receipt names it."""
        asked: dict[str, str | None] = {
            "event": self.values[0] if self.values else self.event,
            "session_id": self.session_id,
            "user_id": self.user_id,
            "document": self.document[0] if self.document else None,
        }
        asked |= dict([] if self.item is None else [self.item])
        return {"tenant_id": tenant_id} | {name: value for name, value in asked.items() if value is not None}


@dataclass(slots=True)
class _Erasure:
    """What one forget touches."""

    entries: dict[str, tuple[bytes, bytes | None]]
    """Id → (hash, salt)."""
    items: dict[str, Item]
    kept: list[Change]
    counts: dict[str, int]
    needles: list[bytes]
    owners: frozenset[str] = frozenset()
    """Whose all of it is, and under which other names what is theirs stands."""
    words: list[str] = field(default_factory=list)
    """What the events said: looked for in live rows when all is done."""
    places: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """Where the rows of entries stand, by their ids: an id may be altered too."""
    absent: dict[str, str] = field(default_factory=dict)
    """Ids of what would tell of whole runs and is not here, and whose runs: what was made from it goes all the same."""

    @property
    def ids(self) -> list[str]:
        return [*self.entries, *self.items]


def forget(ctx: Context, tenant_id: str, selector: Selector) -> Receipt:
    """Erase what the selector means and everything derived from it, then scrub the store's files."""
    receipt_id = ctx.ids.new("rcp")
    now = ctx.now()
    with ExitStack() as held:
        files = _Files(held)
        waiting = hold_waiting(ctx, tenant_id, selector, held) if ctx.may_have_hooks else None
        erasure, receipt = ctx.engine.write(
            tenant_id, lambda tx: _erase(ctx, tx, tenant_id, selector, receipt_id, now, files, waiting)
        )
    _index_again(ctx, tenant_id, erasure)
    ctx.clear_caches()
    report = ctx.engine.scrub(erasure.needles)
    return ctx.engine.write(tenant_id, lambda tx: note_scrubbed(ctx, tx, receipt_id, 1, report)) or receipt


def note_scrubbed(ctx: Context, tx: Transaction, receipt_id: str, version: int, report: ScrubReport) -> Receipt | None:
    """Write into a receipt what was done to the files; answers it as it stands then, None where none does.

    One that waits no longer is left as it is: another process has scrubbed meanwhile. So is one that has another
    version than before the scrub: an import has emptied more, and its words may lie in the files."""
    lock_receipts(tx)
    item = latest(tx, receipt_id)
    if item is None or item.kind != "receipt":
        return None
    receipt = Receipt.from_wire(item.plain())
    if item.status == SCRUB_DUE and item.version == version:
        receipt, change = _scrubbed(receipt, report, note_unseen(ctx.address) if ctx.may_have_hooks else "")
        prove(ctx, tx, write_changes(tx, [change]))
    return receipt


def _scrubbed(receipt: Receipt, report: ScrubReport, unseen: str) -> tuple[Receipt, Change]:
    """The receipt with what was done to the files, and how it is written."""
    told = {
        "scrubbed": report.clean and receipt.is_clean,
        "note": f"{report.note}{receipt.left_note}{unseen}",
    }
    receipt = receipt.model_copy(update=told)
    return receipt, receipt_change(receipt, SCRUB_DUE if report.due else "issued")


def _users(tx: Transaction, erasure: _Erasure) -> set[str]:
    """Under whose names what goes stands."""
    return {*users_of(tx, list(erasure.entries)), *(item.user_id for item in erasure.items.values() if item.user_id)}


def _erase(
    ctx: Context, tx: Transaction, tenant_id: str, selector: Selector, receipt_id: str, now: str, files: _Files,
    waiting: Waiting | None,
) -> tuple[_Erasure, Receipt]:  # fmt: skip
    erasure = _Erasure(entries={}, items={}, kept=[], counts={}, needles=[])
    _lock_writers(ctx, tx, selector)
    try:
        _collect(ctx, tx, tenant_id, selector, erasure)
    except UnknownScope:
        if waiting is None or not waiting.is_some():
            raise
    erasure.owners = frozenset(name for user_id in _users(tx, erasure) for name in names_of(tx, user_id))
    _close(ctx, tx, erasure)
    altered = altered_entries(tx, list(erasure.entries)) + sum(not item.is_sound for item in erasure.items.values())
    erasure.counts[LEFT_DAMAGED] = erasure.counts.get(LEFT_DAMAGED, 0) + altered
    erasure.words = words_of(tx, list(erasure.entries))
    _sample_needles(erasure)
    erasure.counts["files"] = files.erase(ctx, tx, erasure)
    if waiting is not None:
        erasure.counts |= waiting.erase(tx, list(erasure.entries), erasure.owners)
    touched = [*erasure.ids, *(change.id for change in erasure.kept)]
    erasure.counts |= empty_rows(ctx, tx, touched, list(erasure.entries), receipt_id)
    answers = clear_answers(tx)
    erasure.counts |= answers.counts
    erasure.needles += answers.salts[:NEEDLES_MAX]
    _empty_placed(tx, erasure, receipt_id)
    write_changes(tx, erasure.kept)
    erased = (
        *(Erased(kind="event", id=id_, hash=hash_.hex()) for id_, (hash_, _) in erasure.entries.items()),
        *(Erased(kind=item.kind, id=item.id) for item in erasure.items.values()),
    )
    left = words_left(tx, erasure.words, erasure.owners)
    erasure.counts |= {LEFT_ITEMS: left.items, LEFT_EVENTS: left.events}
    receipt = Receipt(
        receipt_id=receipt_id,
        tenant_id=tenant_id,
        requested_at=now,
        selector=selector.receipt_fields(tenant_id),
        erased=erased,
        counts={name: count for name, count in erasure.counts.items() if count},
        scrubbed=False,
        note="the files have not been scrubbed yet",
    )
    receipt = receipt.concerning(receipts_of(receipt.user_among(_users(tx, erasure))))
    prove(ctx, tx, write_changes(tx, [receipt_change(receipt, SCRUB_DUE)]))
    return erasure, receipt


class _Files:
    """The files of what is forgotten, through all attempts at its transaction. Files first: were the store to fail
    after them, the forget was not answered. `held` keeps their directories locked until the store forgot too."""

    def __init__(self, held: ExitStack) -> None:
        self._held = held
        self._of: list[tuple[str, int]] | None = None
        """Of which versions of items they went; None where that is not known to be done."""
        self._removed = 0

    def erase(self, ctx: Context, tx: Transaction, erasure: _Erasure) -> int:
        """Remove them; answers how many went, in this attempt and before."""
        found = [
            (derivation.erase_files, _versions(tx, id_))
            for id_, item in erasure.items.items()
            if (derivation := ctx.derivations.get(item.kind)) is not None and derivation.erase_files is not None
        ]
        of = [(item.id, item.version) for _, versions in found for item in versions]
        if of == self._of:
            return self._removed  # they are gone, and where they were is locked
        self._of = None
        self._held.close()  # of an attempt that met other versions
        for erase_files, versions in found:
            with suppress(StoreDamaged):  # nobody can tell which files it had
                self._removed += erase_files(versions, self._held)
        self._of = of
        return self._removed


def _versions(tx: Transaction, item_id: str) -> list[Item]:
    return select_items(tx, (("id", "=", item_id), HOLDS_BODY))


def receipt_change(receipt: Receipt, status: str) -> Change:
    """A version of a receipt, in the list of whom it concerns."""
    return Change(
        id=receipt.receipt_id,
        kind="receipt",
        status=status,
        body=receipt.to_wire(),
        created_at=receipt.requested_at,
        trust="user",
        name=receipt.concerns,
    )


# -- what goes ----------------------------------------------------------------------------------------


def _lock_writers(ctx: Context, tx: Transaction, selector: Selector) -> None:
    """Let nobody derive from what is about to go. Who empties a whole tenant sees to its writers himself."""
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
        users += _owners_of(ctx, tx, where)
    else:
        users = [] if selector.user_id is None else list(names_of(tx, selector.user_id))
        if selector.session_id is not None:
            own: tuple[Condition, ...] = (("user_id", "in", tuple(users)), ("session_id", "=", selector.session_id))
            users += _owners_of(ctx, tx, own)
    if selector.user_id is not None and (selector.event is not None or selector.item is not None):
        users = [user_id for user_id in users if user_id == selector.user_id]  # nobody waits for a writer of another's
    lock_memory(tx, *users)
    lock_shared(tx)


def _collect(ctx: Context, tx: Transaction, tenant_id: str, selector: Selector, erasure: _Erasure) -> None:
    if selector.event is not None:
        entry = get(tx, ENTRIES, (selector.event,))
        if entry is None or (selector.user_id is not None and entry.user_id != selector.user_id):
            raise NotFound(f"no event {selector.event!r} in this scope", path="$.event")
        if is_corpus(entry.user_id) and entry.session_id == VALUES_SESSION:
            _take_values(tx, [entry.id], erasure)
            return
        if is_corpus(entry.user_id):  # its title and headings stand in every chunk: a document goes whole
            _collect(ctx, tx, tenant_id, Selector(session_id=entry.session_id, user_id=entry.user_id), erasure)
            return
        erasure.entries = {} if _is_gone(entry) else {entry.id: (entry.hash, entry.salt)}
    elif selector.item is not None:
        kind, id_ = selector.item
        item = latest(tx, id_)
        if item is None or item.kind != kind or (selector.user_id is not None and item.user_id != selector.user_id):
            raise NotFound(f"no {kind} {id_!r} in this scope", path=f"$.{kind}")
        if item.body is not None:
            erasure.items[id_] = item
        return
    elif selector.values:
        _take_values(tx, selector.values, erasure)
    else:
        where = _scope_of(tx, selector)
        _take_scope(tx, tenant_id, erasure, where)
        if owners := _owners_of(ctx, tx, where):
            _take_scope(tx, tenant_id, erasure, (("user_id", "in", owners),))


class _Keeping(NamedTuple):
    entry_id: str
    space: str
    path: str
    name: str


def _take_values(tx: Transaction, entry_ids: Sequence[str], erasure: _Erasure) -> None:
    """Add every entry that ever kept something under the names of these."""
    names = {each[1:] for each in by_ids(tx, PLACES, entry_ids, column="entry_id", into=_Keeping)}
    found = by_ids(tx, PLACES, sorted({name for _, _, name in names}), column="name", into=_Keeping)
    ids = {*entry_ids, *(each.entry_id for each in found if each[1:] in names)}
    for entry in by_ids(tx, ENTRIES, sorted(ids)):
        if not _is_gone(entry):
            erasure.entries[entry.id] = (entry.hash, entry.salt)


def _is_gone(entry: EntryRow) -> bool:
    """Was it forgotten? One that names a receipt and still holds something was edited, and is yet to go."""
    return entry.receipt_id is not None and entry.body is None and entry.salt is None


def _take_scope(tx: Transaction, tenant_id: str, erasure: _Erasure, where: tuple[Condition, ...]) -> None:
    """Add the items and entries of a scope: what is in it by its chains, whatever a row says."""
    claimed = claimed_entries(tx, tenant_id, where)
    owners = {row.user_id for row in claimed.entries}
    foreign = claimed.foreign
    kinds = tuple(kind for kind in kinds_held(tx) if kind != "receipt")
    for item in select_items(tx, (("kind", "in", kinds), *where)):
        if item.body is None:
            continue
        if owners and is_foreign_item(tx, item, owners):
            foreign += 1
        else:
            erasure.items[item.id] = item
    erasure.entries |= {row.id: (row.hash, row.salt) for row in claimed.entries}
    erasure.places |= {row.id: (row.user_id, row.session_id, row.seq) for row in claimed.entries}
    for name, count in ((LEFT_DAMAGED, claimed.missing), (FOREIGN, foreign)):
        erasure.counts[name] = erasure.counts.get(name, 0) + count


def _empty_placed(tx: Transaction, erasure: _Erasure, receipt_id: str) -> None:
    """Entries whose id was altered are emptied by their place."""
    values: dict[str, Value] = {"body": None, "salt": None, "receipt_id": receipt_id}
    held = {row.id for row in by_ids(tx, ENTRIES, list(erasure.places), into=EntryReceipt)}
    for id_, (user_id, session_id, seq) in erasure.places.items():
        if id_ not in held:
            where: tuple[Condition, ...] = (("user_id", "=", user_id), ("session_id", "=", session_id))
            erasure.counts["entries"] += tx.do(Patch("entries", (*where, ("seq", "=", seq)), values))


def _owners_of(ctx: Context, tx: Transaction, where: tuple[Condition, ...]) -> tuple[str, ...]:
    """The owners of the documents that were supplied for items of a scope alone: they go with them."""
    owned = {kind: derivation.owners for kind, derivation in ctx.derivations.items() if derivation.owners is not None}
    items = select_items(tx, (*where, ("kind", "in", tuple(owned)), HOLDS_BODY))
    owners: set[str] = set()
    for item in items:
        with suppress(StoreDamaged):  # nobody can tell whose documents it has
            owners.update(owned[item.kind](item))
    return tuple(sorted(owners))


def _scope_of(tx: Transaction, selector: Selector) -> tuple[Condition, ...]:
    """The conditions that mean the selector's scope, which must exist and be unambiguous."""
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


def _close(ctx: Context, tx: Transaction, erasure: _Erasure) -> None:
    """All that has to go with what was selected. What tells of a whole run falls with any event of it."""
    _add_origins(tx, erasure)
    _add_of_runs(ctx, tx, erasure)
    _close_over_links(ctx, tx, erasure)
    while _add_of_runs(ctx, tx, erasure):
        _close_over_links(ctx, tx, erasure)


def _close_over_links(ctx: Context, tx: Transaction, erasure: _Erasure) -> None:
    """Follow lineage: an item that cannot stand without what it lost is lost too, and so on.

    One that can stand is rewritten; what was derived from it may hold what it said before, and is asked as well.
    The `state_patch` entries that carried what went go with it.
    """
    lost = {*erasure.ids, *erasure.absent}
    own: dict[str, set[str]] = {}
    kept: dict[str, Change] = {}
    unfound: set[str] = set()
    citing = {kind for kind, derivation in ctx.derivations.items() if derivation.cites}
    frontier = [*lost, *_take_item_entries(tx, erasure, lost, own, erasure.items)]
    while frontier:
        reached = _reached(tx, erasure, frontier)
        named = items_naming(tx, citing, frontier, erasure.owners) | items_made_from(tx, frontier, erasure.owners)
        frontier = []
        asked: dict[str, Item] = {}
        for id_ in sorted((reached | named) - lost):
            item = latest(tx, id_)
            if item is None and id_ in reached and id_ not in unfound:
                unfound.add(id_)
                erasure.counts[LEFT_DAMAGED] = erasure.counts.get(LEFT_DAMAGED, 0) + 1
            if item is None or item.body is None:
                continue
            left = _without(ctx, item, frozenset(lost - own.get(id_, set())), kept.keys() - {id_})
            if id_ not in reached and left is not None and left == Rewritten(item.plain(), item.status, item.trust):
                continue  # it names what went, and holds nothing of it
            asked[id_] = item
            if left is None:
                lost.add(id_)
                kept.pop(id_, None)
                erasure.items[id_] = item
                frontier.append(id_)
            else:
                if id_ not in kept:
                    frontier.append(id_)
                kept[id_] = _rewritten(item, left)
        frontier += _take_item_entries(tx, erasure, lost, own, asked)
    erasure.kept = list(kept.values())


def _reached(tx: Transaction, erasure: _Erasure, ids: Sequence[str]) -> set[str]:
    """What was made from these by its links; those that lead to another's are left alone, and counted."""
    given = followed(tx, links_from(tx, ids, holders_of(tx, ids)), erasure.absent)
    erasure.counts[FOREIGN] = erasure.counts.get(FOREIGN, 0) + len(given.foreign)
    return {link.item_id for link in given.links}


def _add_origins(tx: Transaction, erasure: _Erasure) -> None:
    """A fact that is forgotten by name takes along the candidate or insight it was promoted from: the same words."""
    for item in list(erasure.items.values()):
        origins: tuple[str, ...] = ()
        with suppress(StoreDamaged):
            origins = origins_of(item)
        for id_ in origins:
            origin = latest(tx, id_)
            if origin is not None and origin.body is not None:
                erasure.items.setdefault(id_, origin)


def _add_of_runs(ctx: Context, tx: Transaction, erasure: _Erasure) -> bool:
    """Add the items that tell of a whole run that lost an event; says whether there is more to follow."""
    ids_of = [derivation.id_of_run for derivation in ctx.derivations.values() if derivation.id_of_run is not None]
    items, absent = items_of_runs(tx, list(erasure.entries), ids_of)
    new = items.keys() - erasure.items.keys()
    linked = by_ids(tx, LINKS, sorted(absent.keys() - erasure.absent.keys()), column="source_id")
    is_more = bool(new) or next(iter(linked), None) is not None
    erasure.items |= items
    erasure.absent |= absent
    for entry_of_item in entries_of_items(tx, items):
        erasure.entries[entry_of_item.entry_id] = (entry_of_item.hash, entry_of_item.salt)
    return is_more


def _take_item_entries(
    tx: Transaction, erasure: _Erasure, lost: set[str], own: dict[str, set[str]], items: Mapping[str, Item]
) -> list[str]:
    """Add the entries that carried what these items lost; `own` has them by item, which is judged without them."""
    taken: list[str] = []
    for entry_of_item in chain(entries_of_items(tx, items), entries_naming(tx, items, lost, erasure.owners)):
        if entry_of_item.entry_id not in lost and (entry_of_item.item_id in lost or entry_of_item.has_lost(lost)):
            erasure.entries[entry_of_item.entry_id] = (entry_of_item.hash, entry_of_item.salt)
            lost.add(entry_of_item.entry_id)
            own.setdefault(entry_of_item.item_id, set()).add(entry_of_item.entry_id)
            taken.append(entry_of_item.entry_id)
    return taken


def _without(ctx: Context, item: Item, lost: frozenset[str], rewritten: Set[str]) -> Rewritten | None:
    """What the item's derivation leaves of it. Of a kind that nobody declares, nothing."""
    derivation = ctx.derivations.get(item.kind)
    if derivation is None:
        return None
    try:
        left = derivation.without(item, lost | rewritten if derivation.copies else lost)
    except StoreDamaged:  # nobody can tell what it holds
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


def _sample_needles(erasure: _Erasure) -> None:
    """Byte strings that stood beside the content and nowhere else: the salts."""
    salts = [salt for _, salt in erasure.entries.values() if salt is not None]
    step = max(1, len(salts) // NEEDLES_MAX)
    erasure.needles = salts[::step][:NEEDLES_MAX]


# -- how it goes --------------------------------------------------------------------------------------


def empty_rows(
    ctx: Context, tx: Transaction, ids: Sequence[str], entry_ids: Sequence[str], receipt_id: str
) -> dict[str, int]:
    """Empty every row that holds content of these subjects, and take the entries among them out of what was made of
    many; answers how many rows of each table."""
    counts = {
        spec.name: empty_items(tx, ids, receipt_id) if spec is ITEMS else _clear(tx, spec, ids, receipt_id)
        for spec in TABLES
        if spec.subject is not None
    }
    for rows in (PLACES, PREFIXES):
        del counts[rows.name]  # the entries themselves are counted
    touched = sorted(users_of(tx, entry_ids), key=lock_rank)
    advance(tx, USERS, [UserRow(user_id, tail=0, indexed=0, embedded=0, generation=1) for user_id in touched])
    try:
        counts["extracts"] = ctx.derived.extracts.remove(tx, entry_ids)
        return counts | ctx.derived.index.remove(tx, entry_ids)
    except StoreDamaged:  # what was made of many goes whole where it cannot be made without these
        for name in (INDEX_DROPPED, *_OF_MANY):
            counts[name] = 0
        for user_id in users_of(tx, entry_ids):
            counts[INDEX_DROPPED] += 1
            for name in _OF_MANY:
                counts[name] += tx.do(Delete(name, (("user_id", "=", user_id),)))
        return counts


def _index_again(ctx: Context, tenant_id: str, erasure: _Erasure) -> None:
    """Make the index again of those whose blocks could not be made without what went; as far as their ledger holds."""
    if not erasure.counts.get(INDEX_DROPPED):
        return

    def work(tx: Transaction) -> None:
        for user_id in sorted(users_of(tx, list(erasure.entries)), key=lock_rank):
            ctx.derived.extracts.rebuild(tx, user_id)
            ctx.derived.index.rebuild(tx, tenant_id, user_id)

    with suppress(StoreDamaged):  # told by `verify`, and by a search
        ctx.engine.write(tenant_id, work)


def _clear(tx: Transaction, spec: Table[Any], ids: Sequence[str], receipt_id: str) -> int:
    """Do to a table's rows of these subjects what the table declares."""
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
