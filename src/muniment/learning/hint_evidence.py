"""What a hint can be checked by: events of the runs that it tells of, so that every line of a prompt is cited.

A lesson that names events is cited by these. All else is cited by the runs it came from: of each the last thing a tool
answered, or what was said where no tool was called. Runs that passed and runs that failed take turns, since a lesson
rests on both. Only events of the one who asks are named, none that was forgotten, and none that is worded as orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES, ITEMS
from muniment.learning.lessons.wording import EVENTS_MAX
from muniment.store.ledger import INSTRUCTION_LIKE

if TYPE_CHECKING:
    from muniment.contracts.learning import MemoryHint
    from muniment.core.ports.engine import Condition, Reader
    from muniment.core.scope import Scope

__all__ = ["with_evidence"]

_LOOKED_AT = 4
"""So many of a run's newest answers are looked at for one that may be cited."""
_KINDS = ("tool_result", "step", "message")
"""What speaks for a run, the best first."""


class _Log(NamedTuple):
    id: str
    run_id: str | None
    status: str
    created_at: str
    receipt_id: str | None


class _Event(NamedTuple):
    id: str
    flags: str
    receipt_id: str | None


def with_evidence(reader: Reader, scope: Scope, hints: Sequence[MemoryHint]) -> list[MemoryHint]:
    """The hints, those that stand in the prompt with the events that they can be checked by."""
    bare = [hint for hint in hints if _injected(hint) and not (hint.model_extra or {}).get("evidence_ids")]
    logs = _logs(reader, [trace for hint in bare for trace in hint.trace_ids or ()])
    events: dict[str, str | None] = {}
    found = []
    for hint in hints:
        cited = list(_cited(reader, scope, hint, logs, events)) if hint in bare else []
        found.append(type(hint).from_wire(hint.to_wire() | {"evidence_ids": cited}) if cited else hint)
    return found


def _injected(hint: MemoryHint) -> bool:
    return (hint.model_extra or {}).get("injected") is True


def _logs(reader: Reader, traces: Sequence[str]) -> dict[str, _Log]:
    if not traces:
        return {}
    where: tuple[Condition, ...] = (("id", "in", tuple(dict.fromkeys(traces))), ("kind", "=", "event_log"))
    rows = select(reader, ITEMS, where, into=_Log, order=("id", "version"))
    return {row.id: row for row in rows if row.receipt_id is None}


def _cited(
    reader: Reader, scope: Scope, hint: MemoryHint, logs: dict[str, _Log], events: dict[str, str | None]
) -> Iterable[str]:
    """One event of each run, so many runs at the most."""
    known = [logs[trace] for trace in hint.trace_ids or () if trace in logs]
    sides = ([log for log in known if (log.status == "passed") is passed] for passed in (True, False))
    named = 0
    for log in (log for pair in zip_longest(*sides) for log in pair if log is not None and log.run_id is not None):
        run_id = str(log.run_id)
        if run_id not in events:
            events[run_id] = _event_of(reader, scope.user_id, run_id)
        if (event := events[run_id]) is not None:
            yield event
            named += 1
        if named == EVENTS_MAX:
            return


def _event_of(reader: Reader, user_id: str, run_id: str) -> str | None:
    for kind in _KINDS:
        where: tuple[Condition, ...] = (("run_id", "=", run_id), ("user_id", "=", user_id), ("kind", "=", kind))
        rows = select(reader, ENTRIES, where, into=_Event, order=("seq", "id"), descending=True, limit=_LOOKED_AT)
        for row in rows:
            if row.receipt_id is None and INSTRUCTION_LIKE not in row.flags.split(","):
                return row.id
    return None
