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
"""drafted, gated, replayed and canary are `temporary` in the RuleRecord. A rule acts in `canary` and `active` alone."""
RuleLayer = Literal["learned", "user"]
"""Rules that a person wrote stand in a layer of their own: added, never changed, with a TTL, never a system guard."""
Arm = Literal["active", "canary", "holdout", "baseline"]
"""What a run did with a rule that applied to it: had it as an active rule or as one on trial; or left it out, being of
the few that leave an active rule out so that its worth stays known, or of those that a trial is compared with."""


class RuleArm(Record):
    """A rule that applied to a run, and whether the run had it."""

    rule_id: IdText
    version: str
    type: RuleType
    arm: Arm


class CanaryPlan(Record):
    """Which runs try a rule: a share by the hash of their ids, or all of these buckets, or a share of them."""

    canary_id: IdText
    share: Number
    bucket_keys: Items[str] = ()
    started_at: str


# -- lessons -------------------------------------------------------------------------------------------

LessonStage = Literal["candidate", "trial", "active", "suspended", "retired"]
LessonOrigin = Literal["contrast", "model", "person"]
"""Who wrote it: runs that were compared, a model, a person."""
LessonArmName = Literal["had", "held_out"]


class LessonState(Record):
    """Where a lesson stands between its proposal and its end."""

    stage: LessonStage
    since: str
    why: str
    """In a few words, with the figures that moved it: `passed 9 of 12 with it, 3 of 11 without`."""
    changed_at: Absent[str] = None
    trial: Absent[Count] = None
    trial_at: Absent[str] = None
    trials: Absent[Count] = None
    proven: Absent[bool] = None
    """These five stand in records of version 0.2, and are not read."""


class LessonArm(Record):
    """What a recall did with a lesson that fitted its run."""

    memory_id: IdText
    arm: LessonArmName
    stage: LessonStage
    share: Absent[Number] = None
    """How likely it was to be handed to this run, by what came of it before; of one on trial, among the runs that got
    no other one on trial."""


class LessonUse(Record):
    """One judged run that a learned record fitted: whether it had it, and what came of it. No words."""

    memory_id: IdText
    trace_id: IdText
    arm: LessonArmName
    """Of what is no lesson, an episode or a seed, always `had`."""
    passed: bool
    cost: Number = 0
    at: str
    stage: Absent[LessonStage] = None
    """Where the lesson stood when the run recalled; absent of what is no lesson."""
    share: Absent[Number] = None
    """How likely it was to be handed to this run, where it was drawn; absent of what is no lesson."""
    trial: Absent[Count] = None
    """The number of the lesson's trial, where it has one."""
    task: Absent[str] = None
    """The stratum: a digest of the task, the same for runs of the same task in a tenant."""


# -- kept records and runs -----------------------------------------------------------------------------

Store = Literal["ReasoningBank", "Rulebook", "ReuseBuffer", "TraceCapsule"]
MemoryKind = Literal["reasoning", "rule", "seed", "tactic", "trace_capsule"]
STORES: dict[Store, tuple[MemoryKind, ...]] = {
    "ReasoningBank": ("reasoning",),
    "Rulebook": ("rule",),
    "ReuseBuffer": ("seed", "tactic"),
    "TraceCapsule": ("trace_capsule",),
}
"""Which kinds a store holds (RC-05)."""


class Tally(Record):
    """Outcomes counted: exact, and mergeable."""

    n: Count = 0
    passes: Count = 0
    cost_sum: Number = 0


class StoredMemory(Record):
    """A record of a bank with what the contract has no field for. `record` is the contract's, as plain data."""

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
    """What it was merged from."""
    merged_into: Absent[IdText] = None
    sources: Items[IdText] = ()
    """Trace ids it was learnt from."""
    with_tally: Tally = Tally.model_construct()
    """Judged runs that had it, of the newest of its family. What is kept is a start; the rest is counted on reading."""
    without_tally: Tally = Tally.model_construct()
    """Judged runs that it fitted and was held out of."""
    streak: Count = 0
    """Fails in a row of runs that had it."""
    last_used_at: Absent[str] = None
    reason_keys: Items[str] = ()
    """Why it is as it is: of its last change."""
    stage: Absent[RuleStage] = None
    """Of a rule, where it stands between draft and retirement; absent: drafted, or as its status says."""
    lesson: Absent[LessonState] = None
    """Of a tactic, where it stands as a lesson; absent in records of earlier versions, which were active."""
    layer: Absent[RuleLayer] = None
    canary: Absent[CanaryPlan] = None
    report_id: Absent[IdText] = None
    """Of an active rule: the report of the promotion that made it so. Of one on trial: that of the gate it passed."""


class IntentParts(Record):  # RC-07
    """What kind of work a run is: stable from run to run."""

    domain_tag: Absent[str] = None
    task_family: Absent[str] = None
    required_tools: Absent[Items[str]] = None
    output_format: Absent[str] = None
    constraint_profile: Absent[str] = None


