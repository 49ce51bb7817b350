"""Folding a run into memory (RC-10 … RC-13) in one transaction: log, compare with peers, plan, apply, record.

Slow work is done before the transaction, which verifies that the run is unchanged and that none of its peers was
forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muniment.contracts.learning import (
    FoldResult,
    FoldTrigger,
    MemoryActionPlan,
    MemoryActionRecord,
    MemoryRecallRequest,
    MemoryRecallResponse,
)
from muniment.contracts.runs import EventLog, SelectedRuleMirror, TraceCapsule
from muniment.core.canonical import digest_of, read_canonical
from muniment.core.outside.calling import caught
from muniment.core.ports.engine import Condition, Lock
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import bank_owner, owners_seen
from muniment.errors import Conflict, InvalidInput, StorageFailure
from muniment.learning._distill import Folded, plan_fold, with_report
from muniment.learning._drafts import CLUSTER_MIN
from muniment.learning._features import with_features
from muniment.learning._lesson_writing import KeptLesson, LessonReport, keep_lessons
from muniment.learning._operations import named_traces
from muniment.learning.banks import find_memory, lock_banks, memory_drafts, write_bank
from muniment.learning.event_logs import (
    Finished,
    LogWindow,
    Recalled,
    build_capsule,
    build_event_log,
    build_facts,
    peer_of,
    stream_logs,
    without_words,
)
from muniment.learning.keys import BankIds, intent_key
from muniment.learning.learn_requests import (
    LearnRequest,
    Verdict,
    is_defect,
    keep_verdict,
    keep_verdict_and_end,
    learning_failed,
    with_verdict,
)
from muniment.learning.lesson_asking import LessonsAsked, ask_lessons, with_fates
from muniment.learning.lesson_moving import (
    Moves,
    bank_arms,
    banks_beside,
    count_in_other_bank,
    lesson_moves,
    with_moves,
)
from muniment.learning.plans import applied_draft, find_plan, run_plan, version_of
from muniment.learning.projection import core_name, trace_id_of
from muniment.learning.recalling import latest_recall
from muniment.learning.records import RuleArm, RunFacts, StoredMemory
from muniment.memory.patches import Decided, append_decided, draft_patch
from muniment.packets.builds import builds_of_run
from muniment.store.injection import has_injection_form
from muniment.store.items import Item, latest, latest_of_run, newest_items, select_items
from muniment.store.ledger import DRAFT_MADE, FOLD_MADE, LESSONS_PROPOSED, RUN_LOGGED, EntryReceipt
from muniment.store.reading import list_entries
from muniment.store.secrets import redact_text
from muniment.verify.results import taught_by

if TYPE_CHECKING:
    from muniment.contracts.runs import RunConfig
    from muniment.core.policy import LearnPolicy
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.learning.uses import UseArm
    from muniment.memory.patches import Writer
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft, LedgerEntry

BUILDS_MAX = 64
"""The maximum of a run's last packets named in its log."""

__all__ = [
    "Ending",
    "Learned",
    "find_learned",
    "learn_run",
    "list_drafts",
    "list_event_logs",
]

_TRIES = 3
_MIRRORED = ("rule_id", "version", "type")


class Learned(NamedTuple):
    """The records learned from a run."""

    event_log: EventLog
    capsule: TraceCapsule
    fold: FoldResult
    plan: MemoryActionPlan
    records: tuple[MemoryActionRecord, ...]


class Ending(NamedTuple):
    """The final entry of a run, written together with the records learned from it."""

    writer: Writer
    draft: EntryDraft


class _FoldInputs(NamedTuple):
    """The inputs of a fold, including those that must be unchanged when it is written."""

    finished: Finished
    facts: RunFacts
    peers: list[RunFacts]
    entry_ids: tuple[str, ...]
    arms: tuple[Mapping[str, Any], ...]
    """For each rule that applied to the run: its arm, and its bank."""
    recalled: Mapping[str, Any] | None
    """The run's recall, as recorded."""
    beside: tuple[str, ...]
    """Other banks to be informed of the outcome."""


# -- reading ------------------------------------------------------------------------------------------


def find_learned(ctx: Context, scope: Scope) -> Learned | None:
    """Find the records learned from this run when it ended."""
    return ctx.engine.read(scope.tenant_id, lambda reader: _learned(reader, scope))


