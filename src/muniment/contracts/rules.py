"""Rules and how they are proposed, selected and tested; patterning plans; flow maps (Rulecraft v0.5.15)."""

from typing import Literal

from pydantic import Field

from muniment.core.record import Absent, Integer, Items, JsonObject, Number, OpenRecord, RulecraftRecord
from muniment.core.scope import InjectionMode, Level, RuleType

# -- rules ----------------------------------------------------------------------------------------------


# -- the rulebook -------------------------------------------------------------------------------------


class RuleApplicability(OpenRecord):
    """Where a rule applies."""

    domain_tag: Absent[str] = None
    task_family: Absent[str] = None
    predicates: Absent[Items[str]] = None
    bucket_keys: Absent[Items[str]] = None


class RulePriority(OpenRecord):
    """In what order rules are injected."""

    guardrail_first: bool
    rank: Absent[Integer] = None


class RuleEvidence(OpenRecord):
    """What a rule rests on."""

    trace_ids: Absent[Items[str]] = None
    verifier_ids: Absent[Items[str]] = None
    regression_ids: Absent[Items[str]] = None


class RuleTests(OpenRecord):
    """A rule's tests by id; empty lists where there are none, never absent."""

    regression_tests: Items[str]
    counterexample_tests: Items[str]


class PassEstimate(OpenRecord):
    """A pass rate with its lower bound and sample size."""

    p_hat: Absent[Number] = None
    p_lb95: Absent[Number] = None
    K: Absent[Integer] = None


class PassDelta(OpenRecord):
    """With the rule against without it."""

    delta_p_hat: Number | None = None
    delta_p_lb95: Number | None = None
    delta_K: Integer | None = None


class RuleMetrics(OpenRecord):  # RC-16
    """A rule's statistics, over all and by bucket."""

    utility_q_ema: Absent[Number] = None
    pass_p_hat: Number | None = None
    pass_p_lb95: Number | None = None
    pass_p_K: Integer | None = None
    pass_p_bucket: Absent[dict[str, PassEstimate]] = None
    pass_p_bucket_delta: Absent[dict[str, PassDelta]] = None


class RuleLifecycle(OpenRecord):
    """When a rule was made, changed, used."""

    created_at: Absent[str] = None
    updated_at: Absent[str] = None
    last_used_at: Absent[str] = None
    retire_candidate: Absent[bool] = None


class RuleRecord(RulecraftRecord):  # RC-14
    """One version of one rule."""

    rule_id: str
    version: str
    type: RuleType
    status: Literal["temporary", "active", "retired"]
    title: Absent[str] = None
    body: str
    applicability: RuleApplicability
    priority: Absent[RulePriority] = None
    evidence: RuleEvidence
    tests: RuleTests
    metrics: RuleMetrics
    lifecycle: Absent[RuleLifecycle] = None


# -- selection ----------------------------------------------------------------------------------------


class CandidateContext(OpenRecord):
    """What is known about the task."""

    impact_level: Absent[Level] = None
    domain_tag: Absent[str] = None
    user_clarity: Absent[Level] = None


class CandidateConstraints(OpenRecord):
    """How many rules of which types."""

    max_rules: Integer
    allow_types: Items[RuleType]
    prompt_profile: Absent[str] = None


class CandidateSelectRequest(RulecraftRecord):  # RC-15
    """Which rules shall be injected?"""

    request_id: str
    x_ref: str
    bucket_key: Absent[str] = None
    context: Absent[CandidateContext] = None
    constraints: Absent[CandidateConstraints] = None


class SelectedRule(OpenRecord):
    """One rule of the answer."""

    rule_id: Absent[str] = None
    version: Absent[str] = None
    type: Absent[RuleType] = None
    injection_mode: InjectionMode
    score: Absent[Number] = None
    reasons: Absent[Items[str]] = None


class Exploration(OpenRecord):
    """How much of the choice was exploration."""

    used_debias: Absent[bool] = None
    debias_weight: Number | None = None
    used_novelty: bool | None = None
    novelty_weight: Number | None = None
    diversity_score: Number | None = None


class CandidateSelectResponse(RulecraftRecord):
    """These rules, and why."""

    request_id: str
    selected_rules: Items[SelectedRule]
    exploration: Absent[Exploration] = None


# -- drafts and tests ---------------------------------------------------------------------------------


class ProposedRule(OpenRecord):
    """The part of a RuleRecord that a draft proposes."""

    type: Absent[RuleType] = None
    title: Absent[str] = None
    body: Absent[str] = None
    applicability: Absent[JsonObject] = None


class PredictedFailure(OpenRecord):
    """How the rule could go wrong."""

    id: Absent[str] = None
    description: Absent[str] = None
    triggers: Absent[Items[str]] = None
    severity: Absent[Level] = None


class FailurePrediction(OpenRecord):
    """Why the rule works, what it leans on, and where it would fail."""

    mechanism: Absent[str] = None
    dependencies: Absent[Items[str]] = None
    predicted_failures: Absent[Items[PredictedFailure]] = None


