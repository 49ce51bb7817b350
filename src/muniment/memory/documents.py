"""Add documents to a corpus and retract them, under the lock of the corpus, which a forget takes too.

A revision is one session with one run, written in one transaction: the run's start, the document's record, its chunks
in order, the run's end. The effect of a later revision or a retraction is recorded as an entry too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, cast

from pydantic import Field

from muniment.core.canonical import canonical_text, short_id
from muniment.core.ports.engine import Condition, KeyTaken, Reader, Transaction
from muniment.core.ports.rows import chunked, get, stream, texts
from muniment.core.ports.schema import ENTRIES, ITEMS
from muniment.core.record import Absent, Count, Integer, Items, JsonObject, NonEmpty, Record
from muniment.core.scope import IdText, Scope, Span, is_corpus
from muniment.errors import DuplicateId, InvalidRecord, NotFound
from muniment.memory.patches import check_open, draft_patch
from muniment.store.admission import admit
from muniment.store.append import Batch, append_batches, append_in, opening_draft, prepare_batch
from muniment.store.context import Context
from muniment.store.items import Change, Item, digest_name, latest, lock_memory, newest_of, stream_items, taken_ids
from muniment.store.ledger import (
    DOCUMENT_ADDED,
    DOCUMENT_RETRACTED,
    RUN_FINISHED,
    EntryDraft,
    LedgerEntry,
    ToolCall,
    entry_of_row,
)
from muniment.store.reading import content_in

if TYPE_CHECKING:
    from muniment.memory._chunking import Passage
    from muniment.store.admission import Admitted

__all__ = [
    "TOOL",
    "Chunk",
    "CorpusDocument",
    "CorpusScope",
    "DocumentRequest",
    "DocumentStatus",
    "MediaType",
    "NewDocument",
    "StoredDocument",
    "add_document",
    "add_documents",
    "all_sessions",
    "document_without",
    "ended_sessions",
    "find_newest",
    "find_revisions",
    "list_documents",
    "live_documents",
    "newest_documents",
    "next_revision",
    "project_document",
    "read_chunk",
    "read_document",
    "retract_document",
    "revisions_named",
    "revisions_of",
    "view_document",
    "view_session",
]


# -- records -------------------------------------------------------------------------------------------
#
# Requests and answers about documents of a corpus and their chunks, and the stored form of a document.


MediaType = Literal["text/plain", "text/markdown", "text/html"]
DocumentStatus = Literal["live", "superseded", "retracted"]
Revision = Annotated[Integer, Field(ge=1)]


class CorpusDocument(Record):
    """One revision of a document. Superseded or retracted revisions can be pointed to but are not found by a search."""

    corpus_id: str
    document_id: IdText
    revision: Revision
    title: str | None
    source: str | None
    """Its origin as given by the caller: an address or a path."""
    media_type: MediaType
    digest: str
    """SHA-256 (hex) of its text; erased with the document."""
    bytes: Count
    """Size of the text in UTF-8."""
    chunk_ids: Items[str]
    added_at: str
    status: DocumentStatus
    reason: str | None = None
    """The reason for its retraction."""
    metadata: JsonObject = Field(default_factory=dict)


class Chunk(Record):
    """A verbatim slice of a document: the target of a pointer and the result of a search."""

    chunk_id: IdText
    corpus_id: str
    document_id: IdText
    revision: Revision
    index: Count
    text: str
    span: Span
    """Its position in the text of the document."""
    headings: Items[str]
    """The enclosing headings, outermost first."""
    title: str | None
    status: DocumentStatus
    flags: Items[str] = ()
    """Flags set on admission: `instruction_like`."""


class StoredDocument(Record):
    """The body of a `document` item: one revision."""

    document_id: IdText
    revision: Revision
    title: Absent[str] = None
    source: Absent[str] = None
    media_type: MediaType
    digest: str
    bytes: Count
    metadata: Absent[JsonObject] = None
    added_at: str
    patch: IdText
    """The entry that recorded it."""
    is_anonymous: bool
    """True if it came without an id, so that the same text is the same document."""
    reason: Absent[str] = None


class DocumentRequest(Record):
    """A document to be added, with its form validated."""

    document_id: IdText | None
    media_type: str | None
    title: NonEmpty | None
    source: NonEmpty | None
    metadata: JsonObject | None


# -- document reading ----------------------------------------------------------------------------------
#
# Documents of a corpus, read back from the ledger: revisions, chunks, and their standing.


ENDED: tuple[DocumentStatus, ...] = ("superseded", "retracted")
"""Final statuses: a revision with one of these never becomes live again."""


class CorpusScope(NamedTuple):
    """The location of a corpus' documents."""

    tenant_id: str
    corpus_id: str
    owner: str

    def session_id(self, document_id: str, revision: int) -> str:
        """The name of a revision's session and item. It reveals no word of the document's id."""
        return short_id("doc", [self.tenant_id, self.owner, document_id, revision])

    def chunk_id(self, document_id: str, revision: int, span: Span) -> str:
        return short_id("chk", [self.tenant_id, self.owner, document_id, revision, span.start, span.end])


