"""The upstream client: answers in their original bytes, failures as typed errors. It follows no redirect, stores no
cookie and never retries, which is the caller's decision.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2

from muniment.errors import DeadlineExceeded, ModelUnreachable, MunimentError
from muniment.integrations.proxy.settings import ProxySettings

__all__ = ["Upstream", "UpstreamLost"]


class UpstreamLost(Exception):
    """The connection to the upstream broke, or stalled, before the answer was complete."""


class Upstream:
    """A connection pool for the addresses of all requests."""

    def __init__(self, settings: ProxySettings) -> None:
        silent_s, connect_s = float(settings.upstream_seconds_max), float(settings.connect_seconds_max)
        self._timeout = {"connect": connect_s, "read": silent_s, "write": silent_s, "pool": connect_s}
        self._http = httpx2.AsyncClient(
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # one caller's cookie must not reach another
            limits=httpx2.Limits(max_connections=settings.requests_max, max_keepalive_connections=64),
            follow_redirects=False,
        )

    async def ask(
        self, method: str, address: str, headers: list[tuple[bytes, bytes]], content: bytes | AsyncIterator[bytes]
    ) -> Any:
        """Send a request and return the answer after its headers. Raises `ModelUnreachable` or `DeadlineExceeded` if
        none came.
        """
        request = httpx2.Request(
            method, address, headers=headers, content=content, extensions={"timeout": self._timeout}
        )
        try:
            return await self._http.send(request, stream=True)
        except httpx2.TimeoutException as error:
            raise DeadlineExceeded(
                f"the upstream did not answer in time ({type(error).__name__})",
                hint="ask again, or raise upstream_seconds_max",
            ) from None
        except httpx2.RequestError as error:
            raise _unreachable(error) from None

    async def parts(self, response: Any) -> AsyncIterator[bytes]:
        """The bytes of an answer as they arrive; raises `UpstreamLost` if they end early."""
        try:
            async for part in response.aiter_raw():
                yield part
        except httpx2.RequestError as error:
            raise UpstreamLost(type(error).__name__) from None

    async def close(self) -> None:
        await self._http.aclose()


def _unreachable(error: Exception) -> MunimentError:
    return ModelUnreachable(
        f"the upstream cannot be reached ({type(error).__name__})", hint="check its address, and that it runs"
    )
