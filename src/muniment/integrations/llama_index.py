"""LlamaIndex over a muniment store: a `BaseMemory`, and a block for LlamaIndex's own `Memory`.

    memory = MunimentMemory.from_defaults(mem=mem, user_id="ana", session_id="chat-1")
    await agent.run("Where should we eat?", memory=memory)

    block = MunimentMemoryBlock(mem=mem, user_id="ana", session_id="chat-1")
    Memory.from_defaults(session_id="chat-1", memory_blocks=[block])

`get(input)` returns the latest messages of this session with a cited packet before the user's last message, covering
earlier sessions and the part of this one that is no longer sent. The messages before it stay unchanged, so that
providers' caches hold. `set` and `reset` retract messages and write new ones: the ledger keeps the old ones.

Extra: `muniment[llama-index]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.live_history import compose_beside, cut_in_steps
from muniment.integrations.packages import missing
from muniment.integrations.transcript import Line, Transcript
from muniment.packets.render import set_apart

try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.memory import BaseMemory, BaseMemoryBlock
except ModuleNotFoundError as error:
    raise missing("llama-index-core", "llama-index", error) from error

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run

__all__ = ["MunimentMemory", "MunimentMemoryBlock"]

_OWN = "llama_index"
_ROLES = {MessageRole.USER: "user", MessageRole.ASSISTANT: "assistant", MessageRole.TOOL: "tool"}


class MunimentMemory(BaseMemory):
    """A session's chat history in the ledger, preceded by memory of the user's other sessions."""

    max_tokens: int = Field(default=1024, description="What the composed packet may take.")
    messages_max: int = Field(default=40, description="How many of the latest messages are given.")
    _transcript: Transcript = PrivateAttr()

    def __init__(self, transcript: Transcript, **fields: Any) -> None:
        super().__init__(**fields)
        self._transcript = transcript

    @classmethod
    def class_name(cls) -> str:
        return "MunimentMemory"

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> MunimentMemory:
        """Takes `mem`, `user_id` and `session_id`; also `agent_id`, `tenant_id`, `erase` and the fields."""
        fields = {name: kwargs.pop(name) for name in ("max_tokens", "messages_max") if name in kwargs}
        return cls(_transcript(**kwargs), **fields)

    @property
    def run(self) -> Run:
        return self._transcript.run

    def get(self, input: str | None = None, **_kwargs: Any) -> list[ChatMessage]:
        messages = _from_turn(self.get_all(), self.messages_max)
        asked = input or next((each.content or "" for each in reversed(messages) if each.role == MessageRole.USER), "")
        texts = [asked, *(each.content or "" for each in messages)]
        packet = compose_beside(self.run, texts, query=asked, max_tokens=self.max_tokens)
        return _with_packet(messages, packet, asked) if packet else messages

    def get_all(self) -> list[ChatMessage]:
        return [ChatMessage.model_validate(item) for item in self._transcript.items()]

    def put(self, message: ChatMessage) -> None:
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        self._transcript.append(_line(_own(each)) for each in messages)

    def set(self, messages: list[ChatMessage]) -> None:
        """Replace the current messages; if the new list begins with them, only append the rest."""
        standing, messages = self.get_all(), [_own(each) for each in messages]
        if messages[: len(standing)] != standing:
            self.reset()
            standing = []
        self.put_messages(messages[len(standing) :])

    def reset(self) -> None:
        self._transcript.clear()


class MunimentMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory below LlamaIndex's own `Memory`: stores messages that leave the window, and composes for the
    question.
    """

    name: str = Field(default="muniment")
    max_tokens: int = Field(default=1024)
    _transcript: Transcript = PrivateAttr()

    def __init__(self, *, mem: Memory, user_id: str, session_id: str, **fields: Any) -> None:
        scope = {name: fields.pop(name) for name in ("agent_id", "tenant_id", "erase") if name in fields}
        super().__init__(**fields)
        self._transcript = _transcript(mem, user_id=user_id, session_id=session_id, **scope)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_kwargs: Any) -> str:
        live = messages or []
        asked = [each.content or "" for each in live if each.role == MessageRole.USER]
        return await asyncio.to_thread(
            compose_beside,
            self._transcript.run,
            [each.content or "" for each in live],
            query=asked[-1] if asked else "",
            max_tokens=self.max_tokens,
        )

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await asyncio.to_thread(self._transcript.append, [_line(each) for each in messages])


class _Packet(TextBlock):
    """A packet before the words of a message, not part of the conversation."""


def _with_packet(messages: Sequence[ChatMessage], packet: str, asked: str) -> list[ChatMessage]:
    """The messages with the packet before the user's last message: inside it if that is the question, since many
    models' templates forbid consecutive user messages; else as a system message.
    """
    at = max((at for at, message in enumerate(messages) if message.role == MessageRole.USER), default=0)
    if not messages or messages[at].content != asked:
        return [*messages[:at], ChatMessage(role=MessageRole.SYSTEM, content=packet), *messages[at:]]
    told = _Packet(text=set_apart(packet))
    with_it = messages[at].model_copy(update={"blocks": [told, *messages[at].blocks]})
    return [*messages[:at], with_it, *messages[at + 1 :]]


def _own(message: ChatMessage) -> ChatMessage:
    """A message without its packet, as the user wrote it."""
    own = [block for block in message.blocks if not isinstance(block, _Packet)]
    return message if len(own) == len(message.blocks) else message.model_copy(update={"blocks": own})


def _transcript(
    mem: Memory,
    *,
    user_id: str,
    session_id: str,
    agent_id: str = "llama-index",
    tenant_id: str = DEFAULT_TENANT,
    erase: bool = False,
) -> Transcript:
    return Transcript(
        mem, _OWN, user_id=user_id, session_id=session_id, agent_id=agent_id, tenant_id=tenant_id, erase=erase
    )


def _from_turn(messages: Sequence[ChatMessage], count: int) -> list[ChatMessage]:
    """The latest messages, beginning with a user's message, so that no tool result lacks its call."""
    latest = list(messages[cut_in_steps(len(messages), count) :])
    starts = [at for at, message in enumerate(latest) if message.role == MessageRole.USER]
    return latest[starts[0] :] if starts else latest


def _line(message: ChatMessage) -> Line:
    """A message as an event."""
    item = message.model_dump(mode="json")
    text = message.content or ""
    role = _ROLES.get(message.role)
    if role is None or not text:
        return Line(item, text)
    if role == "tool":
        name = message.additional_kwargs.get("name") or "tool"
        return Line(item, text, role, None, {"name": str(name), "ok": True})
    return Line(item, text, role)
