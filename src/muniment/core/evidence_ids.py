"""Deterministic evidence ids (LG-04): the same evidence has the same id everywhere."""

from __future__ import annotations

from muniment.core.hashing import digest, short_id
from muniment.core.pointer import Span

__all__ = ["LEDGER_CORPUS", "derive_evidence_id", "quote_hash"]

LEDGER_CORPUS = "ledger"
"""The corpus id of the ledger itself; its chunks are events."""


def quote_hash(quote: str) -> str:
    return digest(quote.encode()).hex()


def derive_evidence_id(corpus_id: str, chunk_id: str, span: Span, quote_digest: str | None = None) -> str:
    """Namespaced by its corpus, so that evidence of two corpora never shares an id (002 §D)."""
    parts: list[str | int] = [corpus_id, chunk_id, span.start, span.end]
    return short_id("ev", parts if quote_digest is None else [*parts, quote_digest])
