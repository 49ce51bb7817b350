"""What a pointer points to, and the check of a quote against the bytes it points to (LG-03)."""

from __future__ import annotations

from dataclasses import dataclass

from muniment.core.scope import (
    LEDGER_CORPUS,
    ChunkSpan,
    EventSpan,
    Pointer,
    Span,
    UrlCitation,
    derive_evidence_id,
    quote_hash,
)
from muniment.errors import QuoteMismatch

__all__ = ["Resolved", "cut", "locate_quote", "pointer_address"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a pointer points to: the bytes, where they stand, and the id that names just this evidence."""

    evidence_id: str
    data: bytes
    span: Span

    @property
    def text(self) -> str:
        return self.data.decode()


def pointer_address(pointer: Pointer) -> tuple[str, str]:
    """(corpus_id, chunk_id) of any pointer."""
    match pointer:
        case EventSpan():
            return LEDGER_CORPUS, pointer.event_id
        case ChunkSpan():
            return pointer.corpus_id, pointer.chunk_id
        case UrlCitation():
            return "url", pointer.cid


def locate_quote(whole: bytes, quote: str) -> Span | None:
    """Where the quote stands first in the bytes, verbatim."""
    needle = quote.encode()
    at = whole.find(needle)
    return None if at < 0 else Span(start=at, end=at + len(needle))


def cut(pointer: Pointer, whole: bytes) -> Resolved:
    """The bytes of `whole` that the pointer means; its quote must stand there, verbatim."""
    span = pointer.span
    if span is None:
        span = Span(start=0, end=len(whole))
        if pointer.quote is not None:
            found = locate_quote(whole, pointer.quote)
            if found is None:
                raise QuoteMismatch("the quote does not stand in the text it cites", path="$.quote")
            span = found
    if span.end > len(whole):
        raise QuoteMismatch(f"the span ends at byte {span.end}, the text has {len(whole)}", path="$.span")
    data = whole[span.start : span.end]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise QuoteMismatch(
            "the span cuts a character in two", path="$.span", hint="spans are offsets in UTF-8 bytes"
        ) from None
    if pointer.quote is not None and text != pointer.quote:
        raise QuoteMismatch("the quote is not what stands at the span", path="$.quote")
    corpus_id, chunk_id = pointer_address(pointer)
    digest_of_quote = None if pointer.quote is None else quote_hash(pointer.quote)
    return Resolved(derive_evidence_id(corpus_id, chunk_id, span, digest_of_quote), data, span)
