"""Conversion of model providers' messages to events: Chat Completions, Responses items, Anthropic messages.

A message may be several events: its text, and each tool result separately, joined to its call by the call's id. An
event depends on nothing that comes after it in the list, so that a list that has grown begins with the same events.
Pictures and files among the parts of a message are kept as references, not as bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_text, parse_json
from muniment.errors import InvalidInput, MunimentError

__all__ = ["Content", "MessageEvent", "ResultPart", "read_content", "read_messages"]

_SPOKEN = ("user", "assistant", "system", "developer")
_RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "computer_call_output")
_CALLS = ("function_call", "custom_tool_call")
_WITH_OUTPUT = ("mcp_call", "code_interpreter_call", "web_search_call", "file_search_call", "image_generation_call")
"""Calls that the provider executes itself: the item is call and result at once."""
_SILENT = (
    "reasoning",
    "item_reference",
    "compaction",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "computer_call",
    "local_shell_call",
)
"""Items without text; only their presence is kept."""
_HINT = 'a message is {"role": "user", "content": "…"}, an item of Responses {"type": "function_call_output", …}'


class MessageEvent(NamedTuple):
    """One event of a list of messages: `observe`'s arguments, and the place of its message."""

    at: int
    event: dict[str, Any]

    @property
    def is_prompt(self) -> bool:
        """True for the caller's own prompt, which is not part of the conversation."""
        return self.event["role"] in ("system", "developer") and "event" not in (self.event.get("metadata") or {})


class _Call(NamedTuple):
    name: str
    args: dict[str, Any] | None


@dataclass(slots=True)
class _Calls:
    """Calls that were made and not answered yet. Some servers reuse an id once its call was answered."""

    open: dict[str, _Call] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    def make(self, call_id: str, call: _Call, path: str) -> None:
        if call_id in self.open:
            raise InvalidInput(
                f"the call id {call_id!r:.80} stands twice", path=path, hint="each call has an id of its own"
            )
        self.open[call_id] = call
        self.answered.discard(call_id)

    def answer(self, call_id: str, path: str) -> _Call:
        if call_id in self.open:
            self.answered.add(call_id)
            return self.open.pop(call_id)
        if call_id in self.answered:
            raise InvalidInput(f"the call {call_id!r:.80} has its result already", path=path)
        raise InvalidInput(
            f"no call {call_id!r:.80} comes before its result",
            path=path,
            hint="record the whole list, with the message that made the call; or use observe_tool",
        )


def read_messages(messages: Sequence[Mapping[str, Any]]) -> list[MessageEvent]:
    """Convert a list of messages to events, in order. Raises `InvalidInput` with the place of anything unreadable."""
    calls = _Calls()
    found: list[MessageEvent] = []
    for index, message in enumerate(messages):
        found += [MessageEvent(index, event) for event in _events(message, f"$[{index}]", calls)]
    return found


def _events(message: Mapping[str, Any], path: str, calls: _Calls) -> Iterator[dict[str, Any]]:
    kind, role = message.get("type"), message.get("role")
    if role is None and isinstance(kind, str):
        yield from _item(message, kind, path, calls)
    elif role in ("tool", "function"):
        yield _chat_result(message, path, calls)
    elif role in _SPOKEN:
        yield from _spoken(message, str(role), path, calls)
    else:
        shown = f"the role {role!r:.40}" if role is not None else "neither a role nor a type"
        raise InvalidInput(f"a message with {shown}", path=f"{path}.role", hint=_HINT)


# -- messages -------------------------------------------------------------------------------------------------


