"""`muniment mcp`: the store's memory for one agent, over standard input and output."""

from __future__ import annotations

import signal
from importlib import util

import click

from muniment.errors import MissingDependency
from muniment.surfaces.cli.asking import settings_of_user
from muniment.surfaces.cli.options import db_option, json_option, tenant_option, user_option
from muniment.surfaces.cli.output import handles_errors
from muniment.surfaces.mcp.settings import CHOICES, load_mcp_settings
from muniment.surfaces.settings import open_store

__all__ = ["mcp"]


@click.command()
@db_option
@tenant_option
@user_option
@click.option("--agent", metavar="ID", help="For which agent (default: the setting `agent`).")
@click.option("--session", metavar="ID", help="The session it writes to (default: a new one).")
@click.option("--run", metavar="ID", help="The run it goes on with (default: a new one).")
@click.option("--task-type", metavar="NAME", help="What its run is for (default: generic).")
@click.option("--level", type=click.Choice(CHOICES["level"]), help="For whom it remembers (default: the user).")
@click.option("--trust", type=click.Choice(CHOICES["trust"]), help="The most its word counts for (default: assistant).")
@click.option(
    "--forget", type=click.Choice(CHOICES["forget"]), help="Whether it may forget single things (default: on)."
)
@click.option("--writes", type=click.Choice(CHOICES["writes"]), help="Off: it may only search and explain.")
@json_option
@handles_errors
def mcp(
    db: str | None,
    tenant: str | None,
    user: str | None,
    agent: str | None,
    as_json: bool,  # noqa: ARG001  # how errors are shown
    **given: str | None,
) -> None:
    """Serve MCP on standard input and output, until the client closes it.

    Whose memory it is, and what may be done with it, is fixed here: no tool takes a scope.
    """
    if util.find_spec("mcp") is None:
        raise MissingDependency("MCP is not installed", hint='pip install "muniment[mcp]"')
    from muniment.surfaces.mcp.stdio import place_told, serve_stdio

    store = settings_of_user(db, tenant, user, agent)
    settings = load_mcp_settings(given)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else it would wait for a line; what was acknowledged is kept anyhow
    with open_store(store) as memory:
        serve_stdio(memory, place_told(store, settings), settings)
