"""How much waits for the index. Reads rows of the backlog alone, of which there are few or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muniment.core.ports.rows import stream
from muniment.core.ports.schema import BACKLOG

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader

__all__ = ["count_waiting"]


def count_waiting(reader: Reader, user_id: str | None = None) -> int:
    """How many events wait for their index: of a tenant, or of one user."""
    where: tuple[Condition, ...] = () if user_id is None else (("user_id", "=", user_id),)
    return sum(row.last - row.first + 1 for row in stream(reader, BACKLOG, where))