# -- revisions ----------------------------------------------------------------------------------------


def revisions_named(reader: Reader, corpus: CorpusScope, name: str | None = None) -> list[Item]:
    """The newest state of every revision not forgotten, of the corpus or of one name."""
    where: tuple[Condition, ...] = (("kind", "=", "document"), ("user_id", "=", corpus.owner))
    if name is not None:
        where = (*where, ("name", "=", name))
    return _newest(reader, where)


def find_revisions(reader: Reader, corpus: CorpusScope, document_id: str) -> dict[int, Item]:
    """The revisions of a document not forgotten. A document without an id is identified by its text."""
    return revisions_of(reader, corpus, [document_id])[document_id]


def revisions_of(reader: Reader, corpus: CorpusScope, document_ids: Sequence[str]) -> dict[str, dict[int, Item]]:
    """The revisions of these documents not forgotten, by document id and number."""
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
    """The newest state of each item not forgotten."""
    return newest_of(stream_items(reader, where))


def newest_documents(reader: Reader, corpus: CorpusScope, document_ids: Sequence[str]) -> dict[str, StoredDocument]:
    """The documents with these ids whose newest revision is live, by id."""
    found = revisions_of(reader, corpus, document_ids)
    last = {document_id: revisions[max(revisions)] for document_id, revisions in found.items() if revisions}
    live = {document_id: item.plain() for document_id, item in last.items() if item.status == "live"}
    return {document_id: StoredDocument.from_wire(plain) for document_id, plain in live.items()}


def live_documents(
    reader: Reader, corpus: CorpusScope, session_ids: Sequence[str] | None = None
) -> dict[str, StoredDocument]:
    """Live documents by session, of the whole corpus or of some sessions."""
    if session_ids is None:
        items = revisions_named(reader, corpus)
    else:
        items = [item for asked in chunked(session_ids) for item in _newest(reader, (("id", "in", asked),))]
    return {item.id: StoredDocument.from_wire(item.plain()) for item in items if item.status == "live"}


def find_newest(reader: Reader, corpus: CorpusScope, document_id: str, revision: int | None = None) -> Item:
    """The newest revision of a document, or the requested one."""
    revisions = find_revisions(reader, corpus, document_id)
    wanted = revision if revision is not None else max(revisions, default=1)
    item = revisions.get(wanted) or latest(reader, corpus.session_id(document_id, wanted))
    if item is None:
        what = "document" if revision is None else f"revision {revision} of the document"
        raise NotFound(f"no {what} {document_id!r:.80} in the corpus {corpus.corpus_id!r}", path="$.document_id")
    item.plain()  # raises for a forgotten one
    return item


def next_revision(reader: Reader, corpus: CorpusScope, document_id: str, known: int = 0) -> int:
    """The first unused revision number; forgotten revisions keep theirs."""
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


# -- answers ------------------------------------------------------------------------------------------


def read_document(reader: Reader, corpus: CorpusScope, document_id: str, revision: int | None = None) -> CorpusDocument:
    return view_document(reader, corpus, find_newest(reader, corpus, document_id, revision))


def view_document(reader: Reader, corpus: CorpusScope, item: Item) -> CorpusDocument:
    return _view(corpus, item, tuple(_chunk_ids(reader, corpus, item.id).get(item.id, ())))


def view_session(reader: Reader, corpus: CorpusScope, session_id: str) -> CorpusDocument:
    """The revision of a session, if not forgotten."""
    item = latest(reader, session_id)
    assert item is not None  # ids are never reused
    return view_document(reader, corpus, item)


