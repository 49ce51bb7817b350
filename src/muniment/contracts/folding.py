"""Folding (001 §4.5, §4.6): what a fold found, the plan it leads to, the record of what was done."""

from typing import Literal

from muniment.core.record import Absent, Integer, Items, OpenRecord, RulecraftRecord
from muniment.core.vocabulary import MemoryOp

__all__ = [
    "ActionSafety",
    "FoldProducts",
    "FoldResult",
    "FoldTrigger",
    "FoldTriggerKind",
    "MemoryAction",
    "MemoryActionPlan",
    "MemoryActionRecord",
]

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
