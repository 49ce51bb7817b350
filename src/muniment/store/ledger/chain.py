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
from json.encoder import encode_basestring as _quote
from typing import Protocol

from muniment.core.canonical import canonical_bytes, canonical_text, digest, salted_digest
from muniment.core.limits import remembered
from muniment.core.ports.schema import EntryRow, SessionRow
from muniment.core.scope import Scope, Trust
from muniment.errors import InvalidJson

__all__ = ["Head", "Sealable", "genesis", "head_after", "head_of", "header_hash", "link_fault", "seal"]


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a session's chain. A session that has no entry yet ends in its genesis, at seq 0."""

    seq: int
    hash: bytes
    recorded_at: str


class Sealable(Protocol):
    """What an entry is made of besides its place, its id and its salt."""

    @property
    def kind(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def trust(self) -> Trust: ...
    @property
    def ts(self) -> str | None: ...
    @property
    def flags(self) -> tuple[str, ...]: ...
    @property
    def body_text(self) -> str: ...


def genesis(tenant_id: str, user_id: str, session_id: str) -> Head:
    """What the first entry points back to: the session's own name, so that no chain can be moved to another."""
    return Head(0, digest(canonical_bytes(["muniment.session.v1", tenant_id, user_id, session_id])), "")


def head_of(session: SessionRow) -> Head:
    """The end of a session's chain as its own row has it."""
    return Head(session.head_seq, session.head_hash, session.head_recorded_at)


def head_after(entry: EntryRow) -> Head:
    """The end of a chain whose last entry this is."""
    return Head(entry.seq, entry.hash, entry.recorded_at)


@remembered(256)
def _header_start(tenant_id: str, user_id: str, agent_id: str, session_id: str, run_id: str) -> str:
    """The canonical text of a header up to the run's id: what all entries of a run share, written once for all."""
    return canonical_text(["muniment.entry.v1", tenant_id, user_id, agent_id, session_id, run_id])[:-1]


@remembered(256)
def _header_end(kind: str, role: str, trust: str, flags: str) -> str:
    """The canonical text of a header from the kind on: few entries differ in it."""
    return canonical_text([kind, role, trust, flags])[1:]


def header_hash(tenant_id: str, row: EntryRow) -> bytes:
    """Compute the `hash` of an entry's row anew, from its other columns.

    A row whose stored `hash` is another one was altered: in its header, its content hash or its `prev_hash`.
    """
    header_start = _header_start(tenant_id, row.user_id, row.agent_id, row.session_id, row.run_id)
    header_end = _header_end(row.kind, row.role, row.trust, row.flags)
    own = f"{_quote(row.id)},{row.seq},{_quote(row.ts)},{_quote(row.recorded_at)}"
    header = f"{header_start},{own},{header_end}".encode(
        "utf-8", "surrogatepass"
    )  # no entry was sealed with half a pair
    return sha256(row.prev_hash + row.content_hash + header).digest()


def seal(
    scope: Scope,
    head: Head,
    admitted: Sequence[Sealable],
    ids: Sequence[str],
    salts: Sequence[bytes],
    recorded_at: str,
    last_n: int = 0,
) -> tuple[list[EntryRow], Head]:
    """Extend the chain from `head` by the admitted drafts; the rows of `entries`, and the new head.

    `last_n` is the number that the user's last entry has among the user's own.
    """
    rows: list[EntryRow] = []
    where = (scope.user_id, scope.agent_id, scope.session_id, scope.run_id)
    header_start = _header_start(scope.tenant_id, *where)
    seq, last, n = head.seq, head.hash, last_n
    for item, id_, salt in zip(admitted, ids, salts, strict=True):
        seq += 1
        n += 1
        kind, role, trust, body = item.kind, item.role, item.trust, item.body_text
        ts, flags = item.ts or recorded_at, ",".join(item.flags)
        content_hash = sha256(salt + body.encode()).digest()
        own = f"{_quote(id_)},{seq},{_quote(ts)},{_quote(recorded_at)}"
        header = f"{header_start},{own},{_header_end(kind, role, trust, flags)}"
        own_hash = sha256(last + content_hash + header.encode()).digest()
        hashes = (content_hash, last, own_hash)
        rows.append(EntryRow(id_, *where, seq, ts, recorded_at, kind, role, trust, flags, *hashes, salt, body, None, n))
        last = own_hash
    return rows, Head(seq, last, recorded_at)


def link_fault(tenant_id: str, row: EntryRow, previous: Head) -> str | None:
    """What is wrong with this row as the successor of `previous`; None where the link holds."""
    if row.seq != previous.seq + 1:
        return f"expected seq {previous.seq + 1}, found {row.seq!r}"
    if row.prev_hash != previous.hash:
        return "does not point to its predecessor"
    try:
        if row.hash != header_hash(tenant_id, row):
            return "the header was altered"
    except (TypeError, InvalidJson):  # a value of another type than its column's
        return "the header was altered"
    if row.receipt_id is not None:
        return None if row.body is None and row.salt is None else "a forgotten entry still holds content"
    if row.body is None or row.salt is None:
        return "the content is missing and no receipt says why"
    if salted_digest(row.salt, row.body.encode()) != row.content_hash:
        return "the content was altered"
    return None
