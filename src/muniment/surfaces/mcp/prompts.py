"""Prompts: a question with the context that was composed for it, and how to keep what was said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from muniment.errors import InvalidInput
from muniment.surfaces.mcp.answers import NOTICE
from muniment.surfaces.mcp.arguments import ComposeArguments, KeepArguments, QuestionArguments
from muniment.surfaces.mcp.tools import compose

if TYPE_CHECKING:
    from muniment.contracts.memory_packet import Purpose
    from muniment.core.record import Record
    from muniment.surfaces.mcp.callers import ToolCaller

__all__ = ["PROMPTS", "Offered", "get_prompt", "list_prompts"]


class Offered(NamedTuple):
    """A prompt as it is offered. All of them write, if only the build they compose."""

    title: str
    description: str
    takes: type[Record]
    say: Callable[[ToolCaller, Any], str]

    @property
    def arguments(self) -> Mapping[str, str]:
        return {name: field.description or "" for name, field in self.takes.model_fields.items()}


def _with_context(purpose: Purpose) -> Callable[[ToolCaller, Any], str]:
    def say(tool_caller: ToolCaller, asked: QuestionArguments) -> str:
        text = compose(tool_caller, ComposeArguments(purpose=purpose, query=asked.query)).record.to_wire()["text"]
        return f"{asked.query}\n\n{NOTICE}\n\n{text}" if text else asked.query

    return say


def _keep(_seat: ToolCaller, asked: KeepArguments) -> str:
    return (
        "Keep this in memory: record it with `observe` as my words, unchanged, then `remember` each fact in it under "
        "a key such as `user.city`, with the id of that event as its source and the decisive words as its quote.\n\n"
        f"{asked.text}"
    )


PROMPTS: Mapping[str, Offered] = {
    "answer": Offered(
        "Answer from memory",
        "A question with what is known for answering it, each piece with a mark that cites its event.",
        QuestionArguments,
        _with_context("responder"),
    ),
    "plan": Offered(
        "Plan from memory",
        "A task with what is known for planning it: state, facts, procedures, what was tried.",
        QuestionArguments,
        _with_context("planner"),
    ),
    "keep": Offered("Keep this", "Have the model record some words and remember what they say.", KeepArguments, _keep),
}


def list_prompts(tool_caller: ToolCaller) -> list[Prompt]:
    return [_prompt(name, each) for name, each in PROMPTS.items()] if tool_caller.writes else []


def _prompt(name: str, offered: Offered) -> Prompt:
    arguments = [PromptArgument(name=each, description=said, required=True) for each, said in offered.arguments.items()]
    return Prompt(name=name, title=offered.title, description=offered.description, arguments=arguments)


def get_prompt(tool_caller: ToolCaller, name: str, arguments: Mapping[str, str] | None) -> GetPromptResult:
    offered = PROMPTS.get(name) if tool_caller.writes else None
    if offered is None:
        raise InvalidInput(
            f"there is no prompt {name!r:.80}", path="$.name", hint="`prompts/list` says which there are"
        )
    text = offered.say(tool_caller, offered.takes.from_wire(dict(arguments or {})))
    message = PromptMessage(role="user", content=TextContent(text=text))
    return GetPromptResult(description=offered.description, messages=[message])
