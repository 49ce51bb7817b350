"""A learned record with what came of it counted in: how everybody who reads one sees it. Pure; never kept.

A record that is kept holds no counts of its own. Those of records of earlier versions are a start that is added to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muniment.core.ports.engine import Reader
from muniment.core.record import JsonObject
from muniment.learning.lesson_state import LessonUse
from muniment.learning.lessons.effects import tally_of
from muniment.learning.lessons.uses import uses_by_id
from muniment.learning.stored_memory import StoredMemory, Tally

__all__ = ["counted", "with_counts"]


def with_counts(reader: Reader, owner: str, memories: Iterable[StoredMemory], newest: int) -> list[StoredMemory]:
    """Records of a bank as they are read: each with its newest uses counted in."""
    listed = list(memories)
    uses = uses_by_id(reader, owner, listed, newest)
    return [counted(memory, uses.get(memory.id, ())) for memory in listed]


def counted(memory: StoredMemory, uses: Sequence[LessonUse]) -> StoredMemory:
    """The record with these uses of it, oldest first, added to its tallies and figures."""
    if not uses:
        return memory
    had = [use for use in uses if use.arm == "had"]
    tally = _added(memory.with_tally, tally_of(uses, "had"))
    update: dict[str, Any] = {"without_tally": _added(memory.without_tally, tally_of(uses, "held_out"))}
    if had:
        last = max(had[-1].at, memory.last_used_at or "")
        update |= {
            "with_tally": tally,
            "streak": _streak(memory.streak, [use.passed for use in had]),
            "last_used_at": last,
            "record": _record(memory, tally, last),
        }
    return memory.model_copy(update=update)


def _added(tally: Tally, more: Tally) -> Tally:
    return Tally(n=tally.n + more.n, passes=tally.passes + more.passes, cost_sum=tally.cost_sum + more.cost_sum)


def _streak(before: int, outcomes: Sequence[bool]) -> int:
    """Fails in a row, to the last one."""
    for place, passed in enumerate(reversed(outcomes)):
        if passed:
            return place
    return before + len(outcomes)


def _record(memory: StoredMemory, tally: Tally, at: str) -> JsonObject:
    """The contract's own figures, in step with the tally."""
    rate, cost = tally.passes / tally.n, tally.cost_sum / tally.n
    figures: Mapping[str, Any] = {}
    if memory.kind == "tactic":
        known = memory.record.get("metrics")
        fared = {"pass_p_hat": rate, "avg_cost": cost, "use_n": tally.n, "fail_n": tally.n - tally.passes}
        efficiency = {"efficiency_est": tally.passes / tally.cost_sum} if tally.cost_sum > 0 else {}
        figures = {"metrics": {**(known if isinstance(known, dict) else {}), **fared, **efficiency}, "last_used_at": at}
    elif memory.kind == "reasoning":
        figures = {"pass_p_hat": rate, "avg_cost": cost, "last_used_at": at}
    elif memory.kind == "seed":
        figures = {"counters": {"N": tally.n, "last_used_at": at}}
    return {**memory.record, **figures}
