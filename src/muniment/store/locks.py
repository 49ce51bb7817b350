"""The locks of memory, so that what is derived from an event is written before it is forgotten or not at all.

A write takes the lock of its user's memory, and that of the shared memory where it changes what users share; a forget
takes the same ones for whomever it touches. Their order, everywhere: session, user, item, shared, fact key. SQLite and
memory have one writer at a time anyway.
"""

from __future__ import annotations

from muniment.core.ports.engine import Lock, Transaction

__all__ = ["lock_item", "lock_memory", "lock_shared"]

_SHARED = ""
"""No user has this name."""


def lock_memory(tx: Transaction, *user_ids: str) -> None:
    for user_id in sorted(set(user_ids)):
        tx.do(Lock(("memory", user_id)))


def lock_shared(tx: Transaction) -> None:
    tx.do(Lock(("memory", _SHARED)))


def lock_item(tx: Transaction, *item_ids: str) -> None:
    for item_id in sorted(set(item_ids)):
        tx.do(Lock(("item", item_id)))
