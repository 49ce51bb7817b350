"""`serve`, `proxy` and `mcp`: the store over HTTP, with its inspector and MCP; this memory in front of a model's
server; and MCP for one agent over stdio.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from muniment.core.outside.system import require
from muniment.errors import InvalidInput
from muniment.surfaces.cli._command import Call, Command, OptionSpec, emit_json
from muniment.surfaces.cli.terminal import echo
from muniment.surfaces.mcp.settings import CHOICES
from muniment.surfaces.settings import open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.surfaces.http.settings import ServerSettings

__all__ = ["mcp", "proxy", "serve"]


# -- HTTP ---------------------------------------------------------------------------------------------


def _serve(
    call: Call,
    *,
    host: Annotated[str | None, OptionSpec("Where to listen (default: 127.0.0.1).", metavar="ADDRESS")] = None,
    port: Annotated[int | None, OptionSpec("The port (default: 8765).", metavar="N")] = None,
    auth: Annotated[
        Literal["auto", "on", "off"] | None,
        OptionSpec("Ask for keys (default: on; off lets in everyone who can reach the port; auto: off on loopback)."),
    ] = None,
    keys: Annotated[
        str | None, OptionSpec("The file of API keys (default: muniment.keys.json), or `store`.", metavar="FILE")
    ] = None,
    tls_cert: Annotated[str | None, OptionSpec("A certificate, to serve over TLS.", metavar="FILE")] = None,
    tls_key: Annotated[str | None, OptionSpec("Its private key.", metavar="FILE")] = None,
    workers: Annotated[int | None, OptionSpec("Processes that serve on the port (default: 1).", metavar="N")] = None,
    threads: Annotated[
        int | None, OptionSpec("Requests that a process carries out at the same time (default: 2).", metavar="N")
    ] = None,
    otel: Annotated[Literal["on", "off"] | None, OptionSpec("Traces and metrics through OpenTelemetry.")] = None,
) -> None:
    from muniment.surfaces.http.logs import configure_logs
    from muniment.surfaces.http.settings import load_server_settings

    require("server", "the server is not installed")
    named = {"host": host, "port": port, "auth": auth, "keys": keys, "threads": threads, "otel": otel}
    settings = load_server_settings({**named, "workers": workers, "tls_cert": tls_cert, "tls_key": tls_key})
    if settings.otel == "on":
        require("otel", "OpenTelemetry is not installed", "leave otel off")
    configure_logs()
    with open_store(call.settings) as memory:
        token = _prepare(memory, settings)
        location = memory.info.location
        if settings.workers == 1:
            from muniment.surfaces.http.lanes.interpreter import set_interpreter
            from muniment.surfaces.http.serve import make_server
            from muniment.surfaces.processes.worker import beside

            server = make_server(memory, settings, **beside(memory, call.settings, settings))
            scheme = "https" if settings.tls_cert else "http"
            _announce(call, settings, f"{scheme}://{settings.host}:{settings.port}", location, token)
            set_interpreter()
            server.run()
            return
    _serve_with_workers(call, settings, location, token)


def _serve_with_workers(call: Call, settings: ServerSettings, location: str, token: str | None) -> None:
    """Serve with worker processes. The store was opened once to migrate it, and is closed here; the workers open it
    again.
    """
    from muniment.surfaces.processes.supervisor import Supervisor, bind, url_of

    if call.settings.db == ":memory:":
        raise InvalidInput("a store in memory has one process", path="$.workers", hint="name a file, or PostgreSQL")
    with bind(settings) as listening:
        url = url_of(settings, listening)
        supervisor = Supervisor(call.settings, settings, listening)
        code = supervisor.run(lambda: _announce(call, settings, url, location, token))
    if code:
        raise SystemExit(code)


def _prepare(memory: Memory, settings: ServerSettings) -> str | None:
    """Warn about open access; create the first key if keys are required and there is none, and return its token."""
    from muniment.core.outside.system import system_clock
    from muniment.surfaces.http._keys import open_keys
    from muniment.surfaces.http.logs import LOGGER
    from muniment.surfaces.http.serve import first_key, warnings_of
    from muniment.surfaces.inspector.pages import is_built, no_page

    for warning in warnings_of(settings):
        LOGGER.warning(warning)
    if not is_built():
        LOGGER.warning(no_page())
    return first_key(open_keys(settings.keys, memory._ctx.engine, system_clock)) if settings.asks_for_keys else None


def _announce(call: Call, settings: ServerSettings, url: str, location: str, token: str | None) -> None:
    from muniment.surfaces.inspector.pages import is_built

    if call.as_json:
        emit_json(
            {"url": url, "db": location, "asks_for_keys": settings.asks_for_keys, "inspector": is_built()}
            | ({"workers": settings.workers} if settings.workers > 1 else {})
            | ({"key": token} if token else {})
        )
        return
    echo(f"muniment at {url} over {location}; Ctrl-C to stop")
    if token:
        echo(f"open  {url}/#key={token}")
        echo(f"or    export MUNIMENT_KEY={token}")
        echo("This first key may do everything and is shown once; `muniment store keys` makes others.")


serve = Command(
    function=_serve,
    prints=True,
    on="settings",
    about="Until it is stopped. It asks for a key: the first start makes one and prints a link that opens the "
    "page with it; `muniment store keys create` makes others. Logs go to stderr, as JSON.",
)


# -- in front of a model's server -----------------------------------------------------------------------


def _proxy(
    call: Call,
    *,
    upstream: Annotated[
        str | None, OptionSpec("The server of the model: https://api.openai.com.", metavar="URL")
    ] = None,
    anthropic_upstream: Annotated[
        str | None, OptionSpec("The server of what asks in Anthropic's way, where it is another.", metavar="URL")
    ] = None,
    host: Annotated[str | None, OptionSpec("Where to listen (default: 127.0.0.1).", metavar="ADDRESS")] = None,
    port: Annotated[int | None, OptionSpec("The port (default: 8766).", metavar="N")] = None,
    auth: Annotated[Literal["auto", "on", "off"] | None, OptionSpec("Ask for keys (auto: unless on loopback).")] = None,
    keys: Annotated[str | None, OptionSpec("The file of API keys, or `store`.", metavar="FILE")] = None,
    on_error: Annotated[Literal["open", "closed"] | None, OptionSpec("Where memory fails: go on, or refuse.")] = None,
    missing_user: Annotated[
        Literal["refuse", "pass"] | None, OptionSpec("A request that names no user: refuse, or pass it on.")
    ] = None,
    place: Annotated[
        Literal["question", "system"] | None, OptionSpec("Where the packet goes (default: question).")
    ] = None,
    max_tokens: Annotated[int | None, OptionSpec("The most tokens of a packet.", metavar="N")] = None,
    tls_cert: Annotated[str | None, OptionSpec("A certificate, to serve over TLS.", metavar="FILE")] = None,
    tls_key: Annotated[str | None, OptionSpec("Its private key.", metavar="FILE")] = None,
) -> None:
    require("proxy", "the proxy is not installed")
    from muniment.integrations.proxy.callers import Defaults
    from muniment.integrations.proxy.serving import make_proxy, warnings_of
    from muniment.integrations.proxy.settings import load_proxy_settings
    from muniment.surfaces.http.logs import configure_logs

    named = {"upstream": upstream, "anthropic_upstream": anthropic_upstream, "host": host, "port": port, "auth": auth}
    more = {"keys": keys, "on_error": on_error, "missing_user": missing_user, "place": place, "max_tokens": max_tokens}
    settings = load_proxy_settings({**named, **more, "tls_cert": tls_cert, "tls_key": tls_key})
    configure_logs()
    store = call.settings
    with open_store(store) as memory:
        defaults = Defaults(store.tenant, store.user, store.agent)
        location = memory.info.location
        scheme = "https" if settings.tls_cert else "http"

        def announce(bound: int) -> None:
            url = f"{scheme}://{settings.host}:{bound}"
            if call.as_json:
                emit_json({"url": url, "db": location, "asks_for_keys": settings.asks_for_keys})
            else:
                echo(f"muniment proxy at {url} over {location}; Ctrl-C to stop")

        for warning in warnings_of(settings):
            echo(f"warning: {warning}", err=True)
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, _leave)
        make_proxy(memory, settings, defaults, on_start=announce).run()


def _leave(_number: int, _frame: FrameType | None) -> None:
    """End the process before or after the proxy runs; the store is closed. A running proxy handles signals itself."""
    raise SystemExit(0)


proxy = Command(
    function=_proxy,
    prints=True,
    on="user settings",
    about="Until it is stopped. OpenAI's Chat Completions and Responses and Anthropic's Messages are recorded and "
    "get what memory holds; everything else passes through as it is. The user is named by the header "
    "`muniment-user`, a key, the request, or --user. Logs go to stderr, as JSON.",
)


# -- MCP ----------------------------------------------------------------------------------------------


def _of(name: str) -> Any:
    return click.Choice(CHOICES[name])


def _mcp(
    call: Call,
    *,
    session: Annotated[str | None, OptionSpec("The session it writes to (default: a new one).", metavar="ID")] = None,
    run: Annotated[str | None, OptionSpec("The run it goes on with (default: a new one).", metavar="ID")] = None,
    task_type: Annotated[str | None, OptionSpec("What its run is for (default: generic).", metavar="NAME")] = None,
    level: Annotated[str | None, OptionSpec("For whom it remembers (default: the user).", type=_of("level"))] = None,
    trust: Annotated[
        str | None, OptionSpec("The most its word counts for (default: assistant).", type=_of("trust"))
    ] = None,
    forget: Annotated[
        str | None, OptionSpec("Whether it may forget single things (default: on).", type=_of("forget"))
    ] = None,
    writes: Annotated[str | None, OptionSpec("Off: it may only search and say why.", type=_of("writes"))] = None,
    profile: Annotated[
        str | None, OptionSpec("Which tools: six in few tokens, or all of them (default: lean).", type=_of("profile"))
    ] = None,
) -> None:
    require("mcp", "MCP is not installed")
    from muniment.surfaces.mcp.settings import load_mcp_settings
    from muniment.surfaces.mcp.stdio import place_told, serve_stdio

    _ = call.user
    named = {"session": session, "run": run, "task_type": task_type, "level": level}
    bounds = {"trust": trust, "forget": forget, "writes": writes, "profile": profile}
    settings = load_mcp_settings({**named, **bounds})
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else it would wait for a line; acknowledged writes are kept
    with open_store(call.settings) as memory:
        serve_stdio(memory, place_told(call.settings, settings), settings)


mcp = Command(
    function=_mcp,
    prints=True,
    on="user settings",
    about="On standard input and output, until the client closes it. Whose memory it is, and what may be done with "
    "it, is fixed here: no tool takes a scope.",
)
