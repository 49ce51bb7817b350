"""OTLP as protobuf, decoded into the same objects that OTLP's JSON has: the few messages and fields that are read here.

By hand, since the wire has four forms and the messages are a dozen: no package has to be installed to read what an
agent sends. Bounded in depth and in how many values it makes; a field of another form than it should have is refused.
Unknown fields are passed over, as protobuf has it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from muniment.errors import InvalidInput, TooLarge

__all__ = ["Signal", "decode"]

Signal = Literal["traces", "logs"]

DEPTH_MAX = 120
"""Messages within messages: three for each level that a value nests."""
VALUES_MAX = 2_000_000
"""Values that one body may hold: each is an object in memory many times its bytes on the wire."""

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5
_SIGN_BIT = 1 << 63


class _Field(NamedTuple):
    name: str
    form: Literal["message", "text", "bytes", "hex", "varint", "bool", "fixed64", "double"]
    of: str = ""
    is_list: bool = False


_WIRE = {"message": _LEN, "text": _LEN, "bytes": _LEN, "hex": _LEN, "varint": _VARINT, "bool": _VARINT}
_WIRE |= {"fixed64": _I64, "double": _I64}


def _many(name: str, of: str) -> _Field:
    return _Field(name, "message", of, is_list=True)


_ATTRIBUTES = _many("attributes", "KeyValue")
_RESOURCE = _Field("resource", "message", "Resource")
_SCOPE = _Field("scope", "message", "Scope")

_MESSAGES: Mapping[str, Mapping[int, _Field]] = {
    "traces": {1: _many("resourceSpans", "ResourceSpans")},
    "ResourceSpans": {1: _RESOURCE, 2: _many("scopeSpans", "ScopeSpans")},
    "ScopeSpans": {1: _SCOPE, 2: _many("spans", "Span")},
    "Span": {
        1: _Field("traceId", "hex"),
        2: _Field("spanId", "hex"),
        4: _Field("parentSpanId", "hex"),
        5: _Field("name", "text"),
        7: _Field("startTimeUnixNano", "fixed64"),
        8: _Field("endTimeUnixNano", "fixed64"),
        9: _ATTRIBUTES,
        11: _many("events", "Event"),
        15: _Field("status", "message", "Status"),
    },
    "Event": {1: _Field("timeUnixNano", "fixed64"), 2: _Field("name", "text"), 3: _ATTRIBUTES},
    "Status": {2: _Field("message", "text"), 3: _Field("code", "varint")},
    "logs": {1: _many("resourceLogs", "ResourceLogs")},
    "ResourceLogs": {1: _RESOURCE, 2: _many("scopeLogs", "ScopeLogs")},
    "ScopeLogs": {1: _SCOPE, 2: _many("logRecords", "LogRecord")},
    "LogRecord": {
        1: _Field("timeUnixNano", "fixed64"),
        5: _Field("body", "message", "AnyValue"),
        6: _ATTRIBUTES,
        9: _Field("traceId", "hex"),
        10: _Field("spanId", "hex"),
        11: _Field("observedTimeUnixNano", "fixed64"),
        12: _Field("eventName", "text"),
    },
    "Resource": {1: _ATTRIBUTES},
    "Scope": {1: _Field("name", "text"), 2: _Field("version", "text")},
    "KeyValue": {1: _Field("key", "text"), 2: _Field("value", "message", "AnyValue")},
    "AnyValue": {
        1: _Field("stringValue", "text"),
        2: _Field("boolValue", "bool"),
        3: _Field("intValue", "varint"),
        4: _Field("doubleValue", "double"),
        5: _Field("arrayValue", "message", "ArrayValue"),
        6: _Field("kvlistValue", "message", "KeyValueList"),
        7: _Field("bytesValue", "bytes"),
    },
    "ArrayValue": {1: _many("values", "AnyValue")},
    "KeyValueList": {1: _many("values", "KeyValue")},
}


def decode(data: bytes, signal: Signal) -> dict[str, Any]:
    """The request as OTLP's JSON has it, with numbers as numbers and bytes as they are."""
    return _Decoder(data).message(signal, 0, len(data), 0)


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._count = 0

    def message(self, kind: str, at: int, end: int, depth: int) -> dict[str, Any]:
        if depth > DEPTH_MAX:
            raise InvalidInput(f"nested deeper than {DEPTH_MAX} levels", path="$")
        fields, found = _MESSAGES[kind], dict[str, Any]()
        while at < end:
            tag, at = self._varint(at, end)
            number, wire = tag >> 3, tag & 7
            field = fields.get(number)
            if field is None:
                at = self._skipped(wire, at, end)
                continue
            if wire != _WIRE[field.form]:
                raise _bad(f"{kind}.{field.name} has another form than it should", at)
            self._count += 1
            if self._count > VALUES_MAX:
                raise TooLarge(f"more than {VALUES_MAX} values at once", hint="send fewer spans at once")
            value, at = self._value(field, at, end, depth)
            if field.is_list:
                found.setdefault(field.name, []).append(value)
            else:
                found[field.name] = value
        return found

    def _value(self, field: _Field, at: int, end: int, depth: int) -> tuple[Any, int]:
        if field.form in ("varint", "bool"):
            number, at = self._varint(at, end)
            if field.form == "bool":
                return number != 0, at
            return number - (1 << 64) if number & _SIGN_BIT else number, at
        if field.form in ("fixed64", "double"):
            if at + 8 > end:
                raise _bad("it ends in the middle of a number", at)
            return struct.unpack_from("<Q" if field.form == "fixed64" else "<d", self._data, at)[0], at + 8
        at, stop = self._span(at, end)
        if field.form == "message":
            return self.message(field.of, at, stop, depth + 1), stop
        held = self._data[at:stop]
        if field.form == "text":
            try:
                return held.decode(), stop
            except UnicodeDecodeError:
                raise _bad("a text is not UTF-8", at) from None
        return (held.hex() if field.form == "hex" else held), stop

    def _span(self, at: int, end: int) -> tuple[int, int]:
        """From where to where the value goes whose length stands here."""
        size, at = self._varint(at, end)
        if size > end - at:
            raise _bad("it ends in the middle of a value", at)
        return at, at + size

    def _skipped(self, wire: int, at: int, end: int) -> int:
        if wire == _VARINT:
            return self._varint(at, end)[1]
        if wire == _LEN:
            return self._span(at, end)[1]
        size = {_I64: 8, _I32: 4}.get(wire)
        if size is None or at + size > end:
            raise _bad("a field of a form that is none", at)
        return at + size

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        number = shift = 0
        while at < end and shift < 70:
            byte = self._data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & ((1 << 64) - 1), at
            shift += 7
        raise _bad("a number without end", at)


def _bad(said: str, at: int) -> InvalidInput:
    return InvalidInput(
        f"not OTLP: {said}, at byte {at}",
        path="$",
        hint="send an ExportTraceServiceRequest or ExportLogsServiceRequest",
    )
