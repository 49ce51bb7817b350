"""Adding a person's lesson to a bank: checked like a model's, stored by a plan, and tried like any other.

Evidence is optional: without it nothing can be checked against a run, and the trial alone decides. If evidence is
named, it must contain the lesson's content. Only a signature makes a lesson active directly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from muniment.contracts.learning import MemoryActionPlan
from muniment.core.canonical import child_path
from muniment.core.ports.rows import get
from muniment.core.ports.schema import ENTRIES
from muniment.core.predicates import parse
from muniment.core.record import RULECRAFT_VERSION, Absent, Items, Record
from muniment.core.requests import Expect, Request, TextOrNone, checked
from muniment.core.scope import bank_level, bank_names
from muniment.errors import Conflict, Forgotten, InvalidInput, LessonRefused, NotFound
from muniment.learning._lesson_writing import (
    CheckedLesson,
    KeptLesson,
    LessonProposal,
    Refused,
    ShownEvent,
    ShownRun,
    check_lesson,
    check_words,
    keep_lessons,
    lesson_text,
)
from muniment.learning.banks import find_memory, lock_bank, write_bank
from muniment.learning.event_logs import peer_of
from muniment.learning.keys import BankIds, intent_key, shared_keys_of
from muniment.learning.lesson_asking import shown_event, standards_of
from muniment.learning.plans import ended_draft, made_draft, run_plan
from muniment.learning.projection import trace_id_of
from muniment.learning.recalling import bucket_named, intent_given
from muniment.learning.records import IntentParts, RunFacts
from muniment.memory.patches import texts_of
from muniment.runs.snapshots import run_item
from muniment.store.items import latest
from muniment.store.ledger import RunState, entry_of_row
from muniment.store.reading import list_entries

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.learning.records import StoredMemory
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = ["AddedLesson", "add_lesson"]

_EVIDENCE_MAX = 24
_EVENT_CHARS_MAX = 20_000
_PREDICATE = re.compile(r"==|!=|<=|>=|&&|\|\||\.\w+\(|\bin\s*\[|^!|[<>]\s*-?\d|^\w*_\w*$")
"""Operators of a predicate that do not occur in a sentence; or a single tag."""
_TEXT_CHARS_MAX = 2_000
_PATHS: Mapping[str, str] = {
    "no_condition": "$.when",
    "no_evidence": "$.evidence",
    "unknown_event": "$.evidence",
}
_HINTS: Mapping[str, str] = {
    "no_condition": "say when it holds (when=), or for which kind of work (intent=)",
    "not_in_evidence": "cite the event that says it, or leave evidence out: then its trial alone decides",
    "nobody_called_it": "cite a run that called it, or leave evidence out",
    "repeats_an_event": "say what to do in your own words",
    "tried_before": "`undo` the plan that retired it, or say it for another case",
    "too_long": "one sentence is enough",
    "secret": "leave it out",
    "orders": "say what helps in the work; what an agent may do is for rules and policies",
}


class AddedLesson(Record):
    """The result of adding a lesson."""

    lesson_id: str
    text: str
    """As shown to an agent, the condition first."""
    when: str
    event_ids: Items[str]
    """The supporting events."""
    fate: Literal["written", "merged", "known"]
    """A new lesson; evidence for an existing one; or nothing new."""
    plan_id: Absent[str] = None
    """The plan that wrote it, which `undo` can revert."""


class LessonRequest(Request):
    """A person's input for a lesson."""

    text: Annotated[
        str,
        Expect(
            f"a lesson is a sentence of at most {_TEXT_CHARS_MAX} characters",
            lambda given: given.strip() and len(given) <= _TEXT_CHARS_MAX,
        ),
    ]
    when: TextOrNone


class _Cited(NamedTuple):
    """The resolved evidence: runs with their cited events, and the known facts about the work."""

    runs: tuple[ShownRun, ...]
    facts: tuple[RunFacts, ...]

    @property
    def event_ids(self) -> tuple[str, ...]:
        return tuple(event.id for run in self.runs for event in run.events)


