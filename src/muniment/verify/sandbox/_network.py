"""Network access of a sandbox with an `allowlist`: a proxy that connects only to listed hosts."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from muniment.core.outside.http import is_public
from muniment.errors import InvalidInput
from muniment.verify.sandbox.traces import Fetches

_HEAD_BYTES_MAX = 8192
_ATTEMPTS_MAX = 1000
_CONNECTIONS_MAX = 32
_SECONDS = 30.0


class FilteringProxy:
    """Serves until closed; its socket is the only file in `folder`, which belongs to `owner`."""

    def __init__(self, entries: Sequence[Entry], owner: tuple[int, int] | None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="muniment-proxy-"))
        self._log = _Log()
        self._server = _Server(str(self.folder / "socket"), entries, self._log)
        if owner is not None:
            for path in (self.folder / "socket", self.folder):
                os.chown(path, *owner)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def take(self) -> Fetches:
        """Return the attempts since the last call."""
        return self._log.take()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        shutil.rmtree(self.folder)


class _Log:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allowed: list[str] = []
        self._denied: list[str] = []

    def note(self, target: str, *, allowed: bool) -> None:
        with self._lock:
            kept = self._allowed if allowed else self._denied
            if len(kept) < _ATTEMPTS_MAX:
                kept.append(target)

    def take(self) -> Fetches:
        with self._lock:
            taken = Fetches(tuple(self._allowed), tuple(self._denied))
            self._allowed, self._denied = [], []
            return taken


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: str, entries: Sequence[Entry], log: _Log) -> None:
        super().__init__(path, _Connection)
        self.entries = entries
        self.log = log
        self.free = threading.BoundedSemaphore(_CONNECTIONS_MAX)


class _Connection(socketserver.BaseRequestHandler):
    """One client: a CONNECT line, a response, then bytes both ways."""

    def handle(self) -> None:
        server, client = self.server, self.request
        assert isinstance(server, _Server)
        assert isinstance(client, socket.socket)
        client.settimeout(_SECONDS)
        if not server.free.acquire(blocking=False):
            _answer(client, 503, "too many connections")
            return
        try:
            with suppress(OSError):
                self._serve(server, client)
        finally:
            server.free.release()

    def _serve(self, server: _Server, client: socket.socket) -> None:
        line = _head(client).split(b"\r\n", 1)[0].decode("ascii", "replace")
        method, _, rest = line.partition(" ")
        if method != "CONNECT":
            server.log.note(_first_word(rest), allowed=False)
            _answer(client, 405, "this proxy knows CONNECT alone")
            return
        try:
            host, port = parse_target(rest.partition(" ")[0])
        except ValueError:
            server.log.note(_first_word(rest), allowed=False)
            _answer(client, 400, "not host:port")
            return
        upstream = _connect(host, port) if allows(server.entries, host, port) else None
        server.log.note(f"{host}:{port}", allowed=upstream is not None)
        if upstream is None:
            _answer(client, 403, f"{host}:{port} is not on the allowlist, or not reached")
            return
        with upstream:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            _join(client, upstream)


def _first_word(text: str) -> str:
    """The first word of a text, cut to the length of a log field."""
    return text.partition(" ")[0][:200]


def _head(client: socket.socket) -> bytes:
    """Read up to the empty line, byte by byte at its end, so as not to consume tunnelled bytes."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = client.recv(1)
        if not part or len(head) >= _HEAD_BYTES_MAX:
            raise ConnectionError("no request")
        head += part
    return head


def _answer(client: socket.socket, code: int, text: str) -> None:
    with suppress(OSError):
        client.sendall(f"HTTP/1.1 {code} {text}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())


def _connect(host: str, port: int) -> socket.socket | None:
    """Connect to the host's first permitted address that answers."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return None
    for family, kind, protocol, _, address in found:
        if may_reach(host, str(address[0])):
            upstream = socket.socket(family, kind, protocol)
            upstream.settimeout(_SECONDS)
            try:
                upstream.connect(address)
            except OSError:
                upstream.close()
                continue
            return upstream
    return None


def _join(one: socket.socket, other: socket.socket) -> None:
    """Copy bytes both ways until both sides are done, or a while passes without any."""
    with selectors.DefaultSelector() as selector:
        selector.register(one, selectors.EVENT_READ, other)
        selector.register(other, selectors.EVENT_READ, one)
        while selector.get_map():
            ready = selector.select(_SECONDS)
            if not ready:
                return
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(1 << 16)
                if data:
                    key.data.sendall(data)
                else:
                    selector.unregister(key.fileobj)
                    with suppress(OSError):
                        key.data.shutdown(socket.SHUT_WR)


# -- the allowlist -------------------------------------------------------------------------------------

_DEFAULT_PORT = 443
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?")


class Entry(NamedTuple):
    host: str
    port: int


def parse_entries(allowlist: Iterable[str]) -> tuple[Entry, ...]:
    """Parse a policy's entries; raise `InvalidInput` for an invalid one."""
    return tuple(_entry(text, index) for index, text in enumerate(allowlist))


def _entry(text: str, index: int) -> Entry:
    try:
        host, port = parse_target(text, default_port=_DEFAULT_PORT)
    except ValueError:
        raise InvalidInput(f"{text!r} is not host, host:port or *.domain:port", path=f"$.allowlist[{index}]") from None
    return Entry(host, port)


def parse_target(text: str, default_port: int | None = None) -> tuple[str, int]:
    """Parse `host:port` or `[address]:port` into lower case without a final dot; raise ValueError."""
    if text.startswith("["):
        host, end, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
        if ip_address(host).version != 6 or not end or (rest and not rest.startswith(":")):
            raise ValueError(text)
    else:
        host, _, port = text.partition(":")
        host = host.lower().removesuffix(".")
        if not _NAME.fullmatch(host):
            raise ValueError(text)
    if not port and default_port is not None:
        return host, default_port
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(text)
    return host, int(port)


def allows(entries: Sequence[Entry], host: str, port: int) -> bool:
    """True if this host and port are listed. A star matches one label or more, never none."""
    return any(entry.port == port and _covers(entry.host, host) for entry in entries)


def _covers(pattern: str, host: str) -> bool:
    return host.endswith(pattern[1:]) and not host.startswith("*") if pattern.startswith("*.") else host == pattern


def may_reach(host: str, address: str) -> bool:
    """True if a listed name may be reached at this address."""
    return host == "localhost" or host == address or is_public(address)
