"""`muniment narrative`: a snapshot in words, or what changed between two, as Markdown."""

from __future__ import annotations

import click

from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.snapshot import sequence_option
from muniment.surfaces.settings import load_settings, open_store

__all__ = ["narrative"]


@click.command()
@click.argument("run_id", metavar="RUN")
@sequence_option
@click.option("--diff", "since", type=click.IntRange(1), metavar="M", help="What changed since snapshot M instead.")
@db_option
@tenant_option
@json_option
@handles_errors
def narrative(
    run_id: str, sequence: int | None, since: int | None, db: str | None, tenant: str | None, as_json: bool
) -> None:
    """Tell a snapshot of RUN in eight sections of Markdown: nothing that it does not hold, always the same bytes."""
    from muniment.runs.narrative import narrative as told
    from muniment.runs.snapshot_diff import diff_snapshots

    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        found = mem.log.snapshot(run_id, sequence, tenant_id=settings.tenant)
        before = None if since is None else mem.log.snapshot(run_id, since, tenant_id=settings.tenant)
    if before is not None:
        changed = diff_snapshots(before, found)
        if as_json:
            emit_json(changed.to_wire())
        else:
            click.echo(changed.text, nl=False)
    elif as_json:
        emit_json({"snapshot_id": found.snapshot_id, "sequence": found.sequence, "markdown": told(found)})
    else:
        click.echo(told(found), nl=False)
