"""Reading the ledger within a scope: entries by id or in order, their full content, pointers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from muniment.core.listing import ListQuery, shown
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import get
from muniment.core.ports.schema import ENTRIES, EntryRow
from muniment.core.record import ValidationError, issues_of
from muniment.core.requests import whole
from muniment.core.scope import ChunkSpan, EventSpan, Pointer, UrlCitation, corpus_of
from muniment.errors import InvalidInput, InvalidRecord, NotFound
from muniment.store.chain import check_place
from muniment.store.context import Context
from muniment.store.items import latest
from muniment.store.ledger import LedgerEntry, Resolved, cut
from muniment.store.tombstones import forgotten, load_entry
from muniment.store.turns import blob_text

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "check_own",
    "content_in",
    "content_of",
    "entry_in",
    "get_entry",
    "list_entries",
    "pointer_of",
    "resolve",
    "resolve_in",
    "source_row",
]

_ALL = ListQuery()


@cache
def _pointers() -> TypeAdapter[Pointer]:
    from pydantic import TypeAdapter

    return TypeAdapter(Pointer)


def pointer_of(given: Any) -> Pointer:
    """Return a pointer from a pointer, its plain form, or the id of an event, which means the whole of it."""
    if isinstance(given, EventSpan | ChunkSpan | UrlCitation):
        return given
    if not isinstance(given, str | Mapping):
        raise InvalidInput(
            f"a pointer is an event id or a pointer record, not {type(given).__name__}", path="$.pointer"
        )
    plain = {"event_id": given} if isinstance(given, str) else dict(given)
    plain.setdefault("namespace", _namespace(plain))
    try:
        return _pointers().validate_python(plain)
    except ValidationError as error:
        raise InvalidRecord("not a valid pointer", issues_of(error, plain)) from None


def _namespace(plain: Mapping[str, Any]) -> str:
    """Return the namespace of a pointer that names none, from its other fields."""
    return "chunk" if "chunk_id" in plain else "url" if "cid" in plain else "event"


def get_entry(ctx: Context, tenant_id: str, entry_id: str, user_id: str | None = None) -> LedgerEntry:
    """Return the entry with this id. One of another tenant or, where a user is given, another user does not exist
    (LG-02).
    """
    return ctx.engine.read(tenant_id, lambda reader: entry_in(reader, tenant_id, entry_id, user_id))


def entry_in(reader: Reader, tenant_id: str, entry_id: str, user_id: str | None = None) -> LedgerEntry:
    return load_entry(reader, tenant_id, _row(reader, entry_id, user_id))


def check_own(ctx: Context, tenant_id: str, user_id: str, kind: str, item_id: str, path: str) -> None:
    """Check that an item is this user's. Another's does not exist, and nothing about it is revealed (LG-02)."""
    item = ctx.engine.read(tenant_id, lambda reader: latest(reader, item_id))
    if item is None or item.kind != kind or item.user_id != user_id:
        raise NotFound(f"no {kind} {item_id!r:.80} in this scope", path=path)


def content_of(
    ctx: Context,
    tenant_id: str,
    entry_id: str,
    user_id: str | None = None,
    *,
    start: int = 0,
    length: int | None = None,
) -> str:
    """Return the text of an entry, from its row or its blob, checked on the way: all of it, or `length` characters from
    `start`. Past its end it is empty.
    """
    first, count = _offset(start, "start"), None if length is None else _offset(length, "length")
    text = ctx.engine.read(tenant_id, lambda reader: content_in(reader, tenant_id, entry_id, user_id))
    return text[first:] if count is None else text[first : first + count]


def _offset(given: Any, name: str) -> int:
    number = whole(given)
    if type(number) is not int or number < 0:
        raise InvalidInput(f"{name} should be a whole number of characters, 0 or more", path=f"$.{name}")
    return number


def resolve(ctx: Context, tenant_id: str, pointer: Pointer, user_id: str | None = None) -> Resolved:
    """Return the bytes a pointer means, with its quote checked against them (LG-03)."""
    return ctx.engine.read(tenant_id, lambda reader: resolve_in(reader, tenant_id, pointer, user_id))


def resolve_in(reader: Reader, tenant_id: str, pointer: Pointer, user_id: str | None = None) -> Resolved:
    row = source_row(reader, pointer, user_id)
    text = _text(reader, tenant_id, row)
    check_place(reader, tenant_id, row)
    return cut(pointer, text.encode())


def source_row(reader: Reader, pointer: Pointer, user_id: str | None = None) -> EntryRow:
    """Return the entry a pointer points into: an event, or a chunk of a document, which is an entry too."""
    match pointer:
        case EventSpan():
            return _row(reader, pointer.event_id, user_id)
        case ChunkSpan():
            return _chunk_row(reader, pointer, user_id)
        case UrlCitation():
            raise NotFound(f"no stored page for the citation {pointer.cid!r}", path="$.cid")


def _chunk_row(reader: Reader, pointer: ChunkSpan, user_id: str | None) -> EntryRow:
    """Return a chunk of the corpus the pointer names: the tenant's, or one of this user's."""
    row = get(reader, ENTRIES, (pointer.chunk_id,))
    if row is None or row.kind != "tool_result" or corpus_of(row.user_id, user_id) != pointer.corpus_id:
        raise NotFound(
            f"no chunk {pointer.chunk_id!r:.80} of the corpus {pointer.corpus_id!r:.80} in this scope",
            path="$.chunk_id",
        )
    return row


def list_entries(
    ctx: Context,
    tenant_id: str,
    user_id: str,
    session_id: str | None = None,
    run_id: str | None = None,
    asked: ListQuery = _ALL,
) -> Iterator[LedgerEntry]:
    """List a user's entries, session by session, in order. Each page is one short transaction."""
    from muniment.store.lists.entries import list_placed

    return shown(list_placed(ctx, tenant_id, user_id, session_id, run_id, asked), asked)


def _row(reader: Reader, entry_id: str, user_id: str | None) -> EntryRow:
    row = get(reader, ENTRIES, (entry_id,))
    if row is None or (user_id is not None and row.user_id != user_id):
        raise NotFound(f"no event {entry_id!r} in this scope", path="$.id")
    return row


def content_in(reader: Reader, tenant_id: str, entry_id: str, user_id: str | None) -> str:
    return _text(reader, tenant_id, _row(reader, entry_id, user_id))


def _text(reader: Reader, tenant_id: str, row: EntryRow) -> str:
    entry = load_entry(reader, tenant_id, row)
    if entry.body is None:
        raise forgotten(entry, f"the event {entry.id} was forgotten")
    if entry.body.blob is None:
        return entry.body.content or ""
    return blob_text(reader, entry.id, entry.body.blob, row.salt)
