"""Lessons of a bank with their measured effects, and paging through everything else in a bank. Read-only.

A lesson is a tactic written by a person or a model, a learned rule, or a rule's draft that was not submitted yet. It is
read from that record, and from the runs that had it or were held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from muniment.core.canonical import short_id
from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.ports.rows import by_ids, select
from muniment.core.ports.schema import ITEMS
from muniment.core.scope import bank_level
from muniment.errors import InvalidInput, NotFound
from muniment.learning._lesson_words import condition_words, sentence_of, texts_in
from muniment.learning.banks import held_of
from muniment.learning.plans import plan_of
from muniment.learning.records import (
    KeptKind,
    Lesson,
    LessonChange,
    LessonEffect,
    LessonEvidence,
    LessonGuess,
    LessonOrigin,
    LessonRun,
    LessonStage,
    LessonState,
    LessonStory,
    LessonUse,
    LessonWhen,
    SourceRun,
    StoredMemory,
    Tally,
)
from muniment.learning.uses import effect_of, with_counts
from muniment.store.items import Item, latest, select_items
from muniment.store.lists.seeking import each_made, find_listed, merged, read_listed, seek

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader
    from muniment.learning.plans import PlanState
    from muniment.store.context import Context
    from muniment.store.lists.seeking import Make

__all__ = [
    "DROPPED",
    "LIVE",
    "SIGNED",
    "KeptLesson",
    "LessonBank",
    "find_lesson",
    "get_lesson",
    "lesson_now",
    "page_bodies",
    "page_lessons",
    "page_memories",
    "page_plans",
    "rule_id_of",
]

LIVE = ("active", "pinned", "temporary")
"""The statuses of records neither retired nor pruned."""
SIGNED, DROPPED = "signed", "dropped"
"""Reasons of plans made by a signature or a drop; followed by the name or the given reason."""
KINDS: tuple[KeptKind, ...] = ("tactic", "rule", "draft")
_DECIDED = {SIGNED: "signed by {}", DROPPED: "dropped: {}", "undone": "the plan {} was taken back"}
_RULE_STAGES: dict[str, LessonStage] = {"canary": "trial", "active": "active", "retired": "retired"}
_CONFIDENCE = 0.95
_NEWEST = 5
"""Runs of a lesson shown in a list."""
_VERSIONS_MAX = 500
"""Versions of a record read for its history, newest first."""


# -- pages --------------------------------------------------------------------------------------------


def page_memories(
    ctx: Context, tenant_id: str, owner: str, kinds: Iterable[str], asked: ListQuery, *, include_all: bool
) -> Iterator[Placed[StoredMemory]]:
    """Page through the learned records of some kinds, live or all, in the order they were first stored."""

    def make(reader: Reader, items: Sequence[Item]) -> Sequence[StoredMemory]:
        kept = [held_of(item).memory for item in items]
        return with_counts(reader, owner, kept, ctx.policy.learn.lessons.uses_max)

    statuses: tuple[str | None, ...] = (None,) if include_all else LIVE
    reads = [read_listed(kind, owner, make, asked, status) for kind in kinds for status in statuses]
    return seek(ctx, tenant_id, merged(*reads), asked)


def page_bodies(
    ctx: Context, tenant_id: str, owner: str, kind: str, asked: ListQuery
) -> Iterator[Placed[dict[str, Any]]]:
    """Page through the bodies of a bank's event logs or drafts."""
    return seek(ctx, tenant_id, read_listed(kind, owner, each_made(lambda item: item.plain()), asked), asked)


def page_plans(ctx: Context, tenant_id: str, owner: str, asked: ListQuery) -> Iterator[Placed[PlanState]]:
    return seek(ctx, tenant_id, read_listed("plan", owner, each_made(plan_of), asked), asked)


# -- lessons ------------------------------------------------------------------------------------------

UsesOf = Callable[["Reader", "StoredMemory"], Sequence["LessonUse"]]
"""The judged runs of a tactic or a rule of the bank, oldest first, as used for its statistics."""


class LessonBank(NamedTuple):
    """A bank with a function that reads uses, since rules are in a room above this one."""

    ctx: Context
    tenant_id: str
    owner: str
    uses_of: UsesOf


class KeptLesson(NamedTuple):
    """The current version of the record behind a lesson."""

    id: str
    kind: KeptKind
    memory: StoredMemory | None
    """The tactic or the rule; None for a draft."""
    record: Mapping[str, Any]
    state: LessonState


