"""A piece of a trace as events for the ledger: what was said, each tool's result, the prompts of the system. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from muniment.core.instants import format_instant
from muniment.packets.page.opening import PAGE_SIGN
from muniment.traces.dialects.said import Called, Returned, Said
from muniment.traces.units import Unit

__all__ = ["Turn", "about_turn", "instant_of", "prompts_of", "turns_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_NS = 253_402_300_799_000_000_000
_BEHIND_PACKET = "\n---\n"
"""What the integrations put between a packet and the words of the question behind it."""


class Turn(NamedTuple):
    """An event, and whether the piece answered it or was sent it."""

    event: dict[str, Any]
    is_answer: bool


def instant_of(time_ns: int) -> str:
    """A time of a span as the ledger has it; empty where there is none."""
    if not 0 < time_ns <= _LATEST_NS:
        return ""
    return format_instant(_EPOCH + timedelta(microseconds=time_ns // 1_000))


def prompts_of(unit: Unit) -> list[str]:
    """Instructions of the caller's own. A packet of ours among them is kept as a build already."""
    texts = dict.fromkeys(text for text in unit.conversation.system if text.strip())
    return [text for text in texts if PAGE_SIGN not in text]


def turns_of(unit: Unit, calls: dict[str, Called]) -> list[Turn]:
    """The events of a piece, in order; `calls` are those of the session so far, and learn of those made here."""
    if unit.tool is not None:
        tool = unit.tool
        result = Returned(tool.id, tool.name, tool.text or "", tool.ok)
        made = calls.get(tool.id) if tool.id else None
        args = tool.args or (made.args if made is not None else None)
        return [Turn(_result(result, Called(tool.id, tool.name, args)), is_answer=True)]
    found = [Turn(event, False) for said in unit.conversation.inputs for event in _events(said, calls)]
    return found + [Turn(event, True) for said in unit.conversation.outputs for event in _events(said, calls)]


def _events(said: Said, calls: dict[str, Called]) -> Iterator[dict[str, Any]]:
    for call in said.calls:
        calls[call.id] = call
    text = _own_words(said.text)
    metadata: dict[str, Any] = {"parts": said.parts} if said.parts else {}
    if said.calls:
        metadata["tool_calls"] = [_told(call) for call in said.calls]
    if text.strip() or said.parts:
        event: dict[str, Any] = {"role": said.role if said.role != "tool" else "assistant", "content": text}
        if said.speaker:
            event["speaker"] = said.speaker
        yield event | ({"metadata": metadata} if metadata else {})
    elif said.calls:
        yield {"role": "system", "content": "", "metadata": metadata | {"event": "tool_calls"}}
    for result in said.results:
        yield _result(result, calls.get(result.id))


def _told(call: Called) -> dict[str, Any]:
    return {"id": call.id, "name": call.name} | ({"args": call.args} if call.args else {})


def _result(result: Returned, call: Called | None) -> dict[str, Any]:
    name = (call.name if call is not None else "") or result.name or "tool"
    tool: dict[str, Any] = {"name": name, "ok": result.ok}
    if result.id:
        tool["call_id"] = result.id
    if call is not None and call.args:
        tool["args"] = call.args
    return {"role": "tool", "content": result.text, "tool": tool}


def _own_words(text: str) -> str:
    """What was said, without a packet of ours that stands before or behind it: it is kept as a build already."""
    at = text.find(PAGE_SIGN)
    if at < 0:
        return text
    _, between, behind = text[at:].rpartition(_BEHIND_PACKET)
    return "\n".join(part for part in (text[:at].strip(), behind.strip() if between else "") if part)


def about_turn(unit: Unit, *, is_answer: bool) -> Mapping[str, Any]:
    """Where a turn was told, and which model said it with how many tokens."""
    where = {"trace_id": unit.trace_id, "span_id": unit.key}
    return {key: value for key, value in where.items() if value} | (dict(unit.about) if is_answer else {})
