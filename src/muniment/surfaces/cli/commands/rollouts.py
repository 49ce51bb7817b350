"""`learn route | rates | rollout`: how to try a task, what the logs say, and an agent of the caller's trying it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from muniment.handles.runner import Runner
from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.parameters import Choice, Word, fields_asked
from muniment.surfaces.cli.reading import text_given
from muniment.surfaces.cli.terminal import (
    Cell,
    as_is,
    coloured,
    counted,
    labelled,
    one_line,
    strong,
    style,
    table,
    when,
)
from muniment.surfaces.operations.signatures import Parameter

if TYPE_CHECKING:
    from muniment.contracts.runs import RolloutSelectBlock, RunCost
    from muniment.handles.runner import Attempt, Done
    from muniment.rules._records import Observables, Rate, RateReport, RouteDecision, Rung

__all__ = ["rates", "rollout", "route"]

_ACTIONS = {"run": "green", "repair": "yellow", "stop": "cyan", "escalate": "red"}
_VERDICTS = {"PASS": "green", "PARTIAL": "yellow", "FAIL": "red"}
_RATES = {
    "pass_rate": "passed",
    "confirmed_rate": "confirmed",
    "unknown_rate": "outcome unknown",
    "exec_unavailable_rate": "not executed",
    "l1_violation_rate": "broke a constraint",
    "insufficient_evidence_rate": "not shown",
    "overinject_rate": "told too much",
}


# -- route --------------------------------------------------------------------------------------------


def _request() -> list[Parameter]:
    from muniment.rules._records import RouteRequest

    return [Parameter("intent", Mapping, False), *fields_asked(RouteRequest)]


def _show_decision(call: Call) -> Iterator[str]:
    decision: RouteDecision = call.answer
    action = style(decision.action, fg=_ACTIONS[decision.action], bold=True)
    yield f"{action}  {_ladder(decision.rungs) or 'nothing'}{', then synthesis' if decision.synth else ''}"
    if decision.rungs:
        yield f"cost:     at most {_figure(decision.cost_max)} a task"
    if decision.runs_missing:
        yield f"missing: {counted(decision.runs_missing, 'judged run')}"
    yield ""
    yield from table(("code", "because"), [[each.code, each.words] for each in decision.reasons])


def _ladder(rungs: Sequence[Rung]) -> str:
    """`1 hot (main), then 3 probe (kroll)`."""
    return ", then ".join(f"{rung.k} {rung.tier} ({rung.mode})" for rung in rungs)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


route = Command(
    "memory.route",
    _show_decision,
    on="bank memory",
    extends=_request,
    left_out=("asked", "cluster_hits", "utility_change", "can_synth"),
    words={
        "intent": Word("A part of its intent, such as family=booking."),
        "impact": Word("What hangs on it (default: the bucket's, or med)."),
        "verdict": Word("Of an attempt that was made."),
        "outcome": Word("Of that attempt."),
        "reason_codes": Word("A reason code of that attempt; repeatable.", "code", "CODE"),
        "violated": Word("A constraint that it broke; repeatable.", metavar="KEY"),
        "repairs": Word("Repairs that were tried already.", metavar="N", type=click.IntRange(0)),
        "cluster_id": Word("The cluster of its failure.", "cluster", "ID"),
        "rules_changed": Word("Its rules have just changed."),
        "pressure": Word("How scarce money is."),
        "cost_max": Word("What the task may still cost.", metavar="COST", type=click.FloatRange(0)),
    },
    about="Tier, mode, how many attempts, how far to go, and why, by the runs of its bucket that "
    "the bank has logged. Nothing is run and nothing is written.",
)


# -- rates --------------------------------------------------------------------------------------------


def _show_report(call: Call) -> Iterator[str]:
    report: RateReport = call.answer
    seen = report.observables
    over = " to ".join((when(seen.start) if seen.start else "the first", when(seen.end) if seen.end else "now"))
    unjudged = f"; {counted(seen.unjudged, 'run')} that nobody judged left out" if seen.unjudged else ""
    yield f"{counted(seen.n, 'judged run')} of {seen.bucket_key or 'all buckets'}, {over}{unjudged}\n"
    rows = [[name, *_rate_cells(getattr(seen, field))] for field, name in _RATES.items()]
    yield from table(("rate", "", "95 % bounds", "runs"), rows)
    if len(report.buckets) > 1:
        yield ""
        yield from _bucket_lines(report.buckets)
    if seen.cluster_recurrence:
        yield ""
        clusters: list[list[Cell]] = [
            [
                str(each.count),
                f"{each.share:.0%}",
                ("yes", "red") if each.recurs else "no",
                each.cluster_id,
                one_line(each.sign or ""),
            ]
            for each in seen.cluster_recurrence
        ]
        yield from table(("times", "share", "recurs", "failure cluster", "how it shows"), clusters)
    yield ""
    yield from table(("advice", "because"), [[each.code, each.words] for each in report.advice])


def _rate_cells(rate: Rate) -> list[Cell]:
    of = f"{rate.count} of {rate.n}"
    if rate.rate is None or rate.lower is None or rate.upper is None:
        return [("unknown", "bright_black"), f"{rate.runs_missing} more runs", of]
    return [f"{rate.rate:.1%}", f"{rate.lower:.1%} to {rate.upper:.1%}", of]


def _bucket_lines(buckets: Sequence[Observables]) -> Iterator[str]:
    rows: list[list[Cell]] = [
        [str(each.n), *(_brief(getattr(each, field)) for field in _RATES), one_line(each.bucket_key or "(no bucket)")]
        for each in buckets
    ]
    return table(("runs", *_RATES.values(), "bucket"), rows)


def _brief(rate: Rate) -> str:
    return "–" if rate.rate is None else f"{rate.rate:.0%}"


rates = Command(
    "memory.observe_rates",
    _show_report,
    on="bank memory",
    words={"since": Word("Runs learnt from then on (ISO 8601)."), "until": Word("Runs learnt before then (ISO 8601).")},
    about="How often outcomes stay unknown, nothing could be executed, constraints break and failures recur. Each rate "
    "with its bounds; what that asks for stands below: a sandbox before a grader.",
)


# -- rollout ------------------------------------------------------------------------------------------


_CAPS = {
    name: Word(f"At most so many {what}.", metavar="N", type=click.IntRange(1))
    for name, what in {
        "tokens_max": "tokens",
        "tool_calls_max": "tool calls",
        "latency_ms_max": "milliseconds",
        "attempts_max": "attempts",
    }.items()
}
_MODES = ("auto", "main", "sot", "kroll", "matts", "synth")
"""A tree search takes a problem and not a task: that one is the library's."""


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
    fate = coloured("passed" if done.passed else "not passed", {"passed": "green", "not passed": "red"})
    yield f"{fate}, after {counted(len(done.attempts), 'attempt')}; run {strong(done.run_id)} stands"
    rows = [_row(each, stands=each.run_id == done.run_id) for each in done.attempts]
    yield from table(("", "mode", "verdict", "outcome", "log", "answered"), rows)
    yield ""
    for number, step in enumerate(done.steps, 1):
        yield from labelled(f"step {number}", f"{step.action}: {step.words} ({step.code})")
    if done.decision is not None:
        yield from labelled("routed", "; ".join(each.words for each in done.decision.reasons))
    selection = done.learned.event_log.rollout_select
    if selection is not None:
        yield from labelled("compared", _compared(selection))
    spent = done.spent
    yield as_is(
        "spent", f"{spent.tokens:,} tokens, {counted(spent.tool_calls, 'tool call')}, {spent.latency_ms:,} ms of work"
    )
    if done.escalate:
        yield from labelled("escalate", "more attempts would not do: decompose the task, or hand it on")
    yield from labelled("answer", done.output.text or "none")
    for code in done.result.reason_codes or ():
        yield from labelled("reason", code)


