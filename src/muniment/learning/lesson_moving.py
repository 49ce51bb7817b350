"""Effects of a judged run on lessons it had or did without: uses counted in every bank, and the lessons' next stages.

A run recalls from the banks of its user, agent and tenant, and is learned into one of them. Uses are written to its log
there, and stage changes are actions of its fold's plan, so that both are created and removed with it. Each other bank
gets an entry of its own in the same transaction, without the run's text or user.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.learning import MemoryAction, MemoryActionPlan
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ITEMS
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import owners_seen
from muniment.learning._operations import id_of
from muniment.learning._trials import CONFLICT_CODES, Move, is_lesson, left_idle, next_state, stage_of, started
from muniment.learning.banks import find_memory, list_memories, list_unbound, write_bank
from muniment.learning.keys import intent_key
from muniment.learning.plans import applied_draft, run_plan
from muniment.learning.projection import core_name
from muniment.learning.recalling import arms_told
from muniment.learning.records import LessonState, LessonUse
from muniment.learning.uses import UseArm, by_family, family_of, name_in_bank, runs_after, told_id, uses_of
from muniment.memory.patches import draft_patch
from muniment.store.ledger import LESSONS_USED

if TYPE_CHECKING:
    from muniment.core.policy import LearnPolicy
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.learning.records import RunFacts, StoredMemory
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft

__all__ = ["Moves", "bank_arms", "banks_beside", "count_in_other_bank", "lesson_moves", "with_moves"]


class Moves(NamedTuple):
    """The changes to lessons that follow from a run's fold."""

    stages: Mapping[str, LessonState]
    """The resulting states, including those of new lessons."""
    actions: tuple[MemoryAction, ...] = ()


def recalled_ids(facts: RunFacts, recalled: Mapping[str, Any] | None) -> tuple[str, ...]:
    """All learned records that a run may have had, or did without."""
    had = (*facts.used_ids, *(() if facts.seed_id is None else (facts.seed_id,)))
    return tuple(dict.fromkeys((*had, *(arm.memory_id for arm in arms_told(recalled)))))


def bank_arms(
    reader: Reader, owners: Sequence[str], facts: RunFacts, recalled: Mapping[str, Any] | None
) -> dict[str, tuple[UseArm, ...]]:
    """The records of these banks a run had, and the lessons it did without, by bank.

    For lessons this is the drawn arm, regardless of reported use: a report made after the draw may depend on how the
    run went. Other records that the run reports as unused do not count as had.
    """
    drawn = {arm.memory_id: arm for arm in arms_told(recalled)}
    is_drawn = "arms" in (recalled or {})  # earlier versions drew none, and treated lessons like other records
    found: dict[str, tuple[UseArm, ...]] = {}
    for id_ in recalled_ids(facts, recalled):
        held, arm = find_memory(reader, owners, id_), drawn.get(id_)
        if held is None or (is_lesson(held.memory) and arm is None and is_drawn):
            continue
        plain: dict[str, Any] = {"memory_id": id_, "arm": "had" if arm is None else arm.arm}
        family = family_of(held.memory)
        plain |= {} if family is None else {"family": family}
        if is_lesson(held.memory):
            plain["stage"] = "active" if arm is None else arm.stage
            plain |= {} if arm is None or arm.share is None else {"share": arm.share}
        found[held.owner] = (*found.get(held.owner, ()), UseArm.from_wire(plain))
    return found


