"""What a bank holds, a page at a time, in the order in which it was first kept; and a lesson with its life.

Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from muniment.core.canonical import short_id
from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.ports.rows import by_ids, select
from muniment.core.ports.schema import ITEMS
from muniment.core.scope import bank_level
from muniment.errors import InvalidInput, NotFound
from muniment.learning.banks import held_of
from muniment.learning.lesson_state import LessonStage
from muniment.learning.lessons.counting import with_counts
from muniment.learning.lessons.records import Lesson, LessonChange, LessonRun, LessonStory, SourceRun
from muniment.learning.lessons.view import (
    Draft,
    Kept,
    Kin,
    contrast_of,
    draft_parts,
    draft_stage,
    lesson_of,
    rule_id_of,
    run_of,
    state_of,
    tactic_parts,
)
from muniment.learning.lessons.wording import texts_in
from muniment.learning.plans import plan_of
from muniment.store.items import Item, latest, select_items, taken_ids
from muniment.store.lists.seeking import each_made, find_listed, merged, read_listed, seek

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader
    from muniment.learning.lesson_state import LessonUse
    from muniment.learning.lessons.view import Difference
    from muniment.learning.plans import PlanState
    from muniment.learning.stored_memory import StoredMemory
    from muniment.store.context import Context
    from muniment.store.lists.seeking import Make

__all__ = ["LIVE", "LessonBank", "find_kin", "get_lesson", "lesson_now", "page_bodies", "page_lessons", "page_memories"]
__all__ += ["page_plans"]

LIVE = ("active", "pinned", "temporary")
"""What was neither retired nor pruned has one of these."""


def page_memories(
    ctx: Context, tenant_id: str, owner: str, kinds: Iterable[str], asked: ListQuery, *, include_all: bool
) -> Iterator[Placed[StoredMemory]]:
    """The learned records of some kinds, those that stand or all."""

    def make(reader: Reader, items: Sequence[Item]) -> Sequence[StoredMemory]:
        kept = [held_of(item).memory for item in items]
        return with_counts(reader, owner, kept, ctx.policy.learn.lessons.uses_max)

    statuses: tuple[str | None, ...] = (None,) if include_all else LIVE
    reads = [read_listed(kind, owner, make, asked, status) for kind in kinds for status in statuses]
    return seek(ctx, tenant_id, merged(*reads), asked)


def page_bodies(
    ctx: Context, tenant_id: str, owner: str, kind: str, asked: ListQuery
) -> Iterator[Placed[dict[str, Any]]]:
    """The bodies of the event logs, or of the drafts, of a bank."""
    return seek(ctx, tenant_id, read_listed(kind, owner, each_made(lambda item: item.plain()), asked), asked)


def page_plans(ctx: Context, tenant_id: str, owner: str, asked: ListQuery) -> Iterator[Placed[PlanState]]:
    return seek(ctx, tenant_id, read_listed("plan", owner, each_made(plan_of), asked), asked)


# -- lessons ------------------------------------------------------------------------------------------

UsesOf = Callable[["Reader", "StoredMemory"], Sequence["LessonUse"]]
"""The judged runs of a tactic or a rule of the bank, oldest first: those that its statistics read."""
EffectOf = Callable[["StoredMemory", Sequence["LessonUse"]], "Difference | None"]
"""What it does to pass rates, by those runs; None while there is nothing to compare."""
KINDS = ("tactic", "rule", "draft")
_ERASED_MAX = 50
"""So many times a contrast can have been learnt and forgotten before its newest record is not looked for."""
_VERSIONS_MAX = 500
"""Versions of a record that its life is read from, newest first."""


class LessonBank(NamedTuple):
    """A bank, and who counts the runs of what is in it: rules have a room of their own above."""

    ctx: Context
    tenant_id: str
    owner: str
    uses_of: UsesOf
    effect_of: EffectOf


class _Log(NamedTuple):
    id: str
    run_id: str | None
    status: str


def check_lesson_stage(stage: Any) -> LessonStage | None:
    if stage is not None and stage not in get_args(LessonStage):
        hint = f"one of {', '.join(get_args(LessonStage))}"
        raise InvalidInput(f"{stage!r:.40} is not a stage of a lesson", path="$.stage", hint=hint)
    return stage  # type: ignore[no-any-return]


# -- a page -------------------------------------------------------------------------------------------


def page_lessons(bank: LessonBank, stage: str | None, asked: ListQuery) -> Iterator[Placed[Lesson]]:
    """The lessons of one stage, or all but the retired, by when what they are kept as was first written.

    A record whose lesson stands at another's place is a place with nothing at it.
    """
    check_lesson_stage(stage)
    ctx, tenant_id, owner = bank[:3]

    def make(reader: Reader, items: Sequence[Item]) -> list[Kin | None]:
        return [_meant(bank, reader, item, stage, asked) for item in items]

    statuses = ("retired",) if stage == "retired" else LIVE
    reads = [read_listed(kind, owner, make, asked, status) for kind in ("tactic", "rule") for status in statuses]
    if stage in (None, "candidate"):
        reads.append(read_listed("draft", owner, make, asked))
    found: Make[Kin] = make
    for each in seek(ctx, tenant_id, merged(*reads), asked, find_listed(KINDS, owner, found)):
        if each.value is None:
            yield Placed(each.place, None)
        else:
            yield Placed(each.place, _shown(bank, each.value))


def _shown(bank: LessonBank, kin: Kin) -> Lesson:
    return bank.ctx.engine.read(bank.tenant_id, lambda reader: Lesson.model_validate(_fields(bank, reader, kin)))


def lesson_now(bank: LessonBank, lesson_id: str) -> Lesson:
    """A lesson as a list shows it, by any of its ids."""

    def read(reader: Reader) -> Lesson:
        return Lesson.model_validate(_fields(bank, reader, find_kin(bank, reader, lesson_id)))

    return bank.ctx.engine.read(bank.tenant_id, read)


def _meant(bank: LessonBank, reader: Reader, item: Item, stage: str | None, asked: ListQuery) -> Kin | None:
    """What belongs together with this record, if its lesson is shown here and is asked for."""
    if item.kind == "rule" and held_of(item).memory.layer == "user":
        return None  # what a person wrote into the rulebook is a rule of theirs, and nothing that was learnt
    kin = _kin(bank, reader, item)
    if _anchor(kin) != item.kind:
        return None
    stands = kin.kept
    found = state_of(stands[0]).stage if stands else "candidate"
    if stage not in (None, found):
        return None
    if asked.q is None:
        return kin
    fields = lesson_of(kin, (), None, bank_level(bank.owner))
    return kin if matches(asked.q, fields["text"], fields["when"].words, fields["lesson_id"]) else None


def _anchor(kin: Kin) -> str:
    """The kind of record at whose place a lesson stands: what is furthest on, so that it is found while it lives."""
    stands = kin.kept
    return stands[0].memory.kind if stands else "draft"


# -- what belongs together ----------------------------------------------------------------------------


def _kin(bank: LessonBank, reader: Reader, item: Item) -> Kin:
    """A record, and what the same contrast left beside it. One that a person wrote or merged stands alone."""
    found: dict[str, Item | None] = dict.fromkeys(KINDS)
    body = item.plain()
    record = body["draft"] if item.kind == "draft" else body["memory"]["record"]
    contrast = contrast_of(item.kind, record)
    if contrast is not None:
        found["tactic"] = _learnt(bank, reader, "tactic", "tac", tactic_parts(contrast))
        found["draft"] = draft = _learnt(bank, reader, "draft", "draft", draft_parts(contrast))
        if draft is not None:
            found["rule"] = _own(bank, reader, "rule", rule_id_of(bank.tenant_id, bank.owner, draft.id))
    mine = found[item.kind]
    if mine is None or mine.id != item.id:
        found = dict.fromkeys(KINDS) | {item.kind: item}
        found |= {"draft": _first_draft(bank, reader, record)} if item.kind == "rule" else {}
        if item.kind == "draft":
            found["rule"] = _own(bank, reader, "rule", rule_id_of(bank.tenant_id, bank.owner, item.id))
    tactic, rule, draft = (found[kind] for kind in KINDS)
    return Kin(
        None if tactic is None else Kept(held_of(tactic).memory, tactic.created_at),
        None if rule is None else Kept(held_of(rule).memory, rule.created_at),
        None if draft is None else Draft(draft.id, draft.plain()["draft"], draft.created_at),
    )


def _first_draft(bank: LessonBank, reader: Reader, record: dict[str, Any]) -> Item | None:
    """The draft that a rule was made of; those that were merged into it later are lessons of their own."""
    named = texts_in(record, "evidence", "draft_ids")
    return _own(bank, reader, "draft", named[0]) if named else None


def _learnt(bank: LessonBank, reader: Reader, kind: str, prefix: str, parts: list[Any]) -> Item | None:
    """What a contrast left in a bank. Ids of what was forgotten are passed over, as the fold passes them over."""
    name = f"{bank.tenant_id}\n{bank.owner}"
    for number in range(_ERASED_MAX):
        id_ = short_id(prefix, [name, *parts, *([number] if number else [])])
        item = _own(bank, reader, kind, id_)
        if item is not None or not taken_ids(reader, [id_]):
            return item
    return None


def _own(bank: LessonBank, reader: Reader, kind: str, id_: str) -> Item | None:
    item = latest(reader, id_)
    return item if item is not None and item.kind == kind and item.user_id == bank.owner and item.body else None


def find_kin(bank: LessonBank, reader: Reader, lesson_id: Any) -> Kin:
    """What is one lesson, by the id of any of it; of another bank it does not exist (LG-02)."""
    item = latest(reader, lesson_id) if isinstance(lesson_id, str) else None
    is_one = item is not None and item.kind in KINDS and item.user_id == bank.owner and item.body is not None
    if item is None or not is_one or item.status == "pruned":
        raise NotFound(
            f"no lesson {lesson_id!r:.80} in this bank", path="$.lesson_id", hint="lessons() lists those there are"
        )
    return _kin(bank, reader, item)


# -- one lesson ---------------------------------------------------------------------------------------


def _fields(bank: LessonBank, reader: Reader, kin: Kin) -> dict[str, Any]:
    stands = kin.kept
    uses = bank.uses_of(reader, stands[0].memory) if stands else ()
    effect = bank.effect_of(stands[0].memory, uses) if uses else None
    fields = lesson_of(kin, uses, effect, bank_level(bank.owner))
    named = fields["evidence"].trace_ids
    logs = _logs(bank, reader, (*named, *(run.trace_id for run in fields["newest"])))
    if fields["level"] == "user":
        run_ids = {log.id: log.run_id for log in logs.values() if log.run_id is not None}
        fields["evidence"] = fields["evidence"].model_copy(
            update={"run_ids": tuple(run_ids[each] for each in named if each in run_ids)}
        )
        fields["newest"] = tuple(_named_run(run, run_ids.get(run.trace_id)) for run in fields["newest"])
    else:
        fields["newest"] = tuple(map(_shared_run, fields["newest"]))
    return fields


def _named_run(run: LessonRun, run_id: str | None) -> LessonRun:
    return run if run_id is None else LessonRun.model_validate({**run.to_wire(), "run_id": run_id})


def _shared_run(run: LessonRun) -> LessonRun:
    """A run as it is shown where several users read: without the digest of its task, which a guess could be held
    against.
    """
    return LessonRun.model_validate({name: value for name, value in run.to_wire().items() if name != "task"})


def _logs(bank: LessonBank, reader: Reader, trace_ids: Sequence[str]) -> dict[str, _Log]:
    """Of which run each trace is, and how it ended."""
    ids = tuple(dict.fromkeys(trace_ids))
    where: tuple[Condition, ...] = (("kind", "=", "event_log"), ("user_id", "=", bank.owner))
    return {log.id: log for log in by_ids(reader, ITEMS, ids, into=_Log, where=where)}


def get_lesson(bank: LessonBank, lesson_id: Any) -> LessonStory:
    """A lesson with its life."""

    def read(reader: Reader) -> LessonStory:
        kin = find_kin(bank, reader, lesson_id)
        fields = _fields(bank, reader, kin)
        stands = kin.kept
        runs = [run_of(use) for use in reversed(bank.uses_of(reader, stands[0].memory))] if stands else []
        traces = (*fields["evidence"].trace_ids, *(run.trace_id for run in runs))
        logs = _logs(bank, reader, traces)
        is_own = fields["level"] == "user"
        run_ids = {id_: log.run_id for id_, log in logs.items() if is_own}
        fields["learnt_from"] = tuple(_source(each, logs.get(each), is_own) for each in fields["evidence"].trace_ids)
        fields["runs"] = tuple(
            _named_run(run, run_ids.get(run.trace_id)) if is_own else _shared_run(run) for run in runs
        )
        fields["history"] = tuple(_history(bank, reader, kin))
        return LessonStory.model_validate(fields)

    return bank.ctx.engine.read(bank.tenant_id, read)


def _source(trace_id: str, log: _Log | None, is_own: bool) -> SourceRun:
    plain: dict[str, Any] = {"trace_id": trace_id}
    if log is not None and log.run_id is not None and is_own:
        plain["run_id"] = log.run_id
    if log is not None and log.status in ("passed", "failed"):
        plain["passed"] = log.status == "passed"
    return SourceRun.model_validate(plain)


# -- its life -----------------------------------------------------------------------------------------


def _history(bank: LessonBank, reader: Reader, kin: Kin) -> list[LessonChange]:
    """Every change of stage of the tactic and of the rule, oldest first; a draft has one.

    What only became a candidate while the lesson was further on in another form is no change of the lesson.
    """
    changes = [] if kin.draft is None else [_drafted(kin.draft)]
    for kept in kin.kept:
        changes += _changes(bank, reader, kept.memory.id)
    told: list[LessonChange] = []
    for change in sorted(changes, key=lambda change: (change.at, change.version)):
        further = any(each.stage != "candidate" and each.kept_as != change.kept_as for each in told)
        if change.stage != "candidate" or not further:
            told.append(change)
    return told


def _drafted(draft: Draft) -> LessonChange:
    state = draft_stage(draft)
    return LessonChange(at=state.since, stage=state.stage, why=state.why, kept_as=draft.id, version=1)


def _changes(bank: LessonBank, reader: Reader, memory_id: str) -> Iterator[LessonChange]:
    where: tuple[Condition, ...] = (("id", "=", memory_id), ("receipt_id", "=", None))
    newest = select_items(reader, where, descending=True, limit=_VERSIONS_MAX)
    versions = [item for item in reversed(newest) if item.body is not None]
    for before, item in pairwise((None, *versions)):
        assert item is not None
        kept = Kept(held_of(item).memory, item.created_at)
        state = state_of(kept)
        earlier = None if before is None else Kept(held_of(before).memory, before.created_at)
        if earlier is not None and _standing(earlier) == _standing(kept):
            continue
        plain: dict[str, Any] = {
            "at": item.created_at,
            "stage": state.stage,
            "why": state.why,
            "kept_as": memory_id,
            "version": item.version,
        }
        if earlier is not None:
            plain["before"] = state_of(earlier).stage
        plan_id = _plan_of(bank, reader, item)
        yield LessonChange.model_validate(plain if plan_id is None else plain | {"plan_id": plan_id})


def _standing(kept: Kept) -> tuple[LessonStage, bool]:
    """What a change of a lesson is a change of: its stage, and whether a person has signed it."""
    return state_of(kept).stage, kept.memory.status == "pinned"


def _plan_of(bank: LessonBank, reader: Reader, item: Item) -> str | None:
    """The plan that left a record in this version: what a plan does and what is told of it are written at one time."""
    where: tuple[Condition, ...] = (("kind", "=", "plan"), ("created_at", "=", item.created_at))
    for row in select(reader, ITEMS, where, into=Item, order=("created_at", "id", "version")):
        if row.user_id != bank.owner or row.body is None:
            continue
        if any((id_, after) == (item.id, item.version) for id_, _, after in plan_of(row).touched):
            return row.id
    return None
