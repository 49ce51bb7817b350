"""The kinds of upkeep: of whom something waits, and how it is done.

Each is handed a context whose writes are refused once another process has the piece. A chore remembers in memory what
it has seen to be done, so that a look for nothing costs little; it never decides who does a piece.
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
"""The name of the one piece that a scrub is."""


class Piece(NamedTuple):
    """What one process does at once: what waits of some users, or of the store."""

    place: str
    names: list[str]
    token: str
    """Of the taking (`store.background.leases`)."""
    left_by: str | None = None
    """That of another process, which began with it and is gone or held up."""


class Chore(Protocol):
    """One kind of upkeep, as one process sees it."""

    pieces_max: int
    """How many are taken at once."""
    is_of_the_store: bool
    """Is there one piece for all tenants together?"""
    rest: Rest
    """Of what it asks for a part of each piece, where the other part goes on without."""

    def waiting(self, ctx: Context, place: str) -> list[str]:
        """The names of the pieces for which there is something to do."""
        ...

    def do(self, ctx: Context, piece: Piece, progress: Callable[[int], None]) -> int:
        """Do it; answers how much was done, 0 where nothing could be."""
        ...


class _Index:
    """Words, and vectors where there is an embedder. One that fails rests, and words go on."""

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
        """Vectors that were given later count as a piece that was done, though no turn of it was indexed."""
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
    """How far the sessions of each user have come."""
    sessions = stream(reader, SESSIONS, into=_Session, order=("user_id", "session_id"))
    return {user: tuple(each) for user, each in groupby(sessions, key=lambda row: row.user_id) if not is_reserved(user)}


class _Extract:
    pieces_max = 8
    is_of_the_store = False

    def __init__(self) -> None:
        self.rest = Rest()
        self._read: dict[tuple[str, str], int] = {}
        """How the sessions of a user stood when nothing of them was left to read."""

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
        """Its receipts are fenced by themselves: who finds that one waits no longer leaves it as it is. Another process
        may have done it all between the look and the lease."""
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