def _learned(reader: Reader, scope: Scope) -> Learned | None:
    item = latest(reader, trace_id_of(scope.run_id))
    if item is None or item.user_id not in owners_seen(scope):
        return None
    body = item.plain()
    if not body["is_final"]:
        return None
    log = EventLog.from_wire(body["event_log"])
    assert log.memory_fold is not None
    capsule = version_of(reader, capsule_id(log.trace_id), 1)  # the original version: a later one may be a tombstone
    assert capsule is not None
    return _answer(reader, item.user_id, log, TraceCapsule.from_wire(capsule.record))


def _answer(reader: Reader, owner: str, log: EventLog, capsule: TraceCapsule) -> Learned:
    """The result returned at the time. A plan is gone if any of its source runs was forgotten."""
    assert log.memory_fold is not None
    folded = latest(reader, log.memory_fold.fold_id or "")
    planned = latest(reader, log.memory_fold.action_plan_id or "")
    if folded is None or planned is None:
        raise Conflict(f"what was learnt of {log.trace_id} is incomplete", hint="run `muniment verify`")
    result = FoldResult.from_wire(folded.plain()["result"])
    if planned.body is None:
        gone = {"schema_version": RULECRAFT_VERSION, "plan_id": planned.id, "created_at": result.created_at}
        plan = MemoryActionPlan.from_wire(gone | {"fold_id": result.fold_id, "actions": [], "notes": "forgotten"})
        return Learned(log, capsule, result, plan, ())
    state = find_plan(reader, (owner,), planned.id)
    return Learned(log, capsule, result, state.plan, state.records)


def capsule_id(trace_id: str) -> str:
    return f"{trace_id}.capsule"


def list_event_logs(
    reader: Reader, owner: str, name: str | None = None, newest: int | None = None
) -> list[dict[str, Any]]:
    """The bodies of a bank's EventLogs, newest first: of one kind of work, or all."""
    where: tuple[Condition, ...] = (("kind", "=", "event_log"), ("user_id", "=", owner))
    if name is not None:
        where = (*where, ("name", "=", name))
    order = ("created_at", "id", "version")
    found: dict[str, dict[str, Any]] = {}
    for item in select_items(reader, where, order=order, descending=True, limit=newest):
        if item.body is not None and item.id not in found:
            item.check()
            found[item.id] = cast("dict[str, Any]", read_canonical(item.body))
    return list(found.values())


def list_drafts(reader: Reader, owner: str) -> list[dict[str, Any]]:
    """The bodies of the drafts of a bank, oldest first."""
    where: tuple[Condition, ...] = (("kind", "=", "draft"), ("user_id", "=", owner))
    last = newest_items(reader, where, order=("created_at", "id", "version"))
    return [item.plain() for item in last]


def _see(ctx: Context, scope: Scope, asked: LearnRequest) -> _FoldInputs:
    """Read the run and its peers."""
    entries = list(list_entries(ctx, scope.tenant_id, scope.user_id, scope.session_id, scope.run_id))
    whole = [entry for entry in entries if entry.body is not None]
    owner = bank_owner(scope, asked.level)
    policy = ctx.policy.learn
    name = core_name(intent_key(asked.intent))

    def work(reader: Reader) -> _FoldInputs:
        recalled = latest_recall(reader, scope)
        selection = latest_of_run(reader, "rule_selection", scope.user_id, scope.run_id)
        rules = {} if selection is None else selection.plain()
        finished = replace(
            _finished(ctx, scope, asked, whole, recalled, rules, _sandbox(reader, scope)),
            builds=builds_of_run(reader, scope.run_id, BUILDS_MAX),
        )
        facts = with_features(build_facts(finished))
        if asked.level != "user":
            facts = without_words(facts)
        peers = _peers(reader, owner, name, facts, policy)
        ids = tuple(entry.id for entry in entries)
        beside = banks_beside(reader, scope, owner, facts, recalled, policy) if asked.is_final else ()
        return _FoldInputs(finished, facts, peers, ids, tuple(rules.get("arms", ())), recalled, beside)

    return ctx.engine.read(scope.tenant_id, work)


