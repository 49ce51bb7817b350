"""OTLP's JSON objects as spans and logs; what they hold is checked on the way, with the place of what is wrong."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping
from typing import Any

from muniment.errors import InvalidInput, TooLarge
from muniment.traces.otlp.spans import Export, Log, Span, SpanEvent

__all__ = ["DEPTH_MAX", "RECORDS_MAX", "read_envelope"]

RECORDS_MAX = 100_000
"""Spans and logs that are read at once."""
DEPTH_MAX = 32
"""How deep the value of an attribute may nest."""
_ERROR = 2


def read_envelope(envelope: Mapping[str, Any], into: Export, path: str = "$") -> None:
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
    """Numbers of 64 bits are sent as text, since a JSON number of JavaScript cannot hold them."""
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
