"""Whose a document is: the name under which a corpus stands where an entry names its user (LG-02).

`corpus:<corpus_id>` is shared by the tenant, `corpus:<corpus_id>:<user_id>` is the user's own. A corpus id has no
colon, so the two cannot be taken for each other; no user has a name with this prefix.
"""

from __future__ import annotations

__all__ = ["PREFIX", "corpus_of", "holder_of", "is_corpus", "is_visible", "owner_of"]

PREFIX = "corpus:"


def owner_of(corpus_id: str, user_id: str | None = None) -> str:
    return f"{PREFIX}{corpus_id}" if user_id is None else f"{PREFIX}{corpus_id}:{user_id}"


def is_corpus(owner: str) -> bool:
    return owner.startswith(PREFIX)


def corpus_of(owner: str, user_id: str | None) -> str | None:
    """The corpus an owner stands for; None where it is none, or one that this user may not see.

    Without a user, whoever asks may see the whole tenant.
    """
    if not is_corpus(owner):
        return None
    corpus_id, private, holder = owner.removeprefix(PREFIX).partition(":")
    return corpus_id if not private or user_id in (None, holder) else None


def holder_of(owner: str) -> str | None:
    """The user whose own the corpus is; None where the tenant shares it, or it is none."""
    _, private, holder = owner.removeprefix(PREFIX).partition(":") if is_corpus(owner) else ("", "", "")
    return holder if private else None


def is_visible(owner: str, user_id: str) -> bool:
    """May this user see what stands under that name? Their own, the tenant's documents, and their own documents."""
    return owner == user_id or corpus_of(owner, user_id) is not None
