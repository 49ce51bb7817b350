"""The hash chain of a session (LG-05): sealing admitted drafts into rows, and checking rows against it.

    content_hash = sha256(salt ‖ body)
    hash         = sha256(prev_hash ‖ content_hash ‖ canonical(header))
    header       = ["muniment.entry.v1", tenant_id, user_id, agent_id, session_id, run_id,
                    id, seq, ts, recorded_at, kind, role, trust, flags]

The header covers the body only through the salted hash, so an entry whose body and salt were erased still keeps its
place in the chain.

A row's own hashes prove that it was not altered. Its neighbours, and at the end of a session its head, prove that no
row was left out or replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from json.encoder import encode_basestring as _quote
from typing import Any, NamedTuple, Protocol

from muniment.core.canonical import canonical_bytes, canonical_text, digest, parse_json, salted_digest
from muniment.core.limits import remembered
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import find, get, select, stream
from muniment.core.ports.schema import BLOBS, ENTRIES, SESSIONS, BlobRow, EntryRow, SessionRow
from muniment.core.scope import Scope, Trust
from muniment.errors import InvalidJson, StoreDamaged

__all__ = [
    "ChainWalk",
    "Head",
    "Linked",
    "Sealable",
    "blob_fault",
    "blobs_of",
    "check_place",
    "check_places",
    "check_session",
    "check_sessions",
    "damaged_entry",
    "damaged_session",
    "genesis",
    "head_after",
    "head_of",
    "header_hash",
    "link_fault",
    "seal",
]


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a session's chain. A session that has no entry yet ends in its genesis, at seq 0."""

    seq: int
    hash: bytes
    recorded_at: str


class Sealable(Protocol):
    """The fields of an entry apart from its place, id and salt."""

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
    """Return the head before the first entry, derived from the session's name so that no chain can be moved."""
    return Head(0, digest(canonical_bytes(["muniment.session.v1", tenant_id, user_id, session_id])), "")


def head_of(session: SessionRow) -> Head:
    """Return the end of a session's chain according to its row."""
    return Head(session.head_seq, session.head_hash, session.head_recorded_at)


def head_after(entry: EntryRow) -> Head:
    """Return the end of a chain whose last entry is this one."""
    return Head(entry.seq, entry.hash, entry.recorded_at)


@remembered(256)
def _header_start(tenant_id: str, user_id: str, agent_id: str, session_id: str, run_id: str) -> str:
    """Return the canonical text of a header up to the run's id, which all entries of a run share."""
    return canonical_text(["muniment.entry.v1", tenant_id, user_id, agent_id, session_id, run_id])[:-1]


@remembered(256)
def _header_end(kind: str, role: str, trust: str, flags: str) -> str:
    """Return the canonical text of a header from the kind on: few entries differ in it."""
    return canonical_text([kind, role, trust, flags])[1:]


def header_hash(tenant_id: str, row: EntryRow) -> bytes:
    """Compute the `hash` of an entry's row from its other columns.

    A row whose stored `hash` differs was altered: in its header, its content hash or its `prev_hash`.
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
    """Extend the chain from `head` by the admitted drafts; returns the rows of `entries` and the new head.

    `last_n` is the per-user number of the user's last entry.
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
    """Return what is wrong with this row as the successor of `previous`, or None if the link holds."""
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


# -- places in the chain --------------------------------------------------------------------------------------


class Linked(NamedTuple):
    """The chain position of an entry: its session and number, its hash and that of the entry before it."""

    id: str
    user_id: str
    session_id: str
    seq: int
    prev_hash: bytes
    hash: bytes


def check_place(reader: Reader, tenant_id: str, row: EntryRow | Linked) -> None:
    """Check that an entry links to its neighbours; the last one must be the session's head."""
    check_places(reader, tenant_id, (row,))


def check_places(reader: Reader, tenant_id: str, rows: Iterable[EntryRow | Linked]) -> None:
    """Check several entries with `check_place`."""
    cited = {_place(row): row for row in rows}
    known = _beside(reader, cited)
    for (user_id, session_id, seq), row in cited.items():
        before, after = known.get((user_id, session_id, seq - 1)), known.get((user_id, session_id, seq + 1))
        if not _is_after(tenant_id, row, before) or not _is_before(reader, row, after):
            raise damaged_entry(row.id, "it does not stand in its session's chain where it did")


_Place = tuple[str, str, int]
"""A user, a session and a number in it."""


def _place(row: EntryRow | Linked) -> _Place:
    return row.user_id, row.session_id, row.seq


def _beside(reader: Reader, cited: Mapping[_Place, EntryRow | Linked]) -> dict[_Place, EntryRow | Linked]:
    """Return these entries and their neighbours, reading missing neighbours in one query."""
    sides = [(user_id, session_id, seq + way) for user_id, session_id, seq in cited for way in (-1, 1) if seq + way]
    asked = [place for place in dict.fromkeys(sides) if place not in cited]
    found = find(reader, ENTRIES, ("user_id", "session_id", "seq"), asked, into=Linked)
    return {**cited, **{_place(row): row for row in found}}


def _is_after(tenant_id: str, row: EntryRow | Linked, before: EntryRow | Linked | None) -> bool:
    if row.seq == 1:
        return bool(row.prev_hash == genesis(tenant_id, row.user_id, row.session_id).hash)
    return before is not None and bool(row.prev_hash == before.hash)


