"""A span and a log record as they are read here, whatever they were sent as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Export", "Log", "Span", "SpanEvent"]


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
    """What wrote it: the name of its instrumentation."""
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    events: tuple[SpanEvent, ...]
    is_error: bool
    error: str
    """What the status says of an error."""
    resource: Mapping[str, Any]


class Log(NamedTuple):
    """A log record, which is an event where it has a name."""

    trace_id: str
    span_id: str
    name: str
    scope: str
    time_ns: int
    attributes: Mapping[str, Any]
    body: Any
    resource: Mapping[str, Any]


class Export(NamedTuple):
    """What was sent at once."""

    spans: list[Span]
    logs: list[Log]
