"""Reading a list on from a place, in either order: a stretch of it in each transaction, and of no more than is shown.

What an item means is its room's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from muniment.core.listing import Listing, Placed
from muniment.core.ports.engine import Condition, Count, Reader
from muniment.core.ports.rows import by_ids, first, get, select
from muniment.core.ports.schema import ITEMS, LISTINGS, ListingRow
from muniment.errors import NotFound
from muniment.store.context import Context
from muniment.store.items import Item

__all__ = [
    "COUNT_MAX",
    "Make",
    "Place",
    "Read",
    "count_listed",
    "count_rows",
    "each_made",
    "find_listed",
    "listed_versions",
    "listed_where",
    "merged",
    "read_listed",
    "read_named",
    "read_versions",
    "rows_listed",
    "seek",
]

T = TypeVar("T")
Where = tuple[Condition, ...]
Place = tuple[Any, ...]
Read = Callable[[Reader, Place | None, bool, int], list[Placed[T]]]
"""At most so many places after one, in order or, turned around, before it."""
Make = Callable[[Reader, Sequence[Item]], Sequence[T | None]]
"""What is shown of items, in their order; None where nothing is."""

COUNT_MAX = 200_000
"""What is more than this many is not counted for a list."""
_AT_ONCE = 200
"""Places that one transaction looks at."""


def each_made(make: Callable[[Item], T | None]) -> Make[T]:
    """What is shown of each item by itself."""
    return lambda _reader, items: [make(item) for item in items]


def seek(
    ctx: Context,
    tenant_id: str,
    read: Read[T],
    asked: Listing,
    find: Callable[[Reader, str], Placed[T] | None] | None = None,
) -> Iterator[Placed[T]]:
    """A list from where it is asked for, one short transaction for each stretch of it.

    Around one that `find` finds, half of what is shown comes before it.
    """
    if asked.around is None:
        yield from _on(ctx, tenant_id, read, asked.after, asked)
        return
    around = asked.around
    middle = None if find is None else ctx.engine.read(tenant_id, lambda reader: find(reader, around))
    if middle is None:
        raise NotFound(f"no {around!r:.80} in this list", path="$.around", hint="give the id of one that it shows")
    if asked.after is not None:  # gone on from a page around it
        yield from _on(ctx, tenant_id, read, asked.after, asked)
        return
    half = (asked.shown_max or 1) // 2
    turned = asked._replace(descending=not asked.descending, limit=half)
    before = islice((each for each in _on(ctx, tenant_id, read, middle.place, turned) if each.value is not None), half)
    yield from reversed(list(before))
    yield middle
    yield from _on(ctx, tenant_id, read, middle.place, asked)


def _on(ctx: Context, tenant_id: str, read: Read[T], after: Place | None, asked: Listing) -> Iterator[Placed[T]]:
    looked = 0
    size = _AT_ONCE if asked.limit is None else min(asked.limit + 1, _AT_ONCE)
    while True:
        found = ctx.engine.read(tenant_id, partial(_stretch, read, after, asked.descending, size))
        for each in found:
            looked += 1
            if each.value is not None:
                yield each
            elif asked.looked_max is not None and looked >= asked.looked_max:
                yield each
                return
        if len(found) < size:
            return
        after = found[-1].place


def _stretch(read: Read[T], after: Place | None, descending: bool, size: int, reader: Reader) -> list[Placed[T]]:
    return read(reader, after, descending, size)


def merged(*reads: Read[T]) -> Read[T]:
    """Several lists in one order."""

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        found = [placed for each in reads for placed in each(reader, after, descending, size)]
        found.sort(key=lambda placed: placed.place, reverse=descending)
        return found[:size]

    return reads[0] if len(reads) == 1 else read


def read_listed(kind: str, owner: str | None, make: Make[T], asked: Listing, status: str | None = None) -> Read[T]:
    """Items of a kind in the order in which they were first written: of an owner, or of the tenant."""
    where = listed_where(kind, owner, asked, status)

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        rows = rows_listed(reader, where, after=after, descending=descending, limit=size)
        items = listed_versions(reader, rows)
        held = [items[row.id] for row in rows if row.id in items]
        made = dict(zip((item.id for item in held), make(reader, held), strict=True))
        return [Placed((row.placed_at, row.id), made.get(row.id)) for row in rows]

    return read


class _Status(NamedTuple):
    status: str


def rows_listed(
    reader: Reader, where: Where, *, after: Place | None = None, descending: bool = False, limit: int
) -> list[ListingRow]:
    """The next rows of a list of one kind: of the tenant, or of an owner.

    Those of an owner stand by their status in the index, and within it in the order of the list. So without a status
    the first of each are read, and put in one order.
    """
    order = ("placed_at", "id")
    named = {column for column, _, _ in where}
    if "owner" not in named or "status" in named:
        return select(reader, LISTINGS, where, order=order, after=after, descending=descending, limit=limit)
    found: list[ListingRow] = []
    for status in _statuses(reader, tuple(each for each in where if each[0] in ("kind", "owner"))):
        own = (*where, ("status", "=", status))
        found += select(reader, LISTINGS, own, order=order, after=after, descending=descending, limit=limit)
    found.sort(key=lambda row: (row.placed_at, row.id), reverse=descending)
    return found[:limit]


def _statuses(reader: Reader, where: Where) -> Iterator[str]:
    """The statuses that something of a kind and an owner has: one step in the index for each."""
    last: Where = ()
    while True:
        row = first(reader, LISTINGS, (*where, *last), into=_Status, order=("status", "placed_at", "id"))
        if row is None:
            return
        last = (("status", ">", row.status),)
        yield row.status


def listed_where(kind: str, owner: str | None, asked: Listing, status: str | None = None) -> Where:
    where: Where = (("kind", "=", kind),)
    where += () if owner is None else (("owner", "=", owner),)
    where += () if status is None else (("status", "=", status),)
    where += () if asked.since is None else (("placed_at", ">=", asked.since),)
    return where + (() if asked.until is None else (("placed_at", "<", asked.until),))


def listed_versions(reader: Reader, rows: Sequence[ListingRow]) -> dict[str, Item]:
    """The items of these rows in the versions that they name, by id."""
    asked: dict[int, list[str]] = {}
    for row in rows:
        asked.setdefault(row.version, []).append(row.id)
    found: dict[str, Item] = {}
    for version, ids in asked.items():
        for item in by_ids(reader, ITEMS, ids, into=Item, where=(("version", "=", version),)):
            if item.body is not None:
                found[item.id] = item
    return found


def find_listed(kinds: Sequence[str], owner: str | None, make: Make[T]) -> Callable[[Reader, str], Placed[T] | None]:
    """What finds the one of these kinds and this owner that has an id."""

    def find(reader: Reader, item_id: str) -> Placed[T] | None:
        row = get(reader, LISTINGS, (item_id,))
        if row is None or row.kind not in kinds or owner not in (None, row.owner):
            return None
        made = make(reader, list(listed_versions(reader, [row]).values()))
        return Placed((row.placed_at, row.id), made[0]) if made and made[0] is not None else None

    return find


def read_versions(item_id: str, make: Make[T]) -> Read[T]:
    """The versions of one item that were not forgotten, by their numbers."""
    where: Where = (("id", "=", item_id), ("receipt_id", "=", None))

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        place = None if after is None else (item_id, after[0])
        order = ("id", "version")
        rows = select(reader, ITEMS, where, into=Item, order=order, after=place, descending=descending, limit=size)
        return [Placed((row.version,), value) for row, value in zip(rows, make(reader, rows), strict=True)]

    return read


def read_named(kind: str, whose: Where, name: str, make: Make[T]) -> Read[T]:
    """The items of a kind that have a name, each by its newest version, in the order in which those were written."""
    where: Where = (("kind", "=", kind), *whose, ("name", "=", name))

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        order = ("created_at", "id", "version")
        rows = select(reader, ITEMS, where, into=Item, order=order, after=after, descending=descending, limit=size)
        newest = [row for row in rows if row.body is not None and _is_newest(reader, row)]
        made = dict(zip(((row.id, row.version) for row in newest), make(reader, newest), strict=True))
        return [Placed((row.created_at, row.id, row.version), made.get((row.id, row.version))) for row in rows]

    return read


class _Version(NamedTuple):
    version: int


def _is_newest(reader: Reader, row: Item) -> bool:
    where: Where = (("id", "=", row.id), ("version", ">", row.version))
    return first(reader, ITEMS, where, into=_Version, order=("id", "version")) is None


def count_rows(ctx: Context, tenant_id: str, table: str, where: Where) -> int | None:
    """How many rows there are; None where there are more than are counted."""
    found = ctx.engine.read(tenant_id, lambda reader: reader.do(Count(table, where, COUNT_MAX + 1)))
    return None if found > COUNT_MAX else found


def count_listed(ctx: Context, tenant_id: str, kind: str, owner: str | None, asked: Listing) -> int | None:
    """How many of a kind an owner has, or the tenant; None where not every one is shown, or there are too many."""
    if asked.q is not None:
        return None
    return count_rows(ctx, tenant_id, "listings", listed_where(kind, owner, asked))
