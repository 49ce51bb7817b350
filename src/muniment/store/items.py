"""Items: every record derived from the ledger, as append-only versions, with their lineage and locks."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from math import isfinite
from typing import Any, NamedTuple, TypeVar

from muniment.core.canonical import canonical_bytes, canonical_text, digest, digest_of
from muniment.core.ports.engine import Condition, KeyTaken, Lock, LockAll, Patch, Reader, Row, Transaction
from muniment.core.ports.rows import by_ids, chunked, first, get, insert, put, select, stream
from muniment.core.ports.schema import ENTRIES, ITEMS, LINEAGES, LINKS, ItemRow, LineageRow, LinkRow
from muniment.core.scope import BANK_PREFIX, Trust, is_reserved
from muniment.errors import DuplicateId, Forgotten, InvalidJson, StoreDamaged

__all__ = [
    "HOLDS_BODY",
    "LINKED",
    "LISTED",
    "PROVEN",
    "SAID",
    "WRITTEN",
    "Change",
    "Item",
    "Rewritten",
    "add_item",
    "add_items",
    "checked_item",
    "digest_name",
    "emptied_item",
    "empty_items",
    "get_version",
    "item_of",
    "kinds_held",
    "latest",
    "latest_of_run",
    "lineage_digest",
    "lineage_fault",
    "lineage_of",
    "links_from",
    "links_of",
    "listed_versions",
    "listing_faults",
    "lock_item",
    "lock_memory",
    "lock_receipts",
    "lock_shared",
    "newest_items",
    "newest_of",
    "put_lineage",
    "put_links",
    "receipts_of",
    "relist",
    "row_digest",
    "seal_lineages",
    "select_items",
    "stream_items",
    "taken_ids",
    "write_changes",
]


PROVEN = frozenset({"build", "receipt"})
"""Kinds not made from entries: each version has a link in a chain of proofs (`store.proofs`)."""


LINKED = 3
"""`checked` of an item touched by a forget: the row's digest is followed by a digest of its sources."""
_DIGEST_BYTES = 32

WRITTEN = ItemRow._fields[: ItemRow._fields.index("newest")]
"""Columns with the content of a version. Those after them follow from the item's versions, and no digest covers them.
"""
SAID = WRITTEN[: WRITTEN.index("digest")]
"""The subset that a dump holds too."""

LISTED = frozenset(
    ("run", "build", "fact", "candidate", "claim", "conflict", "question", "verification", "document", "reasoning",
     "tactic", "seed", "trace_capsule", "rule", "event_log", "draft", "plan", "lesson_report")
)  # fmt: skip
"""Kinds that are shown in lists by their owner."""
_OF_RUN = frozenset(("claim", "conflict", "question", "verification"))


HOLDS_BODY: Condition = ("body", ">=", "")
"""Selects rows that hold content, whatever their receipt: one that names a receipt and still holds content was edited.
"""


class Item(ItemRow):
    """A row of `items`, one version of one item."""

    __slots__ = ()

    def plain(self) -> dict[str, Any]:
        """Return the body as plain data; raises `Forgotten` where it was erased."""
        if self.body is None and self.receipt_id is None:
            raise self.damaged("the content is missing and no receipt says why")
        if self.body is None:
            self.check()
            raise Forgotten(
                f"the {self.kind} {self.id} was forgotten",
                hint=f"receipt {self.receipt_id} says when and by which request",
                details={"id": self.id, "receipt_id": self.receipt_id},
            )
        try:
            value, end = _read(self.body)
            if _MAY_BE_HALF.search(self.body):
                canonical_text(value)
        except (ValueError, RecursionError, InvalidJson) as error:
            raise self.damaged(str(error)) from None
        if end != len(self.body) or type(value) is not dict:
            raise self.damaged("the body is not one object")
        self.check()
        return value

    def check(self) -> None:
        """Raise if the row was altered (TM-12)."""
        if not self.is_sound:
            raise self.damaged("the row was altered")

    @property
    def is_sound(self) -> bool:
        """Return whether the row matches its digest."""
        if (self.body is None) != (self.receipt_id is not None):  # a forget empties, and nothing else does
            return False
        if self.digest is None:  # left by a forget of a row that was altered before
            return self.body is None and self.checked != LINKED
        is_whole = len(self.digest) == _DIGEST_BYTES * (2 if self.checked == LINKED else 1)
        return is_whole and self.digest[:_DIGEST_BYTES] == row_digest(self)

    def damaged(self, why: str) -> StoreDamaged:
        """Return the error for an altered row."""
        return StoreDamaged(
            f"the {self.kind} {self.id} is not as it was written: {why}",
            details={"id": self.id, "version": self.version},
        )


