"""Lists: what a caller asks of one, and the list that the caller gets, read a page at a time.

A list goes on from a place in the store and not from a number, so that nothing is lost or doubled by what is written or
forgotten between two pages. The library, HTTP pages, JSON lines and a connection all read the same `Listing`.
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
"""How many are shown around one, unless a limit is given."""
PAGE_SIZE, PAGE_MAX = 100, 1000
LOOKED_MAX = 2000
"""Places that one page looks at, where a filter hides some of them."""


class Page(NamedTuple, Generic[T]):
    """A part of a list."""

    items: list[T]
    next: str | None
    """The cursor of the next page; None at the end of the list."""
    total: int | None = None
    """How many the whole list has. Only the first page knows it, and only where it can be counted without reading."""


class Listing(Sequence[T]):
    """A list of the store. Iterating reads page after page; `page()` is the first of them.

    The first page is read when the list is asked for, so that what is wrong with the question is raised there.
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
        """`fetch` reads the page after a cursor, of so many items at most; `limit` bounds the whole list."""
        self._fetch = fetch
        self._limit = check_limit(limit)
        self._count = count if cursor is None else None
        self._first = fetch(cursor, min(self._limit or size, PAGE_MAX))
        self._all: list[T] | None = None

    def page(self) -> Page[T]:
        """The first page: at most `limit` items, or as many as fit in one page."""
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


# -- what a caller asks ---------------------------------------------------------------------------------


class Placed(NamedTuple, Generic[T]):
    """Something in a list, and its place: what a cursor goes on after."""

    place: tuple[Any, ...]
    value: T | None
    """None at a place where nothing is to be shown: it was forgotten meanwhile, or is not what was asked for."""


class ListQuery(NamedTuple):
    """What is asked of a list: in which order, from where, how much, and which of it."""

    descending: bool = False
    since: str | None = None
    """From this moment on."""
    until: str | None = None
    """Before this moment."""
    kind: str | None = None
    q: str | None = None
    """Words that it holds, whatever their case."""
    around: str | None = None
    """The id of the one that the shown items surround."""
    limit: int | None = None
    after: tuple[Any, ...] | None = None
    """The place that is gone on from."""
    looked_max: int | None = None
    """How many places are looked at before the list stops at an empty one."""

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
    """Check what a caller asks of a list; `kinds` are those there are."""
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
    """How many items are asked for: a whole number from 1, or None for all."""
    number = None if limit is None else whole(limit)
    if limit is not None and (type(number) is not int or number < 1):
        raise InvalidInput(
            "limit should be a whole number from 1", path="$.limit", hint="leave limit out for the whole list"
        )
    return number


def matches(q: str | None, *texts: str | None) -> bool:
    """Whether one of these texts holds the words, whatever their case and however they are spaced."""
    if q is None:
        return True
    wanted = _folded(q)
    return any(wanted in _folded(text) for text in texts if text)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def shown(placed: Iterable[Placed[T]], asked: ListQuery) -> Iterator[T]:
    """What a list shows, as far as it was asked for."""
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
    """A list whose items have places in the store; `kinds` is what a place is made of, `name` what cursors are for."""

    def fetch(cursor: str | None, size: int) -> Page[T]:
        after = None if cursor is None else tuple(_open_cursor(name, kinds, cursor))
        items: list[T] = []
        last: tuple[Any, ...] = ()
        for each in read(asked._replace(after=after, limit=size, looked_max=LOOKED_MAX)):
            if each.value is None:  # so many were looked at: a page may show fewer than it could, and go on
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
    """A list that is read whole. A cursor finds its item again near where it was, and else goes on at that place."""

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
    """The place that a cursor holds; `InvalidInput` where it is no cursor of this list."""
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
