"""The ledger of a store: the events of its users, their contents, and recent commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from muniment.core.listing import list_query, read_listing
from muniment.core.scope import DEFAULT_TENANT
from muniment.handles.openings import require_room

if TYPE_CHECKING:
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.scope import Pointer
    from muniment.memory.turns import EpisodeCandidate
    from muniment.store.context import Context
    from muniment.store.ledger import EntryKind, LedgerEntry, Resolved
    from muniment.store.reports import Changes
    from muniment.traces.ingest import TraceReport

__all__ = ["MemoryLedger"]


class MemoryLedger:
    """Events by their ids, and a user's events in order: `mem.ledger`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def entries(
        self,
        *,
        user_id: str,
        session_id: str | None = None,
        order: Literal["asc", "desc"] = "asc",
        since: Any = None,
        until: Any = None,
        kind: EntryKind | None = None,
        q: str | None = None,
        around: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Listing[LedgerEntry]:
        """A user's events, session by session, oldest or newest first (`desc`): all of them, or at most `limit`.

        Filters: written `since` one time and before `until`, of a `kind`, with the words `q` (case-insensitive); or
        `around` an event.
        """
        from muniment.store.lists.entries import ENTRY_KINDS, count_entries, list_placed

        def read(asked: ListQuery) -> Iterator[Placed[LedgerEntry]]:
            return list_placed(self._ctx, tenant_id, user_id, session_id, None, asked)

        def count(asked: ListQuery) -> int | None:
            return count_entries(self._ctx, tenant_id, user_id, session_id, None, asked)

        asked = list_query(
            order=order, since=since, until=until, kind=kind, kinds=ENTRY_KINDS, q=q, around=around, limit=limit
        )
        return read_listing("entries", (str, int), read, asked, cursor, count)

    def get(self, event_id: str, *, tenant_id: str = DEFAULT_TENANT) -> LedgerEntry:
        """An event by its id."""
        from muniment.store import reading

        return reading.get_entry(self._ctx, tenant_id, event_id)

    def content(
        self, event_id: str, *, start: int = 0, length: int | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> str:
        """The full text of an event, wherever it is stored; checked against its hash. `Forgotten` if it was erased.

        To read part of a long text: `length` characters from `start`.
        """
        from muniment.store import reading

        return reading.content_of(self._ctx, tenant_id, event_id, start=start, length=length)

    def resolve(self, pointer: Pointer | str, *, tenant_id: str = DEFAULT_TENANT) -> Resolved:
        """Resolve a pointer (or an event id), checking its quote against the bytes (else `QuoteMismatch`)."""
        from muniment.store import reading

        return reading.resolve(self._ctx, tenant_id, reading.pointer_of(pointer))

    def answers(
        self, build_id: str, *, limit: int | None = None, cursor: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> Listing[LedgerEntry]:
        """The answers observed with a build, oldest first; each entry's `cited` lists its citations."""
        from muniment.packets.builds import page_answers

        def read(asked: ListQuery) -> Iterator[Placed[LedgerEntry]]:
            return page_answers(self._ctx, tenant_id, build_id, asked)

        return read_listing("answers", (str, str, int), read, list_query(limit=limit), cursor)

    def episodes(
        self,
        *,
        user_id: str,
        session_id: str | None = None,
        order: Literal["asc", "desc"] = "asc",
        since: Any = None,
        until: Any = None,
        q: str | None = None,
        around: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Listing[EpisodeCandidate]:
        """A user's episodes: sessions split at long silences, each with its best sentences.

        Session by session, oldest or newest first (`desc`): all, or at most `limit`. Filters: overlapping the time from
        `since` until `until`, with the words `q` (case-insensitive); or `around` the one that holds an event.
        """
        from muniment.memory.sessions import list_episodes

        def read(asked: ListQuery) -> Iterator[Placed[EpisodeCandidate]]:
            return list_episodes(self._ctx, tenant_id, user_id, session_id, asked)

        asked = list_query(order=order, since=since, until=until, q=q, around=around, limit=limit)
        return read_listing("episodes", (str, int), read, asked, cursor)

    def ingest_otel(
        self,
        data: Any,
        *,
        user_id: str | None = None,
        default_user_id: str | None = None,
        user_attributes: Iterable[str] | None = None,
        signal: Literal["traces", "logs"] | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> TraceReport:
        """Ingest OpenTelemetry spans and logs as entries: a traced agent's inputs, answers and tool results.

        `data` is OTLP as JSON or protobuf, JSON lines of the collector's file exporter, or the console exporter's
        output. Each message is written once, however many spans repeat it and however often they are sent. The
        conversation that a span names becomes the session. The user comes from the spans' `user_attributes` (by default
        `user.id`, `enduser.id` and the like), else is `default_user_id`. With `user_id`, everything goes to that user,
        and spans naming another user are left out. `signal` is the signal of a protobuf, if known.
        """
        require_room("traces", "reading traces")
        from muniment.handles.tracing import ingest_otel

        return ingest_otel(
            self._ctx, data, user_id=user_id, default_user_id=default_user_id, user_attributes=user_attributes,
            signal=signal, tenant_id=tenant_id,
        )  # fmt: skip

    def changes(self, *, user_id: str, after: str | None = None, tenant_id: str = DEFAULT_TENANT) -> Changes:
        """Changes committed in a user's scope after a position, by any process: ids and kinds, for incremental readers.
        Without a position, the current position.
        """
        from muniment.store.changes import changes_after, whose

        return changes_after(self._ctx, whose(tenant_id, user_id), after)
