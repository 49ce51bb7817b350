"""Lists: a caller's query, and the resulting list, read a page at a time.

A list continues from a place in the store and not from a number, so that writes or forgets between two pages neither
lose nor repeat items. The library, HTTP pages, JSON lines and a connection all read the same `Listing`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

from muniment.core.canonical import canonical_bytes, digest_of, parse_json
from muniment.core.instants import check_window, format_instant, parse_instant
from muniment.core.requests import whole
from muniment.errors import InvalidInput, InvalidJson

__all__ = [
    "AROUND",
    "ORDERS",
    "PAGE_MAX",
    "PAGE_SIZE",
    "ListQuery",
    "Listing",
    "Page",
    "Placed",
    "check_limit",
    "list_items",
    "list_query",
    "matches",
    "read_listing",
    "shown",
]

T = TypeVar("T")

ORDERS = ("asc", "desc")
AROUND = 50
"""Default number of items shown around one."""
PAGE_SIZE, PAGE_MAX = 100, 1000
LOOKED_MAX = 2000
"""Places that one page examines, where a filter hides some of them."""


class Page(NamedTuple, Generic[T]):
    """A part of a list."""

    items: list[T]
    next: str | None
    """The cursor of the next page; None at the end of the list."""
    total: int | None = None
    """Number of items in the whole list; only on the first page, and only where counting needs no full read."""


class Listing(Sequence[T]):
    """A list of the store. Iterating reads page after page; `page()` is the first of them.

    The first page is read when the list is requested, so that a faulty query raises there.
    """

    def __init__(
        self,
        fetch: Callable[[str | None, int], Page[T]],
        *,
        limit: int | None = None,
        cursor: str | None = None,
        size: int = PAGE_SIZE,
        count: Callable[[], int | None] | None = None,
    ) -> None:
        """`fetch` reads the page after a cursor, up to a given number of items; `limit` bounds the whole list."""
        self._fetch = fetch
        self._limit = check_limit(limit)
        self._count = count if cursor is None else None
        self._first = fetch(cursor, min(self._limit or size, PAGE_MAX))
        self._all: list[T] | None = None

    def page(self) -> Page[T]:
        """Return the first page: at most `limit` items, or as many as fit in one page."""
        if self._count is None:
            return self._first
        return self._first._replace(total=self._count())

    def __iter__(self) -> Iterator[T]:
        return iter(self._all) if self._all is not None else islice(self._walk(), self._limit)

    def _walk(self) -> Iterator[T]:
        page, left = self._first, self._limit
        yield from page.items
        while page.next is not None:
            if left is not None:
                left -= len(page.items)
                if left <= 0:
                    return
            page = self._fetch(page.next, min(left or PAGE_MAX, PAGE_MAX))
            yield from page.items

    def _read(self) -> list[T]:
        if self._all is None:
            self._all = list(iter(self))  # not list(self), which asks for the length first
        return self._all

    def __len__(self) -> int:
        return len(self._read())

    def __bool__(self) -> bool:
        return bool(self._first.items) or (self._first.next is not None and next(iter(self), None) is not None)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self._read()[index]

    def __eq__(self, other: object) -> bool:
        return self._read() == list(other) if isinstance(other, list | tuple | Listing) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = repr(self._first.items)
        return shown if self._first.next is None else f"{shown[:-1]}, …]"


# -- queries --------------------------------------------------------------------------------------------


class Placed(NamedTuple, Generic[T]):
    """A list item and its place, from which a cursor continues."""

    place: tuple[Any, ...]
    value: T | None
    """None at a place with nothing to show: forgotten meanwhile, or filtered out."""


class ListQuery(NamedTuple):
    """A query of a list: its order, start, limit and filters."""

    descending: bool = False
    since: str | None = None
    """Inclusive lower bound of time."""
    until: str | None = None
    """Exclusive upper bound of time."""
    kind: str | None = None
    q: str | None = None
    """Words that it contains, ignoring case."""
    around: str | None = None
    """The id of the item that the shown items surround."""
    limit: int | None = None
    after: tuple[Any, ...] | None = None
    """The place to continue after."""
    looked_max: int | None = None
    """Maximum number of places examined before the list stops at an empty one."""

    @property
    def shown_max(self) -> int | None:
        return AROUND if self.limit is None and self.around is not None else self.limit


def list_query(
    *,
    order: Any = "asc",
    since: Any = None,
    until: Any = None,
    kind: Any = None,
    kinds: tuple[str, ...] = (),
    q: Any = None,
    around: Any = None,
    limit: Any = None,
) -> ListQuery:
    """Validate a caller's list query; `kinds` are the known ones."""
    if order not in ORDERS:
        raise InvalidInput(f"{order!r:.40} is not an order", path="$.order", hint="one of asc, desc")
    for name, given in (("kind", kind), ("q", q), ("around", around)):
        if given is not None and (not isinstance(given, str) or not given.strip()):
            raise InvalidInput(
                f"{name} should be a non-empty string", path=f"$.{name}", hint=f"leave {name} out for the whole list"
            )
    if kind is not None and kind not in kinds:
        raise InvalidInput(f"{kind!r:.40} is not a kind of it", path="$.kind", hint=f"one of {', '.join(kinds)}")
    number = check_limit(limit)
    start = None if since is None else format_instant(parse_instant(since, path="$.since"))
    end = None if until is None else format_instant(parse_instant(until, path="$.until"))
    check_window(start, end)
    return ListQuery(order == "desc", start, end, kind, q, around, number)


