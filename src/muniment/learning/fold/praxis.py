"""Whether a recalled memory helps (RC-13): exact tallies with and without it, and the moment it should go.

It is retired when its pass rate lies below that of runs without it, by the margin and beyond doubt. The bound is a
sequential one: it may be looked at after every run. A run of failures that runs without it would hardly have shows
the same earlier, and a conflict that a run reports ends it at once. It never becomes a rule.
"""

from __future__ import annotations

from typing import Any

from muniment.core.policy.learning import PraxisPolicy
from muniment.core.record import JsonObject
from muniment.core.stats import counts
from muniment.core.stats.bounds import wilson_bounds
from muniment.core.stats.sequential import confidence_sequence
from muniment.learning.fold.distill import learnt_of
from muniment.learning.stored_memory import RunFacts, StoredMemory, Tally

__all__ = ["CONFLICT_CODES", "praxis_update"]

CONFLICT_CODES = frozenset(("praxis_tactic_conflict", "memory_conflict"))
_CAUTION = 0.5
_BASELINE_MIN = 3
"""Runs without it, below which nothing is known of what it is measured against."""


def praxis_update(
    memory: StoredMemory, run: RunFacts, used: bool, policy: PraxisPolicy
) -> tuple[StoredMemory, str | None]:
    """The memory with the run counted, and why it should be retired, if it should.

    A run that no verifier judged counts for nothing; one that reports a conflict speaks against all it used.
    """
    if run.verdict is None:
        return memory, None
    if not used:
        return memory.model_copy(update={"without_tally": _counted(memory.without_tally, run)}), None
    tally = _counted(memory.with_tally, run)
    counted = memory.model_copy(
        update={
            "with_tally": tally,
            "streak": 0 if run.passed else memory.streak + 1,
            "last_used_at": run.at,
            "record": _record(memory, tally, run.at),
        }
    )
    return counted, _reason(counted, run, policy)


def _counted(tally: Tally, run: RunFacts) -> Tally:
    return Tally(n=tally.n + 1, passes=tally.passes + run.passed, cost_sum=tally.cost_sum + run.cost)


def _reason(memory: StoredMemory, run: RunFacts, policy: PraxisPolicy) -> str | None:
    if memory.status == "retired":
        return None
    if not CONFLICT_CODES.isdisjoint(run.reason_codes):
        return "conflict"
    usual = _usual_rate(memory)
    if run.passed or usual is None:
        return None
    mine = counts.Tally(memory.with_tally.passes, memory.with_tally.n)
    if confidence_sequence(mine, policy.alpha).upper < usual - policy.margin:
        return "pass_rate_below"
    is_lower = mine.passes <= (usual - policy.margin) * mine.n
    is_odd = memory.streak >= policy.fails_in_a_row_max and (1 - usual) ** memory.streak <= policy.alpha
    return "fails_in_a_row" if is_lower and is_odd else None


def _usual_rate(memory: StoredMemory) -> float | None:
    """How often runs without it pass, read with some caution while they are few; None where hardly any is known.

    Runs it was learnt from count as well: where all runs use it, there is nothing else to measure it by.
    """
    learnt = learnt_of(memory).get("without" if learnt_of(memory).get("advice") != "avoid" else "with")
    before = Tally.from_wire(learnt) if isinstance(learnt, dict) else Tally()
    n, passes = before.n + memory.without_tally.n, before.passes + memory.without_tally.passes
    return wilson_bounds(passes, n, _CAUTION).lower if n >= _BASELINE_MIN else None


def _record(memory: StoredMemory, tally: Tally, at: str) -> JsonObject:
    """The contract's own figures, in step with the tally."""
    rate, cost = tally.passes / tally.n, tally.cost_sum / tally.n
    figures: dict[str, Any] = {}
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
