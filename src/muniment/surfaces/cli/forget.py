"""`muniment forget`: erase, and print the receipt."""

from __future__ import annotations

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.options import db_option, json_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import load_settings, open_store

__all__ = ["forget"]


@click.command()
@db_option
@click.option("--tenant", metavar="ID", help="The tenant (default: default).")
@click.option("--event", metavar="ID", help="Forget one event.")
@click.option("--fact", metavar="ID", help="Forget one fact.")
@click.option(
    "--session", metavar="ID", help="Forget a session (with --user where several users have one of that name)."
)
@click.option("--user", metavar="ID", help="Forget a user.")
@click.option("--whole-tenant", is_flag=True, help="Forget everything of the tenant.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@handles_errors
def forget(
    db: str | None,
    tenant: str | None,
    event: str | None,
    fact: str | None,
    session: str | None,
    user: str | None,
    whole_tenant: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase content and everything derived from it. Hashes and tombstones stay, so the chains still hold."""
    settings = load_settings({"db": db, "tenant": tenant})
    named = {"event": event, "fact": fact, "session": session, "user": user}
    what = [f"{kind} {name}" for kind, name in named.items() if name]
    if whole_tenant:
        what.append(f"the whole tenant {settings.tenant}")
    if not what:
        raise InvalidInput("say what to forget", hint="--event, --fact, --session, --user or --whole-tenant")
    if as_json and not yes:
        raise InvalidInput("with --json nobody can be asked", path="$.yes", hint="add --yes to forget")
    with open_store(settings, must_exist=True) as mem:
        if not yes:
            shown = " of ".join(what)
            click.confirm(f"Forget {shown} in {settings.db}? This cannot be undone.", abort=True, err=True)
        receipt = mem.forget(
            event=event,
            fact=fact,
            session=session,
            user_id=user,
            tenant=settings.tenant if whole_tenant else None,
            tenant_id=settings.tenant,
        )
    if as_json:
        emit_json(receipt.to_wire())
        return
    click.echo(f"receipt {receipt.receipt_id}")
    for name, count in sorted(receipt.counts.items()):
        click.echo(f"  {name}: {count}")
    click.echo(f"  the store's files: {receipt.note}")
