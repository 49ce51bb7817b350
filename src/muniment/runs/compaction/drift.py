"""Drift (CS-13): loops, stalls and forgotten constraints of runs, where between two snapshots they begin, and advice.

A run is seen from where the entries handed in begin. Each row of equal actions, and each row of steps that bring
nothing, is one incident, and it stands where it began. Only what began between two snapshots, or before the first of a
run, has a half: then both halves hold as many counted events, and without a cause late is as likely as early.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import comb
from typing import NamedTuple

from muniment.core.policy import CompactionPolicy
from muniment.runs.compaction.folding import RunFold
from muniment.runs.compaction.transitions import subject_of
from muniment.runs.drift import Advice, DriftReport
from muniment.runs.records import RunLog
from muniment.store.ledger import COUNTED_EVENTS, RUN_EVENTS, RUN_FINISHED, ContextManifest, LedgerEntry

__all__ = ["FORGOTTEN", "DriftMeter", "sign_test"]

FORGOTTEN = frozenset({"constraint_forgotten", "constraint_violation"})
"""Categories of failures that say so."""
_EVENTS_A_STEP = len(COUNTED_EVENTS)
_TELLING = {"state_patch": tuple(RUN_EVENTS), "system": (RUN_FINISHED,)}


class DriftMeter:
    """Sees entries of any number of runs, each run's in order."""

    def __init__(self, policy: CompactionPolicy) -> None:
        self._policy = policy
        self._runs: dict[str, _RunMeter] = {}

    def see(self, entry: LedgerEntry) -> None:
        run_id = entry.scope.run_id
        meter = self._runs.get(run_id)
        if meter is None:
            if not _tells_of_a_way(entry):
                return
            meter = self._runs[run_id] = _RunMeter(run_id, self._policy)
        meter.see(entry)

    def report(self) -> DriftReport:
        """All runs together."""
        meters = list(self._runs.values())
        logs = [meter.fold.log() for meter in meters]
        halves = Counter(half for meter in meters for half in meter.halves())
        told = _Counts(
            steps=sum(log.spent.steps for log in logs),
            actions=sum(meter.actions for meter in meters),
            snapshots=sum(meter.snapshots for meter in meters),
            loops=sum(log.loops for log in logs),
            stalls=sum(meter.stalls for meter in meters),
            forgotten=sum(meter.forgotten for meter in meters),
            early=halves["early"],
            late=halves["late"],
        )
        seen = sum(len(meter.met.union(log.coverage.chunk_ids_cited)) for meter, log in zip(meters, logs, strict=True))
        return _report(told, logs, seen, self._policy)


def _tells_of_a_way(entry: LedgerEntry) -> bool:
    """A run that only talks has none that it could leave."""
    return entry.kind == "step" or entry.metadata.get("event") in _TELLING.get(entry.kind, ())


class _EventPosition(NamedTuple):
    """Which stretch between snapshots, and at which counted event of it."""

    stretch: int
    event: int


class _RunMeter:
    def __init__(self, run_id: str, policy: CompactionPolicy) -> None:
        self.fold = RunFold(run_id, policy)
        self.actions = self.stalls = self.forgotten = 0
        self._policy = policy
        self._lengths: list[int] = []
        """Counted events of each stretch that a snapshot closed."""
        self._incidents: list[_EventPosition] = []
        self.met: set[str] = set()
        """What was selected into some window."""
        self._row_began = self._step_began = self._idle_began = _EventPosition(0, 1)
        self._idle_steps = 0
        self._has_progress = True

    @property
    def snapshots(self) -> int:
        return len(self._lengths)

    def halves(self) -> Iterator[str]:
        """In which half of its stretch each incident lies, of closed stretches. The middle event of an odd number is in
        neither.
        """
        for stretch, event in self._incidents:
            if stretch < len(self._lengths) and (length := self._lengths[stretch]):
                twice = 2 * min(event, length) - (length + 1)
                if twice:
                    yield "early" if twice < 0 else "late"

    def see(self, entry: LedgerEntry) -> None:
        fold = self.fold
        steps, loops, sequence = fold.steps, fold.loops, fold.sequence
        counted, cited = fold.counted_since, fold.chunks_cited
        fold.see(entry)
        if fold.sequence != sequence:
            self._lengths.append(counted - fold.counted_since)
        step = entry.step
        is_counted = step is not None and step.event in COUNTED_EVENTS
        here = _EventPosition(len(self._lengths), fold.counted_since + (not is_counted))
        if fold.steps > steps:
            self._end_step(here)
        if step is not None and step.event == "ACT_DONE":
            self._see_action(here, fold.loops > loops)
        if step is not None and step.manifest is not None:
            self._see_window(here, step.manifest)
        self._see_rest(entry, here, new_evidence=fold.chunks_cited > cited)

    def _see_action(self, here: _EventPosition, is_loop: bool) -> None:
        self.actions += 1
        if self.fold.repeats <= 1:
            self._row_began = here
        if is_loop:
            self._incidents.append(self._row_began)

    def _see_window(self, here: _EventPosition, manifest: ContextManifest) -> None:
        self._has_progress |= not self.met.issuperset(manifest.selected)
        self.met.update(manifest.selected)
        if _leaves_constraints_out(manifest):
            self._forget(here)

    def _see_rest(self, entry: LedgerEntry, here: _EventPosition, *, new_evidence: bool) -> None:
        subject = subject_of(entry)
        self._has_progress |= new_evidence or (subject is not None and subject[0] == "claim")
        if subject is not None and subject[0] == "failure" and entry.metadata.get("category") in FORGOTTEN:
            self._forget(here)
        if entry.kind == "system" and entry.metadata.get("event") == RUN_FINISHED:
            self._end_step(here)
            if entry.metadata.get("stop_reason") == "NO_EVIDENCE" and self._idle_steps < self._policy.stall_steps:
                self._stall(self._idle_began if self._idle_steps else here)

    def _end_step(self, here: _EventPosition) -> None:
        """The step that was going on is over; did it bring anything?"""
        if self._has_progress:
            self._idle_steps = 0
        else:
            self._idle_steps += 1
            if self._idle_steps == 1:
                self._idle_began = self._step_began
            if self._idle_steps == self._policy.stall_steps:
                self._stall(self._idle_began)
        self._step_began, self._has_progress = here, False

    def _stall(self, began: _EventPosition) -> None:
        self.stalls += 1
        self._incidents.append(began)

    def _forget(self, here: _EventPosition) -> None:
        self.forgotten += 1
        self._incidents.append(here)


