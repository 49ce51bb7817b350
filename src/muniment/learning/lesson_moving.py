"""What a judged run says of the lessons it had or did without, and where they go by it: read, and put into its plan.

The uses of a run are written into its log, and the steps of its lessons are actions of its fold's plan, so that both
come and go with it. Nothing is decided here (`lessons.life`), and nothing is written.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.learning import MemoryAction
from muniment.learning.banks import find_memory, list_unbound
from muniment.learning.fold.payloads import id_of
from muniment.learning.keys import intent_key
from muniment.learning.lesson_state import LessonState, LessonUse
from muniment.learning.lessons.arms import is_lesson, stage_of
from muniment.learning.lessons.lately import lately_of, share_of
from muniment.learning.lessons.life import (
    CONFLICT_CODES,
    Family,
    Move,
    counted,
    gave_place,
    left_idle,
    next_state,
    placed,
    places_taken,
    started,
)
from muniment.learning.lessons.proof import proven_of, trials_begun
from muniment.learning.lessons.uses import UseArm, Uses, family_of, trials_used, uses_of
from muniment.learning.projection import core_name
from muniment.learning.recall_reading import arms_told

if TYPE_CHECKING:
    from muniment.contracts.learning import MemoryActionPlan
    from muniment.core.policy import LearnPolicy, LessonPolicy
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
            state = held.memory.lesson
            plain["stage"] = "active" if arm is None else arm.stage
            plain |= {} if arm is None or arm.share is None else {"share": arm.share}
            plain |= {} if state is None or state.trial is None else {"trial": state.trial}
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
    """Where the lessons of a run go by it, and which candidates of its family, new ones too, are put on trial.

    `family` are the lessons of its kind of work, `payloads` what its fold would write. Lessons that are bound to no
    kind of work fit every run, and have places of their own.
    """
    lessons = {each.id: each for each in _standing(reader, owner, [arm for arm in arms if arm.stage is not None])}
    name = core_name(intent_key(facts.intent))
    unbound = [held.memory for held in list_unbound(reader, owner, "tactic", policy.gather_max)]
    groups = [_with_own(group, lessons, place) for group, place in ((family, name), (unbound, None))]
    trials = [each for group in groups for each in group if each.id not in lessons and stage_of(each) == "trial"]
    found = uses_of(reader, owner, [*lessons.values(), *trials], policy.lessons.uses_max)
    new = _new_lessons(reader, owner, payloads, {each.id for group in groups for each in group} | lessons.keys())
    families = [
        _family(reader, owner, group, place, found, policy.lessons, is_growing=coming)
        for group, place, coming in zip(groups, (name, None), (bool(new), False), strict=True)
    ]
    whose = {each.id: place for place, group in enumerate(groups) for each in group}
    steps = _judged(facts, arms, lessons, found, families, whose, policy.lessons, now)
    for each in trials:
        move = left_idle(each, found[each.id].idle, policy.lessons, now)
        if move is not None:
            steps[each.id] = move
    known = {each.id: each for group in groups for each in group} | lessons
    for group, coming in zip(groups, (new, ()), strict=True):
        _make_room(group, len(coming), steps, found, policy.lessons, now)
    (taken, number), (_, others) = (
        _start(group, steps, policy.lessons, now, family.trials) for group, family in zip(groups, families, strict=True)
    )
    stages: dict[str, LessonState] = {}
    for id_ in new:
        move = placed(now, taken=taken, policy=policy.lessons, number=number + 1)
        if move is not None:
            taken, number = taken + 1, number + 1
        stages[id_] = LessonState(stage="candidate", since=now, why="it was proposed") if move is None else move.state
    counts = dict(enumerate((number, others)))
    steps = {id_: _with_count(move, counts.get(whose.get(id_, -1), 0)) for id_, move in steps.items()}
    written = [known[id_] for id_ in map(id_of, payloads.values()) if id_ is not None and id_ in known]
    stages |= {each.id: each.lesson for each in written if each.lesson is not None}
    stages = {id_: counted(state, counts[whose.get(id_, 0)]) for id_, state in stages.items()}
    stages |= {id_: move.state for id_, move in steps.items()}
    actions = (_action(reader, owner, known[id_], move) for id_, move in sorted(steps.items()))
    return Moves(stages, tuple(action for action in actions if action is not None))


def _with_own(
    group: Sequence[StoredMemory], lessons: Mapping[str, StoredMemory], name: str | None
) -> list[StoredMemory]:
    """The lessons of a kind of work, with those of the run that are of it and too old to be among the newest."""
    seen = {each.id for each in group}
    return [*group, *(each for id_, each in lessons.items() if id_ not in seen and family_of(each) == name)]


def _family(
    reader: Reader,
    owner: str,
    group: Sequence[StoredMemory],
    name: str | None,
    found: Mapping[str, Uses],
    policy: LessonPolicy,
    *,
    is_growing: bool,
) -> Family:
    """What was tried of a kind of work, by its lessons, and by its runs: a lesson may be forgotten, or out of sight,
    and what was spent on its trial is spent. Runs are asked where a trial may begin.
    """
    seen = [found[each.id].trials for each in group if each.id in found and family_of(each) == name]
    if not seen and (is_growing or any(stage_of(each) == "candidate" for each in group)):
        seen = [trials_used(reader, owner, name, policy.uses_max)]
    return Family(max(trials_begun(group), *seen, 0), proven_of(group))


def _with_count(move: Move, trials: int) -> Move:
    return move._replace(state=counted(move.state, trials))


def _judged(
    facts: RunFacts,
    arms: Sequence[UseArm],
    lessons: Mapping[str, StoredMemory],
    found: Mapping[str, Uses],
    families: list[Family],
    whose: Mapping[str, int],
    policy: LessonPolicy,
    now: str,
) -> dict[str, Move]:
    """The steps of the lessons that the run had or did without, with what came of it counted in.

    `families` says what was tried of kinds of work, and counts the trials that begin here in; `whose` which of them a
    lesson is of. Of others what is known is that they were tried. Who says that it did not use a lesson does not blame
    it for a conflict.
    """
    steps: dict[str, Move] = {}
    conflict = not CONFLICT_CODES.isdisjoint(facts.reason_codes)
    for arm in arms:
        lesson = lessons.get(arm.memory_id)
        if lesson is None:
            continue
        mine, place = (*found[arm.memory_id].uses, _use(facts, arm)), whose.get(arm.memory_id)
        alone = Family(max(trials_begun([lesson]), found[arm.memory_id].trials))
        move = next_state(
            lesson,
            mine,
            policy,
            now,
            conflict=conflict and arm.memory_id in facts.used_ids,
            family=alone if place is None else families[place],
            oldest=found[arm.memory_id].oldest,
        )
        if move is not None:
            steps[arm.memory_id] = move
            if place is not None:
                trials = max(families[place].trials, move.state.trial or 0)
                families[place] = families[place]._replace(trials=trials)
    return steps


def _make_room(
    group: Sequence[StoredMemory],
    coming: int,
    steps: dict[str, Move],
    found: Mapping[str, Uses],
    policy: LessonPolicy,
    now: str,
) -> None:
    """Where more wait than there are places, trials that do not look like helping give theirs up, the worst first."""
    staying = [each for each in group if each.id not in steps]
    wanted = coming + sum(stage_of(each) == "candidate" for each in staying)
    wanted -= policy.trial_places - places_taken(staying)
    shares = {
        each.id: share_of("trial", lately_of(found[each.id], policy.half_life_runs), policy)
        for each in staying
        if wanted > 0 and each.id in found and stage_of(each) == "trial"
    }
    known = {each.id: each for each in staying}
    for id_ in sorted(shares, key=lambda id_: (shares[id_], id_))[: max(0, wanted)]:
        had = sum(use.arm == "had" for use in found[id_].uses)
        move = gave_place(known[id_], had, shares[id_], now)
        if move is not None:
            steps[id_] = move


def _start(
    group: Sequence[StoredMemory], steps: dict[str, Move], policy: LessonPolicy, now: str, trials: int
) -> tuple[int, int]:
    """Put candidates of a group on trial, the oldest first, while there are places; answers how many are taken, and how
    many trials of the group have begun.
    """
    going_on = sum(steps[each.id].state.stage == "trial" for each in group if each.id in steps)
    taken = places_taken([each for each in group if each.id not in steps]) + going_on
    for candidate in sorted(group, key=_waiting_since):
        move = started(candidate, now, taken=taken, policy=policy, number=trials + 1)
        if move is not None and candidate.id not in steps:
            steps[candidate.id] = move
            taken, trials = taken + 1, max(trials, move.state.trial or 0)
    return taken, trials


def _waiting_since(memory: StoredMemory) -> tuple[str, str]:
    return memory.created_at if memory.lesson is None else memory.lesson.since, memory.id


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
