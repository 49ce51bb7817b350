"""`muniment view`: what the inspector shows, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from muniment.errors import NotFound
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.transfer import write_file
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory

__all__ = ["view"]


@click.group()
def view() -> None:
    """The inspector's pages as files. `muniment serve` shows them live."""


@view.command()
@click.argument("out", metavar="OUT")
@click.option("--run", "run_id", metavar="RUN", help="Which run (default: the newest).")
@click.option("--user", metavar="ID", help="Of whom the newest run is taken (default: of anybody).")
@db_option
@tenant_option
@json_option
@handles_errors
def bundle(out: str, run_id: str | None, user: str | None, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Write an audit of one run to OUT: a single HTML file that any browser shows, with no server and no network.

    It holds the run's ledger, its packets with their explanations, its claims and snapshots, and of the rest of the
    user's memory what those rest on. Whoever gets the file can read all of that.
    """
    from muniment.surfaces.inspector.bundle import make_bundle

    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        chosen = run_id or _newest(mem, settings.tenant, user)
        page = make_bundle(mem, chosen, settings.tenant)
    write_file(Path(out), iter([page]))
    if as_json:
        emit_json({"file": out, "run_id": chosen, "bytes": len(page)})
    else:
        click.echo(f"{out}: the run {chosen}, {len(page):,} bytes; open it in a browser")


def _newest(mem: Memory, tenant_id: str, user_id: str | None) -> str:
    runs = mem.runs(user_id=user_id, tenant_id=tenant_id)
    if not runs:
        raise NotFound("there is no run", path="$.run", hint="muniment run list shows which there are")
    return max(runs, key=lambda run: (run.started_at, run.run_id)).run_id
