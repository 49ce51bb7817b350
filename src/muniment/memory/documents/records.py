"""Documents of a corpus and their chunks, as they are asked for and answered; and a document as it is kept."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.record import Absent, Count, Integer, Items, JsonObject, NonEmpty, Record
from muniment.core.scope import IdText, Span

__all__ = ["Chunk", "CorpusDocument", "DocumentRequest", "DocumentStatus", "MediaType", "StoredDocument"]

MediaType = Literal["text/plain", "text/markdown", "text/html"]
DocumentStatus = Literal["live", "superseded", "retracted"]
Revision = Annotated[Integer, Field(ge=1)]


class CorpusDocument(Record):
    """One revision of a document. What is superseded or retracted can be pointed to, and is not found by a search."""

    corpus_id: str
    document_id: IdText
    revision: Revision
    title: str | None
    source: str | None
    """Where it comes from: an address or a path, as the caller says."""
    media_type: MediaType
    digest: str
    """SHA-256 (hex) of what it says. It goes with the document when that is forgotten."""
    bytes: Count
    """What the text takes in UTF-8."""
    chunk_ids: Items[str]
    added_at: str
    status: DocumentStatus
    reason: str | None = None
    """Why it was retracted."""
    metadata: JsonObject = Field(default_factory=dict)


class Chunk(Record):
    """A verbatim slice of a document: what a pointer names and a search answers."""

    chunk_id: IdText
    corpus_id: str
    document_id: IdText
    revision: Revision
    index: Count
    text: str
    span: Span
    """Where it stands in the text of the document."""
    headings: Items[str]
    """The headings it stands under, outermost first."""
    title: str | None
    status: DocumentStatus
    flags: Items[str] = ()
    """What was noticed at the door: `instruction_like`."""


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
    """The entry that tells of it."""
    is_anonymous: bool
    """It came without an id, so the same text is the same document."""
    reason: Absent[str] = None


class DocumentRequest(Record):
    """What a caller says of a document that is to be added, checked for its form."""

    document_id: IdText | None
    media_type: str | None
    title: NonEmpty | None
    source: NonEmpty | None
    metadata: JsonObject | None
