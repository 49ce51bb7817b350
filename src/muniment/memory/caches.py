"""What recall keeps in memory between calls of turns that were read. Never the only copy."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from muniment.core.limits import drop_tenant

if TYPE_CHECKING:
    from muniment.memory.turn_reading import LiveTurn

__all__ = ["PlaceCache", "TurnCache"]

T = TypeVar("T")

TURNS_MAX = 4096
GLEANED_MAX = 512
PLACES_MAX = 16_384


class PlaceCache:
    """Events whose place in their chain was looked at, by tenant: ids, and the oldest are let go. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()

    def unseen(self, tenant_id: str, ids: Iterable[str]) -> list[str]:
        """Those that were not looked at, each once."""
        with self._lock:
            return [id_ for id_ in dict.fromkeys(ids) if (tenant_id, id_) not in self._held]

    def add(self, tenant_id: str, ids: Iterable[str]) -> None:
        with self._lock:
            for id_ in ids:
                self._held[tenant_id, id_] = None
            while len(self._held) > PLACES_MAX:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)


class TurnCache:
    """Turns of sessions that are being composed for, by tenant and event. Thread-safe.

    An entry never changes until it is forgotten: who takes a turn from here has seen in the store that it was not.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], LiveTurn] = OrderedDict()
        self._gleaned: OrderedDict[tuple[str, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tenant_id: str, ids: Iterable[str]) -> dict[str, LiveTurn]:
        """The turns of these events that are kept here, by event id."""
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
                self._held[tenant_id, turn.id] = turn
            while len(self._held) > TURNS_MAX:
                self._held.popitem(last=False)

    def glean(self, what: str, tenant_id: str, ids: Iterable[str], read: Callable[[], T]) -> T:
        """What `read` gives for these turns and no others, in this order: read once, while they stay the same."""
        key = (what, tenant_id, *ids)
        with self._lock:
            if key in self._gleaned:
                self._gleaned.move_to_end(key)
                return cast("T", self._gleaned[key])
        found = read()
        with self._lock:
            self._gleaned[key] = found
            while len(self._gleaned) > GLEANED_MAX:
                self._gleaned.popitem(last=False)
        return found

    def clear(self, tenant_id: str | None = None) -> None:
        """After a forget: nothing that was read of the tenant stays in memory."""
        with self._lock:
            drop_tenant(self._held, tenant_id)
            for key in [key for key in self._gleaned if tenant_id in (None, key[1])]:
                del self._gleaned[key]
