"""What further attempts recovered of the tasks they were open to: the same task before and after.

Whoever asks what more attempts bring must not compare tasks that had them with tasks that had none: those that had none
are those that passed at once. So a task is compared with itself. Without the attempts it would have stayed as it was
before them, and that is known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from muniment.core.stats import wilson_bounds
from muniment.rules.flowmap.cells import Change, named, rounded
from muniment.rules.flowmap.gains import Gain, cost_gap_of, error_of_mean, gain_fields
from muniment.rules.flowmap.rows import ALL_BUCKETS
from muniment.rules.flowmap.tally import COST_UNIT, Climb, ClimbKey, FlowTally

__all__ = ["recovered_gains", "unplanned_names"]


def recovered_gains(tally: FlowTally, bucket_key: str) -> list[dict[str, Any]]:
    """What each rung, and each number of attempts, recovered."""
    sums: defaultdict[Change, list[int]] = defaultdict(lambda: [0] * len(Climb._fields))
    for key in sorted(tally.climbs):
        if bucket_key in (ALL_BUCKETS, key.bucket):
            counted = sums[_change(key)]
            for at, count in enumerate(tally.climbs[key]):
                counted[at] += count
    return [_told(tally, change, Climb(*counts)) for change, counts in sums.items()]


def _told(tally: FlowTally, change: Change, climb: Climb) -> dict[str, Any]:
    policy, n = tally.policy, climb.n
    gain = Gain(
        gain=climb.recovered / n,
        bounds=wilson_bounds(climb.recovered, n, policy.confidence),
        base_pass=climb.passed / n,
        treated_n=n,
        base_n=n,
        strata_n=1,
        crude=None,
    )
    cost = cost_gap_of(climb.cost / n / COST_UNIT, error_of_mean(n, climb.cost, climb.cost_squares), policy.confidence)
    fields = gain_fields(change, gain, cost, policy, "within_task") | {"reached_n": climb.reached}
    if change == Change("k", "5+"):
        late = wilson_bounds(climb.recovered_late, n, policy.confidence)
        fields |= {"gain_late": rounded(climb.recovered_late / n), "late_upper": rounded(late.upper)}
    return fields


def unplanned_names(tally: FlowTally, bucket_key: str, told: set[str]) -> list[str]:
    """What was only tried after a failure, in logs that do not say what was planned: there is no estimate of it."""
    keys = (key for key in tally.unplanned if bucket_key in (ALL_BUCKETS, key.bucket))
    return sorted({named(_change(key)) for key in keys} - told - {"mode:main", "tier:hot"})


def _change(key: ClimbKey) -> Change:
    field = next(name for name in ("mode", "tier", "k") if getattr(key, name))
    return Change(field, getattr(key, field))
