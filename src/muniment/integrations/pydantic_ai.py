"""Pydantic AI over a muniment store: message history, history processors, instructions and a toolset.

    history = MunimentHistory(mem, user_id="ana", session_id="chat-1")
    agent = Agent(model, capabilities=[ProcessHistory(recent_history(history.run))])
    result = await agent.run("Where should we eat?", message_history=history.load())
    history.append(result.new_messages())

The processor keeps a long conversation short: the latest turns stay, and a packet of earlier ones, from this session
and others, is put before the question, so that providers' caches keep everything before it. The packet leaves out
anything in the history itself.

Extra: `muniment[pydantic-ai]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from muniment.errors import MunimentError
from muniment.integrations.live_history import compose_beside, cut_in_steps
from muniment.integrations.messages import content_text
from muniment.integrations.packages import missing
from muniment.integrations.session.functions import memory_functions
from muniment.integrations.transcript import Conversation, Line
from muniment.packets.render import set_apart

try:
    from pydantic_ai import ModelRetry, RunContext
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        TextContent,
        UserPromptPart,
    )
    from pydantic_ai.toolsets import FunctionToolset
except ModuleNotFoundError as error:
    raise missing("pydantic-ai-slim", "pydantic-ai", error) from error

if TYPE_CHECKING:
    from muniment.handles.run import Run

__all__ = ["MunimentHistory", "memory_toolset", "recall_instructions", "recent_history"]

_MARK = "muniment:packet"
_ROLES = {"user-prompt": "user", "text": "assistant", "tool-return": "tool"}


class MunimentHistory(Conversation):
    """The messages of one session. Each part is a separate event, which recall finds and which can be forgotten."""

    framework = "pydantic_ai"

    def load(self) -> list[ModelMessage]:
        """The messages for `message_history=`."""
        messages: dict[int, dict[str, Any]] = {}
        for item in self._transcript.items():
            message = messages.setdefault(item["message"], {**item["of"], "parts": []})
            message["parts"].append({**item["part"], **({"content": item["text"]} if "text" in item else {})})
        loaded: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(list(messages.values()))
        return loaded

    def append(self, messages: Sequence[ModelMessage]) -> None:
        """Add the new messages of a run, `result.new_messages()`, without packets from `recent_history`."""
        first = 1 + max((item["message"] for item in self._transcript.items()), default=-1)
        plain = ModelMessagesTypeAdapter.dump_python(_without_packet(messages), mode="json")
        self._transcript.append(line for at, message in enumerate(plain, first) for line in _lines(message, at))

    def clear(self) -> None:
        self._transcript.clear()


def recall_instructions(run: Run, *, max_tokens: int = 1024) -> Callable[[RunContext[Any]], str]:
    """Make instructions that are composed for each request and not stored in the history.

    They precede the conversation, so a provider's cache ends there; `recent_history` puts the packet after it.
    """

    def recall(ctx: RunContext[Any]) -> str:
        asked = ctx.prompt if isinstance(ctx.prompt, str) else content_text(ctx.prompt or "")
        texts = [asked, *_texts(ctx.messages)]
        return compose_beside(run, texts, query=asked, max_tokens=max_tokens)

    return recall


def recent_history(
    run: Run, *, messages_max: int = 20, max_tokens: int = 1024
) -> Callable[[list[ModelMessage]], list[ModelMessage]]:
    """Make a history processor: the latest messages, from a user's message on, with a packet before the last question.

    From this conversation the packet only covers the part that was cut. Cuts move in steps of half of `messages_max`,
    so that the beginning of the request stays the same for a while.
    """

    def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        kept = _from_prompt(_without_packet(messages), messages_max)
        asked = [at for at, message in enumerate(kept) if _prompts(message)]
        query = _prompts(kept[asked[-1]])[-1] if asked else ""
        packet = compose_beside(run, _texts(kept), query=query, max_tokens=max_tokens)
        if packet and asked:
            kept[asked[-1]] = _with_packet(kept[asked[-1]], packet)
        return kept

    return process


def memory_toolset(run: Run, *, hits_max: int = 20) -> FunctionToolset[Any]:
    """Tools for a model: search the user's history, and propose a fact on a quote. The scope is the run's."""

    def refuse(error: MunimentError) -> NoReturn:
        raise ModelRetry(f"{error.message}. {error.hint}") from error

    return FunctionToolset(memory_functions(run, hits_max=hits_max, refuse=refuse), id="muniment")


def _lines(message: dict[str, Any], at: int) -> Iterator[Line]:
    """The parts of a message. Fields of the whole message are repeated in each, so that any of them can be
    forgotten.
    """
    of = {key: value for key, value in message.items() if key != "parts"}
    for part in message["parts"]:
        kind = part["part_kind"]
        content = part.get("content")
        text = content_text(content) if isinstance(content, str | list) else ""
        item: dict[str, Any] = {"message": at, "of": of, "part": part}
        text_at = None
        if isinstance(content, str):
            item |= {"part": {key: value for key, value in part.items() if key != "content"}, "text": content}
            text_at = "text"
        tool = {"name": part["tool_name"], "ok": True} if kind == "tool-return" else None
        yield Line(item, text, _ROLES.get(kind) if text else None, text_at, tool if text else None)


def _with_packet(message: ModelMessage, packet: str) -> ModelMessage:
    """The message with a packet before its last prompt, distinguished from the user's words by its metadata."""
    at = max(place for place, part in enumerate(message.parts) if isinstance(part, UserPromptPart))
    prompt = message.parts[at]
    assert isinstance(prompt, UserPromptPart)
    told = TextContent(content=set_apart(packet), metadata={_MARK: True})
    own = [prompt.content] if isinstance(prompt.content, str) else list(prompt.content)
    parts: Any = [*message.parts]
    parts[at] = replace(prompt, content=[told, *own])
    return replace(message, parts=parts)


def _without_packet(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    return [_own(message) if isinstance(message, ModelRequest) else message for message in messages]


def _own(message: ModelRequest) -> ModelRequest:
    """The message without its packet, as the user wrote it."""
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            own = [each for each in part.content if not _is_packet(each)]
            if len(own) < len(part.content):
                content = own[0] if len(own) == 1 and isinstance(own[0], str) else own
                parts.append(replace(part, content=content))
                continue
        parts.append(part)
    return replace(message, parts=parts)


def _is_packet(content: Any) -> bool:
    return isinstance(content, TextContent) and isinstance(content.metadata, Mapping) and _MARK in content.metadata


def _texts(messages: Iterable[ModelMessage]) -> list[str]:
    """The texts of messages, part by part, as they are recorded."""
    contents = (getattr(part, "content", None) for message in messages for part in message.parts)
    return [content_text(content) for content in contents if isinstance(content, str | list | tuple)]


def _prompts(message: ModelMessage) -> list[str]:
    parts = message.parts if isinstance(message, ModelRequest) else ()
    return [content_text(part.content) for part in parts if isinstance(part, UserPromptPart)]


def _from_prompt(messages: Sequence[ModelMessage], count: int) -> list[ModelMessage]:
    """The latest messages, beginning with a prompt, so that no tool result lacks its call; at least the last turn."""
    starts = [at for at, message in enumerate(messages) if _prompts(message)]
    first = cut_in_steps(len(messages), count)
    fitting = [at for at in starts if at >= first]
    return list(messages[(fitting[0] if fitting else starts[-1]) if starts else 0 :])
