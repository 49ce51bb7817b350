"""`learn …`: lessons, recall for a task, runs folded into memory, plans undone, and an agent's attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

import click

from muniment.core.scope import Outcome, Verdict
from muniment.errors import InvalidInput, NotFound
from muniment.handles.runner import Runner
from muniment.learning.records import Store
from muniment.surfaces.cli import _reading as reading
from muniment.surfaces.cli._command import Call, Choice, Command, OptionSpec, run_named, wire
from muniment.surfaces.cli._views import COLOURS, show_plain
from muniment.surfaces.cli.terminal import Cell, coloured, counted, one_line, strong, table, when, wrapped

if TYPE_CHECKING:
    from muniment.contracts.learning import FoldResult, MemoryActionPlan, MemoryActionRecord
    from muniment.contracts.rules import DistillDraft
    from muniment.contracts.runs import EventLog, TraceCapsule, VerifierResult
    from muniment.handles.bank import Bank
    from muniment.handles.run import Run
    from muniment.handles.runner import Attempt, Done
    from muniment.learning.folding import Learned
    from muniment.learning.lesson_adding import AddedLesson
    from muniment.learning.recalling import Recall
    from muniment.learning.records import Lesson, LessonDecision, LessonEffect, LessonStory, StoredMemory, Tally

__all__ = ["add", "drop", "fold", "lessons", "recall", "rollout", "show", "sign", "undo"]

_RUNS_SHOWN = 20
_LESSON = {"lesson_id": "LESSON"}
_ACTIONS = "op status target_store produced_ids target_ids error reason_keys"


# -- lessons ------------------------------------------------------------------------------------------


def _bank_name(bank: Bank) -> str:
    """The bank as `the bank of user ana` or `the tenant's bank`."""
    kind, _, name = bank.name.partition(":")
    return f"the bank of {kind} {one_line(name, 60)}" if name else "the tenant's bank"


def _tally_text(tally: Tally) -> str:
    return f"{tally.passes} of {tally.n}" if tally.n else "–"


def _difference(effect: LessonEffect) -> str:
    """The difference as `+42 points (+8 to +66)`; a dash if there is nothing to compare."""
    if effect.difference is None or effect.low is None or effect.high is None:
        return "–"
    return f"{100 * effect.difference:+.0f} points ({100 * effect.low:+.0f} to {100 * effect.high:+.0f})"


def _lesson_row(lesson: Lesson) -> list[Cell]:
    effect = lesson.effect
    stage = f"{lesson.stage}, signed" if lesson.signed else lesson.stage
    return [
        lesson.lesson_id,
        (stage, COLOURS.get(lesson.stage, "white")),
        _tally_text(effect.had),
        _tally_text(effect.held_out),
        _difference(effect),
        f"{lesson.text}  When: {lesson.when.words}.",
    ]


def _show_lessons(call: Call) -> Iterator[str]:
    if call.answer:
        heads = ("lesson", "stage", "passed with", "without", "difference", "text")
        yield from table(heads, [_lesson_row(each) for each in call.answer])
    else:
        stage = f"{call.typed['stage']} " if call.typed.get("stage") else ""
        yield f"no {stage}lessons in {_bank_name(call.handle)}; --user and --agent name another"


lessons = Command(
    "bank.lessons",
    _show_lessons,
    noun="lessons",
    options={"stage": OptionSpec("Only this stage: candidate, trial, active, suspended, retired.")},
    about="With and without are runs that the lesson fitted: some are left without it, so that its effect stays known. "
    "Retired lessons are listed with --stage retired.",
)


def _show_story(call: Call) -> Iterator[str]:
    lesson: LessonStory = call.answer
    signed = ", signed" if lesson.signed else ""
    stage = coloured(lesson.stage, dict(COLOURS))
    yield f"{strong(lesson.lesson_id)}  {stage}{signed} since {when(lesson.since)}, in {_bank_name(call.handle)}"
    yield one_line(lesson.text, 1_000)
    effect = lesson.effect
    fields = {
        "when": lesson.when.words,
        "why": lesson.why,
        "passed": f"{_tally_text(effect.had)} with it, {_tally_text(effect.held_out)} without",
        "difference": _difference(effect),
        "cost": lesson.cost,
        "cost_without": lesson.cost_without,
        "origin": lesson.origin,
        "kept_as": lesson.kind,
        "cites": list(lesson.evidence.event_ids),
        "learnt_from": [each.run_id or each.trace_id for each in lesson.learnt_from],
    }
    yield from show_plain(fields)
    yield ""
    yield from show_plain(wire(lesson.history), "at stage plan_id why")
    if lesson.runs:
        shown = lesson.runs[:_RUNS_SHOWN]
        more = f", the newest {len(shown)}" if len(shown) < len(lesson.runs) else ""
        yield ""
        yield strong(f"{counted(len(lesson.runs), 'run')} that it fitted{more}")
        yield from show_plain(wire(shown), "at run_id arm passed cost")


show = Command(
    "bank.lesson",
    _show_story,
    arguments=_LESSON,
    about="Found in any bank, unless one is named.",
)


def _show_decision(call: Call) -> Iterator[str]:
    decision: LessonDecision = call.answer
    lesson = decision.lesson
    stage = coloured(lesson.stage, dict(COLOURS))
    if decision.plan_id is None and decision.report_id is None:
        yield f"{strong(lesson.lesson_id)}  {stage}: it was so already, and nothing has changed"
        return
    yield f"{strong(lesson.lesson_id)}  {stage}: {one_line(lesson.why, 300)}"
    yield one_line(lesson.text, 400)
    if decision.plan_id is not None:
        yield f"to undo this: {call.spell_command('learn', 'undo', decision.plan_id)}"
    if decision.report_id is not None:
        yield f"the rulebook's report is {decision.report_id}; `muniment rules rollback` undoes it"


sign = Command(
    "bank.sign_lesson",
    _show_decision,
    arguments=_LESSON,
    about="A lesson that is kept as a rule alone is promoted, if its rulebook has seen enough of it.",
)
drop = Command("bank.drop_lesson", _show_decision, arguments=_LESSON)


def _show_added(call: Call) -> Iterator[str]:
    added: AddedLesson = call.answer
    fates = {"written": "on trial as soon as there is a place", "merged": "merged into a lesson with the same meaning"}
    yield f"{strong(added.lesson_id)}  {fates.get(added.fate, 'is there already')}, in {_bank_name(call.handle)}"
    yield one_line(added.text, 1_000)
    yield f"rests on {counted(len(added.event_ids), 'event')}" if added.event_ids else "cites nothing"
    if added.plan_id is not None:
        yield f"to undo this: {call.spell_command('learn', 'undo', added.plan_id)}"


add = Command(
    "bank.add_lesson",
    _show_added,
    arguments={"text": "TEXT"},
    creates=True,
    options={
        "evidence": OptionSpec("An event or a run that shows it; repeatable.", metavar="ID"),
        "when": OptionSpec("When it holds: in words, or as a predicate.", metavar="CONDITION"),
    },
    about="TEXT (`-` is stdin) is one sentence: what to do, or what to avoid. What it names must occur in the "
    "evidence; without any, its trial alone decides.",
)


# -- recall -------------------------------------------------------------------------------------------


def _check_user(call: Call) -> None:
    if "run_id" not in call.typed:
        _ = call.user


def _recall_document(call: Call) -> dict[str, Any]:
    found: Recall = call.answer
    return {
        "request": found.request.to_wire(),
        "response": found.response.to_wire(),
        "injection": {
            "text": found.text,
            "tokens": found.injection.tokens,
            "budget": call.memory.policy.learn.injection.model_dump(),
            "used_ids": wire(found.injection.used_ids),
            "overflow": wire(found.injection.overflow),
        },
        "dropped": wire(found.dropped),
        "kept_in": call.typed.get("run_id"),
    }


def _show_recall(call: Call) -> Iterator[str]:
    found: Recall = call.answer
    keys = {"intent": found.request.intent_key, "state": found.request.state_key}
    named = [name for name, key in keys.items() if key is not None]
    how = "by words alone: give --intent and --state" if not named else f"by words and {' and '.join(named)}"
    tokens = call.memory.policy.learn.injection.total_tokens_max
    yield f"{counted(len(found.hints), 'hint')}, {found.injection.tokens} of {tokens} tokens, {how}"
    if note := (found.response.model_extra or {}).get("note"):
        yield one_line(str(note), 300)
    for number, hint in enumerate(found.hints, 1):
        yield f"{number:>2}  {hint.score:.3f}  {hint.source}  {one_line(hint.summary or '(left out)', 1_000)}"
        yield f"    {hint.memory_id}  {one_line(hint.reason or '', 300)}"
    if found.injection.overflow:
        yield "\nover the budget"
        yield from show_plain(wire(found.injection.overflow))
    if found.dropped:
        yield "\ndropped"
        yield from show_plain(wire(found.dropped), "memory_id reason")


recall = Command(
    "run.recall",
    _show_recall,
    around=lambda call, ask: ask(keep="run_id" in call.typed),
    on="user or run",
    arguments={"query": "QUERY"},
    left_out=("keep",),
    options={
        "top_k": OptionSpec("How many hints, at most (default: the policy's).", "top", "N", type=click.IntRange(1)),
        "sources": OptionSpec("Only from this store.", "source", type=Choice(get_args(Store))),
        "run_id": OptionSpec("Recall for this run and keep it there: what is injected counts."),
    },
    check=_check_user,
    document=_recall_document,
    about="The hints that a run would get for QUERY (`-` is standard input), best first. Without --intent and --state "
    "it is by words alone. Nothing is written, unless --run names a run that is open.",
)


# -- fold and undo ------------------------------------------------------------------------------------


class _Folded(NamedTuple):
    learnt_before: bool
    event_log: EventLog
    trace_capsule: TraceCapsule
    fold: FoldResult
    plan: MemoryActionPlan
    actions: tuple[MemoryActionRecord, ...]
    records: list[StoredMemory]
    drafts: list[DistillDraft]


def _fold(
    call: Call,
    run_id: Annotated[str, OptionSpec(metavar="RUN")],
    *,
    result: Annotated[
        Mapping[str, Any] | None,
        OptionSpec(
            "The verifier's result: a VerifierResult in JSON (`-` is stdin).",
            metavar="FILE",
            type=click.STRING,
            read=reading.object_given("$.result", "one VerifierResult"),
        ),
    ] = None,
    verdict: Annotated[Verdict | None, OptionSpec("Or its verdict …")] = None,
    outcome: Annotated[Outcome | None, OptionSpec("… its outcome (default: UNKNOWN) …")] = None,
    reasons: Annotated[
        tuple[str, ...], OptionSpec("… and its reason codes; repeatable.", "reason", "CODE", many=True)
    ] = (),
    level: Annotated[Literal["user", "agent", "tenant"], OptionSpec("Whose bank learns it.")] = "user",
    intent: Any = None,
    state: Any = None,
    features: Any = None,
    bucket_key: str | None = None,
) -> _Folded:
    given = _given_result(result, verdict, outcome, reasons)
    run = run_named(call.memory, run_id, call.tenant)
    before = run.learning.learned()
    named = {"intent": intent, "state": state, "features": features, "bucket_key": bucket_key}
    learned = before or call.memory.learning.learn(
        run_id,
        verifier_result=given or _kept_result(run),
        grants=() if level == "user" else (level,),
        level=level,
        tenant_id=call.tenant,
        **{name: value for name, value in named.items() if value is not None},
    )
    bank = call.memory.learning.bank_of(learned.event_log.trace_id, tenant_id=call.tenant)
    wanted = set(learned.fold.produced.rule_draft_ids or ())
    return _Folded(
        before is not None,
        learned.event_log,
        learned.capsule,
        learned.fold,
        learned.plan,
        tuple(learned.records),
        _records(bank, learned),
        [draft for draft in bank.drafts() if draft.draft_id in wanted],
    )


def _given_result(
    result: Mapping[str, Any] | None, verdict: str | None, outcome: str | None, reasons: tuple[str, ...]
) -> Mapping[str, Any] | None:
    """The verdict given on the command line, if any."""
    if result is not None:
        if verdict or outcome or reasons:
            raise InvalidInput(
                "a run is judged once", path="$.result", hint="give --result, or --verdict and --outcome"
            )
        if not isinstance(result, dict):
            raise InvalidInput(
                "a verifier's result is a JSON object", path="$.result", hint="`muniment schema show VerifierResult`"
            )
        return result
    if verdict is None:
        if outcome or reasons:
            raise InvalidInput("an outcome goes with a verdict", path="$.verdict", hint="give --verdict as well")
        return None
    plain: dict[str, Any] = {"verifier_id": "by_hand", "verdict": verdict, "outcome": outcome or "UNKNOWN"}
    return plain | ({"reason_codes": list(reasons)} if reasons else {})


def _kept_result(run: Run) -> VerifierResult:
    kept = run.verifications()
    if not kept:
        raise InvalidInput(
            "nobody has judged this run yet",
            path="$.result",
            hint="give --result FILE or --verdict; `muniment check verify-output --run RUN` keeps a result with it",
        )
    return kept[-1]


def _records(bank: Bank, learned: Learned) -> list[StoredMemory]:
    """The records that the plan left, except those forgotten since."""
    found: list[StoredMemory] = []
    for id_ in dict.fromkeys(id_ for record in learned.records for id_ in record.produced_ids or ()):
        with suppress(NotFound):
            found.append(bank.get(id_))
    return found


def _record_text(memory: StoredMemory) -> str:
    if memory.status == "pruned":
        return "pruned: its text is gone"
    record = memory.record
    names = ("summary", "seed_summary", "title", "body")
    return next((str(record[name]) for name in names if record.get(name)), f"run {', '.join(memory.sources)}")


def _show_fold(call: Call) -> Iterator[str]:
    folded: _Folded = call.answer
    found, log, plan_id = folded.fold, folded.event_log, folded.plan.plan_id
    if folded.learnt_before:
        yield "it was folded before, and nothing is learnt twice; this is what was learnt then"
    yield f"{strong(call.typed['run_id'])}  {log.verifier.verdict}, outcome {log.verifier.outcome}"
    intent = found.intent_key or "none: it is compared with other runs that have none"
    fields = {"log": f"{log.trace_id}, folded for {found.trigger.kind}", "intent": intent, "state": found.state_key}
    yield from show_plain(fields)
    for memory in folded.records:
        status = f" [{memory.status}]" if memory.status != "active" else ""
        kind = "episode" if memory.kind == "reasoning" else memory.kind
        yield f"{kind + ':':<13} {memory.id}{status}  {one_line(_record_text(memory), 300)}"
    for draft in folded.drafts:
        rule = draft.proposed_rule
        yield f"{'draft:':<13} {draft.draft_id}  {rule.type}: {one_line(rule.title or rule.body or '', 200)}"
    if folded.actions:
        yield f"\nplan {plan_id}"
        yield from show_plain(wire(folded.actions), _ACTIONS)
    else:
        yield f"plan:         {plan_id} was forgotten, with a run that it was learnt from"
    if not folded.learnt_before and folded.records:
        yield f"to undo this: {call.spell_command('learn', 'undo', plan_id)}"


fold = Command(
    "memory.learn",
    _show_fold,
    function=_fold,
    on="call",
    holds=lambda answer: all(each.status != "FAILED" for each in answer.actions),
    about="Whether the run is open or has ended: log, episode, tactics, seed, drafts, by a plan. Judged by --result or "
    "--verdict; without either, by the last result that the run keeps. Folding twice is folding once. Intent and state "
    "are those it recalled by, unless they are given. Exits 1 where the plan was aborted.",
)

undo = Command(
    "bank.undo",
    columns=_ACTIONS,
    noun="actions",
    arguments={"plan_id": "PLAN"},
    about="`fold` and the commands on lessons print the plan's id. Refused as a whole if a record was changed since.",
)


# -- rollout ------------------------------------------------------------------------------------------

_CAPS = {
    name: OptionSpec(f"At most this many {what}.", metavar="N", type=click.IntRange(1))
    for name, what in {
        "tokens_max": "tokens",
        "tool_calls_max": "tool calls",
        "latency_ms_max": "milliseconds",
        "attempts_max": "attempts",
    }.items()
}
_MODES = ("auto", "main", "sot", "kroll", "matts", "synth")


def _rollout(call: Call, ask: Callable[..., Done]) -> Done:
    return ask(caps={name: call.typed[name] for name in _CAPS if name in call.typed} or None)


def _rollout_document(call: Call) -> dict[str, Any]:
    done: Done = call.answer
    names = ("run_id", "passed", "escalate", "output", "result", "spent", "steps", "decision")
    attempts = [_attempt(each, stands=each.run_id == done.run_id) for each in done.attempts]
    return {name: wire(getattr(done, name)) for name in names} | {"attempts": attempts}


def _attempt(attempt: Attempt, *, stands: bool) -> dict[str, Any]:
    log = attempt.learned.event_log
    names = ("number", "kind", "mode", "run_id", "passed", "output", "result", "summary")
    known = {"trace_id": log.trace_id, "stands": stands, "cost": log.cost, "selection": log.rollout_select}
    return {name: wire(getattr(attempt, name)) for name in names} | {name: wire(each) for name, each in known.items()}


def _show_rollout(call: Call) -> Iterator[str]:
    done: Done = call.answer
    fate = coloured("passed" if done.passed else "failed", dict(COLOURS))
    yield f"{fate}, after {counted(len(done.attempts), 'attempt')}; run {strong(done.run_id)} is the result"
    document = _rollout_document(call)
    yield from show_plain(
        document["attempts"], "number mode kind result.verdict result.outcome trace_id cost output.text"
    )
    for number, step in enumerate(done.steps, 1):
        yield from wrapped(f"step {number}: {step.action}: {step.words} ({step.code})")
    if done.decision is not None:
        yield from wrapped(f"routed: {'; '.join(each.words for each in done.decision.reasons)}")
    if done.escalate:
        yield "more attempts would not help: decompose the task, or hand it on"
    yield from show_plain(
        {"spent": document["spent"], "answer": done.output.text or "none", "reasons": done.result.reason_codes}
    )


rollout = Command(
    view=_show_rollout,
    function=Runner.run,
    around=_rollout,
    on="rollout",
    arguments={"task": "TASK"},
    left_out=("query", "caps", "known", "tree"),
    options={
        "task": OptionSpec(read=reading.text_given),
        "mode": OptionSpec("How it is tried (default: once; with --router as it decides).", type=Choice(_MODES)),
        "k": OptionSpec("How many attempts at once (kroll, matts, synth).", type=click.IntRange(1, 64)),
        "seed": OptionSpec("Attempts differ in the same way again.", metavar="TEXT"),
        "run_id": OptionSpec("The id of the first attempt."),
        "agent": OptionSpec(needed=True),
        "verifier": OptionSpec(needed=True),
        "router": OptionSpec("Go as far as earlier runs of the bucket justify.", flag=True),
        "no_recall": OptionSpec("Give the agent nothing of earlier runs.", flag=True),
        **_CAPS,
    },
    creates=True,
    document=_rollout_document,
    holds=lambda done: done.passed,
    about="TASK may be `-`: stdin. Every attempt is verified and learnt from. Prints each with its verdict, its cost "
    "and its log; why it went on and why it ended; and the answer. Exit code 1 if none passed.",
)