class StateParts(Record):
    """Under which conditions a run runs."""

    mode: Absent[str] = None
    budget_tier: Absent[str] = None
    policy_profile: Absent[str] = None
    tool_availability: Absent[Items[str]] = None
    verifier_profile: Absent[str] = None
    sandbox_flags: Absent[Items[str]] = None


class Feature(Record):
    """Something true of a run, as one stable string: `tool:search`, `order:search>book`, `kept:FORMAT:JSON_ONLY`."""

    name: str
    before: bool = False
    """Known before the run acts: may stand in a predicate. The others are what a tactic advises or warns of."""


StepKind = Literal["call", "say", "answer", "ask"]
"""A tool called, with what came of it; words of the agent; what came back to the step before; words of the user."""


class StepFacts(Record):
    """One thing a run did, as the fold reads it."""

    evidence_id: IdText
    action: str
    """A tool's name, or what kind of turn it was."""
    kind: StepKind = "call"
    text: Absent[str] = None
    """A short verbatim part."""
    ok: Absent[bool] = None
    detail: Absent[str] = None
    """Arguments in one line, or what went wrong."""


class RunFacts(Record):
    """A finished run as the fold reads it: no text but short quotes, all of it from the ledger."""

    trace_id: IdText
    x_summary: str
    """The task in one line."""
    task: Absent[str] = None
    """Which task it was, by a digest of the whole request: runs that were asked the same have the same."""
    asked_form: Absent[str] = None
    """A digest that logs of version 0.2 hold; it is not read."""
    attempt: Absent[Count] = None
    """Of several attempts at one task, which one this was: what follows a failure is compared with its like."""
    said: Absent[str] = None
    """The telling words of its user, each once."""
    x_later: Absent[str] = None
    """Of what its user said after that, the message that adds most."""
    bucket_key: Absent[str] = None
    """As the caller named it: what is learnt may be bound to it."""
    bucket_derived: Absent[str] = None
    """Read off the run where nobody named one: for counting alone."""
    intent: IntentParts = IntentParts.model_construct()
    state: StateParts = StateParts.model_construct()
    verdict: Absent[Verdict] = None
    outcome: Absent[Outcome] = None
    judge: Absent[str] = None
    """The kind of judge that ran it; absent where nothing was run, or a verifier of the caller's spoke."""
    set_aside: Absent[Outcome] = None
    """What that judge said, where the policy does not let its kind teach."""
    passed: bool
    reason_codes: Items[str] = ()
    violated: Items[str] = ()
    kept: Items[str] = ()
    """Constraint keys that were checked and held."""
    cluster_id: Absent[str] = None
    """Which failure it is: the verifier's word, else read off the run."""
    cluster_sign: Absent[str] = None
    """That failure in a few words, where it was read off the run."""
    cost: Number = 0
    steps: Items[StepFacts] = ()
    features: Items[Feature] = ()
    """As `features_of` read them once: a run that has them needs no steps to be compared with others."""
    own_features: JsonObject = Field(default_factory=dict)
    """What the caller said of how it ran, by name: strings, numbers, booleans."""
    given_features: JsonObject = Field(default_factory=dict)
    """What the caller knew of the task before it began: a tactic's predicate may ask for these."""
    used_ids: Items[IdText] = ()
    """Recalled memory that was injected."""
    seed_id: Absent[IdText] = None
    """The seed it started from."""
    y_summary: Absent[str] = None
    at: str


# -- how a run was carried out -------------------------------------------------------------------------


class PlannedRung(Record):
    """Up to `k` attempts of one mode and tier, made as long as none before has passed."""

    mode: RunMode
    tier: Absent[NonEmpty] = None
    k: Annotated[Integer, Field(ge=1)]


class TriedAttempt(Record):
    """One attempt at a task: how it was made, what came of it, what it took."""

    mode: RunMode
    tier: Absent[NonEmpty] = None
    passed: Absent[bool] = None
    """Absent where a verifier was asked and could not tell."""
    cost: Annotated[Number, Field(ge=0)] = 0


class TaskBlock(Record):
    """The task that a run was an attempt at. What was planned and what was made stand with the first attempt."""

    task_id: NonEmpty
    """The trace of its first attempt."""
    number: Annotated[Integer, Field(ge=0)]
    """Which attempt this is, from 0."""
    rungs: Items[PlannedRung] = ()
    """What would be tried one after another if nothing passed: known before the first attempt was made."""
    attempts: Items[TriedAttempt] = ()
    """All that were made, in their order."""