def _peers(reader: Reader, owner: str, name: str | None, facts: RunFacts, policy: LearnPolicy) -> list[RunFacts]:
    """The newest runs of the same work, read until there are enough; those of other domains are skipped."""
    logs = stream_logs(reader, LogWindow(owner, name=name) if name is not None else LogWindow(owner))
    found = []
    for _, body in logs:
        peer = peer_of(body["facts"])
        if peer.trace_id != facts.trace_id and _is_alike(peer, facts) and _may_teach(peer, policy):
            found.append(peer)
        if len(found) == policy.fold.peers_max:
            break
    return found


def _is_alike(peer: RunFacts, facts: RunFacts) -> bool:
    """Return whether the kind of work is the same. Unknown parts match anything."""
    theirs, ours = peer.intent.domain_tag, facts.intent.domain_tag
    return theirs is None or ours is None or theirs == ours


def _may_teach(peer: RunFacts, policy: LearnPolicy) -> bool:
    """Return whether the policy at the time of its fold let its judge teach; it may have changed since."""
    return peer.judge is None or peer.set_aside is not None or peer.judge in policy.judges


def _finished(
    ctx: Context,
    scope: Scope,
    asked: LearnRequest,
    entries: Sequence[LedgerEntry],
    recalled: Mapping[str, Any] | None,
    rules: Mapping[str, Any],
    sandbox: tuple[dict[str, Any] | None, tuple[str, ...]],
) -> Finished:
    taught = None if asked.result is None else taught_by(asked.result, ctx.policy.learn.judges)
    return Finished(
        trace_id=trace_id_of(scope.run_id),
        entries=entries,
        result=None if taught is None else taught.result,
        judge=None if taught is None else taught.judge,
        set_aside=None if taught is None else taught.set_aside,
        intent=asked.intent,
        state=asked.state,
        bucket_key=asked.bucket_key,
        blocks=asked.blocks,
        cfg=asked.cfg if asked.level == "user" or asked.cfg is None else _without_prompt(asked.cfg),
        cost=asked.cost,
        own_features=asked.features or {},
        recalled=None if recalled is None else _recalled(recalled),
        selected_rules=_mirrored(rules),
        arms=tuple(RuleArm.from_wire(each["arm"]) for each in rules.get("arms", ())),
        reuse=asked.reuse,
        sandbox=sandbox[0],
        sandbox_traces=sandbox[1],
        verifier_ref=asked.verifier_ref,
        encoder=None if ctx.embedder is None else (ctx.embedder.identity, ctx.embedder.dim),
    )


def _mirrored(selection: Mapping[str, Any]) -> tuple[SelectedRuleMirror, ...]:
    """The run's rules in the form of an EventLog."""
    chosen = selection.get("response", {}).get("selected_rules", ())
    return tuple(SelectedRuleMirror.from_wire({key: each[key] for key in _MIRRORED}) for each in chosen)


def _without_prompt(cfg: RunConfig) -> RunConfig:
    """The run's settings without its prompt, for storage above the user's own level."""
    return cfg.from_wire({key: value for key, value in cfg.to_wire().items() if key != "seed_prompt"})


def _recalled(body: Mapping[str, Any]) -> Recalled:
    return Recalled(
        MemoryRecallRequest.from_wire(body["request"]),
        MemoryRecallResponse.from_wire(body["response"]),
        tuple(body.get("used_ids", ())),
    )


def _sandbox(reader: Reader, scope: Scope) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The results of sandboxed executions in the run's last verification with any."""
    where: tuple[Condition, ...] = (("kind", "=", "verification"), ("run_id", "=", scope.run_id))
    for item in select_items(reader, where, order=("created_at", "id", "version"), descending=True):
        body = {} if item.body is None or item.user_id != scope.user_id else item.plain()
        if isinstance(body.get("sandbox"), dict):
            traces = tuple(str(trace.get("action_id")) for trace in body.get("traces", ()) if isinstance(trace, dict))
            return body["sandbox"] | {"traces_ref": list(traces)}, traces
    return None, ()


# -- learning -----------------------------------------------------------------------------------------