def _spoken(message: Mapping[str, Any], role: str, path: str, calls: _Calls) -> Iterator[dict[str, Any]]:
    content = read_content(message.get("content"), f"{path}.content")
    refusal = message.get("refusal")
    text = content.text or (refusal if isinstance(refusal, str) else "")
    made = [*content.calls, *_chat_calls(message, path)]
    metadata: dict[str, Any] = {"parts": content.parts} if content.parts else {}
    if made:
        metadata["tool_calls"] = [_told(*call) for call in made]
    if message.get("status") == "incomplete":  # the Responses API's status of a truncated answer
        metadata["incomplete"] = True
    for at, (id_, name, args) in enumerate(made):
        calls.make(id_, _Call(name, args), f"{path}.tool_calls[{at}].id")
    if made and not text:
        yield {"role": "system", "content": "", "metadata": metadata | {"event": "tool_calls"}}
    elif text or not content.results:
        event: dict[str, Any] = {"role": role, "content": text}
        speaker = message.get("name")
        if isinstance(speaker, str) and speaker:
            event["speaker"] = speaker
        yield event | ({"metadata": metadata} if metadata else {})
    for result in content.results:
        call = calls.answer(result.call_id, f"{path}.content[{result.at}].tool_use_id")
        yield _result(call, result.call_id, result.content, ok=result.ok)


def _told(call_id: str, name: str, args: dict[str, Any] | None) -> dict[str, Any]:
    """Return a call in the form stored with the message that made it."""
    return {"id": call_id, "name": name} | ({"args": args} if args else {})