def add_lesson(
    ctx: Context,
    scope: Scope,
    owner: str,
    text: Any,
    *,
    evidence: Any,
    when: Any,
    intent: Any,
    bucket_key: Any,
) -> AddedLesson:
    """Check a lesson against its evidence and write it by a plan. Idempotent."""
    asked = checked(LessonRequest, text=text, when=when)
    predicates, words = _condition(asked.when)
    ids = texts_of(evidence, "$.evidence")
    if len(ids) > _EVIDENCE_MAX:
        raise InvalidInput(f"at most {_EVIDENCE_MAX} events or runs are cited", path="$.evidence")
    named = intent_given(intent)
    bucket = _bucket(bucket_key)
    cited = _cited(ctx, scope.tenant_id, owner, ids)
    keys = _keys(named, bucket, cited.facts)
    said = " ".join(asked.text.split())
    proposal = LessonProposal(said, words, cited.event_ids)
    _check(ctx, proposal, cited, is_bound=bool(predicates) or "intent_key" in keys)
    proposal = proposal._replace(event_ids=cited.event_ids[:_EVIDENCE_MAX])
    traces = tuple(run.trace_id for run in cited.runs)
    lesson = CheckedLesson(proposal, "person", traces, keys, predicates)
    return ctx.engine.write(scope.tenant_id, lambda tx: _write(ctx, tx, scope.tenant_id, owner, lesson, cited))


# -- what is handed in --------------------------------------------------------------------------------


def _condition(when: str | None) -> tuple[tuple[str, ...], str]:
    """Parse a condition as a predicate, or as words. A malformed predicate is an error."""
    said = " ".join((when or "").split())
    if _PREDICATE.search(said) is None:
        return (), said
    return (parse(said, path="$.when").text,), ""


def _bucket(given: Any) -> str | None:
    try:
        return bucket_named(given)
    except InvalidInput as error:
        raise InvalidInput(error.message, path="$.bucket_key", hint=error.hint) from None


def _keys(named: IntentParts, bucket: str | None, facts: Sequence[RunFacts]) -> dict[str, str]:
    """The kind of work it is stored for: as given, else that of the cited runs if they agree."""
    if any(value is not None for _, value in named):
        work = intent_key(named)
    else:
        shared = {shared_keys_of(each).get("intent_key", "") for each in facts}
        work = shared.pop() if len(shared) == 1 else ""
    keys = {"intent_key": work, "bucket_key": bucket}
    return {name: key for name, key in keys.items() if key}


# -- evidence -----------------------------------------------------------------------------------------


def _cited(ctx: Context, tenant_id: str, owner: str, ids: Sequence[str]) -> _Cited:
    """The cited events and runs, restricted to those the bank may see."""
    runs: dict[str, dict[str, ShownEvent]] = {}
    has_words = bank_level(owner) == "user"
    for index, id_ in enumerate(ids):
        path = child_path("$.evidence", index)
        for entry in _entries(ctx, tenant_id, owner, id_, path):
            shown = shown_event(entry, _EVENT_CHARS_MAX, has_words=has_words)
            if shown is not None:
                runs.setdefault(trace_id_of(entry.scope.run_id), {})[entry.id] = shown
    known = {trace_id: _facts(ctx, tenant_id, owner, trace_id) for trace_id in runs}
    told = [_shown(trace_id, tuple(events.values()), known[trace_id]) for trace_id, events in runs.items()]
    return _Cited(tuple(told), tuple(each for each in known.values() if each is not None))


def _shown(trace_id: str, events: tuple[ShownEvent, ...], facts: RunFacts | None) -> ShownRun:
    if facts is None:
        return ShownRun(trace_id, False, (), events)
    return ShownRun(trace_id, facts.passed, (*facts.violated, *facts.reason_codes), events)


def _entries(ctx: Context, tenant_id: str, owner: str, id_: str, path: str) -> list[LedgerEntry]:
    """The event with this id, or the events of the run with this id. Inaccessible events are looked up as runs too, so
    that response time does not reveal that they exist.
    """

    def look(reader: Reader) -> LedgerEntry | RunState:
        row = get(reader, ENTRIES, (id_,))
        if row is not None and _may_see(owner, (entry := entry_of_row(tenant_id, row)).scope):
            return entry
        return RunState.from_wire(run_item(reader, id_).plain())

    try:
        found = ctx.engine.read(tenant_id, look)
    except NotFound:
        found = None
    if found is None or not _may_see(owner, found.scope):
        raise NotFound(
            f"no event or run {id_!r:.80} that this bank may see", path=path, hint="ids of events, or of runs"
        )
    if isinstance(found, RunState):
        of = found.scope
        return list(list_entries(ctx, tenant_id, of.user_id, of.session_id, of.run_id))
    if found.body is None:
        raise Forgotten(f"the event {id_} was forgotten", path=path, hint=f"receipt {found.receipt_id} says when")
    return [found]


