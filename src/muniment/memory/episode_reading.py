"""A user's episodes as they stand now, formed from the ledger session by session; nothing is stored for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from muniment.core.ports.engine import Reader
from muniment.errors import InvalidInput
from muniment.memory.episodes.forming import form_episodes
from muniment.memory.episodes.turns import ReadTurn
from muniment.memory.turn_reading import LiveTurn
from muniment.memory.turns import EpisodeCandidate
from muniment.store.context import Context
from muniment.store.ledger.records import LedgerEntry
from muniment.store.reading import list_entries
from muniment.store.turns import is_turn, text_of

__all__ = ["list_episodes"]


def list_episodes(ctx: Context, tenant_id: str, user_id: str, session_id: str | None) -> Iterator[EpisodeCandidate]:
    """The episodes of a user's sessions, or of one, in the order of the sessions' names; one session in memory."""
    if session_id is not None and not isinstance(session_id, str):
        raise InvalidInput("session_id should be a string", path="$.session_id")
    return _episodes(ctx, tenant_id, list_entries(ctx, tenant_id, user_id, session_id))


def _episodes(ctx: Context, tenant_id: str, entries: Iterable[LedgerEntry]) -> Iterator[EpisodeCandidate]:
    for _, session in groupby(entries, key=lambda entry: entry.scope.session_id):
        said = [entry for entry in session if is_turn(entry)]
        yield from form_episodes(_read(ctx, tenant_id, said), {})


def _read(ctx: Context, tenant_id: str, entries: Sequence[LedgerEntry]) -> list[ReadTurn]:
    def work(reader: Reader) -> list[ReadTurn]:
        return [LiveTurn.of_entry(entry, text_of(reader, entry)).read for entry in entries]

    return ctx.engine.read(tenant_id, work)
