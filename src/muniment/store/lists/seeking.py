"""Reading a list on from a place, in either order: each transaction reads one stretch, no longer than is shown.

The rooms decide what an item means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from muniment.core.listing import ListQuery, Placed
from muniment.core.ports.engine import Condition, Count, Reader
from muniment.core.ports.rows import by_ids, first, select, texts
from muniment.core.ports.schema import ITEMS
from muniment.errors import NotFound
from muniment.store.context import Context
from muniment.store.items import Item, latest

__all__ = [
    "COUNT_MAX",
    "NEWEST",
    "Listed",
    "Make",
    "Place",
    "Read",
    "count_listed",
    "count_rows",
    "each_made",
    "find_listed",
    "in_turn",
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
"""Returns at most this many places after one, in order, or before it if reversed."""
Make = Callable[[Reader, Sequence[Item]], Sequence[T | None]]
"""Returns what to show of items, in their order; None where nothing is."""

NEWEST: Where = (("newest", "=", 1),)
COUNT_MAX = 200_000
"""Longer lists are not counted."""
_AT_ONCE = 200
"""Places that one transaction looks at."""


def each_made(make: Callable[[Item], T | None]) -> Make[T]:
    """Convert each item by itself."""
    return lambda _reader, items: [make(item) for item in items]


def seek(
    ctx: Context,
    tenant_id: str,
    read: Read[T],
    asked: ListQuery,
    find: Callable[[Reader, str], Placed[T] | None] | None = None,
) -> Iterator[Placed[T]]:
    """Read a list from the requested place, one short transaction for each stretch.

    Around an item that `find` finds, half of the page comes before it.
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


def _on(ctx: Context, tenant_id: str, read: Read[T], after: Place | None, asked: ListQuery) -> Iterator[Placed[T]]:
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
    """Merge several lists into one order."""

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        found = [placed for each in reads for placed in each(reader, after, descending, size)]
        found.sort(key=lambda placed: placed.place, reverse=descending)
        return found[:size]

    return reads[0] if len(reads) == 1 else read


def read_listed(kind: str, owner: str | None, make: Make[T], asked: ListQuery, status: str | None = None) -> Read[T]:
    """Read items of a kind in the order in which they were first written: an owner's, or the tenant's."""
    where = listed_where(kind, owner, asked, status)

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        rows = rows_listed(reader, where, after=after, descending=descending, limit=size)
        items = _items_of(reader, rows)
        held = [items[row.id] for row in rows if row.id in items]
        made = dict(zip((item.id for item in held), make(reader, held), strict=True))
        return [Placed((row.placed_at, row.id), made.get(row.id)) for row in rows]

    return read


class Listed(NamedTuple):
    """An item by its place in a list."""

    placed_at: str
    id: str


class _Status(NamedTuple):
    status: str


_LISTED = ("placed_at", "id")


def rows_listed(
    reader: Reader, where: Where, *, after: Place | None = None, descending: bool = False, limit: int
) -> list[Listed]:
    """Return the next places of a list of one kind: the tenant's, or an owner's.

    The indexes sort by status first. So without a status the first places of each status are read and merged.
    """
    named = {column for column, _, _ in where}
    statuses = [None] if "status" in named else list(_statuses(reader, where))
    found: list[Listed] = []
    for status in statuses:
        own: Where = where if status is None else (*where, ("status", "=", status))
        found += select(reader, ITEMS, own, into=Listed, order=_LISTED, after=after, descending=descending, limit=limit)
    return found if len(statuses) < 2 else _in_order(reader, found, descending=descending)[:limit]


def _in_order(reader: Reader, rows: list[Listed], *, descending: bool) -> list[Listed]:
    """Sort places in list order. The engine decides how ids placed at one moment compare."""
    counts = Counter(row.placed_at for row in rows)
    tied = tuple(row.id for row in rows if counts[row.placed_at] > 1)
    ids = texts(reader, ITEMS, "id", (("id", "in", tied), *NEWEST), order=("id", "version")) if tied else []
    ranks = {id_: rank for rank, id_ in enumerate(ids)}
    return sorted(rows, key=lambda row: (row.placed_at, ranks.get(row.id, 0)), reverse=descending)


