"""What a router is asked and what it answers (RC-26), and the observables it is judged by (RC-04)."""

from typing import Literal

from pydantic import Field

from muniment.core.record import Absent, Count, Items, JsonObject, NonEmpty, Number, Record
from muniment.core.scope import Level, Outcome, RunMode, Verdict

__all__ = [
    "TIERS",
    "ClusterCount",
    "Expected",
    "NextStep",
    "Observables",
    "Pressure",
    "Rate",
    "RateReport",
    "RouteDecision",
    "RouteReason",
    "RouteRequest",
    "Rung",
    "StepAction",
    "Tier",
    "WouldHaveBeen",
    "Zone",
]

Tier = Literal["hot", "probe", "full"]
TIERS: tuple[Tier, ...] = ("hot", "probe", "full")
Pressure = Literal["none", "mild", "strong", "severe"]
"""mild: no synthesis. strong: and the fewest full attempts. severe: no full ones; probes where the impact is high."""
Zone = Literal["unknown", "deadzone", "hard", "frontier", "good", "easy"]
"""Where a bucket stands: too few runs; nothing comes of trying more; below, within, above the frontier; easy."""
StepAction = Literal["hot", "probe", "full", "repair", "synth", "stop", "escalate"]


# -- the router ---------------------------------------------------------------------------------------


class RouteReason(Record):
    """Why, as a stable code, in words, with the figures it rests on."""

    code: NonEmpty
    words: str
    figures: JsonObject = Field(default_factory=dict)


class RouteRequest(Record):
    """What is known of a task before money is spent on it; and of a first attempt, where one was made."""

    bucket_key: Absent[str] = None
    impact: Level = "med"
    verdict: Absent[Verdict] = None
    """Of the attempt that was made; absent: none was."""
    outcome: Absent[Outcome] = None
    reason_codes: Items[str] = ()
    violated: Items[str] = ()
    repairs: Count = 0
    """Repairs that were tried already."""
    cluster_id: Absent[str] = None
    cluster_hits: Count = 0
    """How often the failure came up in the window."""
    utility_change: Number = 0
    """Of the rules' utility, lately; below 0 where it falls."""
    rules_changed: bool = False
    pressure: Pressure = "none"
    cost_max: Absent[Number] = None
    """What the task may still cost, in the unit its runs are logged in."""
    is_parallel: bool = False
    """Attempts of one tier start at once, so that none is saved by an early pass."""
    can_synth: bool = True


class Rung(Record):
    """Up to `k` attempts of a tier, one after another until one passes."""

    tier: Tier
    mode: RunMode
    k: Count
    pass_rate: Number
    """Of one attempt at a task that nothing has failed at yet."""
    cost: Number
    """Of one attempt."""


class Expected(Record):
    """What is expected of a choice, from the bucket's runs."""

    pass_rate: Number
    cost: Number
    cost_per_pass: Absent[Number] = None
    """Absent where no pass is expected."""
    cost_max: Number
    """If every attempt fails."""


class WouldHaveBeen(Record):
    """The cheaper choice that was not taken, and what it would have risked."""

    rungs: Items[Rung]
    expected: Expected
    pass_rate_lost: Number
    cost_saved: Number
    words: str


class RouteDecision(Record):
    """How a task is to be tried: where to begin, how far to go, and why."""

    action: Literal["run", "repair", "stop", "escalate"]
    tier: Absent[Tier] = None
    """Where it begins; absent where nothing is run."""
    mode: Absent[RunMode] = None
    k: Count = 0
    rungs: Items[Rung] = ()
    """From the first on: the next one is reached when none of the last one's attempts passed."""
    synth: bool = False
    scale: bool
    """Is it worth more than a plain attempt (`should_scale`)?"""
    zone: Zone
    impact: Level
    can_confirm: bool = True
    """Have the bucket's passes ever been confirmed by execution, as far as is known?"""
    repairs_left: Count = 0
    cost_max: Absent[Number] = None
    recurs: bool = False
    runs_missing: Count = 0
    """Judged runs that the numbers still lack."""
    expected: Expected
    cheaper: Absent[WouldHaveBeen] = None
    """Absent where nothing is cheaper."""
    reasons: Items[RouteReason]


class NextStep(Record):
    """What to do after the attempts so far."""

    action: StepAction
    mode: Absent[RunMode] = None
    reason: RouteReason


# -- observables --------------------------------------------------------------------------------------


class Rate(Record):
    """A share of runs with its Wilson interval; `unknown` where there are too few."""

    n: Count
    count: Count
    unknown: bool
    rate: Absent[Number] = None
    lower: Absent[Number] = None
    upper: Absent[Number] = None
    runs_missing: Count = 0


class ClusterCount(Record):
    """How often one failure came up."""

    cluster_id: str
    count: Count
    share: Number
    """Of all judged runs."""
    recurs: bool
    sign: Absent[str] = None
    """How the failure shows, where nobody named it and it was read off the runs."""


class Observables(Record):  # RC-04
    """How often outcomes stay unknown, formats break and failures recur, over a window and a bucket."""

    bucket_key: Absent[str] = None
    start: Absent[str] = None
    end: Absent[str] = None
    n: Count
    pass_rate: Rate
    confirmed_rate: Rate
    unknown_rate: Rate
    exec_unavailable_rate: Rate
    l1_violation_rate: Rate
    insufficient_evidence_rate: Rate
    overinject_rate: Rate
    unknown_by_execution: Rate
    """Of the runs whose outcome is UNKNOWN, those where nothing could be executed."""
    unknown_by_evidence: Rate
    """Of the runs whose outcome is UNKNOWN, those where what is said is not shown, though execution was not what
    failed.
    """
    cluster_recurrence: Items[ClusterCount] = ()
    clustered: Count = 0
    """Runs that belong to a cluster."""
    unjudged: Count = 0
    """Runs that nobody judged: they are counted nowhere else."""
    uncounted: Count = 0
    """Of the runs that belong to a cluster, those of clusters beyond the number that is counted."""


class RateReport(Record):
    """The observables of a window, what they ask for, and how each bucket fares."""

    observables: Observables
    advice: Items[RouteReason]
    buckets: Items[Observables] = ()
