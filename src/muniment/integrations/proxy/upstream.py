"""The upstream, asked and listened to: its answer in the bytes that it sent, its failures by name. It follows no
redirect, keeps no cookie and asks nothing twice: retries are the caller's.
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
    """The connection to the upstream broke, or stood still, before its answer was whole."""


class Upstream:
    """A pool of connections; the addresses are those of the requests."""

    def __init__(self, settings: ProxySettings) -> None:
        silent_s, connect_s = float(settings.upstream_seconds_max), float(settings.connect_seconds_max)
        self._timeout = {"connect": connect_s, "read": silent_s, "write": silent_s, "pool": connect_s}
        self._http = httpx2.AsyncClient(
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # one caller's cookie is no other's
            limits=httpx2.Limits(max_connections=settings.requests_max, max_keepalive_connections=64),
            follow_redirects=False,
        )

    async def ask(
        self, method: str, address: str, headers: list[tuple[bytes, bytes]], content: bytes | AsyncIterator[bytes]
    ) -> Any:
        """The answer, its head read and its body to come. `ModelUnreachable` or `DeadlineExceeded` where none came."""
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
        """The bytes of an answer as they come; `UpstreamLost` where they end before their time."""
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
