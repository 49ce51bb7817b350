"""Records of learned memory: a contract's record with the fields around it, runs as a fold reads them, lessons."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.contracts.runs import (
    ExperimentBlock,
    PolicySignals,
    RolloutSelectBlock,
    RolloutSummary,
    SynthInputs,
    TreeSearchBlock,
)
from muniment.core.record import Absent, Count, Integer, Items, JsonObject, NonEmpty, Number, Record
from muniment.core.scope import IdText, Outcome, RuleType, RunMode, ScopeLevel, Verdict

__all__ = [
    "Arm",
    "CanaryPlan",
    "Feature",
    "IntentParts",
    "KeptKind",
    "Lesson",
    "LessonArm",
    "LessonArmName",
    "LessonChange",
    "LessonDecision",
    "LessonEffect",
    "LessonEvidence",
    "LessonGuess",
    "LessonOrigin",
    "LessonRun",
    "LessonStage",
    "LessonState",
    "LessonStory",
    "LessonUse",
    "LessonWhen",
    "MemoryKind",
    "PlannedRung",
    "RuleArm",
    "RuleLayer",
    "RuleStage",
    "RunBlocks",
    "RunFacts",
    "RunLessons",
    "SourceRun",
    "StateParts",
    "StepFacts",
    "StepKind",
    "Store",
    "StoredMemory",
    "Tally",
    "TaskBlock",
    "TriedAttempt",
]

# -- rules ---------------------------------------------------------------------------------------------

RuleStage = Literal["drafted", "gated", "replayed", "canary", "active", "retired"]
"""drafted, gated, replayed and canary are `temporary` in the RuleRecord. A rule acts only in `canary` and `active`."""
RuleLayer = Literal["learned", "user"]
"""A person's rules have a layer of their own: they are added, never changed, have a TTL, and are never system
guards.
"""
Arm = Literal["active", "canary", "holdout", "baseline"]
"""The use of an applicable rule by a run: `active` or `canary`, it had the rule, in force or on trial; `holdout`, it
left out an active rule, to keep measuring its effect; `baseline`, it left out a rule on trial, for comparison.
"""


class RuleArm(Record):
    """A rule that applied to a run, and whether the run had it."""

    rule_id: IdText
    version: str
    type: RuleType
    arm: Arm


class CanaryPlan(Record):
    """The runs that try a rule: a share by the hash of their ids, or all of these buckets, or a share of them."""

    canary_id: IdText
    share: Number
    bucket_keys: Items[str] = ()
    started_at: str


# -- lessons -------------------------------------------------------------------------------------------

LessonStage = Literal["candidate", "trial", "active", "suspended", "retired"]
LessonOrigin = Literal["contrast", "model", "person"]
"""The origin of a lesson: compared runs, a model, a person."""
LessonArmName = Literal["had", "held_out"]


class LessonState(Record):
    """The state of a lesson between its proposal and its end."""

    stage: LessonStage
    since: str
    why: str
    """A few words with the figures behind the last change: `passed 9 of 12 with it, 3 of 11 without`."""
    changed_at: Absent[str] = None
    trial: Absent[Count] = None
    trial_at: Absent[str] = None
    trials: Absent[Count] = None
    proven: Absent[bool] = None
    """These five fields occur in records of version 0.2, and are not read."""


class LessonArm(Record):
    """The arm of a lesson in a recall that it fitted."""

    memory_id: IdText
    arm: LessonArmName
    stage: LessonStage
    share: Absent[Number] = None
    """The probability that this run got it, given earlier results; for one on trial, among the runs that got no other
    one on trial.
    """


class LessonUse(Record):
    """One judged run that a learned record fitted: whether it had it, and the outcome. No text."""

    memory_id: IdText
    trace_id: IdText
    arm: LessonArmName
    """Always `had` for records other than lessons, such as episodes and seeds."""
    passed: bool
    cost: Number = 0
    at: str
    stage: Absent[LessonStage] = None
    """The stage of the lesson at the time of the recall; absent for other records."""
    share: Absent[Number] = None
    """The probability that this run got it, if an arm was drawn; absent for other records."""
    trial: Absent[Count] = None
    """The number of the lesson's trial, if any."""
    task: Absent[str] = None
    """The stratum: a digest of the task, equal for runs of the same task in a tenant."""


