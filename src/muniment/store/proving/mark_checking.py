"""Whether the marks of a scope, which number evidence for packets, are ones that a build gave. Writes nothing."""

from __future__ import annotations

from muniment.core.ports.engine import Condition, Count, Reader
from muniment.core.ports.rows import get, stream
from muniment.core.ports.schema import MARKS, SESSIONS
from muniment.errors import StoreDamaged
from muniment.store.context import Context

__all__ = ["check_marks"]


def check_marks(ctx: Context, reader: Reader, where: tuple[Condition, ...]) -> None:
    """Every mark is one that a build gave, and stands in a session that is there, or was composed for before anything
    was said in it."""
    for mark in stream(reader, MARKS, where):
        is_there = get(reader, SESSIONS, (mark.user_id, mark.session_id)) is not None
        if mark.number < 1 or not (is_there or _is_composed_for(reader, mark.user_id, mark.session_id)):
            raise StoreDamaged(
                f"the mark of {mark.evidence_id!r:.80} is of no session", details={"id": mark.evidence_id}
            )
    for id_, reason in () if ctx.derived.marks is None else ctx.derived.marks(reader, where):
        raise StoreDamaged(f"a mark of {id_!r:.80} is not as it was written: {reason}", details={"id": id_})


def _is_composed_for(reader: Reader, user_id: str, session_id: str) -> bool:
    of_session: tuple[Condition, ...] = (("user_id", "=", user_id), ("session_id", "=", session_id))
    return reader.do(Count("items", (("kind", "=", "build"), *of_session))) > 0