def lesson_moves(
    reader: Reader,
    owner: str,
    facts: RunFacts,
    arms: Sequence[UseArm],
    payloads: Mapping[str, Any],
    policy: LearnPolicy,
    now: str,
) -> Moves:
    """Decide the next states of a run's lessons, and which candidate of the family, including new ones, starts its
    trial.

    `payloads` are the records its fold would write. Lessons without a kind of work fit every run, and have their own
    place for a trial.
    """
    family = _family_lessons(reader, owner, facts, policy)
    lessons = {each.id: each for each in _standing(reader, owner, [arm for arm in arms if arm.stage is not None])}
    unbound = [held.memory for held in list_unbound(reader, owner, "tactic", policy.gather_max)]
    name = core_name(intent_key(facts.intent))
    groups = [_with_own(group, lessons, place) for group, place in ((family, name), (unbound, None))]
    known = {each.id: each for group in groups for each in group} | lessons
    trials = [each for each in known.values() if each.id not in lessons and stage_of(each) == "trial"]
    found = uses_of(reader, owner, [*lessons.values(), *trials], policy.lessons.uses_max)
    conflict = not CONFLICT_CODES.isdisjoint(facts.reason_codes)
    steps: dict[str, Move] = {}
    for arm in arms:
        lesson = lessons.get(arm.memory_id)
        if lesson is not None:
            mine = (*found.get(lesson.id, ()), _use(facts, arm))
            is_blamed = conflict and lesson.id in facts.used_ids  # an unused lesson is not blamed
            steps |= _step(lesson, next_state(lesson, mine, policy.lessons, now, conflict=is_blamed))
    for each in trials:
        since = "" if each.lesson is None else each.lesson.since
        moment = max([since, *(use.at for use in found.get(each.id, ())[-1:])])
        idle = runs_after(reader, owner, family_of(each), moment, policy.lessons.uses_max)
        steps |= _step(each, left_idle(each, idle, now))
    new = _new_lessons(reader, owner, payloads, known)
    stages = {id_: LessonState(stage="candidate", since=now, why="it was proposed") for id_ in new}
    for group in groups:
        standing = [_as_moved(each, steps.get(each.id)) for each in group]
        begun = started(standing, now)
        if begun is not None:
            steps[begun[0]] = begun[1]
        elif new and group is groups[0] and not any(stage_of(each) in ("trial", "candidate") for each in standing):
            stages[new[0]] = LessonState(stage="trial", since=now, why="no other of its family is on trial")
    written = [known[id_] for id_ in map(id_of, payloads.values()) if id_ is not None and id_ in known]
    stages |= {each.id: each.lesson for each in written if each.lesson is not None}
    stages |= {id_: move.state for id_, move in steps.items()}
    actions = (_action(reader, owner, known[id_], move) for id_, move in sorted(steps.items()))
    return Moves(stages, tuple(action for action in actions if action is not None))


def _step(lesson: StoredMemory, move: Move | None) -> dict[str, Move]:
    return {} if move is None else {lesson.id: move}


def _as_moved(lesson: StoredMemory, move: Move | None) -> StoredMemory:
    """The lesson after this run's stage change."""
    return lesson if move is None else lesson.model_copy(update={"lesson": move.state})


def _with_own(
    group: Sequence[StoredMemory], lessons: Mapping[str, StoredMemory], name: str | None
) -> list[StoredMemory]:
    """The lessons of a kind of work, plus those of the run that are too old to be among the newest."""
    seen = {each.id for each in group}
    return [*group, *(each for id_, each in lessons.items() if id_ not in seen and family_of(each) == name)]


def _standing(reader: Reader, owner: str, arms: Sequence[UseArm]) -> list[StoredMemory]:
    held = [find_memory(reader, (owner,), arm.memory_id) for arm in arms]
    return [each.memory for each in held if each is not None and is_lesson(each.memory)]


def _use(facts: RunFacts, arm: UseArm) -> LessonUse:
    """The run's own use, not stored yet."""
    plain: dict[str, Any] = {"memory_id": arm.memory_id, "trace_id": facts.trace_id, "arm": arm.arm, "at": facts.at}
    plain |= {} if arm.share is None else {"share": arm.share}
    return LessonUse.from_wire(plain | {"passed": facts.passed, "cost": facts.cost, "stage": arm.stage})


def _new_lessons(reader: Reader, owner: str, payloads: Mapping[str, Any], known: Container[str]) -> list[str]:
    """The lessons that a fold would write for the first time."""
    ids = [id_ for plain in payloads.values() if "tactic_id" in plain and (id_ := id_of(plain)) is not None]
    return [id_ for id_ in ids if id_ not in known and find_memory(reader, (owner,), id_) is None]


