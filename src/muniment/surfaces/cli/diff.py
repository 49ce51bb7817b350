"""`muniment diff`: two builds side by side: what the second has that the first has not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from muniment.surfaces.cli.asking import one_line
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.packets.comparing import BuildDiff
    from muniment.surfaces.cli.explained import Candidate

__all__ = ["diff", "show_diff"]

SIGNS = {"added": "+", "removed": "-", "changed": "~"}


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@db_option
@tenant_option
@json_option
@handles_errors
def diff(a: str, b: str, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Say what changed from the build A to the build B, and why."""
    from muniment.surfaces.cli.explained import candidates

    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        found = mem.diff(a, b, tenant_id=settings.tenant)
        if as_json:
            emit_json(found.to_wire())
            return
        known = candidates(mem.replay(a, tenant_id=settings.tenant))
        known |= candidates(mem.replay(b, tenant_id=settings.tenant))
    show_diff(found, known)


def show_diff(found: BuildDiff, known: dict[str, Candidate]) -> None:
    """The changes, each with its reason."""
    from muniment.surfaces.cli.explained import REASONS

    click.echo(f"{found.a} → {found.b}: {found.tokens_a} → {found.tokens_b} tokens")
    if found.request:
        click.echo(f"asked differently: {', '.join(found.request)}")
    for change in found.changes:
        candidate = known.get(change.item)
        text = f"  {one_line(candidate.text, 100)}" if candidate is not None else ""
        click.echo(f"{SIGNS[change.what]} {change.item}{text}")
        told = change.why.rpartition(" score=")
        reason = f"{told[1].strip()}{told[2]}" if told[1] else REASONS.get(change.why, change.why)
        click.echo(f"      {reason}")
    if found.is_same:
        click.echo("the same bytes")
    elif not found.changes:
        click.echo("the same items")
