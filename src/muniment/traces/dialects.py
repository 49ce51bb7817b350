"""Extract the messages of a span, written under the GenAI conventions or older and other ones. Pure.

Every convention has its own message parts: `{"type": "text", "content": …}` (GenAI), `{"type": "text", "text": …}`
(OpenAI, Anthropic, Vercel), `{"toolUse": {…}}` (Bedrock). They are recognised by their content, never by the emitter's
name. Reasoning, cache marks and summaries are counted and skipped; content that an emitter left out is never made up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from muniment.core.canonical import canonical_text, parse_json
from muniment.errors import MunimentError
from muniment.store.messages import read_content
from muniment.traces.otlp import Span

__all__ = [
    "EVENT_NAMES",
    "Called",
    "Conversation",
    "Kind",
    "Returned",
    "Said",
    "Told",
    "ToolRun",
    "about_of",
    "json_of",
    "kind_of",
    "messages_of",
    "read_conversation",
    "read_details",
    "read_events",
    "read_tool",
    "said_of",
    "text_of",
    "unflattened",
]


# -- messages --------------------------------------------------------------------------------------------

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
    """A tool's result."""

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
    """Skipped parts, such as reasoning, counted by kind."""

    @property
    def is_empty(self) -> bool:
        """True if nothing is known about the message except that it existed."""
        return not (self.text.strip() or self.calls or self.results or self.parts)


def json_of(value: Any, opens: tuple[str, ...] = ("{", "[")) -> Any:
    """Parse a text as a JSON object or list; return anything else unchanged."""
    if not isinstance(value, str) or value.lstrip()[:1] not in opens:
        return value
    try:
        return parse_json(value)
    except MunimentError:
        return value


def text_of(value: Any) -> str:
    """Text of a tool's arguments or result: its text parts, or else its JSON. Some emitters JSON-encode a text result
    too, with quotes around it.
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
    """Read messages from a list, a single message or a text."""
    value = json_of(value)
    if isinstance(value, Mapping):
        held = value.get("messages", value.get("input"))
        value = held if isinstance(held, list) else [value]
    if not isinstance(value, list):
        return []
    return [said_of(each) for each in value if isinstance(each, Mapping)]


def said_of(message: Mapping[str, Any], role: str = "") -> Said:
    """Read one message of any convention."""
    given = message.get("role") or role or ("tool" if _returns(message) else "assistant" if _calls(message) else "")
    named = str(given).lower()
    said = Said(_ROLES.get(named, named if named in _SPOKEN else "user"))
    speaker = message.get("name")
    if isinstance(speaker, str) and speaker.strip() and said.role != "tool":
        said.speaker = speaker.strip()[:_NAME_MAX]
    texts: list[str] = []
    if _returns(message) or _calls(message):  # in Responses, an item is itself a part
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
    """Decode parts that are JSON inside a text, since events can only hold text; leave other texts alone."""
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
    """Note a picture or file as a ledger reference, and return its placeholder in the text."""
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
    """True if tool results are among the parts themselves."""
    if not isinstance(content, list):
        return False
    return any(isinstance(part, Mapping) and (part.get("type") in _RETURNS or "toolResult" in part) for part in content)


def _listed(value: Any) -> list[Mapping[str, Any]]:
    value = json_of(value)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _id(value: Any) -> str:
    """Return a name or id that the ledger accepts."""
    text = value if isinstance(value, str) else ""
    return "".join(each for each in text if each.isprintable()).strip()[:_NAME_MAX]


# -- one attribute for each part of a message ------------------------------------------------------------

# `gen_ai.prompt.0.content`, `llm.input_messages.0.message.role`: OpenLLMetry (before the GenAI conventions) and
# OpenInference. A name is a path: numbers are list indices, words are keys.

_PLACES_MAX = 10_000
_DEPTH_MAX = 16


def unflattened(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """Rebuild the list below a prefix, in index order, skipping anything that is not a list."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if not name.startswith(f"{prefix}."):
            continue
        *way, last = name[len(prefix) + 1 :].split(".")[:_DEPTH_MAX]
        node = root
        for key in way:
            inner = node.setdefault(key, {})
            if not isinstance(inner, dict):
                break
            node = inner
        else:
            node.setdefault(last, value)
    return [_as_lists(each) for each in _places(root)]


def _places(node: Mapping[str, Any]) -> Iterable[Any]:
    numbers = sorted(int(key) for key in node if key.isascii() and key.isdigit() and len(key) < 6)
    return [node[key] for key in map(str, numbers[:_PLACES_MAX]) if key in node]


def _as_lists(node: Any) -> Any:
    """Turn objects whose keys are all numbers into lists."""
    if not isinstance(node, dict):
        return node
    if node and all(key.isascii() and key.isdigit() for key in node):
        return [_as_lists(each) for each in _places(node)]
    return {key: _as_lists(each) for key, each in node.items()}