def learn_run(ctx: Context, scope: Scope, asked: LearnRequest, ending: Ending | None = None) -> tuple[Learned, bool]:
    """Fold a run into memory; if that was done before, return the earlier result.

    With `ending` the run ends in the same transaction; the second value returned is true if it ended now. If nothing
    can be learned, the verifier's result is still kept; if the cause is outside the caller's control (a bug or a
    plug-in), so is the end of the run, and it can be learned from later.
    """
    outcome = caught(partial(_learn_run, ctx, scope, asked, ending))
    error = outcome.exception()
    if error is None:
        return cast("tuple[Learned, bool]", outcome.result())
    if is_defect(error):
        if ending is not None:
            keep_verdict_and_end(ending.writer, asked.verdict, ending.draft)
        raise learning_failed(error, scope.run_id, "could not be learnt from") from error
    if ending is not None and asked.verdict is not None and not isinstance(error, StorageFailure):
        keep_verdict(ending.writer, asked.verdict)
    raise error


def _learn_run(ctx: Context, scope: Scope, asked: LearnRequest, ending: Ending | None) -> tuple[Learned, bool]:
    asked_of: dict[tuple[str, ...], LessonsAsked | None] = {}  # the model is asked once per state of a run
    for _ in range(_TRIES):
        asked = with_verdict(ctx, scope, asked)
        found = find_learned(ctx, scope)
        if found is not None and asked.is_final:
            if ending is not None and asked.verdict is not None:
                keep_verdict(ending.writer, asked.verdict)
            return found, False
        if found is not None:
            raise Conflict(f"the run {scope.run_id} has been folded at its end", path="$.run_id")
        seen = _see(ctx, scope, asked)
        if not seen.finished.entries:
            raise InvalidInput("nothing has happened in this run yet", path="$.run_id")
        if seen.entry_ids not in asked_of:
            asked_of[seen.entry_ids] = _ask(ctx, scope, asked, seen)
        lessons = asked_of[seen.entry_ids]
        now = ctx.now()
        owner = bank_owner(scope, asked.level)
        folded, report = _fold(ctx, scope.tenant_id, owner, seen, asked, now, lessons)
        ready = _Ready(scope, owner, seen, folded, now, asked.is_final, report, asked.verdict)
        work = partial(_write_and_end, ctx, ready, ending)
        learned, has_ended = ctx.engine.write(scope.tenant_id, work)
        if learned is not None:
            return learned, has_ended
    raise Conflict(f"the run {scope.run_id} keeps changing while it is folded", path="$.run_id", hint="try again")


def _ask(ctx: Context, scope: Scope, asked: LearnRequest, seen: _FoldInputs) -> LessonsAsked | None:
    """Ask a model about an ended run; the fold does not depend on it."""
    if asked.lessons is None or not asked.is_final:
        return None
    result = seen.finished.result
    notes = None if result is None else result.notes
    has_words = asked.level == "user"
    return ask_lessons(
        ctx, scope, asked.lessons, seen.facts, seen.finished.entries, seen.peers, notes, has_words=has_words
    )


def _fold(
    ctx: Context,
    tenant_id: str,
    owner: str,
    seen: _FoldInputs,
    asked: LearnRequest,
    now: str,
    lessons: LessonsAsked | None,
) -> tuple[Folded, LessonReport | None]:
    trigger = asked.trigger or _trigger(seen, asked)
    if not asked.is_final:  # the next fold of this run is another one
        trigger = trigger.model_copy(update={"details": f"after {len(seen.entry_ids)} events"})

    def work(reader: Reader) -> tuple[Folded, list[KeptLesson]]:
        ids = BankIds(f"{tenant_id}\n{owner}", lambda id_: _is_erased(reader, id_))
        written = () if lessons is None else lessons.lessons
        ttl = ctx.policy.learn.tactic_ttl
        kept = keep_lessons(written, lambda id_: _held(reader, owner, id_), ids, now=now, ttl=ttl)
        folded = plan_fold(
            seen.facts,
            seen.peers,
            trigger,
            ctx.policy.learn,
            now=now,
            count_tokens=ctx.counter.count,
            clean=_is_clean,
            lessons={each.id: each.record for each in kept if each.record is not None},
            ids=ids,
        )
        return folded, kept

    folded, kept = ctx.engine.read(tenant_id, work)
    if asked.ws_id is not None:
        folded = folded._replace(result=folded.result.model_copy(update={"ws_id": asked.ws_id}))
    report = None if lessons is None else with_fates(lessons, kept)
    return (folded if report is None else folded._replace(result=with_report(folded.result, report))), report


