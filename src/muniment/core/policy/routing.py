"""The numbers of the router and of the observables, as one frozen record. Units stand last in names."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.record import Integer, NonEmpty, Number, Record

__all__ = ["ObservePolicy", "RoutePolicy", "TierBudget"]

Positive = Annotated[Integer, Field(ge=1)]
Whole = Annotated[Integer, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
OpenShare = Annotated[Number, Field(gt=0, lt=1)]


class TierBudget(Record):
    """What one attempt of a tier may take."""

    tokens_max: Positive
    """Tokens."""
    tool_calls_max: Positive
    """Calls of tools."""
    latency_ms_max: Positive
    """Milliseconds."""


class ObservePolicy(Record):  # RC-04
    """When an observable is worth acting on."""

    thin_n: Positive = 6
    """Fewer judged runs say nothing: `unknown`."""
    high_rate: OpenShare = 0.2
    """A rate is high when its lower bound is above this."""
    cause_share: OpenShare = 0.5
    """UNKNOWN is put down to a cause that so many of the unknown runs show."""
    clusters_top: Positive = 5
    """Clusters that a report names, the most frequent first."""
    clusters_max: Positive = 4_096
    """Clusters that are counted. Of more, those whose ids hash lowest: which they are depends on no order of runs."""


class RoutePolicy(Record):  # RC-20, RC-26
    """How much is spent on a task before it is tried, and after."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["route_policy.v1"] = "route_policy.v1"
    hot: TierBudget = TierBudget.model_construct(tokens_max=1_200, tool_calls_max=1, latency_ms_max=2_500)
    probe: TierBudget = TierBudget.model_construct(tokens_max=2_500, tool_calls_max=2, latency_ms_max=6_000)
    full: TierBudget = TierBudget.model_construct(tokens_max=6_000, tool_calls_max=6, latency_ms_max=15_000)
    k_probe: Positive = 3
    """Attempts of a probe."""
    k_full_min: Positive = 6
    """The fewest attempts of a full search."""
    k_full_max: Positive = 8
    """The most attempts of a full search."""
    frontier_low: Share = 0.3
    """The lowest pass rate of the frontier, where more attempts are worth most."""
    frontier_high: Share = 0.7
    """The highest pass rate of the frontier, where more attempts are worth most."""
    easy_rate: Share = 0.85
    """From here on nothing is scaled beforehand; read as p_lb95 where the impact is high."""
    deadzone_rate: Share = 0.05
    """A bucket is a dead zone only if p_lb95 of its tasks, tried as often as they were, is below this."""
    deadzone_k: Positive = 6
    """A bucket is a dead zone only after this many tasks, and this many attempts beyond the plain ones."""
    deadzone_upper: Share = 0.4
    """A bucket is a dead zone only if the upper bound of its pass rate is below this: 0 of 6 is one, 1 of 6 is chance.
    """
    thin_n: Positive = 6
    """Fewer judged runs say nothing: `unknown`."""
    floor_low: Share = 0.9
    """At low impact, the share that a choice must keep of the pass rate that the most generous one is expected to have.
    """
    floor_med: Share = 0.98
    """At medium impact, the share that a choice must keep of the pass rate that the most generous one is expected to
    have.
    """
    floor_high: Share = 0.995
    """At high impact, the share that a choice must keep of the pass rate that the most generous one is expected to
    have.
    """
    prior_rate: OpenShare = 0.5
    """The pass rate that a tier is taken to have before anybody has tried it."""
    prior_runs: Positive = 2
    """How many runs of a tier weigh as much as `prior_rate`."""
    explore_n: Whole = 20
    """A tier is not left out before so many attempts at it were judged: it is reached by those alone that need it."""
    likeness_runs: Annotated[Number, Field(gt=0)] = 16
    """How alike a bucket's tasks are, until its runs tell: after n failed attempts the next passes with p·s/(s + n)."""
    cluster_min: Positive = 3
    """A failure that came back so often in the window recurs."""
    utility_fall: OpenShare = 0.05
    """Utility that fell by more is falling."""
    repairs_max: Whole = 1
    """Attempts to repair an answer whose form is wrong."""
    window_days: Positive = 30
    """Days that a decision looks back."""
    runs_max: Positive = 5_000
    """Runs that a decision reads, newest first."""
    observe: ObservePolicy = ObservePolicy.model_construct()
