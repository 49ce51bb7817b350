"""Read OTLP as protobuf or JSON, and the console exporters' JSON, as spans and log records. Pure.

A file may hold one object, one object per line (the collector's file exporter), or consecutive objects with line breaks
inside (the console). Content is validated as it is read, and an error names its place.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from muniment.core.canonical import nests_within
from muniment.core.instants import parse_instant
from muniment.errors import InvalidInput, InvalidJson, MissingDependency, TooLarge

__all__ = ["BYTES_MAX", "Export", "Log", "Signal", "Span", "SpanEvent", "read_export"]

Signal = Literal["traces", "logs"]


class SpanEvent(NamedTuple):
    """Something that happened in a span."""

    name: str
    time_ns: int
    attributes: Mapping[str, Any]


class Span(NamedTuple):
    """One operation of a trace. Attributes are plain data."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    scope: str
    """Name of the instrumentation that wrote it."""
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    events: tuple[SpanEvent, ...]
    is_error: bool
    error: str
    """The status's error message."""
    resource: Mapping[str, Any]


class Log(NamedTuple):
    """A log record; one with a name is an event."""

    trace_id: str
    span_id: str
    name: str
    scope: str
    time_ns: int
    attributes: Mapping[str, Any]
    body: Any
    resource: Mapping[str, Any]


class Export(NamedTuple):
    """The spans and logs of one export."""

    spans: list[Span]
    logs: list[Log]


BYTES_MAX = 256 << 20
"""The largest file that is read at once."""
PROTOBUF_BYTES_MAX = 32 << 20
"""The largest protobuf; smaller than a file, since unpacking multiplies its size. Exporters send a few MB."""
LEVELS_MAX = 200
_KNOWN = ("resourceSpans", "resourceLogs", "resourceMetrics")
_HINT = "OTLP as JSON or protobuf, JSON lines of the collector's file exporter, or what the console exporter prints"
_SPACE = " \t\r\n"


def read_export(data: Any, signal: Signal | None = None) -> Export:
    """Read the spans and logs of an export; raise `InvalidInput` naming the place of anything unreadable."""
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
    if data.lstrip(_SPACE.encode())[:1] not in (b"{", b"[", b""):
        _read_protobuf(data, signal, into)
        return
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidJson(f"not UTF-8 at byte {error.start}", path="$", hint=_HINT) from None
    _read_text(text, into)


def _read_text(text: str, into: Export) -> None:
    for number, document in enumerate(_documents(text)):
        path = "$" if number == 0 else f"$[{number}]"
        if isinstance(document, list):
            for index, each in enumerate(document):
                _read_object(each, into, f"{path}[{index}]")
        else:
            _read_object(document, into, path)


def _documents(text: str) -> Iterator[Any]:
    """Split consecutive JSON documents, ignoring anything between them."""
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
        _read_envelope(held, into, path)
    elif _is_console(held):
        if len(into.spans) + len(into.logs) >= RECORDS_MAX:
            raise TooLarge(f"more than {RECORDS_MAX} spans and logs at once", hint="send them in parts")
        _read_console(held, into, path)
    elif held:
        raise InvalidInput("neither spans nor logs", path=path, hint=_HINT)


# -- protobuf ------------------------------------------------------------------------------------------------


def _read_protobuf(data: bytes, signal: Signal | None, into: Export) -> None:
    """Try traces, then logs, since a file does not name its signal; no record of one parses as the other."""
    if len(data) > PROTOBUF_BYTES_MAX:
        raise TooLarge(f"more than {PROTOBUF_BYTES_MAX} bytes of protobuf at once", hint="send fewer spans at once")
    if signal is not None:
        _read_envelope(_unpacked_request(data, signal), into)
        return
    try:
        found = Export([], [])
        _read_envelope(_unpacked_request(data, "traces"), found)
    except TooLarge:
        raise
    except InvalidInput as error:
        try:
            found = Export([], [])
            _read_envelope(_unpacked_request(data, "logs"), found)
        except InvalidInput:
            raise error from None
    into.spans.extend(found.spans)
    into.logs.extend(found.logs)


