"""What callers of unknown HTTP servers share: answers within a deadline and a size, from an address chosen beforehand.

Each step, down to the single byte of a header, has to come before the deadline, so that a server that drips is left in
time. A request goes to the addresses it is given, past any proxy: names are looked up by `look_up`, once, by whoever
decides which addresses are fit to be asked. Redirects are the caller's to follow.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from threading import Thread
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

__all__ = ["Address", "BodyTooLarge", "ask", "get", "in_time", "look_up", "read_body"]

T = TypeVar("T")

_PART_BYTES = 1 << 16


class BodyTooLarge(HTTPException):
    """An answer over the limit that was set for it."""


class Address(NamedTuple):
    """Where a socket connects to."""

    family: int
    place: tuple[Any, ...]

    @property
    def ip(self) -> str:
        return str(self.place[0])


def read_body(answer: HTTPResponse, bytes_max: int, deadline_s: float) -> bytes:
    """The whole body, however slowly it drips, up to the limit and the deadline (of `time.monotonic`)."""
    parts: list[bytes] = []
    size = 0
    while part := answer.read1(_PART_BYTES):
        parts.append(part)
        size += len(part)
        if size > bytes_max:
            raise BodyTooLarge(f"the answer is over {bytes_max} bytes")
        if time.monotonic() > deadline_s:
            raise TimeoutError("the answer came too slowly")
    if answer.length:
        raise IncompleteRead(b"".join(parts), answer.length)
    return b"".join(parts)


def look_up(host: str, port: int) -> list[Address]:
    """The addresses of a host, as the system knows them."""
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [Address(family, place) for family, _, _, _, place in found]


def in_time(call: Callable[[], T], deadline_s: float) -> T:
    """The result of a call that cannot be told to hurry: where it is late, its thread is left to itself."""
    made: Future[T] = Future()

    def run() -> None:
        try:
            made.set_result(call())
        except OSError as error:
            made.set_exception(error)

    Thread(target=run, daemon=True).start()
    return made.result(timeout=_left(deadline_s))


@contextmanager
def get(
    url: str, addresses: Sequence[Address], headers: Mapping[str, str], deadline_s: float, tls: ssl.SSLContext | None
) -> Iterator[HTTPResponse]:
    """Ask the first address that can be reached for what `fetchable_url` made, over TLS where `tls` is given."""
    with ask("GET", url, addresses, headers, deadline_s, tls) as answer:
        yield answer


@contextmanager
def ask(
    method: str,
    url: str,
    addresses: Sequence[Address],
    headers: Mapping[str, str],
    deadline_s: float,
    tls: ssl.SSLContext | None,
    body: bytes | None = None,
) -> Iterator[HTTPResponse]:
    """`get` with any method, and a body where one is given."""
    target = urlsplit(url)
    host = target.hostname or ""
    with closing(_connect(addresses, deadline_s)) as plain:
        plain.settimeout(_left(deadline_s))
        secure = plain if tls is None else tls.wrap_socket(plain, server_hostname=host)
        with closing(secure):
            connection = HTTPConnection(host, addresses[0].place[1])  # with a port, no other is looked for in the host
            connection.sock = _TimedSocket(secure, deadline_s)
            path = f"{target.path}?{target.query}" if target.query else target.path
            connection.request(method, path, body, {"Host": target.netloc, "Connection": "close", **headers})
            with connection.getresponse() as answer:
                yield answer


def _left(deadline_s: float) -> float:
    left = deadline_s - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time is up")
    return left


def _connect(addresses: Sequence[Address], deadline_s: float) -> socket.socket:
    """Each address has its share of the time that is left, so that a silent one does not take all of it."""
    problem: OSError = OSError("the host has no address")
    for index, address in enumerate(addresses):
        opened = socket.socket(address.family, socket.SOCK_STREAM)
        try:
            opened.settimeout(_left(deadline_s) / (len(addresses) - index))
            opened.connect(address.place)
        except OSError as error:
            opened.close()
            problem = error
            continue
        return opened
    raise problem


class _TimedSocket:
    """The part of a socket that `HTTPConnection` uses, with a deadline; whoever opened the real socket closes it."""

    def __init__(self, real: socket.socket, deadline_s: float) -> None:
        self._real = real
        self._deadline_s = deadline_s

    def sendall(self, data: bytes) -> None:
        self._real.settimeout(_left(self._deadline_s))
        self._real.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedStream(self._real, self._deadline_s))

    def close(self) -> None:
        """Nothing: what was received is still to be read."""


class _TimedStream(io.RawIOBase):
    def __init__(self, real: socket.socket, deadline_s: float) -> None:
        self._real = real
        self._deadline_s = deadline_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._real.settimeout(_left(self._deadline_s))
        return self._real.recv_into(buffer)
