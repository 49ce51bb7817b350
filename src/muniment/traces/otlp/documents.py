"""What was handed in, as spans and logs: bytes or text of a request or a file, or objects that were read already.

A file may hold one object, one object a line (as the collector's file exporter writes them), or objects one behind the
other with line breaks inside (as the console prints them). Protobuf is told from JSON by how it begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muniment.core.canonical import nests_within
from muniment.errors import InvalidInput, InvalidJson, TooLarge
from muniment.traces.otlp.console import is_console, read_console
from muniment.traces.otlp.envelopes import RECORDS_MAX, read_envelope
from muniment.traces.otlp.spans import Export
from muniment.traces.otlp.wire import Signal, decode

__all__ = ["BYTES_MAX", "read_export"]

BYTES_MAX = 256 << 20
"""The largest file that is read at once."""
LEVELS_MAX = 200
_KNOWN = ("resourceSpans", "resourceLogs", "resourceMetrics")
_HINT = "OTLP as JSON or protobuf, JSON lines of the collector's file exporter, or what the console exporter prints"
_SPACE = " \t\r\n"


def read_export(data: Any, signal: Signal | None = None) -> Export:
    """The spans and logs of what was handed in. `InvalidInput` with the place of what cannot be read."""
    export = Export([], [])
    if isinstance(data, bytes | bytearray | memoryview):
        _read_bytes(bytes(data), signal, export)
    elif isinstance(data, str):
        _read_text(data, export)
    elif isinstance(data, Mapping):
        _read_object(data, export, "$")
    elif isinstance(data, Iterable):
        for index, each in enumerate(data):
            _read_object(each, export, f"$[{index}]")
    else:
        raise InvalidInput(f"traces are bytes, text or objects, not {type(data).__name__}", path="$.data", hint=_HINT)
    return export


def _read_bytes(data: bytes, signal: Signal | None, into: Export) -> None:
    if len(data) > BYTES_MAX:
        raise TooLarge(f"more than {BYTES_MAX} bytes at once", hint="split the file")
    if not data:
        return
    if data.lstrip(_SPACE.encode())[:1] in (b"{", b"[", b""):
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InvalidJson(f"not UTF-8 at byte {error.start}", path="$", hint=_HINT) from None
        _read_text(text, into)
        return
    read_envelope(_decoded(data, signal), into)


def _decoded(data: bytes, signal: Signal | None) -> dict[str, Any]:
    """Of a file nobody says whether it holds traces or logs; no record of the one reads as the other."""
    if signal is not None:
        return decode(data, signal)
    try:
        return decode(data, "traces")
    except TooLarge:
        raise
    except InvalidInput as error:
        try:
            return decode(data, "logs")
        except InvalidInput:
            raise error from None


def _read_text(text: str, into: Export) -> None:
    for number, document in enumerate(_documents(text)):
        path = "$" if number == 0 else f"$[{number}]"
        if isinstance(document, list):
            for index, each in enumerate(document):
                _read_object(each, into, f"{path}[{index}]")
        else:
            _read_object(document, into, path)


def _documents(text: str) -> Iterator[Any]:
    """JSON documents one behind the other, whatever stands between them."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    at = 0
    while at < len(text):
        while at < len(text) and text[at] in _SPACE:
            at += 1
        if at == len(text):
            return
        try:
            document, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError) as error:
            line = text.count("\n", 0, at) + 1
            said = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            raise InvalidJson(f"not JSON from line {line}: {said}", path="$", hint=_HINT) from None
        except ValueError as error:  # a number of thousands of digits
            raise InvalidJson(f"not JSON: {error}", path="$", hint=_HINT) from None
        yield document


def _no_constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not JSON", path="$")


def _read_object(held: Any, into: Export, path: str) -> None:
    if not isinstance(held, Mapping):
        raise InvalidInput(f"should be an object, found {type(held).__name__}", path=path, hint=_HINT)
    if not nests_within(held, LEVELS_MAX):
        raise InvalidInput(f"nested deeper than {LEVELS_MAX} levels", path=path)
    if any(name in held for name in _KNOWN):
        read_envelope(held, into, path)
    elif is_console(held):
        if len(into.spans) + len(into.logs) >= RECORDS_MAX:
            raise TooLarge(f"more than {RECORDS_MAX} spans and logs at once", hint="send them in parts")
        read_console(held, into, path)
    elif held:
        raise InvalidInput("neither spans nor logs", path=path, hint=_HINT)
