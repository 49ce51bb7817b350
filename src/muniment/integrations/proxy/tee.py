"""Read an answer as it passes: decode its bytes, split its events, and assemble it as a wrapped client does.

It only observes: bytes pass unchanged. An answer that is too long, in an unreadable coding, or not JSON, is not
recorded, and `lost` says why.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import parse_json
from muniment.errors import InvalidJson

if TYPE_CHECKING:
    from muniment.integrations.wrapping.dialects import Dialect

__all__ = ["Answer", "Events"]

_STEP_BYTES = 1 << 20


class Answer:
    """The part of an answer received so far."""

    def __init__(self, dialect: Dialect, media: str, coding: str, bytes_max: int) -> None:
        self.lost = ""
        """Why it cannot be recorded."""
        self.response_id = ""
        """Id of a stored response, which a later request may continue."""
        self.is_stream = media.partition(";")[0].strip().lower() == "text/event-stream"
        self._dialect = dialect
        self._reader = dialect.reader()
        self._unpacked = _unpacking(coding)
        if self._unpacked is None:
            self.lost = "its coding cannot be read"
        self._held: list[bytes] = []
        self._events = Events()
        self._size, self._bytes_max = 0, bytes_max
        self._whole: list[Any] | None = None

    @property
    def is_whole(self) -> bool:
        """True if the server marked the answer as complete."""
        return self._whole is not None or (self.is_stream and self._reader.is_whole)

    def take(self, part: bytes) -> None:
        """Add the next bytes as received."""
        if self.lost or self._unpacked is None:
            return
        plain: list[bytes] = []
        try:
            plain += self._unpacked(part, self._bytes_max - self._size)
        except zlib.error:
            self.lost = "it is not in the coding that it is said to be in"
        self._size += sum(map(len, plain))
        if self._size >= self._bytes_max:
            self.lost = "it is too long"
        if self.lost:
            self._held.clear()
        elif self.is_stream:
            for event in self._events.take(b"".join(plain)):
                self._take_event(event)
        else:
            self._held += plain

    def end(self) -> None:
        """Finish the answer."""
        if self.is_stream or self.lost:
            return
        plain = _read(b"".join(self._held))
        if plain is None:
            self.lost = "it is no JSON"
            return
        self._note_id(plain)
        self._whole = self._dialect.answer(plain)

    def messages(self) -> list[Any]:
        """The messages received so far, in the form `run.record` takes."""
        if self.lost:
            return []
        return self._reader.messages() if self.is_stream else self._whole or []

    def _take_event(self, data: bytes) -> None:
        event = _read(data)
        if event is not None:
            self._reader.take(event)
            self._note_id(event.get("response"))

    def _note_id(self, response: Any) -> None:
        if isinstance(response, Mapping) and response.get("object") == "response":
            held = response.get("id")
            self.response_id = held if isinstance(held, str) else ""


class Events:
    """Splits a stream into events as bytes arrive; each byte is examined once."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []

    def take(self, part: bytes) -> Iterator[bytes]:
        """The data of each event that these bytes complete."""
        *ended, rest = part.split(b"\n")
        for piece in ended:
            line = b"".join((*self._line, piece)).removesuffix(b"\r")
            self._line.clear()
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data.clear()
        if rest:
            self._line.append(rest)


def _read(data: bytes) -> dict[str, Any] | None:
    try:
        told = parse_json(data)
    except InvalidJson:  # such as the [DONE] after a stream
        return None
    return told if isinstance(told, dict) else None


class _Unpacking:
    """Decompresses data, never more at once than requested."""

    def __init__(self, bits: int) -> None:
        self._of = zlib.decompressobj(bits)
        self._is_first = bits == zlib.MAX_WBITS

    def __call__(self, part: bytes, bytes_max: int) -> Iterator[bytes]:
        if self._is_first and part:
            self._is_first = False
            if part[0] & 0x0F != 8:  # raw deflate, as some servers send it
                self._of = zlib.decompressobj(-zlib.MAX_WBITS)
        size = 0
        while part and size < bytes_max:
            plain = self._of.decompress(part, min(_STEP_BYTES, bytes_max - size))
            size += len(plain)
            yield plain
            part = self._of.unconsumed_tail


def _as_it_is(part: bytes, bytes_max: int) -> Iterator[bytes]:
    yield part[:bytes_max]


def _unpacking(coding: str) -> Any:
    match coding.strip().lower():
        case "" | "identity":
            return _as_it_is
        case "gzip" | "x-gzip":
            return _Unpacking(zlib.MAX_WBITS | 16)
        case "deflate":
            return _Unpacking(zlib.MAX_WBITS)
    return None