def _held(reader: Reader, owner: str, id_: str) -> StoredMemory | None:
    held = find_memory(reader, (owner,), id_)
    return None if held is None else held.memory


def _is_erased(reader: Reader, id_: str) -> bool:
    """Return whether the record of this id was forgotten: its id is not reused."""
    item = latest(reader, id_)
    return item is not None and item.body is None


def _is_clean(text: str) -> bool:
    """Return whether it contains no secret and nothing worded like an instruction (LG-08, LG-10)."""
    found: Counter[str] = Counter()
    redact_text(text, found)
    return not found and not has_injection_form(text)


class _Ready(NamedTuple):
    """A computed fold, ready to be written."""

    scope: Scope
    owner: str
    seen: _FoldInputs
    folded: Folded
    now: str
    is_final: bool
    report: LessonReport | None = None
    verdict: Verdict | None = None


def _trigger(seen: _FoldInputs, asked: LearnRequest) -> FoldTrigger:
    """The reason for folding an ending run: a recurring failure, an exhausted budget, or its end."""
    facts, recent = seen.facts, [each.cluster_id for each in seen.peers]
    budget = (asked.budgets or {}).get("tokens")
    times = 0 if facts.cluster_id is None else 1 + recent.count(facts.cluster_id)
    if times >= CLUSTER_MIN:
        return FoldTrigger(kind="fail_cluster", details=f"{facts.cluster_id} seen {times} times")
    if budget is not None and facts.cost >= budget:
        return FoldTrigger(kind="budget_hit", details=f"{facts.cost:g} of {budget:g} spent")
    return FoldTrigger(kind="end_of_run", details="the run has ended")


def _write_and_end(ctx: Context, ready: _Ready, ending: Ending | None, tx: Transaction) -> tuple[Learned | None, bool]:
    """Write the fold and, if still open, the end of the run; the first value is None as for `_write`."""
    scope, verdict = ready.scope, ready.verdict
    if ending is None:
        return _write(ctx, tx, ready), False
    tx.do(Lock(("session", scope.user_id, scope.session_id)))  # sessions are locked before memory
    run = latest(tx, scope.run_id)
    if verdict is not None and (run is None or run.status != "open" or verdict.kept(tx) is not None):
        return None, False
    learned = _write(ctx, tx, ready)
    if learned is None or run is None or run.status == "finished":
        return learned, False
    drafts = [ending.draft] if verdict is None else [verdict.draft, ending.draft]
    append_decided(tx, ending.writer, Decided(drafts))
    return learned, True


def _write(ctx: Context, tx: Transaction, ready: _Ready) -> Learned | None:
    """Write the fold; None if its inputs have changed and it must be recomputed."""
    scope, owner, seen, folded, now, is_final, report, _ = ready
    lock_banks(tx, (owner, *seen.beside), scope.user_id)
    trace_id = seen.facts.trace_id
    found = _learned(tx, scope)
    if found is not None:
        return found
    logged = latest(tx, trace_id)
    if logged is not None and logged.user_id != owner:
        raise Conflict(f"the run {scope.run_id} is folded at another level", path="$.level")
    if logged is not None and latest(tx, folded.result.fold_id) is not None:
        return _told_before(tx, ready, logged)
    if not _stands(tx, scope, seen, folded, None if report is None else report.other_trace_id):
        return None
    arms: dict[str, tuple[UseArm, ...]] = {}
    moves = Moves({})
    if is_final and seen.facts.verdict is not None:  # once, and only by the verifier's result
        arms = bank_arms(tx, (owner, *seen.beside), seen.facts, seen.recalled)
        own = arms.get(owner, ())
        moves = lesson_moves(tx, owner, seen.facts, own, folded.payloads, ctx.policy.learn, now)
    plan = with_moves(folded.plan, moves.actions)
    ran = run_plan(ctx, tx, owner, plan, folded.payloads, now, stages=moves.stages)
    log = build_event_log(seen.finished, folded.result, ran.applied.records)
    capsule = build_capsule(seen.finished, now)
    sources = [trace_id]
    drafts: list[EntryDraft] = [
        _log_draft(scope, log, seen, arms.get(owner, ()), is_final=is_final),
        *(memory_drafts([_capsule_memory(capsule, owner, now)], {}) if is_final else ()),
        _record_draft(FOLD_MADE, folded.result.fold_id, "result", folded.result.to_wire(), sources),
        *(
            _record_draft(DRAFT_MADE, draft.draft_id, "draft", draft.to_wire(), draft.source_trace_ids)
            for draft in folded.drafts
            if latest(tx, draft.draft_id) is None
        ),
        *(() if report is None else (_report_draft(report),)),
        applied_draft(plan, folded.payloads, ran, sources=sources),
        *ran.drafts,
    ]
    write_bank(ctx, tx, scope.tenant_id, owner, drafts)
    for other in seen.beside:
        count_in_other_bank(
            ctx, tx, scope.tenant_id, other, seen.facts, arms.get(other, ()), _task_digest(scope, seen), now
        )
    return Learned(log, capsule, folded.result, plan, ran.applied.records)