def _row(attempt: Attempt, *, stands: bool) -> list[Cell]:
    log, verdict = attempt.learned.event_log, attempt.result.verdict
    return [
        f"{'*' if stands else ' '}{attempt.number + 1}",
        attempt.mode if attempt.kind == "attempt" else attempt.kind,
        (verdict, _VERDICTS[verdict]),
        attempt.result.outcome,
        log.trace_id,
        f"{_cost(log.cost)}: {one_line(attempt.output.text, 200) or 'nothing'}",
    ]


def _cost(cost: RunCost | None) -> str:
    """`120 tokens, 1 call, 40 ms`, as far as the log knows."""
    if cost is None:
        return "at no known cost"
    said = [each for each in (cost.tokens_in, cost.tokens_out) if each is not None]
    parts = [f"{sum(said)} tokens"] if said else []
    parts += [counted(cost.tool_calls, "call")] if cost.tool_calls is not None else []
    parts += [f"{cost.latency_ms} ms"] if cost.latency_ms is not None else []
    return ", ".join(parts) or "at no known cost"


def _compared(selection: RolloutSelectBlock) -> str:
    chosen, found = len(selection.selected_summary_ids or ()), selection.rollouts_n or 0
    diversity = "" if selection.diversity_score is None else f", diversity {selection.diversity_score:.2f}"
    return f"{chosen} of {found} summaries chosen by {selection.selection_method}{diversity}"


rollout = Command(
    "",
    _show_rollout,
    function=Runner.run,
    around=_rollout,
    on="rollout",
    arguments={"task": "TASK"},
    left_out=("query", "caps", "known", "tree"),
    words={
        "task": Word(read=text_given),
        "mode": Word("How it is tried (default: once; with --router as it says).", type=Choice(_MODES)),
        "k": Word("How many attempts at once (kroll, matts, synth).", type=click.IntRange(1, 64)),
        "seed": Word("Attempts differ in the same way again.", metavar="TEXT"),
        "run_id": Word("The id of the first attempt."),
    },
    more={
        "agent": Word(needed=True),
        "verifier": Word(needed=True),
        "router": Word("Go as far as earlier runs of the bucket say: see `muniment learn route`.", flag=True),
        "no_recall": Word("Tell the agent nothing of earlier runs.", flag=True),
        **_CAPS,
    },
    creates=True,
    document=_rollout_document,
    holds=lambda done: done.passed,
    about="TASK may be `-`: stdin. Every attempt is verified and learnt from. Prints each with its verdict, its cost "
    "and its log; why it went on and why it ended; and the answer that stands. Exit code 1 where none passed.",
)