class RunBlocks(Record):
    """Blocks that the entries of a run do not tell. One that the run did not use is absent."""

    mode: RunMode = "main"
    attempt: Absent[Annotated[Integer, Field(ge=1)]] = None
    """Of several attempts at one task: 1 and how many had failed before this one."""
    task: Absent[TaskBlock] = None
    """Where more than one attempt was planned or made."""
    flow_tags: Items[NonEmpty] = ()
    """Beside those that are read off the run itself."""
    rollout_summary: Absent[RolloutSummary] = None
    sot_signals: Absent[JsonObject] = None
    sot_profile: Absent[str] = None
    sot_max_turns: Absent[Integer] = None
    synth_inputs: Absent[SynthInputs] = None
    rollout_select: Absent[RolloutSelectBlock] = None
    experiment: Absent[ExperimentBlock] = None
    tree_search: Absent[TreeSearchBlock] = None
    policy_signals: Absent[PolicySignals] = None


# -- lessons as people see them ------------------------------------------------------------------------

KeptKind = Literal["tactic", "rule", "draft"]
_NOTHING = Tally.model_construct()


class LessonWhen(Record):
    """When a lesson holds: in words, and as the conditions that are tested."""

    words: str
    predicates: Items[str] = ()


class LessonEvidence(Record):
    """What a lesson rests on. Above a user it names no run and no event: those are the users' own."""

    trace_ids: Items[IdText] = ()
    event_ids: Items[IdText] = ()
    run_ids: Items[IdText] = ()


class LessonGuess(Record):
    """How runs with and without it ended among those it was learnt from. It makes a candidate, and no more."""

    had: Tally
    without: Tally


class LessonEffect(Record):
    """What came of runs that had the lesson and of runs that it fitted and was left out of: one stream, newest runs."""

    had: Tally = _NOTHING
    held_out: Tally = _NOTHING
    difference: Absent[Number] = None
    """Of the pass rates, with less without; absent while one side has no run."""
    low: Absent[Number] = None
    high: Absent[Number] = None
    """Where the difference lies, in 95 of 100 such cases."""
    strata: Count = 0
    """In how many groups both sides are compared: each task that was run with it and without, and all others as one."""
    guess: Absent[LessonGuess] = None


class LessonRun(Record):
    """A judged run that a lesson fitted: whether it had it, and how it ended."""

    trace_id: IdText
    """Above a user, of a run that was learnt into another bank, a name that leads nowhere."""
    run_id: Absent[IdText] = None
    """Absent above a user."""
    arm: LessonArmName
    passed: bool
    cost: Number = 0
    task: Absent[str] = None
    """What it is compared within: runs of one task have the same digest. Absent above a user."""
    at: str


class SourceRun(Record):
    """A run that a lesson was learnt from."""

    trace_id: IdText
    run_id: Absent[IdText] = None
    passed: Absent[bool] = None
    """Absent where nobody judged it."""


class LessonChange(Record):
    """A step in the life of a lesson."""

    at: str
    stage: LessonStage
    before: Absent[LessonStage] = None
    """Absent where it begins."""
    why: str
    version: Count
    plan_id: Absent[IdText] = None
    """The plan that did it, which `undo` takes back; absent where the rulebook did, or the plan is gone."""


class Lesson(Record):
    """What an agent is told because of earlier runs."""

    lesson_id: IdText
    """The id of the tactic, the rule or the draft that it is kept as."""
    kind: KeptKind
    """A tactic was written by a person or a model, a draft by a fold; a rule is a draft that was submitted."""
    text: str
    when: LessonWhen
    stage: LessonStage
    since: str
    why: str
    """Why it stands where it does."""
    signed: bool = False
    """A person has signed it: it stays active, and is measured all the same."""
    origin: LessonOrigin
    level: ScopeLevel
    created_at: str
    evidence: LessonEvidence
    effect: LessonEffect
    uses: Count = 0
    """Runs that had it, of those that are counted."""
    held_out: Count = 0
    """Runs that it fitted and was left out of, to measure it."""
    cost: Absent[Number] = None
    """What a run that had it costs on average; absent where none had it."""
    cost_without: Absent[Number] = None
    newest: Items[LessonRun] = ()
    """The runs that were counted last, newest first."""


class LessonStory(Lesson):
    """A lesson with its life: every change, the runs it came from and the runs it was for."""

    history: Items[LessonChange] = ()
    """Oldest first."""
    learnt_from: Items[SourceRun] = ()
    runs: Items[LessonRun] = ()
    """All that are counted, newest first."""


class RunLessons(Record):
    """What a run had to do with lessons, by their ids."""

    had: Items[IdText] = ()
    """Those that it was told."""
    held_out: Items[IdText] = ()
    """Those that fitted and were left out of it, to measure them."""
    made: Items[IdText] = ()
    """Those that were learnt first when it was learnt from."""


class LessonDecision(Record):
    """What came of a signature or of a drop."""

    lesson: Lesson
    """As it stands now."""
    plan_id: Absent[IdText] = None
    """The plan that did it: `undo` takes it back. Absent where all was so already, or it is kept as a rule alone."""
    report_id: Absent[IdText] = None
    """The report of the rulebook, where a rule was promoted or retired; `rollback` takes that back."""
