"""What a connection may make us hold before anybody asks who sends it: heads bounded in bytes and in time, and requests
sent behind one another read only as those before them are answered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from muniment.core.canonical import canonical_bytes
from muniment.errors import MunimentError, TooLarge, TooSlow
from muniment.surfaces.operations.problems import MEDIA_TYPE, problem_of, titled

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

__all__ = ["HEAD_BYTES_MAX", "BoundedProtocol", "protocol_for"]

HEAD_BYTES_MAX = 64 << 10
"""Looked at whenever something comes and the head is not whole yet; what came at once may be somewhat longer."""
_PIECE_BYTES = 1 << 10
"""Parsed at once, beside the rest of a body: the requests of one piece are the most that can queue. One of 18 bytes
takes kilobytes there."""
_UNREAD_BYTES_MAX = 64 << 10
"""Unparsed bytes beyond which a connection is not read; below it, a caller that hangs up is noticed."""


class _Flow(FlowControl):
    """Does not resume reading, whoever asks for it, while the connection has too much unparsed."""

    is_full = False

    def resume_reading(self) -> None:
        if not self.is_full:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's own, which would wait for a head for ever, hold whatever it is sent of one, and queue as many requests
    as arrive before the first is answered.
    """

    seconds_max: float = 60.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_in_head = True
        self._head_bytes = self._body_bytes_left = 0
        self._unparsed = bytearray()
        self._running: RequestResponseCycle | None = None
        self._too_late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = self._flow = _Flow(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        self._unparsed.clear()
        super().connection_lost(exc)
        if self._running is not None:  # uvicorn tells the request that came last alone
            self._running.disconnected = True
            self._running.message_event.set()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        self._is_in_head, self._head_bytes = False, 0
        self._body_bytes_left = int(next((value for name, value in self.headers if name == b"content-length"), 0))
        self._wait_no_longer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes_left -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._body_bytes_left = 0
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        self._parse()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        self._running = None
        super().on_response_complete()
        self._parse()

    def _parse(self) -> None:
        """Parse what has come, as long as no request waits for the one before it."""
        while self._unparsed and not self.pipeline and not self.transport.is_closing():
            size = max(_PIECE_BYTES, self._body_bytes_left)
            piece = bytes(self._unparsed[:size])
            del self._unparsed[:size]
            self._parse_piece(piece)
        if self.transport.is_closing():
            self._unparsed.clear()
            return
        if self._unparsed:
            self._wait_no_longer()  # for a head of which more is here
        was_full, self._flow.is_full = self._flow.is_full, len(self._unparsed) > _UNREAD_BYTES_MAX
        if self._flow.is_full:
            self._flow.pause_reading()
        elif was_full or self.pipeline:
            self._flow.resume_reading()

    def _parse_piece(self, piece: bytes) -> None:
        if self._is_in_head:  # else it begins with what belongs to the request before
            self._head_bytes += len(piece)
        super().data_received(piece)
        if self._is_in_head and not self.transport.is_closing():
            if self._head_bytes > HEAD_BYTES_MAX:
                large = TooLarge(f"a head over the limit of {HEAD_BYTES_MAX} bytes", hint="send fewer headers")
                self._refuse(large, 431)
            elif self._too_late is None and not self._unparsed:
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