def _unpacked_request(data: bytes, signal: Signal) -> dict[str, Any]:
    """The request in OTLP's JSON form."""
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        hint = 'pip install "muniment[otlp]", or send JSON (OTEL_EXPORTER_OTLP_PROTOCOL=http/json)'
        raise MissingDependency("OTLP as protobuf needs the package opentelemetry-proto", hint=hint) from None
    request = ExportTraceServiceRequest() if signal == "traces" else ExportLogsServiceRequest()
    try:
        request.ParseFromString(data)
    except DecodeError as error:
        hint = "send an ExportTraceServiceRequest or ExportLogsServiceRequest"
        raise InvalidInput(f"not OTLP: {error}", path="$", hint=hint) from None
    held: dict[str, Any] = MessageToDict(request)
    for groups, scopes, records in _LEVELS:
        for group in held.get(groups, ()):
            for scope in group.get(scopes, ()):
                for record in scope.get(records, ()):
                    for name in _IDS & record.keys():  # protobuf's JSON has bytes as base64, OTLP's has ids as hex
                        record[name] = base64.b64decode(record[name]).hex()
    return held


_LEVELS = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
_IDS = frozenset(("traceId", "spanId", "parentSpanId"))


# -- OTLP's objects --------------------------------------------------------------------------------------

RECORDS_MAX = 100_000
"""Spans and logs that are read at once."""
DEPTH_MAX = 32
"""Maximum nesting of an attribute value."""
_ERROR = 2


def _read_envelope(envelope: Mapping[str, Any], into: Export, path: str = "$") -> None:
    """Read `resourceSpans` and `resourceLogs` of one request or one line of a file."""
    for index, group in enumerate(_list(envelope, "resourceSpans", path)):
        place = f"{path}.resourceSpans[{index}]"
        resource = _resource(group, place)
        for at, scope, where in _scopes(group, "scopeSpans", place):
            named = _scope_name(at)
            for number, span in enumerate(_list(at, "spans", where)):
                _count(into)
                into.spans.append(_span(_object(span, f"{where}.spans[{number}]"), named, resource, scope, number))
    for index, group in enumerate(_list(envelope, "resourceLogs", path)):
        place = f"{path}.resourceLogs[{index}]"
        resource = _resource(group, place)
        for at, scope, where in _scopes(group, "scopeLogs", place):
            named = _scope_name(at)
            for number, log in enumerate(_list(at, "logRecords", where)):
                _count(into)
                into.logs.append(_log(_object(log, f"{where}.logRecords[{number}]"), named, resource, scope, number))


def _count(into: Export) -> None:
    if len(into.spans) + len(into.logs) >= RECORDS_MAX:
        raise TooLarge(f"more than {RECORDS_MAX} spans and logs at once", hint="send them in parts")


def _scopes(group: Any, name: str, path: str) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    for index, scope in enumerate(_list(_object(group, path), name, path)):
        where = f"{path}.{name}[{index}]"
        yield _object(scope, where), where, where


def _scope_name(held: Mapping[str, Any]) -> str:
    scope = held.get("scope")
    return _text(scope.get("name")) if isinstance(scope, Mapping) else ""


def _resource(group: Any, path: str) -> Mapping[str, Any]:
    held = _object(group, path).get("resource")
    return {} if held is None else _attributes(_object(held, f"{path}.resource"), f"{path}.resource")


def _span(held: Mapping[str, Any], scope: str, resource: Mapping[str, Any], where: str, number: int) -> Span:
    path = f"{where}.spans[{number}]"
    status = _object(held.get("status") or {}, f"{path}.status")
    code = status.get("code")
    return Span(
        _id(held, "traceId", path, 32),
        _id(held, "spanId", path, 16),
        _id(held, "parentSpanId", path, 16, is_needed=False),
        _text(held.get("name")),
        scope,
        _nanoseconds(held, "startTimeUnixNano", path),
        _nanoseconds(held, "endTimeUnixNano", path),
        _attributes(held, path),
        tuple(_events(held, path)),
        code in (_ERROR, "STATUS_CODE_ERROR"),
        _text(status.get("message")),
        resource,
    )