def list_documents(
    reader: Reader, corpus: CorpusScope, document_ids: Sequence[str], *, include_all: bool
) -> list[CorpusDocument]:
    """The live documents with these ids, or every revision of them, by id."""
    named = revisions_of(reader, corpus, list(dict.fromkeys(document_ids)))
    found = [item for revisions in named.values() for item in revisions.values()]
    documents = [view_document(reader, corpus, item) for item in found if include_all or item.status == "live"]
    return sorted(documents, key=lambda document: (document.document_id, document.revision))


class _ChunkRow(NamedTuple):
    session_id: str
    id: str


def _chunk_ids(reader: Reader, corpus: CorpusScope, session_id: str | None = None) -> dict[str, list[str]]:
    """Chunk ids by session, in order, of one session or of all."""
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
    """A chunk of this corpus only."""
    row = get(reader, ENTRIES, (chunk_id,))
    if row is None or row.user_id != corpus.owner or row.kind != "tool_result":
        raise NotFound(f"no chunk {chunk_id!r:.80} in the corpus {corpus.corpus_id!r}", path="$.chunk_id")
    text = content_in(reader, corpus.tenant_id, chunk_id, corpus.owner)
    entry = entry_of_row(corpus.tenant_id, row)
    document = latest(reader, entry.scope.session_id)
    assert document is not None  # written and forgotten together with its chunks
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


R = TypeVar("R")

TOOL = "corpus"
"""The tool name of chunks, and the agent of their runs."""
_COMPARED = ("digest", "media_type", "title", "source", "metadata")


class NewDocument(NamedTuple):
    """A document to be added: read, checked, redacted."""

    document_id: str
    is_anonymous: bool
    """True if the caller gave no id: the same text is the same document."""
    said: dict[str, Any]
    """Its recorded fields: those compared, and its size."""
    ts: str | None
    passages: Sequence[Passage]

    def is_same(self, item: Item) -> bool:
        """True if the item is exactly this document."""
        kept = item.plain()
        return item.status == "live" and all(self.said.get(key) == kept.get(key) for key in _COMPARED)


class _Plan(NamedTuple):
    """The place of a new document among the existing ones."""

    same: Item | None
    """The identical document, if it already exists."""
    revision: int
    supersedes: Item | None


Added = tuple[CorpusScope, NewDocument]
"""A document and its destination."""


def add_document(ctx: Context, corpus: CorpusScope, new: NewDocument) -> CorpusDocument:
    """Add the document, or return the existing one."""

    (document,) = _add(ctx, [(corpus, new)], view_session)
    return document


def add_documents(ctx: Context, added: Sequence[Added], look: Callable[[Reader, CorpusScope, str], R]) -> list[R]:
    """Add documents of one tenant, to one corpus or several, each once, in one transaction.

    Returns the result of `look` for each document's session, read in that transaction.
    """
    _check_once(added)
    return _add(ctx, added, look)


def _check_once(added: Sequence[Added]) -> None:
    """Refuse two texts for one document in one call: their order would be undefined."""
    seen: dict[tuple[CorpusScope, str], int] = {}
    for index, (corpus, new) in enumerate(added):
        is_same = canonical_text([new.said.get(key) for key in _COMPARED]) if new.is_anonymous else new.document_id
        first = seen.setdefault((corpus, is_same), index)
        if first != index:
            what = "the same text" if new.is_anonymous else f"the document {new.document_id!r:.80}"
            raise DuplicateId(
                f"{what} is given twice for the corpus {corpus.corpus_id!r}, at {first} and {index}",
                path=f"$[{index}].document_id",
                hint="give each document once",
            )


def _add(ctx: Context, added: Sequence[Added], look: Callable[[Reader, CorpusScope, str], R]) -> list[R]:
    """Do the slow work before the transaction. Returns the result of `look` for each session."""
    tenant_id = added[0][0].tenant_id
    while True:
        plans = ctx.engine.read(tenant_id, lambda reader: _plans(reader, added))
        found = _add_as(ctx, added, plans, look)
        if found is not None:
            return found


