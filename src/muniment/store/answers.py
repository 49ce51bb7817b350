"""What servers keep of answers (LG-07): replies under idempotency keys, and results of long works.

Nobody can tell whose words an answer holds, so a forget or an import in a tenant takes all that is kept for it, in its
own transaction. What was asked before that and is answered after it is not kept at all: the number of clearings moved.
"""

from __future__ import annotations

from typing import NamedTuple

from muniment.core.ports.engine import Delete, Lock, Patch, Reader, Transaction
from muniment.core.ports.rows import get, put, select
from muniment.core.ports.schema import CLEARINGS, REPLIES, WORKS
from muniment.core.ports.server_rows import ClearingRow

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


def clear_answers(tx: Transaction) -> Cleared:
    """Take what answers hold of the tenant. A work stays, without what it was asked and what came of it."""
    number = hold_answers(tx)
    salts = [row.salt for spec in (WORKS, REPLIES) for row in select(tx, spec, into=_KeptSalt) if row.salt is not None]
    emptied = {column.name: None for column in WORKS.columns if column.content}
    counts = {
        "works": tx.do(Patch("works", (("id", ">=", ""),), emptied)) if salts else 0,
        "replies": tx.do(Delete("replies", (("user_id", ">=", ""),))) if salts else 0,
    }
    put(tx, CLEARINGS, [ClearingRow(number + 1)])
    return Cleared(salts, counts)