_NONE, _NEXT = "\0", "\x1f"
"""No column holds a control character."""


def row_digest(row: ItemRow) -> bytes:
    """Return the digest of an item's row: of every column but itself, with the receipt where it was forgotten."""
    told = [value if type(value) is str else _NONE if value is None else str(value) for value in row[:_DIGESTED]]
    if row.body is None:
        told.append(row.receipt_id or _NONE)
    if row.checked:
        told.append(str(row.checked))
    return digest(_NEXT.join(told).encode("utf-8", "surrogatepass"))


_DIGESTED = ItemRow._fields.index("receipt_id")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError("a number without end")
    return number


_read = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite).raw_decode
"""Strict where that costs nothing: valid rows hold none of it, tampered ones may."""
_MAY_BE_HALF = re.compile(r"\\u[dD]")
"""The escape of half of a surrogate pair, which has no form in UTF-8; or a backslash before these letters."""


class Change(NamedTuple):
    """A new version of an item, still without its number."""

    id: str
    kind: str
    status: str
    body: dict[str, Any]
    created_at: str
    trust: Trust
    sources: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    """Further sources, where they are many: events of this user, or records of their bank."""
    name: str | None = None
    """A `digest_name`."""
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    is_mention: bool = False
    """Only its sources are new: they are linked, and no version is written."""


class Rewritten(NamedTuple):
    """The remainder of an item that lost a source, where its status or trust may have changed as well."""

    body: dict[str, Any]
    status: str
    trust: Trust


def digest_name(name: str) -> str:
    """Return the value of `Item.name` for a name: enough to look it up, without a word of it."""
    return digest_of(name)[:32]


def receipts_of(user_id: str | None) -> str | None:
    """Return the name of receipts that concern this user alone, or nobody where it is "". Receipts that concern several
    users, and those older than names, have none.
    """
    return None if user_id is None else digest_name(f"receipts of {user_id}")


def item_of(change: Change, version: int, placed_at: str | None = None) -> Item:
    """Return the newest version of an item; `placed_at` is the time of its first one, if that was another."""
    row = Item(
        id=change.id,
        version=version,
        kind=change.kind,
        user_id=change.user_id,
        agent_id=change.agent_id,
        session_id=change.session_id,
        run_id=change.run_id,
        status=change.status,
        name=change.name,
        created_at=change.created_at,
        trust=change.trust,
        body=canonical_text(change.body),
        receipt_id=None,
        digest=None,
        checked=0,
    )
    return checked_item(_listed(row, placed_at or row.created_at, is_last=True))


def checked_item(row: ItemRow) -> Item:
    """Return a row ready to be written, with its digest."""
    row = row._replace(digest=None, checked=2 if row.kind in PROVEN else 1)
    return Item(*row._replace(digest=row_digest(row)))


def emptied_item(row: ItemRow, receipt_id: str | None) -> Item:
    """Return a row as a forget leaves it. Without a receipt: its fields that survive a forget."""
    return Item(*row._replace(name=None, body=None, receipt_id=receipt_id, digest=None, checked=0, newest=0))


def empty_items(tx: Transaction, ids: Sequence[str], receipt_id: str) -> int:
    """Empty items, each with a new digest of the remainder; rows that had been altered get none."""
    count = 0
    for chunk in chunked(ids):
        rows = select_items(tx, (("id", "in", chunk),))
        left = [(row.is_sound, emptied_item(row, receipt_id)) for row in rows]
        put(tx, ITEMS, _with_lineages(tx, [checked_item(row) if is_sound else row for is_sound, row in left]))
        count += len(rows)
    return count


def seal_lineages(tx: Transaction, ids: Sequence[str]) -> None:
    """Seal the current sources of these forgotten items with a digest."""
    for chunk in chunked(ids):
        put(tx, ITEMS, _with_lineages(tx, select_items(tx, (("id", "in", chunk),))))


