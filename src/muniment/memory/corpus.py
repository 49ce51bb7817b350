"""A handle on a corpus: documents are added, found, read, retracted and forgotten under one name and scope.

handbook = mem.corpus("handbook")                  # shared by the tenant
notes = mem.corpus("notes", user_id="ana")         # ana's own
handbook.add_file("setup.md")
hit = handbook.search("how do I install it")[0]
mem.ledger.resolve(ChunkSpan(corpus_id="handbook", chunk_id=hit.id, quote="pip install"))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast

from muniment.core.canonical import digest
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ENTRIES, ITEMS
from muniment.core.requests import Expect, FromOne, Request, Words, checked, is_listing
from muniment.core.scope import LEDGER_CORPUS, is_corpus, is_reserved, owner_of, scope_given
from muniment.errors import InvalidInput, TooLarge
from muniment.memory.documents import CorpusScope

if TYPE_CHECKING:
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.ports.engine import Reader
    from muniment.memory.documents import Chunk, CorpusDocument, NewDocument, StoredDocument
    from muniment.memory.search import FoundTurn, Hit
    from muniment.store.context import Context
    from muniment.store.ledger import Receipt

__all__ = ["Corpus", "add_to_corpora", "read_text_file", "standing_of"]

Standing = Literal["live", "superseded", "retracted", "forgotten"]

_CORPUS_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_RESERVED = (LEDGER_CORPUS, "url")
"""Names under which ids of evidence outside documents are derived."""
_GIVEN = ("corpus_id", "user_id", "text", "document_id", "media_type", "title", "source", "ts", "metadata")


def standing_of(reader: Reader, _tenant_id: str, chunk_ids: Sequence[str]) -> dict[str, Standing]:
    """The standing of the documents of these chunks. Ids that are not chunks of this tenant are omitted."""
    sessions: dict[str, str] = {}
    standing: dict[str, Standing] = {}
    for chunk in by_ids(reader, ENTRIES, list(dict.fromkeys(chunk_ids)), into=_ChunkRow):
        if chunk.kind != "tool_result" or not is_corpus(chunk.user_id):
            continue
        sessions[chunk.id] = chunk.session_id
        if chunk.receipt_id is not None:
            standing[chunk.id] = "forgotten"
    versions = by_ids(reader, ITEMS, sorted(set(sessions.values())), into=_Status, order=("id", "version"))
    states = {item.id: item.status for item in versions}  # the newest version comes last
    return {id_: cast("Standing", states.get(session, "forgotten")) for id_, session in sessions.items()} | standing


class _ChunkRow(NamedTuple):
    id: str
    user_id: str
    session_id: str
    kind: str
    receipt_id: str | None


class _Status(NamedTuple):
    id: str
    status: str


class CorpusRequest(Request):
    """The identity of a corpus."""

    corpus_id: Annotated[
        str,
        Expect(
            "a corpus id has 1 to 64 characters of A-Z, a-z, 0-9, dot, dash and underscore",
            _CORPUS_ID.fullmatch,
            schema={"pattern": f"^{_CORPUS_ID.pattern}$"},
        ),
        Expect("{given!r} is not the id of a corpus of documents", lambda given: given not in _RESERVED),
    ]
    user_id: Annotated[
        str | None, Expect("{given!r:.60} is not the name of a user", lambda given: given and not is_reserved(given))
    ]


class CorpusQuery(Request):
    """Arguments of corpus calls; each call fills in its part."""

    document_id: Words = ""
    document_ids: Annotated[Sequence[Words] | None, Expect("document_ids should be a list of ids")] = None
    revision: Annotated[FromOne | None, Expect("a revision is a whole number from 1")] = None
    chunk_id: Words = ""
    reason: Words = ""


class Corpus:
    """The documents of one corpus. Made by `Memory.corpus`; writes nothing until something is added. Thread-safe."""

    def __init__(self, ctx: Context, corpus_id: str, tenant_id: str, user_id: str | None) -> None:
        checked(CorpusRequest, corpus_id=corpus_id, user_id=user_id)
        names = {
            "tenant_id": tenant_id,
            "user_id": owner_of(corpus_id, user_id),
            "agent_id": "corpus",
            "session_id": "s",
            "run_id": "r",
        }
        scope = scope_given(names)
        self._ctx = ctx
        self._corpus_scope = CorpusScope(scope.tenant_id, corpus_id, scope.user_id)

    def __repr__(self) -> str:
        return f"<Corpus {self._corpus_scope.owner.partition(':')[2]} of {self._corpus_scope.tenant_id}>"

    @property
    def corpus_id(self) -> str:
        """The name of the corpus."""
        return self._corpus_scope.corpus_id

    def add(
        self,
        text: str,
        *,
        document_id: str | None = None,
        media_type: str | None = None,
        title: str | None = None,
        source: str | None = None,
        ts: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> CorpusDocument:
        """Add a document: "text/plain", "text/markdown" or "text/html", by default guessed from its id or source.

        Adding the same document again returns the existing one. Different text under the same id becomes its next
        revision and replaces the last. Without an id, one is generated.
        """
        given = {"document_id": document_id, "media_type": media_type, "title": title, "source": source}
        return self._keep(self._read(text, ts=ts, metadata=metadata, **given))

    def _read(
        self, text: str, *, ts: Any = None, metadata: Mapping[str, Any] | None = None, **given: str | None
    ) -> NewDocument:
        """Build the document that `add` would add, with the same arguments, without writing it."""
        plain = {**given, "metadata": dict(metadata) if isinstance(metadata, Mapping) else metadata}
        return _new_document(self._ctx, text, plain, ts)

    def _keep(self, document: NewDocument) -> CorpusDocument:
        from muniment.memory.documents import add_document

        return add_document(self._ctx, self._corpus_scope, document)

    # Used by integrations: answers without chunks, and bulk operations. A remote corpus implements them differently.

    @staticmethod
    def _add_many(added: Sequence[tuple[Corpus, Mapping[str, Any]]]) -> None:
        """`add`, with its arguments, to this and other corpora of the tenant: each document once, one transaction."""
        from muniment.memory.documents import add_documents

        add_documents(added[0][0]._ctx, _read_all(added), lambda _reader, _corpus_scope, session_id: session_id)

    def _newest(self, document_ids: Sequence[str]) -> Mapping[str, CorpusDocument | StoredDocument]:
        """The live documents with these ids, by id."""
        from muniment.memory.documents import newest_documents

        corpus_scope = self._corpus_scope
        return self._ctx.engine.read(
            corpus_scope.tenant_id, lambda reader: newest_documents(reader, corpus_scope, document_ids)
        )

    def _documents_of(self, hits: Sequence[Hit]) -> Mapping[str, CorpusDocument | StoredDocument]:
        """The live documents of these hits, by session."""
        from muniment.memory.documents import live_documents

        corpus_scope, sessions = self._corpus_scope, list(dict.fromkeys(hit.session_id or "" for hit in hits))
        return self._ctx.engine.read(
            corpus_scope.tenant_id, lambda reader: live_documents(reader, corpus_scope, sessions)
        )

    def _standing(self) -> Sequence[CorpusDocument | StoredDocument]:
        """All live documents."""
        from muniment.memory.documents import live_documents

        corpus_scope = self._corpus_scope
        return list(
            self._ctx.engine.read(corpus_scope.tenant_id, lambda reader: live_documents(reader, corpus_scope)).values()
        )

    def add_file(
        self,
        path: str | PathLike[str],
        *,
        document_id: str | None = None,
        media_type: str | None = None,
        title: str | None = None,
        source: str | None = None,
        ts: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> CorpusDocument:
        """Add a file of UTF-8 text; its id and source default to its path."""
        from muniment.memory._chunking import media_type_of

        if not isinstance(path, str | PathLike):
            raise InvalidInput(f"a file is named by its path, not {type(path).__name__}", path="$.path")
        named = Path(path).as_posix()
        return self.add(
            read_text_file(Path(path), self._ctx.policy.corpus.document_bytes_max, "corpus.document_bytes_max"),
            document_id=named if document_id is None else document_id,
            media_type=media_type_of(named) if media_type is None else media_type,
            title=title,
            source=named if source is None else source,
            ts=ts,
            metadata=metadata,
        )

    def documents(
        self,
        *,
        include_all: bool = False,
        document_ids: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[CorpusDocument]:
        """The live documents, oldest first; with `include_all`, every revision that was not forgotten.

        With `document_ids`, only the existing documents with those ids.
        """
        from muniment.core.listing import list_items, list_query, read_listing
        from muniment.memory.candidates import page_documents
        from muniment.memory.documents import list_documents

        corpus_scope = self._corpus_scope
        checked(CorpusQuery, document_ids=document_ids)
        if document_ids is None:

            def read(asked: ListQuery) -> Iterator[Placed[CorpusDocument]]:
                return page_documents(self._ctx, corpus_scope, asked, include_all=include_all)

            return read_listing("documents", (str, str), read, list_query(limit=limit), cursor)
        found = self._ctx.engine.read(
            corpus_scope.tenant_id,
            lambda reader: list_documents(reader, corpus_scope, document_ids, include_all=include_all),
        )
        return list_items("documents", found, limit, cursor)

    def get(self, document_id: str, *, revision: int | None = None) -> CorpusDocument:
        """The newest revision of a document, live or not, or the requested one."""
        from muniment.memory.documents import read_document

        corpus_scope = self._corpus_scope
        asked = checked(CorpusQuery, document_id=document_id, revision=revision)
        return self._ctx.engine.read(
            corpus_scope.tenant_id, lambda reader: read_document(reader, corpus_scope, document_id, asked.revision)
        )

    def chunk(self, chunk_id: str) -> Chunk:
        """A chunk of this corpus, of any revision."""
        from muniment.memory.documents import read_chunk

        checked(CorpusQuery, chunk_id=chunk_id)
        corpus_scope = self._corpus_scope
        return self._ctx.engine.read(corpus_scope.tenant_id, lambda reader: read_chunk(reader, corpus_scope, chunk_id))

    def search(self, query: str, *, k: int = 10, now: Any = None, min_score: float | None = None) -> list[Hit]:
        """The best `k` chunks of the live documents for a query, best first, each with its reasons.

        A hit's score is the probability that it is evidence, 0 to 1; `min_score` drops less likely hits and defaults to
        none.
        """
        from muniment.memory.documents import ended_sessions
        from muniment.memory.search import check_min_score, check_search, find_turns
        from muniment.memory.turn_reading import check_cited

        ctx, corpus_scope = self._ctx, self._corpus_scope
        query, k, moment = check_search(ctx, query, k, now)
        least = check_min_score(min_score)

        def work(reader: Reader) -> list[Hit]:
            ended = ended_sessions(reader, corpus_scope)
            found = find_turns(
                ctx,
                reader,
                corpus_scope.tenant_id,
                corpus_scope.owner,
                query,
                k,
                moment,
                ctx.policy.recall,
                without=ended,
            )
            check_cited(ctx, reader, corpus_scope.tenant_id, [each.turn.id for each in found])
            return [_chunk_hit(each) for each in found if each.ranked.chance >= least]

        return ctx.engine.read(corpus_scope.tenant_id, work)

    def retract(self, document_id: str, reason: str) -> CorpusDocument:
        """Retract a live document. Pointers into it still resolve, but it is not found and does not verify claims."""
        from muniment.memory.documents import retract_document
        from muniment.memory.patches import cleaned

        limit = self._ctx.policy.corpus.reason_chars_max
        checked(CorpusQuery, document_id=document_id, reason=reason)
        if len(reason) > limit:
            raise TooLarge(f"a reason of {len(reason)} characters is over the limit of {limit}", path="$.reason")
        return retract_document(self._ctx, self._corpus_scope, document_id, cleaned(self._ctx, reason))

    def forget(self, document_id: str | None = None) -> Receipt:
        """Erase a document in all its revisions, or the whole corpus, with everything derived; returns the receipt."""
        from muniment.memory.documents import all_sessions
        from muniment.store.forget import Selector, forget

        ctx, corpus_scope = self._ctx, self._corpus_scope
        sessions: tuple[str, ...] = ()
        if document_id is not None:
            checked(CorpusQuery, document_id=document_id)
            sessions = ctx.engine.read(
                corpus_scope.tenant_id, lambda reader: all_sessions(reader, corpus_scope, document_id)
            )
        return forget(ctx, corpus_scope.tenant_id, Selector(user_id=corpus_scope.owner, document=sessions))


# -- adding -------------------------------------------------------------------------------------------


def add_to_corpora(
    ctx: Context, documents: Iterable[Mapping[str, Any]], tenant_id: str, user_id: str | None
) -> list[CorpusDocument]:
    """See `mem.store.add_documents`."""
    from muniment.memory.documents import add_documents, view_session

    if not is_listing(documents):
        raise InvalidInput("wanted a list of documents", path="$", hint="wrap a single one in a list")
    added = [_document_in(ctx, tenant_id, user_id, given, f"$[{index}]") for index, given in enumerate(documents)]
    return add_documents(ctx, _read_all(added), view_session) if added else []


def _read_all(added: Sequence[tuple[Corpus, Mapping[str, Any]]]) -> list[tuple[CorpusScope, NewDocument]]:
    documents: list[tuple[CorpusScope, NewDocument]] = []
    for index, (corpus, given) in enumerate(added):
        try:
            documents.append((corpus._corpus_scope, corpus._read(**given)))
        except InvalidInput as error:
            raise error.within(f"$[{index}]") from None
    return documents


def _document_in(
    ctx: Context, tenant_id: str, user_id: str | None, given: Any, path: str
) -> tuple[Corpus, dict[str, Any]]:
    """The corpus of a document, and its arguments for `Corpus.add`."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"a document should be an object, found {type(given).__name__}", path=path)
    for name in ("corpus_id", "text"):
        if name not in given:
            raise InvalidInput(f"{name} is missing", path=f"{path}.{name}")
    for name in given:
        if name not in _GIVEN:
            raise InvalidInput(
                f"{name!r:.60} is nothing that is said of a document", path=path, hint=f"one of {', '.join(_GIVEN)}"
            )
    owner = given.get("user_id", user_id)
    if user_id is not None and owner != user_id:
        raise InvalidInput(
            "all of these are one user's, and this names another", path=f"{path}.user_id", hint="leave its user_id out"
        )
    rest: dict[str, Any] = dict.fromkeys(("document_id", "media_type", "title", "source"))
    rest |= {name: value for name, value in given.items() if name not in ("corpus_id", "user_id")}
    try:
        return Corpus(ctx, given["corpus_id"], tenant_id, owner), rest
    except InvalidInput as error:
        raise error.within(path) from None


