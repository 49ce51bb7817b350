"""Stored answers of servers (LG-07): replies under idempotency keys, and results of long-running works.

An answer to a request for one user holds words from that user's memory or from shared memory. So a forget of one user's
memory drops, in its own transaction, that user's answers and those that belong to no particular user; a forget of
something shared and an import drop all answers of the tenant. A request that began before that is answered, but its
answer is not kept, because the number of clearings has changed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from muniment.core.ports.engine import Condition, Delete, Lock, Patch, Reader, Transaction
from muniment.core.ports.rows import chunked, get, put, select
from muniment.core.ports.schema import CLEARINGS, REPLIES, WORKS, ClearingRow

__all__ = ["CLEARED", "Cleared", "clear_answers", "clearing_of", "hold_answers"]

CLEARED = ("works", "replies")
"""The tables that are cleared."""


class Cleared(NamedTuple):
    salts: list[bytes]
    """Salts that were stored only next to the content."""
    counts: dict[str, int]


class _KeptSalt(NamedTuple):
    salt: bytes | None


def clearing_of(reader: Reader) -> int:
    """Return how often the tenant's stored answers were cleared."""
    row = get(reader, CLEARINGS, ())
    return 0 if row is None else row.number


def hold_answers(tx: Transaction) -> int:
    """Block clearing while an answer is stored; returns how often answers were cleared."""
    tx.do(Lock(("answers",)))
    return clearing_of(tx)


def clear_answers(tx: Transaction, users: Collection[str] | None = None) -> Cleared:
    """Drop the content of stored answers for these users and for no particular user; None drops them for everyone.

    A work itself stays, without its request and result.
    """
    number = hold_answers(tx)
    works: list[Condition] = [("id", ">=", "")]
    replies: list[Condition] = [("user_id", ">=", "")]
    if users is not None:
        works = [("user_id", "=", None), *(("user_id", "in", some) for some in chunked(sorted(users)))]
        replies = [("user_id", "in", some) for some in chunked(sorted({"", *users}))]
    emptied = {column.name: None for column in WORKS.columns if column.content}
    cleared = Cleared([], {"works": 0, "replies": 0})
    for spec, conditions in ((WORKS, works), (REPLIES, replies)):
        for where in conditions:
            salts = [row.salt for row in select(tx, spec, (where,), into=_KeptSalt) if row.salt is not None]
            if salts:
                op = Patch("works", (where,), emptied) if spec is WORKS else Delete("replies", (where,))
                cleared.counts[spec.name] += tx.do(op)
                cleared.salts.extend(salts)
    put(tx, CLEARINGS, [ClearingRow(number + 1)])
    return cleared
