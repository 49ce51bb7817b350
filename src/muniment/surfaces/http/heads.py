"""The heads of requests: bounded in bytes and in time, before anybody asks who sends them."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muniment.core.canonical import canonical_bytes
from muniment.errors import MunimentError, TooLarge, TooSlow
from muniment.surfaces.operations.problems import MEDIA_TYPE, problem_of, titled

__all__ = ["HEAD_BYTES_MAX", "BoundedProtocol", "protocol_for"]

HEAD_BYTES_MAX = 64 << 10
"""Looked at whenever something comes and the head is not whole yet; what came at once may be somewhat longer."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's own, which would wait for a head for ever and hold whatever it is sent of one."""

    seconds_max: float = 60.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_in_head = True
        self._head_bytes = 0
        self._too_late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        self._is_in_head, self._head_bytes = False, 0
        self._wait_no_longer()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:  # else it begins with what belongs to the request before
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and not self.transport.is_closing():
            if self._head_bytes > HEAD_BYTES_MAX:
                large = TooLarge(f"a head over the limit of {HEAD_BYTES_MAX} bytes", hint="send fewer headers")
                self._refuse(large, 431)
            elif self._too_late is None:
                self._wait()

    def _wait(self) -> None:
        late = TooSlow(f"the head of a request did not come within {self.seconds_max:g} seconds")
        self._too_late = self.loop.call_later(self.seconds_max, self._refuse, late, late.status)

    def _wait_no_longer(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None

    def _refuse(self, error: MunimentError, status: int) -> None:
        body = canonical_bytes(problem_of(error, "-", status))
        head = f"HTTP/1.1 {status} {titled(status)}\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
        self.transport.close()


def protocol_for(seconds_max: float) -> type[BoundedProtocol]:
    """The protocol of a server whose callers have so long."""
    return type("Bounded", (BoundedProtocol,), {"seconds_max": float(seconds_max)})
