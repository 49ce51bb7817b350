"""The hash chain of a session (LG-05): sealing admitted drafts into rows, and checking rows against it.

    content_hash = sha256(salt ‖ body)
    hash         = sha256(prev_hash ‖ content_hash ‖ canonical(header))
    header       = ["muniment.entry.v1", tenant_id, user_id, agent_id, session_id, run_id,
                    id, seq, ts, recorded_at, kind, role, trust, flags]

The header covers the body only through the salted hash, so an entry whose body and salt were erased still
holds its place in the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from muniment.core.canonical import canonical_bytes, canonical_text
from muniment.core.hashing import digest, salted_digest
from muniment.core.ports.engine import Row, Value
from muniment.core.ports.schema import column_names, table
from muniment.core.scope import Scope
from muniment.store.ledger.admission import Admitted

__all__ = ["Head", "genesis", "header_hash", "link_fault", "seal"]

_COLUMNS = column_names(table("entries"))
_AT = {name: index for index, name in enumerate(_COLUMNS)}


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a session's chain. A session that has no entry yet ends in its genesis, at seq 0."""

    seq: int
    hash: bytes
    recorded_at: str


def genesis(tenant_id: str, user_id: str, session_id: str) -> Head:
    """What the first entry points back to: the session's own name, so that no chain can be moved to another."""
    return Head(0, digest(canonical_bytes(["muniment.session.v1", tenant_id, user_id, session_id])), "")


def _scope_text(tenant_id: str, user_id: Value, agent_id: Value, session_id: Value, run_id: Value) -> str:
    """The part of a header that all entries of a run share, without the closing bracket."""
    return canonical_text(["muniment.entry.v1", tenant_id, user_id, agent_id, session_id, run_id])[:-1]


def _link(prev_hash: bytes, content_hash: bytes, scope_text: str, rest: list[Value]) -> bytes:
    header = f"{scope_text},{canonical_text(rest)[1:]}"
    return sha256(prev_hash + content_hash + header.encode()).digest()


def header_hash(tenant_id: str, row: Row) -> bytes:
    """The hash an entry's row must have, from its own header and the predecessor it names."""
    content_hash, prev_hash = row[12], row[13]
    assert isinstance(content_hash, bytes)
    assert isinstance(prev_hash, bytes)
    return _link(prev_hash, content_hash, _scope_text(tenant_id, *row[1:5]), [row[0], *row[5:12]])


def seal(
    scope: Scope,
    head: Head,
    admitted: Sequence[Admitted],
    ids: Sequence[str],
    salts: Sequence[bytes],
    recorded_at: str,
) -> tuple[list[Row], Head]:
    """Extend the chain from `head` by the admitted drafts; the rows of `entries`, and the new head."""
    rows: list[Row] = []
    where = (scope.user_id, scope.agent_id, scope.session_id, scope.run_id)
    scope_text = _scope_text(scope.tenant_id, *where)
    seq, last = head.seq, head.hash
    for item, id_, salt in zip(admitted, ids, salts, strict=True):
        seq += 1
        draft = item.draft
        rest: list[Value] = [
            seq,
            item.ts or recorded_at,
            recorded_at,
            draft.kind,
            draft.role,
            item.trust,
            ",".join(item.flags),
        ]
        content_hash = sha256(salt + item.body_text.encode()).digest()
        own = _link(last, content_hash, scope_text, [id_, *rest])
        rows.append((id_, *where, *rest, content_hash, last, own, salt, item.body_text, None))
        last = own
    return rows, Head(seq, last, recorded_at)


def link_fault(tenant_id: str, row: Row, previous: Head) -> str | None:
    """What is wrong with this row as the successor of `previous`; None where the link holds."""
    if row[_AT["seq"]] != previous.seq + 1:
        return f"expected seq {previous.seq + 1}, found {row[_AT['seq']]!r}"
    if row[_AT["prev_hash"]] != previous.hash:
        return "does not point to its predecessor"
    if row[_AT["hash"]] != header_hash(tenant_id, row):
        return "the header was altered"
    body, salt = row[_AT["body"]], row[_AT["salt"]]
    if row[_AT["receipt_id"]] is not None:
        return None if body is None and salt is None else "a forgotten entry still holds content"
    if not isinstance(body, str) or not isinstance(salt, bytes):
        return "the content is missing and no receipt says why"
    if salted_digest(salt, body.encode()) != row[_AT["content_hash"]]:
        return "the content was altered"
    return None
