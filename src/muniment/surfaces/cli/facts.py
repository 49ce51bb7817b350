"""`muniment facts`: what holds of a user, or everything that ever did, with the evidence it rests on."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from muniment.surfaces.cli.asking import a_run, one_line, settings_of_user, when
from muniment.surfaces.cli.options import db_option, json_option, tenant_option, user_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import open_store

if TYPE_CHECKING:
    from muniment.contracts.memory_packet import Fact
    from muniment.handles.memory import Memory

__all__ = ["facts"]


@click.command()
@db_option
@tenant_option
@user_option
@click.option("--key", metavar="KEY", help="One key, such as user.city.")
@click.option("--all", "include_all", is_flag=True, help="Also what no longer holds: superseded, disputed, taken back.")
@click.option("--at", metavar="TIME", help="What held then, as far as is known today (ISO 8601).")
@json_option
@handles_errors
def facts(
    db: str | None,
    tenant: str | None,
    user: str | None,
    key: str | None,
    include_all: bool,
    at: str | None,
    as_json: bool,
) -> None:
    """List a user's facts: value, status, validity, confidence, sources; of each key the oldest first."""
    settings = settings_of_user(db, tenant, user)
    with open_store(settings, must_exist=True) as mem:
        found = a_run(mem, settings).facts(key, include_all=include_all, at=at)
        if as_json:
            emit_json({"facts": [fact.to_wire() for fact in found]})
            return
        for name, group in groupby(found, key=lambda fact: fact.fact_key):
            click.echo(click.style(name, bold=True))
            for fact in group:
                _show(mem, fact, settings.tenant)
    if not found:
        click.echo(f"no facts about {settings.user}{'' if include_all else ' hold now; --all shows what once did'}")


def _show(mem: Memory, fact: Fact, tenant: str) -> None:
    from muniment.packets.page.lines import shown

    level = f", {fact.scope_level} level" if fact.scope_level not in (None, "user") else ""
    sure = "" if fact.confidence is None else f", confidence {fact.confidence:g}"
    click.echo(f"  {one_line(shown(fact.value))}  [{fact.status}{_span(fact)}{sure}{level}]  {fact.fact_id}")
    if fact.notes:
        click.echo(f"      note: {one_line(fact.notes)}")
    for source in fact.sources:
        entry = mem.ledger.get(source, tenant_id=tenant)
        said = f"{entry.speaker or entry.role}: {one_line(entry.content or '', 100)}"
        click.echo(f"      from {source}  {when(entry.ts)}  {said}")


def _span(fact: Fact) -> str:
    if fact.validity is None:
        return ""
    start = f" from {when(fact.validity.valid_from)}" if fact.validity.valid_from else ""
    return start + (f" until {when(fact.validity.valid_to)}" if fact.validity.valid_to else "")
