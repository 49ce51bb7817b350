"""`muniment compose`: a packet for a purpose, within a budget, kept as a build that replays."""

from __future__ import annotations

from typing import Any

import click

from muniment.errors import InvalidInput, InvalidJson
from muniment.surfaces.cli.asking import SESSION, settings_of_user, text_given
from muniment.surfaces.cli.build_output import check_form, form_options, show_build
from muniment.surfaces.cli.options import db_option, now_option, tenant_option, user_option
from muniment.surfaces.cli.output import handles_errors
from muniment.surfaces.cli.policy_file import read_policy
from muniment.surfaces.settings import open_store

__all__ = ["compose"]

_CUES_HINT = 'write an object, such as {"tags": ["trip"], "keywords": ["visa"]}'


@click.command()
@click.argument("purpose")
@click.option("--query", default="", metavar="TEXT", help="What it is about; `-` is standard input.")
@db_option
@tenant_option
@user_option
@click.option("--agent", metavar="ID", help="The agent (default: the setting `agent`).")
@click.option("--session", metavar="ID", help="The session that goes on (default: a fresh one).")
@click.option("--run", "run_id", metavar="ID", help="The run of it whose working state counts (default: a new one).")
@click.option("--max-tokens", type=int, metavar="N", help="The whole budget (default: the policy's).")
@click.option("--per-section", multiple=True, metavar="NAME=N", help="A section's share of it; may be repeated.")
@click.option("--cues", metavar="JSON", help='Explicit cues, such as {"tags": ["trip"], "keywords": ["visa"]}.')
@click.option("--task-type", metavar="NAME", help="Which procedures apply (default: generic).")
@click.option("--policy", "policy_file", metavar="FILE", help="Another policy for this one: TOML, or JSON.")
@now_option
@form_options
@handles_errors
def compose(
    purpose: str,
    query: str,
    db: str | None,
    tenant: str | None,
    user: str | None,
    agent: str | None,
    session: str | None,
    run_id: str | None,
    max_tokens: int | None,
    per_section: tuple[str, ...],
    cues: str | None,
    task_type: str | None,
    policy_file: str | None,
    now: str | None,
    as_text: bool,
    as_packet: bool,
    as_json: bool,
) -> None:
    """Compose what memory has to say for PURPOSE: planner, tool or responder.

    Prints the text for the prompt. The build is kept: `replay`, `explain` and `diff` take its id.
    """
    check_form(as_text, as_packet, as_json)
    settings = settings_of_user(db, tenant, user, agent)
    if run_id is not None and session is None:
        raise InvalidInput("a run is named within a session", path="$.session", hint="give --session as well")
    caps, given = _caps(per_section), _cues(cues)
    with open_store(settings, must_exist=True) as mem:
        run = mem.run(
            user_id=settings.user,
            agent_id=settings.agent,
            session_id=SESSION if session is None else session,
            run_id=run_id,
            tenant_id=settings.tenant,
            task_type=task_type or "generic",
        )
        build = run.compose(
            purpose,
            query=text_given(query),
            cues=given,
            max_tokens=max_tokens,
            per_section=caps,
            policy="default" if policy_file is None else read_policy(policy_file),
            now=now,
        )
    show_build(build, as_packet, as_json)


def _caps(given: tuple[str, ...]) -> dict[str, int]:
    caps: dict[str, int] = {}
    for each in given:
        name, _, count = each.partition("=")
        if not count.isdecimal():
            raise InvalidInput(
                f"{each!r:.80} is not a section and its tokens",
                path="$.per_section",
                hint="write --per-section facts=200",
            )
        caps[name] = int(count)
    return caps


def _cues(text: str | None) -> dict[str, Any] | None:
    from muniment.core.canonical import parse_json

    if text is None:
        return None
    try:
        cues = parse_json(text)
    except InvalidJson as error:
        raise InvalidInput(f"the cues are {error.message}", path="$.cues", hint=_CUES_HINT) from None
    if not isinstance(cues, dict):
        raise InvalidInput(f"cues are an object, not {type(cues).__name__}", path="$.cues")
    return cues
