"""`muniment recall`: what earlier runs taught that fits a task, with every part of every score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

import click

from muniment.errors import NotFound
from muniment.learning.stored_memory import Store
from muniment.surfaces.cli.asking import a_run, one_line, settings_of_user, text_given
from muniment.surfaces.cli.learning_desk import (
    bucket_given,
    bucket_option,
    features_given,
    in_words_of_commands,
    key_options,
    parts_given,
    spelled,
)
from muniment.surfaces.cli.options import db_option, json_option, now_option, tenant_option, user_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.run import many
from muniment.surfaces.cli.tables import Cell, show_table
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.core.policy.learning import InjectionBudget
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.learning.recalling import Recall

__all__ = ["recall"]

_PARTS = {"sem": "words", "intent": "intent", "state": "state", "quality": "quality"}
_NAMED_MAX = 5


@click.command()
@click.argument("query")
@db_option
@tenant_option
@user_option
@click.option("--agent", metavar="ID", help="For which agent (default: the setting `agent`).")
@click.option("--run", "run_id", metavar="RUN", help="Recall for this run and keep it there: what is injected counts.")
@key_options
@bucket_option
@click.option("--top", type=click.IntRange(1), metavar="N", help="How many hints, at most (default: the policy's).")
@click.option("--source", "sources", multiple=True, type=click.Choice(get_args(Store)), help="Only of this store.")
@now_option
@json_option
@handles_errors
def recall(
    query: str,
    db: str | None,
    tenant: str | None,
    user: str | None,
    agent: str | None,
    run_id: str | None,
    intents: tuple[str, ...],
    states: tuple[str, ...],
    features: tuple[str, ...],
    bucket: str | None,
    top: int | None,
    sources: tuple[str, ...],
    now: str | None,
    as_json: bool,
) -> None:
    """Show the hints that a run would get for QUERY (`-` is standard input), best first.

    Without --intent and --state it is by words alone. Nothing is written, unless --run names a run that is open.
    """
    asked: dict[str, Any] = {
        "intent": parts_given(intents, "intent"),
        "state": parts_given(states, "state"),
        "features": features_given(features),
        "bucket_key": bucket_given(bucket),
        "sources": sources or None,
        "top_k": top,
        "now": now,
    }
    given = {"db": db, "tenant": tenant, "user": user, "agent": agent}
    settings = settings_of_user(**given) if run_id is None else load_settings(given)
    with in_words_of_commands(), open_store(settings, must_exist=True) as mem:
        run = a_run(mem, settings) if run_id is None else _open_run(mem, run_id, settings.tenant, user, agent)
        found = run.learning.recall(text_given(query), **asked, keep=run_id is not None)
        budget = mem.policy.learn.injection
    if as_json:
        emit_json(_plain(found, budget, run_id))
        return
    _show(found, budget)
    if found.injection.overflow:
        click.echo(f"whole: {spelled('bank', 'show', 'ID', db=db, tenant=tenant)}")


def _open_run(mem: Memory, run_id: str, tenant: str, user: str | None, agent: str | None) -> Run:
    """The run, which goes on; a user or an agent that was named as well has to be its own."""
    run = mem.resume(run_id, tenant_id=tenant).run
    for name, wanted, own in (("user", user, run.scope.user_id), ("agent", agent, run.scope.agent_id)):
        if wanted is not None and wanted != own:
            raise NotFound(f"no run {run_id!r:.80} of {name} {wanted!r:.80}", path=f"$.{name}")
    return run


def _plain(found: Recall, budget: InjectionBudget, run_id: str | None) -> dict[str, Any]:
    return {
        "request": found.request.to_wire(),
        "response": found.response.to_wire(),
        "injection": {
            "text": found.text,
            "tokens": found.injection.tokens,
            "budget": budget.model_dump(),
            "used_ids": list(found.injection.used_ids),
            "overflow": [dict(each) for each in found.injection.overflow],
        },
        "dropped": [each._asdict() for each in found.dropped],
        "kept_in": run_id,
    }


def _show(found: Recall, budget: InjectionBudget) -> None:
    keys = {"intent": found.request.intent_key, "state": found.request.state_key}
    said = [name for name, key in keys.items() if key is not None]
    how = "by words alone: give --intent and --state" if not said else f"by words and {' and '.join(said)}"
    used = f"{found.injection.tokens} of {budget.total_tokens_max} tokens"
    click.echo(f"{many(len(found.hints), 'hint')}, {used}, {how}")
    if found.hints:
        click.echo()
        _show_hints(found)
    for each in found.injection.overflow:
        click.echo(_overflow(each))
    if found.dropped:
        click.echo(f"\ndropped: {_dropped(found)}")


def _show_hints(found: Recall) -> None:
    rows: list[list[Cell]] = []
    for number, hint in enumerate(found.hints, 1):
        extra: Mapping[str, Any] = hint.model_extra or {}
        parts = [f"{extra['parts'][name]:.2f}" for name in _PARTS]
        rows.append([str(number), f"{hint.score:.3f}", *parts, hint.source])
    show_table(("", "score", *_PARTS.values(), "store"), rows)
    click.echo()
    for number, hint in enumerate(found.hints, 1):
        click.echo(f"{number:>2}  {one_line(hint.summary or '(left out)', 1_000)}")
        click.echo(f"    {hint.memory_id}  {click.style(one_line(hint.reason or '', 300), fg='bright_black')}")


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
