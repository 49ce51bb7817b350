"""Whether entries that are read stand in the chain where they were written: one that is cited, or one after the other.

A row's own hashes say that it was not altered. They do not say that nobody left one out or put another in its place:
its neighbours do, and at the end of a session its head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import find, get
from muniment.core.ports.schema import ENTRIES, SESSIONS, EntryRow
from muniment.errors import StoreDamaged
from muniment.store.ledger.chain import Head, genesis, head_after, head_of
from muniment.store.ledger.rows import damaged_entry

__all__ = ["ChainWalk", "Linked", "check_place", "check_places"]


class Linked(NamedTuple):
    """Where an entry stands: its session and number, its hash and that of the entry before it."""

    id: str
    user_id: str
    session_id: str
    seq: int
    prev_hash: bytes
    hash: bytes


def check_place(reader: Reader, tenant_id: str, row: EntryRow | Linked) -> None:
    """The entry follows the one before it, and the one after it follows it; the last one is the session's head."""
    check_places(reader, tenant_id, (row,))


def check_places(reader: Reader, tenant_id: str, rows: Iterable[EntryRow | Linked]) -> None:
    """`check_place` of several."""
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
    """These entries and their neighbours; the neighbours that are not among them are asked for at once."""
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
    """Entries as they come, session by session, in order: none may be missing between them, nor at the end."""

    def __init__(self, tenant_id: str, begun: tuple[str, str, int] | None = None) -> None:
        """`begun` is the user, session and number of an entry that was seen before, and whose hash nobody knows now."""
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
        """The session that was walked last ends in its head."""
        if self._session is None or self._head is None:
            return
        there = get(reader, SESSIONS, self._session)
        if there is None or head_of(there) != self._head:
            name = self._session[1]
            raise StoreDamaged(
                f"the session {name!r:.80} does not end where it did: entries are missing behind {self._seq}",
                details={"session_id": name, "seq": self._seq},
            )