def _events(held: Mapping[str, Any], path: str) -> Iterator[SpanEvent]:
    for index, event in enumerate(_list(held, "events", path)):
        place = f"{path}.events[{index}]"
        event = _object(event, place)
        time_ns = _nanoseconds(event, "timeUnixNano", place)
        yield SpanEvent(_text(event.get("name")), time_ns, _attributes(event, place))


def _log(held: Mapping[str, Any], scope: str, resource: Mapping[str, Any], where: str, number: int) -> Log:
    path = f"{where}.logRecords[{number}]"
    attributes = _attributes(held, path)
    body = held.get("body")
    time_ns = _nanoseconds(held, "timeUnixNano", path) or _nanoseconds(held, "observedTimeUnixNano", path)
    return Log(
        _id(held, "traceId", path, 32, is_needed=False),
        _id(held, "spanId", path, 16, is_needed=False),
        _text(held.get("eventName")) or _text(attributes.get("event.name")),
        scope,
        time_ns,
        attributes,
        None if body is None else _value(body, f"{path}.body", 0),
        resource,
    )


# -- values ---------------------------------------------------------------------------------------------------


def _attributes(held: Mapping[str, Any], path: str) -> dict[str, Any]:
    return _pairs(_list(held, "attributes", path), f"{path}.attributes", 0)


