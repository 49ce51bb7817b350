"""Lists in pages: a cursor says after which item to go on, so that nothing is lost or doubled by what is added."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_bytes, digest_of, parse_json
from muniment.core.listing import Placed
from muniment.errors import InvalidInput, InvalidJson
from muniment.surfaces.http.lists import SOUGHT, SoughtList, listing_of
from muniment.surfaces.http.routing import MatchedRoute
from muniment.surfaces.operations.shapes import Shape

__all__ = ["LIMIT", "LIMIT_MAX", "Page", "page_of", "page_sought", "sought_of"]

LIMIT, LIMIT_MAX = 100, 1000
LOOKED_MAX = 2000
"""Places that one page looks at, where not everything is shown."""


class Page(NamedTuple):
    items: list[Any]
    next: str | None
    total: int | None = None
    """How many the whole list has, where that is known: told with its first page."""


def page_of(found: MatchedRoute, shape: Shape, items: Iterable[Any], asked: Mapping[str, Any]) -> Page:
    """One page of a list: what comes after the cursor's item or, where that is gone, after its place."""
    limit, cursor = _page_asked(found, asked)
    rest = iter(items) if cursor is None else _after(list(items), shape, *cursor)
    taken = list(islice(rest, limit + 1))
    plain = [shape.encode(each) for each in taken[:limit]]
    if len(taken) <= limit:
        return Page(plain, None)
    place = (0 if cursor is None else int(cursor[0])) + limit
    return Page(plain, _sealed(found, [place, digest_of(plain[-1])]))


def _after(items: list[Any], shape: Shape, place: int, last: str) -> Iterator[Any]:
    """What comes after the item with this digest: it is looked for where it was, and then ever further from there."""
    for distance in range(place + len(items)):
        for at in (place - 1 - distance, place - 1 + distance):
            if 0 <= at < len(items) and digest_of(shape.encode(items[at])) == last:
                return iter(items[at + 1 :])
    return iter(items[place:])


# -- lists whose items have a place of their own in the store ------------------------------------------


def sought_of(found: MatchedRoute, own: Mapping[str, Any]) -> SoughtList | None:
    """How the list goes on from a place, with these arguments; None of one that is read whole."""
    sought = SOUGHT.get(found.route.operation.id)
    return sought if sought is not None and sought.is_taken(own) else None


def page_sought(
    handle: Any, found: MatchedRoute, shape: Shape, own: Mapping[str, Any], asked: Mapping[str, Any]
) -> Page:
    """One page of a list whose items have a place of their own: what comes after the cursor's.

    Where few of those looked at are shown, a page may have fewer than it could, and go on all the same.
    """
    limit, cursor = _page_asked(found, asked)
    sought = SOUGHT[found.route.operation.id]
    after = None if cursor is None else tuple(cursor)
    listing = listing_of(sought, own)._replace(after=after, limit=limit, looked_max=LOOKED_MAX)
    taken: list[Placed[Any]] = []
    for each in sought.begin(handle, found.names, own, listing):
        if each.value is None:
            return Page([shape.encode(one.value) for one in taken], _sealed(found, list(each.place)))
        if len(taken) == limit:
            break
        taken.append(each)
    else:
        limit = len(taken) + 1
    items = [shape.encode(each.value) for each in taken]
    following = _sealed(found, list(taken[-1].place)) if len(taken) == limit else None
    total = None if sought.total is None or cursor is not None else sought.total(handle, found.names, own, listing)
    return Page(items, following, total)


# -- cursors ------------------------------------------------------------------------------------------


def _page_asked(found: MatchedRoute, asked: Mapping[str, Any]) -> tuple[int, list[Any] | None]:
    """The limit of a page, and where it begins: None for the first one."""
    limit = asked.get("limit", LIMIT)
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidInput(
            f"limit is a whole number from 1 to {LIMIT_MAX}", path="$.limit", hint=f"leave it out for {LIMIT}"
        )
    cursor = asked.get("cursor")
    return limit, None if cursor is None else _opened(found, cursor)


def _sealed(found: MatchedRoute, place: list[Any]) -> str:
    plain = canonical_bytes([found.route.operation.id, *place])
    return base64.urlsafe_b64encode(plain).decode().rstrip("=")


def _opened(found: MatchedRoute, cursor: str) -> list[Any]:
    try:
        plain = parse_json(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, InvalidJson):
        plain = None
    sought = SOUGHT.get(found.route.operation.id)
    kinds = [[str, int, str], [str, *(() if sought is None else sought.kinds)]]
    told = [type(each) for each in plain] if isinstance(plain, list) else []
    if not isinstance(plain, list) or told not in kinds or plain[0] != found.route.operation.id:
        raise InvalidInput("not a cursor of this list", path="$.cursor", hint="send back `next` as it was answered")
    return plain[1:]
