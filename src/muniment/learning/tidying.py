"""A bank kept within its sizes: what has run out or is too much is retired, by a plan like any other change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muniment.core.ports.engine import Count
from muniment.core.ports.rows import get
from muniment.core.ports.schema import SESSIONS
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import bank_scope
from muniment.learning.banks import list_memories, lock_bank, store_of, write_bank
from muniment.learning.fold.executing import check_plan
from muniment.learning.keys import has_expired
from muniment.learning.lessons.counting import with_counts
from muniment.learning.plans import applied_draft, run_plan
from muniment.learning.reuse.eviction import to_evict

if TYPE_CHECKING:
    from muniment.contracts.learning import MemoryActionRecord
    from muniment.core.policy import LearnPolicy
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.learning.stored_memory import MemoryKind, StoredMemory
    from muniment.store.context import Context

__all__ = ["EVERY", "bank_length", "tidy", "tidy_sometimes"]

EVERY = 512
"""A bank is looked over once in so many entries, or more often where a store is small."""
_LIVE = ("active", "pinned", "temporary")


def tidy(ctx: Context, tenant_id: str, owner: str, *, leave: int = 0) -> tuple[MemoryActionRecord, ...]:
    """Retire what has run out and what is over size; `leave` so much room in each store for what is to come.

    By one plan, or by several where one may not hold so many actions.
    """
    records: list[MemoryActionRecord] = []
    while made := _tidy_once(ctx, tenant_id, owner, leave):
        records += made
        if len(made) < ctx.policy.learn.plan_actions_max or made[0].status != "APPLIED":
            break
    return tuple(records)


def _tidy_once(ctx: Context, tenant_id: str, owner: str, leave: int) -> tuple[MemoryActionRecord, ...]:
    now = ctx.now()
    plan_id = ctx.ids.new("plan")

    def work(tx: Transaction) -> tuple[MemoryActionRecord, ...]:
        lock_bank(tx, owner)
        found = _actions(tx, owner, ctx.policy.learn, now, leave)[: ctx.policy.learn.plan_actions_max]
        if not found:
            return ()
        plain = {"schema_version": RULECRAFT_VERSION, "plan_id": plan_id, "created_at": now, "actions": found}
        plan = check_plan(plain | {"notes": "tidy"})
        ran = run_plan(ctx, tx, owner, plan, {}, now)
        write_bank(ctx, tx, tenant_id, owner, [applied_draft(plan, {}, ran), *ran.drafts])
        return ran.applied.records

    return ctx.engine.write(tenant_id, work)


def bank_length(ctx: Context, tenant_id: str, owner: str) -> int:
    """How many entries a bank has."""
    place = owner, bank_scope(tenant_id, owner).session_id
    row = ctx.engine.read(tenant_id, lambda reader: get(reader, SESSIONS, place))
    return 0 if row is None else row.head_seq


def tidy_sometimes(ctx: Context, tenant_id: str, owner: str, *, since: int) -> None:
    """Look a bank over when it has grown by so much that a store may be over size; `since` is how long it was."""
    eviction = ctx.policy.learn.eviction
    smallest = min(eviction.reasoning_max, eviction.tactics_max, eviction.seeds_max, eviction.capsules_max)
    step = max(1, min(EVERY, smallest // 4))
    length = bank_length(ctx, tenant_id, owner)
    if length > since and (step == 1 or length // step != since // step):
        tidy(ctx, tenant_id, owner, leave=0 if step == 1 else step)


def _actions(reader: Reader, owner: str, policy: LearnPolicy, now: str, leave: int) -> list[dict[str, Any]]:
    sizes: dict[MemoryKind, int] = {
        "reasoning": policy.eviction.reasoning_max,
        "tactic": policy.eviction.tactics_max,
        "seed": policy.eviction.seeds_max,
        "trace_capsule": policy.eviction.capsules_max,
    }
    actions: list[dict[str, Any]] = []
    for kind, most in sizes.items():
        if leave and _versions(reader, owner, kind) + leave <= most:
            continue  # there is room, however many of these are live; and what has run out is not recalled meanwhile
        held = [held.memory for held in list_memories(reader, owner, kind, statuses=_LIVE)]
        live = with_counts(reader, owner, held, policy.lessons.uses_max)
        expired = [memory for memory in live if has_expired(memory, now)]
        gone = {memory.id for memory in expired}
        rest = [memory for memory in live if memory.id not in gone]
        evicted = set(to_evict(rest, max(1, most - leave), policy.eviction, now)) if len(rest) + leave > most else set()
        actions += [_retire(memory, "ttl_expired") for memory in expired]
        actions += [_retire(memory, "over_capacity") for memory in rest if memory.id in evicted]
    return actions


def _versions(reader: Reader, owner: str, kind: MemoryKind) -> int:
    return reader.do(Count("items", where=(("kind", "=", kind), ("user_id", "=", owner))))


def _retire(memory: StoredMemory, reason: str) -> dict[str, Any]:
    return {
        "op": "RETIRE",
        "target_store": store_of(memory.kind),
        "target_ids": [memory.id],
        "reason_keys": [reason],
    }
