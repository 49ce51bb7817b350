"""Microsoft Agent Framework over a muniment store: a context provider that recalls and records, and a history provider.

    providers = [MunimentHistory(mem, user_id="ana"), MunimentContext(mem, user_id="ana")]
    agent = Agent(client=client, context_providers=providers)
    await agent.run("Where should we eat?", session=agent.create_session(session_id="chat-1"))

`MunimentContext` puts a packet before the user's question in each request, whatever history the agent sends: nothing is
repeated, and earlier messages stay unchanged, so that providers' caches hold. It records the conversation, unless
`MunimentHistory` does. The history gives messages back exactly as they were.

Extra: `muniment[agent-framework]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import InvalidInput
from muniment.integrations.packages import missing
from muniment.integrations.session.functions import ECHOES, memory_functions
from muniment.integrations.session.in_view import SentPackets
from muniment.integrations.session.memory import Failing, SessionMemory
from muniment.integrations.transcript import Line, Transcript
from muniment.packets.render import set_apart

try:
    from agent_framework import (
        ChatContext,
        ChatMiddleware,
        Content,
        ContextProvider,
        HistoryProvider,
        Message,
    )
except ModuleNotFoundError as error:
    raise missing("agent-framework-core", "agent-framework", error) from error

if TYPE_CHECKING:
    from agent_framework import AgentSession, SessionContext, SupportsAgentRun

    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory

__all__ = ["MunimentContext", "MunimentHistory"]

_BUILD = "muniment_build_id"
_NAME = "agent_framework"
_ROLES = {"user": "user", "assistant": "assistant", "tool": "tool"}


class MunimentHistory(HistoryProvider):
    """Stores the messages of each session in the ledger and returns them unchanged. Its `flags` are those
    of the base.
    """

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        agent_id: str = "agent-framework",
        tenant_id: str = DEFAULT_TENANT,
        erase: bool = False,
        source_id: str = "muniment_history",
        **flags: Any,
    ) -> None:
        super().__init__(source_id, **flags)
        self._mem = mem
        self._names: dict[str, Any] = {"user_id": user_id, "agent_id": agent_id, "tenant_id": tenant_id, "erase": erase}

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **_kwargs: Any
    ) -> list[Message]:
        _ = state
        return [_message(item) for item in await asyncio.to_thread(self.transcript(session_id).items)]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **_kwargs: Any,
    ) -> None:
        _ = state
        await asyncio.to_thread(self.transcript(session_id).append, _lines(messages))

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        _name_build(context)
        await super().after_run(agent=agent, session=session, context=context, state=state)

    async def clear(self, session_id: str) -> None:
        """Retract all messages; with `erase=True` they are forgotten."""
        await asyncio.to_thread(self.transcript(session_id).clear)

    def transcript(self, session_id: str | None) -> Transcript:
        return _transcript(self._mem, session_id, **self._names)


class MunimentContext(ContextProvider):
    """Puts a packet before each question, and records the conversation."""

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        agent_id: str = "agent-framework",
        tenant_id: str = DEFAULT_TENANT,
        max_tokens: int = 1024,
        on_error: Literal["open", "closed"] = "open",
        with_tools: bool = False,
        source_id: str = "muniment",
    ) -> None:
        """`with_tools` also gives the model `search_memory` and `propose_fact`."""
        super().__init__(source_id)
        self._mem = mem
        self._with_tools = with_tools
        self._is_open = on_error == "open"
        self._names: dict[str, Any] = {
            "user_id": user_id,
            "agent_id": agent_id,
            "tenant_id": tenant_id,
            "max_tokens": max_tokens,
            "on_error": on_error,
            "sent": SentPackets(),
        }
        self.memory("unsaid")  # report invalid names now

    def memory(self, session_id: str | None) -> SessionMemory:
        """The memory of a session, with `search`, `remember` and `forget`."""
        return _transcript(self._mem, session_id, **self._names).memory

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        _ = (agent, state)
        memory = self.memory(session.session_id)
        context.extend_middleware(self.source_id, _Recall(memory, context.metadata))
        if self._with_tools:
            context.extend_tools(self.source_id, memory_functions(memory))

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        _ = state
        _name_build(context)
        if any(isinstance(each, MunimentHistory) for each in getattr(agent, "context_providers", ())):
            return
        said = [*context.input_messages, *(context.response.messages if context.response else ())]
        with Failing("a turn was not recorded", is_open=self._is_open):
            transcript = _transcript(self._mem, session.session_id, **self._names)
            await asyncio.to_thread(transcript.append, _lines(said))


class _Recall(ChatMiddleware):
    """Inserts the packet into the request and notes its build. No history stores it."""

    def __init__(self, memory: SessionMemory, said: dict[str, Any]) -> None:
        self._memory = memory
        self._said = said

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        messages = list(context.messages)
        asked = [at for at, each in enumerate(messages) if each.role == "user" and _text(each)]
        build = await self._memory.aio.compose(_sent(messages)) if asked else None
        if build is not None:
            self._said[_BUILD] = build.id
        if build is not None and build.text:
            at = asked[-1]
            told = Content.from_text(set_apart(build.text))
            messages[at] = Message("user", [told, *messages[at].contents], author_name=messages[at].author_name)
            context.messages = messages
        await call_next()


def _name_build(context: SessionContext) -> None:
    """Note the build on the answer, whose marks are resolved with it when it is recorded."""
    answered = context.response.messages if context.response else ()
    if _BUILD in context.metadata and answered:
        answered[-1].additional_properties[_BUILD] = context.metadata[_BUILD]


def _transcript(mem: Memory | AsyncMemory, session_id: str | None, **names: Any) -> Transcript:
    if session_id is None:
        raise InvalidInput(
            "memory needs a session", path="$.session", hint="agent.run(…, session=agent.create_session())"
        )
    return Transcript(mem, _NAME, session_id=session_id, **names)


def _text(message: Message) -> str:
    return "\n".join(each.text for each in message.contents if each.type == "text" and each.text)


def _results(message: Message) -> list[Content]:
    return [each for each in message.contents if each.type == "function_result"]


def _result_text(results: Iterable[Content]) -> str:
    return "\n".join(each.result if isinstance(each.result, str) else str(each.result) for each in results)


def _sent(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The request's messages, text by text, as they are recorded."""
    told = [
        ("user" if each.role == "user" else "assistant", _result_text(_results(each)) or _text(each))
        for each in messages
    ]
    return [{"role": role, "content": text} for role, text in told if text]


