"""`learn recall | fold | flowmap`: what earlier runs taught, a run folded into memory, where runs go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import click

from muniment.core.scope import Outcome, Verdict
from muniment.errors import InvalidInput, NotFound
from muniment.learning.records import Store
from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.commands.banks import action_lines, says
from muniment.surfaces.cli.openings import run_named
from muniment.surfaces.cli.parameters import Choice, Word
from muniment.surfaces.cli.reading import write_bytes
from muniment.surfaces.cli.terminal import Cell, counted, one_line, strong, style, table, when
from muniment.surfaces.operations.signatures import Parameter

if TYPE_CHECKING:
    from muniment.contracts.learning import FoldResult, MemoryActionPlan, MemoryActionRecord
    from muniment.contracts.rules import DistillDraft, FlowMapSnapshot, Intervention, StageHotspot
    from muniment.contracts.runs import EventLog, TraceCapsule, VerifierResult
    from muniment.core.policy import InjectionBudget
    from muniment.handles.bank import Bank
    from muniment.handles.run import Run
    from muniment.learning.folding import Learned
    from muniment.learning.recalling import Recall
    from muniment.learning.records import StoredMemory

__all__ = ["flowmap", "fold", "recall"]

# -- recall -------------------------------------------------------------------------------------------

_PARTS = {"sem": "words", "intent": "intent", "state": "state", "quality": "quality"}
_NAMED_MAX = 5


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
    budget: InjectionBudget = call.memory.policy.learn.injection
    keys = {"intent": found.request.intent_key, "state": found.request.state_key}
    named = [name for name, key in keys.items() if key is not None]
    how = "by words alone: give --intent and --state" if not named else f"by words and {' and '.join(named)}"
    used = f"{found.injection.tokens} of {budget.total_tokens_max} tokens"
    yield f"{counted(len(found.hints), 'hint')}, {used}, {how}"
    if note := (found.response.model_extra or {}).get("note"):
        yield one_line(str(note), 300)
    if found.hints:
        yield ""
        yield from _hint_lines(found)
    for each in found.injection.overflow:
        yield _overflow(each)
    if found.dropped:
        yield f"\ndropped: {_dropped(found)}"
    if found.injection.overflow:
        yield f"whole: {call.spelled('learn', 'bank', 'show', 'ID')}"


def _hint_lines(found: Recall) -> Iterator[str]:
    rows: list[list[Cell]] = []
    for number, hint in enumerate(found.hints, 1):
        extra: Mapping[str, Any] = hint.model_extra or {}
        rows.append(
            [str(number), f"{hint.score:.3f}", *(f"{extra['parts'][name]:.2f}" for name in _PARTS), hint.source]
        )
    yield from table(("", "score", *_PARTS.values(), "store"), rows)
    yield ""
    for number, hint in enumerate(found.hints, 1):
        yield f"{number:>2}  {one_line(hint.summary or '(left out)', 1_000)}"
        yield f"    {hint.memory_id}  {style(one_line(hint.reason or '', 300), fg='bright_black')}"


def _overflow(each: Mapping[str, Any]) -> str:
    if each["action"] == "left_out":
        return f"left out: {each['memory_id']}, {each['tokens']} tokens that did not fit"
    return f"cut: {each['memory_id']}, {each['kept_tokens']} of {each['tokens']} tokens"


def _dropped(found: Recall) -> str:
    """`3 retired (rm_1, rm_2, …)`, by reason."""
    by_reason: dict[str, list[str]] = {}
    for each in found.dropped:
        by_reason.setdefault(each.reason, []).append(each.memory_id)
    return "; ".join(
        f"{len(ids)} {one_line(reason, 80)} ({', '.join(ids[:_NAMED_MAX])}{', …' if len(ids) > _NAMED_MAX else ''})"
        for reason, ids in sorted(by_reason.items())
    )


recall = Command(
    "run.recall",
    _show_recall,
    around=lambda call, ask: ask(keep="run_id" in call.typed),
    on="user or run",
    arguments={"query": "QUERY"},
    left_out=("keep",),
    words={
        "top_k": Word("How many hints, at most (default: the policy's).", "top", "N", type=click.IntRange(1)),
        "sources": Word("Only of this store.", "source", type=Choice(get_args(Store))),
    },
    more={"run_id": Word("Recall for this run and keep it there: what is injected counts.")},
    check=_check_user,
    calls=("memory.resume", "memory.policy"),
    document=_recall_document,
    about="The hints that a run would get for QUERY (`-` is standard input), best first. Without --intent and --state "
    "it is by words alone. Nothing is written, unless --run names a run that is open.",
)


# -- fold ---------------------------------------------------------------------------------------------


class _Folded(NamedTuple):
    learnt_before: bool
    event_log: EventLog
    trace_capsule: TraceCapsule
    fold: FoldResult
    plan: MemoryActionPlan
    actions: tuple[MemoryActionRecord, ...]
    records: list[StoredMemory]
    drafts: list[DistillDraft]


def _fold(call: Call, ask: Callable[..., Learned]) -> _Folded:
    mem, tenant, level = call.memory, call.tenant, call.typed.get("level", "user")
    given = _verdict(call.typed)
    run = run_named(mem, call.typed["run_id"], tenant)
    before = run.learning.learned()
    grants = () if level == "user" else (level,)
    learned = before or ask(verifier_result=given or _kept_result(run), grants=grants)
    bank = mem.learning.bank_of(learned.event_log.trace_id, tenant_id=tenant)
    wanted = set(learned.fold.produced.rule_draft_ids or ())
    drafts = [draft for draft in bank.drafts() if draft.draft_id in wanted]
    log, capsule, found, plan, actions = (
        learned.event_log,
        learned.capsule,
        learned.fold,
        learned.plan,
        learned.records,
    )
    return _Folded(before is not None, log, capsule, found, plan, tuple(actions), _records(bank, learned), drafts)


def _learning() -> Iterator[Parameter]:
    """What `Run.learn` takes that is said on a command line."""
    from muniment.surfaces.cli.calling import operation_named

    named = ("intent", "state", "features", "bucket_key", "level")
    return (each for each in operation_named("run.learn").signature.parameters if each.name in named)


def _verdict(typed: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the command line says of the run; None where it says nothing."""
    result, verdict, outcome, reasons = (typed.get(name) for name in ("result", "verdict", "outcome", "reasons"))
    if result is not None and (verdict or outcome or reasons):
        raise InvalidInput("a run is judged once", path="$.result", hint="give --result, or --verdict and --outcome")
    if result is not None:
        return _read_result(result)
    if verdict is None:
        if outcome or reasons:
            raise InvalidInput("an outcome goes with a verdict", path="$.verdict", hint="give --verdict as well")
        return None
    plain: dict[str, Any] = {"verifier_id": "by_hand", "verdict": verdict, "outcome": outcome or "UNKNOWN"}
    return plain | ({"reason_codes": list(reasons)} if reasons else {})


