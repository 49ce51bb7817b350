"""Haystack over a muniment store: components for pipelines, hooks for its Agent, and tools.

    store = MunimentStore("agent.db")                        # or a server's address, or an open store
    pipeline.add_component("recall", MunimentRecaller(store, user_id="ana"))
    pipeline.add_component("record", MunimentWriter(store, user_id="ana"))
    pipeline.connect("recall.messages", "llm.messages")
    pipeline.connect("recall", "record"), pipeline.connect("llm.replies", "record.replies")

    agent = Agent(chat_generator=llm, hooks={"before_run": [RecallHook(store)], "after_run": [RecordHook(store)]})
    agent.run(messages=messages, hook_context={"user_id": "ana", "session_id": "chat-1"})

The list of messages is the conversation as its caller holds it: whole, cut or edited. New messages are recorded once;
the packet is in the message of the last question, before its words, and leaves out anything in the list itself. It is
removed before anything is recorded or returned. All but `memory_tools` can be serialised in a pipeline file.

Extra: `muniment[haystack]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import muniment
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import InvalidInput
from muniment.integrations.packages import missing
from muniment.integrations.session.functions import memory_functions
from muniment.integrations.session.in_view import SentPackets
from muniment.integrations.session.memory import SessionMemory, store_of
from muniment.packets.render import set_apart

try:
    from haystack import component, default_from_dict, default_to_dict
    from haystack.components.agents.state import State, replace_values
    from haystack.dataclasses import ChatMessage, TextContent
    from haystack.tools.from_function import create_tool_from_function
    from haystack.tools.tool import Tool
    from haystack.utils import Secret
except ModuleNotFoundError as error:
    raise missing("haystack-ai", "haystack", error) from error

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory
    from muniment.packets.builds import Build

__all__ = ["MunimentRecaller", "MunimentStore", "MunimentWriter", "RecallHook", "RecordHook", "memory_tools"]

_BUILD = "muniment_build_id"


class MunimentStore:
    """A memory's location: a file, a PostgreSQL address, a server's address, or an open store."""

    def __init__(self, location: str | Memory | AsyncMemory, *, key: Secret | None = None) -> None:
        """Takes a server's API key in `key`. A location is opened on first use."""
        self.location = location
        self.key = key
        self._mem = None if isinstance(location, str) else store_of(location)

    @property
    def mem(self) -> Memory:
        if self._mem is None:
            place = str(self.location)
            is_server = place.startswith(("http://", "https://"))
            key = self.key.resolve_value() if self.key is not None else None
            self._mem = muniment.connect(place, key=key) if is_server else muniment.open(place)
        return self._mem

    def close(self) -> None:
        """Close a store that was opened here; one that was passed in stays open."""
        if self._mem is not None and isinstance(self.location, str):
            self._mem.close()
            self._mem = None

    def to_dict(self) -> dict[str, Any]:
        if not isinstance(self.location, str):
            raise InvalidInput(
                "a store that was handed in open cannot be written into a pipeline's file",
                path="$.store",
                hint="MunimentStore('agent.db'), or the address of a server",
            )
        return default_to_dict(self, location=self.location, key=self.key)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MunimentStore:
        made: MunimentStore = default_from_dict(cls, data)
        return made


class _Remembering:
    """Base of all components: whose memory it is, and its serialisation."""

    def __init__(
        self,
        store: MunimentStore,
        user_id: str | None = None,
        session_id: str | None = None,
        agent_id: str = "haystack",
        tenant_id: str = DEFAULT_TENANT,
        max_tokens: int = 1024,
        on_error: Literal["open", "closed"] = "open",
    ) -> None:
        """Takes the user and the session for all calls; each call may also name them."""
        self.store = store
        self._given: dict[str, Any] = {
            "user_id": user_id,
            "session_id": session_id,
            "agent_id": agent_id,
            "tenant_id": tenant_id,
            "max_tokens": max_tokens,
            "on_error": on_error,
        }
        self._sent = SentPackets()

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(self, store=self.store.to_dict(), **self._given)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        parameters = {**data["init_parameters"]}
        parameters["store"] = MunimentStore.from_dict(parameters["store"])
        return default_from_dict(cls, {**data, "init_parameters": parameters})

    def memory(self, user_id: str | None = None, session_id: str | None = None) -> SessionMemory:
        """The memory of a session, with `search`, `remember` and `forget`."""
        said = {"user_id": user_id or self._given["user_id"], "session_id": session_id or self._given["session_id"]}
        for name, value in said.items():
            if not value:
                raise InvalidInput(
                    f"memory needs to know whose it is: {name} is not said",
                    path=f"$.{name}",
                    hint="say it when the component is made, or with each run",
                )
        return SessionMemory(self.store.mem, **{**self._given, **said}, sent=self._sent)

    def close(self) -> None:
        self.store.close()


def _recall(memory: SessionMemory, messages: list[ChatMessage]) -> tuple[list[ChatMessage], str]:
    own = _own(messages)
    build = memory.prepare(_plain(own))
    return (own, "") if build is None else (_with_packet(own, build), build.id)


