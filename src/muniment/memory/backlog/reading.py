"""How much waits for the index, and of whom. Reads rows of the backlog alone, of which there are few or none.

A row from an entry on (`first` of 1 or more) waits for the index. A row below 0 waits for vectors: it is written with
the index of a stretch where there is an embedder, and goes when its user lacks no vector. It is named by the last entry
of its stretch, turned negative, so that none is ever written twice, and it has no entries to be counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muniment.core.ports.rows import stream, stream_texts
from muniment.core.ports.schema import BACKLOG, BacklogRow

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader

__all__ = ["FOR_INDEX", "FOR_VECTORS", "count_waiting", "for_vectors", "users_unembedded", "users_waiting"]

FOR_INDEX: Condition = ("first", ">", 0)
FOR_VECTORS: Condition = ("first", "<", 0)


def for_vectors(row: BacklogRow) -> BacklogRow:
    """What stands for the vectors of a stretch whose index is written."""
    return row._replace(first=-row.last, last=-row.last - 1)


def count_waiting(reader: Reader, user_id: str | None = None) -> int:
    """How many events wait for their index: of a tenant, or of one user."""
    where: tuple[Condition, ...] = (FOR_INDEX,) if user_id is None else (("user_id", "=", user_id), FOR_INDEX)
    return sum(row.last - row.first + 1 for row in stream(reader, BACKLOG, where))


def users_waiting(reader: Reader) -> list[str]:
    """Those of whom something waits."""
    return list(dict.fromkeys(stream_texts(reader, BACKLOG, "user_id", (FOR_INDEX,))))


def users_unembedded(reader: Reader) -> list[str]:
    """Those whose turns are in the index, and of whom some lack their vector."""
    return list(dict.fromkeys(stream_texts(reader, BACKLOG, "user_id", (FOR_VECTORS,))))
