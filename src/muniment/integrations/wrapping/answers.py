"""Assemble streamed answers event by event, for each API, into the messages that `run.record` takes.

An interrupted answer keeps the text that came, and the calls that came whole. Events are a client's objects, or the
plain data that a server sent; unknown shapes are skipped, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from muniment.core.canonical import parse_json
from muniment.errors import MunimentError

__all__ = [
    "AnswerReader",
    "ChatReader",
    "MessageReader",
    "ResponseReader",
    "is_message",
    "list_of",
    "part_of",
    "plain_of",
]


def part_of(held: Any, name: str, default: Any = None) -> Any:
    """Get a field of an answer's part, whether it is an object or plain data."""
    return held.get(name, default) if isinstance(held, Mapping) else getattr(held, name, default)


def list_of(held: Any, name: str) -> Sequence[Any]:
    """Get a list field of an answer; empty if it is missing or not a list."""
    found = part_of(held, name)
    return found if isinstance(found, list | tuple) else ()


def is_message(held: Any) -> bool:
    """True if a part of an answer is an object, a client's or plain."""
    return isinstance(held, Mapping) or hasattr(held, "model_dump") or hasattr(held, "__dict__")


def _place(held: Any, name: str) -> int:
    """The index of a part."""
    found = part_of(held, name)
    return found if type(found) is int else 0


def plain_of(held: Any) -> Any:
    """A part of an answer in plain form for recording; an object without its own conversion gives its attributes."""
    if isinstance(held, list | tuple):
        return [plain_of(each) for each in held]
    if isinstance(held, Mapping):
        return {name: plain_of(each) for name, each in held.items()}
    if isinstance(held, str) or hasattr(held, "model_dump") or not hasattr(held, "__dict__"):
        return held
    return {name: plain_of(each) for name, each in vars(held).items() if each is not None and name[:1] != "_"}


class AnswerReader(Protocol):
    """Reads the events of one stream."""

    is_whole: bool
    """True if the server marked the answer as complete."""

    def take(self, event: Any) -> None:
        """Take one event, as the client passes it to the caller."""

    def messages(self) -> list[Any]:
        """The messages received so far."""


class ChatReader:
    """Reads chunks of Chat Completions, bare or in the events of the client's stream helper. Only the first choice
    counts.
    """

    def __init__(self) -> None:
        self.is_whole = False
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}

    def take(self, event: Any) -> None:
        chunk = part_of(event, "chunk", event)
        for choice in list_of(chunk, "choices"):
            if _place(choice, "index") == 0:
                self._take_delta(part_of(choice, "delta"))
                self.is_whole = self.is_whole or bool(part_of(choice, "finish_reason"))

    def _take_delta(self, delta: Any) -> None:
        self._text.append(_text(part_of(delta, "content")))
        self._refusal.append(_text(part_of(delta, "refusal")))
        for part in list_of(delta, "tool_calls"):
            call = self._calls.setdefault(_place(part, "index"), {"id": "", "name": "", "arguments": ""})
            call["id"] = _text(part_of(part, "id")) or call["id"]
            function = part_of(part, "function") or part_of(part, "custom")
            call["name"] = _text(part_of(function, "name")) or call["name"]
            call["arguments"] += _text(part_of(function, "arguments")) or _text(part_of(function, "input"))

    def messages(self) -> list[Any]:
        calls = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
            for _, call in sorted(self._calls.items())
            if call["id"] and call["name"] and (self.is_whole or _is_json(call["arguments"]))
        ]
        text = "".join(self._text) or "".join(self._refusal)
        return [_marked({"role": "assistant", "content": text, "tool_calls": calls}, self)] if text or calls else []


class MessageReader:
    """Reads events of Anthropic's Messages, bare or among those of the client's stream helper."""

    def __init__(self) -> None:
        self.is_whole = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._ended: set[int] = set()

    def take(self, event: Any) -> None:
        kind, at = part_of(event, "type"), _place(event, "index")
        if kind == "content_block_start":
            block = plain_of(part_of(event, "content_block"))
            if hasattr(block, "model_dump"):
                block = block.model_dump(mode="json", exclude_unset=True)
            if isinstance(block, Mapping):
                self._blocks[at] = dict(block)
        elif kind == "content_block_delta" and at in self._blocks:
            text = part_of(part_of(event, "delta"), "text")
            if isinstance(text, str):
                self._blocks[at]["text"] = f"{_text(self._blocks[at].get('text'))}{text}"
            part = part_of(part_of(event, "delta"), "partial_json")
            if isinstance(part, str):
                self._inputs[at] = self._inputs.get(at, "") + part
        elif kind == "content_block_stop":
            self._ended.add(at)
        elif kind == "message_stop":
            self.is_whole = True

    def messages(self) -> list[Any]:
        blocks = [self._block(at) for at in sorted(self._blocks) if at in self._ended or self._blocks[at].get("text")]
        said = [block for block in blocks if block.get("type") != "text" or block.get("text")]
        return [_marked({"role": "assistant", "content": said}, self)] if said else []

    def _block(self, at: int) -> dict[str, Any]:
        given = self._inputs.get(at, "")
        if not given:
            return self._blocks[at]
        return {**self._blocks[at], "input": parse_json(given) if _is_json(given) else {"arguments": given}}


class ResponseReader:
    """Reads events of the Responses API: whole items as they are completed, and the text of an interrupted one."""

    def __init__(self) -> None:
        self.is_whole = False
        self._items: dict[int, Any] = {}
        self._texts: dict[int, list[str]] = {}

    def take(self, event: Any) -> None:
        kind, at = part_of(event, "type"), _place(event, "output_index")
        if kind == "response.output_text.delta":
            self._texts.setdefault(at, []).append(_text(part_of(event, "delta")))
        elif kind == "response.output_item.done":
            item = part_of(event, "item")
            if is_message(item):
                self._items[at] = item
        elif kind in ("response.completed", "response.incomplete"):
            output = list_of(part_of(event, "response"), "output")
            self._items = {at: item for at, item in enumerate(output) if is_message(item)} or self._items
            self.is_whole = True

    def messages(self) -> list[Any]:
        texts = {at: {"role": "assistant", "content": "".join(parts)} for at, parts in self._texts.items()}
        under_way = {at: _marked(said, self) for at, said in texts.items() if at not in self._items and said["content"]}
        if self.is_whole:
            under_way = {}
        return [item for _, item in sorted({**self._items, **under_way}.items())]


def _marked(message: dict[str, Any], reader: AnswerReader) -> dict[str, Any]:
    """Mark an incomplete message with the Responses API's status, which `run.record` understands for any message."""
    return message if reader.is_whole else {**message, "status": "incomplete"}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_json(text: str) -> bool:
    try:
        return isinstance(parse_json(text or "{}"), Mapping)
    except MunimentError:
        return False
