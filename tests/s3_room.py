"""A real S3 server (moto's, from its wheel) in a process of its own, and a proxy before it that does its part badly."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from free_ports import free_port
from muniment.core.outside.s3_server import Place, S3Server
from muniment.core.outside.s3_signing import Credentials

__all__ = ["CREDENTIALS", "Denying", "FaultyProxy", "S3Room", "s3_python", "s3_server"]

CREDENTIALS = Credentials("test", "test")
_VERSIONED = (
    b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status>'
    b"</VersioningConfiguration>"
)


class S3Room(NamedTuple):
    """A server, and ways to make buckets on it and to look into them."""

    endpoint: str

    def server(self, bucket: str) -> S3Server:
        return S3Server(Place(bucket, "", self.endpoint, "us-east-1", 20.0, 1), lambda: CREDENTIALS)

    def make(self, bucket: str, *, versioned: bool = False) -> str:
        self.server(bucket).ask("PUT")
        if versioned:
            self.server(bucket).ask("PUT", "", {"versioning": ""}, _VERSIONED)
        return bucket

    def url(self, bucket: str, endpoint: str | None = None, **options: object) -> str:
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"s3://{bucket}/some/prefix?endpoint={endpoint or self.endpoint}{more}"

    def listed(self, bucket: str) -> str:
        """Every version of every object, as the server lists them."""
        return self.server(bucket).ask("GET", "", {"versions": ""}).body.decode()


def s3_python() -> str:
    """The Python that has moto: of `make tools`, or of an environment that is named."""
    made = Path(__file__).parent.parent / ".venv-s3" / "bin" / "python"
    named = os.environ.get("MUNIMENT_S3_PYTHON") or (str(made) if made.exists() else "")
    if not named:
        pytest.skip("NOTHING IS TRIED AGAINST AN S3 SERVER: `make tools` could not install one, or was not run")
    return named


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Room]:
    port = free_port()
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONWARNINGS")}
    command = [s3_python(), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "s3.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=folder)
        try:
            for _ in range(600):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                assert process.poll() is None, (folder / "s3.log").read_text()
                time.sleep(0.05)
            yield S3Room(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(20)


class FaultyProxy:
    """Passes requests on, but those whose turn it is to go wrong.

    `faults` are taken one a request, None for a request that goes well:

        late       passed on, and answered when nobody waits any longer
        silent     neither passed on nor answered
        reset      the connection ends without an answer, the request was not passed on
        lost       passed on, and the connection ends without an answer
        cut        the answer ends in the middle of its body
        twice      passed on twice, answered once
        doubled    the answer is sent twice
        error      503 without being passed on
        liar       200 without being passed on
        garbage    bytes that are no HTTP
    """

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.rpartition("//")[2].partition(":")
        self._target = (host, int(port))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.faults: list[str | None] = []
        self.always: str | None = None
        self.seen: list[str] = []
        self.hold_s = 3.0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(30)
            request = _read_request(client)
            with self._lock:
                self.seen.append(request.partition(b" HTTP")[0].decode())
                fault = self.faults.pop(0) if self.faults else self.always
            answer = self._answer(fault, request)
            if fault in ("silent", "late"):
                time.sleep(self.hold_s)
            if answer:
                client.sendall(answer)

    def _answer(self, fault: str | None, request: bytes) -> bytes:
        if fault in ("silent", "reset"):
            return b""
        if fault == "error":
            return b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n"
        if fault == "liar":
            return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        if fault == "garbage":
            return b"\x00\xff these are no headers\r\n\r\n"
        answer = self._pass_on(request)
        if fault == "twice":
            answer = self._pass_on(request)
        if fault == "lost":
            return b""
        if fault == "doubled":
            return answer + answer
        if fault == "cut":
            head, _, body = answer.partition(b"\r\n\r\n")
            return head + b"\r\n\r\n" + body[: len(body) // 2]
        return answer

    def _pass_on(self, request: bytes) -> bytes:
        with socket.create_connection(self._target, 20) as server:
            server.sendall(request)
            parts = []
            while part := server.recv(1 << 16):
                parts.append(part)
            return b"".join(parts)


class Denying(FaultyProxy):
    """A bucket that lets nobody delete versions (as object lock does), or not even list them."""

    denied: tuple[str, ...] = ()

    def _answer(self, fault: str | None, request: bytes) -> bytes:
        line = request.partition(b"\r\n")[0].decode()
        if any(line.startswith(start) and part in line for start, _, part in map(_split, self.denied)):
            body = b"<Error><Code>AccessDenied</Code></Error>"
            return b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        return super()._answer(fault, request)


def _split(rule: str) -> tuple[str, str, str]:
    return rule.partition(" ")


def _read_request(client: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(1 << 16)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    sizes = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    size = int(sizes[0]) if sizes else 0
    while len(body) < size:
        part = client.recv(1 << 16)
        if not part:
            break
        body += part
    return head + b"\r\n\r\n" + body
