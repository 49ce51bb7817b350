"""What tests of upkeep share: stores with work that waits, and what is left when it is done, for comparing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from muniment.core.ports.engine import Delete, Select
from muniment.core.ports.server_rows import UPKEEP
from muniment.handles.memory import Memory
from muniment.handles.upkeep.running import Upkeep

__all__ = ["MADE", "SameSalts", "add_behind", "clock_ahead", "leases", "load", "made", "worker"]

MADE = ("segments", "extracts", "episodes", "backlog")
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


def add_behind(mem: Memory, users: int = 2, turns: int = 60) -> None:
    """Sessions as a store of before has them: without extracts, and not cut into episodes."""
    for user in range(users):
        run = mem.run(user_id=f"old{user}", session_id="s")
        run.observe_many([{"role": "user", "content": f"Turn {at}: we agreed on plan {at}."} for at in range(turns)])

    def take_out(tx: Any) -> None:
        for user in range(users):
            tx.do(Delete("extracts", (("user_id", "=", f"old{user}"),)))

    mem._ctx.engine.write("default", take_out)


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
