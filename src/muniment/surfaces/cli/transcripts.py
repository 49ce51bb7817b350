"""Documents that people have, as events: our own event objects, and OpenAI-style message lists.

Pure: from parsed JSON to dicts of `observe`'s arguments, each with the scope it names itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muniment.core.canonical import canonical_text, parse_json
from muniment.errors import InvalidInput, MunimentError

__all__ = ["SCOPE_KEYS", "events_of"]

SCOPE_KEYS = ("user_id", "agent_id", "session_id", "run_id")


def events_of(document: Any, path: str) -> Iterator[dict[str, Any]]:
    """The events of one document, in order. `path` says where it stands, for errors."""
    if isinstance(document, list):
        yield from _messages(document, path, {})
    elif isinstance(document, dict) and isinstance(document.get("messages"), list):
        scope = {key: document[key] for key in SCOPE_KEYS if key in document}
        yield from _messages(document["messages"], f"{path}.messages", scope)
    elif isinstance(document, dict) and "role" in document:
        yield from _messages([document], path, {}, single=True)
    else:
        raise InvalidInput(
            "neither an event nor a list of messages",
            path=path,
            hint='an event has "role" and "content"; a transcript is a list of those, or {"messages": […]}',
        )


def _messages(
    messages: list[Any], path: str, scope: dict[str, Any], *, single: bool = False
) -> Iterator[dict[str, Any]]:
    calls: dict[str, dict[str, Any]] = {}
    for index, message in enumerate(messages):
        where = path if single else f"{path}[{index}]"
        if not isinstance(message, dict):
            said = f"a message should be an object, found {type(message).__name__}"
            raise InvalidInput(said, path=where, hint='such as {"role": "user", "content": "…"}')
        if _is_openai(message):
            yield scope | _from_openai(message, calls, where)
        else:
            yield scope | message


def _is_openai(message: dict[str, Any]) -> bool:
    return (
        not isinstance(message.get("content"), str)
        or "tool_calls" in message
        or "tool_call_id" in message
        or (message.get("role") == "tool" and "tool" not in message)
        or (isinstance(message.get("name"), str) and "speaker" not in message)
    )


def _from_openai(message: dict[str, Any], calls: dict[str, dict[str, Any]], path: str) -> dict[str, Any]:
    known = {
        "role",
        "content",
        "name",
        "tool_calls",
        "tool_call_id",
        "refusal",
        "annotations",
        "audio",
        "function_call",
    }
    event = {key: value for key, value in message.items() if key not in known}
    content, others = _text_of(message.get("content"), f"{path}.content")
    event["role"] = message.get("role")
    if message.get("role") == "assistant" or message.get("content") is not None:
        event["content"] = content or message.get("refusal") or ""
    metadata = dict(event.get("metadata") or {})
    if others:
        metadata["parts"] = others
    made = message.get("tool_calls")
    if isinstance(made, list) and made:
        metadata["tool_calls"] = made
        for call in made:
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                calls[call["id"]] = call
    if message.get("role") == "tool":
        event["tool"] = _tool_of(message, calls)
        if isinstance(message.get("tool_call_id"), str):
            metadata["tool_call_id"] = message["tool_call_id"]
    elif isinstance(message.get("name"), str):
        event["speaker"] = message["name"]
    if metadata:
        event["metadata"] = metadata
    return event


def _text_of(content: Any, path: str) -> tuple[str, list[Any]]:
    """The text of a message's content, and the parts of it that are not text."""
    if content is None:
        return "", []
    if isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        said = f"content should be text or a list of parts, found {type(content).__name__}"
        raise InvalidInput(said, path=path, hint='a part is {"type": "text", "text": "…"}')
    texts: list[str] = []
    others: list[Any] = []
    for part in content:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            texts.append(text)
        else:
            others.append({"type": part.get("type")} if isinstance(part, dict) else {"type": type(part).__name__})
    return "\n".join(texts), others


def _tool_of(message: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, Any]:
    call = calls.get(message.get("tool_call_id") or "", {})
    function = call.get("function") if isinstance(call.get("function"), dict) else {}
    assert isinstance(function, dict)
    name = message.get("name") or function.get("name") or "tool"
    tool: dict[str, Any] = {"name": name, "ok": True}
    arguments = function.get("arguments")
    if isinstance(arguments, str) and arguments:
        try:
            parsed = parse_json(arguments)
        except MunimentError:
            parsed = {"arguments": arguments}
        tool["args"] = parsed if isinstance(parsed, dict) else {"arguments": canonical_text(parsed)}
    return tool
