"""Bodies of requests: bounded in bytes and in time, JSON or the lines of a dump, never encoded."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from starlette.requests import Request

from muniment.core.canonical import parse_json
from muniment.errors import TooLarge, TooSlow, UnsupportedMedia

__all__ = ["BYTES_A_SECOND_MIN", "body_parts", "check_json", "read_bytes", "read_json", "spool_lines"]

BYTES_A_SECOND_MIN = 16 << 10
"""A body that comes slower, once its first seconds are over, is given up on: a byte now and then holds nothing open."""


async def read_json(request: Request, bytes_max: int, seconds_max: float) -> Any:
    """The JSON of the body; an empty object where there is no body."""
    body = await read_bytes(request, bytes_max, seconds_max)
    if not body:
        return {}
    check_json(request)
    return parse_json(body)


def check_json(request: Request) -> None:
    """Refuse a body that is not called JSON: a form, or a page of another site, can send any other kind unasked."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedMedia(
            f"a body of type {kind or 'unknown'!r:.60} is not taken here", hint="send `Content-Type: application/json`"
        )


async def read_bytes(request: Request, bytes_max: int, seconds_max: float) -> bytes:
    """The body as it came."""
    return b"".join([part async for part in _parts(request, bytes_max, seconds_max)])


async def spool_lines(request: Request, bytes_max: int, seconds_max: float) -> Path:
    """The body in a file of its own, for whoever reads it twice; the caller removes it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-ndjson", "application/jsonl", "application/octet-stream"):
        raise UnsupportedMedia("a dump is sent as `Content-Type: application/x-ndjson`")
    handle, name = tempfile.mkstemp(prefix="muniment-import-")
    path = Path(name)
    with ExitStack() as unless_whole:
        unless_whole.callback(path.unlink, missing_ok=True)
        with os.fdopen(handle, "wb") as file:
            async for part in _parts(request, bytes_max, seconds_max):
                await asyncio.to_thread(file.write, part)
        unless_whole.pop_all()
    return path


async def _parts(request: Request, bytes_max: int, seconds_max: float) -> AsyncIterator[bytes]:
    """The parts of a body that is not encoded."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("an encoded body is not taken")
    async for part in body_parts(request, bytes_max, seconds_max):
        yield part


async def body_parts(request: Request, bytes_max: int, seconds_max: float) -> AsyncIterator[bytes]:
    """The parts of a body in whatever coding, as they come: within `seconds_max` of each other, and at no less than the
    least rate.
    """
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length) > bytes_max:
        raise _too_large(bytes_max)
    size, more = 0, True
    now_s = asyncio.get_running_loop().time
    begun_s = now_s()
    while more:
        left_s = begun_s + seconds_max + size / BYTES_A_SECOND_MIN - now_s()
        try:
            async with asyncio.timeout(min(left_s, seconds_max)):
                message = await request.receive()
        except TimeoutError:
            raise TooSlow(f"too little came in {seconds_max:g} seconds") from None
        if message["type"] == "http.disconnect":
            raise TooSlow("the caller went away")
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > bytes_max:
            raise _too_large(bytes_max)
        if part:
            yield part


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(
        f"a body over the limit of {bytes_max} bytes", hint="send less at once", details={"bytes_max": bytes_max}
    )
