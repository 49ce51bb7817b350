"""An agent's output and the findings on it, with one reader for outputs in every supported shape.

Supported are text; an object of `Output`'s fields, whose `tool_calls` may have OpenAI's shape; one assistant message
(Chat Completions, or Anthropic's parts); a list of messages or Responses items, whose last answer and every call count;
and a whole server response, with its usage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field

from muniment.contracts.learning import MemoryHint
from muniment.core.record import Absent, Count, Items, JsonObject, NonEmpty, Number, Record
from muniment.errors import InvalidInput, InvalidRecord, Issue
from muniment.store.messages import read_messages

Severity = Literal["fatal", "minor"]
"""A fatal violation fails the verdict; a minor one makes it PARTIAL."""


class ToolCall(Record):
    """One tool call, in the order of the run. `ok` is absent if it is unknown whether it worked."""

    name: NonEmpty
    args: JsonObject = Field(default_factory=dict)
    ok: Absent[bool] = None


class Usage(Record):
    """Resources the run used. An unmeasured figure is absent, and a budget on it cannot be said to hold."""

    tokens_in: Absent[Count] = None
    tokens_out: Absent[Count] = None
    tool_calls: Absent[Count] = None
    latency_ms: Absent[Number] = None
    turns: Absent[Count] = None
    attempts: Absent[Count] = None
    cost_usd: Absent[Number] = None


class PolicyEvent(Record):
    """An action or attempted action of the run in the outside world."""

    kind: Literal["network", "file_read", "file_write"]
    target: str
    allowed: Absent[bool] = None


class Output(Record):
    """An answer and the recorded facts about how it was made.

    `marks` maps the number of each citation mark that exists to its evidence id, as a build assigns them. `tool_calls`,
    `policy_events` and `memory_hints` are None if unrecorded: then no constraint about them holds.
    """

    text: str
    id: Absent[str] = None
    prompt: Absent[str] = None
    tool_calls: Absent[Items[ToolCall]] = None
    usage: Absent[Usage] = None
    policy_events: Absent[Items[PolicyEvent]] = None
    marks: Absent[dict[str, str]] = None
    memory_hints: Absent[Items[MemoryHint]] = None


class Finding(NamedTuple):
    """One constraint on one output. `where` is a half-open character span of the text, if there is a single place."""

    key: str
    ok: bool
    message: str = ""
    where: tuple[int, int] | None = None
    severity: Severity = "fatal"
    reason: str = "constraint_violation"
    constraint: str = ""


OUTPUT_HINT = f"an output has {', '.join(Output.model_fields)}; or it is an assistant's message as a model gave it"
_USAGE = {
    "tokens_in": ("prompt_tokens", "input_tokens"),
    "tokens_out": ("completion_tokens", "output_tokens"),
}
_BESIDE = tuple(name for name in Output.model_fields if name not in ("text", "tool_calls", "usage"))
"""Fields that may accompany a message or response, as they may accompany a text."""


def read_output(given: Any, path: str = "$.output") -> Output:
    """Read an output of any supported shape; raise `InvalidInput` or `InvalidRecord` with the place of an error."""
    if isinstance(given, Output):
        return given
    if isinstance(given, str):
        plain: dict[str, Any] = {"text": given}
    elif isinstance(given, Mapping):
        plain = _plain(given, path)
    elif isinstance(given, Sequence) and not isinstance(given, bytes | bytearray):
        plain = _of_messages(given, path)
    else:
        raise InvalidInput(
            f"an output is text, an object or a list of messages, not {type(given).__name__}",
            path=path,
            hint=OUTPUT_HINT,
        )
    try:
        output = Output.from_wire(plain)
    except InvalidRecord as error:
        issues = [Issue(path + each.path[1:], each.message, each.code) for each in error.issues]
        raise InvalidRecord("not a valid output", issues, hint=OUTPUT_HINT) from None
    try:
        output.text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the output holds a lone surrogate", path=path, hint="decode it as UTF-8") from None
    return output


def _plain(given: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Convert an object to `Output`'s fields."""
    if "text" in given or not {"choices", "output", "role", "content", "messages"} & given.keys():
        plain = {str(name): value for name, value in given.items()}
        calls = plain.get("tool_calls")
        if isinstance(calls, list | tuple):
            plain["tool_calls"] = [_call(each, f"{path}.tool_calls[{at}]") for at, each in enumerate(calls)]
        if isinstance(plain.get("usage"), Mapping):
            plain["usage"] = _usage(plain["usage"], keep=True)
        return plain
    if "choices" in given:
        messages = [_of_choice(given["choices"], f"{path}.choices")]
    elif "output" in given or "messages" in given:
        messages = given.get("output", given.get("messages"))
    else:
        messages = [given]
    plain = _of_messages(messages, path)
    if isinstance(given.get("usage"), Mapping):
        plain["usage"] = _usage(given["usage"], keep=False)
    own = "role" not in given and "object" not in given  # a response's id names the response, not the output
    return plain | {name: given[name] for name in _BESIDE if name in given and (own or name != "id")}


