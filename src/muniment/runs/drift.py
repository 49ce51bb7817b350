"""Drift (CS-13): loops, stalls and forgotten constraints of runs, counted in the ledger over a window.

A run counts from its first entry within the window. A sequence of equal actions is one loop, a sequence of steps with
neither new evidence nor a changed claim is one stall, regardless of length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muniment.core.policy import CompactionPolicy
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ENTRIES
from muniment.core.record import Count, Number, Record
from muniment.core.scope import is_reserved
from muniment.errors import InvalidInput
from muniment.memory.patches import instant_of
from muniment.runs.fold import RunFold, subject_of
from muniment.runs.snapshots import run_item
from muniment.store.ledger import RUN_EVENTS, RUN_FINISHED, ContextManifest, LedgerEntry, entry_of_row

if TYPE_CHECKING:
    from muniment.store.context import Context

__all__ = ["FORGOTTEN", "DriftMeter", "DriftReport", "measure_drift"]

FORGOTTEN = frozenset({"constraint_forgotten", "constraint_violation"})
"""Categories of failures that count as a forgotten constraint."""
_MAKES_A_RUN = {"state_patch": tuple(RUN_EVENTS), "system": (RUN_FINISHED,)}


class DriftReport(Record):
    """Counts and rates of the runs in a window. A rate is None if its denominator is zero."""

    runs: Count
    """Runs with steps, claims or an end; runs that only talk are excluded."""
    steps: Count
    actions: Count
    snapshots: Count
    tokens: Count
    loops: Count
    """Sequences of equal actions."""
    loop_rate: Number | None
    """Loops per action."""
    stalls: Count
    """Sequences of steps with neither new evidence nor a changed claim, and runs that ended for lack of evidence."""
    stall_rate: Number | None
    """Stalls per step."""
    constraints_forgotten: Count
    """Failures of these categories, and windows that omitted constraints."""
    forgotten_rate: Number | None
    """Forgotten constraints per step."""
    verified: Count
    tokens_per_verified_claim: Number | None
    """The cost to weigh against the three rates when tuning the thresholds."""


def measure_drift(
    ctx: Context, tenant_id: str, user_id: str | None, run_id: str | None, since: Any, until: Any
) -> DriftReport:
    """Measure the drift of one run, of a user's runs or of the tenant's, by the entries recorded in the window."""
    start, end = instant_of(since, "$.since"), instant_of(until, "$.until")
    if start is not None and end is not None and end < start:
        raise InvalidInput("the window ends before it starts", path="$.until", hint="swap since and until")
    with ctx.engine.snapshot(tenant_id) as reader:
        where: tuple[Condition, ...] = ()
        if run_id is not None:
            item = run_item(reader, run_id, user_id)
            where = (("user_id", "=", item.user_id), ("session_id", "=", item.session_id), ("run_id", "=", run_id))
        elif user_id is not None:
            where = (("user_id", "=", user_id),)
        if start is not None:
            where = (*where, ("recorded_at", ">=", start))
        if end is not None:
            where = (*where, ("recorded_at", "<", end))
        meter = DriftMeter(ctx.policy.compaction)
        for row in stream(reader, ENTRIES, where, order=("user_id", "session_id", "seq")):
            if not is_reserved(row.user_id):  # writes to a corpus are not an agent's run
                meter.count(entry_of_row(tenant_id, row))
    return meter.report()


class DriftMeter:
    """Counts entries of any number of runs, each run's in order."""

    def __init__(self, policy: CompactionPolicy) -> None:
        self._policy = policy
        self._runs: dict[str, _RunMeter] = {}

    def count(self, entry: LedgerEntry) -> None:
        run_id = entry.scope.run_id
        meter = self._runs.get(run_id)
        if meter is None:
            if entry.kind != "step" and entry.metadata.get("event") not in _MAKES_A_RUN.get(entry.kind, ()):
                return
            meter = self._runs[run_id] = _RunMeter(run_id, self._policy)
        meter.count(entry)

    def report(self) -> DriftReport:
        """All runs together."""
        meters = list(self._runs.values())
        logs = [meter.fold.log() for meter in meters]
        steps, loops = sum(log.spent.steps for log in logs), sum(log.loops for log in logs)
        actions, stalls = sum(meter.actions for meter in meters), sum(meter.stalls for meter in meters)
        forgotten = sum(meter.forgotten for meter in meters)
        tokens = sum(log.spent.tokens for log in logs)
        verified = sum(claim.status == "verified" for log in logs for claim in log.claims)
        return DriftReport(
            runs=len(logs),
            steps=steps,
            actions=actions,
            snapshots=sum(meter.snapshots for meter in meters),
            tokens=tokens,
            loops=loops,
            loop_rate=_share(loops, actions),
            stalls=stalls,
            stall_rate=_share(stalls, steps),
            constraints_forgotten=forgotten,
            forgotten_rate=_share(forgotten, steps),
            verified=verified,
            tokens_per_verified_claim=_share(tokens, verified),
        )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


class _RunMeter:
    def __init__(self, run_id: str, policy: CompactionPolicy) -> None:
        self.fold = RunFold(run_id, policy)
        self.actions = self.stalls = self.forgotten = self.snapshots = 0
        self._policy = policy
        self._selected: set[str] = set()
        """Everything selected into some window."""
        self._idle_steps = 0
        self._has_progress = True

    def count(self, entry: LedgerEntry) -> None:
        fold = self.fold
        steps, sequence, cited = fold.steps, fold.sequence, fold.chunks_cited
        fold.apply(entry)
        self.snapshots += fold.sequence != sequence
        if fold.steps > steps:
            self._end_step()
        step, subject = entry.step, subject_of(entry)
        self.actions += step is not None and step.event == "ACT_DONE"
        if step is not None and step.manifest is not None:
            self._has_progress |= not self._selected.issuperset(step.manifest.selected)
            self._selected.update(step.manifest.selected)
            self.forgotten += _leaves_constraints_out(step.manifest)
        self._has_progress |= fold.chunks_cited > cited or (subject is not None and subject[0] == "claim")
        if subject is not None and subject[0] == "failure":
            self.forgotten += entry.metadata.get("category") in FORGOTTEN
        if entry.kind == "system" and entry.metadata.get("event") == RUN_FINISHED:
            self._end_step()
            is_counted = self._idle_steps >= self._policy.stall_steps
            self.stalls += entry.metadata.get("stop_reason") == "NO_EVIDENCE" and not is_counted

    def _end_step(self) -> None:
        """End the current step, and check whether it made progress."""
        self._idle_steps = 0 if self._has_progress else self._idle_steps + 1
        self.stalls += self._idle_steps == self._policy.stall_steps
        self._has_progress = False


def _leaves_constraints_out(manifest: ContextManifest) -> bool:
    """True if constraints were left out; a purpose that does not use them does not count."""
    return any(
        each.reason != "purpose"
        and (each.id in ("working_state", "constraints") or each.id.startswith("state:constraints"))
        for each in manifest.excluded
    )
