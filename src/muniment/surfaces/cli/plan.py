"""`muniment plan`, `apply`, `undo`: changes to learned memory, said first, done whole or not at all, taken back."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.asking import one_line, when
from muniment.surfaces.cli.documents import LINE_SUFFIXES, read_all, read_one
from muniment.surfaces.cli.learning_desk import bank_options, opened, opened_at, show_actions, spelled, whose
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.cli.run import many
from muniment.surfaces.cli.tables import Cell, show_table

if TYPE_CHECKING:
    from muniment.contracts.folding import MemoryActionPlan
    from muniment.learning.fold.executing import Applied
    from muniment.learning.plans import PlanState

__all__ = ["apply", "plan", "undo"]

_STANDINGS = {"made": "yellow", "applied": "green", "aborted": "red", "undone": "bright_black"}
plan_argument = click.argument("plan_id", metavar="PLAN")


@click.group()
def plan() -> None:
    """Make, list or show plans on learned memory. `muniment apply` carries one out, `muniment undo` takes it back."""


# -- make ---------------------------------------------------------------------------------------------


@plan.command()
@click.argument("file", metavar="FILE")
@click.option("--payloads", metavar="FILE", help="What the plan's payload_refs name: a JSON object by ref.")
@bank_options
@json_option
@handles_errors
def make(
    file: str,
    payloads: str | None,
    db: str | None,
    tenant: str | None,
    user: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Keep a plan from FILE (`-` is stdin): a MemoryActionPlan, a list of actions, or JSON lines of actions.

    An action may hold its `payload` itself. Nothing changes until the plan is applied.
    """
    if (file, payloads).count("-") > 1:
        raise InvalidInput("stdin can be read once", path="$.payloads", hint="give one of them as a file")
    wanted = _read_plan(file)
    held = None if payloads is None else read_one(payloads, "$.payloads")
    with opened(db, tenant, user, agent, must_exist=False) as bank:
        made = bank.plan(wanted, payloads=held)
        where = whose(bank)
    if as_json:
        emit_json(made.to_wire())
        return
    click.echo(f"{click.style(made.plan_id, bold=True)}  made for {where}: {_ops(made)}")
    click.echo(f"try it:   {spelled('apply', made.plan_id, '--dry-run', db=db, tenant=tenant)}")
    click.echo(f"apply it: {spelled('apply', made.plan_id, db=db, tenant=tenant)}")


def _read_plan(name: str) -> Any:
    """A plan or a list of actions; each line of a file of lines is an action, unless the only one is a plan."""
    documents = read_all(name)
    is_plan = len(documents) == 1 and not (isinstance(documents[0], dict) and "op" in documents[0])
    return documents[0] if is_plan and not name.endswith(LINE_SUFFIXES) else documents


def _ops(made: MemoryActionPlan) -> str:
    counted = Counter(action.op for action in made.actions)
    return ", ".join(f"{count} {op}" for op, count in counted.items()) or "no actions"


# -- list and show ------------------------------------------------------------------------------------


@plan.command("list")
@bank_options
@json_option
@handles_errors
def list_(db: str | None, tenant: str | None, user: str | None, agent: str | None, as_json: bool) -> None:
    """List the plans of a bank, oldest first, and what came of each."""
    with opened(db, tenant, user, agent) as bank:
        found, where = bank.plans(), whose(bank)
    if as_json:
        emit_json({"plans": [_plain(state) for state in found]})
        return
    rows: list[list[Cell]] = [
        [
            state.plan.plan_id,
            when(state.plan.created_at),
            (state.status, _STANDINGS.get(state.status, "white")),
            state.plan.fold_id or "by hand",
            f"{_ops(state.plan)}{f'  {one_line(state.plan.notes, 80)}' if state.plan.notes else ''}",
        ]
        for state in found
    ]
    if rows:
        show_table(("plan", "made", "status", "fold", "actions"), rows)
    else:
        click.echo(f"no plans in {where}")


@plan.command()
@plan_argument
@db_option
@tenant_option
@json_option
@handles_errors
def show(plan_id: str, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Show PLAN, of whichever bank: its actions, what was done of each, and which versions it left."""
    with opened_at(plan_id, db, tenant) as bank:
        state, where = bank.get_plan(plan_id), whose(bank)
    if as_json:
        emit_json(_plain(state) | {"payloads": dict(state.payloads)})
        return
    standing = click.style(state.status, fg=_STANDINGS.get(state.status))
    click.echo(f"{click.style(plan_id, bold=True)}  {standing}, of {where}, made {when(state.plan.created_at)}")
    if state.plan.fold_id:
        click.echo(f"by the fold {state.plan.fold_id}")
    if state.plan.notes:
        click.echo(one_line(state.plan.notes, 300))
    if state.undone_by:
        click.echo(f"undone by {state.undone_by}")
    if state.records:
        show_actions(state.records)
    else:
        _show_planned(state.plan)
    for id_, before, after in state.touched:
        click.echo(f"{id_}: version {before or 'none'} → {after}")


def _plain(state: PlanState) -> dict[str, Any]:
    return {
        "plan": state.plan.to_wire(),
        "status": state.status,
        "records": [record.to_wire() for record in state.records],
        "touched": [list(each) for each in state.touched],
        "undone_by": state.undone_by,
    }


def _show_planned(made: MemoryActionPlan) -> None:
    rows: list[list[Cell]] = [
        [str(number), each.op, each.target_store, each.payload_ref or "–", ", ".join(each.target_ids or ()) or "–"]
        for number, each in enumerate(made.actions, 1)
    ]
    show_table(("", "op", "store", "payload", "records"), rows)


# -- apply and undo -----------------------------------------------------------------------------------


@click.command()
@plan_argument
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@db_option
@tenant_option
@json_option
@handles_errors
def apply(plan_id: str, dry_run: bool, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Apply PLAN, all of it or nothing; twice is once. Exits 1 where it is aborted, or would be."""
    with opened_at(plan_id, db, tenant) as bank:
        stood = bank.get_plan(plan_id).status
        done = bank.apply(plan_id, dry_run=dry_run)
    if as_json:
        emit_json(
            {
                "plan_id": plan_id,
                "dry_run": dry_run,
                "aborted": done.aborted,
                "actions": [record.to_wire() for record in done.records],
            }
        )
    else:
        click.echo(_outcome(plan_id, done, stood, dry_run=dry_run))
        show_actions(done.records)
        if not dry_run and not done.aborted and stood != "undone":
            click.echo(f"to take it back: {spelled('undo', plan_id, db=db, tenant=tenant)}")
    if done.aborted:
        sys.exit(EXIT_FAILED)


def _outcome(plan_id: str, done: Applied, stood: str, *, dry_run: bool) -> str:
    if dry_run:
        return f"{plan_id} would be {'aborted: nothing would change' if done.aborted else 'applied'}"
    if stood != "made":
        return f"{plan_id} was {stood} before; nothing is done twice, and this is what was done then"
    return f"{plan_id} is {'aborted: nothing has changed' if done.aborted else 'applied'}"


@click.command()
@plan_argument
@db_option
@tenant_option
@json_option
@handles_errors
def undo(plan_id: str, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Take PLAN back: each record as it was before. Refused as a whole where one was changed since."""
    with opened_at(plan_id, db, tenant) as bank:
        records = bank.undo(plan_id)
        by = bank.get_plan(plan_id).undone_by
    if as_json:
        emit_json({"plan_id": plan_id, "undone_by": by, "actions": [record.to_wire() for record in records]})
        return
    click.echo(f"{plan_id} is undone, by {by}: {many(len(records), 'record')}")
    show_actions(records)
