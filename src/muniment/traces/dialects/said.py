"""One message in one form: who said what, which tools were called, what they answered, what else stood in it.

Every convention has its own parts: `{"type": "text", "content": …}` (GenAI), `{"type": "text", "text": …}` (OpenAI,
Anthropic, Vercel), `{"toolUse": {…}}` (Bedrock). They are told apart by what they hold. What is no part of what was
said (thoughts, cache marks, summaries of what was let go) is counted and passed over; what was left out by the emitter
is not made up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_text, parse_json
from muniment.errors import MunimentError
from muniment.store.ledger.message_parts import read_content

__all__ = ["Called", "Returned", "Said", "json_of", "messages_of", "said_of", "text_of"]

_TEXTS = ("text", "input_text", "output_text", "summary_text", "refusal", "text-delta")
_CALLS = ("tool_call", "tool_use", "tool-call", "function_call", "server_tool_call", "custom_tool_call", "toolUse")
_RETURNS = ("tool_call_response", "tool_result", "tool-result", "function_call_output", "server_tool_call_response",
            "toolResult")  # fmt: skip
_UNSAID = ("reasoning", "thinking", "redacted_thinking", "compaction", "cache_point", "cachePoint", "step-start")
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}
_SPOKEN = ("user", "assistant", "system", "tool")
_NAME_MAX = 200


class Called(NamedTuple):
    """A call that a model made."""

    id: str
    name: str
    args: dict[str, Any] | None


class Returned(NamedTuple):
    """What a tool answered."""

    id: str
    name: str
    text: str
    ok: bool


@dataclass(slots=True)
class Said:
    """One message."""

    role: str
    text: str = ""
    calls: list[Called] = field(default_factory=list)
    results: list[Returned] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    """Pictures and files, as references."""
    speaker: str = ""
    passed: Counter[str] = field(default_factory=Counter)
    """What was passed over: thoughts, by kind."""

    @property
    def is_empty(self) -> bool:
        """Is nothing of it known but that it was there?"""
        return not (self.text.strip() or self.calls or self.results or self.parts)


def json_of(value: Any, opens: tuple[str, ...] = ("{", "[")) -> Any:
    """What a text stands for that is JSON, an object or a list; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in opens:
        return value
    try:
        return parse_json(value)
    except MunimentError:
        return value


def text_of(value: Any) -> str:
    """What a tool was given or answered, as text: the words of its text parts, else itself as JSON. Some emitters write
    a text that a tool answered as JSON too, with quotes around it.
    """
    value = json_of(value, ("{", "[", '"'))
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and value and all(isinstance(each, Mapping) and _part_text(each) for each in value):
        return "\n".join(_part_text(each) for each in value)
    if isinstance(value, Mapping):
        wrapped = [key for key in ("result", "output", "value", "content", "text") if isinstance(value.get(key), str)]
        if wrapped and len(value.keys() - {"type", "status"}) == 1:
            return str(value[wrapped[0]])
    try:
        return canonical_text(_jsonable(value))
    except MunimentError:
        return str(value)


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _part_text(part: Mapping[str, Any]) -> str:
    text = part.get("text", part.get("content"))
    is_text = part.get("type", "text") in _TEXTS
    return text if is_text and isinstance(text, str) else ""


def messages_of(value: Any) -> list[Said]:
    """The messages of a list, or of one message; as text too."""
    value = json_of(value)
    if isinstance(value, Mapping):
        held = value.get("messages", value.get("input"))
        value = held if isinstance(held, list) else [value]
    if not isinstance(value, list):
        return []
    return [said_of(each) for each in value if isinstance(each, Mapping)]


def said_of(message: Mapping[str, Any], role: str = "") -> Said:
    """A message of whichever convention."""
    given = message.get("role") or role or ("tool" if _returns(message) else "assistant" if _calls(message) else "")
    named = str(given).lower()
    said = Said(_ROLES.get(named, named if named in _SPOKEN else "user"))
    speaker = message.get("name")
    if isinstance(speaker, str) and speaker.strip() and said.role != "tool":
        said.speaker = speaker.strip()[:_NAME_MAX]
    texts: list[str] = []
    if _returns(message) or _calls(message):  # an item of Responses is a part itself
        _part(message, said, texts)
    else:
        _content(message, said, texts)
    said.text = "\n".join(text for text in texts if text)
    return said


def _content(message: Mapping[str, Any], said: Said, texts: list[str]) -> None:
    content = message.get("parts", message.get("content", message.get("message")))
    content = _parts_in(content)
    for call in _listed(message.get("tool_calls")):
        _call(call.get("tool_call", call) if isinstance(call.get("tool_call", call), Mapping) else call, said)
    call_id = message.get("tool_call_id", message.get("id") if said.role == "tool" else None)
    if said.role == "tool" and not _has_returns(content):
        if content is not None:
            name = message.get("name")
            ok = message.get("is_error") is not True and message.get("status") != "error"
            said.results.append(Returned(_id(call_id), _id(name), text_of(content), ok))
        return
    if isinstance(content, str):
        texts.append(content)
    elif isinstance(content, Mapping):
        _part(content, said, texts)
    elif isinstance(content, Iterable):
        for part in content:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, Mapping):
                _part(part, said, texts)


