"""Learned memory, and the folds, plans and change records that write it (Rulecraft v0.5.15)."""

from typing import Literal

from pydantic import Field

from muniment.core.record import Absent, Confidence, Integer, Items, JsonObject, Number, OpenRecord, RulecraftRecord
from muniment.core.scope import MemoryOp, Outcome, Verdict

# -- learned memory -------------------------------------------------------------------------------------


# -- reuse: seeds and conditional tactics -------------------------------------------------------------


class Reward(OpenRecord):
    """The parts of a reward in the execution-grounded loop."""

    total: Number | None = None
    pass_: Number | None = Field(default=None, alias="pass")
    cost: Number | None = None
    diversity: Number | None = None
    consistency: Number | None = None


class Puct(OpenRecord):  # RC-21
    """What a PUCT selection was computed from."""

    c: Number | None = None
    Q_method: Literal["max_reward", "mean_reward"] | None = None
    P_method: Literal["rank_prior", "uniform"] | None = None
    Q: Number | None = None
    P: Number | None = None
    T_total: Integer | None = None
    N: Integer | None = None


class ReuseVerifier(OpenRecord):
    """What the verifier said of the run a seed came from."""

    verdict: Verdict | None = None
    outcome: Outcome | None = None
    score: Number | None = None
    score_method: str | None = None


class ReuseLineage(OpenRecord):
    """Which seeds a seed was made from."""

    parent_state_id: str | None = None
    parent_ids: Items[str] | None = None
    mutation_ops: Items[str] | None = None


class ReuseCounters(OpenRecord):
    """Visits of a seed, for PUCT."""

    N: Integer | None = None
    last_used_at: str | None = None


class ReuseStateRecord(RulecraftRecord):  # LG-10
    """A seed: a short state to start again from. Never holds a secret."""

    state_id: str
    created_at: str
    bucket_key: str | None = None
    seed_summary: str
    seed_prompt: str | None = None
    source_trace_ids: Items[str] | None = None
    rule_set_hash: str | None = None
    verifier: Absent[ReuseVerifier] = None
    reward: Absent[Reward] = None
    exec_ok: bool | None = None
    exec_failure_class: str | None = None
    lineage: Absent[ReuseLineage] = None
    counters: Absent[ReuseCounters] = None
    ttl: str | None = None
    tags: Items[str] | None = None


class TacticInjection(OpenRecord):
    """What a tactic puts into a prompt, and where."""

    mode: Literal["prepend", "inline"] | None = None
    content: str


class TacticEvidence(OpenRecord):
    """Where a tactic was learnt."""

    trace_ids: Items[str] | None = None
    verifier_ids: Items[str] | None = None


class TacticMetrics(OpenRecord):
    """How a tactic fared."""

    pass_p_hat: Number | None = None
    efficiency_est: Number | None = None
    avg_cost: Number | None = None
    use_n: Integer | None = None
    fail_n: Integer | None = None


class ConditionalTactic(RulecraftRecord):  # RC-13
    """When this, try that (kind `ConditionalTacticRecord`). Not a rule, and never promoted as one."""

    tactic_id: str
    created_at: str
    bucket_key: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    status: Literal["active", "pinned", "retired"]
    ttl: str | None = None
    last_used_at: str | None = None
    summary: str
    injection: TacticInjection
    predicates: Items[str] | None = None
    evidence: Absent[TacticEvidence] = None
    metrics: Absent[TacticMetrics] = None
    embedding_ref: str | None = None
    payload_ref: str | None = None


class ReuseBufferStats(OpenRecord):
    """How full the buffer is."""

    seed_size: Integer | None = None
    tactic_size: Integer | None = None
    last_compact_at: str | None = None


class ReuseBuffer(RulecraftRecord):
    """Seeds and tactics side by side, never mixed."""

    buffer_id: str
    policy_id: str
    max_size: Integer
    eviction: Literal["lru", "score_decay", "hybrid"] | None = None
    seed_entries: Items[ReuseStateRecord]
    tactic_entries: Items[ConditionalTactic]
    stats: Absent[ReuseBufferStats] = None


class ReuseSelectMeta(RulecraftRecord):
    """Which seed was chosen and by what score."""

    enabled: Absent[bool] = None
    policy: Absent[str] = None
    selected_state_id: str | None = None
    selected_score: Number | None = None
    puct: Absent[Puct] = None


# -- working set and reasoning bank -------------------------------------------------------------------


