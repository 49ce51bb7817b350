"""Messages of Strands, which have the form of Bedrock's API, in that of Chat Completions, which the seam reads.

Texts, calls of tools and their results are told; images, reasoning and cache points are not. It imports nothing of
Strands: its messages are dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_text

__all__ = ["Plain", "call_names", "plain", "result_text", "results_of", "text_of"]


class Plain(NamedTuple):
    """Messages in the form of an API, and at which place of Strands' list each stands: results are single there."""

    messages: list[dict[str, Any]]
    at: list[int]


def plain(messages: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> Plain:
    """Messages in the form of an API; `names` are those of the tools that were called, by the call."""
    found = [(at, told) for at, message in enumerate(messages) for told in _told(message, names)]
    return Plain([told for _, told in found], [at for at, _ in found])


def call_names(messages: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Which tool each call was for."""
    calls = (block["toolUse"] for message in messages for block in message["content"] if "toolUse" in block)
    return {call["toolUseId"]: call["name"] for call in calls}


def text_of(message: Mapping[str, Any]) -> str:
    """What a message says in words, one text below the other."""
    return "\n".join(block["text"] for block in message["content"] if block.get("text"))


def results_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The results of tools that a message brings."""
    return [block["toolResult"] for block in message["content"] if "toolResult" in block]


def result_text(result: Mapping[str, Any]) -> str:
    """What a tool answered: texts, and JSON as text, one below the other; of anything else, whether it went well."""
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
