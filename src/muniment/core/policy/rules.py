"""The numbers of the rulebook and of promotion, as one frozen record. Units stand last in names."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.record import Integer, Items, NonEmpty, Number, Record

__all__ = [
    "AdvancePolicy",
    "CanaryPolicy",
    "GatePolicy",
    "LintPolicy",
    "PromotePolicy",
    "RulePolicy",
    "RuleStatsPolicy",
    "SelectPolicy",
]

Positive = Annotated[Integer, Field(ge=1)]
Whole = Annotated[Integer, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
OpenShare = Annotated[Number, Field(gt=0, lt=1)]
Weight = Annotated[Number, Field(ge=0)]


class SelectPolicy(Record):  # RC-15
    """How rules are chosen for a run."""

    max_rules: Positive = 8
    """Rules of one run."""
    tokens_max: Positive = 512
    """Of all rules in one prompt; they are counted apart from recalled memory."""
    domain_weight: Weight = 2
    """Of a rule's domain being that of the run."""
    family_weight: Weight = 2
    """Of its task family being that of the run."""
    bucket_weight: Weight = 1
    """Of its bucket being that of the run."""
    guardrail_weight: Weight = 1
    """Of being a guardrail."""
    statistics_weight: Weight = 1
    """Of the rule's published pass rate: the lower bound where the impact is high."""
    near_duplicate: Share = 0.95
    """Two rules whose words are so alike (cosine) are one."""
    debias: bool = False
    """Weigh by 1/(p + 0.05), clipped, so that rules that seldom pass are tried too. Coverage, never an objective."""
    debias_floor: OpenShare = 0.05
    """What is added to p there."""
    debias_max: Weight = 4
    """Where it is clipped."""
    novelty_weight: Weight = 0
    """Of rules that have hardly been used."""
    novelty_n: Positive = 10
    """Fewer runs than this are hardly any."""


class RuleStatsPolicy(Record):  # RC-16
    """When numbers are worth reading."""

    thin_n: Positive = 6
    """Fewer judged runs say nothing: `unknown`."""
    ema_rate: OpenShare = 0.1
    """How fast the moving average follows."""
    uses_max: Positive = 100_000
    """Judged runs of one rule that are read, newest first."""


class LintPolicy(Record):
    """What a rule's text may be."""

    body_tokens_max: Positive = 160
    """Of a rule's text."""
    title_chars_max: Positive = 200
    """Of its title."""
    predicates_max: Positive = 16
    """Conditions of one rule."""
    forbidden: Items[NonEmpty] = ()
    """Patterns (literal, any case) that no rule may hold, beside those that are always refused."""


class GatePolicy(Record):  # RC-18
    """What a rule must show before anybody tries it."""

    regressions_min: Positive = 1
    """Regression tests."""
    cluster_counterexamples_min: Positive = 1
    """Counterexamples from the failures it is for."""
    boundary_counterexamples_min: Positive = 1
    """Counterexamples from just beyond where it applies."""
    micro_min: Positive = 5
    """Micro-regressions: one constraint each."""
    predicted_failures_min: Positive = 2
    """Failures that its author predicts."""
    tries: Positive = 5
    """How often each test is asked of the agent; most of the answers must pass."""
    test_timeout_s: Annotated[Number, Field(gt=0)] = 60
    """Of one answer of the agent."""
    replay_pairs_min: Whole = 5
    """Earlier tasks tried with and without. 0: replay may be left out."""


class CanaryPolicy(Record):
    """How a rule is tried on real runs, and when the trial speaks."""

    share: OpenShare = 0.05
    """The share of runs that a trial begins with."""
    share_max: OpenShare = 0.5
    """The largest share that a trial may be given."""
    margin: OpenShare = 0.05
    """Harmful means an effect of this much or more."""
    alpha: OpenShare = 0.05
    """How often a trial may speak wrongly, however often it is looked at."""
    runs_max: Positive = 20_000
    """A trial that has said nothing after so many runs ends: the rule goes back to temporary, with a report."""
    needs: Literal["better", "not_harmful"] = "better"
    """What a trial must show. That a harm is excluded is shown sooner, and wrongly of one harmful rule in twenty."""
    counts_replay: bool = True
    """A trial goes on from what its replay showed: the same comparison, the same alpha, and the trial's own runs decide
    whether that holds. False: what was shown before the trial does not count."""
    runs_min: Positive = 8
    """Of a trial that goes on from a replay: runs with the rule, and runs without, before it may promote."""
    holdout_share: Annotated[Number, Field(ge=0, lt=1)] = 0.05
    """Of runs that leave an active strategy out, so that its worth stays known. Guardrails are never left out."""


class AdvancePolicy(Record):
    """How far `advance` goes in one call."""

    calls_max: Positive = 400
    """Calls of the agent in one call of it, for all rules together, unless the caller says."""
    tasks_max: Positive = 40
    """Earlier tasks that a rule is replayed on, each with it and without, unless the caller says."""
    replay_tries: Positive = 2
    """How often each of them is asked with the rule, and as often without. Agents draw lots: asked once, a task says
    little."""
    tasks_more: Positive = 5
    """While it is on trial: its replay goes on once so many tasks have come that it was not tried on."""
    gates_max: Positive = 3
    """How often a rule may go through the gate as it is. One that was refused so often waits for a person."""


class PromotePolicy(Record):
    """Who may make a rule active."""

    signature: Literal["required", "policy"] = "required"
    """`policy`: the numbers alone may, and the report names this policy."""
    retire_signature: Literal["required", "policy"] = "policy"
    """A rule that is shown to be harmful goes without waiting for anybody."""
    user_ttl: NonEmpty = "days:30"
    """Of rules that a person submits, unless they say."""
    user_rules_max: Positive = 100
    """Rules of one user."""


class RulePolicy(Record):
    """How rules are chosen, counted, tested, tried and taken back."""

    policy_id: NonEmpty = "default"
    schema_version: Literal["rule_policy.v1"] = "rule_policy.v1"
    select: SelectPolicy = SelectPolicy.model_construct()
    stats: RuleStatsPolicy = RuleStatsPolicy.model_construct()
    lint: LintPolicy = LintPolicy.model_construct()
    gate: GatePolicy = GatePolicy.model_construct()
    canary: CanaryPolicy = CanaryPolicy.model_construct()
    advance: AdvancePolicy = AdvancePolicy.model_construct()
    promote: PromotePolicy = PromotePolicy.model_construct()
