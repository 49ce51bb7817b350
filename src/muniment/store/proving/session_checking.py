"""Whether the row of a session is there, and says when it began and where it ends, as its own entries have it. Writes
nothing."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple, Protocol

from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import get, select, stream
from muniment.core.ports.schema import ENTRIES, SESSIONS
from muniment.errors import StoreDamaged

__all__ = ["SessionEnds", "check_session", "check_sessions", "damaged_session"]


class SessionEnds(Protocol):
    """What a row must have for a session's ends to be checked."""

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


class _Entry(NamedTuple):
    seq: int
    hash: bytes
    recorded_at: str


def damaged_session(session: SessionEnds) -> StoreDamaged:
    """The error for a session whose row is not as it was written."""
    return StoreDamaged(
        f"the session {session.session_id!r:.80} is not as it was written: its row was altered",
        details={"session_id": session.session_id},
    )


def check_session(reader: Reader, session: SessionEnds) -> None:
    """Its first entry says when it began, its last one is its head. One question."""
    where: tuple[Condition, ...] = (
        ("user_id", "=", session.user_id),
        ("session_id", "=", session.session_id),
        ("seq", "in", (1, session.head_seq, session.head_seq + 1)),
    )
    entries = {row.seq: row for row in select(reader, ENTRIES, where, into=_Entry)}
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


class _Place(NamedTuple):
    user_id: str
    session_id: str


def check_sessions(reader: Reader, where: tuple[Condition, ...]) -> None:
    """Every entry of a scope stands in a session that is there: a dump without it would be a part, and not say so."""
    places = stream(reader, ENTRIES, where, into=_Place, order=("user_id", "session_id", "seq"))
    for place, _ in groupby(places):
        if get(reader, SESSIONS, place) is None:
            raise StoreDamaged(
                f"the session {place.session_id!r:.80} is missing, and its events are there",
                details={"session_id": place.session_id},
            )
