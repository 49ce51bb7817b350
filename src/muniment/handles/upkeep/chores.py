"""The kinds of upkeep: how to find pending work, and how to do it.

Each gets a context whose writes are refused once another process has the piece. A chore remembers in memory what it has
seen finished, so that an idle check costs little; it never decides who does a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Protocol

from muniment.core.ports.rows import stream
from muniment.core.ports.schema import SESSIONS, UPKEEP
from muniment.core.scope import is_reserved
from muniment.errors import EmbedderFailure
from muniment.handles.upkeep.resting import Rest
from muniment.memory.index import index_tenant
from muniment.store.scrub import count_due, scrub
from muniment.store.watermark import users_behind

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.handles.upkeep.records import UpkeepKind
    from muniment.store.context import Context

__all__ = ["CHORES", "Chore", "Piece"]

FILES = "files"
"""The name of the one piece of a scrub."""


class Piece(NamedTuple):
    """A unit of work for one process: pending work of some users, or of the store."""

    place: str
    names: list[str]
    token: str
    """The token of the lease (`store.background.leases`)."""
    left_by: str | None = None
    """The token of an earlier process that started it and is gone or stalled."""


class Chore(Protocol):
    """One kind of upkeep, as one process sees it."""

    pieces_max: int
    """The number of pieces leased at once."""
    is_of_the_store: bool
    """True if one piece covers all tenants."""
    rest: Rest
    """The backoff of a service needed for part of each piece; the rest of the piece proceeds without it."""

    def waiting(self, ctx: Context, place: str) -> list[str]:
        """The names of the pieces with pending work."""
        ...

    def do(self, ctx: Context, piece: Piece, progress: Callable[[int], None]) -> int:
        """Do the piece; return how much was done, 0 if nothing could be."""
        ...


class _Index:
    """Indexes words, and vectors if there is an embedder. A failing embedder rests while words continue."""

    pieces_max = 64
    is_of_the_store = False

    def __init__(self) -> None:
        self.rest = Rest()

    def waiting(self, ctx: Context, place: str) -> list[str]:
        if not ctx.indexes_turns:
            return []
        users = [user.user_id for user in ctx.engine.read(place, users_behind)]
        if ctx.embedder is not None and not self.rest.is_resting:
            users += ctx.engine.read(place, _unembedded)
        return list(dict.fromkeys(users))

    def do(self, ctx: Context, piece: Piece, progress: Callable[[int], None]) -> int:
        """Late vectors count as one piece done, though no turn of it was indexed."""
        embeds = ctx.embedder is not None and not self.rest.is_resting
        due = ctx.engine.read(piece.place, _unembedded) if embeds else []
        try:
            turns = index_tenant(ctx, piece.place, progress=progress, of_users=piece.names, embeds=embeds)
        except EmbedderFailure:
            self.rest.fail()
            raise
        if embeds and (due or turns):
            self.rest.work()
        return turns or len(set(due).intersection(piece.names))


def _unembedded(reader: Reader) -> list[str]:
    from muniment.memory.vectors import users_unembedded

    return users_unembedded(reader)


class _Session(NamedTuple):
    user_id: str
    session_id: str
    head_seq: int


def _ends(reader: Reader) -> dict[str, tuple[tuple[str, str, int], ...]]:
    """The last indexed position of each user's sessions."""
    sessions = stream(reader, SESSIONS, into=_Session, order=("user_id", "session_id"))
    return {user: tuple(each) for user, each in groupby(sessions, key=lambda row: row.user_id) if not is_reserved(user)}


class _Extract:
    pieces_max = 8
    is_of_the_store = False

    def __init__(self) -> None:
        self.rest = Rest()
        self._read: dict[tuple[str, str], int] = {}
        """The state of a user's sessions when nothing of them was left to read."""

    def waiting(self, ctx: Context, place: str) -> list[str]:
        from muniment.memory.extraction import count_unread

        found = []
        for user_id, ends in ctx.engine.read(place, _ends).items():
            seen = hash(ends)
            if self._read.get((place, user_id)) == seen:
                continue
            if count_unread(ctx, place, [user_id], ctx.extract_model):
                found.append(user_id)
            else:
                self._read[place, user_id] = seen
        return found

    def do(self, ctx: Context, piece: Piece, progress: Callable[[int], None]) -> int:
        from muniment.handles.memory import Memory

        memory, turns = Memory(ctx), 0
        for user_id in piece.names:
            turns += memory._extract(
                user_id=user_id, tenant_id=piece.place, progress=progress, lease=piece.token, left_by=piece.left_by
            ).turns
        return turns


class _Scrub:
    pieces_max = 1
    is_of_the_store = True

    def __init__(self) -> None:
        self.rest = Rest()

    def waiting(self, ctx: Context, place: str) -> list[str]:
        assert place == UPKEEP
        return [FILES] if any(ctx.engine.read(each, count_due) for each in ctx.engine.tenants()) else []

    def do(self, ctx: Context, piece: Piece, progress: Callable[[int], None]) -> int:
        """Receipts are fenced themselves: one that no longer waits is left unchanged. Another process may have done
        everything between the check and the lease.
        """
        if not self.waiting(ctx, piece.place):
            return 0
        settled = scrub(ctx).receipts
        progress(settled)
        return settled


CHORES: Mapping[UpkeepKind, Callable[[], Chore]] = {
    "index": _Index,
    "extract": _Extract,
    "scrub": _Scrub,
}


def names_of(kind: str, ids: Sequence[str]) -> list[str]:
    """The names of pieces by the ids of their leases."""
    return [id_[len(kind) + 1 :] for id_ in ids]
