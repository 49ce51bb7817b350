"""When a snapshot is due (CS-10): counted events, or steps, since the last one. Verbose events make no difference."""

from __future__ import annotations

from muniment.core.policy import CompactionPolicy
from muniment.runs.records import RunLog

__all__ = ["due"]


def due(log: RunLog, policy: CompactionPolicy) -> str | None:
    """What makes a snapshot due, in words; None where nothing does."""
    counted, steps = len(log.counted_since), len(log.steps_since)
    if counted >= policy.event_threshold:
        return _many(counted, "counted event")
    return _many(steps, "step") if steps >= policy.step_fallback else None


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
