"""Serve a proxy on a port: uvicorn around the application, with a graceful shutdown."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from muniment.core.outside.system import not_installed, system_clock
from muniment.errors import InvalidInput
from muniment.integrations.proxy.callers import Defaults
from muniment.integrations.proxy.settings import ProxySettings, checked
from muniment.surfaces.http.settings import is_loopback

if TYPE_CHECKING:
    import uvicorn

    from muniment.handles.memory import Memory

__all__ = ["make_proxy", "warnings_of"]


def make_proxy(
    memory: Memory, settings: ProxySettings, defaults: Defaults, *, on_start: Callable[[int], None] | None = None
) -> uvicorn.Server:
    """The server, ready to `run()`; `on_start` is called with its port once it accepts requests."""
    try:
        import uvicorn

        from muniment.integrations.proxy.app import Proxy
        from muniment.surfaces.http.serve import protocol_for
    except ImportError:
        raise not_installed("the proxy is not installed", "proxy") from None
    checked(settings)
    _check_keys(memory, settings)

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started and on_start is not None:
                on_start(self.servers[0].sockets[0].getsockname()[1])

    tls: dict[str, Any] = {}
    if settings.tls_cert:
        tls = {
            "ssl_certfile": settings.tls_cert,
            "ssl_keyfile": settings.tls_key,
            "ssl_version": ssl.PROTOCOL_TLS_SERVER,
        }
    return Server(
        uvicorn.Config(
            Proxy(memory, settings, defaults),
            host=settings.host,
            port=settings.port,
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=settings.shutdown_seconds,
            http=protocol_for(settings.body_seconds_max),
            ws="none",
            proxy_headers=False,
            **tls,
        )
    )


def _check_keys(memory: Memory, settings: ProxySettings) -> None:
    from muniment.surfaces.http._keys import open_keys

    if not settings.asks_for_keys:
        return
    keys = open_keys(settings.keys, memory._ctx.engine, system_clock)
    if not keys.list():
        raise InvalidInput(
            f"there are no keys in {keys.place}, and this proxy asks for one",
            path="$.proxy.keys",
            hint="muniment store keys create NAME --tenant ID --user ID",
        )


def warnings_of(settings: ProxySettings) -> list[str]:
    """Warnings for the operator who starts it."""
    found = []
    if not is_loopback(settings.host) and not settings.asks_for_keys:
        found.append(f"whoever can reach {settings.host}:{settings.port} may name any user: auth is off")
    if not is_loopback(settings.host) and not settings.tls_cert:
        found.append("keys and content cross the network in the clear: give --tls-cert and --tls-key")
    return found