def _read_result(name: str) -> Mapping[str, Any]:
    from muniment.surfaces.cli.documents import read_one

    found = read_one(name, "$.result", "one VerifierResult")
    if not isinstance(found, dict):
        raise InvalidInput(
            "a verifier's result is a JSON object",
            path="$.result",
            hint="`muniment schema show VerifierResult` says of what",
        )
    return found


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
    """What the plan left, as it stands; what was forgotten since is not there."""
    found: list[StoredMemory] = []
    for id_ in dict.fromkeys(id_ for record in learned.records for id_ in record.produced_ids or ()):
        with suppress(NotFound):
            found.append(bank.get(id_))
    return found


def _show_fold(call: Call) -> Iterator[str]:
    folded: _Folded = call.answer
    found, log, plan_id = folded.fold, folded.event_log, folded.plan.plan_id
    if folded.learnt_before:
        yield "it was folded before, and nothing is learnt twice; this is what was learnt then"
    yield f"{strong(call.typed['run_id'])}  {log.verifier.verdict}, outcome {log.verifier.outcome}"
    lines = {
        "log": f"{log.trace_id}, folded for {found.trigger.kind}",
        "intent": found.intent_key or "none: it is compared with other runs that have none",
        "state": found.state_key or "none",
    }
    for label, text in lines.items():
        yield f"{label + ':':<9} {one_line(text, 200)}"
    for memory in folded.records:
        status = f" [{memory.status}]" if memory.status != "active" else ""
        kind = "episode" if memory.kind == "reasoning" else memory.kind
        yield f"{kind + ':':<9} {memory.id}{status}  {one_line(says(memory), 300)}"
    for draft in folded.drafts:
        rule = draft.proposed_rule
        yield f"{'draft:':<9} {draft.draft_id}  {rule.type}: {one_line(rule.title or rule.body or '', 200)}"
    if folded.actions:
        yield f"\nplan {plan_id}"
        yield from action_lines(folded.actions)
    else:
        yield f"plan:     {plan_id} was forgotten, with a run that it was learnt from"
    if not folded.learnt_before and folded.records:
        yield f"to take it back: {call.spelled('learn', 'undo', plan_id)}"


