"""Messages that are told as events: of a span, or as log records beside it.

Up to version 1.36 of the conventions each message was an event of its own (`gen_ai.user.message`, `gen_ai.choice`), and
many emitters still write those. Since then one event may hold the whole (`gen_ai.client.inference.operation.details`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from muniment.traces.dialects.said import Said, json_of, messages_of, said_of

__all__ = ["EVENT_NAMES", "Conversation", "Told", "read_details", "read_events"]

DETAILS = "gen_ai.client.inference.operation.details"
_CHOICES = ("gen_ai.choice", "gen_ai.assistant.choice")
_SPOKEN = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_WHOLE = {"gen_ai.content.prompt": "gen_ai.prompt", "gen_ai.content.completion": "gen_ai.completion"}
EVENT_NAMES = frozenset({DETAILS, *_CHOICES, *_SPOKEN, *_WHOLE})


class Told(NamedTuple):
    """An event by its name, and what it holds: its attributes, and the body of a log record."""

    name: str
    held: Mapping[str, Any]


@dataclass(slots=True)
class Conversation:
    """What a model was sent and what it answered."""

    system: list[str] = field(default_factory=list)
    inputs: list[Said] = field(default_factory=list)
    outputs: list[Said] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.system or self.inputs or self.outputs)

    def add(self, messages: Iterable[Said]) -> None:
        """Messages that were sent; prompts of the system apart from the rest."""
        for said in messages:
            if said.role == "system":
                self.system += [said.text] if said.text.strip() else []
            else:
                self.inputs.append(said)


def read_details(held: Mapping[str, Any]) -> Conversation:
    """The attributes of the conventions as they are now, of a span or of an event."""
    found = Conversation()
    found.add([_prompt(held.get("gen_ai.system_instructions"))])
    found.add(messages_of(held.get("gen_ai.input.messages")))
    found.outputs += messages_of(held.get("gen_ai.output.messages"))
    return found


def _prompt(held: Any) -> Said:
    held = json_of(held)
    if isinstance(held, str):
        return Said("system", held)
    return said_of({"role": "system", "parts": held}) if isinstance(held, list) else Said("system")


def read_events(events: Iterable[Told]) -> Conversation:
    """Messages in the order of their events."""
    found = Conversation()
    for name, held in events:
        if name == DETAILS:
            part = read_details(held)
            found.system += part.system
            found.inputs += part.inputs
            found.outputs += part.outputs
        elif name in _CHOICES:
            found.outputs.append(_choice(_held(held)))
        elif name in _SPOKEN:
            found.add([said_of({**_held(held), "role": _SPOKEN[name]})])
        elif name in _WHOLE:
            told = messages_of(held.get(_WHOLE[name]))
            if name == "gen_ai.content.prompt":
                found.add(told)
            else:
                found.outputs += told
    return found


def _held(held: Mapping[str, Any]) -> Mapping[str, Any]:
    """What stands in an event; some write all of it as JSON into one attribute."""
    whole = json_of(held.get("gen_ai.event.content"))
    return {**held, **whole} if isinstance(whole, Mapping) else held


def _choice(held: Mapping[str, Any]) -> Said:
    message = json_of(held.get("message"))
    if isinstance(message, Mapping):
        return said_of({"role": "assistant", **message})
    if message is None:
        return said_of({**held, "role": "assistant"})
    return said_of({"role": "assistant", "content": message, "tool_calls": held.get("tool_calls")})