def _leaves_constraints_out(manifest: ContextManifest) -> bool:
    """A purpose that has no use for constraints does not forget them."""
    return any(
        each.reason != "purpose"
        and (each.id in ("working_state", "constraints") or each.id.startswith("state:constraints"))
        for each in manifest.excluded
    )


# -- the report ---------------------------------------------------------------------------------------


class _Counts(NamedTuple):
    """What was counted over the runs that were looked at."""

    steps: int
    actions: int
    snapshots: int
    loops: int
    stalls: int
    forgotten: int
    early: int
    late: int


def sign_test(late: int, early: int) -> float:
    """How likely at least so many of both are late ones when late is as likely as early."""
    both = late + early
    ways, term = 0, comb(both, late)
    for more in range(late, both + 1):
        ways += term
        term = term * (both - more) // (more + 1)
    return ways / (1 << both)


def _report(told: _Counts, logs: list[RunLog], seen: int, policy: CompactionPolicy) -> DriftReport:
    statuses = [claim.status for log in logs for claim in log.claims]
    verified, candidates = statuses.count("verified"), statuses.count("candidate")
    cited = sum(len(log.coverage.chunk_ids_cited) for log in logs)
    tokens = sum(log.spent.tokens for log in logs)
    advice, reasons = _advise(told, policy)
    turn = {"lower": -1, "raise": 1}.get(advice, 0)
    return DriftReport(
        runs=len(logs),
        steps=told.steps,
        actions=told.actions,
        snapshots=told.snapshots,
        tokens=tokens,
        loops=told.loops,
        loop_rate=_share(told.loops, told.actions),
        stalls=told.stalls,
        stall_rate=_share(told.stalls, told.steps),
        constraints_forgotten=told.forgotten,
        forgotten_rate=_share(told.forgotten, told.steps),
        verified=verified,
        candidates=candidates,
        verified_share=_share(verified, verified + candidates),
        chunks_cited=cited,
        chunks_seen=seen,
        cited_share=_share(cited, seen),
        tokens_per_verified_claim=_share(tokens, verified),
        early=told.early,
        late=told.late,
        p_late=sign_test(told.late, told.early),
        advice=advice,
        reasons=tuple(reasons),
        event_threshold=_moved(policy.event_threshold, turn, _EVENTS_A_STEP),
        step_fallback=_moved(policy.step_fallback, turn, 1),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _moved(threshold: int, turn: int, unit: int) -> int:
    """A third less or more, in whole steps; never none."""
    by = max(unit, threshold // 3 // unit * unit)
    return max(min(threshold, unit), threshold + turn * by)


def _advise(told: _Counts, policy: CompactionPolicy) -> tuple[Advice, list[str]]:
    """Lower where incidents are too many and stand late; raise where there are none and that is no chance."""
    if told.steps < policy.drift_steps_min:
        return "not enough steps", [f"{told.steps} steps, {policy.drift_steps_min} are needed to say anything"]
    measured = (
        ("loops", told.loops, told.actions, "actions", policy.loop_rate_max),
        ("stalls", told.stalls, told.steps, "steps", policy.stall_rate_max),
        ("forgotten constraints", told.forgotten, told.steps, "steps", policy.forgotten_rate_max),
    )
    over = [
        f"{count} {noun} in {of} {unit} are over {limit:.0%}"
        for noun, count, of, unit, limit in measured
        if count > limit * of
    ]
    if over:
        return _advise_late(told, policy, over)
    if any(count for _, count, *_ in measured):
        return "keep", ["there are incidents, and no rate is over its limit"]
    return _advise_none(told, policy, measured)


def _advise_late(told: _Counts, policy: CompactionPolicy, over: list[str]) -> tuple[Advice, list[str]]:
    chance = sign_test(told.late, told.early)
    where = f"{told.late} began in the second half between two snapshots, {told.early} in the first (p = {chance:.3g})"
    if chance > policy.drift_p_max:
        return "keep", [*over, where, "they do not gather late, so an earlier snapshot would not keep them away"]
    if policy.event_threshold <= _EVENTS_A_STEP:
        return "keep", [*over, where, "the threshold is one step already"]
    return "lower", [*over, where]


def _advise_none(
    told: _Counts, policy: CompactionPolicy, measured: Iterable[tuple[str, int, int, str, float]]
) -> tuple[Advice, list[str]]:
    none = f"no incident in {told.steps} steps"
    if not told.snapshots:
        return "keep", [none, "no run was long enough for a snapshot"]
    for noun, _, of, unit, limit in measured:
        if (1 - limit) ** of > policy.drift_p_max:
            return "keep", [none, f"{of} {unit} are too few to say that {noun} stay below {limit:.0%}"]
    return "raise", [none, "fewer snapshots would cost less"]