class DraftTests(OpenRecord):
    """A draft's tests by id; the promotion gate counts them, the shape does not."""

    regression_tests: Absent[Items[str]] = None
    counterexample_tests: Absent[Items[str]] = None


class DistillDraft(RulecraftRecord):  # RC-18
    """A proposed rule with its evidence and predicted failures."""

    draft_id: str
    source_trace_ids: Items[str]
    proposed_rule: ProposedRule
    evidence: JsonObject
    failure_prediction: Absent[FailurePrediction] = None
    micro_regression_packs: Absent[Items[str]] = None
    tests: DraftTests


class TestAssertion(OpenRecord):  # RC-19
    """What can be graded without a judge."""

    __test__ = False  # not a pytest class

    type: Absent[
        Literal[
            "json_schema",
            "regex_present",
            "regex_absent",
            "tool_called",
            "tool_not_called",
            "length_lte",
            "exact_match",
            "contains",
        ]
    ] = None
    args: Absent[JsonObject] = None


class TestExpectation(OpenRecord):
    """Whether the test must pass."""

    __test__ = False  # not a pytest class

    must_pass: bool
    notes: str | None = None


class RegressionTestSpec(RulecraftRecord):
    """One regression or counterexample test."""

    test_id: str
    test_type: Literal["regression", "counterexample"]
    severity: Absent[Literal["critical", "normal"]] = None
    x_ref: str
    prompt: str | None = None
    assertion: Absent[TestAssertion] = Field(default=None, alias="assert")
    kind: Literal["cluster", "boundary", "transform"] | None = None
    tags: Items[str] | None = None
    expected: Absent[TestExpectation] = None
    linked_rule_ids: Absent[Items[str]] = None


# -- patterning -----------------------------------------------------------------------------------------


class PatterningProbe(OpenRecord):
    """A lever: a slice, generator or template whose share of the data can change."""

    probe_id: str
    description: Absent[str] = None
    slice_query: str | None = None
    max_weight: Number | None = None


class PatterningObservable(OpenRecord):
    """A behaviour that is measured in place of what is inside."""

    obs_id: str
    kind: Absent[Literal["pass_rate", "unknown_rate", "reason_code_rate", "avg_cost", "custom"]] = None
    bucket_key: str | None = None
    reason_code: str | None = None
    target_value: Number | None = None
    target_delta: Number | None = None


class ChiEstimation(OpenRecord):
    """How the response χ was estimated."""

    method: Literal["finite_diff", "grad_proxy"]
    epsilon: Number | None = None
    regularizer: Number | None = None
    condition_number: Number | None = None
    notes: str | None = None


class PatterningSolution(OpenRecord):
    """The weights, one for each probe, after clipping and renormalising."""

    weights: Items[Number]
    clipped: bool
    renormalized: bool


class PatterningValidation(OpenRecord):
    """How the plan was tried before it was applied."""

    canary_suite_id: str | None = None
    replay_window: JsonObject | None = None
    rollback_on_regress: bool
    results: JsonObject | None = None


class PatterningPlan(RulecraftRecord):
    """An intervention on the data mix, offline only."""

    patterning_id: str
    generated_at: str
    base_dataset: str
    probes: Items[PatterningProbe]
    observables: Items[PatterningObservable]
    chi_estimation: ChiEstimation
    solution: PatterningSolution
    validation: PatterningValidation
    applied: bool
    notes: str | None = None


# -- flow maps ------------------------------------------------------------------------------------------


class FlowWindow(OpenRecord):
    """Over which time. The block may be missing, its ends not."""

    start_at: str
    end_at: str


class FlowEstimator(OpenRecord):
    """What estimated it; `kind` is an open string (`aggregate_v1`, `nn_field_v1`, …)."""

    kind: Absent[str] = None
    model_ref: str | None = None
    feature_set: str | None = None
    calibration: str | None = None


class StageHotspot(OpenRecord):
    """A stage and reason at which runs fail."""

    stage: Absent[str] = None
    reason_code: str | None = None
    risk_rate: Absent[Number] = None
    support_n: Absent[Integer] = None


class FlowRisk(OpenRecord):
    """Hotspots, worst first."""

    stage_hotspots: Absent[Items[StageHotspot]] = None


class Intervention(OpenRecord):
    """What an intervention gains, costs, and how many runs say so."""

    intervention: Absent[str] = None
    gain_pass: Absent[Number] = None
    delta_cost: Absent[Number] = None
    efficiency: Absent[Number] = None
    support_n: Absent[Integer] = None


class FlowOpportunity(OpenRecord):
    """Interventions worth a try."""

    interventions: Absent[Items[Intervention]] = None


class FlowMapSnapshot(RulecraftRecord):
    """The map of one bucket over one window."""

    generated_at: str
    window: Absent[FlowWindow] = None
    bucket_key: str
    estimator: Absent[FlowEstimator] = None
    risk: FlowRisk
    opportunity: FlowOpportunity
    notes: str | None = None
