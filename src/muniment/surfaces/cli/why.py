"""`muniment why`: from a text that a model was told back to the builds that told it and the events it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from muniment.surfaces.cli.asking import one_line, text_given, when
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.packets.tracing import Telling

__all__ = ["why"]


@click.command()
@click.argument("text")
@db_option
@tenant_option
@click.option("--user", metavar="ID", help="Only builds for this user (default: the setting `user`, else all).")
@json_option
@handles_errors
def why(text: str, db: str | None, tenant: str | None, user: str | None, as_json: bool) -> None:
    """Say which builds told a model TEXT (`-` is standard input), newest first, and from which event."""
    settings = load_settings({"db": db, "tenant": tenant, "user": user})
    with open_store(settings, must_exist=True) as mem:
        found = mem.why(text_given(text), user_id=settings.user or None, tenant_id=settings.tenant)
        if as_json:
            emit_json({"tellings": [telling.to_wire() for telling in found]})
            return
        for telling in found:
            _show(mem, telling, settings.tenant)
    if not found:
        click.echo("no build that is still kept told this")


def _show(mem: Memory, telling: Telling, tenant: str) -> None:
    asked = f" asked {one_line(telling.query, 80)!r}" if telling.query else ""
    click.echo(f"{when(telling.at)}  {telling.build_id}  {telling.purpose}{asked}, policy {telling.policy_id}")
    click.echo(f"    told: {one_line(telling.line)}")
    for event_id in telling.evidence_ids:
        entry = mem.ledger.get(event_id, tenant_id=tenant)
        said = f"{entry.speaker or entry.role}: {one_line(entry.content or '', 100)}"
        click.echo(f"    from: {event_id}  {when(entry.ts)}  {said}  (trust {entry.trust})")
    if not telling.evidence_ids:
        click.echo(f"    from: no event; `muniment explain {telling.build_id}` says what the build was made of")
