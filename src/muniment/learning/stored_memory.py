"""Learned memory as it is kept: a contract's record, and what stands around it."""

from typing import Literal

from pydantic import Field

from muniment.core.record import Absent, Count, Items, JsonObject, Number, Record
from muniment.core.scope import IdText, Outcome, ScopeLevel, Verdict
from muniment.learning.lesson_state import LessonState
from muniment.learning.rule_state import CanaryPlan, RuleLayer, RuleStage

__all__ = [
    "STORES",
    "Feature",
    "IntentParts",
    "MemoryKind",
    "RunFacts",
    "StateParts",
    "StepFacts",
    "StepKind",
    "Store",
    "StoredMemory",
    "Tally",
]

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
    """A digest of the words of the request without its numbers."""
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
