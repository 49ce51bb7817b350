"""Find the new messages of a list that does not begin with the recorded session: cut in front, summarised, edited,
repeated.

The list is aligned with the recorded session. Messages in both, in the same order, are known; the rest is new, except
messages in place of forgotten ones, which the list must not bring back. The last messages of a list are being said now,
and are new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import canonical_text
from muniment.core.matching import common_stretches, erased_places
from muniment.store.messages import MessageEvent
from muniment.store.secrets import redact_value

if TYPE_CHECKING:
    from muniment.store.ledger import LedgerEntry

__all__ = ["Aligned", "Recorded", "align", "ends_with", "event_mark", "missing_calls", "recorded", "unmade_calls"]

_CALLS = ("function_call", "custom_tool_call", "tool_use", "server_tool_use", "mcp_tool_use")
_TURNS = ("tool_calls", "message_item")
"""System events of a conversation without a speaker; any other system event is not part of it."""


class Recorded(NamedTuple):
    """One turn of the session in the form used for comparison."""

    id: str
    mark: str
    """Empty if it was forgotten."""
    calls: Sequence[Any]
    role: str = ""


class Aligned(NamedTuple):
    """Ids of the known turns in the list, and its new events."""

    known_ids: list[str]
    new: list[MessageEvent]


def recorded(entries: Iterable[LedgerEntry], read: Callable[[str], str]) -> list[Recorded]:
    """The turns of a session's conversation; `read` fetches the text of those that lack it."""
    found = []
    for entry in entries:
        is_turn = entry.kind in ("message", "tool_result") or entry.metadata.get("event") in _TURNS
        if not is_turn:
            continue
        if entry.is_forgotten:
            found.append(Recorded(entry.id, "", (), entry.role))
            continue
        content = entry.content if entry.content is not None else read(entry.id)
        tool = entry.body.tool if entry.body is not None else None
        calls = entry.metadata.get("tool_calls")
        made = calls if isinstance(calls, list | tuple) else ()
        mark = _mark(entry.role, content, None if tool is None else tool.call_id, made)
        found.append(Recorded(entry.id, mark, made, entry.role))
    return found


def align(known: Sequence[Recorded], events: Sequence[MessageEvent]) -> Aligned:
    """Align the events of a list with the known turns. The caller's own prompts are not part of the conversation."""
    turns = [each for each in events if not each.is_prompt]
    marks = [event_mark(each.event) for each in turns]
    held = [each.mark or f"forgotten {number}" for number, each in enumerate(known)]
    found: dict[int, int] = {}
    for at, place, size in common_stretches(held, marks):
        is_end = place + size == len(turns)
        if size == 1 and is_end and (at, place) != (0, 0) and at + size < len(known):
            continue  # the same words as much earlier, but in a new context: a new turn
        found |= {place + step: at + step for step in range(size)}
    gone = {number: each.role for number, each in enumerate(known) if not each.mark}
    erased = erased_places(found, [each.event["role"] for each in turns], gone, (0, len(known)))
    passed_by = found.keys() | (erased - {len(turns) - 1})
    new = [turn for place, turn in enumerate(turns) if place not in passed_by]
    return Aligned([known[number].id for number in found.values()], new)


def ends_with(known: Sequence[Recorded], events: Sequence[MessageEvent]) -> bool:
    """True if these are the last turns of the session."""
    held = [each.mark for each in known if each.mark]
    return held[-len(events) :] == [event_mark(each.event) for each in events]


def missing_calls(known: Iterable[Recorded], messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Calls of the session whose results a list has without the calls themselves, as items to read before it."""
    made = {call["id"]: call for each in known for call in each.calls}
    return [_call(id_, made[id_]["name"], made[id_].get("args")) for id_ in _unmade(messages) if id_ in made]


def unmade_calls(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Calls whose results a list has without the calls themselves, named by the results, if at all."""
    return [_call(id_, name, None) for id_, name in _unmade(messages).items()]


def _call(call_id: str, name: str, args: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": args}


def _unmade(messages: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Ids of answered calls that are missing from the list, with the names in their results."""
    made: set[str] = set()
    answered: dict[str, str] = {}
    for message in messages:
        for part in (message, *_parts(message, "content"), *_parts(message, "tool_calls")):
            if part.get("type") in _CALLS or (part is not message and "function" in part):
                made.add(str(part.get("call_id") or part.get("id")))
                continue
            named = part.get("tool_call_id") or part.get("tool_use_id") or part.get("call_id")
            if named is not None and str(named) not in made:
                name = part.get("name")
                answered.setdefault(str(named), name if isinstance(name, str) and name else "tool")
    return answered


def _parts(message: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    held = message.get(name)
    return [part for part in held if isinstance(part, Mapping)] if isinstance(held, list | tuple) else []


def event_mark(event: dict[str, Any]) -> str:
    """Role and content of a list's event, in the form used for comparison."""
    tool = event.get("tool") or {}
    calls = (event.get("metadata") or {}).get("tool_calls") or ()
    return _mark(event["role"], event["content"], tool.get("call_id"), calls)


def _mark(role: str, content: str, call_id: str | None, calls: Sequence[Any]) -> str:
    """Comparison mark of a turn. Secrets are removed from new text too, as recorded text has lost them."""
    said = redact_value([role, content, call_id, [call["id"] for call in calls]], Counter())
    return canonical_text(said)
