"""SHA-256 over canonical bytes, in the few shapes the ledger needs."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from muniment.core.canonical import canonical_bytes

__all__ = ["SALT_BYTES", "digest", "digest_of", "salted_digest", "short_id"]

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
