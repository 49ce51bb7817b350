"""A store on a port: uvicorn around the application, until it is stopped; work in progress finishes first.

uvicorn alone would buffer everything it is sent before authentication: here heads are bounded in bytes and in time, and
pipelined requests are read only as those before them are answered. The certificate is read again at SIGHUP: open
connections keep the one they began with, and a file that is no certificate, or does not match the key, changes nothing.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from muniment.core.canonical import canonical_bytes
from muniment.errors import MunimentError, TooLarge, TooSlow
from muniment.surfaces.http.logs import LOGGER
from muniment.surfaces.http.settings import ServerSettings, is_loopback
from muniment.surfaces.operations.problems import MEDIA_TYPE, problem_of, titled

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

    from muniment.handles.memory import Memory
    from muniment.surfaces.http._keys import KeyRing

__all__ = [
    "HEAD_BYTES_MAX",
    "BoundedProtocol",
    "first_key",
    "make_server",
    "protocol_for",
    "reload_certificate",
    "warnings_of",
    "watch_reload",
]


def first_key(keys: KeyRing) -> str | None:
    """Make the first key, with full access, if there is none; returns its token, which is shown only once."""
    return None if keys.list() else keys.create("first", tenant="*", access="admin").token


def warnings_of(settings: ServerSettings) -> list[str]:
    """Warnings for the operator of a server that is about to start."""
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
    """The server, ready to `run()`. On a stop signal, requests and long work in progress finish.

    `on_start` is called once it accepts requests. `others` are passed to `create_app`: `beside` and `lifespans`.
    """
    from muniment.surfaces.http.app import create_app

    tls: dict[str, Any] = {}
    if settings.tls_cert:
        tls = {
            "ssl_certfile": settings.tls_cert,
            "ssl_keyfile": settings.tls_key,
            "ssl_version": ssl.PROTOCOL_TLS_SERVER,
        }
    app = create_app(memory, settings, **others)

    class Server(uvicorn.Server):
        """A server that reads its certificate again at SIGHUP. It ends streams first, since it would wait for them like
        any request.
        """

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
        proxy_headers=False,  # key guessing is tracked by connection, not by a header
        **tls,
    )
    return Server(config)


# -- heads --------------------------------------------------------------------------------------------


HEAD_BYTES_MAX = 64 << 10
"""Checked whenever data arrives and the head is incomplete; one that arrives in a single piece may be somewhat
longer.
"""
_PIECE_BYTES = 1 << 10
"""The bytes parsed at once: the requests of one piece are the most that can queue. One of 18 bytes takes kilobytes
there.
"""
_UNREAD_BYTES_MAX = 64 << 10
"""Unparsed bytes beyond which a connection is not read; below it, a disconnect is noticed."""


class _Flow(FlowControl):
    """Keeps reading paused, whoever resumes it, while the connection has too much unparsed."""

    is_full = False

    def resume_reading(self) -> None:
        if not self.is_full:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with bounds: the original would wait for a head forever, buffer all of it, and queue as many
    requests as arrive before the first is answered.
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
        if self._running is not None:  # uvicorn notifies only the latest request
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
        """Parse the received data, as long as no request waits for an earlier one."""
        while self._unparsed and not self.pipeline and not self.transport.is_closing():
            size = max(_PIECE_BYTES, self._body_bytes_left)
            piece = bytes(self._unparsed[:size])
            del self._unparsed[:size]
            self._parse_piece(piece)
        if self.transport.is_closing():
            self._unparsed.clear()
            return
        if self._unparsed:
            self._wait_no_longer()  # for a head, more of which has arrived
        was_full, self._flow.is_full = self._flow.is_full, len(self._unparsed) > _UNREAD_BYTES_MAX
        if self._flow.is_full:
            self._flow.pause_reading()
        elif was_full or self.pipeline:
            self._flow.resume_reading()

    def _parse_piece(self, piece: bytes) -> None:
        if self._is_in_head:  # else it begins with the rest of the previous request
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
    """The protocol of a server with this time limit for heads."""
    return type("Bounded", (BoundedProtocol,), {"seconds_max": float(seconds_max)})


# -- the certificate ----------------------------------------------------------------------------------


def watch_reload(settings: ServerSettings, context: ssl.SSLContext | None) -> None:
    """Have SIGHUP read the certificate again while the event loop runs. Without TLS, SIGHUP is ignored instead of
    ending the process.
    """
    if hasattr(signal, "SIGHUP"):
        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGHUP, reload_certificate, settings, context)
        except (RuntimeError, ValueError):  # a loop outside the main thread, as in tests: it gets no signals
            LOGGER.debug("signals are not heard here: the certificate is read once")


def reload_certificate(settings: ServerSettings, context: ssl.SSLContext | None) -> bool:
    """Read the files again; returns whether new connections now get the new certificate."""
    if context is None:
        LOGGER.info("told to read again: there is no certificate")
        return False
    try:
        tried = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # else a wrong file would leave the one in use half changed
        tried.load_cert_chain(settings.tls_cert, settings.tls_key)
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as error:  # includes those of ssl
        LOGGER.error("the certificate was not read again", extra={"said": {"reason": type(error).__name__}})
        return False
    LOGGER.info("the certificate was read again")
    return True