def _with_lineages(reader: Reader, versions: Sequence[Item]) -> list[Item]:
    """Return all versions of some items whose newest was forgotten with a digest of its sources: with the bodies and
    the salts of proofs gone, only that digest can verify them.
    """
    newest = {item.id: item for item in versions}
    left = [item for item in newest.values() if item.body is None and item.digest is not None and item.is_sound]
    told = _made_from(reader, [item.id for item in left])
    newest |= {item.id: _with_lineage(item, told[item.id]) for item in left}
    return [newest[item.id] if item.version == newest[item.id].version else item for item in versions]


def _with_lineage(item: Item, made_from: bytes) -> Item:
    sealed = item._replace(digest=None, checked=LINKED)
    own = row_digest(sealed)
    return Item(*sealed._replace(digest=own + digest(own + made_from)))


def lineage_fault(reader: Reader, item: Item) -> str | None:
    """Return which links of a forgotten item changed since the forget, or None if none did or nothing was sealed."""
    if item.checked != LINKED or item.digest is None or get(reader, ITEMS, (item.id, item.version + 1)) is not None:
        return None  # an item that was written again has other links since
    return None if item.digest[_DIGEST_BYTES:] == lineage_digest(reader, item) else "its links were altered"


def lineage_digest(reader: Reader, item: Item) -> bytes:
    """Return a digest of an item's row and its sources; a receipt has no sources."""
    made_from = canonical_bytes([None]) if item.kind == "receipt" else _made_from(reader, [item.id])[item.id]
    return digest(row_digest(item) + made_from)


def _made_from(reader: Reader, ids: Sequence[str]) -> dict[str, bytes]:
    """Return, by item, the user whose turns its lineage has, and all its sources in order."""
    sources: dict[str, set[str]] = {id_: set() for id_ in ids}
    for link in by_ids(reader, LINKS, ids, column="item_id"):
        sources.setdefault(link.item_id, set()).add(link.source_id)  # a damaged file may lead to another's
    owners: dict[str, str | None] = dict.fromkeys(ids)
    for lineage in by_ids(reader, LINEAGES, ids, column="item_id"):
        owners[lineage.item_id] = lineage.user_id
        sources.setdefault(lineage.item_id, set()).update(lineage.turns.split(_BETWEEN))
    return {id_: canonical_bytes([owners[id_], *sorted(sources[id_])]) for id_ in ids}


def latest(reader: Reader, item_id: str) -> Item | None:
    """Return the newest version of an item."""
    return first(reader, ITEMS, (("id", "=", item_id),), into=Item, order=("id", "version"), descending=True)


def latest_of_run(reader: Reader, kind: str, user_id: str, run_id: str) -> Item | None:
    """Return the newest item of a kind that a run of this user has; None where it has none, or it was forgotten."""
    where: tuple[Condition, ...] = (("kind", "=", kind), ("run_id", "=", run_id))
    item = first(reader, ITEMS, where, into=Item, order=("created_at", "id", "version"), descending=True)
    return None if item is None or item.body is None or item.user_id != user_id else item


def get_version(reader: Reader, item_id: str, version: int) -> Item | None:
    """Return one version of an item."""
    row = get(reader, ITEMS, (item_id, version))
    return None if row is None else Item(*row)


def select_items(
    reader: Reader,
    where: tuple[Condition, ...],
    *,
    order: tuple[str, ...] = ("id", "version"),
    after: Row | None = None,
    descending: bool = False,
    limit: int | None = None,
) -> list[Item]:
    """Versions of items that meet all conditions."""
    return select(reader, ITEMS, where, into=Item, order=order, after=after, descending=descending, limit=limit)


def stream_items(
    reader: Reader,
    where: tuple[Condition, ...],
    *,
    order: tuple[str, ...] = ("id", "version"),
    descending: bool = False,
) -> Iterator[Item]:
    """Versions of items that meet all conditions, one by one, in flat memory."""
    return stream(reader, ITEMS, where, into=Item, order=order, descending=descending)


class _Kind(NamedTuple):
    kind: str


def kinds_held(reader: Reader) -> list[str]:
    """Return the kinds that the tenant's items have, whether declared or not, with one lookup each."""
    kinds: list[str] = []
    order = ("kind", "created_at")
    while (row := first(reader, ITEMS, _behind(kinds), into=_Kind, order=order)) is not None:
        kinds.append(row.kind)
    return kinds


