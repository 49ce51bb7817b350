"""Three ways to ask a model: where each has the caller's list, the system prompt, and the answer. Nothing is changed in
place: what is sent is a copy of what the caller gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from muniment.integrations.wrapping.answers import AnswerReader, ChatReader, MessageReader, ResponseReader

if TYPE_CHECKING:
    from muniment.packets.builds import Build

__all__ = ["DIALECTS", "Dialect"]

_GAP = "\n\n"
_PROMPTS = ("system", "developer")


class Dialect(Protocol):
    """What has to be known of an API to put a packet before its model and to read its answer."""

    def messages(self, given: Mapping[str, Any]) -> list[Any] | None:
        """The caller's list; None where the call asks no model anything new."""

    def goes_on_from(self, given: Mapping[str, Any]) -> str | None:
        """Where the list is only what comes after what the server holds: the id of its last answer; empty where only
        the conversation is named, and not the place in it. None where the list is all there is.
        """

    def with_packet(self, given: Mapping[str, Any], build: Build, *, cite: bool) -> dict[str, Any]:
        """The call with the packet behind the caller's own system prompt."""

    def answer(self, response: Any) -> list[Any]:
        """The messages of an answer, as `run.record` takes them; empty where nothing was said."""

    def reader(self) -> AnswerReader:
        """What puts an answer together while it streams."""


class _Chat:
    """Chat Completions. The packet joins the caller's last leading system message: many servers take only one."""

    def messages(self, given: Mapping[str, Any]) -> list[Any] | None:
        return _listed(given.get("messages"))

    def goes_on_from(self, given: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        return None

    def with_packet(self, given: Mapping[str, Any], build: Build, *, cite: bool) -> dict[str, Any]:
        packet = _context(build, cite)
        messages = list(given["messages"])
        if not packet:
            return dict(given)
        leading = next((at for at, each in enumerate(messages) if _role(each) not in _PROMPTS), len(messages))
        if leading and isinstance(messages[leading - 1], Mapping):
            own = messages[leading - 1]
            messages[leading - 1] = {**own, "content": _joined(own.get("content"), packet)}
        else:
            messages.insert(leading, {"role": "system", "content": packet})
        return {**given, "messages": messages}

    def answer(self, response: Any) -> list[Any]:
        choices = getattr(response, "choices", None) or ()
        if not choices:
            return []
        said = choices[0].message
        message = {name: getattr(said, name, None) for name in ("content", "refusal", "tool_calls", "function_call")}
        message = {name: value for name, value in message.items() if value}
        return [{"role": "assistant", "content": None, **message}] if message else []

    def reader(self) -> AnswerReader:
        return ChatReader()


class _Responses:
    """The Responses API: `instructions` belong to one call and are not carried over, as a packet should not be."""

    def messages(self, given: Mapping[str, Any]) -> list[Any] | None:
        asked = given.get("input")
        return [{"role": "user", "content": asked}] if isinstance(asked, str) else _listed(asked)

    def goes_on_from(self, given: Mapping[str, Any]) -> str | None:
        held = given.get("previous_response_id")
        if isinstance(held, str) and held:
            return held
        return "" if isinstance(given.get("conversation"), str | Mapping) else None

    def with_packet(self, given: Mapping[str, Any], build: Build, *, cite: bool) -> dict[str, Any]:
        packet = _context(build, cite)
        own = given.get("instructions")
        own = own if isinstance(own, str) and own else None
        return {**given, "instructions": packet if own is None else f"{own}{_GAP}{packet}"} if packet else dict(given)

    def answer(self, response: Any) -> list[Any]:
        return list(getattr(response, "output", None) or ())

    def reader(self) -> AnswerReader:
        return ResponseReader()


class _Messages:
    """Anthropic's Messages. The caller's system blocks come first, with their breakpoints: their cache holds."""

    def messages(self, given: Mapping[str, Any]) -> list[Any] | None:
        return _listed(given.get("messages"))

    def goes_on_from(self, given: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        return None

    def with_packet(self, given: Mapping[str, Any], build: Build, *, cite: bool) -> dict[str, Any]:
        blocks = [block for each in build.to_anthropic(include_query=False, cite=cite) for block in each["content"]]
        own = given.get("system")
        if isinstance(own, str):
            own = [{"type": "text", "text": own}] if own else []
        return {**given, "system": [*(_listed(own) or ()), *blocks]} if blocks else dict(given)

    def answer(self, response: Any) -> list[Any]:
        content = list(getattr(response, "content", None) or ())
        return [{"role": "assistant", "content": content}] if content else []

    def reader(self) -> AnswerReader:
        return MessageReader()


DIALECTS: Mapping[str, Mapping[tuple[str, ...], Dialect]] = {
    "openai": {("chat", "completions"): _Chat(), ("responses",): _Responses()},
    "anthropic": {("messages",): _Messages(), ("beta", "messages"): _Messages()},
}
"""By the package of a client, the places on it whose calls ask a model."""


def _listed(given: Any) -> list[Any] | None:
    """A list of the caller's; None for what is none, such as the clients' own marks for "not given"."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        return None
    return list(given)


def _context(build: Build, cite: bool) -> str:
    """The text that stands before the model."""
    return _GAP.join(message["content"] for message in build.to_openai(include_query=False, cite=cite))


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)


def _joined(own: Any, packet: str) -> Any:
    """The content of the caller's own message with the packet behind it, in the form that the caller chose."""
    if isinstance(own, Sequence) and not isinstance(own, str):
        return [*own, {"type": "text", "text": packet}]
    return f"{own}{_GAP}{packet}" if own else packet
