"""Lists in pages: a cursor says after which item to go on, so that nothing is lost or doubled by what is added."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from muniment.errors import InvalidInput, InvalidJson
from muniment.records.entry import LedgerEntry
from muniment.runtime.memory import Memory
from muniment.runtime.reading import list_entries
from muniment.surfaces.http.routing import Found
from muniment.surfaces.operations.shapes import Shape
from muniment.text.canonical import canonical_bytes, parse_json
from muniment.text.hashing import digest_of

__all__ = ["LIMIT", "LIMIT_MAX", "Page", "is_entries", "page_of", "page_of_entries"]

LIMIT, LIMIT_MAX = 100, 1000


class Page(NamedTuple):
    items: list[Any]
    next: str | None


def page_of(found: Found, shape: Shape, items: Iterable[Any], asked: Mapping[str, Any]) -> Page:
    """One page of a list: what comes after the cursor's item or, where that is gone, after its place."""
    limit, cursor = _asked(found, asked)
    plain: Iterator[Any] = (shape.encode(each) for each in items)
    if cursor is not None:
        plain = _after(list(plain), cursor)
    taken = list(islice(plain, limit + 1))
    if len(taken) <= limit:
        return Page(taken, None)
    place = (0 if cursor is None else int(cursor[0])) + limit
    return Page(taken[:limit], _sealed(found, [place, digest_of(taken[limit - 1])]))


def _after(items: list[Any], cursor: list[Any]) -> Iterator[Any]:
    place, last = cursor
    near = sorted(range(len(items)), key=lambda at: abs(at + 1 - place))
    found = next((at + 1 for at in near if digest_of(items[at]) == last), place)
    return iter(items[found:])


def is_entries(found: Found) -> bool:
    return found.route.operation.call == "entries"


def page_of_entries(
    memory: Memory, found: Found, shape: Shape, own: Mapping[str, Any], asked: Mapping[str, Any]
) -> Page:
    """Entries have a place of their own in the ledger, and are sought by it."""
    limit, cursor = _asked(found, asked)
    names = found.names
    entries: Iterator[LedgerEntry] = list_entries(
        memory._ctx,
        names["tenant_id"],
        names["user_id"],
        own.get("session_id"),
        names.get("run_id"),
        None if cursor is None else (cursor[0], cursor[1]),
    )
    taken = list(islice(entries, limit + 1))
    items = [shape.encode(each) for each in taken[:limit]]
    if len(taken) <= limit:
        return Page(items, None)
    last = taken[limit - 1]
    return Page(items, _sealed(found, [last.scope.session_id, last.seq]))


def _asked(found: Found, asked: Mapping[str, Any]) -> tuple[int, list[Any] | None]:
    limit = asked.get("limit", LIMIT)
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidInput(f"limit is a whole number from 1 to {LIMIT_MAX}", path="$.limit")
    cursor = asked.get("cursor")
    return limit, None if cursor is None else _opened(found, cursor)


def _sealed(found: Found, place: list[Any]) -> str:
    plain = canonical_bytes([found.route.operation.id, *place])
    return base64.urlsafe_b64encode(plain).decode().rstrip("=")


def _opened(found: Found, cursor: str) -> list[Any]:
    try:
        plain = parse_json(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, InvalidJson):
        plain = None
    kinds = [str, str, int] if is_entries(found) else [str, int, str]
    if not isinstance(plain, list) or [type(each) for each in plain] != kinds or plain[0] != found.route.operation.id:
        raise InvalidInput("not a cursor of this list", path="$.cursor", hint="send back `next` as it was answered")
    return plain[1:]