def _lines(messages: Sequence[Message]) -> list[Line]:
    called = [each for message in messages for each in message.contents if each.type == "function_call"]
    names = {str(each.call_id): str(each.name) for each in called}
    return [_line(message, names) for message in messages]


def _line(message: Message, names: Mapping[str, str]) -> Line:
    item: dict[str, Any] = {"message": message.to_dict()}
    results = _results(message)
    if results:
        called = [names.get(str(each.call_id), "tool") for each in results]
        if all(name in ECHOES for name in called):  # memory's own answers are not news
            return Line(item)
        is_ok = not any(each.exception for each in results)
        return Line(item, _result_text(results), "tool", None, {"name": ", ".join(called)[:200], "ok": is_ok})
    text, role = _text(message), _ROLES.get(message.role)
    if role is None or not text:
        return Line(item, text)
    text_at = None
    if len(message.contents) == 1:  # the event already has the text
        item["message"]["contents"][0].pop("text")
        item["text"], text_at = text, "text"
    build = message.additional_properties.get(_BUILD) if role == "assistant" else None
    return Line(item, text, role, text_at, build=build)


def _message(item: Mapping[str, Any]) -> Message:
    held = item["message"]
    if "text" in item:
        held["contents"][0]["text"] = item["text"]
    return Message.from_dict(held)