# -- kept records and runs -----------------------------------------------------------------------------

Store = Literal["ReasoningBank", "Rulebook", "ReuseBuffer", "TraceCapsule"]
MemoryKind = Literal["reasoning", "rule", "seed", "tactic", "trace_capsule"]
STORES: dict[Store, tuple[MemoryKind, ...]] = {
    "ReasoningBank": ("reasoning",),
    "Rulebook": ("rule",),
    "ReuseBuffer": ("seed", "tactic"),
    "TraceCapsule": ("trace_capsule",),
}
"""The record kinds in each store (RC-05)."""


class Tally(Record):
    """Counted outcomes: exact, and mergeable."""

    n: Count = 0
    passes: Count = 0
    cost_sum: Number = 0


class StoredMemory(Record):
    """A record of a bank, with fields that the contract lacks. `record` is the contract's, as plain data."""

    id: IdText
    kind: MemoryKind
    level: ScopeLevel
    version: Count
    """0 before it is written."""
    record: JsonObject
    status: Literal["active", "pinned", "temporary", "retired", "pruned"]
    created_at: str
    protected_until: Absent[str] = None
    expires_at: Absent[str] = None
    parents: Items[IdText] = ()
    """The records it was merged from."""
    merged_into: Absent[IdText] = None
    sources: Items[IdText] = ()
    """Trace ids of its source runs."""
    with_tally: Tally = Tally.model_construct()
    """Judged runs that had it, among the newest of its family. The stored value is a start; the rest is counted on
    reading.
    """
    without_tally: Tally = Tally.model_construct()
    """Judged runs that it fitted and was held out of."""
    streak: Count = 0
    """Consecutive failures of runs that had it."""
    last_used_at: Absent[str] = None
    reason_keys: Items[str] = ()
    """The reasons for its last change."""
    stage: Absent[RuleStage] = None
    """For a rule, its stage between draft and retirement; absent: drafted, or as its status says."""
    lesson: Absent[LessonState] = None
    """For a tactic, its state as a lesson; absent in records of earlier versions, which were active."""
    layer: Absent[RuleLayer] = None
    canary: Absent[CanaryPlan] = None
    report_id: Absent[IdText] = None
    """For an active rule, the report of its promotion; for one on trial, the report of its gate."""


class IntentParts(Record):  # RC-07
    """The kind of work of a run: stable from run to run."""

    domain_tag: Absent[str] = None
    task_family: Absent[str] = None
    required_tools: Absent[Items[str]] = None
    output_format: Absent[str] = None
    constraint_profile: Absent[str] = None


class StateParts(Record):
    """The conditions of a run."""

    mode: Absent[str] = None
    budget_tier: Absent[str] = None
    policy_profile: Absent[str] = None
    tool_availability: Absent[Items[str]] = None
    verifier_profile: Absent[str] = None
    sandbox_flags: Absent[Items[str]] = None


class Feature(Record):
    """A property of a run, as one stable string: `tool:search`, `order:search>book`, `kept:FORMAT:JSON_ONLY`."""

    name: str
    before: bool = False
    """Known before the run acts, so it may be used in a predicate. Tactics advise or warn of the others."""


StepKind = Literal["call", "say", "answer", "ask"]
"""A tool call with its result; text of the agent; the answer to the preceding step; text of the user."""


class StepFacts(Record):
    """One step of a run, as input of a fold."""

    evidence_id: IdText
    action: str
    """A tool's name, or the kind of turn."""
    kind: StepKind = "call"
    text: Absent[str] = None
    """A short verbatim part."""
    ok: Absent[bool] = None
    detail: Absent[str] = None
    """Arguments in one line, or the error."""


