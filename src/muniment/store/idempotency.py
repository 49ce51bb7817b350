"""Idempotency keys (LG-06): what a draft's key and request come to, and what was written under keys before; and what
servers keep of answers (LG-07), replies under such keys and results of long works.

An answer to a request for one user holds words of that user's memory, or of what is shared. So a forget of one user's
memory drops, in its own transaction, that user's answers and those that are for nobody in particular; a forget of
something shared and an import drop all of the tenant. A request that began before that is answered, and its answer is
not kept: the number of clearings moved.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from muniment.core.canonical import canonical_bytes, digest, salted_digest
from muniment.core.ports.engine import Condition, Delete, Lock, Patch, Reader, Transaction
from muniment.core.ports.rows import chunked, get, insert, put, select
from muniment.core.ports.schema import (
    CLEARINGS,
    ENTRIES,
    IDEMPOTENCY,
    IDS,
    REPLIES,
    WORKS,
    ClearingRow,
    IdempotencyRow,
    IdRow,
)
from muniment.core.scope import Scope
from muniment.store.ledger.records import EntryDraft

__all__ = [
    "CLEARED",
    "KEY_KIND",
    "Cleared",
    "KeptKey",
    "KeyMatch",
    "clear_answers",
    "clearing_of",
    "hold_answers",
    "key_named",
    "key_of",
    "match_keys",
    "put_keys",
]

KEY_KIND = "idempotency"
_SAID_BYTES = 8
CLEARED = ("works", "replies")
"""The tables that are cleared."""


def key_of(scope: Scope, draft: EntryDraft) -> tuple[bytes, bytes] | None:
    """The hash of a draft's key and the request it stands for; None where it has no key."""
    return None if draft.idempotency_key is None else key_named(draft, *_names(scope))


def _names(scope: Scope) -> tuple[str, str, str, str]:
    return scope.tenant_id, scope.user_id, scope.agent_id, scope.session_id


def key_named(draft: EntryDraft, tenant_id: str, user_id: str, agent_id: str, session_id: str) -> tuple[bytes, bytes]:
    """The hash of the key that a draft has, and the request it stands for, under these names."""
    request = draft.model_dump(mode="json", exclude={"idempotency_key", "cited"}, exclude_defaults=True)
    request["scope"] = [session_id, agent_id]
    # Never the bare digest of the key: a caller may well use the content, or its hash, as the key (LG-07).
    named = canonical_bytes(["muniment.idempotency.v1", tenant_id, user_id, draft.idempotency_key])
    return digest(named), canonical_bytes(request)


def put_keys(tx: Transaction, rows: Sequence[IdempotencyRow], *, are_new: bool = False) -> None:
    """Keep keys, each with its event among the ids of the tenant too: one that is deleted is missed by `verify`.

    `are_new`: of events that were just written, so that none of them can be there.
    """
    insert(tx, IDEMPOTENCY, rows)
    ids = [IdRow(_kept_as(row), KEY_KIND) for row in rows]
    if are_new:
        insert(tx, IDS, ids)
    else:
        put(tx, IDS, ids)


def _kept_as(row: IdempotencyRow) -> str:
    """How a key stands among the ids: behind its event, where no id of anybody can stand, and before what is said of
    the request, which goes with a forget."""
    said = "" if row.request_hash is None else digest(row.request_hash)[:_SAID_BYTES].hex()
    return f"{row.entry_id}\n{row.key_hash.hex()}\n{said}"


class KeptKey(NamedTuple):
    """A key as the ids have it."""

    entry_id: str
    key_hash: str
    said: str
    """What is said of its request; empty where it was forgotten by then, or kept by an earlier version."""

    @classmethod
    def of(cls, id_: str) -> KeptKey:
        entry_id, _, rest = id_.partition("\n")
        key_hash, _, said = rest.partition("\n")
        return cls(entry_id, key_hash, said)

    def is_of(self, row: IdempotencyRow) -> bool:
        """Whether it is the row, as far as it can be told."""
        if (self.entry_id, self.key_hash) != (row.entry_id, row.key_hash.hex()):
            return False
        return not self.said or row.request_hash is None or self.said == KeptKey.of(_kept_as(row)).said


class KeyMatch(NamedTuple):
    """What was written under a draft's key: nothing, the same, something else, or what was forgotten since."""

    entry_id: str | None
    is_same: bool


class _Held(NamedTuple):
    key_hash: bytes
    entry_id: str
    request_hash: bytes | None


class _Salted(NamedTuple):
    id: str
    salt: bytes | None


def match_keys(reader: Reader, scope: Scope, drafts: Sequence[EntryDraft]) -> list[KeyMatch]:
    """Draft by draft, what its key was used for; in a few reads, however many there are."""
    keys = [key_of(scope, draft) for draft in drafts]
    hashes = [key[0] for key in keys if key is not None]
    held: dict[bytes, _Held] = {}
    for part in chunked(hashes):
        where: tuple[Condition, ...] = (("user_id", "=", scope.user_id), ("key_hash", "in", part))
        held |= {row.key_hash: row for row in select(reader, IDEMPOTENCY, where, into=_Held)}
    ids = [row.entry_id for row in held.values()]
    salts: dict[str, bytes | None] = {}
    for named in chunked(ids):
        salts |= {row.id: row.salt for row in select(reader, ENTRIES, (("id", "in", named),), into=_Salted)}
    return [_match(key, None if key is None else held.get(key[0]), salts) for key in keys]


def _match(key: tuple[bytes, bytes] | None, row: _Held | None, salts: dict[str, bytes | None]) -> KeyMatch:
    if key is None or row is None:
        return KeyMatch(None, is_same=False)
    salt = salts.get(row.entry_id)
    if row.request_hash is None or salt is None:  # forgotten: nobody can tell any more
        return KeyMatch(row.entry_id, is_same=True)
    return KeyMatch(row.entry_id, is_same=row.request_hash == salted_digest(salt, key[1]))


# -- kept answers -------------------------------------------------------------------------------------


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
