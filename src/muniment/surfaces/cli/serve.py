"""`muniment serve`: the store over HTTP, with the inspector and MCP on the same port."""

from __future__ import annotations

from importlib import util
from typing import TYPE_CHECKING, Any

import click

from muniment.surfaces.cli.options import db_option, json_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import Settings, load_settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.surfaces.http.settings import ServerSettings

__all__ = ["serve"]


@click.command()
@db_option
@click.option("--host", metavar="ADDRESS", help="Where to listen (default: 127.0.0.1).")
@click.option("--port", type=int, metavar="N", help="The port (default: 8765).")
@click.option("--auth", type=click.Choice(["auto", "on", "off"]), help="Ask for keys (auto: unless on loopback).")
@click.option("--keys", metavar="FILE", help="The file of API keys (default: muniment.keys.json).")
@click.option("--tls-cert", metavar="FILE", help="A certificate, to serve over TLS.")
@click.option("--tls-key", metavar="FILE", help="Its private key.")
@click.option("--threads", type=int, metavar="N", help="Requests carried out at the same time (default: 2).")
@click.option("--otel", type=click.Choice(["on", "off"]), help="Traces and metrics through OpenTelemetry.")
@json_option
@handles_errors
def serve(db: str | None, as_json: bool, **given: Any) -> None:
    """Serve the store over HTTP until it is told to stop.

    On this machine alone it asks for no key; elsewhere it does (`muniment keys create`). Logs go to stderr, as JSON.
    """
    from muniment.core.outside.system import system_clock
    from muniment.surfaces.http.keys import KeyFile
    from muniment.surfaces.http.logs import LOGGER, configure_logs
    from muniment.surfaces.http.serving import check_safe, make_server
    from muniment.surfaces.http.settings import load_server_settings
    from muniment.surfaces.inspector.pages import NOT_BUILT, is_built

    settings = load_server_settings(given)
    store = load_settings({"db": db})
    warnings = check_safe(settings, bool(KeyFile(settings.keys, system_clock).list()))
    configure_logs()
    with open_store(store) as memory:
        server = make_server(memory, settings, **_beside(memory, store, settings))
        for warning in warnings:
            LOGGER.warning(warning)
        scheme = "https" if settings.tls_cert else "http"
        told = {"url": f"{scheme}://{settings.host}:{settings.port}", "db": memory.info.location}
        if as_json:
            emit_json(told | {"asks_for_keys": settings.asks_for_keys, "inspector": is_built()})
        else:
            click.echo(f"muniment at {told['url']} over {told['db']}; Ctrl-C to stop")
            if not is_built():
                click.echo(f"without its inspector: {NOT_BUILT}")
        server.run()


def _beside(memory: Memory, store: Settings, settings: ServerSettings) -> dict[str, Any]:
    """The inspector at /, where it is built; MCP at /mcp, where it is installed."""
    from muniment.surfaces.inspector.app import inspector, no_inspector
    from muniment.surfaces.inspector.pages import is_built

    beside, lifespans = {"/": inspector() if is_built() else no_inspector()}, []
    if util.find_spec("mcp") is not None:
        from muniment.surfaces.mcp.settings import load_mcp_settings
        from muniment.surfaces.mcp.streamable import PATH, mcp_app

        mounted = mcp_app(memory, store, settings, load_mcp_settings({}))
        beside[PATH] = mounted.beside
        lifespans.append(mounted.lifespan)
    return {"beside": beside, "lifespans": lifespans}