def _parts_in(content: Any) -> Any:
    """Parts that stand as JSON in a text, as events can hold texts alone; a text that only looks so stays one."""
    held = json_of(content)
    is_parts = isinstance(held, list) and held and all(isinstance(each, Mapping) and _is_part(each) for each in held)
    return held if is_parts else content


def _is_part(part: Mapping[str, Any]) -> bool:
    if "toolUse" in part or "toolResult" in part or "reasoningContent" in part:
        return len(part) == 1
    if part.get("type") in _TEXTS or ("type" not in part and part.keys() == {"text"}):
        return isinstance(part.get("text", part.get("content")), str)
    return part.get("type") in _CALLS + _RETURNS + _UNSAID


def _part(part: Mapping[str, Any], said: Said, texts: list[str]) -> None:
    kind = (
        part.get("type") or part.get("kind") or next((key for key in ("toolUse", "toolResult") if key in part), "text")
    )
    if kind in _CALLS:
        _call(part.get("toolUse", part), said)
    elif kind in _RETURNS:
        _return(part.get("toolResult", part), said)
    elif kind in _UNSAID or "reasoningContent" in part or part.get("thought") is True:
        said.passed[str(kind) if kind in _UNSAID else "reasoning"] += 1
    elif kind in _TEXTS:
        text = part.get("content", part.get("text", part.get("refusal")))
        if isinstance(text, str):
            texts.append(text)
    elif isinstance(part.get("text"), str) and "type" not in part:
        texts.append(part["text"])
    else:
        texts.append(_reference(part, str(kind), said))


def _reference(part: Mapping[str, Any], kind: str, said: Said) -> str:
    """A picture or a file as the ledger refers to one, and how it stands in the text."""
    modality = part.get("modality")
    noun = modality if isinstance(modality, str) and modality else kind
    plain: dict[str, Any] = {"type": noun}
    renamed = {"uri": "url", "mime_type": "media_type", "mediaType": "media_type", "content": "data"}
    for key, value in part.items():
        if isinstance(value, str | Mapping) and key not in ("type", "modality"):
            plain[renamed.get(key, key)] = value
    content = read_content([plain], "$")
    said.parts += content.parts
    return content.text


def _call(held: Any, said: Said) -> None:
    if not isinstance(held, Mapping):
        return
    function = held.get("function")
    inner = function if isinstance(function, Mapping) else held
    name = _id(inner.get("name") or inner.get("toolName"))
    id_ = _id(held.get("id") or held.get("toolUseId") or held.get("toolCallId"))
    id_ = _id(held.get("call_id")) or id_ if held.get("type") in ("function_call", "custom_tool_call") else id_
    given = next((inner[key] for key in ("arguments", "args", "input", "server_tool_call") if key in inner), None)
    if name:
        said.calls.append(Called(id_ or f"call:{name}", name, _arguments(given)))


def _arguments(given: Any) -> dict[str, Any] | None:
    held = json_of(given)
    if isinstance(held, Mapping):
        return _jsonable(held) or None
    return None if held is None or held == "" else {"arguments": _jsonable(held)}


def _return(held: Any, said: Said) -> None:
    if not isinstance(held, Mapping):
        return
    keys: tuple[str, ...] = ("id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "call_id")
    if held.get("type") == "function_call_output":
        keys = ("call_id",)
    id_ = next((_id(held[key]) for key in keys if held.get(key)), "")
    name = _id(held.get("name") or held.get("toolName"))
    names = ("response", "result", "output", "content", "server_tool_call_response")
    found = next((key for key in names if key in held), None)
    ok = held.get("is_error") is not True and held.get("status") != "error" and held.get("outcome") != "failed"
    if found is not None and held[found] is not None:
        answered = held[found]
        if isinstance(answered, Mapping) and str(answered.get("type", "")).startswith("error"):
            ok = False
        said.results.append(Returned(id_, name, text_of(answered), ok))


def _calls(message: Mapping[str, Any]) -> bool:
    return message.get("type") in _CALLS and "role" not in message


def _returns(message: Mapping[str, Any]) -> bool:
    return message.get("type") in _RETURNS and "role" not in message


def _has_returns(content: Any) -> bool:
    """Do results stand among the parts themselves?"""
    if not isinstance(content, list):
        return False
    return any(isinstance(part, Mapping) and (part.get("type") in _RETURNS or "toolResult" in part) for part in content)


def _listed(value: Any) -> list[Mapping[str, Any]]:
    value = json_of(value)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _id(value: Any) -> str:
    """A name or id that fits the ledger."""
    text = value if isinstance(value, str) else ""
    return "".join(each for each in text if each.isprintable()).strip()[:_NAME_MAX]