fold = Command(
    "memory.learn",
    _show_fold,
    around=_fold,
    extends=_learning,
    arguments={"run_id": "RUN"},
    left_out=("verifier_result", "grants"),
    words={"level": Word("Whose bank learns it.")},
    more={
        "result": Word("What the verifier said: a VerifierResult in JSON (`-` is stdin).", metavar="FILE"),
        "verdict": Word("Or its verdict …", type=Choice(get_args(Verdict))),
        "outcome": Word("… its outcome (default: UNKNOWN) …", type=Choice(get_args(Outcome))),
        "reasons": Word("… and its reason codes; repeatable.", "reason", "CODE", many=True),
    },
    calls=("run.learned", "run.verifications", "memory.bank_of", "bank.get", "bank.drafts"),
    holds=lambda answer: all(each.status != "FAILED" for each in answer.actions),
    about="Whether the run is open or has ended: log, episode, tactics, seed, drafts, by a plan. Judged by --result or "
    "--verdict; without either, by the last result that the run keeps. Folding twice is folding once. Intent and state "
    "are those it recalled by, unless they are said. Exits 1 where the plan was aborted.",
)


# -- flow map -----------------------------------------------------------------------------------------

_SHOWN_MAX = 20


class _Mapped(NamedTuple):
    snapshot: FlowMapSnapshot
    drawn: str | None
    """The file that the picture was written to."""


def _flow_map(call: Call, ask: Callable[[], FlowMapSnapshot]) -> _Mapped:
    snapshot = ask()
    if "svg" not in call.typed:
        return _Mapped(snapshot, None)
    from muniment.rules._flow_picture import to_heatmap_svg

    return _Mapped(snapshot, write_bytes(call.typed["svg"], to_heatmap_svg(snapshot).encode(), "$.svg"))


def _flow_document(call: Call) -> dict[str, Any]:
    wire: dict[str, Any] = call.answer.snapshot.to_wire()
    return wire


def _show_flow(call: Call) -> Iterator[str]:
    yield from _flow_lines(call.answer.snapshot)
    if call.answer.drawn is not None:
        yield f"drawn to {call.answer.drawn}"


def _flow_lines(snapshot: FlowMapSnapshot) -> Iterator[str]:
    window, kind = snapshot.window, snapshot.estimator.kind if snapshot.estimator is not None else None
    bucket = "all buckets" if snapshot.bucket_key == "*" else snapshot.bucket_key
    over = f"{when(window.start_at)} to {when(window.end_at)}" if window is not None else "all time"
    yield f"{strong(str(bucket))}, {over}, by {kind}"
    spots = snapshot.risk.stage_hotspots or ()
    if spots:
        yield from table(
            ("stage", "risk", "bounds", "logs", "reason"), [_spot_row(each) for each in spots[:_SHOWN_MAX]]
        )
    else:
        yield "nothing went wrong in this window"
    if len(spots) > _SHOWN_MAX:
        yield f"  and {len(spots) - _SHOWN_MAX} more (--json)"
    gains = snapshot.opportunity.interventions or ()
    if gains:
        yield ""
        columns = ("intervention", "gain", "bounds", "cost", "runs", "against")
        yield from table(columns, [_gain_row(each) for each in gains])
    for note in (snapshot.notes or "").split("; "):
        yield style(f"  {note}", fg="bright_black")


def _spot_row(spot: StageHotspot) -> list[Cell]:
    extra, rate = spot.__pydantic_extra__ or {}, spot.risk_rate or 0.0
    thin = " (thin)" if extra.get("thin") else ""
    return [
        spot.stage or "–",
        (f"{rate:.1%}", "red" if rate >= 0.2 else "yellow" if rate >= 0.05 else "white"),
        f"{extra['lower']:.1%} to {extra['upper']:.1%}",
        f"{extra['risky_n']} of {spot.support_n}{thin}",
        spot.reason_code or "(all)",
    ]


def _gain_row(each: Intervention) -> list[Cell]:
    extra, gain = each.__pydantic_extra__ or {}, each.gain_pass or 0.0
    lower, upper = float(str(extra["lower"])), float(str(extra["upper"]))
    return [
        each.intervention or "–",
        (f"{100 * gain:+.1f} pt", "green" if lower > 0 else "red" if upper < 0 else "white"),
        f"{100 * lower:+.1f} to {100 * upper:+.1f}",
        f"{each.delta_cost:+.4g}",
        str(each.support_n),
        f"{extra['base_n']} runs in {extra['strata_n']} strata{' (thin)' if extra.get('thin') else ''}",
    ]


flowmap = Command(
    "bank.flow_map",
    _show_flow,
    around=_flow_map,
    words={
        "bucket_key": Word("One bucket, such as I2|math|clarity_high (default: all)."),
        "since": Word("Runs logged from then on (ISO 8601)."),
        "until": Word("Runs logged before then (ISO 8601)."),
        "estimator": Word("Counted rates, or a learned field."),
    },
    more={
        "svg": Word("Draw the map as SVG into this file.", metavar="OUT"),
    },
    document=_flow_document,
    about="At which stages and for which reasons the runs of a bank go wrong, worst first, and what helps.",
)
