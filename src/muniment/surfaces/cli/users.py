"""`muniment users`: who is in a tenant."""

from __future__ import annotations

import click

from muniment.surfaces.cli.asking import when
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import load_settings, open_store

__all__ = ["users"]


@click.command()
@db_option
@tenant_option
@json_option
@handles_errors
def users(db: str | None, tenant: str | None, as_json: bool) -> None:
    """List the users of a tenant: what there is of each, and when they were first and last seen."""
    from muniment.surfaces.cli.run import many

    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        found = list(mem.store.users(tenant_id=settings.tenant))
    if as_json:
        emit_json({"users": [user.to_wire() for user in found]})
        return
    for user in found:
        held = f"{many(user.sessions, 'session')}, {many(user.runs, 'run')}, {many(user.events, 'event')}"
        click.echo(f"{user.user_id}  {held}, {when(user.first_seen_at)} to {when(user.last_seen_at)}")
    if not found:
        click.echo(f"no users of {settings.tenant} in {settings.db}")