def _behind(kinds: Sequence[str]) -> tuple[Condition, ...]:
    return (("kind", ">", kinds[-1]),) if kinds else ()


def newest_items(
    reader: Reader, where: tuple[Condition, ...], *, order: tuple[str, ...] = ("id", "version")
) -> list[Item]:
    """Return the newest version of each item that has one that meets all conditions, without forgotten ones.

    `order` is one in which an item's versions rise; items are ordered by their first versions.
    """
    return newest_of(select_items(reader, where, order=order))


def newest_of(versions: Iterable[Item]) -> list[Item]:
    """Return the last version of each item, in the order of the first ones, without forgotten ones."""
    newest = {item.id: item for item in versions}
    return [item for item in newest.values() if item.body is not None]


def write_changes(tx: Transaction, changes: Iterable[Change]) -> list[Item]:
    """Write each change as the next version of its item, with its lineage; for a repeated mention, only its sources."""
    return [_write_change(tx, change) for change in changes]


def _write_change(tx: Transaction, change: Change) -> Item:
    before = latest(tx, change.id)
    if before is None:
        return add_item(tx, change)
    if before.kind != change.kind:
        raise _taken(change)  # another user may own it, so not even its kind is revealed
    if change.is_mention:
        put_links(tx, change.id, change.sources)
        return before
    if before.newest:
        tx.do(Patch("items", (("id", "=", before.id), ("version", "=", before.version)), {"newest": 0}))
    return _write(tx, change, before.version + 1, before.placed_at)


def add_item(tx: Transaction, change: Change) -> Item:
    """Add the first version of an item. Of two that take one id of the tenant at once, one is refused (X-09)."""
    try:
        return add_items(tx, [change])[0]
    except KeyTaken:
        raise _taken(change) from None


def add_items(tx: Transaction, changes: Sequence[Change]) -> list[Item]:
    """Add the first versions of items that nobody else has; raises `KeyTaken` if an item has one of their ids."""
    by_id = {change.id: change for change in changes}
    tx.do(LockAll([("id", id_) for id_ in sorted(by_id)]))
    for entry in by_ids(tx, ENTRIES, list(by_id), into=_Id):
        raise _taken(by_id[entry.id])
    items = [item_of(change, 1) for change in changes]
    insert(tx, ITEMS, items)
    links = [LinkRow(source, change.id) for change in changes for source in dict.fromkeys(change.sources)]
    if links:
        put(tx, LINKS, links)
    for change in changes:
        put_lineage(tx, change.id, change.user_id or "", tuple(dict.fromkeys(change.turns)))
    return items


class _Id(NamedTuple):
    id: str


def taken_ids(reader: Reader, ids: Sequence[str]) -> set[str]:
    """Return those of these ids that an event or item of the tenant has or had, including forgotten ones (X-09)."""
    return {row.id for spec in (ENTRIES, ITEMS) for row in by_ids(reader, spec, ids, into=_Id)}


def _write(tx: Transaction, change: Change, version: int, placed_at: str | None = None) -> Item:
    item = item_of(change, version, placed_at)
    insert(tx, ITEMS, [item])
    put_links(tx, change.id, change.sources)
    earlier = lineage_of(tx, change.id) if version > 1 and change.turns else ()
    put_lineage(tx, change.id, change.user_id or "", tuple(dict.fromkeys((*earlier, *change.turns))))
    return item


def _taken(change: Change) -> DuplicateId:
    hint = f"leave {change.kind}_id out to have one minted"
    return DuplicateId(f"the id {change.id!r} is taken", path=f"$.{change.kind}_id", hint=hint)


# -- places in lists ----------------------------------------------------------------------------------


class _Place(NamedTuple):
    """The columns of a version that decide which list shows it, and where."""

    id: str
    version: int
    kind: str
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    created_at: str
    receipt_id: str | None
    newest: int
    owner: str | None
    placed_at: str


L = TypeVar("L", ItemRow, _Place)


def listed_versions(versions: Sequence[L]) -> list[L]:
    """Return all versions of one item, in order, with the columns by which lists find them."""
    return [_listed(each, versions[0].created_at, is_last=each is versions[-1]) for each in versions]


