"""`muniment run`: the runs of a store, one of them as it stands, and a locked one opened again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from muniment.surfaces.cli.asking import one_line, when
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.core.policy.compaction import CompactionPolicy
    from muniment.core.record import JsonObject
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.runs.records import RunLog
    from muniment.store.ledger.records import RunState

__all__ = ["many", "run", "run_named", "show_diagnosis", "show_log"]


@click.group()
def run() -> None:
    """List the runs of a store, show how one stands, or open a locked one again."""


def run_named(mem: Memory, run_id: str, tenant: str) -> Run:
    """A handle of a run that exists, to read with: under the run's own scope, whether or not it has ended."""
    scope = mem.log.run_state(run_id, tenant_id=tenant).scope
    return mem.run(
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        session_id=scope.session_id,
        run_id=scope.run_id,
        tenant_id=scope.tenant_id,
    )


def many(count: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# -- list ---------------------------------------------------------------------------------------------


@run.command("list")
@db_option
@tenant_option
@click.option("--user", metavar="ID", help="Runs of one user (default: of all).")
@json_option
@handles_errors
def list_(db: str | None, tenant: str | None, user: str | None, as_json: bool) -> None:
    """List runs, oldest first: whether each is open, locked or has ended, and what it is for."""
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        found = list(mem.runs(user_id=user, tenant_id=settings.tenant))
    if as_json:
        emit_json({"runs": [state.to_wire() for state in found]})
        return
    for state in found:
        aim = one_line(state.objective, 80) if state.objective else "no objective given"
        click.echo(f"{state.run_id}  {when(state.started_at)}  {_standing(state)}  {state.scope.user_id}  {aim}")
    if not found:
        click.echo(f"no runs{f' of {user}' if user else ''} in {settings.db}")


def _standing(state: RunState) -> str:
    if state.is_finished:
        return f"ended, {state.stop_reason}"
    return "LOCKED" if state.is_locked else "open"


# -- show ---------------------------------------------------------------------------------------------


@run.command()
@click.argument("run_id", metavar="RUN")
@db_option
@tenant_option
@json_option
@handles_errors
def show(run_id: str, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Show how RUN stands: its objective, what it found and met, what it used, how far the next snapshot is."""
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        state = mem.log.run_state(run_id, tenant_id=settings.tenant)
        log = run_named(mem, run_id, settings.tenant).log.read()
        policy = mem.policy.compaction
    if as_json:
        emit_json({"run": state.to_wire(), **_plain_log(log)})
        return
    scope = state.scope
    click.echo(f"{click.style(run_id, bold=True)}  {_standing(state)}")
    click.echo(f"{scope.user_id} with {scope.agent_id} in session {scope.session_id}, since {when(state.started_at)}")
    show_log(log)
    if not state.is_finished:
        click.echo(f"next snapshot: {_ahead(log, policy)}")
    if state.diagnosis is not None:
        show_diagnosis(state.diagnosis)


def _plain_log(log: RunLog) -> dict[str, Any]:
    """A log in numbers, with what is short enough to be read whole."""
    return {
        "objective": log.objective,
        "done_definition": log.done_definition,
        "step": log.step,
        "phase": log.phase,
        "loops": log.loops,
        "claims": _tally(claim.status for claim in log.claims),
        "conflicts": _tally(conflict.status for conflict in log.conflicts),
        "failures": {"kinds": len(log.failures), "met": sum(failure.count for failure in log.failures)},
        "open_questions": [question.text for question in log.open_questions],
        "next_actions": list(log.next_actions),
        "budgets": {"limits": log.budgets, "used": log.spent.to_wire()},
        "last_snapshot": log.sequence,
        "since_snapshot": {"steps": len(log.steps_since), "counted_events": len(log.counted_since)},
    }


def _tally(statuses: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(statuses).items()))


def show_log(log: RunLog) -> None:
    """How a run stands, for a person."""
    for label, text in _log_lines(log):
        click.echo(f"{label + ':':<14} {text}")
    _show_budgets(log)
    for question in log.open_questions:
        click.echo(f"  ? {one_line(question.text)}")
    for action in log.next_actions:
        click.echo(f"  → {one_line(action)}")


def _log_lines(log: RunLog) -> Iterator[tuple[str, str]]:
    yield "objective", one_line(log.objective) or "none given"
    yield "done when", _said(log.done_definition) or "not said"
    ended = f", {log.phase} done" if log.phase else ""
    loops = f", {many(log.loops, 'loop')}" if log.loops else ""
    yield "step", f"{log.step}{ended}{loops}" if log.step else "none yet"
    yield "claims", _counted(_tally(claim.status for claim in log.claims))
    yield "conflicts", _counted(_tally(conflict.status for conflict in log.conflicts))
    met = sum(failure.count for failure in log.failures)
    yield "failures", f"{many(len(log.failures), 'kind')}, met {many(met, 'time')}" if log.failures else "none"
    yield "questions", f"{len(log.open_questions)} open" if log.open_questions else "none"
    yield "last snapshot", str(log.sequence) if log.sequence else "none yet"


def _said(value: JsonObject | str) -> str:
    from muniment.packets.page.lines import shown

    if isinstance(value, str):
        return one_line(value)
    return one_line("; ".join(f"{key}: {shown(part)}" for key, part in value.items()))


def _counted(tally: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in tally.items()) or "none"


def _show_budgets(log: RunLog) -> None:
    """What was used, against its limit where the run was given one."""
    used = log.spent.to_wire()
    named = [_used(used[name], log.budgets.get(name), name.replace("_", " ")) for name in used]
    other = [f"{name} {value}" for name, value in sorted(log.budgets.items()) if name not in used]
    click.echo(f"{'used:':<14} {', '.join(named)}")
    if other:
        click.echo(f"{'limits:':<14} {one_line(', '.join(other))}")


def _used(used: int, limit: Any, name: str) -> str:
    if isinstance(limit, int | float) and not isinstance(limit, bool):
        return f"{used} of {limit} {name}"
    return many(used, name.removesuffix("s"))


def _ahead(log: RunLog, policy: CompactionPolicy) -> str:
    how = "taken" if policy.auto else "due, and taken when asked for,"
    return (
        f"{how} at {policy.event_threshold} counted events or {policy.step_fallback} steps; "
        f"there are {len(log.counted_since)} and {len(log.steps_since)}"
    )


def show_diagnosis(diagnosis: Mapping[str, Any]) -> None:
    """Why a run is locked, and what to do about it."""
    click.echo("locked: its snapshot did not hold, so nothing more is written to it")
    for check in diagnosis.get("checks", ()):
        if check.get("status") != "PASS":
            click.echo(f"  {check.get('name')}: {one_line(str(check.get('message')), 300)}")
    click.echo("put it right with mem.resume(run_id, repair=True), then: muniment run unlock RUN --reason …")


# -- unlock -------------------------------------------------------------------------------------------


@run.command()
@click.argument("run_id", metavar="RUN")
@click.option("--reason", required=True, metavar="TEXT", help="Why it may go on; kept in the ledger.")
@db_option
@tenant_option
@json_option
@handles_errors
def unlock(run_id: str, reason: str, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Open RUN again after it was locked: only if its snapshot holds now; else exit 1, and it stays locked."""
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        snapshot = mem.resume(run_id, repair=True, tenant_id=settings.tenant).run.log.unlock(reason)
    if as_json:
        emit_json({"run_id": run_id, "snapshot_id": snapshot.snapshot_id, "sequence": snapshot.sequence})
    else:
        click.echo(f"{run_id} is open again: snapshot {snapshot.sequence} holds ({snapshot.snapshot_id})")