# -- messages as events ----------------------------------------------------------------------------------

# Up to version 1.36 of the conventions each message was its own event (`gen_ai.user.message`, `gen_ai.choice`), and
# many emitters still write those. Since then one event may hold the whole conversation.

DETAILS = "gen_ai.client.inference.operation.details"
_CHOICES = ("gen_ai.choice", "gen_ai.assistant.choice")
_SPEAKERS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_WHOLE = {"gen_ai.content.prompt": "gen_ai.prompt", "gen_ai.content.completion": "gen_ai.completion"}
EVENT_NAMES = frozenset({DETAILS, *_CHOICES, *_SPEAKERS, *_WHOLE})


class Told(NamedTuple):
    """An event: its name, its attributes, and the body of a log record."""

    name: str
    held: Mapping[str, Any]


@dataclass(slots=True)
class Conversation:
    """Messages sent to a model, and its answer."""

    system: list[str] = field(default_factory=list)
    inputs: list[Said] = field(default_factory=list)
    outputs: list[Said] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.system or self.inputs or self.outputs)

    def add(self, messages: Iterable[Said]) -> None:
        """Add messages that were sent, keeping system prompts apart."""
        for said in messages:
            if said.role == "system":
                self.system += [said.text] if said.text.strip() else []
            else:
                self.inputs.append(said)


def read_details(held: Mapping[str, Any]) -> Conversation:
    """Read the current GenAI attributes of a span or event."""
    found = Conversation()
    found.add([_prompt(held.get("gen_ai.system_instructions"))])
    found.add(messages_of(held.get("gen_ai.input.messages")))
    found.outputs += messages_of(held.get("gen_ai.output.messages"))
    return found


def _prompt(held: Any) -> Said:
    held = json_of(held)
    if isinstance(held, str):
        return Said("system", held)
    return said_of({"role": "system", "parts": held}) if isinstance(held, list) else Said("system")


def read_events(events: Iterable[Told]) -> Conversation:
    """Messages in the order of their events."""
    found = Conversation()
    for name, held in events:
        if name == DETAILS:
            part = read_details(held)
            found.system += part.system
            found.inputs += part.inputs
            found.outputs += part.outputs
        elif name in _CHOICES:
            found.outputs.append(_choice(_held(held)))
        elif name in _SPEAKERS:
            found.add([said_of({**_held(held), "role": _SPEAKERS[name]})])
        elif name in _WHOLE:
            told = messages_of(held.get(_WHOLE[name]))
            if name == "gen_ai.content.prompt":
                found.add(told)
            else:
                found.outputs += told
    return found


def _held(held: Mapping[str, Any]) -> Mapping[str, Any]:
    """Content of an event; some emitters write all of it as JSON into one attribute."""
    whole = json_of(held.get("gen_ai.event.content"))
    return {**held, **whole} if isinstance(whole, Mapping) else held


def _choice(held: Mapping[str, Any]) -> Said:
    message = json_of(held.get("message"))
    if isinstance(message, Mapping):
        return said_of({"role": "assistant", **message})
    if message is None:
        return said_of({**held, "role": "assistant"})
    return said_of({"role": "assistant", "content": message, "tool_calls": held.get("tool_calls")})


# -- spans -----------------------------------------------------------------------------------------------

# Conventions are tried in order, GenAI first; the first one that finds anything in a span wins.

Kind = Literal["model", "agent", "tool", "other"]
"""A model call, an agent's run, a tool call, or anything else."""

_OPERATIONS: Mapping[str, Kind] = {
    "chat": "model", "generate_content": "model", "text_completion": "model", "completion": "model",
    "invoke_agent": "agent", "invoke_workflow": "agent", "execute_tool": "tool",
}  # fmt: skip
_KINDS: Mapping[str, Mapping[str, Kind]] = {
    "openinference.span.kind": {"LLM": "model", "TOOL": "tool", "AGENT": "agent"},
    "traceloop.span.kind": {"tool": "tool"},
    "langfuse.observation.type": {"generation": "model", "tool": "tool", "agent": "agent"},
    "ai.operationId": {
        **dict.fromkeys(("ai.generateText.doGenerate", "ai.streamText.doStream"), "model"),
        **dict.fromkeys(("ai.generateObject.doGenerate", "ai.streamObject.doStream"), "model"),
        **dict.fromkeys(("ai.generateText", "ai.streamText"), "agent"),
        "ai.toolCall": "tool",
    },
}
_MODEL_SIGNS = ("gen_ai.prompt.0.role", "gen_ai.prompt.0.content", "llm.request.type", "request_data", "events")
_AGENT_SIGNS = ("pydantic_ai.all_messages", "all_messages_events")


