"""Records of rules, their changes, and routes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from muniment.core.record import Absent, Count, Items, JsonObject, NonEmpty, Number, Record
from muniment.core.scope import IdText, Level, Outcome, RunMode, Verdict
from muniment.learning.records import Arm, CanaryPlan

# == routes and rates =================================================================================

RuleAction = Literal["submit", "canary", "promote", "retire", "rollback", "publish"]


class RuleUse(Record):
    """One judged run of a rule: a projection of the run's log, without any of its text."""

    trace_id: IdText
    rule_id: IdText
    version: str
    arm: Arm
    bucket_key: Absent[str] = None
    passed: bool
    confirmed: bool
    """It passed, and its outcome is OK."""
    violated: bool = False
    """It broke a checked constraint."""
    attempts: Count = 1
    cluster_id: Absent[str] = None
    judge: Absent[str] = None
    """The kind of judge; absent if nothing was run or the caller's verifier judged."""
    cost: Number = 0
    x_digest: Absent[str] = None
    """Digest of the task, by which runs of the same task are matched."""
    at: str


class LintFinding(Record):
    """Something wrong with a rule's text or shape. An error keeps it from the gate; a warning does not."""

    code: NonEmpty
    path: str
    message: str
    severity: Literal["error", "warning"] = "error"


class TestOutcome(Record):
    """The outcome of one test of a rule."""

    __test__ = False  # not a pytest class

    test_id: IdText
    test_type: Literal["regression", "counterexample"]
    kind: Absent[str] = None
    is_micro: bool = False
    status: Literal["passed", "failed", "error", "timeout", "not_graded"]
    ok: bool
    vacuous: bool = False
    """Passes on any output, so it shows nothing."""
    is_form: Absent[bool] = None
    """A small test that no failed answer has ever broken: it only checks form and does not count."""
    by: Absent[Literal["verifier"]] = None
    """The judge, if not the test's own assertion: the caller's verifier."""
    passes: Absent[Count] = None
    """For a task judged by the verifier: the number of passing answers with the rule. Asking stops at the
    first pass.
    """
    asked: Absent[Count] = None
    """The number of answers requested with the rule."""
    message: str = ""


class GateCheck(Record):
    """One requirement of the gate."""

    name: NonEmpty
    ok: bool
    found: str
    needed: str


class GateReport(Record):  # RC-18
    """The result of a rule's tests."""

    report_id: IdText
    rule_id: IdText
    rule_digest: str
    """Digest of the rule's wording and applicability: a changed rule goes through the gate again."""
    passed: bool
    checks: Items[GateCheck]
    outcomes: Items[TestOutcome] = ()
    lint: Items[LintFinding] = ()
    policy_digest: str
    created_at: str


class ReplayReport(Record):
    """A replay of earlier tasks, with and without the rule."""

    report_id: IdText
    rule_id: IdText
    rule_digest: str
    pairs: Count
    """Answers with the rule, each paired with one without; a task asked repeatedly contributes several."""
    with_passes: Count
    without_passes: Count
    effect: Absent[Number] = None
    decision: Literal["better", "not_harmful", "harmful", "undecided"]
    passed: bool
    """Not shown to be harmful, on enough tasks."""
    comparison: JsonObject = Field(default_factory=dict)
    trace_ids: Items[IdText] = ()
    """The runs whose tasks were used."""
    continues: Absent[IdText] = None
    """The report that this one continues; its figures are included."""
    notes: str = ""
    created_at: str


class PromotionReport(Record):
    """The evidence for making a rule active, rolling it back or keeping it waiting. Signed by a person, or allowed by a
    named policy.
    """

    report_id: IdText
    rule_id: IdText
    rule_digest: str
    action: Literal["promote", "retire", "rollback"]
    gate_report_id: Absent[IdText] = None
    replay_report_id: Absent[IdText] = None
    canary: Absent[CanaryPlan] = None
    comparison: JsonObject = Field(default_factory=dict)
    decision: Absent[Literal["better", "not_harmful", "harmful", "undecided"]] = None
    counts_replay: Absent[bool] = None
    """The comparison continues the replay's: its first pairs are those of the named report."""
    judges: Absent[dict[str, Count]] = None
    """Passing runs of the comparison, by kind of judge; `own` is the caller's verifier."""
    reasons: Items[str]
    signed_by: Absent[NonEmpty] = None
    allowed_by: Absent[NonEmpty] = None
    """The policy that allowed it without a signature."""
    created_at: str


class AdvancedRule(Record):
    """The progress of a draft or a rule, and what it still lacks."""

    rule_id: Absent[IdText] = None
    """Absent for a refused draft."""
    draft_id: Absent[IdText] = None
    """The id of a draft that was just submitted or refused."""
    title: str = ""
    before: str
    """The stage before: `draft` if not yet submitted, else a rule's stage."""
    after: str
    """The stage now; `refused` for a draft that may not be submitted."""
    done: Items[str] = ()
    missing: Items[str] = ()
    """Missing evidence, with numbers; empty if it is active, retired or only awaits a signature."""
    ready: Absent[str] = None
    """If it only awaits a signature: the evidence for it."""
    calls: Count = 0
    """Agent calls."""


