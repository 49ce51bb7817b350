"""The episodes of a user's sessions, a page at a time: which turns belong together is written with them, what they say
is read from the ledger as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import first, select
from muniment.core.ports.schema import ENTRIES, EpisodeRow
from muniment.errors import InvalidInput
from muniment.memory.episodes.forming import form_episode
from muniment.memory.session_rows import read_episodes
from muniment.memory.turn_reading import turns_by_id
from muniment.store.lists.seeking import seek

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.memory.turns import EpisodeCandidate
    from muniment.store.context import Context

__all__ = ["list_episodes"]

_ROLES = ("user", "assistant", "tool")
_KINDS = ("message", "tool_result")


class _Owner(NamedTuple):
    id: str
    user_id: str
    session_id: str
    seq: int


class _Id(NamedTuple):
    id: str


def list_episodes(
    ctx: Context, tenant_id: str, user_id: str, session_id: str | None, asked: ListQuery
) -> Iterator[Placed[EpisodeCandidate]]:
    """The episodes of a user's sessions, or of one, in the order of the sessions' names. A place is a session and the
    number of an episode's first entry. Around an event stands the episode that holds it."""
    for name, given in (("user_id", user_id), ("session_id", session_id)):
        if not isinstance(given, str) and (name == "user_id" or given is not None):
            raise InvalidInput(f"{name} should be a string", path=f"$.{name}")

    def formed(reader: Reader, row: EpisodeRow) -> Placed[EpisodeCandidate]:
        return Placed((row.session_id, row.first), _form(ctx, reader, tenant_id, row, asked))

    def read(reader: Reader, after: Any, descending: bool, size: int) -> list[Placed[EpisodeCandidate]]:
        rows = read_episodes(reader, user_id, session_id, after, size, descending=descending)
        return [formed(reader, row) for row in rows]

    def find(reader: Reader, event_id: str) -> Placed[EpisodeCandidate] | None:
        entry = first(reader, ENTRIES, (("id", "=", event_id),), into=_Owner)
        if entry is None or entry.user_id != user_id or session_id not in (None, entry.session_id):
            return None
        held = read_episodes(reader, user_id, entry.session_id, (entry.session_id, entry.seq + 1), 1, descending=True)
        found = None if not held else formed(reader, held[0])
        return found if found is not None and found.value is not None else None

    return seek(ctx, tenant_id, read, asked, find)


def _form(ctx: Context, reader: Reader, tenant_id: str, row: EpisodeRow, asked: ListQuery) -> EpisodeCandidate | None:
    """An episode of what is left of its turns; None where nothing is, or it is not asked for."""
    is_early = asked.since is not None and row.ended_at < asked.since
    if not row.turns or is_early or (asked.until is not None and row.started_at >= asked.until):
        return None
    where: tuple[Condition, ...] = (
        ("user_id", "=", row.user_id),
        ("session_id", "=", row.session_id),
        ("seq", ">=", row.first),
        ("seq", "<=", row.last),
        ("kind", "in", _KINDS),
        ("role", "in", _ROLES),
        ("receipt_id", "=", None),
    )
    ids = [entry.id for entry in select(reader, ENTRIES, where, into=_Id, order=("user_id", "session_id", "seq"))]
    known = turns_by_id(ctx, reader, tenant_id, ids, is_asked_later=True)
    turns = [known[id_].read for id_ in ids if id_ in known]
    if not turns or not matches(asked.q, *(known[id_].text for id_ in ids if id_ in known)):
        return None
    return form_episode(turns, {})
