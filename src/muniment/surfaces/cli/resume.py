"""`muniment resume`: what a restart of a run would begin with. It writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from muniment.surfaces.cli.asking import one_line, when
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.run import many, show_diagnosis, show_log
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.handles.run import Run
    from muniment.runs.reading import Resumed

__all__ = ["resume"]


@click.command()
@click.argument("run_id", metavar="RUN")
@db_option
@tenant_option
@json_option
@handles_errors
def resume(run_id: str, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Show what a restart of RUN would begin with: which snapshot, how many events since, how the run stands.

    Names every snapshot that was passed over because it does not hold. A run that has ended is refused.
    """
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        state = mem.log.run_state(run_id, tenant_id=settings.tenant)
        found = mem.resume(run_id, repair=True, tenant_id=settings.tenant)
    if as_json:
        emit_json(_plain(found, state.is_locked))
        return
    click.echo(f"{click.style(run_id, bold=True)}  {_begins(found)}")
    for each in found.rejected:
        click.echo(f"passed over: {each.snapshot_id}: {one_line(each.reason, 300)}")
    show_log(found.log)
    if state.diagnosis is not None:
        show_diagnosis(state.diagnosis)


def _plain(found: Resumed[Run], is_locked: bool) -> dict[str, Any]:
    return {
        "run_id": found.log.run_id,
        "is_locked": is_locked,
        "snapshot_id": None if found.snapshot is None else found.snapshot.snapshot_id,
        "tail": found.tail,
        "rejected": [{"snapshot_id": each.snapshot_id, "reason": each.reason} for each in found.rejected],
        "log": found.log.to_wire(),
    }


def _begins(found: Resumed[Run]) -> str:
    if found.snapshot is None:
        return f"begins with the whole ledger: {many(found.tail, 'event')}, no snapshot"
    taken = when(found.snapshot.created_at)
    return f"begins with snapshot {found.snapshot.sequence} of {taken} and {many(found.tail, 'event')} after it"
