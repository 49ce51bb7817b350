"""Whether a session ends where its row says, before anything is written behind it (TM-12)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES
from muniment.core.scope import Scope
from muniment.errors import StoreDamaged
from muniment.store.context import Context
from muniment.store.ledger.chain import Head

__all__ = ["KnownEnds", "check_end"]

ENDS_MAX = 4096


class KnownEnds:
    """Ends of sessions that this process wrote itself: one that the store still has is not looked at. Thread-safe."""

    def __init__(self) -> None:
        self._ends: OrderedDict[tuple[str, str, str], Head] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, scope: Scope, end: Head) -> None:
        key = (scope.tenant_id, scope.user_id, scope.session_id)
        with self._lock:
            self._ends[key] = end
            self._ends.move_to_end(key)
            while len(self._ends) > ENDS_MAX:
                self._ends.popitem(last=False)

    def has(self, scope: Scope, end: Head) -> bool:
        with self._lock:
            return self._ends.get((scope.tenant_id, scope.user_id, scope.session_id)) == end

    def clear(self) -> None:
        with self._lock:
            self._ends.clear()


class _End(NamedTuple):
    seq: int
    hash: bytes
    recorded_at: str


def check_end(ctx: Context, reader: Reader, scope: Scope, head: Head | None) -> None:
    """The session's last entry is its head; a session without a head has no entries. Raises `StoreDamaged`."""
    if head is not None and ctx.cache(KnownEnds).has(scope, head):
        return
    where: tuple[Condition, ...] = (
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
        ("seq", ">=", 0 if head is None else head.seq),
    )
    last = select(reader, ENTRIES, where, into=_End, order=("user_id", "session_id", "seq"), limit=2)
    if [Head(*row) for row in last] != ([] if head is None or head.seq == 0 else [head]):
        raise StoreDamaged(
            f"the session {scope.session_id!r:.80} does not end where its head says: nothing is written behind it",
            details={"session_id": scope.session_id, "seq": 0 if head is None else head.seq},
        )
