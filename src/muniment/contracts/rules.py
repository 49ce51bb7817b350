"""Rules (001): the rulebook's record, how candidates are asked for and answered, drafts, regression tests.

Only `promotion` makes `status: active` (SSOT 4.6); the record itself does not know who wrote it.
"""

from typing import Literal

from pydantic import Field

from muniment.core.record import (
    Absent,
    Integer,
    Items,
    JsonObject,
    Number,
    OpenRecord,
    RulecraftRecord,
)
from muniment.core.vocabulary import InjectionMode, Level, RuleType

__all__ = [
    "CandidateConstraints",
    "CandidateContext",
    "CandidateSelectRequest",
    "CandidateSelectResponse",
    "DistillDraft",
    "DraftTests",
    "Exploration",
    "FailurePrediction",
    "PassDelta",
    "PassEstimate",
    "PredictedFailure",
    "ProposedRule",
    "RegressionTestSpec",
    "RuleApplicability",
    "RuleEvidence",
    "RuleLifecycle",
    "RuleMetrics",
    "RulePriority",
    "RuleRecord",
    "RuleTests",
    "SelectedRule",
    "TestAssertion",
    "TestExpectation",
]


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
