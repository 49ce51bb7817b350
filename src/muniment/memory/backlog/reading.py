"""How much waits for the index, and of whom. Reads rows of the backlog alone, of which there are few or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muniment.core.ports.rows import stream, stream_texts
from muniment.core.ports.schema import BACKLOG

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader

__all__ = ["count_waiting", "users_waiting"]


def count_waiting(reader: Reader, user_id: str | None = None) -> int:
    """How many events wait for their index: of a tenant, or of one user."""
    where: tuple[Condition, ...] = () if user_id is None else (("user_id", "=", user_id),)
    return sum(row.last - row.first + 1 for row in stream(reader, BACKLOG, where))


def users_waiting(reader: Reader) -> list[str]:
    """Those of whom something waits."""
    return list(dict.fromkeys(stream_texts(reader, BACKLOG, "user_id")))