def _plans(reader: Reader, added: Sequence[Added]) -> list[_Plan]:
    """Plan each document, corpus by corpus."""
    named: dict[CorpusScope, list[str]] = {}
    for corpus, new in added:
        if not new.is_anonymous:
            named.setdefault(corpus, []).append(new.document_id)
    found = {corpus: revisions_of(reader, corpus, ids) for corpus, ids in named.items()}
    return [
        _plan_anonymous(reader, corpus, new) if new.is_anonymous else _plan_named(reader, corpus, new, found[corpus])
        for corpus, new in added
    ]


def _plan_anonymous(reader: Reader, corpus: CorpusScope, new: NewDocument) -> _Plan:
    """The plan for a document without an id: the one with the same text, or a new document."""
    alike = revisions_named(reader, corpus, digest_name(new.said["digest"]))
    return _Plan(next(filter(new.is_same, alike), None), 1, None)


def _plan_named(reader: Reader, corpus: CorpusScope, new: NewDocument, found: Mapping[str, dict[int, Item]]) -> _Plan:
    """The plan for a document with an id: its next revision, or the existing one it equals."""
    revisions = found[new.document_id]
    last = revisions[max(revisions)] if revisions else None
    if last is not None and new.is_same(last):
        return _Plan(last, max(revisions), None)
    revision = next_revision(reader, corpus, new.document_id, max(revisions, default=0))
    return _Plan(None, revision, last if last is not None and last.status == "live" else None)


def _add_as(
    ctx: Context, added: Sequence[Added], plans: Sequence[_Plan], look: Callable[[Reader, CorpusScope, str], R]
) -> list[R] | None:
    """Write the plans; None if a corpus changed meanwhile and planning must be repeated."""
    sessions: list[str] = []
    batches: list[Batch] = []
    opening = _opening(ctx)
    for (corpus, new), plan in zip(added, plans, strict=True):
        if plan.same is not None:
            sessions.append(plan.same.id)
            continue
        session_id = corpus.session_id(new.document_id, plan.revision)
        scope = _scope(corpus, session_id, short_id("run", [corpus.tenant_id, session_id]))
        after = "" if plan.supersedes is None else plan.supersedes.created_at
        sessions.append(session_id)
        batches.append(prepare_batch(ctx, scope, _drafts(corpus, new, plan, session_id), opening, after=after))

    def work(tx: Transaction) -> list[R] | None:
        lock_memory(tx, *(corpus.owner for corpus, _ in added))
        if _plans(tx, added) != plans:
            return None
        append_batches(ctx, tx, batches)
        return seen(tx)

    def seen(reader: Reader) -> list[R]:
        return [look(reader, corpus, session_id) for (corpus, _), session_id in zip(added, sessions, strict=True)]

    tenant_id = added[0][0].tenant_id
    if not batches:
        return ctx.engine.read(tenant_id, seen)
    try:
        return ctx.write(tenant_id, work)
    except (KeyTaken, DuplicateId):
        named = f"the document {added[0][1].document_id!r:.80} needs" if len(added) == 1 else "these documents need"
        raise DuplicateId(
            f"an id that {named} is taken", path="$.document_id", hint="add it under another id"
        ) from None


def _scope(corpus: CorpusScope, session_id: str, run_id: str) -> Scope:
    return Scope(
        tenant_id=corpus.tenant_id,
        user_id=corpus.owner,
        agent_id=TOOL,
        session_id=session_id,
        run_id=run_id,
    )


def _opening(ctx: Context) -> Admitted:
    return admit(opening_draft({"task_type": TOOL}), ctx.policy.ledger)


_END = EntryDraft(
    kind="system",
    role="system",
    content="",
    metadata={"event": RUN_FINISHED, "stop_reason": "OBJECTIVE_ACHIEVED"},
)


def _drafts(corpus: CorpusScope, new: NewDocument, plan: _Plan, session_id: str) -> list[EntryDraft]:
    told = {"id": session_id, "document_id": new.document_id, "revision": plan.revision} | new.said
    told["is_anonymous"] = new.is_anonymous
    if plan.supersedes is not None:
        told["supersedes"] = plan.supersedes.id
    added = draft_patch(DOCUMENT_ADDED, "external", told).model_copy(update={"ts": new.ts})
    chunks = [_chunk_draft(corpus, new, plan.revision, index) for index in range(len(new.passages))]
    return [added, *chunks, _END]


