"""`muniment bank`: learned records listed and shown, the logs of the runs they come from, drafts, and tidying."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

import click

from muniment.learning.stored_memory import MemoryKind, Store
from muniment.surfaces.cli.asking import one_line, when
from muniment.surfaces.cli.learning_desk import (
    STANDINGS,
    bank_options,
    opened,
    opened_at,
    show_actions,
    tally_text,
    told,
    whose,
)
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.tables import Cell, show_table

if TYPE_CHECKING:
    from muniment.contracts.run_records import EventLog
    from muniment.learning.stored_memory import StoredMemory

__all__ = ["bank"]

_SHOWN_MAX = 20
_COLOURS = {"PASS": "green", "PARTIAL": "yellow", "FAIL": "red"}


@click.group()
def bank() -> None:
    """What was learnt from verified runs: of a user, of an agent or, without either, of the whole tenant."""


@bank.command("list")
@bank_options
@click.option("--store", type=click.Choice(get_args(Store)), help="Only of this store.")
@click.option("--kind", type=click.Choice(get_args(MemoryKind)), help="Only of this kind.")
@click.option("--all", "include_all", is_flag=True, help="Also what was retired or pruned.")
@json_option
@handles_errors
def list_(
    db: str | None,
    tenant: str | None,
    user: str | None,
    agent: str | None,
    store: Store | None,
    kind: MemoryKind | None,
    include_all: bool,
    as_json: bool,
) -> None:
    """List the learned records of a bank, oldest first: how often runs with each passed, and without it.

    References to runs (TraceCapsule) are listed when they are asked for.
    """
    with opened(db, tenant, user, agent) as found:
        records, where = found.records(store, kind=kind, include_all=include_all), whose(found)
    if store is None and kind is None:
        records = [each for each in records if each.kind != "trace_capsule"]
    if as_json:
        emit_json({"records": [each.to_wire() for each in records]})
    elif records:
        show_records(records)
    else:
        click.echo(f"no {'' if include_all else 'live '}records in {where}; --user and --agent name another")


def show_records(records: list[StoredMemory]) -> None:
    rows: list[list[Cell]] = [
        [
            each.id,
            each.kind,
            (each.status, STANDINGS[each.status]),
            tally_text(each.with_tally),
            tally_text(each.without_tally),
            each.expires_at[:10] if each.expires_at else "–",
            told(each),
        ]
        for each in records
    ]
    show_table(("record", "kind", "status", "passed with", "without", "until", "says"), rows)


@bank.command()
@click.argument("record_id", metavar="RECORD")
@bank_options
@json_option
@handles_errors
def show(
    record_id: str, db: str | None, tenant: str | None, user: str | None, agent: str | None, as_json: bool
) -> None:
    """Show RECORD: what it says, when it applies, how it fared, what it was learnt from. Found in whichever bank."""
    with opened_at(record_id, db, tenant, user, agent) as found:
        memory, where = found.get(record_id), whose(found)
    if as_json:
        emit_json(memory.to_wire())
        return
    standing = click.style(memory.status, fg=STANDINGS[memory.status])
    click.echo(f"{click.style(memory.id, bold=True)}  {memory.kind}, {standing}, version {memory.version}, in {where}")
    click.echo(one_line(told(memory), 1_000))
    for label, text in _lines(memory):
        click.echo(f"{label + ':':<12} {one_line(text, 400)}")


def _lines(memory: StoredMemory) -> Iterator[tuple[str, str]]:
    record: dict[str, Any] = dict(memory.record)
    for predicate in record.get("predicates") or ():
        yield "applies if", str(predicate)
    injection = record.get("injection")
    if isinstance(injection, dict):
        yield "injects", str(injection.get("content"))
    for name in ("intent_key", "state_key", "bucket_key"):
        if record.get(name):
            yield name.removesuffix("_key"), str(record[name])
    yield "passed", f"{tally_text(memory.with_tally)} with it, {tally_text(memory.without_tally)} without since"
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


@bank.command()
@bank_options
@click.option("--newest", type=click.IntRange(1), default=_SHOWN_MAX, show_default=True, metavar="N", help="How many.")
@json_option
@handles_errors
def logs(db: str | None, tenant: str | None, user: str | None, agent: str | None, newest: int, as_json: bool) -> None:
    """List the logs of the runs that were learnt from, newest first; with --json, EventLogs of the contract."""
    with opened(db, tenant, user, agent) as found:
        held, where = found.event_logs(newest=newest), whose(found)
    if as_json:
        emit_json({"event_logs": [log.to_wire() for log in held]})
    elif held:
        show_table(
            ("log", "verdict", "outcome", "mode", "tools", "used", "plan", "intent"), [_log_row(log) for log in held]
        )
    else:
        click.echo(f"no run was learnt from in {where}; --user and --agent name another")


def _log_row(log: EventLog) -> list[Cell]:
    verdict = log.verifier.verdict or "–"
    recalled, folded = log.memory_recall, log.memory_fold
    used = "–" if recalled is None else f"{len(recalled.used_ids or ())} of {len(recalled.retrieved_ids or ())}"
    intent = recalled.intent_key if recalled is not None else None
    calls = None if log.cost is None else log.cost.tool_calls
    return [
        log.trace_id,
        (verdict, _COLOURS.get(verdict, "white")),
        log.verifier.outcome or "–",
        (log.run.mode if log.run is not None else None) or "–",
        "–" if calls is None else str(calls),
        used,
        (folded.action_plan_id if folded is not None else None) or "–",
        intent or "–",
    ]


@bank.command()
@bank_options
@json_option
@handles_errors
def drafts(db: str | None, tenant: str | None, user: str | None, agent: str | None, as_json: bool) -> None:
    """List the rules that folds have drafted. A draft is in force nowhere."""
    with opened(db, tenant, user, agent) as found:
        held, where = found.drafts(), whose(found)
    if as_json:
        emit_json({"drafts": [draft.to_wire() for draft in held]})
        return
    rows: list[list[Cell]] = [
        [
            draft.draft_id,
            draft.proposed_rule.type or "–",
            str(len(draft.source_trace_ids)),
            draft.proposed_rule.body or draft.proposed_rule.title or "",
        ]
        for draft in held
    ]
    if rows:
        show_table(("draft", "type", "runs", "says"), rows)
    else:
        click.echo(f"no drafts in {where}; --user and --agent name another")


@bank.command()
@bank_options
@json_option
@handles_errors
def tidy(db: str | None, tenant: str | None, user: str | None, agent: str | None, as_json: bool) -> None:
    """Retire what has run out, and what is too much for its store, by a plan that can be undone."""
    with opened(db, tenant, user, agent) as found:
        records, where = found.tidy(), whose(found)
    if as_json:
        emit_json({"actions": [record.to_wire() for record in records]})
    elif records:
        click.echo(f"{records[0].plan_id} is applied")
        show_actions(records)
    else:
        click.echo(f"nothing to do: nothing in {where} has run out or is over its size")
