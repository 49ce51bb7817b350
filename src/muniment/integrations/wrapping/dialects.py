"""The three model APIs: where each has the caller's list, the packet and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from muniment.integrations.wrapping.answers import (
    AnswerReader,
    ChatReader,
    MessageReader,
    ResponseReader,
    is_message,
    list_of,
    part_of,
    plain_of,
)
from muniment.integrations.wrapping.placing import (
    Insertion,
    before_message,
    behind_blocks,
    behind_prompts,
    behind_text,
)

__all__ = ["CHAT", "DIALECTS", "MESSAGES", "PLACES_ASKED", "RESPONSES", "Dialect"]


class Dialect(Protocol):
    """The operations on an API needed to insert a packet and to read the answer."""

    def messages(self, given: Mapping[str, Any]) -> list[Any] | None:
        """The caller's list; None if the call asks the model nothing new."""

    def goes_on_from(self, given: Mapping[str, Any]) -> str | None:
        """If the list only follows messages that the server holds, the id of the last answer there, or an empty string
        if only the conversation is named. None if the list is complete.
        """

    def before(self, given: Mapping[str, Any], at: int, packet: str) -> Insertion | None:
        """Insert a packet before the words of a message of the list; None if it cannot go there."""

    def behind_prompt(self, given: Mapping[str, Any], packet: str) -> Insertion:
        """Insert a packet after the caller's own system prompt."""

    def answer(self, response: Any) -> list[Any]:
        """The messages of an answer, as `run.record` takes them; empty if there is none."""

    def reader(self) -> AnswerReader:
        """Make a reader that assembles a streamed answer."""


class _Chat:
    """Chat Completions."""

    def messages(self, given: Mapping[str, Any]) -> list[Any] | None:
        return _listed(given.get("messages"))

    def goes_on_from(self, given: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        return None

    def before(self, given: Mapping[str, Any], at: int, packet: str) -> Insertion | None:
        return before_message(given["messages"], "messages", at, packet, "text")

    def behind_prompt(self, given: Mapping[str, Any], packet: str) -> Insertion:
        return behind_prompts(given["messages"], packet)

    def answer(self, response: Any) -> list[Any]:
        choices = list_of(response, "choices")
        if not choices:
            return []
        said = part_of(choices[0], "message")
        message = {name: part_of(said, name) for name in ("content", "refusal", "tool_calls", "function_call")}
        message = {name: plain_of(value) for name, value in message.items() if value}
        return [{"role": "assistant", "content": None, **message}] if message else []

    def reader(self) -> AnswerReader:
        return ChatReader()


class _Responses:
    """The Responses API. The server may store `input` and add it to later requests; `instructions` apply to one call
    and are not carried over, just as a packet should not be. So the packet only goes into the list if the caller
    disables storing.
    """

    def messages(self, given: Mapping[str, Any]) -> list[Any] | None:
        asked = given.get("input")
        return [{"role": "user", "content": asked}] if isinstance(asked, str) else _listed(asked)

    def goes_on_from(self, given: Mapping[str, Any]) -> str | None:
        held = given.get("previous_response_id")
        if isinstance(held, str) and held:
            return held
        return "" if isinstance(given.get("conversation"), str | Mapping) else None

    def before(self, given: Mapping[str, Any], at: int, packet: str) -> Insertion | None:
        is_held = given.get("store") is not False or self.goes_on_from(given) is not None
        return None if is_held else before_message(given.get("input"), "input", at, packet, "input_text")

    def behind_prompt(self, given: Mapping[str, Any], packet: str) -> Insertion:
        return behind_text(given, "instructions", packet)

    def answer(self, response: Any) -> list[Any]:
        return [plain_of(item) for item in list_of(response, "output") if is_message(item)]

    def reader(self) -> AnswerReader:
        return ResponseReader()


class _Messages:
    """Anthropic's Messages."""

    def messages(self, given: Mapping[str, Any]) -> list[Any] | None:
        return _listed(given.get("messages"))

    def goes_on_from(self, given: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        return None

    def before(self, given: Mapping[str, Any], at: int, packet: str) -> Insertion | None:
        return before_message(given["messages"], "messages", at, packet, "text")

    def behind_prompt(self, given: Mapping[str, Any], packet: str) -> Insertion:
        return behind_blocks(given, "system", packet)

    def answer(self, response: Any) -> list[Any]:
        said = part_of(response, "content")
        blocks = [{"type": "text", "text": said}] if isinstance(said, str) and said else list_of(response, "content")
        content = [plain_of(block) for block in blocks if is_message(block)]
        return [{"role": "assistant", "content": content}] if content else []

    def reader(self) -> AnswerReader:
        return MessageReader()


CHAT: Dialect = _Chat()
RESPONSES: Dialect = _Responses()
MESSAGES: Dialect = _Messages()
DIALECTS: Mapping[str, Mapping[tuple[str, ...], Dialect]] = {
    "openai": {("chat", "completions"): CHAT, ("responses",): RESPONSES},
    "anthropic": {("messages",): MESSAGES, ("beta", "messages"): MESSAGES},
}
"""Model calls by their path on the client, by the client's package."""
PLACES_ASKED: Mapping[tuple[str, ...], Dialect] = {
    place: dialect for places in DIALECTS.values() for place, dialect in places.items()
}
"""Model calls of all packages by path."""


def _listed(given: Any) -> list[Any] | None:
    """A list of the caller's; None for anything else, such as the clients' own marks for "not given"."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        return None
    return list(given)