class ToolRun(NamedTuple):
    """A tool call; `text` is None if its result was not captured."""

    name: str
    id: str
    args: dict[str, Any] | None
    text: str | None
    ok: bool


def kind_of(span: Span) -> Kind:
    """Classify a span by its own attributes."""
    held = span.attributes
    operation = held.get("gen_ai.operation.name")
    if isinstance(operation, str) and operation:
        return _OPERATIONS.get(operation, "other")
    for name, kinds in _KINDS.items():
        said = held.get(name)
        if isinstance(said, str):
            return kinds.get(said, "other")
    if any(name in held for name in _AGENT_SIGNS):
        return "agent"
    if any(name in held for name in _MODEL_SIGNS) or any(each.name.startswith("gen_ai.") for each in span.events):
        return "model"
    if isinstance(held.get("gen_ai.tool.name"), str):
        return "tool"
    return "other"


# -- conversations --------------------------------------------------------------------------------------------


def read_conversation(span: Span) -> Conversation:
    """Read the messages sent to a model or agent and the answer; empty if none were captured."""
    told = [Told(event.name, event.attributes) for event in span.events]
    readers: tuple[Callable[[Mapping[str, Any]], Conversation], ...] = (
        read_details,
        lambda _: read_events(told),
        *(_numbered, _vercel, _pydantic_ai, _logfire, _langfuse, _prompted, _values),
    )
    for read in readers:
        found = read(span.attributes)
        if found.inputs or found.outputs:
            return found
    return Conversation()


def _numbered(held: Mapping[str, Any]) -> Conversation:
    """OpenLLMetry and OpenInference: an attribute for each part of each message."""
    found = Conversation()
    found.add(map(_of_flat, unflattened(held, "gen_ai.prompt")))
    found.outputs += map(_of_flat, unflattened(held, "gen_ai.completion"))
    if not (found.inputs or found.outputs):
        found.add(map(_of_inference, unflattened(held, "llm.input_messages")))
        found.outputs += map(_of_inference, unflattened(held, "llm.output_messages"))
    return found


def _of_flat(message: Any) -> Said:
    return said_of(message) if isinstance(message, Mapping) else Said("user", text_of(message))


def _of_inference(held: Any) -> Said:
    message = held.get("message", held) if isinstance(held, Mapping) else {}
    if not isinstance(message, Mapping):
        return Said("user")
    contents = message.get("contents")
    if isinstance(contents, list):
        parts = [_inner(part, "message_content") for part in contents]
        message = {**message, "content": [*([message["content"]] if message.get("content") else []), *parts]}
    return said_of(message)


def _inner(held: Any, name: str) -> Any:
    return held.get(name, held) if isinstance(held, Mapping) else held


def _vercel(held: Mapping[str, Any]) -> Conversation:
    found = Conversation()
    prompt = json_of(held.get("ai.prompt"))
    if "ai.prompt.messages" in held:
        found.add(messages_of(held["ai.prompt.messages"]))
    elif isinstance(prompt, Mapping):
        for name, role in (("system", "system"), ("prompt", "user")):
            if isinstance(prompt.get(name), str):
                found.add([Said(role, prompt[name])])
        found.add(messages_of(prompt.get("messages")))
    calls = json_of(held.get("ai.response.toolCalls"))
    text = held.get("ai.response.text", held.get("ai.response.object"))
    if isinstance(text, str) or isinstance(calls, list):
        said = said_of({"role": "assistant", "tool_calls": calls if isinstance(calls, list) else None})
        said.text = text if isinstance(text, str) else ""
        found.outputs.append(said)
    return found


def _pydantic_ai(held: Mapping[str, Any]) -> Conversation:
    """Read the full message list of an agent's run, or the list of events written before the conventions existed."""
    found = Conversation()
    found.add(messages_of(held.get("pydantic_ai.all_messages")))
    if found.inputs:
        return found
    events = json_of(held.get("all_messages_events", held.get("events")))
    if not isinstance(events, list):
        return found
    told = [
        Told(str(each.get("event.name") or _event_name(each)), each) for each in events if isinstance(each, Mapping)
    ]
    return read_events(told)


def _event_name(held: Mapping[str, Any]) -> str:
    return f"gen_ai.{held.get('role') or 'user'}.message"


def _logfire(held: Mapping[str, Any]) -> Conversation:
    found = Conversation()
    request, response = json_of(held.get("request_data")), json_of(held.get("response_data"))
    if isinstance(request, Mapping):
        if isinstance(request.get("system"), str):
            found.add([Said("system", request["system"])])
        found.add(messages_of(request))
    if isinstance(response, Mapping) and isinstance(response.get("message"), Mapping):
        found.outputs.append(said_of({"role": "assistant", **response["message"]}))
    return found


