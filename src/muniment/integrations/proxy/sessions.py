"""Which session an answer was given in, for requests that name none: known while the process lives, one user's apart
from another's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

__all__ = ["KnownSessions"]

_COUNT_MAX = 65_536


class KnownSessions:
    """Sessions by the marks of the answers in them (`callers.list_marks`). Thread-safe."""

    def __init__(self, count_max: int = _COUNT_MAX) -> None:
        self._held: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self._count_max = count_max
        self._lock = threading.Lock()

    def find(self, tenant_id: str, user_id: str, marks: Sequence[str]) -> str | None:
        """The session of the first of these marks that is known."""
        with self._lock:
            return next(
                (self._held[key] for mark in marks if (key := (tenant_id, user_id, mark)) in self._held), None
            )

    def keep(self, tenant_id: str, user_id: str, marks: Iterable[str], session_id: str) -> None:
        with self._lock:
            for mark in marks:
                self._held[tenant_id, user_id, mark] = session_id
                self._held.move_to_end((tenant_id, user_id, mark))
            while len(self._held) > self._count_max:
                self._held.popitem(last=False)
