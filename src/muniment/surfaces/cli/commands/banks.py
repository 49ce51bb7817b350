"""`learn bank | plan | apply | undo | reuse`: learned records, and the plans that change them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.reading import object_given
from muniment.surfaces.cli.terminal import Cell, coloured, counted, one_line, strong, table, when

if TYPE_CHECKING:
    from muniment.contracts.learning import MemoryActionPlan, MemoryActionRecord
    from muniment.contracts.runs import EventLog
    from muniment.handles.bank import Bank
    from muniment.learning.fold.executing import Applied
    from muniment.learning.lesson_adding import AddedLesson
    from muniment.learning.plans import PlanState
    from muniment.learning.stored_memory import StoredMemory, Tally

__all__ = [
    "action_lines",
    "add_lesson",
    "apply",
    "drafts",
    "list_",
    "list_plans",
    "list_reuse",
    "logs",
    "make_plan",
    "says",
]
__all__ += ["reports", "select_seed", "show", "show_plan", "tidy", "undo", "whose"]

STATUSES = {"active": "green", "pinned": "cyan", "temporary": "yellow", "retired": "red", "pruned": "bright_black"}
_PLAN_STATUSES = {"made": "yellow", "applied": "green", "aborted": "red", "undone": "bright_black"}
_FATES = {"APPLIED": "green", "SKIPPED": "yellow", "FAILED": "red"}
_VERDICTS = {"PASS": "green", "PARTIAL": "yellow", "FAIL": "red"}
_LESSON_FATES = {"written": "green", "merged": "cyan", "refused": "red"}
_ELSEWHERE = "--user and --agent name another"
_PLAN = {"plan_id": "PLAN"}


# -- records for the eye ------------------------------------------------------------------------------


def whose(bank: Bank) -> str:
    """`the bank of user ana`, `the tenant's bank`."""
    kind, _, name = bank.name.partition(":")
    return f"the bank of {kind} {one_line(name, 60)}" if name else "the tenant's bank"


def says(memory: StoredMemory) -> str:
    """What a record says, in its own words."""
    if memory.status == "pruned":
        return "pruned: what it said is gone"
    record = memory.record
    said = next((record[name] for name in ("summary", "seed_summary", "title", "body") if record.get(name)), None)
    return str(said) if said is not None else f"run {', '.join(memory.sources) or memory.id}, in references"


def _tally_text(tally: Tally) -> str:
    return f"{tally.passes} of {tally.n}" if tally.n else "–"


def action_lines(records: Sequence[MemoryActionRecord]) -> Iterator[str]:
    """What was done of a plan, action by action."""
    rows: list[list[Cell]] = []
    for number, each in enumerate(records, 1):
        ids = each.produced_ids or each.target_ids or ()
        why = f"{each.error}  " if each.error else ""
        reasons = f"({', '.join(each.reason_keys)})" if each.reason_keys else ""
        fate = (each.status, _FATES[each.status])
        rows.append([str(number), each.op, fate, each.target_store, ", ".join(ids), f"{why}{reasons}"])
    return table(("", "op", "status", "store", "records", "why"), rows)


def _record_lines(records: Sequence[StoredMemory]) -> Iterator[str]:
    rows: list[list[Cell]] = [
        [
            each.id,
            each.kind,
            (each.status, STATUSES[each.status]),
            _tally_text(each.with_tally),
            _tally_text(each.without_tally),
            each.expires_at[:10] if each.expires_at else "–",
            says(each),
        ]
        for each in records
    ]
    return table(("record", "kind", "status", "passed with", "without", "until", "says"), rows)


# -- bank ---------------------------------------------------------------------------------------------


def _list(call: Call, ask: Callable[[], list[StoredMemory]]) -> list[StoredMemory]:
    records = ask()
    is_asked_for = "store" in call.typed or "kind" in call.typed
    return records if is_asked_for else [each for each in records if each.kind != "trace_capsule"]


def _show_records(call: Call) -> Iterator[str]:
    if call.answer:
        yield from _record_lines(call.answer)
    else:
        live = "" if call.typed.get("include_all") else "live "
        yield f"no {live}records in {whose(call.handle)}; {_ELSEWHERE}"


list_ = Command(
    "bank.records",
    _show_records,
    around=_list,
    document="records",
    words={
        "store": Word("Only of this store."),
        "kind": Word("Only of this kind."),
        "include_all": Word("Also what was retired or pruned."),
    },
    about="How often runs with each passed, and without it. References to runs (TraceCapsule) are listed when they are "
    "asked for.",
)


def _show_record(call: Call) -> Iterator[str]:
    memory: StoredMemory = call.answer
    status = coloured(memory.status, STATUSES)
    yield f"{strong(memory.id)}  {memory.kind}, {status}, version {memory.version}, in {whose(call.handle)}"
    yield one_line(says(memory), 1_000)
    for label, text in _record_parts(memory):
        yield f"{label + ':':<12} {one_line(text, 400)}"


def _record_parts(memory: StoredMemory) -> Iterator[tuple[str, str]]:
    record: dict[str, Any] = dict(memory.record)
    for predicate in record.get("predicates") or ():
        yield "applies if", str(predicate)
    injection = record.get("injection")
    if isinstance(injection, dict):
        yield "injects", str(injection.get("content"))
    for name in ("intent_key", "state_key", "bucket_key"):
        if record.get(name):
            yield name.removesuffix("_key"), str(record[name])
    yield "passed", f"{_tally_text(memory.with_tally)} with it, {_tally_text(memory.without_tally)} held out"
    if memory.streak:
        yield "fails", f"{memory.streak} in a row"
    yield "since", when(memory.created_at)
    for label, moment in (("until", memory.expires_at), ("protected", memory.protected_until)):
        if moment:
            yield label, when(moment)
    if memory.last_used_at:
        yield "last used", when(memory.last_used_at)
    for label, ids in (("merged from", memory.parents), ("learnt from", memory.sources)):
        if ids:
            yield label, ", ".join(ids)
    if memory.merged_into:
        yield "merged into", memory.merged_into
    if memory.reason_keys:
        yield "because", ", ".join(memory.reason_keys)


show = Command(
    "bank.get",
    _show_record,
    arguments={"memory_id": "RECORD"},
    calls=("memory.bank_of",),
    about="Found in whichever bank, unless one is named.",
)


def _show_logs(call: Call) -> Iterator[str]:
    if call.answer:
        heads = ("log", "verdict", "outcome", "mode", "tools", "used", "plan", "intent")
        yield from table(heads, [_log_row(log) for log in call.answer])
    else:
        yield f"no run was learnt from in {whose(call.handle)}; {_ELSEWHERE}"


def _log_row(log: EventLog) -> list[Cell]:
    verdict = log.verifier.verdict or "–"
    recalled, folded = log.memory_recall, log.memory_fold
    used = "–" if recalled is None else f"{len(recalled.used_ids or ())} of {len(recalled.retrieved_ids or ())}"
    intent = recalled.intent_key if recalled is not None else None
    calls = None if log.cost is None else log.cost.tool_calls
    return [
        log.trace_id,
        (verdict, _VERDICTS.get(verdict, "white")),
        log.verifier.outcome or "–",
        (log.run.mode if log.run is not None else None) or "–",
        "–" if calls is None else str(calls),
        used,
        (folded.action_plan_id if folded is not None else None) or "–",
        intent or "–",
    ]


logs = Command(
    "bank.event_logs",
    _show_logs,
    document="event_logs",
    words={"limit": Word("How many.", metavar="N", type=click.IntRange(1), default=20)},
    about="With --json, EventLogs of the contract.",
)


def _show_drafts(call: Call) -> Iterator[str]:
    rows: list[list[Cell]] = []
    for draft in call.answer:
        rule = draft.proposed_rule
        runs = str(len(draft.source_trace_ids))
        rows.append([draft.draft_id, rule.type or "–", runs, rule.body or rule.title or ""])
    if rows:
        yield from table(("draft", "type", "runs", "says"), rows)
    else:
        yield f"no drafts in {whose(call.handle)}; {_ELSEWHERE}"


drafts = Command("bank.drafts", _show_drafts, document="drafts")


def _show_tidied(call: Call) -> Iterator[str]:
    if call.answer:
        yield f"{call.answer[0].plan_id} is applied"
        yield from action_lines(call.answer)
    else:
        yield f"nothing to do: nothing in {whose(call.handle)} has run out or is over its size"


tidy = Command("bank.tidy", _show_tidied, document="actions")


# -- lessons ------------------------------------------------------------------------------------------


def _show_added(call: Call) -> Iterator[str]:
    added: AddedLesson = call.answer
    fates = {"written": "on trial once there is a place", "merged": "says the same: evidence was added to it"}
    yield f"{strong(added.lesson_id)}  {fates.get(added.fate, 'is there already')}, in {whose(call.handle)}"
    yield one_line(added.text, 1_000)
    yield f"rests on {counted(len(added.event_ids), 'event')}" if added.event_ids else "cites nothing"
    if added.plan_id is not None:
        yield f"take it back: {call.spelled('learn', 'undo', added.plan_id)}"


add_lesson = Command(
    "bank.add_lesson",
    _show_added,
    arguments={"text": "TEXT"},
    creates=True,
    words={
        "evidence": Word("An event or a run that shows it; as often as there are any.", metavar="ID"),
        "when": Word("When it holds: in words, or as a predicate.", metavar="CONDITION"),
    },
    about="TEXT (`-` is stdin) is one sentence: what to do, or what to leave. What it names must stand in the "
    "evidence; without any, its trial alone decides.",
)


def _show_reports(call: Call) -> Iterator[str]:
    for number, report in enumerate(call.answer):
        took = f"{counted(report.calls, 'call')}, {report.tokens_in} + {report.tokens_out} tokens"
        yield f"{'' if number == 0 else chr(10)}{strong(report.trace_id)}  {report.writer}, {took}"
        if report.failed is not None:
            yield f"failed: {report.failed}: {one_line(report.why or '', 300)}"
        for each in report.proposals:
            named = each.lesson_id or "–"
            why = f"  ({one_line(each.why, 200)})" if each.why else ""
            yield f"{coloured(each.fate, _LESSON_FATES)}  {named}  {one_line(each.text or '(not kept)', 400)}{why}"
        if report.malformed:
            yield f"{report.malformed} more were no lessons"
    if not call.answer:
        yield f"no model has written lessons of runs in {whose(call.handle)}; {_ELSEWHERE}"


reports = Command(
    "bank.lesson_reports",
    _show_reports,
    document="reports",
    words={"limit": Word("How many.", metavar="N", type=click.IntRange(1), default=20)},
    about="The setting `lessons` names the model. Nothing it proposes is active by its word.",
)


# -- plans --------------------------------------------------------------------------------------------


def _read_plan(name: str) -> Any:
    """A plan or a list of actions; each line of a file of lines is an action, unless the only one is a plan."""
    from muniment.surfaces.cli.documents import LINE_SUFFIXES, read_all

    documents = read_all(name)
    is_plan = len(documents) == 1 and not (isinstance(documents[0], dict) and "op" in documents[0])
    return documents[0] if is_plan and not name.endswith(LINE_SUFFIXES) else documents


def _show_made(call: Call) -> Iterator[str]:
    made: MemoryActionPlan = call.answer
    yield f"{strong(made.plan_id)}  made for {whose(call.handle)}: {_ops(made)}"
    yield f"try it:   {call.spelled('learn', 'apply', made.plan_id, '--dry-run')}"
    yield f"apply it: {call.spelled('learn', 'apply', made.plan_id)}"


def _ops(made: MemoryActionPlan) -> str:
    ops = Counter(action.op for action in made.actions)
    return ", ".join(f"{count} {op}" for op, count in ops.items()) or "no actions"


make_plan = Command(
    "bank.plan",
    _show_made,
    arguments={"plan": "FILE"},
    creates=True,
    words={
        "plan": Word(read=_read_plan),
        "payloads": Word(
            "What the plan's payload_refs name: a JSON object by ref.", metavar="FILE", read=object_given("$.payloads")
        ),
    },
    about="FILE (`-` is stdin) is a MemoryActionPlan, a list of actions, or JSON lines of actions. An action may hold "
    "its `payload` itself.",
)


def _plan_document(state: PlanState, *more: str) -> dict[str, Any]:
    return {name: wire(getattr(state, name)) for name in ("plan", "status", "records", "touched", "undone_by", *more)}


def _show_plans(call: Call) -> Iterator[str]:
    rows: list[list[Cell]] = [
        [
            state.plan.plan_id,
            when(state.plan.created_at),
            (state.status, _PLAN_STATUSES.get(state.status, "white")),
            state.plan.fold_id or "by hand",
            f"{_ops(state.plan)}{f'  {one_line(state.plan.notes, 80)}' if state.plan.notes else ''}",
        ]
        for state in call.answer
    ]
    if rows:
        yield from table(("plan", "made", "status", "fold", "actions"), rows)
    else:
        yield f"no plans in {whose(call.handle)}"


list_plans = Command(
    "bank.plans", _show_plans, document=lambda call: {"plans": [_plan_document(state) for state in call.answer]}
)


def _show_plan(call: Call) -> Iterator[str]:
    state: PlanState = call.answer
    plan = state.plan
    status = coloured(state.status, _PLAN_STATUSES)
    yield f"{strong(plan.plan_id)}  {status}, of {whose(call.handle)}, made {when(plan.created_at)}"
    if plan.fold_id:
        yield f"by the fold {plan.fold_id}"
    if plan.notes:
        yield one_line(plan.notes, 300)
    if state.undone_by:
        yield f"undone by {state.undone_by}"
    if state.records:
        yield from action_lines(state.records)
    else:
        rows: list[list[Cell]] = [
            [str(number), each.op, each.target_store, each.payload_ref or "–", ", ".join(each.target_ids or ()) or "–"]
            for number, each in enumerate(plan.actions, 1)
        ]
        yield from table(("", "op", "store", "payload", "records"), rows)
    for id_, before, after in state.touched:
        yield f"{id_}: version {before or 'none'} → {after}"


show_plan = Command(
    "bank.get_plan",
    _show_plan,
    arguments=_PLAN,
    document=lambda call: _plan_document(call.answer, "payloads"),
    about="Of whichever bank.",
)


# -- apply and undo -----------------------------------------------------------------------------------


class _Done(NamedTuple):
    stood: str
    done: Applied


def _apply(call: Call, ask: Callable[[], Applied]) -> _Done:
    return _Done(call.handle.get_plan(call.typed["plan_id"]).status, ask())


def _show_applied(call: Call) -> Iterator[str]:
    stood, done = call.answer
    plan_id, dry_run = call.typed["plan_id"], bool(call.typed.get("dry_run"))
    if dry_run:
        yield f"{plan_id} would be {'aborted: nothing would change' if done.aborted else 'applied'}"
    elif stood != "made":
        yield f"{plan_id} was {stood} before; nothing is done twice, and this is what was done then"
    else:
        yield f"{plan_id} is {'aborted: nothing has changed' if done.aborted else 'applied'}"
    yield from action_lines(done.records)
    if not dry_run and not done.aborted and stood != "undone":
        yield f"to take it back: {call.spelled('learn', 'undo', plan_id)}"


def _applied_document(call: Call) -> dict[str, Any]:
    done: Applied = call.answer.done
    return {
        "plan_id": call.typed["plan_id"],
        "dry_run": bool(call.typed.get("dry_run")),
        "aborted": done.aborted,
        "actions": wire(done.records),
    }


apply = Command(
    "bank.apply",
    _show_applied,
    around=_apply,
    arguments=_PLAN,
    words={"dry_run": Word("Say what would happen, and change nothing.")},
    calls=("bank.get_plan",),
    document=_applied_document,
    holds=lambda answer: not answer.done.aborted,
    about="Exits 1 where it is aborted, or would be.",
)


def _undone_by(call: Call) -> str | None:
    by: str | None = call.handle.get_plan(call.typed["plan_id"]).undone_by
    return by


def _show_undone(call: Call) -> Iterator[str]:
    records = call.answer
    yield f"{call.typed['plan_id']} is undone, by {_undone_by(call)}: {counted(len(records), 'record')}"
    yield from action_lines(records)


undo = Command(
    "bank.undo",
    _show_undone,
    arguments=_PLAN,
    calls=("bank.get_plan",),
    document=lambda call: {
        "plan_id": call.typed["plan_id"],
        "undone_by": _undone_by(call),
        "actions": wire(call.answer),
    },
    about="Refused as a whole where one was changed since.",
)


# -- reuse --------------------------------------------------------------------------------------------


def _show_reuse(call: Call) -> Iterator[str]:
    bank: Bank = call.handle
    for noun, held in (("seed", bank.records(kind="seed")), ("tactic", bank.records(kind="tactic"))):
        yield strong(counted(len(held), noun)) if held else f"no {noun}s in {whose(bank)}"
        if held:
            yield from _record_lines(held)


list_reuse = Command(
    "bank.reuse_buffer", _show_reuse, calls=("bank.records",), about="With --json, the ReuseBuffer of the contract."
)


def _show_seeds(call: Call) -> Iterator[str]:
    meta, terms = call.answer
    if not terms:
        yield f"no seed {'fits ' if 'bucket_key' in call.typed or 'tags' in call.typed else ''}in {whose(call.handle)}"
        return
    said = {each.id: says(each) for each in call.handle.records(kind="seed")}
    rows: list[list[Cell]] = [
        [
            ("→", "green") if term.state_id == meta.selected_state_id else "",
            term.state_id,
            f"{term.score:.3f}",
            f"{term.q:.3f}",
            f"{term.p:.3f}",
            str(term.n),
            str(term.rank),
            said[term.state_id],
        ]
        for term in terms
    ]
    yield f"{meta.policy}, {meta.puct.T_total if meta.puct is not None else 0} starts in all"
    yield from table(("", "seed", "score", "Q", "P", "N", "rank", "says"), rows)


select_seed = Command(
    "bank.select_seed",
    _show_seeds,
    calls=("bank.records",),
    document=lambda call: dict(zip(("select", "terms"), wire(call.answer), strict=True)),
    words={"tags": Word("Only seeds with this tag; repeatable.", "tag", metavar="TAG")},
    about="Nothing is counted by asking.",
)
