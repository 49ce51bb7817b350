"""What tests of upkeep share: stores with work that waits, and what is left when it is done, for comparing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from muniment.core.ports.engine import Select
from muniment.core.ports.schema import UPKEEP
from muniment.handles.memory import Memory
from muniment.handles.upkeep.running import Upkeep
from muniment.store.watermark import count_tail, users_behind

__all__ = ["MADE", "SameSalts", "clock_ahead", "leases", "load", "made", "tail", "users_waiting", "worker"]

MADE = ("segments", "episodes", "statements")
"""Tables that upkeep writes, whose bytes do not hang on who does it."""
BASE = datetime(2026, 5, 1, 12, tzinfo=UTC)


class SameSalts:
    """Ids in order, and one salt for all, so that two stores can be compared byte by byte."""

    def __init__(self, start: int = 0) -> None:
        self._count = start

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:06d}"

    def salts(self, count: int) -> list[bytes]:
        return [b"s" * 16] * count


def load(mem: Memory, users: int = 4, turns: int = 20, tenant_id: str = "default") -> None:
    """Events that wait for the index."""
    events = [
        {
            "user_id": f"u{number % users}",
            "session_id": "s",
            "id": f"evt_{number}",
            "role": "user",
            "content": f"Turn {number}: the ferry to Bergen leaves at {number % 24}, we decided.",
            "ts": "2026-03-01T10:00:00Z",
        }
        for number in range(users * turns)
    ]
    mem.store.load(events, index=False, tenant_id=tenant_id)


def users_waiting(mem: Memory, tenant_id: str = "default") -> set[str]:
    """The users whose index is not at the end of the ledger."""
    return {user.user_id for user in mem._ctx.engine.read(tenant_id, users_behind)}


def tail(mem: Memory, tenant_id: str = "default") -> int:
    """How many entries are not indexed."""
    return mem._ctx.engine.read(tenant_id, count_tail)


def made(mem: Memory, tenant_id: str = "default") -> dict[str, list[Any]]:
    """All rows that upkeep has made."""
    return {
        name: mem._ctx.engine.read(tenant_id, lambda reader, name=name: reader.do(Select(name)))  # type: ignore[misc]
        for name in MADE
    }


def leases(mem: Memory, tenant_id: str = "default") -> list[Any]:
    return [
        row
        for place in (tenant_id, UPKEEP)
        for row in mem._ctx.engine.read(place, lambda reader: reader.do(Select("leases")))
    ]


def clock_ahead(by: timedelta) -> Any:
    """A clock that is off by so much, and goes on."""
    return lambda: datetime.now(UTC) + by


@contextmanager
def worker(mem: Memory, *kinds: str, lease_s: float = 0.4, tenant_id: str | None = None) -> Iterator[Upkeep]:
    """A process' part in it. Its leases stand still: it is one that is held up whenever it takes long."""
    upkeep = Upkeep(mem._ctx, kinds, tenant_id=tenant_id, lease_s=lease_s)  # type: ignore[arg-type]
    upkeep._keeper.beat = lambda: None  # type: ignore[method-assign]
    yield upkeep
