"""The ledger as a run sees it: its own entries, and every event of its user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from muniment.core.listing import list_query, read_listing

if TYPE_CHECKING:
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.scope import Pointer, Scope
    from muniment.store.context import Context
    from muniment.store.ledger import EntryKind, LedgerEntry, Resolved

__all__ = ["RunLedger"]


class RunLedger:
    """The recorded events of a run and of its user: `run.ledger`."""

    def __init__(self, ctx: Context, scope: Scope) -> None:
        self._ctx = ctx
        self._scope = scope

    def entries(
        self,
        *,
        order: Literal["asc", "desc"] = "asc",
        since: Any = None,
        until: Any = None,
        kind: EntryKind | None = None,
        q: str | None = None,
        around: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[LedgerEntry]:
        """This run's entries, oldest or newest first (`desc`): all of them, or at most `limit`.

        Filters: written `since` one time and before `until`, of a `kind`, with the words `q` (case-insensitive); or
        `around` one.
        """
        from muniment.store.lists.entries import ENTRY_KINDS, count_entries, list_placed

        scope = self._scope

        def read(asked: ListQuery) -> Iterator[Placed[LedgerEntry]]:
            return list_placed(self._ctx, scope.tenant_id, scope.user_id, scope.session_id, scope.run_id, asked)

        def count(asked: ListQuery) -> int | None:
            return count_entries(self._ctx, scope.tenant_id, scope.user_id, scope.session_id, scope.run_id, asked)

        asked = list_query(
            order=order, since=since, until=until, kind=kind, kinds=ENTRY_KINDS, q=q, around=around, limit=limit
        )
        return read_listing("entries", (str, int), read, asked, cursor, count)

    def get(self, event_id: str) -> LedgerEntry:
        """An event of this user, of any session."""
        from muniment.store import reading

        return reading.get_entry(self._ctx, self._scope.tenant_id, event_id, self._scope.user_id)

    def content(self, event_id: str, *, start: int = 0, length: int | None = None) -> str:
        """The full text of an event of this user, wherever it is stored; `Forgotten` if it was erased.

        To read part of a long text: `length` characters from `start`. A packet that cuts a result says at which
        character to continue.
        """
        from muniment.store import reading

        scope = self._scope
        return reading.content_of(self._ctx, scope.tenant_id, event_id, scope.user_id, start=start, length=length)

    def resolve(self, pointer: Pointer | str) -> Resolved:
        """Resolve a pointer (or an event id) within this user's evidence, checking its quote."""
        from muniment.store import reading

        return reading.resolve(self._ctx, self._scope.tenant_id, reading.pointer_of(pointer), self._scope.user_id)
