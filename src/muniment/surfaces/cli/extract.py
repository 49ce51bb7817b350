"""`muniment extract`: what a user said of themselves, as candidates for facts, each with the words it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from muniment.surfaces.cli.asking import one_line, settings_of_user, when
from muniment.surfaces.cli.options import db_option, json_option, scope_options
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import open_store

if TYPE_CHECKING:
    from muniment.memory.facts.candidate_records import Candidate, Unheard

__all__ = ["extract"]

SESSION = "extract"
"""The session that its patches stand in."""

_HINT = (
    "hint: remember the name as user.name to have its words read, or record them without a speaker\n"
    "      run.remember('user.name', …, sources=[…])"
)


@click.command()
@db_option
@scope_options
@json_option
@handles_errors
def extract(db: str | None, tenant: str | None, user: str | None, session: str | None, as_json: bool) -> None:
    """Look for facts in what a user said, by patterns, and propose each as a candidate.

    Those that the policy is sure of become facts at once, the others wait for a decision. What was proposed before is
    not proposed again. Messages of role user speak for the user, unless their speaker goes by another name: how many
    were left aside, and why, is told.
    """
    settings = settings_of_user(db, tenant, user)
    with open_store(settings, must_exist=True) as mem:
        entries = mem.ledger.entries(user_id=settings.user, session_id=session, tenant_id=settings.tenant)
        said = [entry.id for entry in entries if entry.kind == "message" and not entry.is_forgotten]
        found: list[Candidate] = []
        unheard: list[Unheard] = []
        if said:
            run = mem.run(user_id=settings.user, agent_id=settings.agent, session_id=SESSION, tenant_id=settings.tenant)
            found, unheard = run.extract(said), run.memory.unheard(said)
    if as_json:
        told = {"candidates": [each.to_wire() for each in found], "unheard": [each.to_wire() for each in unheard]}
        emit_json({"messages": len(said)} | told)
        return
    for candidate in found:
        _show(candidate)
    if not found:
        click.echo(f"{len(said)} messages, and nothing in them that is plainly a fact about {settings.user}")
    for each in unheard:
        click.echo(f"left aside: {each.messages} of {one_line(each.speaker, 60)!r} ({each.why})")
    if unheard:
        click.echo(_HINT)


def _show(candidate: Candidate) -> None:
    from muniment.packets.page.lines import shown

    until = f" until {when(candidate.valid_to)}" if candidate.valid_to else ""
    head = f"{candidate.key}: {one_line(shown(candidate.value))}{until}"
    click.echo(f"{click.style(head, bold=True)}  [{candidate.status}]  {candidate.candidate_id}")
    if candidate.quote is not None:
        click.echo(f"    “{one_line(candidate.quote)}”")
    click.echo(f"    from {', '.join(candidate.sources)}  {when(candidate.proposed_at)}  {candidate.explanation}")
