"""A plan taken back: each record it touched returns to the version before, as a new version. Pure.

All of it or nothing: a record that somebody changed since, or erased, is named and nothing is undone. What was learnt
of a record meanwhile, the outcomes of the runs that used it, is no part of a plan and stays. An undo is a plan of its
own, whose id follows from the undone one's, and can be undone in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from muniment.contracts.learning import MemoryAction, MemoryActionPlan, MemoryActionRecord
from muniment.core.canonical import short_id
from muniment.core.record import RULECRAFT_VERSION
from muniment.learning.fold.executing import action_record
from muniment.learning.fold.operations import retired
from muniment.learning.stored_memory import STORES, MemoryKind, Store, StoredMemory

__all__ = ["UNDONE", "Undone", "undo_plan"]

UNDONE = "undone"
"""The reason of what an undo restores or retires; the plan's id follows it."""

_OBSERVED = ("with_tally", "without_tally", "streak", "last_used_at")
_STORE_OF: dict[MemoryKind, Store] = {kind: store for store, kinds in STORES.items() for kind in kinds}


class Undone(NamedTuple):
    """What an undo does: a plan, its records, and the new versions."""

    plan: MemoryActionPlan
    records: tuple[MemoryActionRecord, ...]
    changes: tuple[StoredMemory, ...]
    refused: tuple[str, ...]
    """The ids because of which nothing was undone."""


def undo_plan(
    plan: MemoryActionPlan,
    before: Mapping[str, StoredMemory | None],
    after: Mapping[str, StoredMemory],
    *,
    current: Mapping[str, StoredMemory],
    now: str,
) -> Undone:
    """Take back an applied plan: `before` and `after` are the versions it found and left, `current` those that stand.

    Undoing twice is undoing once: what stands as the undo left it is SKIPPED with `already`.
    """
    ids = sorted(after)
    undo = _undo_plan(plan, [(after[name], before.get(name)) for name in ids], now)
    reasons = (UNDONE, plan.plan_id)
    problems = {name: _problem(before.get(name), after[name], current.get(name), reasons) for name in ids}
    refused = tuple(name for name in ids if problems[name] not in (None, "already"))
    records, changes = [], []
    for index, name in enumerate(ids):
        problem = problems[name]
        if name in refused:
            records.append(action_record(undo, index, now, "FAILED", error=problem))
        elif refused:
            records.append(action_record(undo, index, now, "SKIPPED", error="plan_aborted"))
        elif problem is not None:
            records.append(action_record(undo, index, now, "SKIPPED", error=problem))
        else:
            changes.append(_restored(before.get(name), current[name], reasons))
            records.append(action_record(undo, index, now, "APPLIED", produced=(name,)))
    return Undone(undo, tuple(records), tuple(changes), refused)


def _problem(
    before: StoredMemory | None, after: StoredMemory, current: StoredMemory | None, reasons: tuple[str, str]
) -> str | None:
    if current is None:
        return f"changed: {after.id} is no longer there"
    if current.version == after.version + 1 and current.reason_keys == reasons:
        return "already"
    if current.version != after.version:
        return f"changed: {after.id} is at version {current.version}, the plan left it at {after.version}"
    if before is not None and before.kind == "rule" and before.record.get("status") == "active":
        return f"active_rule: {after.id} was active; only promotion brings that back"
    return None


def _restored(before: StoredMemory | None, current: StoredMemory, reasons: tuple[str, str]) -> StoredMemory:
    """The version before, on top of the one that stands; what did not exist before is retired, its pin with it."""
    if before is None:
        return retired(current.model_copy(update={"status": "active"}), reasons)
    observed = {name: getattr(current, name) for name in _OBSERVED if name in current.model_fields_set}
    return before.model_copy(update=observed | {"version": current.version + 1, "reason_keys": reasons})


def _undo_plan(
    plan: MemoryActionPlan, touched: list[tuple[StoredMemory, StoredMemory | None]], now: str
) -> MemoryActionPlan:
    said = {
        name: value for name in ("fold_id", "bucket_key", "intent_key", "state_key") if (value := getattr(plan, name))
    }
    return MemoryActionPlan.model_validate(
        {
            "schema_version": RULECRAFT_VERSION,
            "plan_id": short_id("plan", [UNDONE, plan.plan_id]),
            "created_at": now,
            "actions": [_undo_action(left, found, plan.plan_id) for left, found in touched],
        }
        | said
    )


def _undo_action(left: StoredMemory, found: StoredMemory | None, plan_id: str) -> MemoryAction:
    action = {
        "op": "RETIRE" if found is None else "WRITE",
        "target_store": _STORE_OF[left.kind],
        "target_ids": [left.id],
        "reason_keys": [UNDONE, plan_id],
    }
    if found is not None:
        action["payload_ref"] = f"{found.id}@{found.version}"
    return MemoryAction.model_validate(action)
