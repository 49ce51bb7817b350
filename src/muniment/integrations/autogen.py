"""AutoGen's `Memory` protocol over a muniment store.

    memory = MunimentMemory(mem, user_id="ana", session_id="chat-1")
    agent = AssistantAgent("helper", model_client=client, memory=[memory])
    await agent.run(task="Where should we eat?")
    await memory.record(agent.model_context)            # the last answer; earlier ones are recorded with the next turn

Before each turn the agent hands over its model's context: new messages are recorded, and a packet before the last
question replaces the previous one. The packet leaves out anything in the context itself.

Extra: `muniment[autogen]`, in a separate environment: it needs an older protobuf than others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.packages import missing
from muniment.integrations.session.memory import SessionMemory

try:
    from autogen_core import CancellationToken
    from autogen_core.memory import Memory as Protocol
    from autogen_core.memory import MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
    from autogen_core.model_context import ChatCompletionContext
    from autogen_core.models import AssistantMessage, FunctionExecutionResultMessage, LLMMessage, UserMessage
except ModuleNotFoundError as error:
    raise missing("autogen-core", "autogen", error) from error

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory

__all__ = ["MunimentMemory"]

_SOURCE = "muniment"


class MunimentMemory(Protocol):
    """The memory of one session of one user."""

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str = "autogen",
        tenant_id: str = DEFAULT_TENANT,
        max_tokens: int = 1024,
        on_error: Literal["open", "closed"] = "open",
    ) -> None:
        names = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id, "tenant_id": tenant_id}
        self.memory = SessionMemory(mem, **names, max_tokens=max_tokens, on_error=on_error)  # type: ignore[arg-type]
        self._build_id: str | None = None

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        own = await self.record(model_context)
        build = await self.memory.aio.prepare(_plain(own))
        self._build_id = None if build is None else build.id
        asked = [at for at, message in enumerate(own) if isinstance(message, UserMessage)]
        told = [] if build is None or not build.text or not asked else [UserMessage(content=build.text, source=_SOURCE)]
        at = asked[-1] if asked else len(own)
        await model_context.clear()
        for message in [*own[:at], *told, *own[at:]]:
            await model_context.add_message(message)
        found = [_content(each.content, build_id=self._build_id) for each in told]
        return UpdateContextResult(memories=MemoryQueryResult(results=found))

    async def record(self, model_context: ChatCompletionContext) -> list[LLMMessage]:
        """Record the new messages of a context, an answer with its packet; return the messages without that packet."""
        own = [each for each in await model_context.get_messages() if getattr(each, "source", None) != _SOURCE]
        await self.memory.aio.record(_plain(own), build=self._build_id)
        return own

    async def query(
        self, query: str | MemoryContent, cancellation_token: CancellationToken | None = None, **kwargs: Any
    ) -> MemoryQueryResult:
        """Search the user's sessions and current facts. Takes `k`."""
        _ = cancellation_token
        asked = query if isinstance(query, str) else str(query.content)
        hits = await self.memory.aio.search(asked, k=int(kwargs.get("k", 10)))
        return MemoryQueryResult(results=[_content(hit.text, id=hit.id, score=hit.score, when=hit.ts) for hit in hits])

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Record something as said by the user."""
        _ = cancellation_token
        said = {"role": "user", "content": str(content.content), "metadata": {"added": content.metadata or {}}}
        await asyncio.to_thread(self.memory.run.observe_many, [said])

    async def clear(self) -> None:
        """Erase everything of this user, in all sessions."""
        await self.memory.aio.forget_user()

    async def close(self) -> None:
        """Do nothing: the store is its owner's to close."""


def _content(text: Any, **said: Any) -> MemoryContent:
    return MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=said)


def _plain(messages: Iterable[LLMMessage]) -> list[dict[str, Any]]:
    """Messages in the form of an API."""
    found: list[dict[str, Any]] = []
    for message in messages:
        content: Any = message.content
        if isinstance(message, FunctionExecutionResultMessage):
            results = [(each.call_id, each.name, each.content) for each in message.content]
            found += [
                {"role": "tool", "tool_call_id": id_, "name": name, "content": text} for id_, name, text in results
            ]
        elif isinstance(message, AssistantMessage) and not isinstance(content, str):
            calls = [{"id": call.id, "function": {"name": call.name, "arguments": call.arguments}} for call in content]
            found.append({"role": "assistant", "content": None, "tool_calls": calls})
        else:
            role = {"UserMessage": "user", "AssistantMessage": "assistant"}.get(message.type, "system")
            parts = [content] if isinstance(content, str) else content
            said = [each if isinstance(each, str) else {"type": "image"} for each in parts]
            found.append({"role": role, "content": said})
    return found