def _told_before(tx: Transaction, ready: _Ready, logged: Item) -> Learned:
    """The result for a run without changes since it was last folded."""
    log = EventLog.from_wire(logged.plain()["event_log"])
    return _answer(tx, ready.owner, log, build_capsule(ready.seen.finished, ready.folded.result.created_at))


def _record_draft(event: str, id_: str, part: str, record: dict[str, Any], sources: Sequence[str]) -> EntryDraft:
    """The entry of a record, with its sources."""
    return draft_patch(event, "assistant", {"id": id_, part: record, "sources": list(sources)})


def _report_draft(report: LessonReport) -> EntryDraft:
    shown = [trace_id for trace_id in (report.trace_id, report.other_trace_id) if trace_id is not None]
    return _record_draft(LESSONS_PROPOSED, report.report_id, "report", report.to_wire(), shown)


def _stands(tx: Transaction, scope: Scope, seen: _FoldInputs, folded: Folded, other_trace_id: str | None) -> bool:
    """Return whether the run is unchanged and all sources of the fold still exist."""
    where: tuple[Condition, ...] = (
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
        ("run_id", "=", scope.run_id),
    )
    whole = {entry.id for entry in select(tx, ENTRIES, where, into=EntryReceipt) if entry.receipt_id is None}
    if whole != {entry.id for entry in seen.finished.entries}:
        return False
    named = {each for payload in folded.payloads.values() for each in named_traces(payload)}
    named |= {each for draft in folded.drafts for each in draft.source_trace_ids}
    if other_trace_id is not None:
        named.add(other_trace_id)
    known = [latest(tx, each) for each in sorted(named - {seen.facts.trace_id})]
    return all(item is not None and item.body is not None for item in known)


def _log_draft(scope: Scope, log: EventLog, seen: _FoldInputs, arms: Sequence[UseArm], *, is_final: bool) -> EntryDraft:
    facts = seen.facts
    said: dict[str, Any] = {
        "id": facts.trace_id,
        "run_id": scope.run_id,
        "event_log": log.to_wire(),
        "facts": facts.model_copy(update={"steps": ()}).to_wire(),  # the steps are in the run's own ledger
        "is_final": is_final,
    }
    if seen.arms:
        said["rules"] = [dict(each) for each in seen.arms]
    if arms:
        said["uses"] = [arm.to_wire() for arm in arms]
    if (seen.arms or arms) and (digest := _task_digest(scope, seen)) is not None:
        said["x_digest"] = digest
    core = core_name(intent_key(facts.intent))
    return draft_patch(RUN_LOGGED, "assistant", said if core is None else said | {"core": core})


def _task_digest(scope: Scope, seen: _FoldInputs) -> str | None:
    """A digest shared by runs of one task in a tenant; None if there was no task."""
    asked = seen.finished.first_asked
    task = "" if asked is None else " ".join((asked.content or "").split())
    return digest_of([scope.tenant_id, task])[:24] if task else None


def _capsule_memory(capsule: TraceCapsule, owner: str, now: str) -> StoredMemory:
    from muniment.core.scope import bank_level

    return StoredMemory(
        id=capsule_id(capsule.trace_id),
        kind="trace_capsule",
        level=bank_level(owner),
        version=1,
        record=capsule.to_wire(),
        status="active",
        created_at=now,
        sources=(capsule.trace_id,),
    )
