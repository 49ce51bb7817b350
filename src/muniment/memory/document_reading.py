"""Documents of a corpus, read back from the ledger: revisions, chunks, how each of them stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from muniment.core.canonical import short_id
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import chunked, get, stream, texts
from muniment.core.ports.schema import ENTRIES, ITEMS
from muniment.core.scope import Span
from muniment.errors import NotFound
from muniment.memory.documents.records import Chunk, CorpusDocument, DocumentStatus, StoredDocument
from muniment.store.items import Item, digest_name, latest, newest_of, stream_items, taken_ids
from muniment.store.ledger import entry_of_row
from muniment.store.reading import content_in

__all__ = [
    "CorpusScope",
    "all_sessions",
    "ended_sessions",
    "find_newest",
    "find_revisions",
    "list_documents",
    "live_documents",
    "newest_documents",
    "next_revision",
    "read_chunk",
    "read_document",
    "revisions_named",
    "revisions_of",
    "view_document",
    "view_session",
]

ENDED: tuple[DocumentStatus, ...] = ("superseded", "retracted")
"""A revision that is one of these never comes back to life."""


class CorpusScope(NamedTuple):
    """Where the documents of one corpus stand."""

    tenant_id: str
    corpus_id: str
    owner: str

    def session_id(self, document_id: str, revision: int) -> str:
        """The name of a revision: of its session and of its item. It holds no word of the document's id."""
        return short_id("doc", [self.tenant_id, self.owner, document_id, revision])

    def chunk_id(self, document_id: str, revision: int, span: Span) -> str:
        return short_id("chk", [self.tenant_id, self.owner, document_id, revision, span.start, span.end])


# -- revisions ----------------------------------------------------------------------------------------


def revisions_named(reader: Reader, corpus: CorpusScope, name: str | None = None) -> list[Item]:
    """The newest state of every revision that was not forgotten: of the corpus, or those of one name."""
    where: tuple[Condition, ...] = (("kind", "=", "document"), ("user_id", "=", corpus.owner))
    if name is not None:
        where = (*where, ("name", "=", name))
    return _newest(reader, where)


def find_revisions(reader: Reader, corpus: CorpusScope, document_id: str) -> dict[int, Item]:
    """The revisions of a document that were not forgotten. One that came without an id is named by what it says."""
    return revisions_of(reader, corpus, [document_id])[document_id]


def revisions_of(reader: Reader, corpus: CorpusScope, document_ids: Sequence[str]) -> dict[str, dict[int, Item]]:
    """By document id and number, the revisions of these documents that were not forgotten."""
    names = {digest_name(document_id): document_id for document_id in document_ids}
    firsts = {corpus.session_id(document_id, 1): document_id for document_id in document_ids}
    found: dict[str, dict[int, Item]] = {document_id: {} for document_id in document_ids}
    for asked, ids in zip(chunked(tuple(names)), chunked(tuple(firsts)), strict=True):
        where: tuple[Condition, ...] = (
            ("kind", "=", "document"),
            ("user_id", "=", corpus.owner),
            ("name", "in", asked),
        )
        for item in _newest(reader, where) + _newest(reader, (("id", "in", ids),)):
            document_id = firsts.get(item.id) or names[item.name or ""]
            found[document_id][item.plain()["revision"]] = item
    return found


def _newest(reader: Reader, where: tuple[Condition, ...]) -> list[Item]:
    """The newest state of each item that was not forgotten."""
    return newest_of(stream_items(reader, where))


def newest_documents(reader: Reader, corpus: CorpusScope, document_ids: Sequence[str]) -> dict[str, StoredDocument]:
    """By id, the documents of these ids whose newest revision is live."""
    found = revisions_of(reader, corpus, document_ids)
    last = {document_id: revisions[max(revisions)] for document_id, revisions in found.items() if revisions}
    live = {document_id: item.plain() for document_id, item in last.items() if item.status == "live"}
    return {document_id: StoredDocument.from_wire(plain) for document_id, plain in live.items()}


def live_documents(
    reader: Reader, corpus: CorpusScope, session_ids: Sequence[str] | None = None
) -> dict[str, StoredDocument]:
    """What stands, by session: of the whole corpus, or of some of its sessions."""
    if session_ids is None:
        items = revisions_named(reader, corpus)
    else:
        items = [item for asked in chunked(session_ids) for item in _newest(reader, (("id", "in", asked),))]
    return {item.id: StoredDocument.from_wire(item.plain()) for item in items if item.status == "live"}


def find_newest(reader: Reader, corpus: CorpusScope, document_id: str, revision: int | None = None) -> Item:
    """The newest revision of a document, or the one that is asked for."""
    revisions = find_revisions(reader, corpus, document_id)
    wanted = revision if revision is not None else max(revisions, default=1)
    item = revisions.get(wanted) or latest(reader, corpus.session_id(document_id, wanted))
    if item is None:
        what = "document" if revision is None else f"revision {revision} of the document"
        raise NotFound(f"no {what} {document_id!r:.80} in the corpus {corpus.corpus_id!r}", path="$.document_id")
    item.plain()  # one that was forgotten says so
    return item