class WorkingSetRecord(RulecraftRecord):
    """The intermediate state of one fold: small, and often rewritten. Not a packet's `WorkingState`."""

    ws_id: str
    trace_id: str | None = None
    bucket_key: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    status: Literal["active", "retired"]
    ttl: str | None = None
    updated_at: str | None = None
    facts: Items[str] | None = None
    assumptions: Items[str] | None = None
    constraints: Items[str] | None = None
    decisions: Items[str] | None = None
    open_questions: Items[str] | None = None


class WorkingSet(RulecraftRecord):
    """The stack of working-set records, by id."""

    current_ws_id: str | None = None
    stack: Items[str] | None = None


class ReasoningMemory(RulecraftRecord):
    """An episode or tactic of the bank (kind `ReasoningMemoryRecord`). Not a packet's `Episode`."""

    memory_id: str
    kind: Literal["episode", "tactic"]
    created_at: str
    updated_at: str | None = None
    bucket_key: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    status: Literal["active", "pinned", "retired", "temporary"]
    ttl: str | None = None
    summary: str
    tags: Items[str] | None = None
    trace_ids: Items[str] | None = None
    pass_p_hat: Confidence | None = None
    avg_cost: Number | None = None
    last_used_at: str | None = None
    embedding_ref: str | None = None
    payload_ref: str | None = None


class ReasoningBank(RulecraftRecord):
    """The long-term bank as one document."""

    bank_id: str
    policy: str | None = None
    max_items: Integer | None = None
    items: Items[ReasoningMemory]


# -- recall -------------------------------------------------------------------------------------------


class MemoryRecallRequest(RulecraftRecord):  # RC-08
    """What is asked of the stores."""

    request_id: str
    trace_id: str | None = None
    query: str
    bucket_key: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    sources: Items[str] | None = None
    top_k: Integer | None = None
    filters: JsonObject | None = None


class MemoryHint(OpenRecord):  # RC-09
    """One recalled thing, short enough to inject. An embedded object: no schema_version."""

    memory_id: str
    source: str
    score: Number | None = None
    reason: str | None = None
    summary: str | None = None
    trace_ids: Items[str] | None = None


class MemoryRecallResponse(RulecraftRecord):
    """The hints, best first."""

    request_id: str
    items: Items[MemoryHint]
    method: str | None = None
    fallback_used: bool | None = None


# -- folding --------------------------------------------------------------------------------------------


FoldTriggerKind = Literal["end_of_run", "phase_shift", "ws_overflow", "budget_hit", "fail_cluster", "manual"]


class FoldTrigger(OpenRecord):  # RC-10
    """Why a fold took place: the contract's reasons, and `budget_hit`."""

    kind: Absent[FoldTriggerKind] = None
    details: str | None = None


class FoldProducts(OpenRecord):
    """What a fold made, by id: candidates, never promotions."""

    reasoning_ids: Items[str] | None = None
    rule_draft_ids: Items[str] | None = None
    reuse_state_ids: Items[str] | None = None


class FoldResult(RulecraftRecord):
    """What was folded and what came of it."""

    fold_id: str
    created_at: str
    trigger: FoldTrigger
    ws_id: str | None = None
    trace_id: str | None = None
    bucket_key: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    produced: FoldProducts
    action_plan_id: str | None = None
    notes: str | None = None


class ActionSafety(OpenRecord):
    """Limits of one action."""

    dry_run: bool | None = None
    ttl_days: Integer | None = None
    max_bytes: Integer | None = None


class MemoryAction(OpenRecord):  # RC-06
    """One operation on one store."""

    op: MemoryOp
    target_store: Literal["ReasoningBank", "Rulebook", "ReuseBuffer", "TraceCapsule"]
    target_ids: Items[str] | None = None
    payload_ref: str | None = None
    reason_keys: Items[str] | None = None
    safety: Absent[ActionSafety] = None


class MemoryActionPlan(RulecraftRecord):  # RC-11
    """What shall be done to the stores, all or nothing."""

    plan_id: str
    created_at: str
    fold_id: str | None = None
    bucket_key: str | None = None
    intent_key: str | None = None
    state_key: str | None = None
    actions: Items[MemoryAction]
    notes: str | None = None


class MemoryActionRecord(RulecraftRecord):
    """What was done of a plan. `target_store` is an open string here."""

    op_id: str
    created_at: str
    plan_id: str | None = None
    fold_id: str | None = None
    op: MemoryOp
    status: Literal["APPLIED", "SKIPPED", "FAILED"]
    target_store: str
    target_ids: Items[str] | None = None
    produced_ids: Items[str] | None = None
    reason_keys: Items[str] | None = None
    error: str | None = None
