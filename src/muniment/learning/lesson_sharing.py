"""What a judged run says of records in other banks than the one that it is learnt into: counted there, and its lessons
moved there.

A run recalls from its user's bank, its agent's and its tenant's, and is learnt into one of them. Each of the others
that it recalled from is told in the same transaction, by an entry of that bank's own, so that the count is read,
exported and made again with the bank, and falls with the run. No word of the run is told, nor whose it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.learning import MemoryActionPlan
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ITEMS
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import owners_seen
from muniment.learning._trials import stage_of
from muniment.learning.banks import list_memories, list_unbound, write_bank
from muniment.learning.keys import intent_key
from muniment.learning.lesson_moving import lesson_moves, recalled_ids
from muniment.learning.lessons.uses import by_family, name_in_bank, told_id
from muniment.learning.plans import applied_draft, run_plan
from muniment.learning.projection import core_name
from muniment.memory.patches import draft_patch
from muniment.store.ledger import LESSONS_USED

if TYPE_CHECKING:
    from muniment.core.policy import LearnPolicy
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.learning.lessons.uses import UseArm
    from muniment.learning.stored_memory import RunFacts, StoredMemory
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft

__all__ = ["banks_beside", "family_lessons", "tell_beside"]


class _Owner(NamedTuple):
    user_id: str | None


def banks_beside(
    reader: Reader, scope: Scope, owner: str, facts: RunFacts, recalled: Mapping[str, Any] | None, policy: LearnPolicy
) -> tuple[str, ...]:
    """The other banks that have to hear of this run: those that hold something it recalled, and those in which a
    lesson of its kind of work waits for a place on trial that is free. None of a run that recalled nothing or was not
    judged.
    """
    if facts.verdict is None:
        return ()
    ids = recalled_ids(facts, recalled)
    if recalled is None and not ids:
        return ()
    holding = {row.user_id for row in by_ids(reader, ITEMS, ids, into=_Owner)}
    others = [each for each in owners_seen(scope) if each != owner]
    return tuple(each for each in others if each in holding or _is_waited_in(reader, each, facts, policy))


def family_lessons(reader: Reader, owner: str, facts: RunFacts, policy: LearnPolicy) -> list[StoredMemory]:
    """The newest lessons of a bank that are of a run's kind of work."""
    name = core_name(intent_key(facts.intent))
    return [held.memory for held in list_memories(reader, owner, "tactic", name=name, newest=policy.gather_max)]


def _is_waited_in(reader: Reader, owner: str, facts: RunFacts, policy: LearnPolicy) -> bool:
    unbound = [held.memory for held in list_unbound(reader, owner, "tactic", policy.gather_max)]
    for group in (family_lessons(reader, owner, facts, policy), unbound):
        stages = [stage_of(memory) for memory in group]
        if "candidate" in stages and "trial" not in stages:
            return True
    return False


def tell_beside(
    ctx: Context,
    tx: Transaction,
    tenant_id: str,
    owner: str,
    facts: RunFacts,
    arms: Sequence[UseArm],
    task: str | None,
    now: str,
) -> None:
    """Write what a run says of a bank that it was not learnt into, in a transaction that has locked the bank."""
    uses = [_use_draft(owner, facts, family, mine, task) for family, mine in by_family(arms).items()]
    drafts = [*uses, *_moved(ctx, tx, owner, facts, arms, now)]
    if drafts:
        write_bank(ctx, tx, tenant_id, owner, drafts)


def _use_draft(
    owner: str, facts: RunFacts, family: str | None, arms: Sequence[Mapping[str, Any]], task: str | None
) -> EntryDraft:
    """The entry that tells of uses. It names the run's log as its source, so that it is forgotten with the run."""
    run: dict[str, Any] = {
        "trace_id": name_in_bank(owner, facts.trace_id),
        "passed": facts.passed,
        "cost": facts.cost,
        "at": facts.at,
    }
    run |= {} if task is None else {"task": task}
    said: dict[str, Any] = {
        "id": told_id(owner, facts.trace_id, family),
        "uses": {"run": run, "arms": list(arms)},
        "sources": [facts.trace_id],
    }
    return draft_patch(LESSONS_USED, "assistant", said if family is None else said | {"family": family})


def _moved(
    ctx: Context, tx: Transaction, owner: str, facts: RunFacts, arms: Sequence[UseArm], now: str
) -> list[EntryDraft]:
    """Where the lessons of the bank go by this run: a plan of the bank's own, and the versions that it makes.

    A conflict that the run reports is counted as the failure that it is, and suspends nothing here by itself: a lesson
    of the run's own bank may be what contradicts, which nobody else is told.
    """
    policy = ctx.policy.learn
    judged = facts.model_copy(update={"reason_codes": ()})
    family = family_lessons(tx, owner, facts, policy)
    moves = lesson_moves(tx, owner, judged, arms, family, {}, policy, now)
    if not moves.actions:
        return []
    plan = MemoryActionPlan.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "plan_id": ctx.ids.new("plan"),
            "created_at": now,
            "actions": [action.to_wire() for action in moves.actions],
        }
    )
    ran = run_plan(ctx, tx, owner, plan, {}, now, stages=moves.stages)
    return [applied_draft(plan, {}, ran, sources=[facts.trace_id]), *ran.drafts]
