"""Projections of learned memory, logs of runs, folds, plans and recalls, from their entries. Pure."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from muniment.core.canonical import short_id
from muniment.core.record import Record
from muniment.core.scope import is_bank
from muniment.errors import InvalidRecord
from muniment.runs.fold import change_of, erased, sources_named
from muniment.store.admission import is_id
from muniment.store.derivation import Projections, of_patches
from muniment.store.items import Change, Item, digest_name
from muniment.store.ledger import (
    DRAFT_MADE,
    FOLD_MADE,
    LESSONS_PROPOSED,
    LESSONS_USED,
    MEMORY_KEPT,
    MEMORY_RECALLED,
    PLAN_ENDED,
    PLAN_MADE,
    RUN_LOGGED,
    WORKING_SET_CHANGED,
    LedgerEntry,
)

if TYPE_CHECKING:
    from muniment.learning.records import MemoryKind, StoredMemory
    from muniment.store.ledger import EntryKind

__all__ = [
    "core_name",
    "held_record",
    "named_id",
    "project_draft",
    "project_event_log",
    "project_fold",
    "project_lesson_report",
    "project_memory",
    "project_plan",
    "project_recall",
    "project_working_set",
    "projections",
    "trace_id_of",
]

Lookup = Callable[[str], Item | None]
R = TypeVar("R", bound=Record)


def trace_id_of(run_id: str) -> str:
    """The id that a run's EventLog and TraceCapsule share."""
    return short_id("trc", run_id)


def core_name(intent_key: str | None) -> str | None:
    """The lookup name of a kind of work: the intent's family or, without one, its domain.

    So a query that knows only the family matches too; records of other domains clash, and are removed later.
    """
    from muniment.learning.keys import read_intent_key

    if intent_key is None:
        return None
    parts = read_intent_key(intent_key)
    if parts is None:
        return digest_name(intent_key)
    return digest_name(f"family:{parts.task_family}" if parts.task_family else f"domain:{parts.domain_tag or ''}")


