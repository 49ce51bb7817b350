"""The JSON that the SDK's console exporters print for people: spans and log records, one object after the other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from muniment.core.instants import parse_instant
from muniment.errors import InvalidInput
from muniment.traces.otlp.spans import Export, Log, Span, SpanEvent

__all__ = ["is_console", "read_console"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_console(held: Mapping[str, Any]) -> bool:
    """Is it a span or a log record as the console has them?"""
    is_span = isinstance(held.get("context"), Mapping) and "start_time" in held
    return is_span or ("severity_number" in held and "trace_id" in held)


def read_console(held: Mapping[str, Any], into: Export, path: str = "$") -> None:
    """Read one object."""
    if "context" not in held:
        into.logs.append(_log(held, path))
        return
    context = _object(held["context"], f"{path}.context")
    status = _object(held.get("status") or {}, f"{path}.status")
    into.spans.append(
        Span(
            _id(context.get("trace_id"), 32, f"{path}.context.trace_id"),
            _id(context.get("span_id"), 16, f"{path}.context.span_id"),
            _id(held.get("parent_id"), 16, f"{path}.parent_id", is_needed=False),
            str(held.get("name") or ""),
            "",
            _nanoseconds(held.get("start_time"), f"{path}.start_time"),
            _nanoseconds(held.get("end_time"), f"{path}.end_time"),
            _object(held.get("attributes") or {}, f"{path}.attributes"),
            tuple(_event(each, f"{path}.events[{at}]") for at, each in enumerate(held.get("events") or ())),
            status.get("status_code") == "ERROR",
            str(status.get("description") or ""),
            _resource(held, path),
        )
    )


def _event(held: Any, path: str) -> SpanEvent:
    held = _object(held, path)
    attributes = _object(held.get("attributes") or {}, f"{path}.attributes")
    return SpanEvent(str(held.get("name") or ""), _nanoseconds(held.get("timestamp"), f"{path}.timestamp"), attributes)


def _log(held: Mapping[str, Any], path: str) -> Log:
    attributes = _object(held.get("attributes") or {}, f"{path}.attributes")
    name = held.get("event_name") or attributes.get("event.name")
    trace_id = _id(held.get("trace_id"), 32, f"{path}.trace_id", is_needed=False)
    span_id = _id(held.get("span_id"), 16, f"{path}.span_id", is_needed=False)
    time_ns = _nanoseconds(held.get("timestamp") or held.get("observed_timestamp"), f"{path}.timestamp")
    body, named = held.get("body"), name if isinstance(name, str) else ""
    return Log(trace_id, span_id, named, "", time_ns, attributes, body, _resource(held, path))


def _resource(held: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    resource = _object(held.get("resource") or {}, f"{path}.resource")
    return _object(resource.get("attributes") or {}, f"{path}.resource.attributes")


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"should be an object, found {type(value).__name__}", path=path)
    return value


def _id(value: Any, digits: int, path: str, *, is_needed: bool = True) -> str:
    held = value.removeprefix("0x").lower() if isinstance(value, str) else ""
    is_hex = len(held) == digits and all(each in "0123456789abcdef" for each in held)
    if is_hex and held.strip("0"):
        return held
    if not is_needed and not held.strip("0"):
        return ""
    raise InvalidInput(f"should be {digits} hexadecimal digits", path=path)


def _nanoseconds(value: Any, path: str) -> int:
    if value is None:
        return 0
    passed = parse_instant(value, path=path) - _EPOCH
    return max(0, (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1_000)
