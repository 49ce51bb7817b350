"""`muniment episodes`: what happened, session by session, each stretch in its best sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from muniment.surfaces.cli.asking import one_line, settings_of_user, when
from muniment.surfaces.cli.options import db_option, json_option, scope_options
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import open_store

if TYPE_CHECKING:
    from muniment.memory.turns import EpisodeCandidate

__all__ = ["episodes"]

LINES = 3


@click.command()
@db_option
@scope_options
@json_option
@handles_errors
def episodes(db: str | None, tenant: str | None, user: str | None, session: str | None, as_json: bool) -> None:
    """List a user's episodes in the order they happened. A long silence within a session ends one."""
    settings = settings_of_user(db, tenant, user)
    with open_store(settings, must_exist=True) as mem:
        found = list(mem.ledger.episodes(user_id=settings.user, session_id=session, tenant_id=settings.tenant))
    found.sort(key=lambda episode: (episode.start, episode.session_id, episode.episode_id))
    if as_json:
        emit_json({"episodes": [_plain(episode) for episode in found]})
        return
    for episode in found:
        _show(episode)
    if not found:
        where = f"the session {session} of {settings.user}" if session else f"the memory of {settings.user}"
        click.echo(f"no episodes in {where}")


def _plain(episode: EpisodeCandidate) -> dict[str, object]:
    """Without what only a query gives."""
    plain = episode.to_wire()
    del plain["score"]
    return plain


def _minute(ts: str) -> str:
    """With its time, at midnight too: of two that are told together neither loses it."""
    return f"{ts[:10]} {ts[11:16]}"


def _show(episode: EpisodeCandidate) -> None:
    until = "" if episode.end[:16] == episode.start[:16] else f" – {_minute(episode.end)}"
    began = _minute(episode.start) if until else when(episode.start)
    head = f"{began}{until}  {episode.session_id}"
    labels = ", ".join([*episode.tags, *episode.entities])
    size = f"{len(episode.sources)} turns" if len(episode.sources) != 1 else "1 turn"
    click.echo(f"{click.style(head, bold=True)}  {size}{f'  ({labels})' if labels else ''}  {episode.episode_id}")
    for line in episode.lines[:LINES]:
        click.echo(f"    {one_line(line.text)}  · {line.evidence_id}")
