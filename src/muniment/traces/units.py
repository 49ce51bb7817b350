"""What a trace tells, piece by piece: a call of a model, a tool's result, an agent's run, in one form and in order.

Pure. Log records that belong to one span are one piece, with what the span itself says of it where it came along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from muniment.traces.dialects.events import EVENT_NAMES, Conversation, Told, read_events
from muniment.traces.dialects.spans import Kind, ToolRun, about_of, kind_of, read_conversation, read_tool
from muniment.traces.otlp.spans import Export, Log, Span

__all__ = ["OWN_SCOPE", "Evaluation", "Sent", "Unit", "Units", "units_of"]

OWN_SCOPE = "muniment"
"""What our own spans say that they were written by: memory does not remember itself."""
EVALUATION = "gen_ai.evaluation.result"
_ORDER: Mapping[Kind, int] = {"model": 0, "tool": 0, "agent": 1, "other": 2}


Sent = Literal["spans", "logs"]


class Unit(NamedTuple):
    """One piece. `key` is the span that it stands in; `attributes` and `resource` say whose it is."""

    trace_id: str
    key: str
    kind: Kind
    start_ns: int
    end_ns: int
    conversation: Conversation
    tool: ToolRun | None
    about: Mapping[str, Any]
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    records: int
    """How many spans or logs it was made of."""
    signal: Sent = "spans"


class Evaluation(NamedTuple):
    """What a judge said of an answer."""

    trace_id: str
    key: str
    time_ns: int
    metadata: Mapping[str, Any]
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    signal: Sent = "spans"
    records: int = 1


class Units(NamedTuple):
    """The pieces of an export in the order of their times, and the spans and logs that are none."""

    units: list[Unit]
    evaluations: list[Evaluation]
    left_out: dict[str, int]
    """Why, and how many."""


def units_of(export: Export) -> Units:
    """Read every span and every log."""
    found = Units([], [], {})
    spans = {span.span_id: span for span in export.spans}
    for span in export.spans:
        _add_span(span, found)
    _add_logs(export.logs, spans, found)
    found.units.sort(key=lambda unit: (_ORDER[unit.kind], unit.start_ns, unit.end_ns))
    return found


def _leave_out(found: Units, why: str, count: int = 1) -> None:
    found.left_out[why] = found.left_out.get(why, 0) + count


def _add_span(span: Span, found: Units) -> None:
    for event in span.events:
        if event.name == EVALUATION:
            found.evaluations.append(_evaluation(event.attributes, event.time_ns, span, span.attributes))
    kind = kind_of(span)
    if _is_own(span.scope):
        _leave_out(found, "our_own")
        return
    if kind == "other":
        _leave_out(found, "no_conversation")
        return
    tool = read_tool(span) if kind == "tool" else None
    conversation = read_conversation(span) if kind != "tool" else Conversation()
    if not conversation.inputs and not conversation.outputs and (tool is None or tool.text is None):
        _leave_out(found, "without_content")
        return
    about, attributes = about_of(span.attributes), span.attributes
    times = (span.start_ns, max(span.start_ns, span.end_ns))
    unit = Unit(span.trace_id, span.span_id, kind, *times, conversation, tool, about, attributes, span.resource, 1)
    found.units.append(unit)


def _is_own(scope: str) -> bool:
    return scope == OWN_SCOPE or scope.startswith(f"{OWN_SCOPE}.")


def _add_logs(logs: Iterable[Log], spans: Mapping[str, Span], found: Units) -> None:
    grouped: dict[tuple[str, str], list[Log]] = {}
    for number, log in enumerate(logs):
        if log.name == EVALUATION:
            found.evaluations.append(_evaluation(_held(log), log.time_ns, log, log.attributes))
        elif log.name not in EVENT_NAMES or _is_own(log.scope):
            _leave_out(found, "no_conversation" if log.name not in EVENT_NAMES else "our_own")
        else:
            grouped.setdefault((log.trace_id, log.span_id or f"log{number}"), []).append(log)
    for (trace_id, key), events in grouped.items():
        conversation = read_events(Told(log.name, _held(log)) for log in events)
        span, first = spans.get(key), events[0]
        if not conversation or all(each.is_empty for each in (*conversation.inputs, *conversation.outputs)):
            _leave_out(found, "without_content", len(events))
            continue
        times = (min(log.time_ns for log in events), max(log.time_ns for log in events))
        if span is not None:
            times = (span.start_ns, max(span.start_ns, span.end_ns))
        attributes = {**(span.attributes if span is not None else {}), **first.attributes}
        about, resource, count = about_of(attributes), first.resource, len(events)
        found.units.append(
            Unit(trace_id, key, "model", *times, conversation, None, about, attributes, resource, count, "logs")
        )


def _held(log: Log) -> Mapping[str, Any]:
    """What an event holds: its attributes, and its body where that is an object."""
    return {**log.attributes, **log.body} if isinstance(log.body, Mapping) else {**log.attributes, "content": log.body}


def _evaluation(held: Mapping[str, Any], time_ns: int, at: Span | Log, attributes: Mapping[str, Any]) -> Evaluation:
    names = ("name", "score.value", "score.label", "explanation")
    told = {name.replace(".", "_"): held.get(f"gen_ai.evaluation.{name}") for name in names}
    told["response_id"] = held.get("gen_ai.response.id")
    plain = {name: value for name, value in told.items() if isinstance(value, str | int | float)}
    signal: Sent = "spans" if isinstance(at, Span) else "logs"
    return Evaluation(at.trace_id, at.span_id, time_ns, plain, attributes, at.resource, signal)