def check_limit(limit: Any) -> int | None:
    """Validate a limit: a whole number from 1, or None for all."""
    number = None if limit is None else whole(limit)
    if limit is not None and (type(number) is not int or number < 1):
        raise InvalidInput(
            "limit should be a whole number from 1", path="$.limit", hint="leave limit out for the whole list"
        )
    return number


def matches(q: str | None, *texts: str | None) -> bool:
    """Return whether one of these texts contains the words, ignoring case and spacing."""
    if q is None:
        return True
    wanted = _folded(q)
    return any(wanted in _folded(text) for text in texts if text)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def shown(placed: Iterable[Placed[T]], asked: ListQuery) -> Iterator[T]:
    """Yield a list's items within the query's bounds."""
    return islice((each.value for each in placed if each.value is not None), asked.shown_max)


# -- lists of a store -----------------------------------------------------------------------------------


class _Wired(Protocol):
    def to_wire(self) -> Any: ...


W = TypeVar("W", bound=_Wired)


def read_listing(
    name: str,
    kinds: tuple[type, ...],
    read: Callable[[ListQuery], Iterable[Placed[T]]],
    asked: ListQuery,
    cursor: str | None = None,
    count: Callable[[ListQuery], int | None] | None = None,
) -> Listing[T]:
    """Return a list whose items have places in the store; `kinds` are the types of a place's parts, `name` is the
    cursors' list.
    """

    def fetch(cursor: str | None, size: int) -> Page[T]:
        after = None if cursor is None else tuple(_open_cursor(name, kinds, cursor))
        items: list[T] = []
        last: tuple[Any, ...] = ()
        for each in read(asked._replace(after=after, limit=size, looked_max=LOOKED_MAX)):
            if each.value is None:  # the limit of examined places: a page may show fewer than it could, and continue
                return Page(items, _seal_cursor(name, each.place))
            if len(items) == size:
                return Page(items, _seal_cursor(name, last))
            items.append(each.value)
            last = each.place
        return Page(items, None)

    around = asked.around is not None and cursor is None
    limit = asked.shown_max if around else asked.limit
    total = None if count is None else lambda: count(asked)
    return Listing(fetch, limit=limit, cursor=cursor, size=AROUND if around else PAGE_SIZE, count=total)


def list_items(name: str, items: Sequence[W], limit: Any = None, cursor: str | None = None) -> Listing[W]:
    """Return a list that is read whole. A cursor finds its item again near where it was, and otherwise continues at
    that place.
    """

    def fetch(cursor: str | None, size: int) -> Page[W]:
        begin = 0
        if cursor is not None:
            at, digest = _open_cursor(name, (int, str), cursor)
            nearest = sorted(range(len(items)), key=lambda index: abs(index - (at - 1)))
            found = (index + 1 for index in nearest if digest_of(items[index].to_wire()) == digest)
            begin = next(found, max(0, at))
        page = list(items[begin : begin + size])
        end = begin + len(page)
        if end >= len(items):
            return Page(page, None)
        return Page(page, _seal_cursor(name, (end, digest_of(page[-1].to_wire()))))

    return Listing(fetch, limit=limit, cursor=cursor)


def _seal_cursor(name: str, place: tuple[Any, ...]) -> str:
    return base64.urlsafe_b64encode(canonical_bytes([name, *place])).decode().rstrip("=")


def _open_cursor(name: str, kinds: tuple[type, ...], cursor: Any) -> list[Any]:
    """Return the place that a cursor holds; `InvalidInput` where it is not a cursor of this list."""
    plain = None
    if isinstance(cursor, str):
        try:
            plain = parse_json(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
        except (binascii.Error, ValueError, InvalidJson):
            plain = None
    is_one = isinstance(plain, list) and plain[:1] == [name] and [type(each) for each in plain[1:]] == list(kinds)
    if not isinstance(plain, list) or not is_one:
        raise InvalidInput("not a cursor of this list", path="$.cursor", hint="send back `next` as it was answered")
    return plain[1:]
