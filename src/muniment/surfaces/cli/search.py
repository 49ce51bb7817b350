"""`muniment search`: the best of a user's turns and facts for a query, each saying why it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from muniment.surfaces.cli.asking import a_run, one_line, settings_of_user, text_given, when
from muniment.surfaces.cli.options import db_option, json_option, now_option, tenant_option, user_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import open_store

if TYPE_CHECKING:
    from muniment.memory.recall.records import Hit

__all__ = ["search", "show_hit"]


@click.command()
@click.argument("query")
@db_option
@tenant_option
@user_option
@click.option("--k", type=int, default=10, show_default=True, metavar="N", help="How many, at most.")
@now_option
@json_option
@handles_errors
def search(
    query: str, db: str | None, tenant: str | None, user: str | None, k: int, now: str | None, as_json: bool
) -> None:
    """Find what a user's memory holds for QUERY (`-` is standard input), in all sessions, best first."""
    settings = settings_of_user(db, tenant, user)
    with open_store(settings, must_exist=True) as mem:
        hits = a_run(mem, settings).search(text_given(query), k=k, now=now)
    if as_json:
        emit_json({"hits": [hit.to_wire() for hit in hits]})
        return
    for number, hit in enumerate(hits, 1):
        show_hit(number, hit)
    if not hits:
        click.echo(f"nothing found in the memory of {settings.user}")


def show_hit(number: int, hit: Hit) -> None:
    who = hit.speaker or hit.role or hit.kind
    click.echo(
        f"{number:>2}  {hit.score:.3f}  {when(hit.ts)}  {click.style(who, bold=True)}: {one_line(hit.text, 240)}"
    )
    parts = " + ".join(f"{name} {value:.2f}" for name, value in sorted(hit.parts.items(), key=lambda part: -part[1]))
    where = f" in {hit.session_id}" if hit.session_id else ""
    click.echo(f"           {'; '.join(hit.why) or 'matches'} ({parts}){where} · {hit.id}")
    if hit.superseded_by:
        click.echo(f"           superseded by {hit.superseded_by}")
    if hit.sources != (hit.id,):
        click.echo(f"           rests on {', '.join(hit.sources)}")