class RunFacts(Record):
    """A finished run as input of a fold: derived from the ledger, without text except short quotes."""

    trace_id: IdText
    x_summary: str
    """The task in one line."""
    task: Absent[str] = None
    """A digest of the whole request: equal for runs with the same request."""
    asked_form: Absent[str] = None
    """A digest in logs of version 0.2; not read."""
    attempt: Absent[Count] = None
    """The number of this attempt, if the task had several: attempts after failures are compared with one another."""
    said: Absent[str] = None
    """The user's distinct content words."""
    x_later: Absent[str] = None
    """The later user message that adds most."""
    bucket_key: Absent[str] = None
    """As named by the caller: lessons may be bound to it."""
    bucket_derived: Absent[str] = None
    """Derived from the run if the caller named none; used for counting only."""
    intent: IntentParts = IntentParts.model_construct()
    state: StateParts = StateParts.model_construct()
    verdict: Absent[Verdict] = None
    outcome: Absent[Outcome] = None
    judge: Absent[str] = None
    """The kind of judge; absent if nothing was run, or the caller's verifier judged."""
    set_aside: Absent[Outcome] = None
    """The judge's verdict, if the policy does not let its kind teach."""
    passed: bool
    reason_codes: Items[str] = ()
    violated: Items[str] = ()
    kept: Items[str] = ()
    """Constraint keys that were checked and held."""
    cluster_id: Absent[str] = None
    """The failure cluster: from the verifier, else derived from the run."""
    cluster_sign: Absent[str] = None
    """The failure in a few words, if derived from the run."""
    cost: Number = 0
    steps: Items[StepFacts] = ()
    features: Items[Feature] = ()
    """As computed by `features_of`: with them, the run can be compared without its steps."""
    own_features: JsonObject = Field(default_factory=dict)
    """The caller's description of how it ran, by name: strings, numbers, booleans."""
    given_features: JsonObject = Field(default_factory=dict)
    """The caller's facts about the task, known in advance; a tactic's predicate may use them."""
    used_ids: Items[IdText] = ()
    """Recalled memory that was injected."""
    seed_id: Absent[IdText] = None
    """The seed it started from."""
    y_summary: Absent[str] = None
    at: str


# -- execution -----------------------------------------------------------------------------------------


class PlannedRung(Record):
    """Up to `k` attempts of one mode and tier, made until one passes."""

    mode: RunMode
    tier: Absent[NonEmpty] = None
    k: Annotated[Integer, Field(ge=1)]


class TriedAttempt(Record):
    """One attempt at a task: settings, result, cost."""

    mode: RunMode
    tier: Absent[NonEmpty] = None
    passed: Absent[bool] = None
    """Absent if a verifier could not decide."""
    cost: Annotated[Number, Field(ge=0)] = 0


class TaskBlock(Record):
    """The task behind an attempt. Plan and attempts are in the log of the first attempt."""

    task_id: NonEmpty
    """The trace of its first attempt."""
    number: Annotated[Integer, Field(ge=0)]
    """The number of this attempt, from 0."""
    rungs: Items[PlannedRung] = ()
    """The rungs tried in order if nothing passed, as planned before the first attempt."""
    attempts: Items[TriedAttempt] = ()
    """All attempts, in order."""


class RunBlocks(Record):
    """Blocks that are not in the run's entries. Unused ones are absent."""

    mode: RunMode = "main"
    attempt: Absent[Annotated[Integer, Field(ge=1)]] = None
    """If the task had several attempts: 1 plus the number that had failed before this one."""
    task: Absent[TaskBlock] = None
    """Set if more than one attempt was planned or made."""
    flow_tags: Items[NonEmpty] = ()
    """In addition to those derived from the run."""
    rollout_summary: Absent[RolloutSummary] = None
    sot_signals: Absent[JsonObject] = None
    sot_profile: Absent[str] = None
    sot_max_turns: Absent[Integer] = None
    synth_inputs: Absent[SynthInputs] = None
    rollout_select: Absent[RolloutSelectBlock] = None
    experiment: Absent[ExperimentBlock] = None
    tree_search: Absent[TreeSearchBlock] = None
    policy_signals: Absent[PolicySignals] = None


# -- displayed lessons ---------------------------------------------------------------------------------

KeptKind = Literal["tactic", "rule", "draft"]
_NOTHING = Tally.model_construct()


