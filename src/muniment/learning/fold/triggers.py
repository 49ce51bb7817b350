"""When a run is folded (RC-10): at its end, and before that where its state grows too large, turns, or runs out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from muniment.contracts.learning import FoldTrigger, FoldTriggerKind
from muniment.core.policy import FoldPolicy

__all__ = ["Moment", "triggers_of"]


class Moment(NamedTuple):
    """What is known when somebody asks whether to fold."""

    has_ended: bool = False
    working_set_bytes: int = 0
    phase: str | None = None
    """The phase or mode that the run is in, such as `probe`."""
    phase_before: str | None = None
    """The phase or mode that the run was in before."""
    spent: float = 0
    budget: float | None = None
    """In the unit of `spent`; None where there is no limit."""
    cluster_id: str | None = None
    """Of the failure that was just seen."""
    recent_clusters: Sequence[str] = ()
    """Failures in the window, this one among them."""
    asked_by: str | None = None
    """Who asks for it by hand."""


def triggers_of(moment: Moment, policy: FoldPolicy) -> list[FoldTrigger]:
    """Every trigger that holds, the most pressing first."""
    found: list[tuple[FoldTriggerKind, str]] = []
    if moment.asked_by is not None:
        found.append(("manual", moment.asked_by))
    times = Counter(moment.recent_clusters)[moment.cluster_id] if moment.cluster_id is not None else 0
    if times >= policy.cluster_min:
        found.append(("fail_cluster", f"{moment.cluster_id} seen {times} times"))
    if moment.budget is not None and moment.spent >= moment.budget:
        found.append(("budget_hit", f"{moment.spent:g} of {moment.budget:g} spent"))
    if moment.working_set_bytes > policy.working_set_bytes_max:
        found.append(("ws_overflow", f"{moment.working_set_bytes} bytes, {policy.working_set_bytes_max} allowed"))
    if moment.phase is not None and moment.phase_before is not None and moment.phase != moment.phase_before:
        found.append(("phase_shift", f"{moment.phase_before} to {moment.phase}"))
    if moment.has_ended:
        found.append(("end_of_run", "the run has ended"))
    return [FoldTrigger(kind=kind, details=details) for kind, details in found]
