"""`/metrics`: the page, for those who may read it.

Whoever asks from a network that the setting names, and was not passed on by a proxy; and whoever has a key that keeps
the whole server: admin access to every tenant.
"""

from __future__ import annotations

import asyncio
import ipaddress
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.errors import Forbidden, UnknownRoute, WrongMethod
from muniment.surfaces.http._guard import Guard, is_passed_on
from muniment.surfaces.http.metrics.counting import Metrics
from muniment.surfaces.http.metrics.networks import networks_of
from muniment.surfaces.http.metrics.page import MEDIA_TYPE

__all__ = ["MetricsPage"]

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class MetricsPage:
    """An ASGI application behind the guard, which is asked for the key of those that are not near."""

    def __init__(self, metrics: Metrics, setting: str, guard: Guard) -> None:
        self._metrics, self._guard, self._is_off = metrics, guard, setting.strip() == "off"
        self._networks = networks_of(setting)
        self._thread = ThreadPoolExecutor(1, "muniment-metrics")
        """Reading the files of other workers, and waiting for a first look at the store, hold up no request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._let_in(Request(scope))
        body = await asyncio.get_running_loop().run_in_executor(self._thread, self._metrics.page)
        await Response(body, 200, _HEADERS, MEDIA_TYPE)(scope, receive, send)

    def close(self) -> None:
        """Wait for who is being answered."""
        self._thread.shutdown(wait=True)

    async def _let_in(self, request: Request) -> None:
        if self._is_off or request.url.path != "/metrics":
            raise UnknownRoute("nothing answers at that address")
        if request.method not in ("GET", "HEAD"):
            raise WrongMethod(f"{request.method:.20} is not taken there", details={"allowed": ["GET", "HEAD"]})
        if self._is_near(request):
            return
        if not (await self._guard.authenticate(request)).keeps_the_server:
            raise Forbidden(
                "this page is for those who keep the server",
                hint="ask with a key that has admin access to every tenant, or from a network that `metrics` names",
            )

    def _is_near(self, request: Request) -> bool:
        if request.client is None or is_passed_on(request):
            return False
        try:
            address = ipaddress.ip_address(request.client.host)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._networks)
