"""What is kept in memory between calls: indexes that were put together. Never the only copy of anything."""

from __future__ import annotations

import threading
from collections import OrderedDict

from muniment.recall.stored import StoredIndex

__all__ = ["IndexCache"]

INDEXES_MAX = 64


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