def _listed(row: L, placed_at: str, *, is_last: bool) -> L:
    is_of_agent = row.kind != "run" or not is_reserved(row.user_id or "")
    newest = int(is_last and row.receipt_id is None and is_of_agent)
    return row._replace(newest=newest, owner=_owner_of_list(row), placed_at=placed_at)


def _owner_of_list(row: ItemRow | _Place) -> str | None:
    """Return whose list shows an item. One without a user belongs to an agent or the tenant, by the bank's names."""
    if row.kind not in LISTED:
        return None
    if row.kind in _OF_RUN:
        return row.run_id or ""
    if row.user_id is not None:
        return row.user_id
    return f"{BANK_PREFIX}tenant" if row.agent_id is None else f"{BANK_PREFIX}agent:{row.agent_id}"


def listing_faults(reader: Reader, where: tuple[Condition, ...] = ()) -> Iterator[_Place]:
    """Yield versions that lists would not find correctly."""
    versions = stream(reader, ITEMS, where, into=_Place, order=("id", "version"))
    for _, group in groupby(versions, key=lambda each: each.id):
        held = list(group)
        yield from (wanted for one, wanted in zip(held, listed_versions(held), strict=True) if one != wanted)


def relist(tx: Transaction, item_id: str | None = None) -> None:
    """Repair the list columns of an item's versions, or of all."""
    for each in list(listing_faults(tx, () if item_id is None else (("id", "=", item_id),))):
        place = {"newest": each.newest, "owner": each.owner, "placed_at": each.placed_at}
        tx.do(Patch("items", (("id", "=", each.id), ("version", "=", each.version)), place))


# -- lineage ------------------------------------------------------------------------------------------

_BETWEEN = "\n"
"""No id holds a control character."""


def put_links(tx: Transaction, item_id: str, sources: Iterable[str]) -> None:
    links = [LinkRow(source, item_id) for source in sources]
    if links:
        put(tx, LINKS, links)


def put_lineage(tx: Transaction, item_id: str, user_id: str, turns: Sequence[str]) -> None:
    """Store the item's sources of this user, turns or records of their bank: all of it, once."""
    if turns:
        put(tx, LINEAGES, [LineageRow(item_id, user_id, _BETWEEN.join(turns))])


def lineage_of(reader: Reader, item_id: str) -> tuple[str, ...]:
    """Return the sources named by the one row."""
    lineage = get(reader, LINEAGES, (item_id,))
    return () if lineage is None else tuple(lineage.turns.split(_BETWEEN))


def links_of(reader: Reader, item_id: str) -> list[LinkRow]:
    """Return the item's sources as rows of `links` in order, wherever they are stored."""
    links = select(reader, LINKS, (("item_id", "=", item_id),))
    return sorted({*links, *(LinkRow(turn, item_id) for turn in lineage_of(reader, item_id))})


def links_from(reader: Reader, ids: Sequence[str], users: Iterable[str], known: Collection[str] = ()) -> list[LinkRow]:
    """Return the links from these sources to items, except those already known.

    `users` are those in whose memory the sources are: a lineage names sources of one user.
    """
    found = {link: None for link in by_ids(reader, LINKS, ids, column="source_id") if link.item_id not in known}
    wanted = frozenset(ids)
    for user_id in users:
        for lineage in stream(reader, LINEAGES, (("user_id", "=", user_id),)):
            if lineage.item_id in known:
                continue
            for turn in wanted.intersection(lineage.turns.split(_BETWEEN)):
                found[LinkRow(turn, lineage.item_id)] = None
    return list(found)


_SHARED = ""
"""No user has this name."""


def lock_memory(tx: Transaction, *user_ids: str) -> None:
    for user_id in sorted(set(user_ids)):
        tx.do(Lock(("memory", user_id)))


def lock_shared(tx: Transaction) -> None:
    tx.do(Lock(("memory", _SHARED)))


def lock_item(tx: Transaction, *item_ids: str) -> None:
    for item_id in sorted(set(item_ids)):
        tx.do(Lock(("item", item_id)))


def lock_receipts(tx: Transaction) -> None:
    """Serialize updates of receipts; taken after all other locks but those of proofs."""
    tx.do(Lock(("scrub",)))
