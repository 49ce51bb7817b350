"""What is kept in memory between calls: indexes put together, turns read. Never the only copy of anything."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from muniment.recall.stored import StoredIndex

if TYPE_CHECKING:
    from muniment.runtime.turn_reading import LiveTurn

__all__ = ["IndexCache", "TurnCache"]

INDEXES_MAX = 64
TURNS_MAX = 4096


class IndexCache:
    """Indexes that were put together, by the state of the segments they stand for. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], tuple[tuple[bytes, ...], StoredIndex]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str], state: tuple[bytes, ...]) -> StoredIndex | None:
        with self._lock:
            found = self._held.get(key)
            if found is None or found[0] != state:
                return None
            self._held.move_to_end(key)
            return found[1]

    def put(self, key: tuple[str, str], state: tuple[bytes, ...], index: StoredIndex) -> None:
        with self._lock:
            self._held[key] = (state, index)
            self._held.move_to_end(key)
            while len(self._held) > INDEXES_MAX:
                self._held.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._held.clear()


class TurnCache:
    """Turns of sessions that are being composed for, by tenant and event. Thread-safe.

    An entry never changes until it is forgotten: who takes a turn from here has seen in the store that it was not.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], LiveTurn] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tenant_id: str, ids: Iterable[str]) -> dict[str, LiveTurn]:
        """Those of the events that are here."""
        found: dict[str, LiveTurn] = {}
        with self._lock:
            for id_ in ids:
                turn = self._held.get((tenant_id, id_))
                if turn is not None:
                    self._held.move_to_end((tenant_id, id_))
                    found[id_] = turn
        return found

    def put(self, tenant_id: str, turns: Iterable[LiveTurn]) -> None:
        with self._lock:
            for turn in turns:
                self._held[tenant_id, turn.entry.id] = turn
            while len(self._held) > TURNS_MAX:
                self._held.popitem(last=False)

    def clear(self) -> None:
        """After a forget: nothing that was read stays in memory."""
        with self._lock:
            self._held.clear()