def _statuses(reader: Reader, where: Where) -> Iterator[str]:
    """Yield the statuses present for a kind and an owner, with one index step for each."""
    pinned: Where = tuple(each for each in where if each[0] != "placed_at")
    last: Where = ()
    while True:
        row = first(reader, ITEMS, (*pinned, *last), into=_Status, order=("status", *_LISTED))
        if row is None:
            return
        last = (("status", ">", row.status),)
        yield row.status


def listed_where(kind: str, owner: str | None, asked: ListQuery, status: str | None = None) -> Where:
    where: Where = (("kind", "=", kind), *NEWEST)
    where += () if owner is None else (("owner", "=", owner),)
    where += () if status is None else (("status", "=", status),)
    where += () if asked.since is None else (("placed_at", ">=", asked.since),)
    return where + (() if asked.until is None else (("placed_at", "<", asked.until),))


def _items_of(reader: Reader, rows: Sequence[Listed]) -> dict[str, Item]:
    """Return the items at these places, by id."""
    items = by_ids(reader, ITEMS, [row.id for row in rows], into=Item, where=NEWEST)
    return {item.id: item for item in items}


def find_listed(kinds: Sequence[str], owner: str | None, make: Make[T]) -> Callable[[Reader, str], Placed[T] | None]:
    """Return a function that finds an item of these kinds and this owner by id."""

    def find(reader: Reader, item_id: str) -> Placed[T] | None:
        item = latest(reader, item_id)
        if item is None or not item.newest or item.kind not in kinds or owner not in (None, item.owner):
            return None
        made = make(reader, [item])[0]
        return None if made is None else Placed((item.placed_at, item.id), made)

    return find


def read_versions(item_id: str, make: Make[T]) -> Read[T]:
    """Return the versions of one item that were not forgotten, by their numbers."""
    where: Where = (("id", "=", item_id), ("receipt_id", "=", None))

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        place = None if after is None else (item_id, after[0])
        order = ("id", "version")
        rows = select(reader, ITEMS, where, into=Item, order=order, after=place, descending=descending, limit=size)
        return [Placed((row.version,), value) for row, value in zip(rows, make(reader, rows), strict=True)]

    return read


def read_named(kind: str, whose: Where, name: str, make: Make[T]) -> Read[T]:
    """Return the items of a kind that have a name, each by its newest version, in the order those were written."""
    where: Where = (("kind", "=", kind), *whose, ("name", "=", name), *NEWEST)

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        order = ("created_at", "id", "version")
        rows = select(reader, ITEMS, where, into=Item, order=order, after=after, descending=descending, limit=size)
        made = make(reader, rows)
        return [Placed((row.created_at, row.id, row.version), each) for row, each in zip(rows, made, strict=True)]

    return read


def in_turn(reads: Mapping[int, Read[T]]) -> Read[T]:
    """Read one list after another. A place begins with the number of its list."""

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        found: list[Placed[T]] = []
        begun: int = 0 if after is None else after[0]
        for number, each in reads.items():
            if number < begun or len(found) >= size:
                continue
            place = after[1:] if after is not None and number == begun else None
            own = each(reader, place, descending, size - len(found))
            found += [Placed((number, *placed.place), placed.value) for placed in own]
        return found

    return read


def count_rows(ctx: Context, tenant_id: str, table: str, where: Where) -> int | None:
    """Count rows; None where there are more than the counting limit."""
    found = ctx.engine.read(tenant_id, lambda reader: reader.do(Count(table, where, COUNT_MAX + 1)))
    return None if found > COUNT_MAX else found


def count_listed(ctx: Context, tenant_id: str, kind: str, owner: str | None, asked: ListQuery) -> int | None:
    """Count an owner's, or the tenant's, items of a kind; None where a filter applies, or there are too many."""
    if asked.q is not None:
        return None
    return count_rows(ctx, tenant_id, "items", listed_where(kind, owner, asked))
