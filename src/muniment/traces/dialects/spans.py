"""What a span tells: of which kind it is, and the conversation or the tool's result that it holds.

A span is asked by the conventions in turn, the GenAI conventions first; the first under which it holds anything is
taken. None is asked for by the name of its emitter: what a span holds says how it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from muniment.traces.dialects.events import Conversation, Told, read_details, read_events
from muniment.traces.dialects.flat import unflattened
from muniment.traces.dialects.said import Called, Said, json_of, messages_of, said_of, text_of
from muniment.traces.otlp.spans import Span

__all__ = ["Kind", "ToolRun", "about_of", "kind_of", "read_conversation", "read_tool"]

Kind = Literal["model", "agent", "tool", "other"]
"""A call of a model, an agent that called some, a tool; or none of these."""

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
    """A tool that was run; `text` is None where its result was not captured."""

    name: str
    id: str
    args: dict[str, Any] | None
    text: str | None
    ok: bool


def kind_of(span: Span) -> Kind:
    """By what a span says of itself."""
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
    """What was sent to a model or an agent, and what came back; empty where nothing was captured."""
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
    """The whole list of an agent's run; or events as a list, as versions before the conventions wrote them."""
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
    """The attributes of the first conventions: a list as JSON."""
    return _of_values(held.get("gen_ai.prompt"), held.get("gen_ai.completion"))


def _values(held: Mapping[str, Any]) -> Conversation:
    """OpenInference's input and output of anything: messages, or a text."""
    if held.get("openinference.span.kind") == "AGENT" or "llm.model_name" in held:
        return _of_values(held.get("input.value"), held.get("output.value"))
    return Conversation()


def _of_values(sent: Any, answered: Any) -> Conversation:
    found = Conversation()
    found.add(_spoken(sent, "user"))
    found.outputs += _spoken(answered, "assistant")
    return found


def _spoken(value: Any, role: str) -> list[Said]:
    """Messages, where it is some; a text as one; nothing of other objects, which nobody said."""
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
    """The tool that a span is about; None where it names none."""
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
    """What is known of why a tool failed."""
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
    """The model that answered, and what it used."""
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
