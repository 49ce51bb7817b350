"""MemoryPacket v1 (000): the cited context handed to a planner, a tool or a responder.

Structure only, exactly as the document's JSON Schema closes and opens each object. The rules that need more than one
field at a time (MP-07, MP-09, MP-12, MP-13) are in `contracts.semantics`. Defaults of the document are never filled in:
missing fields are absent (X-03).
"""

from typing import Annotated, Literal

from muniment.core.record import (
    Absent,
    Confidence,
    Count,
    Integer,
    Items,
    JsonObject,
    JsonValue,
    NonEmpty,
    Numeric,
    OpenRecord,
    Record,
    Timestamp,
)

Purpose = Literal["planner", "tool", "responder"]
PacketRole = Literal["user", "assistant", "tool"]
FactStatus = Literal["active", "disputed", "deprecated"]
ValidationState = Literal["unvalidated", "testing", "validated", "rejected"]
MaxTokens = Annotated[int, Numeric(integral=True, minimum=256)]


# -- meta ---------------------------------------------------------------------------------------------


class PacketScope(Record):
    """Whose packet this is; tenant_id may be left out."""

    tenant_id: Absent[str] = None
    user_id: NonEmpty
    agent_id: NonEmpty
    session_id: NonEmpty
    run_id: NonEmpty


class TimeRange(Record):
    """A cue's time range; either end may be open."""

    start: Absent[Timestamp] = None
    end: Absent[Timestamp] = None


class Cues(OpenRecord):
    """Explicit cues of the request."""

    tags: Absent[Items[str]] = None
    entities: Absent[Items[str]] = None
    keywords: Absent[Items[str]] = None
    time_range: Absent[TimeRange] = None


class SectionBudgets(Record):
    """Token budgets, one for each section."""

    working_state: Count
    facts: Count
    procedures: Count
    short_term_summary: Count
    episodes: Count
    insights: Count


class PacketBudget(Record):
    """The whole budget and its parts, in tokens."""

    max_tokens: MaxTokens
    per_section: SectionBudgets


class PacketMeta(Record):  # MP-02
    """What the packet is for, for whom, and within which budget."""

    schema_version: Literal["v1"]
    scope: PacketScope
    generated_at: Timestamp
    purpose: Purpose
    task_type: Absent[str] = None
    cues: Absent[Cues] = None
    budget: PacketBudget
    policy_id: Absent[str] = None


# -- short term ---------------------------------------------------------------------------------------


class PlanStep(Record):
    """One step of the plan."""

    step: str
    status: Literal["todo", "in_progress", "done"]


class ToolEvidence(Record):  # MP-05
    """A tool result by reference, with a summary; never its payload."""

    ref: str
    summary: str


class Decision(OpenRecord):
    """A decision taken, with the event it goes back to."""

    statement: str
    evidence_id: Absent[str] = None


class Risk(OpenRecord):
    """A risk and what would soften it."""

    risk: str
    mitigation: Absent[str] = None


class WorkingState(OpenRecord):  # MP-04
    """Goal, plan and slots of the run; `state_version` is its optimistic lock."""

    goal: Absent[str] = None
    plan: Absent[Items[PlanStep]] = None
    slots: Absent[JsonObject] = None
    constraints: Absent[JsonObject] = None
    tool_evidence: Absent[Items[ToolEvidence]] = None
    decisions: Absent[Items[Decision]] = None
    risks: Absent[Items[Risk]] = None
    state_version: Count


class KeyQuote(Record):
    """Words taken from an event, verbatim."""

    evidence_id: str
    quote: str
    role: Absent[PacketRole] = None
    ts: Absent[Timestamp] = None


class ConversationTurn(Record):
    """A recent message."""

    evidence_id: str
    role: PacketRole
    content: str
    ts: Absent[Timestamp] = None


class OpenLoop(Record):
    """A question that is still to be answered."""

    question: str
    owner: Absent[Literal["user", "agent", "system"]] = None
    status: Literal["open", "closed"]
    evidence_id: Absent[str] = None


class ShortTerm(Record):  # MP-05
    """Working state and the run of the conversation."""

    working_state: WorkingState
    rolling_summary: str
    key_quotes: Absent[Items[KeyQuote]] = None
    conversation_window: Absent[Items[ConversationTurn]] = None
    open_loops: Absent[Items[OpenLoop]] = None
    last_tool_evidence: Absent[Items[ToolEvidence]] = None


