"""Lists of a tenant that go owner by owner: items that have a status, without a look at those that have another.

No index leads from a status to the items of a whole tenant. One leads from an owner and a status there, so owners are
stepped through: one without such an item is a place with nothing at it, and a page looks at so many places at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from muniment.core.listing import Placed
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import first
from muniment.core.ports.schema import LISTINGS
from muniment.store.items import Item
from muniment.store.lists.seeking import Make, Place, Read, listed_versions, rows_listed

__all__ = ["each_owner", "in_turn", "read_by_owner"]

T = TypeVar("T")
Where = tuple[Condition, ...]
_PASSED = ("", "")


class _Owner(NamedTuple):
    owner: str


def each_owner(reader: Reader, kind: str, after: str | None = None) -> Iterator[str]:
    """Those who have something of a kind in a list, by name."""
    while True:
        where: Where = (("kind", "=", kind), *(() if after is None else (("owner", ">", after),)))
        row = first(reader, LISTINGS, where, into=_Owner, order=("owner", "status", "placed_at", "id"))
        if row is None:
            return
        after = row.owner
        yield after


def read_by_owner(kind: str, status: str | None, owner: str | None, make: Make[T]) -> Read[T]:
    """Items of a kind that have a status, of an owner or of everybody, oldest first. Places: owner, moment, id."""

    def read(reader: Reader, after: Place | None, _descending: bool, size: int) -> list[Placed[T]]:
        found: list[Placed[T]] = []
        if after is not None and after[1:] != _PASSED:
            found += _of_owner(reader, kind, status, after[0], after[1:], size, make)
        if owner is not None:
            return found if after is not None else _of_owner(reader, kind, status, owner, None, size, make)
        for name in each_owner(reader, kind, None if after is None else after[0]):
            if len(found) >= size:
                break
            own = _of_owner(reader, kind, status, name, None, size - len(found), make)
            found += own or [Placed((name, *_PASSED), None)]
        return found

    return read


def _of_owner(
    reader: Reader, kind: str, status: str | None, owner: str, after: Place | None, size: int, make: Make[T]
) -> list[Placed[T]]:
    where: Where = (("kind", "=", kind), ("owner", "=", owner))
    where += () if status is None else (("status", "=", status),)
    rows = rows_listed(reader, where, after=after, limit=size)
    items = listed_versions(reader, rows)
    held: Sequence[Item] = [items[row.id] for row in rows if row.id in items]
    made = dict(zip((item.id for item in held), make(reader, held), strict=True))
    return [Placed((owner, row.placed_at, row.id), made.get(row.id)) for row in rows]


def in_turn(reads: Sequence[Read[T]], is_asked: Callable[[int], bool]) -> Read[T]:
    """One list after another. A place begins with the number of its list."""

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[T]]:
        found: list[Placed[T]] = []
        begun: int = 0 if after is None else after[0]
        for number, each in enumerate(reads):
            if number < begun or not is_asked(number):
                continue
            place: Any = after[1:] if after is not None and number == begun else None
            own = each(reader, place, descending, size - len(found))
            found += [Placed((number, *placed.place), placed.value) for placed in own]
            if len(found) >= size:
                break
        return found

    return read
