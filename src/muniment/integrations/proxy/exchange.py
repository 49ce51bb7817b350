"""One request, from its sending upstream to the last byte of the answer: passed on as it arrives, and read on the way.

If the caller disconnects, the upstream's work is stopped. If the upstream disconnects, the caller's answer ends
unterminated too, so that the caller notices. The part received until then is recorded as incomplete.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

from starlette.types import Message, Receive, Send

from muniment.integrations.proxy.routes import passed_back
from muniment.integrations.proxy.tee import Answer
from muniment.integrations.proxy.upstream import Upstream, UpstreamLost

__all__ = ["Relay", "Relayed", "until_gone"]

_NOTHING: Message = {"type": "http.response.body", "body": b"", "more_body": False}
Keep = Callable[[], Awaitable[None]]


class Relayed(NamedTuple):
    """How an answer was relayed."""

    status: int
    end: str
    """`whole`, `upstream lost` or `caller slow`."""


class Relay:
    """Passes an answer on. `answer` reads it on the way, and `keep` records it once, before the caller has the last of
    it, so that an immediate follow-up finds it recorded.
    """

    def __init__(self, upstream: Upstream, send: Send, seconds_max: float) -> None:
        self._upstream = upstream
        self._send = send
        self._seconds_max = seconds_max

    async def pass_on(
        self, response: Any, ours: list[tuple[bytes, bytes]], answer: Answer | None, keep: Keep | None
    ) -> Relayed:
        is_kept = answer is None or keep is None

        async def kept() -> None:
            nonlocal is_kept
            if not is_kept and keep is not None:
                is_kept = True
                await keep()

        head = {"status": response.status_code, "headers": passed_back(response.headers.raw, ours)}
        end = "whole"
        try:
            await self._sent({"type": "http.response.start", **head})
            held = b""
            async for part in self._upstream.parts(response):
                if answer is not None:
                    answer.take(part)
                    if answer.is_whole:
                        await kept()
                if answer is not None and not answer.is_stream:
                    part, held = held, part  # hold back the end of a whole answer until it is recorded
                if part:
                    await self._sent({"type": "http.response.body", "body": part, "more_body": True})
            if answer is not None:
                answer.end()
            await kept()
            if held:
                await self._sent({"type": "http.response.body", "body": held, "more_body": True})
            await self._sent(_NOTHING)
        except UpstreamLost:
            end = "upstream lost"
        except TimeoutError:
            end = "caller slow"
        finally:
            await response.aclose()
            await kept()
        return Relayed(response.status_code, end)

    async def _sent(self, message: Message) -> None:
        """Send to the caller, giving up on one that does not read."""
        async with asyncio.timeout(self._seconds_max):
            await self._send(message)


async def until_gone(receive: Receive, is_read: asyncio.Event) -> None:
    """Return when the caller has disconnected; until `is_read`, its input is read elsewhere."""
    await is_read.wait()
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_then(parts: AsyncIterator[bytes], is_read: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield the parts of a body, and set `is_read` at its end."""
    try:
        async for part in parts:
            yield part
    finally:
        is_read.set()