class LessonWhen(Record):
    """The condition of a lesson: in words, and as tested predicates."""

    words: str
    predicates: Items[str] = ()


class LessonEvidence(Record):
    """The evidence for a lesson. Above a user it names no run and no event, as those belong to users."""

    trace_ids: Items[IdText] = ()
    event_ids: Items[IdText] = ()
    run_ids: Items[IdText] = ()


class LessonGuess(Record):
    """Outcomes with and without it among its source runs. Enough for a candidate only."""

    had: Tally
    without: Tally


class LessonEffect(Record):
    """The measured effect of a lesson: newest runs that had it, and runs that it fitted and was held out of."""

    had: Tally = _NOTHING
    held_out: Tally = _NOTHING
    difference: Absent[Number] = None
    """Pass rate with it minus pass rate without it; absent while one side has no runs."""
    low: Absent[Number] = None
    high: Absent[Number] = None
    """With `low`, the 95% interval of the difference."""
    strata: Count = 0
    """Groups in which both sides are compared: each task with runs on both sides, and all others together."""
    guess: Absent[LessonGuess] = None


class LessonRun(Record):
    """A judged run that a lesson fitted: whether it had it, and its result."""

    trace_id: IdText
    """Above a user, an opaque name for runs learned into another bank."""
    run_id: Absent[IdText] = None
    """Absent above a user."""
    arm: LessonArmName
    passed: bool
    cost: Number = 0
    task: Absent[str] = None
    """Digest of the task, within which runs are compared. Absent above a user."""
    at: str


class SourceRun(Record):
    """A run that a lesson was learned from."""

    trace_id: IdText
    run_id: Absent[IdText] = None
    passed: Absent[bool] = None
    """Absent if not judged."""


class LessonChange(Record):
    """A change in the life of a lesson."""

    at: str
    stage: LessonStage
    before: Absent[LessonStage] = None
    """Absent for its start."""
    why: str
    version: Count
    plan_id: Absent[IdText] = None
    """The plan of the change, which `undo` can revert; absent if the rulebook made it, or the plan is gone."""


class Lesson(Record):
    """Advice to agents, based on earlier runs."""

    lesson_id: IdText
    """The id of the tactic, rule or draft that stores it."""
    kind: KeptKind
    """A tactic was written by a person or a model, a draft by a fold; a rule is a submitted draft."""
    text: str
    when: LessonWhen
    stage: LessonStage
    since: str
    why: str
    """The reason for its current stage."""
    signed: bool = False
    """Signed by a person: it stays active, but is still measured."""
    origin: LessonOrigin
    level: ScopeLevel
    created_at: str
    evidence: LessonEvidence
    effect: LessonEffect
    uses: Count = 0
    """Counted runs that had it."""
    held_out: Count = 0
    """Runs that it fitted and was held out of, to measure its effect."""
    cost: Absent[Number] = None
    """Mean cost of a run that had it; absent if none had."""
    cost_without: Absent[Number] = None
    newest: Items[LessonRun] = ()
    """The runs counted last, newest first."""


class LessonStory(Lesson):
    """A lesson with its history: every change, its source runs and the runs it was for."""

    history: Items[LessonChange] = ()
    """Oldest first."""
    learnt_from: Items[SourceRun] = ()
    runs: Items[LessonRun] = ()
    """All counted runs, newest first."""


class RunLessons(Record):
    """The lessons related to a run, by id."""

    had: Items[IdText] = ()
    """Lessons in its prompt."""
    held_out: Items[IdText] = ()
    """Lessons that fitted and were held out, to measure their effect."""
    made: Items[IdText] = ()
    """Lessons first written when it was learned from."""


class LessonDecision(Record):
    """The result of a signature or a drop."""

    lesson: Lesson
    """In its current state."""
    plan_id: Absent[IdText] = None
    """The plan of the change, which `undo` can revert. Absent if nothing changed, or it is stored only as a rule."""
    report_id: Absent[IdText] = None
    """The report of the rulebook, if a rule was promoted or retired; `rollback` reverts that."""
