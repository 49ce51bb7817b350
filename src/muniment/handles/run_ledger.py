"""The ledger as a run sees it: its own entries, and every event of its user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muniment.core.pointer import Pointer
    from muniment.core.scope import Scope
    from muniment.store.context import Context
    from muniment.store.ledger.evidence import Resolved
    from muniment.store.ledger.records import LedgerEntry

__all__ = ["RunLedger"]


class RunLedger:
    """The events of a run and of its user, as they were written: `run.ledger`."""

    def __init__(self, ctx: Context, scope: Scope) -> None:
        self._ctx = ctx
        self._scope = scope

    def entries(self) -> Iterator[LedgerEntry]:
        """This run's entries, in order."""
        from muniment.store import reading

        scope = self._scope
        return reading.list_entries(self._ctx, scope.tenant_id, scope.user_id, scope.session_id, scope.run_id)

    def get(self, event_id: str) -> LedgerEntry:
        """An event of this user, of any session."""
        from muniment.store import reading

        return reading.get_entry(self._ctx, self._scope.tenant_id, event_id, self._scope.user_id)

    def content(self, event_id: str, *, start: int = 0, length: int | None = None) -> str:
        """The full text of an event of this user, wherever it lies; `Forgotten` where it was erased.

        Of a long one a part: `length` characters from `start`. A packet says of a result that it does not show whole
        from which character to read on.
        """
        from muniment.store import reading

        scope = self._scope
        return reading.content_of(self._ctx, scope.tenant_id, event_id, scope.user_id, start=start, length=length)

    def resolve(self, pointer: Pointer | str) -> Resolved:
        """What a pointer (or an event id) points to within this user's evidence, its quote checked."""
        from muniment.store import reading

        return reading.resolve(self._ctx, self._scope.tenant_id, reading.pointer_of(pointer), self._scope.user_id)
