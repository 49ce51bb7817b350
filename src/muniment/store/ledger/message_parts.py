"""What one message holds: texts, calls and results among its parts; pictures and files as references, not bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from muniment.errors import InvalidInput

__all__ = ["Content", "ResultPart", "read_content"]

_TEXTS = ("text", "input_text", "output_text", "summary_text", "refusal")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_UNSAID = ("thinking", "redacted_thinking", "reasoning", "cache_point", "compaction")
_FOUND = ("title", "url", "text")
_INLINE_MAX = 2_048
"""A longer address is no address: the picture stands in it."""


class ResultPart(NamedTuple):
    """A tool's result among the parts of a message."""

    at: int
    call_id: str
    content: Content
    ok: bool


@dataclass(slots=True)
class Content:
    """The text of a message, what it refers to, and the calls and results that stand among its parts."""

    text: str = ""
    parts: list[dict[str, Any]] = field(default_factory=list)
    """What is no text, as references."""
    calls: list[tuple[str, str, dict[str, Any] | None]] = field(default_factory=list)
    results: list[ResultPart] = field(default_factory=list)


def read_content(given: Any, path: str) -> Content:
    """Text, null, or a list of parts."""
    if given is None:
        return Content()
    if isinstance(given, str):
        return Content(given)
    if not isinstance(given, list | tuple):
        raise InvalidInput(
            f"content should be text, null or a list of parts, found {type(given).__name__}",
            path=path,
            hint='a part is {"type": "text", "text": "…"}',
        )
    content = Content()
    texts: list[str] = []
    for index, part in enumerate(given):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            texts += _read_part(part, index, f"{path}[{index}]", content)
        else:
            raise InvalidInput(f"a part should be an object, found {type(part).__name__}", path=f"{path}[{index}]")
    content.text = "\n".join(text for text in texts if text)
    return content


def _read_part(part: Mapping[str, Any], index: int, path: str, content: Content) -> list[str]:
    """The text of a part, if it has one; what else it is goes to the content."""
    kind = part.get("type")
    if kind in _TEXTS:
        text = part.get("refusal") if kind == "refusal" else part.get("text")
        if not isinstance(text, str):
            raise InvalidInput(f"a part of the type {kind!r} has no text", path=f"{path}.text")
        return [text]
    if kind in _CALLS:
        id_, name, args = part.get("id"), part.get("name"), part.get("input")
        if not (isinstance(id_, str) and id_ and isinstance(name, str) and name):
            raise InvalidInput("a tool_use has an id and a name", path=path)
        content.calls.append((id_, name, dict(args) if isinstance(args, Mapping) and args else None))
        return []
    if isinstance(kind, str) and kind.endswith("tool_result"):
        call_id = part.get("tool_use_id")
        if not isinstance(call_id, str) or not call_id:
            raise InvalidInput("a result names its call", path=f"{path}.tool_use_id")
        held = part.get("content")
        told = Content(_found(held)) if kind != "tool_result" else read_content(held, f"{path}.content")
        failed = part.get("is_error") is True or (isinstance(held, Mapping) and "error_code" in held)
        content.results.append(ResultPart(index, call_id, told, not failed))
        return []
    if kind in _UNSAID:
        content.parts.append({"type": kind})
        return []
    if not isinstance(kind, str) or not kind:
        raise InvalidInput("a part has a type", path=f"{path}.type")
    reference = _reference(part, kind)
    content.parts.append(reference)
    return [_in_words(reference)]


def _found(held: Any) -> str:
    """What a search of the provider's own found, line by line; or why it failed."""
    if isinstance(held, Mapping):
        return str(held.get("error_code") or held.get("stdout") or held.get("type") or "")
    listed = [each for each in held if isinstance(each, Mapping)] if isinstance(held, list | tuple) else []
    lines = (" ".join(each[key] for key in _FOUND if isinstance(each.get(key), str)) for each in listed)
    return "\n".join(line for line in lines if line)


def _reference(part: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """A picture, a sound or a file by its address or id; what stands in the message itself, by its hash and size."""
    reference: dict[str, Any] = {"type": kind}
    for held in (part, *(value for value in part.values() if isinstance(value, Mapping))):
        for key in ("url", "image_url", "file_url"):
            address = held.get(key)
            if isinstance(address, str) and address:
                reference |= _address(address)
        for key in ("data", "file_data"):
            data = held.get(key)
            if isinstance(data, str) and data:
                reference |= _hashed(data)
        for key in ("file_id", "filename", "title", "media_type", "format"):
            name = held.get(key)
            if isinstance(name, str) and 0 < len(name) <= _INLINE_MAX:
                reference[key] = name
    return reference


def _address(address: str) -> dict[str, Any]:
    if address.startswith("data:") or len(address) > _INLINE_MAX:
        media, _, data = address.partition(",")
        named = media.removeprefix("data:").partition(";")[0][:100]
        return ({"media_type": named} if address.startswith("data:") and named else {}) | _hashed(data or address)
    return {"url": address}


def _hashed(data: str) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(data.encode()).hexdigest(), "chars": len(data)}


def _in_words(reference: Mapping[str, Any]) -> str:
    """How a reference stands in the text of its message."""
    noun = "image" if "image" in reference["type"] else "audio" if "audio" in reference["type"] else "file"
    named = next((reference[key] for key in ("filename", "title", "url", "file_id") if key in reference), None)
    if named is None and "sha256" in reference:
        named = " ".join(filter(None, (reference.get("media_type"), f"sha256:{reference['sha256'][:12]}")))
    return f"[{noun} {named}]" if named else f"[{noun}]"
