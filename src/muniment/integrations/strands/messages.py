"""Convert Strands' messages, in the form of Bedrock's API, to Chat Completions, which `session` reads.

Texts, tool calls and their results are converted; images, reasoning and cache points are not. It imports nothing of
Strands: its messages are dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_text

__all__ = ["Plain", "call_names", "plain", "result_text", "results_of", "text_of"]


class Plain(NamedTuple):
    """Messages in the form of an API, each with its index in Strands' list: results are separate messages here."""

    messages: list[dict[str, Any]]
    at: list[int]


def plain(messages: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> Plain:
    """Convert messages; `names` gives the tool of each call."""
    found = [(at, told) for at, message in enumerate(messages) for told in _told(message, names)]
    return Plain([told for _, told in found], [at for at, _ in found])


def call_names(messages: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The tool of each call."""
    calls = (block["toolUse"] for message in messages for block in message["content"] if "toolUse" in block)
    return {call["toolUseId"]: call["name"] for call in calls}


def text_of(message: Mapping[str, Any]) -> str:
    """Text of a message, one block below the other."""
    return "\n".join(block["text"] for block in message["content"] if block.get("text"))


def results_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tool results in a message."""
    return [block["toolResult"] for block in message["content"] if "toolResult" in block]


def result_text(result: Mapping[str, Any]) -> str:
    """Text of a tool's result: texts, and JSON as text, one below the other; for anything else, its status."""
    parts = result.get("content", ())
    texts = [canonical_text(part["json"]) if "json" in part else str(part.get("text") or "") for part in parts]
    return "\n".join(text for text in texts if text) or f"({result.get('status', 'success')})"


def _told(message: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for result in results_of(message):
        id_ = result["toolUseId"]
        yield {"role": "tool", "tool_call_id": id_, "name": names.get(id_, "tool"), "content": result_text(result)}
    text = text_of(message)
    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": canonical_text(_given(message, id_))}}
        for id_, name in call_names([message]).items()
    ]
    if text or calls:
        yield {"role": message["role"], "content": text} | ({"tool_calls": calls} if calls else {})


def _given(message: Mapping[str, Any], call_id: str) -> Any:
    """The arguments of a call."""
    calls = (block["toolUse"] for block in message["content"] if "toolUse" in block)
    return next((call.get("input") or {} for call in calls if call["toolUseId"] == call_id), {})
