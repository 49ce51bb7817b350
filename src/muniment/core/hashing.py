"""SHA-256 over canonical bytes, in the few shapes the ledger needs; ids of evidence that are the same everywhere."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from muniment.core.canonical import canonical_bytes
from muniment.core.pointer import Span

__all__ = [
    "LEDGER_CORPUS",
    "SALT_BYTES",
    "derive_evidence_id",
    "digest",
    "digest_of",
    "quote_hash",
    "salted_digest",
    "short_id",
]

SALT_BYTES = 16


def digest(data: bytes) -> bytes:
    return sha256(data).digest()


def digest_of(value: Any) -> str:
    """The hex digest of plain data, through its canonical bytes."""
    return sha256(canonical_bytes(value)).hexdigest()


def salted_digest(salt: bytes, data: bytes) -> bytes:
    """A digest that says nothing about `data` once the salt is gone (LG-07)."""
    return sha256(salt + data).digest()


def short_id(prefix: str, value: Any) -> str:
    """A deterministic id: the prefix and 128 bits of the canonical digest."""
    return f"{prefix}_{digest_of(value)[:32]}"


LEDGER_CORPUS = "ledger"
"""The corpus id of the ledger itself; its chunks are events."""


def quote_hash(quote: str) -> str:
    return digest(quote.encode()).hex()


def derive_evidence_id(corpus_id: str, chunk_id: str, span: Span, quote_digest: str | None = None) -> str:
    """Namespaced by its corpus, so that evidence of two corpora never shares an id (002 §D)."""
    parts: list[str | int] = [corpus_id, chunk_id, span.start, span.end]
    return short_id("ev", parts if quote_digest is None else [*parts, quote_digest])
