"""Reading the ledger within a scope: entries by id or in order, their full content, what a pointer points to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from muniment.errors import BlobCorrupt, Forgotten, NotFound
from muniment.ledger.evidence import Resolved, cut
from muniment.ledger.rows import entry_of_row
from muniment.ports.engine import Condition, Get, Reader, Row, Select
from muniment.records.entry import LedgerEntry
from muniment.records.pointer import ChunkSpan, EventSpan, Pointer, UrlCitation
from muniment.runtime.context import Context
from muniment.text.hashing import salted_digest

__all__ = ["content_of", "get_entry", "list_entries", "resolve"]

PAGE_ROWS = 500


def get_entry(ctx: Context, tenant_id: str, entry_id: str, user_id: str | None = None) -> LedgerEntry:
    """The entry with this id. One of another tenant or, where a user is given, another user does not exist (LG-02)."""
    return ctx.engine.read(tenant_id, lambda reader: entry_of_row(tenant_id, _row(reader, entry_id, user_id)))


def content_of(ctx: Context, tenant_id: str, entry_id: str, user_id: str | None = None) -> str:
    """The full text of an entry, from its row or its blob, checked on the way."""
    return ctx.engine.read(tenant_id, lambda reader: _content(reader, tenant_id, entry_id, user_id))


def resolve(ctx: Context, tenant_id: str, pointer: Pointer, user_id: str | None = None) -> Resolved:
    """The bytes a pointer means, with its quote checked against them (LG-03)."""

    def work(reader: Reader) -> Resolved:
        match pointer:
            case EventSpan():
                whole = _content(reader, tenant_id, pointer.event_id, user_id)
            case ChunkSpan():
                raise NotFound(f"no corpus {pointer.corpus_id!r} in this store", path="$.corpus_id")
            case UrlCitation():
                raise NotFound(f"no stored page for the citation {pointer.cid!r}", path="$.cid")
        return cut(pointer, whole.encode())

    return ctx.engine.read(tenant_id, work)


def list_entries(
    ctx: Context, tenant_id: str, user_id: str, session_id: str | None = None, run_id: str | None = None
) -> Iterator[LedgerEntry]:
    """A user's entries, session by session, in order. Each page is one short transaction."""
    where: tuple[Condition, ...] = (("user_id", "=", user_id),)
    if session_id is not None:
        where = (*where, ("session_id", "=", session_id))
    if run_id is not None:
        where = (*where, ("run_id", "=", run_id))
    page = Select("entries", where=where, order=("user_id", "session_id", "seq"), limit=PAGE_ROWS)
    fetch: Callable[[Reader], list[LedgerEntry]]
    while True:
        fetch = lambda reader, page=page: [entry_of_row(tenant_id, row) for row in reader.do(page)]  # type: ignore[misc] # noqa: E731
        entries = ctx.engine.read(tenant_id, fetch)
        yield from entries
        if len(entries) < PAGE_ROWS:
            return
        last = entries[-1]
        page = Select(
            "entries",
            where=where,
            order=("user_id", "session_id", "seq"),
            after=(last.scope.user_id, last.scope.session_id, last.seq),
            limit=PAGE_ROWS,
        )


def _row(reader: Reader, entry_id: str, user_id: str | None) -> Row:
    row = reader.do(Get("entries", (entry_id,)))
    if row is None or (user_id is not None and row[1] != user_id):
        raise NotFound(f"no event {entry_id!r} in this scope", path="$.id")
    return row


def _content(reader: Reader, tenant_id: str, entry_id: str, user_id: str | None) -> str:
    row = _row(reader, entry_id, user_id)
    entry = entry_of_row(tenant_id, row)
    if entry.body is None:
        raise Forgotten(
            f"the event {entry.id} was forgotten",
            hint="its receipt says when and by which request",
            details={"id": entry.id, "receipt_id": entry.receipt_id},
        )
    if entry.body.blob is None:
        return entry.body.content or ""
    name = bytes.fromhex(entry.body.blob)
    blob = reader.do(Get("blobs", (name,)))
    data = None if blob is None else cast("bytes | None", blob[3])
    if data is None or salted_digest(cast("bytes", row[15]), data) != name:
        raise BlobCorrupt(
            f"the blob of event {entry.id} is {'missing' if data is None else 'not what it was'}",
            hint="run `muniment verify`",
            details={"id": entry.id, "blob": entry.body.blob},
        )
    return data.decode()