def _action(reader: Reader, owner: str, seen: StoredMemory, move: Move) -> MemoryAction | None:
    """The stage change as an action: a retirement, or a new version that differs only in its state.

    None if the lesson was moved since it was read: the next run tries again.
    """
    held = find_memory(reader, (owner,), seen.id)
    if held is None or stage_of(held.memory) != stage_of(seen):
        return None
    memory, is_end = held.memory, move.state.stage == "retired"
    plain: dict[str, Any] = {
        "op": "RETIRE" if is_end else "WRITE",
        "target_store": "ReuseBuffer",
        "target_ids": [memory.id],
        "reason_keys": ["praxis", move.reason] if is_end else ["lesson", move.state.stage, move.reason],
        "lesson": {"from": stage_of(memory), **move.state.to_wire()},
    }
    return MemoryAction.from_wire(plain if is_end else plain | {"payload_ref": f"{memory.id}@{memory.version}"})


def with_moves(plan: MemoryActionPlan, actions: Sequence[MemoryAction]) -> MemoryActionPlan:
    """Add stage changes to a plan. Lessons the plan retires are not moved, and lessons that a move ends are not
    written.
    """
    retired = {id_ for action in plan.actions if action.op == "RETIRE" for id_ in action.target_ids or ()}
    more = [action for action in actions if retired.isdisjoint(action.target_ids or ())]
    going = {id_ for action in more if action.op == "RETIRE" for id_ in action.target_ids or ()}
    kept = [
        action
        for action in plan.actions
        if not (action.op == "WRITE" and going & set(action.target_ids or ()))  # a retired lesson is not written again
    ]
    return plan.model_copy(update={"actions": (*kept, *more)})


# -- other banks -------------------------------------------------------------------------------------


class _Owner(NamedTuple):
    user_id: str | None


def banks_beside(
    reader: Reader, scope: Scope, owner: str, facts: RunFacts, recalled: Mapping[str, Any] | None, policy: LearnPolicy
) -> tuple[str, ...]:
    """The other banks to be informed of this run: those with records it recalled, and those where a lesson of its kind
    of work waits for a free trial. None for a run without a recall or a verdict.
    """
    if facts.verdict is None:
        return ()
    ids = recalled_ids(facts, recalled)
    if recalled is None and not ids:
        return ()
    holding = {row.user_id for row in by_ids(reader, ITEMS, ids, into=_Owner)}
    others = [each for each in owners_seen(scope) if each != owner]
    return tuple(each for each in others if each in holding or _is_waited_in(reader, each, facts, policy))


def _family_lessons(reader: Reader, owner: str, facts: RunFacts, policy: LearnPolicy) -> list[StoredMemory]:
    """The newest lessons of a bank for a run's kind of work."""
    name = core_name(intent_key(facts.intent))
    return [held.memory for held in list_memories(reader, owner, "tactic", name=name, newest=policy.gather_max)]


def _is_waited_in(reader: Reader, owner: str, facts: RunFacts, policy: LearnPolicy) -> bool:
    unbound = [held.memory for held in list_unbound(reader, owner, "tactic", policy.gather_max)]
    for group in (_family_lessons(reader, owner, facts, policy), unbound):
        stages = [stage_of(memory) for memory in group]
        if "candidate" in stages and "trial" not in stages:
            return True
    return False


def count_in_other_bank(
    ctx: Context,
    tx: Transaction,
    tenant_id: str,
    owner: str,
    facts: RunFacts,
    arms: Sequence[UseArm],
    task: str | None,
    now: str,
) -> None:
    """Write a run's uses to a bank it was not learned into; the transaction must hold the bank's lock."""
    uses = [_use_draft(owner, facts, family, mine, task) for family, mine in by_family(arms).items()]
    drafts = [*uses, *_moved(ctx, tx, owner, facts, arms, now)]
    if drafts:
        write_bank(ctx, tx, tenant_id, owner, drafts)


def _use_draft(
    owner: str, facts: RunFacts, family: str | None, arms: Sequence[Mapping[str, Any]], task: str | None
) -> EntryDraft:
    """The entry of uses. Its source is the run's log, so that it is forgotten with the run."""
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
    """Apply the run to the bank's lessons: a plan of the bank's own, and the resulting versions.

    A reported conflict counts as a failure but does not suspend by itself here: the conflicting lesson may be in the
    run's own bank.
    """
    policy = ctx.policy.learn
    judged = facts.model_copy(update={"reason_codes": ()})
    moves = lesson_moves(tx, owner, judged, arms, {}, policy, now)
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