def _chat_calls(message: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    made = message.get("tool_calls")
    if made is not None and not isinstance(made, list | tuple):
        raise InvalidInput("tool_calls should be a list", path=f"{path}.tool_calls")
    for at, call in enumerate(made or ()):
        place = f"{path}.tool_calls[{at}]"
        function = call.get("function", call.get("custom")) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise InvalidInput("a tool call has a function with a name", path=place)
        yield (
            _named(call, "id", place),
            _named(function, "name", f"{place}.function"),
            _arguments(function.get("arguments", function.get("input"))),
        )
    function = message.get("function_call")
    if isinstance(function, Mapping):  # older messages lack ids: the name replaces it
        name = _named(function, "name", f"{path}.function_call")
        yield f"function:{name}", name, _arguments(function.get("arguments"))


# -- results and other items ----------------------------------------------------------------------------------


def _chat_result(message: Mapping[str, Any], path: str, calls: _Calls) -> dict[str, Any]:
    if message.get("role") == "function":
        call_id = f"function:{_named(message, 'name', path)}"
    else:
        call_id = _named(message, "tool_call_id", path)
    call = calls.answer(call_id, f"{path}.tool_call_id")
    return _result(call, call_id, read_content(message.get("content"), f"{path}.content"))


def _item(item: Mapping[str, Any], kind: str, path: str, calls: _Calls) -> Iterator[dict[str, Any]]:
    if kind in _CALLS:
        call_id, name = _named(item, "call_id", path), _named(item, "name", path)
        args = _arguments(item.get("arguments", item.get("input")))
        calls.make(call_id, _Call(name, args), f"{path}.call_id")
        told = [_told(call_id, name, args)]
        yield {"role": "system", "content": "", "metadata": {"event": "tool_calls", "tool_calls": told}}
    elif kind in _RESULTS:
        call_id = _named(item, "call_id", path)
        computer = _Call(kind.removesuffix("_call_output"), None)
        is_known = call_id in calls.open or kind in ("function_call_output", "custom_tool_call_output")
        call = calls.answer(call_id, f"{path}.call_id") if is_known else computer
        yield _result(call, call_id, read_content(item.get("output"), f"{path}.output"))
    elif kind in _WITH_OUTPUT:
        yield _own_call(item, kind)
    elif kind in _SILENT:
        yield {"role": "system", "content": "", "metadata": {"event": "message_item", "type": kind}}
    else:
        raise InvalidInput(f"a message of the type {kind!r:.60}", path=f"{path}.type", hint=_HINT)


def _own_call(item: Mapping[str, Any], kind: str) -> dict[str, Any]:
    name = item.get("name")
    args = _arguments(item.get("arguments", item.get("action", item.get("queries", item.get("code")))))
    call = _Call(name if isinstance(name, str) and name else kind.removesuffix("_call"), args)
    told = item.get("output", item.get("results", item.get("outputs", item.get("error"))))
    content = Content(told) if isinstance(told, str) else Content(canonical_text(_plain(told)) if told else "")
    call_id = item.get("id")
    failed = item.get("error") is not None or item.get("status") in ("failed", "incomplete")
    return _result(call, call_id if isinstance(call_id, str) and call_id else kind, content, ok=not failed)


def _result(call: _Call, call_id: str, content: Content, *, ok: bool = True) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": call.name, "ok": ok, "call_id": call_id}
    if call.args:
        tool["args"] = call.args
    event: dict[str, Any] = {"role": "tool", "content": content.text, "tool": tool}
    return event | ({"metadata": {"parts": content.parts}} if content.parts else {})


def _named(held: Mapping[str, Any], key: str, path: str) -> str:
    name = held.get(key)
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{key} should be text", path=f"{path}.{key}", hint=_HINT)
    return name


def _arguments(given: Any) -> dict[str, Any] | None:
    """Return a call's arguments as an object; anything else, or invalid JSON, under one name."""
    if isinstance(given, str):
        if not given.strip():
            return None
        try:
            given = parse_json(given)
        except MunimentError:
            return {"arguments": given}
    if isinstance(given, Mapping):
        return dict(_plain(given)) or None
    return None if given is None else {"arguments": _plain(given)}


def _plain(value: Any) -> Any:
    """Convert to plain JSON data, including objects of a client library."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


# -- parts of a message ---------------------------------------------------------------------------------------


_TEXTS = ("text", "input_text", "output_text", "summary_text", "refusal")
_PART_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_UNSAID = ("thinking", "redacted_thinking", "reasoning", "cache_point", "compaction")
_FOUND = ("title", "url", "text")
_INLINE_MAX = 2_048
"""Longer URLs hold the picture itself."""


class ResultPart(NamedTuple):
    """A tool's result among the parts of a message."""

    at: int
    call_id: str
    content: Content
    ok: bool


@dataclass(slots=True)
class Content:
    """The text of a message, its references, and the calls and results among its parts."""

    text: str = ""
    parts: list[dict[str, Any]] = field(default_factory=list)
    """Parts other than text, as references."""
    calls: list[tuple[str, str, dict[str, Any] | None]] = field(default_factory=list)
    results: list[ResultPart] = field(default_factory=list)


def read_content(given: Any, path: str) -> Content:
    """Read text, null, or a list of parts."""
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
    """Return the text of a part, if any; everything else is added to the content."""
    kind = part.get("type")
    if kind in _TEXTS:
        text = part.get("refusal") if kind == "refusal" else part.get("text")
        if not isinstance(text, str):
            raise InvalidInput(f"a part of the type {kind!r} has no text", path=f"{path}.text")
        return [text]
    if kind in _PART_CALLS:
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
    """Return the results of a provider's own search, line by line, or why it failed."""
    if isinstance(held, Mapping):
        return str(held.get("error_code") or held.get("stdout") or held.get("type") or "")
    listed = [each for each in held if isinstance(each, Mapping)] if isinstance(held, list | tuple) else []
    lines = (" ".join(each[key] for key in _FOUND if isinstance(each.get(key), str)) for each in listed)
    return "\n".join(line for line in lines if line)


def _reference(part: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return a picture, sound or file by its address or id; inline data by its hash and size."""
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
    """Return the text form of a reference within its message."""
    noun = "image" if "image" in reference["type"] else "audio" if "audio" in reference["type"] else "file"
    named = next((reference[key] for key in ("filename", "title", "url", "file_id") if key in reference), None)
    if named is None and "sha256" in reference:
        named = " ".join(filter(None, (reference.get("media_type"), f"sha256:{reference['sha256'][:12]}")))
    return f"[{noun} {named}]" if named else f"[{noun}]"
