"""A store on a port: uvicorn around the application, until it is told to stop; what is under way is finished first."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from muniment.core.outside.system import not_installed
from muniment.surfaces.http.settings import ServerSettings, is_loopback

if TYPE_CHECKING:
    import uvicorn

    from muniment.handles.memory import Memory
    from muniment.surfaces.http._keys import KeyRing

__all__ = ["first_key", "make_server", "warnings_of"]


def first_key(keys: KeyRing) -> str | None:
    """Make the first key, for everything, where there is none; answers its token, which is shown this one time."""
    return None if keys.list() else keys.create("first", tenant="*", access="admin").token


def warnings_of(settings: ServerSettings) -> list[str]:
    """What the operator should know of a server that is about to start."""
    warnings = []
    if not settings.asks_for_keys:
        where = f"{settings.host}:{settings.port}"
        others = "every program and user of this machine" if is_loopback(settings.host) else "everyone on its networks"
        warnings.append(f"auth is off: {others} may read, change and forget all memory at {where}")
    if not is_loopback(settings.host) and not settings.tls_cert:
        warnings.append(
            "keys and content cross the network in the clear: give --tls-cert and --tls-key, or use a proxy"
        )
    return warnings


def make_server(
    memory: Memory, settings: ServerSettings, *, on_start: Callable[[], None] | None = None, **others: Any
) -> uvicorn.Server:
    """The server, ready to `run()`. A signal to stop lets requests and long work that are under way finish.

    `on_start` is called once it takes requests. `others` is what stands beside the API: `beside` and `lifespans` of
    `create_app`.
    """
    try:
        import uvicorn

        from muniment.surfaces.http.app import create_app
        from muniment.surfaces.http.heads import protocol_for
        from muniment.surfaces.http.tls import watch_reload
    except ImportError:
        raise not_installed("the server is not installed", "server") from None
    tls: dict[str, Any] = {}
    if settings.tls_cert:
        tls = {
            "ssl_certfile": settings.tls_cert,
            "ssl_keyfile": settings.tls_key,
            "ssl_version": ssl.PROTOCOL_TLS_SERVER,
        }
    app = create_app(memory, settings, **others)

    class Server(uvicorn.Server):
        """Reads its certificate again at SIGHUP. Ends the streams first: they would be waited for like any request."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            watch_reload(settings, self.config.ssl)
            if self.started and on_start is not None:
                on_start()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.live.end()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        http=protocol_for(settings.body_seconds_max),
        ws="none",
        proxy_headers=False,  # who guesses at keys is told by the connection, not by a header
        **tls,
    )
    return Server(config)
