"""Spans and logs for tests: made here one by one, or captured from real emitters.

The files in `captured` were written by running each emitter against a scripted model: OTLP as JSON, made by
opentelemetry-sdk 1.44 and 1.45, without what describes tools. By pydantic-ai 2.66.0; agent-framework-core 1.23.0;
google-adk 2.13.0; strands-agents 1.62.0 (as it is by default, and with `gen_ai_latest_experimental`);
opentelemetry-instrumentation-openai-v2 2.4b0 (by default, and with `gen_ai_latest_experimental` on spans and as
events); opentelemetry-instrumentation-openai and -anthropic 0.62.4 (OpenLLMetry); openinference-instrumentation-openai
0.1.66 and -anthropic 3.1.0. All of them tell the same conversation.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from muniment.handles.memory import Memory
from muniment.store.ledger import LedgerEntry

CAPTURED = Path(__file__).with_name("captured")
TRACE = "ab" * 16
MS = 1_000_000
T0 = 1_790_000_000_000 * MS


def captured(name: str) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((CAPTURED / f"{name}.json").read_text("utf-8"))
    return held


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(value)}}
    return {"stringValue": value}


def attributes(held: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in held.items()]


def span(
    number: int,
    held: dict[str, Any],
    *,
    at: int = 0,
    took: int = 10,
    parent: int = 0,
    trace: str = TRACE,
    error: str | None = None,
    events: list[tuple[str, dict[str, Any]]] | None = None,
) -> dict[str, Any]:
    """A span that began `at` milliseconds after the first and took so many."""
    made: dict[str, Any] = {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": "span",
        "startTimeUnixNano": str(T0 + at * MS),
        "endTimeUnixNano": str(T0 + (at + took) * MS),
        "attributes": attributes(held),
    }
    if parent:
        made["parentSpanId"] = f"{parent:016x}"
    if error is not None:
        made["status"] = {"code": 2, "message": error}
    if events:
        made["events"] = [
            {"name": name, "timeUnixNano": made["startTimeUnixNano"], "attributes": attributes(each)}
            for name, each in events
        ]
    return made


def export(*spans: dict[str, Any], resource: dict[str, Any] | None = None, scope: str = "test") -> dict[str, Any]:
    held = {"attributes": attributes(resource or {})}
    return {"resourceSpans": [{"resource": held, "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def chat(sent: list[Any], answered: list[Any], **more: Any) -> dict[str, Any]:
    """The attributes of a call of a model, by the conventions as they are now."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(sent),
        "gen_ai.output.messages": json.dumps(answered),
        **more,
    }


def turns(mem: Memory, user: str = "ana", session: str | None = None) -> list[LedgerEntry]:
    """What was said and done, in order."""
    entries = mem.ledger.entries(user_id=user, session_id=session)
    return [each for each in entries if each.kind in ("message", "tool_result")]


def said(mem: Memory, user: str = "ana", session: str | None = None) -> list[tuple[str, str]]:
    return [(each.role, str(each.content)) for each in turns(mem, user, session)]


def in_pieces(held: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """The same spans and logs, each sent alone, in another order unless the seed is 0."""
    pieces = list(_pieces(held))
    if seed:
        random.Random(seed).shuffle(pieces)
    return pieces


def _pieces(held: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for kind, inner, records in (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords")):
        for group in held.get(kind, []):
            for scope in group[inner]:
                for each in scope[records]:
                    yield {kind: [{**group, inner: [{**scope, records: [each]}]}]}
