"""Lists in pages: a cursor says after which item to go on, so that nothing is lost or doubled by what is added."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_bytes, digest_of, parse_json
from muniment.errors import InvalidInput, InvalidJson
from muniment.handles.memory import Memory
from muniment.memory.turn_reading import list_episodes
from muniment.memory.turns import EpisodeCandidate
from muniment.store.ledger.records import LedgerEntry
from muniment.store.reading import get_entry, list_entries
from muniment.store.reports import UserState
from muniment.store.users import list_users
from muniment.surfaces.http.routing import MatchedRoute
from muniment.surfaces.operations.shapes import Shape

__all__ = ["LIMIT", "LIMIT_MAX", "Page", "is_sought", "page_of", "page_sought"]

LIMIT, LIMIT_MAX = 100, 1000


class Page(NamedTuple):
    items: list[Any]
    next: str | None


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


class _Sought(NamedTuple):
    """A list that goes on from a place by index, however far in it lies."""

    kinds: tuple[type, ...]
    """What a place is made of."""
    place: Callable[[Any], tuple[Any, ...]]
    begin: Callable[[Memory, Mapping[str, str], Mapping[str, Any], tuple[Any, ...] | None], Iterator[Any]]
    """The items after a place, given the address and the arguments."""


def _entries(
    memory: Memory, names: Mapping[str, str], own: Mapping[str, Any], after: tuple[Any, ...] | None
) -> Iterator[LedgerEntry]:
    place = None if after is None else (after[0], after[1])
    scope = names["tenant_id"], names["user_id"], own.get("session_id"), names.get("run_id")
    return list_entries(memory._ctx, *scope, place)


def _users(
    memory: Memory, names: Mapping[str, str], _own: Mapping[str, Any], after: tuple[Any, ...] | None
) -> Iterator[UserState]:
    return list_users(memory._ctx, names["tenant_id"], None if after is None else after[0])


def _episodes(
    memory: Memory, names: Mapping[str, str], own: Mapping[str, Any], after: tuple[Any, ...] | None
) -> Iterator[EpisodeCandidate]:
    """A place is the last event of an episode: its row stays, whatever becomes of its words."""
    tenant_id, user_id = names["tenant_id"], names["user_id"]
    place = None
    if after is not None:
        entry = get_entry(memory._ctx, tenant_id, after[0], user_id)
        place = entry.scope.session_id, entry.seq
    return list_episodes(memory._ctx, tenant_id, user_id, own.get("session_id"), place)


_SOUGHT: Mapping[str, _Sought] = {
    "entries": _Sought((str, int), lambda entry: (entry.scope.session_id, entry.seq), _entries),
    "episodes": _Sought((str,), lambda episode: (episode.sources[-1],), _episodes),
    "users": _Sought((str,), lambda user: (user.user_id,), _users),
}
"""By the method that answers them."""


def is_sought(found: MatchedRoute) -> bool:
    return found.route.operation.call in _SOUGHT


def page_sought(
    memory: Memory, found: MatchedRoute, shape: Shape, own: Mapping[str, Any], asked: Mapping[str, Any]
) -> Page:
    """One page of a list whose items have a place of their own: what comes after the cursor's."""
    limit, cursor = _page_asked(found, asked)
    sought = _SOUGHT[found.route.operation.call]
    taken = list(islice(sought.begin(memory, found.names, own, None if cursor is None else tuple(cursor)), limit + 1))
    items = [shape.encode(each) for each in taken[:limit]]
    return Page(items, None if len(taken) <= limit else _sealed(found, list(sought.place(taken[limit - 1]))))


# -- cursors ------------------------------------------------------------------------------------------


def _page_asked(found: MatchedRoute, asked: Mapping[str, Any]) -> tuple[int, list[Any] | None]:
    """The limit of a page, and where it begins: None for the first one."""
    limit = asked.get("limit", LIMIT)
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidInput(f"limit is a whole number from 1 to {LIMIT_MAX}", path="$.limit")
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
    sought = _SOUGHT.get(found.route.operation.call)
    kinds = [str, int, str] if sought is None else [str, *sought.kinds]
    if not isinstance(plain, list) or [type(each) for each in plain] != kinds or plain[0] != found.route.operation.id:
        raise InvalidInput("not a cursor of this list", path="$.cursor", hint="send back `next` as it was answered")
    return plain[1:]
