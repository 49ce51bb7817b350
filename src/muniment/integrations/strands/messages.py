"""Messages of Strands, which have the form of Bedrock's API, in that of Anthropic's, which the seam reads.

Texts, calls of tools and their results are told; images, reasoning and cache points are not. It imports nothing of
Strands: its messages are dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muniment.core.canonical import canonical_text

__all__ = ["plain", "results_of", "text_of"]


def plain(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages in the form of an API. One that says nothing is there too, with nothing in it."""
    return [{"role": each["role"], "content": list(_blocks(each))} for each in messages]


def text_of(message: Mapping[str, Any]) -> str:
    """What a message says in words, one text below the other."""
    return "\n".join(block["text"] for block in message["content"] if block.get("text"))


def results_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The results of tools that a message brings."""
    return [block["toolResult"] for block in message["content"] if "toolResult" in block]


def _blocks(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for block in message["content"]:
        if block.get("text"):
            yield {"type": "text", "text": block["text"]}
        elif "toolUse" in block:
            call = block["toolUse"]
            yield {"type": "tool_use", "id": call["toolUseId"], "name": call["name"], "input": call.get("input") or {}}
        elif "toolResult" in block:
            result = block["toolResult"]
            told = [{"type": "text", "text": text} for text in map(_told, result.get("content", ())) if text]
            failed = result.get("status") == "error"
            yield {"type": "tool_result", "tool_use_id": result["toolUseId"], "content": told, "is_error": failed}


def _told(part: Mapping[str, Any]) -> str:
    """What a part of a result says: its text, or its JSON as text."""
    return canonical_text(part["json"]) if "json" in part else str(part.get("text") or "")