def next_revision(reader: Reader, corpus: CorpusScope, document_id: str, known: int = 0) -> int:
    """The first number that no revision had yet: one that was forgotten leaves its name behind."""
    revision = known + 1
    while taken_ids(reader, [corpus.session_id(document_id, revision)]):
        revision += 1
    return revision


def all_sessions(reader: Reader, corpus: CorpusScope, document_id: str) -> tuple[str, ...]:
    """The sessions of all revisions of a document, forgotten ones included."""
    numbers = {
        *find_revisions(reader, corpus, document_id),
        *range(1, next_revision(reader, corpus, document_id)),
    }
    if not numbers:
        raise NotFound(f"no document {document_id!r:.80} in the corpus {corpus.corpus_id!r}", path="$.document_id")
    return tuple(corpus.session_id(document_id, revision) for revision in sorted(numbers))


def ended_sessions(reader: Reader, corpus: CorpusScope) -> frozenset[str]:
    """The sessions of revisions that searches no longer find."""
    where: tuple[Condition, ...] = (
        ("kind", "=", "document"),
        ("user_id", "=", corpus.owner),
        ("status", "in", ENDED),
    )
    return frozenset(texts(reader, ITEMS, "id", where))


# -- what is answered ---------------------------------------------------------------------------------


def read_document(reader: Reader, corpus: CorpusScope, document_id: str, revision: int | None = None) -> CorpusDocument:
    return view_document(reader, corpus, find_newest(reader, corpus, document_id, revision))


def view_document(reader: Reader, corpus: CorpusScope, item: Item) -> CorpusDocument:
    return _view(corpus, item, tuple(_chunk_ids(reader, corpus, item.id).get(item.id, ())))


def view_session(reader: Reader, corpus: CorpusScope, session_id: str) -> CorpusDocument:
    """The revision that a session is, as long as it was not forgotten."""
    item = latest(reader, session_id)
    assert item is not None  # ids are never given up
    return view_document(reader, corpus, item)


def list_documents(
    reader: Reader, corpus: CorpusScope, document_ids: Sequence[str], *, include_all: bool
) -> list[CorpusDocument]:
    """The documents of these ids that are live, or every revision of them, by id."""
    named = revisions_of(reader, corpus, list(dict.fromkeys(document_ids)))
    found = [item for revisions in named.values() for item in revisions.values()]
    documents = [view_document(reader, corpus, item) for item in found if include_all or item.status == "live"]
    return sorted(documents, key=lambda document: (document.document_id, document.revision))


class _ChunkRow(NamedTuple):
    session_id: str
    id: str


def _chunk_ids(reader: Reader, corpus: CorpusScope, session_id: str | None = None) -> dict[str, list[str]]:
    """The chunks of one session or of all, in order, by session."""
    where: tuple[Condition, ...] = (("user_id", "=", corpus.owner), ("kind", "=", "tool_result"))
    if session_id is not None:
        where = (*where, ("session_id", "=", session_id))
    found: dict[str, list[str]] = {}
    for chunk in stream(reader, ENTRIES, where, into=_ChunkRow, order=("user_id", "session_id", "seq")):
        found.setdefault(chunk.session_id, []).append(chunk.id)
    return found


def _view(corpus: CorpusScope, item: Item, chunk_ids: tuple[str, ...]) -> CorpusDocument:
    stored = StoredDocument.from_wire(item.plain())
    return CorpusDocument(
        corpus_id=corpus.corpus_id,
        document_id=stored.document_id,
        revision=stored.revision,
        title=stored.title,
        source=stored.source,
        media_type=stored.media_type,
        digest=stored.digest,
        bytes=stored.bytes,
        chunk_ids=chunk_ids,
        added_at=stored.added_at,
        status=cast("DocumentStatus", item.status),
        reason=stored.reason,
        metadata=stored.metadata or {},
    )


def read_chunk(reader: Reader, corpus: CorpusScope, chunk_id: str) -> Chunk:
    """A chunk of this corpus and of no other."""
    row = get(reader, ENTRIES, (chunk_id,))
    if row is None or row.user_id != corpus.owner or row.kind != "tool_result":
        raise NotFound(f"no chunk {chunk_id!r:.80} in the corpus {corpus.corpus_id!r}", path="$.chunk_id")
    text = content_in(reader, corpus.tenant_id, chunk_id, corpus.owner)
    entry = entry_of_row(corpus.tenant_id, row)
    document = latest(reader, entry.scope.session_id)
    assert document is not None  # written with its chunks, forgotten with them
    said: dict[str, Any] = entry.metadata
    return Chunk(
        chunk_id=chunk_id,
        corpus_id=corpus.corpus_id,
        document_id=said["document_id"],
        revision=said["revision"],
        index=said["index"],
        text=text,
        span=Span(start=said["start"], end=said["end"]),
        headings=tuple(said["headings"]),
        title=entry.speaker,
        status=cast("DocumentStatus", document.status),
        flags=entry.flags,
    )