def _is_before(reader: Reader, row: EntryRow | Linked, after: EntryRow | Linked | None) -> bool:
    if after is not None:
        return bool(after.prev_hash == row.hash)
    session = get(reader, SESSIONS, (row.user_id, row.session_id))
    return session is not None and (session.head_seq, session.head_hash) == (row.seq, row.hash)


class ChainWalk:
    """A walk over entries session by session, in order: none may be missing between them, nor at the end."""

    def __init__(self, tenant_id: str, begun: tuple[str, str, int] | None = None) -> None:
        """Start after `begun`: the user, session and number of an entry seen earlier, whose hash is not known now."""
        self._tenant_id = tenant_id
        self._session: tuple[str, str] | None = None if begun is None else begun[:2]
        self._head: Head | None = None
        self._seq = 0 if begun is None else begun[2]

    def see(self, reader: Reader, row: EntryRow) -> None:
        session = (row.user_id, row.session_id)
        if session != self._session:
            self.end(reader)
            self._session, self._head = session, genesis(self._tenant_id, *session)
            self._seq = 0
        if row.seq != self._seq + 1 or (self._head is not None and row.prev_hash != self._head.hash):
            raise damaged_entry(row.id, "it does not follow the entry before it")
        self._head, self._seq = head_after(row), row.seq

    def end(self, reader: Reader) -> None:
        """Check that the last session walked ends in its head."""
        if self._session is None or self._head is None:
            return
        there = get(reader, SESSIONS, self._session)
        if there is None or head_of(there) != self._head:
            name = self._session[1]
            raise StoreDamaged(
                f"the session {name!r:.80} does not end where it did: entries are missing behind {self._seq}",
                details={"session_id": name, "seq": self._seq},
            )


# -- sessions -----------------------------------------------------------------------------------------


class SessionEnds(Protocol):
    """A row of a session that names its first and its last entry."""

    @property
    def user_id(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def head_seq(self) -> int: ...
    @property
    def head_hash(self) -> bytes: ...
    @property
    def head_recorded_at(self) -> str: ...
    @property
    def created_at(self) -> str: ...


class _End(NamedTuple):
    seq: int
    hash: bytes
    recorded_at: str


def damaged_session(session: SessionEnds) -> StoreDamaged:
    """Return the error for a session whose row was altered."""
    return StoreDamaged(
        f"the session {session.session_id!r:.80} is not as it was written: its row was altered",
        details={"session_id": session.session_id},
    )


def check_session(reader: Reader, session: SessionEnds) -> None:
    """Compare a session's row with its first entry, which gives its beginning, and its last one, its head."""
    where: tuple[Condition, ...] = (
        ("user_id", "=", session.user_id),
        ("session_id", "=", session.session_id),
        ("seq", "in", (1, session.head_seq, session.head_seq + 1)),
    )
    entries = {row.seq: row for row in select(reader, ENTRIES, where, into=_End)}
    if session.head_seq == 0 and not entries:
        return
    first, last = entries.get(1), entries.get(session.head_seq)
    is_sound = first is not None and last is not None and session.head_seq + 1 not in entries
    if first is None or last is None or not is_sound:
        raise damaged_session(session)
    if (first.recorded_at, last.hash, last.recorded_at) != (
        session.created_at,
        session.head_hash,
        session.head_recorded_at,
    ):
        raise damaged_session(session)


class _SessionName(NamedTuple):
    user_id: str
    session_id: str


def check_sessions(reader: Reader, where: tuple[Condition, ...]) -> None:
    """Raise if entries of a scope have no session row: a dump without it would be silently incomplete."""
    places = stream(reader, ENTRIES, where, into=_SessionName, order=("user_id", "session_id", "seq"))
    for place, _ in groupby(places):
        if get(reader, SESSIONS, place) is None:
            raise StoreDamaged(
                f"the session {place.session_id!r:.80} is missing, and its events are there",
                details={"session_id": place.session_id},
            )


# -- blobs --------------------------------------------------------------------------------------------


def blobs_of(reader: Reader, row: EntryRow) -> list[BlobRow]:
    """Select the blob that an entry names, and no other."""
    return [blob for blob in select(reader, BLOBS, (("entry_id", "=", row.id),)) if blob.hash.hex() in (row.body or "")]


def blob_fault(reader: Reader, row: EntryRow) -> str | None:
    """Describe what is wrong with the blob that an entry refers to; None if it is there and hashes to its name."""
    if row.body is None or '"blob":"' not in row.body:
        return None
    try:
        name = parse_json(row.body).get("blob")
        key = None if name is None else bytes.fromhex(name)
    except (InvalidJson, AttributeError, TypeError, ValueError):
        return "the content was altered"
    if key is None:
        return None
    blob = get(reader, BLOBS, (key,))
    if blob is None:
        return f"its blob {name[:12]}… is missing"
    sound = blob.data is not None and salted_digest(row.salt or b"", blob.data).hex() == name
    sound = sound and (blob.entry_id, blob.size) == (row.id, len(blob.data or b""))
    return None if sound else f"its blob {name[:12]}… was altered"


def damaged_entry(entry_id: Any, why: str) -> StoreDamaged:
    """Return the error for an entry that was altered."""
    return StoreDamaged(f"the event {entry_id!r:.80} is not as it was written: {why}", details={"id": str(entry_id)})
