"""Names that stand where an entry names its user, and are no user's: corpora and banks."""

from __future__ import annotations

from muniment.core.owners import banks, corpora

__all__ = ["RESERVED_PREFIXES", "holder_of", "is_nobody_s", "is_reserved"]

RESERVED_PREFIXES = (banks.PREFIX, corpora.PREFIX)


def is_reserved(owner: str) -> bool:
    return owner.startswith(RESERVED_PREFIXES)


def is_nobody_s(owner: str) -> bool:
    """A reserved name that no corpus and no bank has."""
    return is_reserved(owner) and not (corpora.is_corpus(owner) or banks.is_bank_name(owner))


def holder_of(owner: str) -> str | None:
    """The user whose own it is: what goes with them when they are forgotten, and is in their export."""
    return corpora.holder_of(owner) or banks.bank_holder(owner)