def page_lessons(bank: LessonBank, stage: str | None, asked: ListQuery) -> Iterator[Placed[Lesson]]:
    """Page through the lessons of one stage, or all but the retired, in the order they were first written."""
    _check_stage(stage)
    ctx, tenant_id, owner, _ = bank

    def make(reader: Reader, items: Sequence[Item]) -> list[KeptLesson | None]:
        return [_asked_for(bank, reader, item, stage, asked) for item in items]

    statuses = ("retired",) if stage == "retired" else LIVE
    reads = [read_listed(kind, owner, make, asked, status) for kind in ("tactic", "rule") for status in statuses]
    if stage in (None, "candidate"):
        reads.append(read_listed("draft", owner, make, asked))
    found: Make[KeptLesson] = make
    for each in seek(ctx, tenant_id, merged(*reads), asked, find_listed(KINDS, owner, found)):
        yield Placed(each.place, None if each.value is None else _shown(bank, each.value))


def lesson_now(bank: LessonBank, lesson_id: Any) -> Lesson:
    """A lesson as listed."""
    return _shown(bank, bank.ctx.engine.read(bank.tenant_id, lambda reader: find_lesson(bank, reader, lesson_id)))


def find_lesson(bank: LessonBank, reader: Reader, lesson_id: Any) -> KeptLesson:
    """Find a lesson by its id; lessons of other banks do not exist here (LG-02)."""
    item = latest(reader, lesson_id) if isinstance(lesson_id, str) else None
    kept = None if item is None or item.user_id != bank.owner or item.body is None else _kept(item)
    if kept is None or (item is not None and item.status == "pruned"):
        raise NotFound(
            f"no lesson {lesson_id!r:.80} in this bank", path="$.lesson_id", hint="lessons() lists those there are"
        )
    return kept


def get_lesson(bank: LessonBank, lesson_id: Any) -> LessonStory:
    """A lesson with its history."""

    def read(reader: Reader) -> LessonStory:
        kept = find_lesson(bank, reader, lesson_id)
        uses = () if kept.memory is None else bank.uses_of(reader, kept.memory)
        fields = _fields(bank, reader, kept, uses)
        runs = [_run_of(use) for use in reversed(uses)]
        traces = (*fields["evidence"].trace_ids, *(run.trace_id for run in runs))
        logs = _logs(bank, reader, traces)
        is_own = fields["level"] == "user"
        fields["learnt_from"] = tuple(_source(each, logs.get(each), is_own) for each in fields["evidence"].trace_ids)
        fields["runs"] = tuple(_named_run(run, logs, is_own) for run in runs)
        fields["history"] = tuple(_history(bank, reader, kept))
        return LessonStory.model_validate(fields)

    return bank.ctx.engine.read(bank.tenant_id, read)


def rule_id_of(tenant_id: str, owner: str, draft_id: str) -> str:
    """The id of the rule that a draft becomes, unless it is merged."""
    return short_id("rule", [tenant_id, owner, draft_id])


def _check_stage(stage: Any) -> None:
    if stage is not None and stage not in get_args(LessonStage):
        hint = f"one of {', '.join(get_args(LessonStage))}"
        raise InvalidInput(f"{stage!r:.40} is not a stage of a lesson", path="$.stage", hint=hint)


def _asked_for(bank: LessonBank, reader: Reader, item: Item, stage: str | None, asked: ListQuery) -> KeptLesson | None:
    """The lesson of a record, if it is one and matches. A draft that became a rule is listed as that rule."""
    kept = _kept(item)
    if kept is None or stage not in (None, kept.state.stage):
        return None
    if kept.kind == "draft" and latest(reader, rule_id_of(bank.tenant_id, bank.owner, kept.id)) is not None:
        return None
    said = _sentence(kept.record), _when(kept.record).words, kept.id
    return kept if asked.q is None or matches(asked.q, *said) else None


def _kept(item: Item) -> KeptLesson | None:
    """The lesson of a record; None for other kinds, and for rules a person wrote into the rulebook."""
    if item.kind == "draft":
        state = LessonState(stage="candidate", since=item.created_at, why="drafted; nobody is told before it is tested")
        return KeptLesson(item.id, "draft", None, item.plain()["draft"], state)
    if item.kind not in ("tactic", "rule"):
        return None
    memory = held_of(item).memory
    if memory.layer == "user":
        return None
    return KeptLesson(
        memory.id,
        "tactic" if memory.kind == "tactic" else "rule",
        memory,
        memory.record,
        _state(memory, item.created_at),
    )


# -- the stage ----------------------------------------------------------------------------------------


def _state(memory: StoredMemory, written_at: str) -> LessonState:
    """The stage of a tactic or a rule, from its record unless a person or a plan changed it."""
    stage, held = _stage_of(memory), memory.lesson
    decided = _decided_by_a_person(memory)
    if held is not None and held.stage == stage:
        return held if decided is None else held.model_copy(update={"why": decided})
    return LessonState(stage=stage, since=written_at, why=decided or _why(memory, stage))


