"""What a judged run says of the lessons it had or did without, and where they go by it: read, and put into its plan.

The uses of a run are written into its log, and the steps of its lessons are actions of its fold's plan, so that both
come and go with it. Nothing is decided here (`lessons.life`), and nothing is written.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.learning import MemoryAction
from muniment.learning._trials import CONFLICT_CODES, Move, is_lesson, left_idle, next_state, stage_of, started
from muniment.learning.banks import find_memory, list_unbound
from muniment.learning.fold.payloads import id_of
from muniment.learning.keys import intent_key
from muniment.learning.lesson_state import LessonState, LessonUse
from muniment.learning.lessons.uses import UseArm, family_of, uses_of
from muniment.learning.projection import core_name
from muniment.learning.recall_reading import arms_told

if TYPE_CHECKING:
    from muniment.contracts.learning import MemoryActionPlan
    from muniment.core.policy import LearnPolicy
    from muniment.core.ports.engine import Reader
    from muniment.learning.stored_memory import RunFacts, StoredMemory

__all__ = ["Moves", "bank_arms", "lesson_moves", "recalled_ids", "with_moves"]


class Moves(NamedTuple):
    """What a run's fold says of lessons."""

    stages: Mapping[str, LessonState]
    """Where lessons stand by it, those that it writes as well."""
    actions: tuple[MemoryAction, ...] = ()


def recalled_ids(facts: RunFacts, recalled: Mapping[str, Any] | None) -> tuple[str, ...]:
    """All that a run may have had of learned records, or did without."""
    had = (*facts.used_ids, *(() if facts.seed_id is None else (facts.seed_id,)))
    return tuple(dict.fromkeys((*had, *(arm.memory_id for arm in arms_told(recalled)))))


def bank_arms(
    reader: Reader, owners: Sequence[str], facts: RunFacts, recalled: Mapping[str, Any] | None
) -> dict[str, tuple[UseArm, ...]]:
    """What a run had of the records of these banks, and which lessons it did without, bank by bank.

    Of lessons that is what was drawn for it, whatever it says of their use: that is said after the draw, and may hang
    on how the run went. Of all else, what it says it did not use it did not have.
    """
    drawn = {arm.memory_id: arm for arm in arms_told(recalled)}
    is_drawn = "arms" in (recalled or {})  # earlier versions drew none, and lessons were as all else
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
    family: Sequence[StoredMemory],
    payloads: Mapping[str, Any],
    policy: LearnPolicy,
    now: str,
) -> Moves:
    """Where the lessons of a run go by it, and which candidate of its family, new ones too, is put on trial.

    `family` are the lessons of its kind of work, `payloads` what its fold would write. Lessons that are bound to no
    kind of work fit every run, and have a place of their own.
    """
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
            mine = (*found[lesson.id].uses, _use(facts, arm))
            is_blamed = conflict and lesson.id in facts.used_ids  # an agent that did not use it does not blame it
            steps |= _step(lesson, next_state(lesson, mine, policy.lessons, now, conflict=is_blamed))
    for each in trials:
        steps |= _step(each, left_idle(each, found[each.id].idle, policy.lessons, now))
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
    """The lesson as it stands after a step of this run."""
    return lesson if move is None else lesson.model_copy(update={"lesson": move.state})


def _with_own(
    group: Sequence[StoredMemory], lessons: Mapping[str, StoredMemory], name: str | None
) -> list[StoredMemory]:
    """The lessons of a kind of work, with those of the run that are of it and too old to be among the newest."""
    seen = {each.id for each in group}
    return [*group, *(each for id_, each in lessons.items() if id_ not in seen and family_of(each) == name)]


def _standing(reader: Reader, owner: str, arms: Sequence[UseArm]) -> list[StoredMemory]:
    held = [find_memory(reader, (owner,), arm.memory_id) for arm in arms]
    return [each.memory for each in held if each is not None and is_lesson(each.memory)]


def _use(facts: RunFacts, arm: UseArm) -> LessonUse:
    """The run's own use, which is not kept yet."""
    plain: dict[str, Any] = {"memory_id": arm.memory_id, "trace_id": facts.trace_id, "arm": arm.arm, "at": facts.at}
    plain |= {} if arm.share is None else {"share": arm.share}
    return LessonUse.from_wire(plain | {"passed": facts.passed, "cost": facts.cost, "stage": arm.stage})


def _new_lessons(reader: Reader, owner: str, payloads: Mapping[str, Any], known: Container[str]) -> list[str]:
    """The lessons that a fold would write for the first time."""
    ids = [id_ for plain in payloads.values() if "tactic_id" in plain and (id_ := id_of(plain)) is not None]
    return [id_ for id_ in ids if id_ not in known and find_memory(reader, (owner,), id_) is None]


def _action(reader: Reader, owner: str, seen: StoredMemory, move: Move) -> MemoryAction | None:
    """The step as an action: retired as ever, else written again as it stands but for where it stands.

    None where somebody has moved it since it was looked at: the next run looks again.
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
    """A plan, and the steps of lessons. What it retires anyway takes no step, and what a step ends is not written."""
    retired = {id_ for action in plan.actions if action.op == "RETIRE" for id_ in action.target_ids or ()}
    more = [action for action in actions if retired.isdisjoint(action.target_ids or ())]
    going = {id_ for action in more if action.op == "RETIRE" for id_ in action.target_ids or ()}
    kept = [
        action
        for action in plan.actions
        if not (action.op == "WRITE" and going & set(action.target_ids or ()))  # what goes is not written again
    ]
    return plan.model_copy(update={"actions": (*kept, *more)})