def _chunk_draft(corpus: CorpusScope, new: NewDocument, revision: int, index: int) -> EntryDraft:
    passage = new.passages[index]
    span = Span(start=passage.start, end=passage.end)
    return EntryDraft(
        kind="tool_result",
        role="tool",
        content=passage.text,
        speaker=new.said.get("title"),
        ts=new.ts,
        id=corpus.chunk_id(new.document_id, revision, span),
        metadata={
            "document_id": new.document_id,
            "revision": revision,
            "index": index,
            "start": span.start,
            "end": span.end,
            "headings": list(passage.headings),
        },
        tool=ToolCall(name=TOOL, ok=True),
        trust="external",
    )


def retract_document(ctx: Context, corpus: CorpusScope, document_id: str, reason: str) -> CorpusDocument:
    """Retract a live document: pointers still resolve, but searches no longer find it."""
    run_id = ctx.ids.new("run")

    def work(tx: Transaction) -> CorpusDocument:
        lock_memory(tx, corpus.owner)
        item = find_newest(tx, corpus, document_id)
        check_open(item, ("live",), "retracted")
        told = draft_patch(DOCUMENT_RETRACTED, "external", {"id": item.id, "reason": reason})
        append_in(ctx, tx, _scope(corpus, item.id, run_id), [told, _END], _opening(ctx), item.created_at)
        return view_document(tx, corpus, find_newest(tx, corpus, document_id))

    return ctx.write(corpus.tenant_id, work)


# -- projection ----------------------------------------------------------------------------------------
#
# Documents from `state_patch` entries, and documents with some of their sources removed. Pure: entries hold all
# decisions. A revision of a document is a session of its corpus, and an item of the same name as the session.


_SAID = ("document_id", "revision", "title", "source", "media_type", "digest", "bytes", "metadata", "is_anonymous")

Lookup = Callable[[str], Item | None]


def project_document(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """The new revision and the end of the one before, or the end of a retracted one."""
    event = entry.metadata.get("event")
    if event not in (DOCUMENT_ADDED, DOCUMENT_RETRACTED) or not is_corpus(entry.scope.user_id):
        return []
    try:
        return _added(entry, lookup) if event == DOCUMENT_ADDED else _retracted(entry, lookup)
    except InvalidRecord:  # not written by one of our corpora, so no document
        return []


def _added(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    said = entry.metadata
    here = {"added_at": entry.ts, "patch": entry.id}
    document = StoredDocument.from_wire({key: said[key] for key in _SAID if key in said} | here)
    before = _of_corpus(entry, said.get("supersedes"), lookup)
    ended = [] if before is None else [_change(entry, before, "superseded", StoredDocument.from_wire(before.plain()))]
    return [*ended, _change(entry, None, "live", document)]


def _retracted(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    item = _of_corpus(entry, entry.metadata.get("id"), lookup)
    if item is None or item.id != entry.scope.session_id:
        return []
    document = StoredDocument.from_wire(item.plain() | {"reason": entry.metadata.get("reason")})
    return [_change(entry, item, "retracted", document)]


def _of_corpus(entry: LedgerEntry, item_id: Any, lookup: Lookup) -> Item | None:
    """The live document of this name in the entry's own corpus."""
    item = lookup(item_id) if isinstance(item_id, str) else None
    is_theirs = item is not None and item.kind == "document" and item.user_id == entry.scope.user_id
    return item if is_theirs and item is not None and item.body is not None else None


def _change(entry: LedgerEntry, item: Item | None, status: str, document: StoredDocument) -> Change:
    session_id = entry.scope.session_id if item is None else item.session_id
    assert session_id is not None
    return Change(
        id=session_id,
        kind="document",
        status=status,
        body=document.to_wire(),
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=(entry.id,),
        name=digest_name(document.digest if document.is_anonymous else document.document_id),
        user_id=entry.scope.user_id,
        agent_id=entry.scope.agent_id,
        session_id=session_id,
        run_id=entry.scope.run_id if item is None else item.run_id,
    )


def document_without(item: Item, lost: frozenset[str]) -> dict[str, Any] | None:
    """A document without some entries. It survives while the entry that added it does; a lost later revision leaves no
    trace here.
    """
    plain = item.plain()
    return None if plain["patch"] in lost else plain
