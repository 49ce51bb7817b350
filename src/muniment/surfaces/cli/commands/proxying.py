"""`proxy`: this memory in front of a model's server, for clients that can change their `base_url` and nothing else."""

from __future__ import annotations

from importlib import util
from typing import Annotated, Literal

from muniment.errors import MissingDependency
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.output import emit_json
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import echo
from muniment.surfaces.settings import open_store

__all__ = ["proxy"]


def _proxy(
    call: Call,
    *,
    upstream: Annotated[str | None, Word("The server of the model: https://api.openai.com.", metavar="URL")] = None,
    anthropic_upstream: Annotated[
        str | None, Word("The server of what asks in Anthropic's way, where it is another.", metavar="URL")
    ] = None,
    host: Annotated[str | None, Word("Where to listen (default: 127.0.0.1).", metavar="ADDRESS")] = None,
    port: Annotated[int | None, Word("The port (default: 8766).", metavar="N")] = None,
    auth: Annotated[Literal["auto", "on", "off"] | None, Word("Ask for keys (auto: unless on loopback).")] = None,
    keys: Annotated[str | None, Word("The file of API keys, or `store`.", metavar="FILE")] = None,
    on_error: Annotated[Literal["open", "closed"] | None, Word("Where memory fails: go on, or refuse.")] = None,
    missing_user: Annotated[
        Literal["refuse", "pass"] | None, Word("A request that names no user: refuse, or pass it on.")
    ] = None,
    place: Annotated[Literal["question", "system"] | None, Word("Where the packet stands (default: question).")] = None,
    max_tokens: Annotated[int | None, Word("The most tokens of a packet.", metavar="N")] = None,
    tls_cert: Annotated[str | None, Word("A certificate, to serve over TLS.", metavar="FILE")] = None,
    tls_key: Annotated[str | None, Word("Its private key.", metavar="FILE")] = None,
) -> None:
    for module in ("uvicorn", "starlette", "httpx2"):
        if util.find_spec(module) is None:
            raise MissingDependency("the proxy is not installed", hint='pip install "muniment[proxy]"')
    from muniment.integrations.proxy.callers import Defaults
    from muniment.integrations.proxy.serving import make_proxy, warnings_of
    from muniment.integrations.proxy.settings import load_proxy_settings
    from muniment.surfaces.http.logs import configure_logs

    named = {"upstream": upstream, "anthropic_upstream": anthropic_upstream, "host": host, "port": port, "auth": auth}
    told = {"keys": keys, "on_error": on_error, "missing_user": missing_user, "place": place, "max_tokens": max_tokens}
    settings = load_proxy_settings({**named, **told, "tls_cert": tls_cert, "tls_key": tls_key})
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
        make_proxy(memory, settings, defaults, on_start=announce).run()


proxy = Command(
    function=_proxy,
    on="user settings",
    about="Until it is told to stop. OpenAI's Chat Completions and Responses and Anthropic's Messages are recorded and "
    "told what memory holds; everything else passes through as it is. Whose memory it is says the header "
    "`muniment-user`, a key, the request, or --user. Logs go to stderr, as JSON.",
)