def _pairs(pairs: list[Any], path: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for index, pair in enumerate(pairs):
        place = f"{path}[{index}]"
        pair = _object(pair, place)
        key = pair.get("key", "")
        if not isinstance(key, str):
            raise InvalidInput("a key should be text", path=f"{place}.key")
        found[key] = _value(pair.get("value"), f"{place}.value", depth)
    return found


def _value(held: Any, path: str, depth: int) -> Any:
    """An `AnyValue` as plain data."""
    if held is None or not _object(held, path):
        return None
    if depth > DEPTH_MAX:
        raise InvalidInput(f"nested deeper than {DEPTH_MAX} levels", path=path)
    (kind, value), *others = held.items()
    if others:
        raise InvalidInput("a value is of one kind", path=path)
    if kind in ("arrayValue", "kvlistValue"):
        values = _list(_object(value, f"{path}.{kind}"), "values", f"{path}.{kind}")
        if kind == "kvlistValue":
            return _pairs(values, f"{path}.{kind}.values", depth + 1)
        return [_value(each, f"{path}.{kind}.values[{at}]", depth + 1) for at, each in enumerate(values)]
    return _plain(kind, value, f"{path}.{kind}")


def _plain(kind: str, value: Any, path: str) -> Any:
    if kind == "stringValue" and isinstance(value, str):
        return value
    if kind == "boolValue" and isinstance(value, bool):
        return value
    if kind == "intValue":
        return _whole(value, path)
    if kind == "doubleValue" and isinstance(value, int | float | str) and not isinstance(value, bool):
        return _real(value, path)
    if kind == "bytesValue" and isinstance(value, str | bytes):
        return {"bytes": len(value if isinstance(value, bytes) else _unpacked(value, path))}
    raise InvalidInput(f"not a value of OTLP: {kind!r:.40}", path=path, hint='such as {"stringValue": "…"}')


def _unpacked(value: str, path: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("bytes are sent as base64", path=path) from None


def _real(value: float | str, path: str) -> float | None:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise InvalidInput("not a number", path=path) from None
    return number if math.isfinite(number) else None


def _whole(value: Any, path: str) -> int:
    """Parse an integer; OTLP sends 64-bit numbers as text, since JavaScript's JSON numbers cannot hold them."""
    if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isascii():
        digits = value.removeprefix("-")
        if digits.isdigit():
            return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64:
        return value
    raise InvalidInput("not a whole number of 64 bits", path=path)


def _nanoseconds(held: Mapping[str, Any], key: str, path: str) -> int:
    value = held.get(key)
    found = 0 if value is None else _whole(value, f"{path}.{key}")
    if found < 0:
        raise InvalidInput("a time is not negative", path=f"{path}.{key}")
    return found


def _id(held: Mapping[str, Any], key: str, path: str, digits: int, *, is_needed: bool = True) -> str:
    value = held.get(key) or ""
    is_hex = isinstance(value, str) and len(value) == digits and all(each in "0123456789abcdefABCDEF" for each in value)
    if is_hex:
        return str(value).lower()
    if value == "" and not is_needed:
        return ""
    raise InvalidInput(f"{key} should be {digits} hexadecimal digits", path=f"{path}.{key}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"should be an object, found {type(value).__name__}", path=path)
    return value


def _list(held: Mapping[str, Any], key: str, path: str) -> list[Any]:
    value = held.get(key)
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"{key} should be a list, found {type(value).__name__}", path=f"{path}.{key}")
    return list(value)


# -- what the console exporters print --------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _is_console(held: Mapping[str, Any]) -> bool:
    """True for a span or log record in the console exporters' form."""
    is_span = isinstance(held.get("context"), Mapping) and "start_time" in held
    return is_span or ("severity_number" in held and "trace_id" in held)


def _read_console(held: Mapping[str, Any], into: Export, path: str = "$") -> None:
    """Read one console object."""
    if "context" not in held:
        into.logs.append(_console_log(held, path))
        return
    context = _object(held["context"], f"{path}.context")
    status = _object(held.get("status") or {}, f"{path}.status")
    into.spans.append(
        Span(
            _console_id(context.get("trace_id"), 32, f"{path}.context.trace_id"),
            _console_id(context.get("span_id"), 16, f"{path}.context.span_id"),
            _console_id(held.get("parent_id"), 16, f"{path}.parent_id", is_needed=False),
            str(held.get("name") or ""),
            "",
            _console_nanoseconds(held.get("start_time"), f"{path}.start_time"),
            _console_nanoseconds(held.get("end_time"), f"{path}.end_time"),
            _object(held.get("attributes") or {}, f"{path}.attributes"),
            tuple(_console_event(each, f"{path}.events[{at}]") for at, each in enumerate(held.get("events") or ())),
            status.get("status_code") == "ERROR",
            str(status.get("description") or ""),
            _console_resource(held, path),
        )
    )


def _console_event(held: Any, path: str) -> SpanEvent:
    held = _object(held, path)
    attributes = _object(held.get("attributes") or {}, f"{path}.attributes")
    return SpanEvent(
        str(held.get("name") or ""), _console_nanoseconds(held.get("timestamp"), f"{path}.timestamp"), attributes
    )


def _console_log(held: Mapping[str, Any], path: str) -> Log:
    attributes = _object(held.get("attributes") or {}, f"{path}.attributes")
    name = held.get("event_name") or attributes.get("event.name")
    trace_id = _console_id(held.get("trace_id"), 32, f"{path}.trace_id", is_needed=False)
    span_id = _console_id(held.get("span_id"), 16, f"{path}.span_id", is_needed=False)
    time_ns = _console_nanoseconds(held.get("timestamp") or held.get("observed_timestamp"), f"{path}.timestamp")
    body, named = held.get("body"), name if isinstance(name, str) else ""
    return Log(trace_id, span_id, named, "", time_ns, attributes, body, _console_resource(held, path))


def _console_resource(held: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    resource = _object(held.get("resource") or {}, f"{path}.resource")
    return _object(resource.get("attributes") or {}, f"{path}.resource.attributes")


def _console_id(value: Any, digits: int, path: str, *, is_needed: bool = True) -> str:
    held = value.removeprefix("0x").lower() if isinstance(value, str) else ""
    is_hex = len(held) == digits and all(each in "0123456789abcdef" for each in held)
    if is_hex and held.strip("0"):
        return held
    if not is_needed and not held.strip("0"):
        return ""
    raise InvalidInput(f"should be {digits} hexadecimal digits", path=path)


def _console_nanoseconds(value: Any, path: str) -> int:
    if value is None:
        return 0
    passed = parse_instant(value, path=path) - _EPOCH
    return max(0, (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1_000)
