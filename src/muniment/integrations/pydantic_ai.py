"""Pydantic AI over a muniment store: message history, a history processor, instructions and a toolset.

    history = MunimentHistory(mem, user_id="ana", session_id="chat-1")
    agent = Agent(model, instructions=recall_instructions(history.run), toolsets=[memory_toolset(history.run)])
    result = await agent.run("Where should we eat?", message_history=history.load())
    history.append(result.new_messages())

`Agent(capabilities=[ProcessHistory(recent_history(history.run))])` keeps a long conversation short: the latest turns
stay, what came before is composed for what is asked.

Extra: `muniment[pydantic-ai]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from muniment.errors import MunimentError
from muniment.integrations.messages import content_text
from muniment.integrations.packages import missing
from muniment.integrations.transcript import Conversation, Line

try:
    from pydantic_ai import ModelRetry, RunContext
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        SystemPromptPart,
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
    """The messages of one session. Each part is an event of its own, that recall finds and that can be forgotten."""

    framework = "pydantic_ai"

    def load(self) -> list[ModelMessage]:
        """What `message_history=` takes."""
        messages: dict[int, dict[str, Any]] = {}
        for item in self._transcript.items():
            message = messages.setdefault(item["message"], {**item["of"], "parts": []})
            message["parts"].append({**item["part"], **({"content": item["text"]} if "text" in item else {})})
        loaded: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(list(messages.values()))
        return loaded

    def append(self, messages: Sequence[ModelMessage]) -> None:
        """Add what a run brought: `result.new_messages()`. A packet that was put in by `recent_history` is left out."""
        first = 1 + max((item["message"] for item in self._transcript.items()), default=-1)
        plain = ModelMessagesTypeAdapter.dump_python(_without_packet(messages), mode="json")
        self._transcript.append(line for at, message in enumerate(plain, first) for line in _lines(message, at))

    def clear(self) -> None:
        self._transcript.clear()


def recall_instructions(run: Run, *, max_tokens: int = 1024) -> Callable[[RunContext[Any]], str]:
    """Instructions that are composed anew for each request and not kept in the history."""

    def recall(ctx: RunContext[Any]) -> str:
        asked = ctx.prompt if isinstance(ctx.prompt, str) else content_text(ctx.prompt or "")
        return run.compose("responder", query=asked, max_tokens=max_tokens).text

    return recall


def recent_history(
    run: Run, *, messages_max: int = 20, max_tokens: int = 1024
) -> Callable[[list[ModelMessage]], list[ModelMessage]]:
    """A history processor: the latest messages, from something the user said, and before them a packet for it."""

    def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        kept = _from_prompt(_without_packet(messages), messages_max)
        asked = [text for message in kept for text in _prompts(message)]
        build = run.compose("responder", query=asked[-1] if asked else "", max_tokens=max_tokens)
        packet = ModelRequest(parts=[SystemPromptPart(content=build.text, dynamic_ref=_MARK)])
        return [packet, *kept] if build.text else kept

    return process


def memory_toolset(run: Run, *, hits_max: int = 20) -> FunctionToolset[Any]:
    """Tools for a model: search what this user said, and propose a fact on a quote. The scope is the run's."""

    def search_memory(query: str, limit: int = 5) -> list[dict[str, Any]]:
        """Search what was said in all conversations with this user, and the facts that stand.

        Args:
            query: What to look for, in a few words.
            limit: How many to answer, best first.
        """
        hits = run.search(query, k=max(1, min(limit, hits_max)))
        return [{"id": hit.id, "text": hit.text, "when": hit.ts, "sources": list(hit.sources)} for hit in hits]

    def propose_fact(key: str, value: str, source_id: str, quote: str) -> dict[str, Any]:
        """Propose a fact about the user. It is kept only if the quote stands in the source, word for word.

        Args:
            key: A short dotted name, such as user.city.
            value: The fact itself.
            source_id: The id of a search result that says it.
            quote: The words that say it, copied from that result.
        """
        try:
            made = run.propose(key, value, sources=[source_id], quote=quote)
        except MunimentError as error:
            raise ModelRetry(f"{error.message}. {error.hint}") from error
        return {"status": made.status, "explanation": made.explanation}

    return FunctionToolset([search_memory, propose_fact], id="muniment")


def _lines(message: dict[str, Any], at: int) -> Iterator[Line]:
    """The parts of a message. What belongs to the whole stands beside each, so that any of them can be forgotten."""
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


def _without_packet(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    def is_packet(message: ModelMessage) -> bool:
        return isinstance(message, ModelRequest) and any(
            isinstance(part, SystemPromptPart) and part.dynamic_ref == _MARK for part in message.parts
        )

    return [message for message in messages if not is_packet(message)]


def _prompts(message: ModelMessage) -> list[str]:
    parts = message.parts if isinstance(message, ModelRequest) else ()
    return [content_text(part.content) for part in parts if isinstance(part, UserPromptPart)]


def _from_prompt(messages: Sequence[ModelMessage], count: int) -> list[ModelMessage]:
    """The latest messages, beginning with a prompt, so that no tool's result lacks its call; at least the last turn."""
    starts = [at for at, message in enumerate(messages) if _prompts(message)]
    fitting = [at for at in starts if at >= len(messages) - count]
    return list(messages[(fitting[0] if fitting else starts[-1]) if starts else 0 :])
