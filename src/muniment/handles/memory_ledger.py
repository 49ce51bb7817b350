"""The ledger of a store: the events of its users, what they hold, and what was committed last."""

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
        """A user's events, session by session, in order or turned around (`desc`): all of them, or at most `limit`.

        Those written `since` a moment and before another (`until`), of a `kind`, with the words `q` whatever their
        case; or those `around` an event.
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
        """The full text of an event, wherever it lies; checked against its hash. `Forgotten` where it was erased.

        Of a long one a part: `length` characters from `start`.
        """
        from muniment.store import reading

        return reading.content_of(self._ctx, tenant_id, event_id, start=start, length=length)

    def resolve(self, pointer: Pointer | str, *, tenant_id: str = DEFAULT_TENANT) -> Resolved:
        """What a pointer (or an event id) points to, its quote checked against the bytes (else `QuoteMismatch`)."""
        from muniment.store import reading

        return reading.resolve(self._ctx, tenant_id, reading.pointer_of(pointer))

    def answers(
        self, build_id: str, *, limit: int | None = None, cursor: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> Listing[LedgerEntry]:
        """The answers that were observed with a build, oldest first; each entry's `cited` says what it names."""
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
        """What a user's sessions hold, cut where a long silence says so, each with its best sentences.

        Session by session, in order or turned around (`desc`): all, or at most `limit`. Those that reach into the time
        `since` a moment and `until` before another, with the words `q` whatever their case; or those `around` the one
        that holds an event.
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
        """Spans and logs of OpenTelemetry as entries: what a traced agent was told, said and got from its tools.

        `data` is OTLP as JSON or protobuf, JSON lines of the collector's file exporter, or what the console exporter
        prints. Each message is written once, however many spans repeat it and however often they are sent. The
        conversation that a span names is the session. Whose it is, the spans say by `user_attributes` (`user.id`,
        `enduser.id` and the like, unless names are given), or else it is `default_user_id`'s. With `user_id` all is
        that user's, and what names another is left out. `signal` says what a protobuf holds, where that is known.
        """
        require_room("traces", "reading traces")
        from muniment.handles.tracing import ingest_otel

        return ingest_otel(
            self._ctx, data, user_id=user_id, default_user_id=default_user_id, user_attributes=user_attributes,
            signal=signal, tenant_id=tenant_id,
        )  # fmt: skip

    def changes(self, *, user_id: str, after: str | None = None, tenant_id: str = DEFAULT_TENANT) -> Changes:
        """What was committed in a user's scope after a position, by whichever process: ids and kinds, for whoever
        keeps up with it. Without a position, where things are now.
        """
        from muniment.store.changes import changes_after, whose

        return changes_after(self._ctx, whose(tenant_id, user_id), after)