@component
class MunimentRecaller(_Remembering):
    """Before a generator or an Agent: records new messages, and puts a packet before the question."""

    @component.output_types(messages=list[ChatMessage], build_id=str)
    def run(
        self, messages: list[ChatMessage], user_id: str | None = None, session_id: str | None = None
    ) -> dict[str, Any]:
        told, build_id = _recall(self.memory(user_id, session_id), messages)
        return {"messages": told, "build_id": build_id}


@component
class MunimentWriter(_Remembering):
    """After a generator or an Agent: records its answer with the packet it got. `messages` are those that were sent;
    for an Agent, which returns the whole conversation, only its `messages` are needed.
    """

    @component.output_types(messages=list[ChatMessage], event_ids=list[str])
    def run(
        self,
        messages: list[ChatMessage],
        replies: list[ChatMessage] | None = None,
        build_id: str = "",
        user_id: str | None = None,
        session_id: str | None = None,
    ) -> dict[str, Any]:
        own = _own(messages)
        memory = self.memory(user_id, session_id)
        build = build_id or _build_of(messages)
        entries = memory.record(_plain(own), answer=_plain(replies or []), build=build)
        return {"messages": [*own, *(replies or [])], "event_ids": [entry.id for entry in entries]}


class RecallHook(_Remembering):
    """The recaller as an Agent's hook. The user and the session may be in its `hook_context`."""

    allowed_hook_points = ("before_run",)

    def run(self, state: State) -> None:
        memory = self.memory(*_named(state))
        state.set("messages", _recall(memory, state.data["messages"])[0], handler_override=replace_values)


class RecordHook(_Remembering):
    """Records an Agent's run, and removes the packet from its result."""

    allowed_hook_points = ("after_run",)

    def run(self, state: State) -> None:
        messages = state.data["messages"]
        own = _own(messages)
        state.set("messages", own, handler_override=replace_values)
        self.memory(*_named(state)).record(_plain(own), build=_build_of(messages))


def memory_tools(
    mem: Memory | AsyncMemory,
    *,
    user_id: str,
    session_id: str | None = None,
    agent_id: str = "haystack",
    tenant_id: str = DEFAULT_TENANT,
) -> list[Tool]:
    """Tools for a model: search the user's history, and propose a fact on a quote."""
    memory = SessionMemory(mem, user_id=user_id, session_id=session_id, agent_id=agent_id, tenant_id=tenant_id)
    return [create_tool_from_function(function) for function in memory_functions(memory)]


def _named(state: State) -> tuple[str | None, str | None]:
    said = state.data.get("hook_context") or {}
    return said.get("user_id"), said.get("session_id")


def _with_packet(messages: Sequence[ChatMessage], build: Build) -> list[ChatMessage]:
    """The messages with the packet in the last question's, whose metadata name the build."""
    found = list(messages)
    asked = [at for at, message in enumerate(found) if message.is_from("user") and message.texts]
    if asked:
        question = found[asked[-1]]
        told = [TextContent(set_apart(build.text))] if build.text else []
        meta = {**question.meta, _BUILD: build.id, "muniment_parts": len(told)}
        parts: list[Any] = [*told, *question._content]
        found[asked[-1]] = ChatMessage.from_user(content_parts=parts, meta=meta, name=question.name)
    return found


def _own(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages as the caller wrote them."""
    found = []
    for message in messages:
        if _BUILD in message.meta:
            meta = {key: value for key, value in message.meta.items() if key not in (_BUILD, "muniment_parts")}
            parts: list[Any] = list(message._content[message.meta["muniment_parts"] :])
            message = ChatMessage.from_user(content_parts=parts, meta=meta, name=message.name)
        found.append(message)
    return found


def _build_of(messages: Iterable[ChatMessage]) -> str | None:
    return next((message.meta[_BUILD] for message in messages if _BUILD in message.meta), None)


def _plain(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """Messages in the form of an API. A call without an id is named by its place, as is its result."""
    made = answered = 0
    found: list[dict[str, Any]] = []
    for message in messages:
        calls = []
        for call in message.tool_calls:
            calls.append(
                {"id": call.id or f"call:{made}", "function": {"name": call.tool_name, "arguments": call.arguments}}
            )
            made += call.id is None
        for result in message.tool_call_results:
            said = result.result if isinstance(result.result, str) else _parts(result.result)
            id_ = result.origin.id or f"call:{answered}"
            found.append({"role": "tool", "tool_call_id": id_, "name": result.origin.tool_name, "content": said})
            answered += result.origin.id is None
        content = _parts([*({"text": text} for text in message.texts), *message.images, *message.files])
        if content or calls:
            named = {"name": message.name} if message.name else {}
            found.append(
                {"role": message.role.value, "content": content, **named, **({"tool_calls": calls} if calls else {})}
            )
    return found


def _parts(parts: Iterable[Any]) -> list[dict[str, Any]]:
    """Texts unchanged; pictures and files as descriptions."""
    said = [(part, part.get("text") if isinstance(part, dict) else getattr(part, "text", None)) for part in parts]
    return [
        {"type": "text", "text": text} if text is not None else {"type": getattr(part, "mime_type", None) or "file"}
        for part, text in said
    ]
