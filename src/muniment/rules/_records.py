"""Records of rules, of what moves them, and of routes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from muniment.core.record import Absent, Count, Items, JsonObject, NonEmpty, Number, Record
from muniment.core.scope import IdText, Level, Outcome, RunMode, Verdict
from muniment.learning.records import Arm, CanaryPlan

# == routes and rates =================================================================================

RuleAction = Literal["submit", "canary", "promote", "retire", "rollback", "publish"]


class RuleUse(Record):
    """One judged run of a rule: a projection of the run's log, nothing of what was said."""

    trace_id: IdText
    rule_id: IdText
    version: str
    arm: Arm
    bucket_key: Absent[str] = None
    passed: bool
    confirmed: bool
    """Passed, and its outcome is OK."""
    violated: bool = False
    """Broke a constraint that was checked."""
    attempts: Count = 1
    cluster_id: Absent[str] = None
    judge: Absent[str] = None
    """The kind of judge that ran it; absent where nothing was run, or a verifier of the caller's spoke."""
    cost: Number = 0
    x_digest: Absent[str] = None
    """Of the task: runs of the same task are matched by it."""
    at: str


class LintFinding(Record):
    """Something wrong with a rule's text or shape. An error keeps it from the gate; a warning does not."""

    code: NonEmpty
    path: str
    message: str
    severity: Literal["error", "warning"] = "error"


class TestOutcome(Record):
    """What came of one test of a rule."""

    __test__ = False  # not a pytest class

    test_id: IdText
    test_type: Literal["regression", "counterexample"]
    kind: Absent[str] = None
    is_micro: bool = False
    status: Literal["passed", "failed", "error", "timeout", "not_graded"]
    ok: bool
    vacuous: bool = False
    """Passes whatever the output is, so it says nothing."""
    is_form: Absent[bool] = None
    """A small test that no answer which failed has ever broken: it asks for a form, and does not count."""
    by: Absent[Literal["verifier"]] = None
    """Who judged, where it was not the test's own assertion: the caller's verifier."""
    passes: Absent[Count] = None
    """Of a task that the verifier judged: answers with the rule that passed; it is asked until one does."""
    asked: Absent[Count] = None
    """Answers that it was asked for with the rule."""
    message: str = ""


class GateCheck(Record):
    """One thing the gate asks for."""

    name: NonEmpty
    ok: bool
    found: str
    needed: str


class GateReport(Record):  # RC-18
    """Whether a rule passed its tests."""

    report_id: IdText
    rule_id: IdText
    rule_digest: str
    """Of what the rule says and where it applies: a rule that is changed goes through the gate again."""
    passed: bool
    checks: Items[GateCheck]
    outcomes: Items[TestOutcome] = ()
    lint: Items[LintFinding] = ()
    policy_digest: str
    created_at: str


class ReplayReport(Record):
    """Earlier tasks run again, each with the rule and without it."""

    report_id: IdText
    rule_id: IdText
    rule_digest: str
    pairs: Count
    """Answers with the rule, and as many without; of a task that was asked more than once there are several."""
    with_passes: Count
    without_passes: Count
    effect: Absent[Number] = None
    decision: Literal["better", "not_harmful", "harmful", "undecided"]
    passed: bool
    """Not shown to be harmful, and enough was tried."""
    comparison: JsonObject = Field(default_factory=dict)
    trace_ids: Items[IdText] = ()
    """The runs whose tasks were taken."""
    continues: Absent[IdText] = None
    """The report that it goes on from: its figures hold that one's too."""
    notes: str = ""
    created_at: str


class PromotionReport(Record):
    """Why a rule was made active, taken back or kept waiting. A person signs it, or a policy allows it by name."""

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
    """The comparison goes on from the replay's: its first pairs are those of the report that is named."""
    judges: Absent[dict[str, Count]] = None
    """Runs of the comparison that passed, by the kind of judge; `own` is a verifier of the caller's."""
    reasons: Items[str]
    signed_by: Absent[NonEmpty] = None
    allowed_by: Absent[NonEmpty] = None
    """The policy that let it happen with no signature."""
    created_at: str


class AdvancedRule(Record):
    """How far a draft or a rule came, and what it lacks to go on."""

    rule_id: Absent[IdText] = None
    """Absent of a draft that was refused."""
    draft_id: Absent[IdText] = None
    """Of a draft that was submitted, or refused, just now."""
    title: str = ""
    before: str
    """Its stage: `draft` before it was submitted, then those of a rule."""
    after: str
    """Its stage now; `refused` of a draft that may not be submitted."""
    done: Items[str] = ()
    missing: Items[str] = ()
    """What it lacks, with numbers; empty where it is active, retired or only has to be signed for."""
    ready: Absent[str] = None
    """Where it only has to be signed for: with what."""
    calls: Count = 0
    """Of the agent."""


class AdvanceReport(Record):
    """What `advance` did with each draft and rule of a bank."""

    rules: Items[AdvancedRule] = ()
    calls: Count = 0
    """Of the agent, for all rules together."""
    calls_max: Count
    is_spent: bool = False
    """Something was left undone because the calls were spent: the next call of `advance` goes on from there."""

    @property
    def text(self) -> str:
        """The report in lines that a person reads."""
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
    """A rule's record, from one version to the next; 0 where there was none."""

    rule_id: IdText
    before: Count
    after: Count


class RulebookRevision(Record):
    """The rulebook of a bank, changed. The newest revision is the rulebook in force."""

    revision: Count
    action: RuleAction
    changes: Items[RulebookChange]
    names: Items[str] = ()
    """Digests of the families and domains whose rules changed."""
    report_id: Absent[IdText] = None
    restores: Absent[Count] = None
    """Of a rollback: the revision that is in force again."""
    signed_by: Absent[NonEmpty] = None
    reason: str = ""
    created_at: str


class RefusedRule(Record):
    """A rule that was not selected, and why."""

    rule_id: IdText
    version: str
    code: NonEmpty
    why: str


# == routes and rates =================================================================================

Tier = Literal["hot", "probe", "full"]
TIERS: tuple[Tier, ...] = ("hot", "probe", "full")
Pressure = Literal["none", "mild", "strong", "severe"]
"""mild: no synthesis. strong: and the fewest full attempts. severe: no full ones; probes where the impact is high."""
Zone = Literal["unknown", "deadzone", "hard", "frontier", "good", "easy"]
"""Where a bucket is: too few runs; more would be wasted; below, within, above the frontier; easy."""


class RouteReason(Record):
    """Why, as a stable code, in words, with the figures it rests on."""

    code: NonEmpty
    words: str
    figures: JsonObject = Field(default_factory=dict)


class RouteRequest(Record):
    """A task before money is spent on it; and a first attempt at it, where one was made."""

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
    can_synth: bool = True


class Rung(Record):
    """Up to `k` attempts of a tier, one after another until one passes."""

    tier: Tier
    mode: RunMode
    k: Count
    cost: Number
    """Of one attempt."""


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
    """Whether it is worth more than a plain attempt (`should_scale`)."""
    zone: Zone
    impact: Level
    pass_rate: Number
    """Of a first attempt in the bucket: (passes + 1) / (runs + 2)."""
    can_confirm: bool = True
    """Whether passes of the bucket have ever been confirmed by execution, as far as is known."""
    repairs_left: Count = 0
    cost_max: Number = 0
    """If every attempt fails."""
    recurs: bool = False
    runs_missing: Count = 0
    """Judged runs that the numbers still lack."""
    reasons: Items[RouteReason]


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