class AdvanceReport(Record):
    """The result of `advance` for each draft and rule of a bank."""

    rules: Items[AdvancedRule] = ()
    calls: Count = 0
    """Agent calls for all rules together."""
    calls_max: Count
    is_spent: bool = False
    """Work remains because the call budget ran out: the next `advance` continues there."""

    @property
    def text(self) -> str:
        """The report as readable lines."""
        lines = []
        for one in self.rules:
            moved = one.after if one.before == one.after else f"{one.before} → {one.after}"
            lines.append(f"{one.rule_id or one.draft_id}  {moved}  {one.title}".rstrip())
            lines += [f"  done: {each}" for each in one.done]
            lines += [f"  {each}" for each in one.missing]
            lines += [] if one.ready is None else [f"  {one.ready}"]
        spent = "; the rest next time" if self.is_spent else ""
        return "\n".join([*lines, f"{self.calls} of at most {self.calls_max} calls of the agent{spent}"])


class RulebookChange(Record):
    """A change of a rule's record between versions; 0 if it did not exist."""

    rule_id: IdText
    before: Count
    after: Count


class RulebookRevision(Record):
    """A change of a bank's rulebook. The newest revision is in force."""

    revision: Count
    action: RuleAction
    changes: Items[RulebookChange]
    names: Items[str] = ()
    """Digests of the families and domains with changed rules."""
    report_id: Absent[IdText] = None
    restores: Absent[Count] = None
    """For a rollback: the revision put back in force."""
    signed_by: Absent[NonEmpty] = None
    reason: str = ""
    created_at: str


class RefusedRule(Record):
    """A rule that was not selected, with the reason."""

    rule_id: IdText
    version: str
    code: NonEmpty
    why: str


# == routes and rates =================================================================================

Tier = Literal["hot", "probe", "full"]
TIERS: tuple[Tier, ...] = ("hot", "probe", "full")
Pressure = Literal["none", "mild", "strong", "severe"]
"""mild: no synthesis. strong: also the fewest full attempts. severe: no full attempts; probes only for high impact."""
Zone = Literal["unknown", "deadzone", "hard", "frontier", "good", "easy"]
"""The zone of a bucket: unknown (too few runs), dead zone (more is wasted), below, within or above the
frontier, easy.
"""


class RouteReason(Record):
    """A reason as a stable code, in words, with its figures."""

    code: NonEmpty
    words: str
    figures: JsonObject = Field(default_factory=dict)


class RouteRequest(Record):
    """A task to be routed, with the first attempt at it if one was made."""

    bucket_key: Absent[str] = None
    impact: Level = "med"
    verdict: Absent[Verdict] = None
    """Verdict on the attempt; absent if none was made."""
    outcome: Absent[Outcome] = None
    reason_codes: Items[str] = ()
    violated: Items[str] = ()
    repairs: Count = 0
    """Repairs already tried."""
    cluster_id: Absent[str] = None
    cluster_hits: Count = 0
    """Occurrences of the failure in the window."""
    utility_change: Number = 0
    """Recent change of the rules' utility; negative if it falls."""
    rules_changed: bool = False
    pressure: Pressure = "none"
    cost_max: Absent[Number] = None
    """The remaining budget for the task, in the unit its runs are logged in."""
    can_synth: bool = True


class Rung(Record):
    """Up to `k` attempts of a tier, made one after another until one passes."""

    tier: Tier
    mode: RunMode
    k: Count
    cost: Number
    """Cost of one attempt."""


class RouteDecision(Record):
    """A plan for trying a task: the first tier, the further rungs, and the reasons."""

    action: Literal["run", "repair", "stop", "escalate"]
    tier: Absent[Tier] = None
    """The first tier; absent if nothing is run."""
    mode: Absent[RunMode] = None
    k: Count = 0
    rungs: Items[Rung] = ()
    """In order; a rung is reached when no attempt of the previous one passed."""
    synth: bool = False
    scale: bool
    """The task is worth more than a plain attempt (`should_scale`)."""
    zone: Zone
    impact: Level
    pass_rate: Number
    """Pass rate of a first attempt in the bucket: (passes + 1) / (runs + 2)."""
    can_confirm: bool = True
    """Passes of the bucket have been confirmed by execution before, as far as known."""
    repairs_left: Count = 0
    cost_max: Number = 0
    """Cost if every attempt fails."""
    recurs: bool = False
    runs_missing: Count = 0
    """Judged runs still needed for reliable numbers."""
    reasons: Items[RouteReason]


class Rate(Record):
    """A share of runs with its Wilson interval; `unknown` if there are too few."""

    n: Count
    count: Count
    unknown: bool
    rate: Absent[Number] = None
    lower: Absent[Number] = None
    upper: Absent[Number] = None
    runs_missing: Count = 0


class ClusterCount(Record):
    """Occurrences of one failure."""

    cluster_id: str
    count: Count
    share: Number
    """Share of all judged runs."""
    recurs: bool
    sign: Absent[str] = None
    """The visible sign of the failure, read off the runs if the cluster has no name."""


class Observables(Record):  # RC-04
    """Rates of unknown outcomes, broken formats and recurring failures, over a window and a bucket."""

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
    """Share of UNKNOWN runs in which nothing could be executed."""
    unknown_by_evidence: Rate
    """Share of UNKNOWN runs whose claims lack evidence, though execution did not fail."""
    cluster_recurrence: Items[ClusterCount] = ()
    clustered: Count = 0
    """Runs that belong to a cluster."""
    unjudged: Count = 0
    """Runs without a verdict; not counted anywhere else."""
    uncounted: Count = 0
    """Clustered runs whose cluster is beyond the number counted."""


class RateReport(Record):
    """The observables of a window, the resulting advice, and the figures of each bucket."""

    observables: Observables
    advice: Items[RouteReason]
    buckets: Items[Observables] = ()
