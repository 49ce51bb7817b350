"""`muniment verify`: walk the hash chains."""

from __future__ import annotations

import sys

import click

from muniment.surfaces.cli.asking import counted
from muniment.surfaces.cli.options import db_option, json_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.settings import load_settings, open_store

__all__ = ["verify"]


@click.command()
@db_option
@click.option("--tenant", metavar="ID", help="One tenant (default: all of them).")
@json_option
@handles_errors
def verify(db: str | None, tenant: str | None, as_json: bool) -> None:
    """Check every session's hash chain and every blob; exit 1 and name the first broken link of each session."""
    settings = load_settings({"db": db})
    with open_store(settings, must_exist=True) as mem:
        report = mem.verify(tenant_id=tenant)
    if as_json:
        emit_json({"ok": report.ok, **report.to_wire()})
    else:
        forgotten = f", {report.forgotten} of them forgotten" if report.forgotten else ""
        events, sessions = counted(report.entries, "event"), counted(report.sessions, "session")
        click.echo(f"{events} in {sessions} of {counted(report.tenants, 'tenant')}{forgotten}")
        if report.unreceipted:
            click.echo(f"{report.unreceipted} of the forgotten name a receipt that is not in this store")
        for link in report.broken:
            click.echo(
                f"broken: {link.user_id}/{link.session_id} at seq {link.seq}: {link.reason} ({link.id or 'no event'})"
            )
        click.echo("every chain holds" if report.ok else f"{len(report.broken)} chains are broken")
    if not report.ok:
        sys.exit(EXIT_FAILED)