def _stage_of(memory: StoredMemory) -> LessonStage:
    if memory.status not in LIVE:
        return "retired"
    if memory.kind == "rule":
        return _RULE_STAGES.get(memory.stage or "drafted", "candidate")
    if memory.status == "pinned" or memory.lesson is None:
        return "active"
    return memory.lesson.stage


def _decided_by_a_person(memory: StoredMemory) -> str | None:
    """The reason, if the last change was made by a person: a signature, a drop, an undo."""
    reasons = memory.reason_keys
    if len(reasons) < 2 or reasons[0] not in _DECIDED:
        return None
    return _DECIDED[reasons[0]].format(reasons[1])


def _why(memory: StoredMemory, stage: LessonStage) -> str:
    if memory.status == "pinned":
        return "a person keeps it"
    if memory.kind == "rule":
        return f"the rule is {memory.stage or 'drafted'}"
    if stage == "active" and memory.lesson is None:
        return "from before lessons were tried first"
    return ", ".join(each.replace("_", " ") for each in memory.reason_keys) or "a plan says so"


# -- the fields ---------------------------------------------------------------------------------------


def _shown(bank: LessonBank, kept: KeptLesson) -> Lesson:
    def read(reader: Reader) -> Lesson:
        uses = () if kept.memory is None else bank.uses_of(reader, kept.memory)
        return Lesson.model_validate(_fields(bank, reader, kept, uses))

    return bank.ctx.engine.read(bank.tenant_id, read)


def _fields(bank: LessonBank, reader: Reader, kept: KeptLesson, uses: Sequence[LessonUse]) -> dict[str, Any]:
    memory, record = kept.memory, kept.record
    level = bank_level(bank.owner)
    is_own = level == "user"
    effect = effect_of(uses)
    had, held_out = effect.had, effect.held_out
    if not uses and kept.kind == "tactic" and memory is not None:  # counted before runs had rows of their own
        had, held_out = memory.with_tally, memory.without_tally
    traces = tuple(texts_in(record, "evidence", "trace_ids") or (() if memory is None else memory.sources))
    newest = [_run_of(use) for use in reversed(uses[-_NEWEST:])]
    logs = _logs(bank, reader, (*traces, *(run.trace_id for run in newest)))
    cited = texts_in(record, "lesson", "event_ids") if is_own else ()
    run_ids = [log.run_id for trace in traces if is_own and (log := logs.get(trace)) is not None and log.run_id]
    plain: dict[str, Any] = {
        "lesson_id": kept.id,
        "kind": kept.kind,
        "text": _sentence(record),
        "when": _when(record),
        "stage": kept.state.stage,
        "since": kept.state.since,
        "why": kept.state.why,
        "signed": memory is not None and memory.status == "pinned",
        "origin": _origin(record),
        "level": level,
        "created_at": kept.state.since if memory is None else memory.created_at,
        "evidence": LessonEvidence(trace_ids=traces, event_ids=tuple(dict.fromkeys(cited)), run_ids=tuple(run_ids)),
        "effect": _effect(had, held_out, uses, _guess(record)),
        "uses": had.n,
        "held_out": held_out.n,
        "newest": tuple(_named_run(run, logs, is_own) for run in newest),
    }
    for name, tally in (("cost", had), ("cost_without", held_out)):
        if tally.n and tally.cost_sum:
            plain[name] = round(tally.cost_sum / tally.n, 4)
    return plain