def _langfuse(held: Mapping[str, Any]) -> Conversation:
    return _of_values(held.get("langfuse.observation.input"), held.get("langfuse.observation.output"))


def _prompted(held: Mapping[str, Any]) -> Conversation:
    """Read the attributes of the first conventions: a list as JSON."""
    return _of_values(held.get("gen_ai.prompt"), held.get("gen_ai.completion"))


def _values(held: Mapping[str, Any]) -> Conversation:
    """Read OpenInference's generic input and output: messages, or a text."""
    if held.get("openinference.span.kind") == "AGENT" or "llm.model_name" in held:
        return _of_values(held.get("input.value"), held.get("output.value"))
    return Conversation()


def _of_values(sent: Any, answered: Any) -> Conversation:
    found = Conversation()
    found.add(_spoken(sent, "user"))
    found.outputs += _spoken(answered, "assistant")
    return found


def _spoken(value: Any, role: str) -> list[Said]:
    """Read messages, or a text as one message; ignore other objects, which are not part of a conversation."""
    held = json_of(value)
    if isinstance(held, str):
        return [Said(role, held)] if held.strip() else []
    if isinstance(held, Mapping):
        choices = held.get("choices")
        if isinstance(choices, list):
            return [said_of({"role": role, **each["message"]}) for each in choices if _is_choice(each)]
        if not ({"messages", "role"} & held.keys()):
            return []
    elif not isinstance(held, list) or not all(isinstance(each, Mapping) and "role" in each for each in held):
        return []
    return messages_of(held)


def _is_choice(held: Any) -> bool:
    return isinstance(held, Mapping) and isinstance(held.get("message"), Mapping)


# -- tools ----------------------------------------------------------------------------------------------------

_TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
_TOOL_IDS = ("gen_ai.tool.call.id", "tool.id", "ai.toolCall.id", "tool_call.id")
_TOOL_ARGS = ("gen_ai.tool.call.arguments", "tool_arguments", "tool.parameters", "ai.toolCall.args", "input.value",
              "traceloop.entity.input", "langfuse.observation.input")  # fmt: skip
_TOOL_RESULTS = ("gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "output.value",
                 "traceloop.entity.output", "langfuse.observation.output")  # fmt: skip


def read_tool(span: Span) -> ToolRun | None:
    """Read the tool call of a span; None if it names no tool."""
    held = span.attributes
    name = next((str(held[key]) for key in _TOOL_NAMES if isinstance(held.get(key), str)), "")
    if not name:
        return None
    id_ = next((held[key] for key in _TOOL_IDS if isinstance(held.get(key), str)), "")
    given = next((held[key] for key in _TOOL_ARGS if held.get(key) is not None), None)
    made = said_of({"role": "assistant", "tool_calls": [{"id": id_, "name": name, "arguments": given}]}).calls
    call = made[0] if made else Called("", "tool", None)
    text = next((text_of(held[key]) for key in _TOOL_RESULTS if held.get(key) is not None), None)
    if text is None:
        choices = [each.attributes.get("message") for each in span.events if each.name == "gen_ai.choice"]
        text = text_of(choices[-1]) if choices and choices[-1] is not None else None
    failed = span.is_error or held.get("gen_ai.tool.status") == "error"
    if failed:
        text = text or _failure(span)
    return ToolRun(call.name, call.id if id_ else "", call.args, text, not failed)


def _failure(span: Span) -> str:
    """Describe why a tool failed, as far as the span says."""
    thrown = [each.attributes for each in span.events if each.name == "exception"]
    said = [str(each.get("exception.message") or each.get("exception.type") or "") for each in thrown]
    return next((each for each in (*said, span.error, str(span.attributes.get("error.type") or "")) if each), "failed")


# -- what else is known -----------------------------------------------------------------------------------------

_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.model.id", "llm.request.model")
_PROVIDERS = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider")
_USAGE: Mapping[str, tuple[str, ...]] = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
                     "llm.usage.prompt_tokens", "ai.usage.promptTokens", "ai.usage.inputTokens"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
                      "llm.usage.completion_tokens", "ai.usage.completionTokens", "ai.usage.outputTokens"),
}  # fmt: skip


def about_of(held: Mapping[str, Any]) -> dict[str, Any]:
    """The model that answered, and its token usage."""
    found: dict[str, Any] = {}
    told: tuple[tuple[str, tuple[str, ...]], ...] = (("model", _MODELS), ("provider", _PROVIDERS))
    for key, names in told:
        value = next((held[name] for name in names if isinstance(held.get(name), str) and held[name]), None)
        if value is not None:
            found[key] = value[:200]
    for key, names in _USAGE.items():
        tokens = next((held[name] for name in names if _is_count(held.get(name))), None)
        if tokens is not None:
            found[key] = int(tokens)
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 53
