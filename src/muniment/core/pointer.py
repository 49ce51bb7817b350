"""The one typed evidence pointer (LG-03), with a namespace for what it points into.

Spans are half-open offsets in UTF-8 bytes. Every contract's references map to one of these: a packet's evidence id is
an event id; a snapshot's is `derive_evidence_id` of the same; a research citation is a cid.
"""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from muniment.core.canonical import digest, short_id
from muniment.core.record import Count, Record
from muniment.core.scope import IdText

__all__ = [
    "LEDGER_CORPUS",
    "ChunkSpan",
    "EventSpan",
    "Pointer",
    "Span",
    "UrlCitation",
    "derive_evidence_id",
    "quote_hash",
]


class Span(Record):
    """Half-open, in UTF-8 bytes of the text it points into."""

    start: Count
    end: Count

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end < self.start:
            raise ValueError("a span must not end before it starts")
        return self


def _always_named(schema: JsonDict) -> None:
    """Pointers are told apart by their namespace: whoever writes one among several gives it."""
    wanted = schema["required"]
    assert isinstance(wanted, list)
    schema["required"] = ["namespace", *wanted]


class _Pointer(Record):
    model_config = ConfigDict(json_schema_extra=_always_named)

    span: Span | None = None
    """None is the whole."""
    quote: str | None = None
    """The text that must stand at the span, or anywhere in the whole where no span is given."""


class EventSpan(_Pointer):
    """A place in an event."""

    namespace: Literal["event"] = "event"
    event_id: IdText


class ChunkSpan(_Pointer):
    """A place in a chunk of a corpus."""

    namespace: Literal["chunk"] = "chunk"
    corpus_id: IdText
    chunk_id: IdText


class UrlCitation(_Pointer):
    """A source of a research run."""

    namespace: Literal["url"] = "url"
    cid: IdText
    url: IdText


Pointer = Annotated[EventSpan | ChunkSpan | UrlCitation, Field(discriminator="namespace")]


def quote_hash(quote: str) -> str:
    return digest(quote.encode()).hex()


def derive_evidence_id(corpus_id: str, chunk_id: str, span: Span, quote_digest: str | None = None) -> str:
    """Namespaced by its corpus, so that evidence of two corpora never shares an id (002 §D)."""
    parts: list[str | int] = [corpus_id, chunk_id, span.start, span.end]
    return short_id("ev", parts if quote_digest is None else [*parts, quote_digest])


LEDGER_CORPUS = "ledger"
"""The corpus id of the ledger itself; its chunks are events."""