def _proposed(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The rule in a draft; any other record unchanged."""
    proposed = record.get("proposed_rule")
    return proposed if isinstance(proposed, Mapping) else record


def _sentence(record: Mapping[str, Any]) -> str:
    said = _proposed(record)
    return sentence_of(said.get("summary") or said.get("body") or said.get("title"))


def _when(record: Mapping[str, Any]) -> LessonWhen:
    said = record.get("lesson")
    when = said.get("when") if isinstance(said, Mapping) else None
    predicates = tuple(texts_in(record, "predicates") or texts_in(_proposed(record), "applicability", "predicates"))
    return LessonWhen(words=condition_words(predicates, when if isinstance(when, str) else None), predicates=predicates)


def _origin(record: Mapping[str, Any]) -> LessonOrigin:
    said = record.get("lesson")
    named = said.get("origin") if isinstance(said, Mapping) else None
    return next((each for each in get_args(LessonOrigin) if each == named), "contrast")


def _guess(record: Mapping[str, Any]) -> LessonGuess | None:
    """The tallies of a draft's source runs."""
    held = record.get("learnt", record.get("evidence"))
    sides = [held.get(side) for side in ("with", "without")] if isinstance(held, Mapping) else []
    if len(sides) != 2 or not all(isinstance(side, Mapping) for side in sides):
        return None
    had, without = (Tally.from_wire(dict(side)) for side in sides if side is not None)
    return LessonGuess(had=had, without=without)


def _effect(had: Tally, held_out: Tally, uses: Sequence[LessonUse], guess: LessonGuess | None) -> LessonEffect:
    found = effect_of(uses)
    plain: dict[str, Any] = {"had": _whole(had), "held_out": _whole(held_out), "strata": found.strata}
    if guess is not None:
        plain["guess"] = guess
    if found.difference is not None:
        low, high = found.bounds(_CONFIDENCE)
        figures = {"difference": found.difference, "low": low, "high": high}
        plain |= {name: round(value, 4) for name, value in figures.items()}
    return LessonEffect.model_validate(plain)


def _whole(tally: Tally) -> Tally:
    """All figures, including zeros."""
    return Tally(n=tally.n, passes=tally.passes, cost_sum=tally.cost_sum)


# -- its runs -----------------------------------------------------------------------------------------


class _Log(NamedTuple):
    id: str
    run_id: str | None
    status: str


def _run_of(use: LessonUse) -> LessonRun:
    named = {name: value for name, value in use.to_wire().items() if name in LessonRun.model_fields}
    return LessonRun.model_validate(named)


def _logs(bank: LessonBank, reader: Reader, trace_ids: Sequence[str]) -> dict[str, _Log]:
    """The run and outcome for each trace."""
    ids = tuple(dict.fromkeys(trace_ids))
    where: tuple[Condition, ...] = (("kind", "=", "event_log"), ("user_id", "=", bank.owner))
    return {log.id: log for log in by_ids(reader, ITEMS, ids, into=_Log, where=where)}


def _named_run(run: LessonRun, logs: Mapping[str, _Log], is_own: bool) -> LessonRun:
    """A run with its id. If several users can read it, without the id and without the digest of its task, against which
    guesses could be checked.
    """
    if not is_own:
        return LessonRun.model_validate({name: value for name, value in run.to_wire().items() if name != "task"})
    log = logs.get(run.trace_id)
    return (
        run if log is None or log.run_id is None else LessonRun.model_validate({**run.to_wire(), "run_id": log.run_id})
    )


def _source(trace_id: str, log: _Log | None, is_own: bool) -> SourceRun:
    plain: dict[str, Any] = {"trace_id": trace_id}
    if log is not None and log.run_id is not None and is_own:
        plain["run_id"] = log.run_id
    if log is not None and log.status in ("passed", "failed"):
        plain["passed"] = log.status == "passed"
    return SourceRun.model_validate(plain)


# -- stages -------------------------------------------------------------------------------------------


def _history(bank: LessonBank, reader: Reader, kept: KeptLesson) -> Iterator[LessonChange]:
    """Every change of stage, oldest first; a draft has one."""
    if kept.memory is None:
        yield LessonChange(at=kept.state.since, stage=kept.state.stage, why=kept.state.why, version=1)
        return
    where: tuple[Condition, ...] = (("id", "=", kept.id), ("receipt_id", "=", None))
    newest = select_items(reader, where, descending=True, limit=_VERSIONS_MAX)
    versions = [item for item in reversed(newest) if item.body is not None]
    for before, item in pairwise((None, *versions)):
        assert item is not None
        memory = held_of(item).memory
        state, signed = _state(memory, item.created_at), memory.status == "pinned"
        plain: dict[str, Any] = {"at": item.created_at, "stage": state.stage, "why": state.why, "version": item.version}
        if before is not None:
            earlier = held_of(before).memory
            was = _state(earlier, before.created_at).stage
            if (was, earlier.status == "pinned") == (state.stage, signed):
                continue
            plain["before"] = was
        plan_id = _plan_of(bank, reader, item)
        yield LessonChange.model_validate(plain if plan_id is None else plain | {"plan_id": plan_id})


def _plan_of(bank: LessonBank, reader: Reader, item: Item) -> str | None:
    """The plan that wrote this version of a record: a plan and its records are written together."""
    where: tuple[Condition, ...] = (("kind", "=", "plan"), ("created_at", "=", item.created_at))
    for row in select(reader, ITEMS, where, into=Item, order=("created_at", "id", "version")):
        if row.user_id != bank.owner or row.body is None:
            continue
        if any((id_, after) == (item.id, item.version) for id_, _, after in plan_of(row).touched):
            return row.id
    return None
