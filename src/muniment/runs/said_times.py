"""When the turns of a run were said: an imported run was recorded today, and said years ago."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader
    from muniment.store.ledger import RunState

__all__ = ["with_said_times"]

_LOOKED_MAX = 20
"""Entries that are looked at from either end of a run: before its first turn stands that it began, and little else."""
_TURNS = ("message", "tool_result")


class _Said(NamedTuple):
    kind: str
    ts: str


def with_said_times(reader: Reader, state: RunState) -> RunState:
    """The run with when its first turn was said and its last, as far as they stand near its ends."""
    first, last = _end(reader, state, descending=False), _end(reader, state, descending=True)
    if first is None or last is None:
        return state
    return state.model_copy(update={"first_said_at": min(first, last), "last_said_at": max(first, last)})


def _end(reader: Reader, state: RunState, *, descending: bool) -> str | None:
    scope = state.scope
    where: tuple[Condition, ...] = (
        ("run_id", "=", state.run_id),
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
    )
    rows = select(
        reader, ENTRIES, where, into=_Said, order=("user_id", "session_id", "seq"), descending=descending,
        limit=_LOOKED_MAX,
    )  # fmt: skip
    return next((row.ts for row in rows if row.kind in _TURNS), None)
