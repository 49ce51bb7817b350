"""What servers keep of answers (LG-07): replies under idempotency keys, and results of long works.

An answer to a request for one user holds words of that user's memory, or of what is shared. So a forget of one user's
memory drops, in its own transaction, that user's answers and those that are for nobody in particular; a forget of
something shared and an import drop all of the tenant. A request that began before that is answered, and its answer is
not kept: the number of clearings moved.
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
    """What stood beside the content and nowhere else."""
    counts: dict[str, int]


class _KeptSalt(NamedTuple):
    salt: bytes | None


def clearing_of(reader: Reader) -> int:
    """How often what is kept for the tenant was cleared."""
    row = get(reader, CLEARINGS, ())
    return 0 if row is None else row.number


def hold_answers(tx: Transaction) -> int:
    """Let nobody clear while an answer is put down; how often it was done."""
    tx.do(Lock(("answers",)))
    return clearing_of(tx)


def clear_answers(tx: Transaction, users: Collection[str] | None = None) -> Cleared:
    """Drop the content of answers that are kept for these users or for nobody in particular; None: for anybody.

    A work stays, without what it was asked and what came of it.
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