def _of_choice(choices: Any, path: str) -> Any:
    first = choices[0] if isinstance(choices, list | tuple) and choices else None
    if not isinstance(first, Mapping) or not isinstance(first.get("message"), Mapping):
        raise InvalidInput("a response has a choice with a message", path=path, hint=OUTPUT_HINT)
    return {"role": "assistant", **first["message"]}


def _of_messages(messages: Any, path: str) -> dict[str, Any]:
    """Read the last answer of a list of messages, and every call, with its success if its result gives it."""
    if not isinstance(messages, list | tuple) or not all(isinstance(each, Mapping) for each in messages):
        raise InvalidInput("messages are a list of objects", path=path, hint=OUTPUT_HINT)
    try:
        events = [
            each.event
            for each in read_messages([{"role": "assistant", **each} if _is_bare(each) else each for each in messages])
        ]
    except InvalidInput as error:
        raise InvalidInput(error.message, path=f"{path}{(error.path or '$')[1:]}", hint=error.hint) from None
    answers = [event["content"] for event in events if event["role"] == "assistant"]
    asked = [event["content"] for event in events if event["role"] == "user"]
    worked = {event["tool"]["call_id"]: event["tool"] for event in events if "tool" in event}
    calls = [call for event in events for call in (event.get("metadata") or {}).get("tool_calls", ())]
    known = {call["id"] for call in calls}
    told = [*calls, *({"id": id_, **tool} for id_, tool in worked.items() if id_ not in known)]
    plain: dict[str, Any] = {
        "text": answers[-1] if answers else "",
        "tool_calls": [
            {"name": call["name"], "args": call.get("args", {})}
            | ({"ok": worked[call["id"]]["ok"]} if call["id"] in worked else {})
            for call in told
        ],
    }
    return plain | ({"prompt": asked[-1]} if asked else {})


def _is_bare(message: Mapping[str, Any]) -> bool:
    return "role" not in message and "content" in message and message.get("type") in (None, "message")


def _call(given: Any, path: str) -> Any:
    """Convert a call of OpenAI's shape to ours; leave anything else for the record to refuse."""
    if not isinstance(given, Mapping) or not isinstance(given.get("function"), Mapping):
        return given
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "call", **given}]}
    try:
        (event,) = read_messages([message])
    except InvalidInput as error:
        place = (error.path or "").removeprefix("$[0].tool_calls[0]")
        raise InvalidInput(error.message, path=f"{path}{place}", hint=error.hint) from None
    call = event.event["metadata"]["tool_calls"][0]
    return {"name": call["name"], "args": call.get("args", {})} | ({"ok": given["ok"]} if "ok" in given else {})


def _usage(given: Mapping[str, Any], *, keep: bool) -> dict[str, Any]:
    """Rename usage figures to ours; unknown ones are dropped from a server's response, kept from a caller."""
    foreign = {name for names in _USAGE.values() for name in names}
    if keep and not foreign & given.keys():
        return dict(given)
    return {ours: given[name] for ours, names in _USAGE.items() for name in names if name in given}