def project_memory(
    kind: str,
    admits: Callable[[StoredMemory | None, StoredMemory, Lookup], bool] | None = None,
    place_of: Callable[[StoredMemory], Any] = lambda memory: memory.record.get("intent_key"),
) -> Callable[[LedgerEntry, Lookup], list[Change]]:
    """The projection of one kind of learned record: its next version, in whatever store.

    `admits` is called with the previous version, if any, and the new one; `place_of` returns the kind of work a record
    is looked up by.
    """

    def project(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
        said = entry.metadata
        if not is_bank(entry.scope.user_id) or said.get("event") != MEMORY_KEPT:
            return []
        from muniment.learning.records import StoredMemory

        memory = held_record(entry, "memory", StoredMemory)
        if memory is None:
            return []
        before = lookup(memory.id)
        if memory.kind != kind or memory.id != said.get("id") or not _follows(entry, before, memory.version):
            return []
        if admits is not None and not admits(_memory_in(before), memory, lookup):
            return []
        text_entry = entry.id if entry.kind == "tool_result" else _text_entry(before)
        body: dict[str, Any] = {"memory": memory.to_wire(), "text_entry": text_entry}
        sources = (entry.id, *memory.sources, *memory.parents, *cited_events(memory))
        place = place_of(memory)
        name = core_name(place if isinstance(place, str) else None)
        return [change_of(entry, memory.id, kind, memory.status, body, sources, name)]

    return project


def cited_events(memory: StoredMemory) -> tuple[str, ...]:
    """The events a lesson is based on: it is forgotten with any of them."""
    said = memory.record.get("lesson")
    ids = said.get("event_ids") if isinstance(said, dict) else None
    return tuple(str(each) for each in ids if is_id(each)) if isinstance(ids, list | tuple) else ()


def _follows(entry: LedgerEntry, before: Item | None, version: int) -> bool:
    if before is None:
        return version == 1
    return before.user_id == entry.scope.user_id and before.body is not None and version == before.version + 1


def _memory_in(before: Item | None) -> StoredMemory | None:
    from muniment.learning.records import StoredMemory

    return None if before is None else StoredMemory.from_wire(before.plain()["memory"])


def _text_entry(before: Item | None) -> str | None:
    return None if before is None or before.body is None else before.plain().get("text_entry")


def project_event_log(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project a run's log, with the facts for folds. It is forgotten with any event of the run (`forget`)."""
    said = entry.metadata
    id_, run_id = said.get("id"), said.get("run_id")
    if said.get("event") != RUN_LOGGED or not is_bank(entry.scope.user_id) or not isinstance(run_id, str):
        return []
    if id_ != trace_id_of(run_id):
        return []
    from muniment.contracts.runs import EventLog
    from muniment.learning.records import RunFacts

    before = lookup(id_)
    if before is not None and (before.user_id != entry.scope.user_id or before.body is None):
        return []
    try:
        log, facts = EventLog.from_wire(said.get("event_log")), RunFacts.from_wire(said.get("facts"))
    except InvalidRecord:
        return []
    body: dict[str, Any] = {
        "event_log": log.to_wire(),
        "facts": facts.to_wire(),
        "run_id": run_id,
        "is_final": said.get("is_final") is True,
    }
    core = said.get("core")
    status = "open" if not body["is_final"] else "passed" if facts.passed else "failed"
    change = change_of(entry, id_, "event_log", status, body, (entry.id,), core if isinstance(core, str) else None)
    return [change._replace(run_id=run_id)]


def named_id(entry: LedgerEntry, event: str, *, by_bank: bool) -> str | None:
    """The id in an entry of this event, if written by the owner of the event: a bank, or a run."""
    said = entry.metadata
    if said.get("event") != event or is_bank(entry.scope.user_id) is not by_bank:
        return None
    id_ = said.get("id")
    return id_ if isinstance(id_, str) else None


def held_record(entry: LedgerEntry, part: str, kind: type[R]) -> R | None:
    """The record in an entry; None if absent, since our stores always write one."""
    try:
        return kind.from_wire(entry.metadata.get(part))
    except InvalidRecord:
        return None


def project_fold(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    from muniment.contracts.learning import FoldResult

    return _once(entry, lookup, FOLD_MADE, "fold", "result", FoldResult)


def project_draft(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    from muniment.contracts.rules import DistillDraft

    return _once(entry, lookup, DRAFT_MADE, "draft", "draft", DistillDraft)


def project_lesson_report(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project a report on lessons from a model. It contains text of both runs shown, and is forgotten with either."""
    from muniment.learning._lesson_writing import LessonReport

    return _once(entry, lookup, LESSONS_PROPOSED, "lesson_report", "report", LessonReport)


def _once(entry: LedgerEntry, lookup: Lookup, event: str, kind: str, part: str, record: type[Record]) -> list[Change]:
    """A record that is made once, from the sources it names."""
    id_ = named_id(entry, event, by_bank=True)
    held = None if id_ is None or lookup(id_) is not None else held_record(entry, part, record)
    if id_ is None or held is None:
        return []
    return [change_of(entry, id_, kind, "made", {part: held.to_wire()}, sources_named(entry))]


_PLAN_ENDS = ("records", "touched")


def project_plan(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project a plan, and its result: applied, aborted, undone."""
    said = entry.metadata
    id_, event = said.get("id"), said.get("event")
    if event not in (PLAN_MADE, PLAN_ENDED) or not is_bank(entry.scope.user_id) or not isinstance(id_, str):
        return []
    before = lookup(id_)
    if event == PLAN_MADE:
        if before is not None:
            return []
        kept = ("plan", "payloads", "undoes", *_PLAN_ENDS)
        body: dict[str, Any] = {key: said[key] for key in kept if key in said}
        return [change_of(entry, id_, "plan", str(said.get("status", "made")), body, sources_named(entry))]
    if before is None or before.body is None or before.user_id != entry.scope.user_id:
        return []
    body = before.plain() | {key: said[key] for key in (*_PLAN_ENDS, "undone_by") if key in said}
    return [change_of(entry, id_, "plan", str(said.get("status", "applied")), body, sources_named(entry))]


def project_recall(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project a recall and the part that was injected; the newest of a run counts."""
    said = entry.metadata
    id_ = named_id(entry, MEMORY_RECALLED, by_bank=False)
    if id_ is None or _is_of_another_run(entry, before := lookup(id_)):
        return []
    held = {} if before is None or before.body is None else before.plain()
    body = held | {key: said[key] for key in ("request", "response", "injected", "used_ids", "arms") if key in said}
    if "response" not in body or ("response" in said and _answer_in(entry) is None):
        return []  # imported entries are untrusted, and packets read this without further checks
    body |= {"arms": _arms_in(body["arms"])} if "arms" in body else {}
    sources, own = _told_apart(sources_named(entry), said.get("shared_sources"))
    return [change_of(entry, id_, "recall", "answered", body, sources)._replace(turns=own)]


def _answer_in(entry: LedgerEntry) -> Record | None:
    from muniment.contracts.learning import MemoryRecallResponse

    return held_record(entry, "response", MemoryRecallResponse)


def _arms_in(said: Any) -> list[Any]:
    """The drawn arms; invalid ones are skipped."""
    from muniment.learning.records import LessonArm

    found = []
    for each in said if isinstance(said, list) else ():
        with suppress(InvalidRecord):
            found.append(LessonArm.from_wire(each).to_wire())
    return found


def _told_apart(named: tuple[str, ...], shared: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Separate the sources of a recall that get a link each from the records of the user's own bank, which are many and
    share one row. Older entries do not distinguish them, and each gets a link.
    """
    if not isinstance(shared, list):
        return named, ()
    linked = (named[0], *(each for each in named[1:] if each in shared))
    return linked, tuple(sorted(set(named).difference(linked)))


def project_working_set(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    id_ = named_id(entry, WORKING_SET_CHANGED, by_bank=False)
    if id_ is None or _is_of_another_run(entry, lookup(id_)):
        return []
    from muniment.contracts.learning import WorkingSetRecord

    record = held_record(entry, "record", WorkingSetRecord)
    if record is None:
        return []
    return [change_of(entry, id_, "working_set", record.status, {"record": record.to_wire()}, (entry.id,))]


def _is_of_another_run(entry: LedgerEntry, before: Item | None) -> bool:
    scope = entry.scope
    return before is not None and (before.run_id, before.user_id) != (scope.run_id, scope.user_id)


def projections() -> Projections:
    """The item kinds that learning adds to a store (entry point `muniment.projections`)."""
    from muniment.learning.uses import project_lesson_use

    # A learned record with new text is a turn, found by search; one with new figures only is not.
    kept: frozenset[EntryKind] = frozenset({"state_patch", "tool_result"})
    kinds: tuple[MemoryKind, ...] = ("reasoning", "seed", "tactic", "trace_capsule")
    return Projections(
        (
            *(of_patches(kind, erased, project_memory(kind), MEMORY_KEPT, listens=kept) for kind in kinds),
            of_patches("event_log", erased, project_event_log, RUN_LOGGED, id_of_run=trace_id_of),
            of_patches("fold", erased, project_fold, FOLD_MADE),
            of_patches("draft", erased, project_draft, DRAFT_MADE),
            of_patches("lesson_report", erased, project_lesson_report, LESSONS_PROPOSED),
            of_patches("plan", erased, project_plan, PLAN_MADE, PLAN_ENDED),
            of_patches("recall", erased, project_recall, MEMORY_RECALLED),
            of_patches("lesson_use", erased, project_lesson_use, RUN_LOGGED, LESSONS_USED),
            of_patches("working_set", erased, project_working_set, WORKING_SET_CHANGED),
        )
    )