def _may_see(owner: str, scope: Scope) -> bool:
    """Return whether the scope belongs to the bank's user or agent; for a tenant's bank, to the tenant."""
    return all(getattr(scope, name) == value for name, value in bank_names(owner).items())


def _facts(ctx: Context, tenant_id: str, owner: str, trace_id: str) -> RunFacts | None:
    """The folded facts of the run, if this bank learned from it."""
    item = ctx.engine.read(tenant_id, lambda reader: latest(reader, trace_id))
    if item is None or item.body is None or item.user_id != owner or item.kind != "event_log":
        return None
    body = item.plain()
    return peer_of(body["facts"]) if body["is_final"] else None


def _check(ctx: Context, proposal: LessonProposal, cited: _Cited, *, is_bound: bool) -> None:
    standards = standards_of(ctx, is_bound=is_bound)
    if cited.runs:
        called = frozenset(
            feature.name.removeprefix("tool:")
            for facts in cited.facts
            for feature in facts.features
            if feature.name.startswith("tool:")
        )
        refusal = check_lesson(proposal, cited.runs, called, standards)
    else:
        refusal = check_words(proposal, standards)
    if refusal is not None:
        raise _error(refusal)


def _error(refusal: Refused) -> LessonRefused:
    return LessonRefused(
        refusal.why,
        path=_PATHS.get(refusal.code, "$.text"),
        hint=_HINTS.get(refusal.code),
        details={"reason": refusal.code},
    )


# -- writing ------------------------------------------------------------------------------------------


def _write(
    ctx: Context, tx: Transaction, tenant_id: str, owner: str, lesson: CheckedLesson, cited: _Cited
) -> AddedLesson:
    lock_bank(tx, owner)
    gone = [id_ for id_ in cited.event_ids if (row := get(tx, ENTRIES, (id_,))) is None or row.receipt_id is not None]
    if gone:
        raise Forgotten(f"the event {gone[0]} was forgotten meanwhile", path="$.evidence")
    now = ctx.now()
    ids = BankIds(f"{tenant_id}\n{owner}", lambda id_: _is_erased(tx, id_))
    kept = keep_lessons([lesson], lambda id_: _held(tx, owner, id_), ids, now=now, ttl=ctx.policy.learn.tactic_ttl)[0]
    if kept.fate == "refused":
        raise _error(Refused("tried_before", f"the same lesson was tried and retired: {kept.id}"))
    plan_id = None if kept.record is None else _planned(ctx, tx, tenant_id, owner, kept, cited.event_ids, now)
    fate = "known" if kept.record is None else kept.fate
    told = {
        "lesson_id": kept.id,
        "text": lesson_text(lesson.proposal),
        "when": lesson.proposal.when or " && ".join(lesson.predicates),
        "event_ids": list(lesson.proposal.event_ids),
        "fate": fate,
    }
    return AddedLesson.from_wire(told if plan_id is None else told | {"plan_id": plan_id})


def _is_erased(reader: Reader, id_: str) -> bool:
    item = latest(reader, id_)
    return item is not None and item.body is None


def _held(reader: Reader, owner: str, id_: str) -> StoredMemory | None:
    held = find_memory(reader, (owner,), id_)
    return None if held is None else held.memory


def _planned(
    ctx: Context,
    tx: Transaction,
    tenant_id: str,
    owner: str,
    kept: KeptLesson,
    event_ids: Sequence[str],
    now: str,
) -> str:
    """Write a lesson by a plan of its own, which is forgotten together with its sources."""
    assert kept.record is not None
    plan_id = ctx.ids.new("plan")
    ref = f"{plan_id}/{kept.id}"
    action = {
        "op": "WRITE",
        "target_store": "ReuseBuffer",
        "target_ids": [kept.id],
        "payload_ref": ref,
        "reason_keys": ["lesson", "person"],
    }
    common = {"schema_version": RULECRAFT_VERSION, "created_at": now}
    plan = MemoryActionPlan.from_wire(common | {"plan_id": plan_id, "actions": [action]})
    payloads = {ref: kept.record}
    ran = run_plan(ctx, tx, owner, plan, payloads, now)
    if ran.applied.aborted:
        why = next((record.error for record in ran.applied.records if record.error), "it was refused")
        raise Conflict(f"the lesson cannot be written: {why}", path="$.text")
    ended = ended_draft(plan_id, "applied", ran.applied, ran.touched)
    write_bank(ctx, tx, tenant_id, owner, [made_draft(plan, payloads, sources=event_ids), *ran.drafts, ended])
    return plan_id
