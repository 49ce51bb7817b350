"""Responses in zstd or gzip, for callers that accept them. Small responses and streams of events are not compressed."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

try:
    import zstandard
except ImportError:  # gzip is always available
    zstandard = None  # type: ignore[assignment]

__all__ = ["Compressed", "choose_encoding"]

BYTES_MIN = 1024
_GZIP_WINDOW = 31
_KINDS = ("application/json", "application/problem+json", "application/x-ndjson", "text/", "application/javascript")


class _Encoder(Protocol):
    def add(self, data: bytes) -> bytes: ...

    def end(self) -> bytes: ...


class _Gzip:
    def __init__(self) -> None:
        self._made = zlib.compressobj(5, zlib.DEFLATED, _GZIP_WINDOW)

    def add(self, data: bytes) -> bytes:
        return self._made.compress(data) + self._made.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._made.flush()


class _Zstd:
    def __init__(self) -> None:
        self._made = zstandard.ZstdCompressor(level=3).compressobj()

    def add(self, data: bytes) -> bytes:
        return self._made.compress(data) + self._made.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        return self._made.flush()


_ENCODERS: dict[str, Callable[[], _Encoder]] = ({"zstd": _Zstd} if zstandard is not None else {}) | {"gzip": _Gzip}


def choose_encoding(accepted: str) -> str | None:
    """The encoding to use, by the caller's preference and then by size; None for none."""
    if not accepted:
        return None
    weights: dict[str, float] = {}
    for each in accepted.lower().split(","):
        name, _, quality = each.partition(";q=")
        try:
            weights[name.strip()] = float(quality) if quality else 1.0
        except ValueError:
            continue
    known = list(_ENCODERS)
    best = max(known, key=lambda name: (weights.get(name, 0.0), -known.index(name)))
    return best if weights.get(best, 0.0) > 0 else None


class Compressed:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        accepted = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding")
        chosen = choose_encoding(accepted.decode("latin-1"))
        if chosen is None:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, _Sender(send, chosen))


class _Sender:
    """Holds back the start of a response until its first part shows whether to compress."""

    def __init__(self, send: Send, encoding: str) -> None:
        self._send, self._encoding = send, encoding
        self._start: Message | None = None
        self._encoder: _Encoder | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._start is not None:
            start, self._start = self._start, None
            if _is_worth(start["headers"], body, more=more):
                self._encoder = _ENCODERS[self._encoding]()
                kept = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
                start["headers"] = [*kept, (b"content-encoding", self._encoding.encode())]
            await self._send(start)
        if self._encoder is not None:
            body = (self._encoder.add(body) if body else b"") + (b"" if more else self._encoder.end())
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _is_worth(headers: Any, body: bytes, *, more: bool) -> bool:
    said = {name.lower(): value for name, value in headers}
    kind = said.get(b"content-type", b"").decode("latin-1")
    if b"content-encoding" in said or kind.startswith("text/event-stream") or not kind.startswith(_KINDS):
        return False
    return more or len(body) >= BYTES_MIN
