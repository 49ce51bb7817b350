"""`muniment rollout`: an agent of the caller's tries a task, once or as often as it takes; every attempt teaches."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from muniment.surfaces.cli.asking import one_line, settings_of_user, text_given
from muniment.surfaces.cli.functions import AGENT_HELP, VERIFIER_HELP, load_function
from muniment.surfaces.cli.learning_desk import (
    bucket_given,
    bucket_option,
    features_given,
    in_words_of_commands,
    key_options,
    parts_given,
)
from muniment.surfaces.cli.options import db_option, json_option, tenant_option, user_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.cli.rules_desk import as_is, labelled, timeout_option
from muniment.surfaces.cli.run import many
from muniment.surfaces.cli.tables import Cell, show_table
from muniment.surfaces.settings import open_store

if TYPE_CHECKING:
    from muniment.contracts.run_records import RolloutSelectBlock, RunCost
    from muniment.handles.runner import Attempt, Done

__all__ = ["rollout"]

MODES = ("auto", "main", "sot", "kroll", "matts", "synth")
"""A tree search takes a problem and not a task: that one is the library's."""
_VERDICTS = {"PASS": "green", "PARTIAL": "yellow", "FAIL": "red"}
_CAPS = {
    "tokens_max": "tokens",
    "tool_calls_max": "tool calls",
    "latency_ms_max": "milliseconds",
    "attempts_max": "attempts",
}


def cap_options(command: Any) -> Any:
    """What all attempts together may take."""
    for name, what in reversed(_CAPS.items()):
        option = f"--{name.replace('_', '-')}"
        command = click.option(option, type=click.IntRange(1), metavar="N", help=f"At most so many {what}.")(command)
    return command


@click.command()
@click.argument("task", metavar="TASK")
@click.option("--agent", required=True, metavar="MODULE:FUNCTION", help=AGENT_HELP)
@click.option("--verifier", required=True, metavar="MODULE:FUNCTION", help=VERIFIER_HELP)
@click.option("--mode", type=click.Choice(MODES), help="How it is tried (default: once; with --router as it says).")
@click.option("--k", type=click.IntRange(1, 64), metavar="N", help="How many attempts at once (kroll, matts, synth).")
@click.option("--router", is_flag=True, help="Go as far as earlier runs of the bucket say: see `muniment route`.")
@cap_options
@timeout_option
@click.option("--seed", metavar="TEXT", help="Attempts differ in the same way again.")
@click.option("--run", "run_id", metavar="RUN", help="The id of the first attempt.")
@click.option("--no-recall", is_flag=True, help="Tell the agent nothing of earlier runs.")
@key_options
@bucket_option
@click.option("--agent-id", metavar="ID", help="As which agent it runs (default: the setting `agent`).")
@user_option
@db_option
@tenant_option
@json_option
@handles_errors
def rollout(
    task: str,
    agent: str,
    verifier: str,
    router: bool,
    no_recall: bool,
    agent_id: str | None,
    user: str | None,
    db: str | None,
    tenant: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Have an agent try TASK (`-` is stdin), have it verified, and learn from every attempt.

    Prints each attempt with its verdict, its cost and its log; why it went on and why it ended; and the answer that
    stands. Exit code 1 where none passed.
    """
    asked = {"task": text_given(task), **_asked(given)}
    call, judge = load_function(agent, "agent"), load_function(verifier, "verifier")
    settings = settings_of_user(db, tenant, user, agent_id)
    with in_words_of_commands(), open_store(settings) as mem:
        runner = mem.runner(
            call,
            judge,
            {"recall": not no_recall},
            router=True if router else None,
            user_id=settings.user,
            agent_id=settings.agent,
            tenant_id=settings.tenant,
        )
        done = runner.run(**asked)
    if as_json:
        emit_json(_plain(done))
    else:
        _show(done)
    if not done.passed:
        sys.exit(EXIT_FAILED)


def _asked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options under the names that a runner has for them."""
    caps = {name: given[name] for name in _CAPS if given[name] is not None}
    return {
        "mode": given["mode"],
        "k": given["k"],
        "caps": caps or None,
        "timeout_s": given["timeout_s"],
        "seed": given["seed"],
        "run_id": given["run_id"],
        "intent": parts_given(given["intents"], "intent"),
        "state": parts_given(given["states"], "state"),
        "features": features_given(given["features"]),
        "bucket_key": bucket_given(given["bucket"]),
    }


# -- what came of it ----------------------------------------------------------------------------------


def _plain(done: Done) -> dict[str, Any]:
    return {
        "run_id": done.run_id,
        "passed": done.passed,
        "escalate": done.escalate,
        "output": done.output.to_wire(),
        "result": done.result.to_wire(),
        "spent": done.spent._asdict(),
        "steps": [step._asdict() for step in done.steps],
        "decision": None if done.decision is None else done.decision.to_wire(),
        "attempts": [_plain_attempt(each, stands=each.run_id == done.run_id) for each in done.attempts],
    }


def _plain_attempt(attempt: Attempt, *, stands: bool) -> dict[str, Any]:
    log = attempt.learned.event_log
    return {
        "number": attempt.number,
        "kind": attempt.kind,
        "mode": attempt.mode,
        "run_id": attempt.run_id,
        "trace_id": log.trace_id,
        "passed": attempt.passed,
        "stands": stands,
        "output": attempt.output.to_wire(),
        "result": attempt.result.to_wire(),
        "cost": None if log.cost is None else log.cost.to_wire(),
        "summary": None if attempt.summary is None else attempt.summary.to_wire(),
        "selection": None if log.rollout_select is None else log.rollout_select.to_wire(),
    }


def _show(done: Done) -> None:
    fate = click.style("passed", fg="green") if done.passed else click.style("not passed", fg="red")
    click.echo(f"{fate}, after {many(len(done.attempts), 'attempt')}; run {click.style(done.run_id, bold=True)} stands")
    rows = [_row(each, stands=each.run_id == done.run_id) for each in done.attempts]
    show_table(("", "mode", "verdict", "outcome", "log", "answered"), rows)
    click.echo()
    for number, step in enumerate(done.steps, 1):
        labelled(f"step {number}", f"{step.action}: {step.words} ({step.code})")
    if done.decision is not None:
        labelled("routed", "; ".join(each.words for each in done.decision.reasons))
    selection = done.learned.event_log.rollout_select
    if selection is not None:
        labelled("compared", _compared(selection))
    spent = done.spent
    as_is("spent", f"{spent.tokens:,} tokens, {many(spent.tool_calls, 'tool call')}, {spent.latency_ms:,} ms of work")
    if done.escalate:
        labelled("escalate", "more attempts would not do: decompose the task, or hand it on")
    labelled("answer", done.output.text or "none")
    for code in done.result.reason_codes or ():
        labelled("reason", code)


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
    told = [f"{sum(said)} tokens"] if said else []
    told += [many(cost.tool_calls, "call")] if cost.tool_calls is not None else []
    told += [f"{cost.latency_ms} ms"] if cost.latency_ms is not None else []
    return ", ".join(told) or "at no known cost"


def _compared(selection: RolloutSelectBlock) -> str:
    chosen, found = len(selection.selected_summary_ids or ()), selection.rollouts_n or 0
    diversity = "" if selection.diversity_score is None else f", diversity {selection.diversity_score:.2f}"
    return f"{chosen} of {found} summaries chosen by {selection.selection_method}{diversity}"