def _new_document(ctx: Context, text: Any, given: dict[str, Any], ts: Any) -> NewDocument:
    """Build a document: validate it, read its text, redact secrets (LG-10), and cut it into chunks."""
    from muniment.memory._chunking import media_type_of, read_document
    from muniment.memory.documents import DocumentRequest, NewDocument
    from muniment.memory.patches import cleaned, instant_of

    asked = DocumentRequest.of_given(given, "this document cannot be added")
    policy = ctx.policy.corpus
    if asked.title is not None and len(asked.title) > policy.title_chars_max:
        raise TooLarge(
            f"a title of {len(asked.title)} characters is over the limit of {policy.title_chars_max}", path="$.title"
        )
    moment = instant_of(ts, "$.ts")
    media_type = asked.media_type or media_type_of(asked.document_id or "", asked.source or "")
    read = read_document(text, media_type, policy, lambda said: cleaned(ctx, said))
    told = {
        "title": cleaned(ctx, asked.title) if asked.title else read.title,
        "source": cleaned(ctx, asked.source) if asked.source else None,
        "media_type": media_type,
        "digest": digest(read.text.encode()).hex(),
        "bytes": len(read.text.encode()),
        "metadata": cleaned(ctx, asked.metadata) if asked.metadata else None,
    }
    return NewDocument(
        document_id=asked.document_id or ctx.ids.new("txt"),
        is_anonymous=asked.document_id is None,
        said={key: value for key, value in told.items() if value is not None},
        ts=moment,
        passages=read.chunks,
    )


def read_text_file(path: Path, bytes_max: int, limit: str) -> str:
    """Read a UTF-8 text file; refuse one above the limit, which the policy names `limit`."""
    try:
        with path.open("rb") as file:
            data = file.read(bytes_max + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        said = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot read {str(path)!r:.200}: {said}", path="$.path", hint="check the path") from None
    if len(data) > bytes_max:
        raise TooLarge(
            f"{str(path)!r:.200} is over the limit of {bytes_max} bytes",
            path="$.path",
            hint=f"split it, or raise {limit} in the policy",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{str(path)!r:.200} is not UTF-8 text: {error.reason} at byte {error.start}",
            path="$.path",
            hint="convert it to UTF-8 text, Markdown or HTML first",
        ) from None


# -- answers ------------------------------------------------------------------------------------------


def _chunk_hit(found: FoundTurn) -> Hit:
    """The hit of a chunk, with its position in the document."""
    from muniment.memory.search import turn_hit

    said = found.turn.metadata
    headings = cast("list[str]", said["headings"])
    place = f"in {said['document_id']}" + (f", {' > '.join(headings)}" if headings else "")
    return turn_hit(found, "chunk", place)