# -- long term ----------------------------------------------------------------------------------------


class Validity(Record):
    """When a fact holds; `valid_to: null` is without end."""

    valid_from: Absent[Timestamp] = None
    valid_to: Timestamp | None = None


class Fact(Record):  # MP-06
    """A keyed, versioned, time-valid statement with its sources. Not a `Claim`."""

    fact_id: str
    fact_key: NonEmpty
    value: JsonValue
    status: FactStatus
    validity: Absent[Validity] = None
    confidence: Absent[Confidence] = None
    sources: Items[str]
    scope_level: Absent[Literal["user", "agent", "tenant"]] = None
    notes: Absent[str] = None


class Procedure(Record):  # MP-10
    """How to go about a task type."""

    procedure_id: str
    task_type: NonEmpty
    content: JsonObject
    priority: Absent[Integer] = None
    sources: Absent[Items[str]] = None
    applicability: Absent[JsonObject] = None


class TimeSpan(Record):
    """When an episode took place; without an end it is a moment."""

    start: Timestamp
    end: Absent[Timestamp] = None


class Episode(Record):  # MP-11
    """Something that happened, compressed by age. Not a `ReasoningMemory`."""

    episode_id: str
    time_range: TimeSpan
    summary: str
    highlights: Absent[Items[str]] = None
    tags: Absent[Items[str]] = None
    entities: Absent[Items[str]] = None
    sources: Items[str]
    compression_level: Absent[Literal["raw", "phase_summary", "milestone"]] = None
    recency_score: Absent[Confidence] = None


class LongTerm(Record):  # MP-09
    """Facts, procedures, episodes; `preferences` repeats some of the facts."""

    facts: Items[Fact]
    preferences: Absent[Items[Fact]] = None
    procedures: Items[Procedure]
    episodes: Items[Episode]


# -- insight ------------------------------------------------------------------------------------------


class UsagePolicy(Record):  # MP-12
    """Whether a validated insight may stand before a responder."""

    allow_in_responder: bool


class InsightItem(Record):
    """A hypothesis, a strategy sketch or a pattern. `expires_at: null` reads as `run_end`."""

    id: str
    type: Literal["hypothesis", "strategy", "pattern"]
    statement: str
    trigger: Absent[Literal["conflict", "failure", "synthesis", "analogy"]] = None
    confidence: Absent[Confidence] = None
    validation_state: ValidationState
    tests_suggested: Absent[Items[str]] = None
    expires_at: str | None = None
    sources: Absent[Items[str]] = None


class Insight(Record):
    """What is supposed but not known."""

    usage_policy: UsagePolicy
    hypotheses: Items[InsightItem]
    strategy_sketches: Items[InsightItem]
    patterns: Items[InsightItem]


# -- citations, budget, explanation -------------------------------------------------------------------


class Citation(Record):  # MP-13
    """One piece of evidence the packet refers to; `type` is an event kind, left open."""

    id: str
    type: str
    ts: Absent[Timestamp] = None
    summary: Absent[str] = None


class Degradation(Record):
    """One step down of raw → quote → summary → ref."""

    section: str
    action: str
    reason: str


class Omission(Record):
    """What did not fit, and why."""

    item: str
    reason: str


class BudgetReport(Record):  # MP-14
    """How the budget was spent."""

    max_tokens: MaxTokens
    used_tokens_est: Count
    section_usage: dict[str, Count]
    degradations: Items[Degradation]
    omissions: Absent[Items[Omission]] = None


class OmittedItem(OpenRecord):
    """A candidate that was not chosen."""

    item: str
    reason: str


class ConflictNote(OpenRecord):
    """Facts that contradict or override each other."""

    type: str
    detail: str
    fact_ids: Absent[Items[str]] = None


class Explain(Record):  # MP-15
    """Why this and not that."""

    selected: Items[str]
    omitted: Items[OmittedItem]
    filters: JsonObject
    conflicts: Items[ConflictNote]
    determinism: Absent[JsonObject] = None


class MemoryPacket(Record):  # MP-01
    """The seven sections, always all of them."""

    meta: PacketMeta
    short_term: ShortTerm
    long_term: LongTerm
    insight: Insight
    citations: Items[Citation]
    budget_report: BudgetReport
    explain: Explain
