"""Prompts: a question with its composed context, instructions to keep a statement, and the state of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from muniment.errors import InvalidInput
from muniment.surfaces.mcp.answers import NOTICE
from muniment.surfaces.mcp.arguments import CatchUpArguments, ContextArguments, KeepArguments, QuestionArguments
from muniment.surfaces.mcp.memory_tools import get_context
from muniment.surfaces.mcp.resources import tell_session

if TYPE_CHECKING:
    from muniment.core.record import Record
    from muniment.surfaces.mcp.callers import ToolCaller

__all__ = ["PROMPTS", "Offered", "get_prompt", "list_prompts"]

LOOKED_AT_MAX = 1_000
"""The number of latest entries checked for an earlier session."""


class Offered(NamedTuple):
    """The definition of a prompt."""

    title: str
    description: str
    takes: type[Record]
    say: Callable[[ToolCaller, Any], str]
    access: Literal["read", "write"] = "write"
    """The access it needs; one that composes a context also writes."""

    @property
    def arguments(self) -> Mapping[str, str]:
        return {name: field.description or "" for name, field in self.takes.model_fields.items()}

    def is_offered(self, tool_caller: ToolCaller) -> bool:
        return self.access == "read" or tool_caller.writes


def _answer(tool_caller: ToolCaller, asked: QuestionArguments) -> str:
    text = get_context(tool_caller, ContextArguments(query=asked.query)).record.to_wire()["text"]
    return f"{asked.query}\n\n{NOTICE}\n\n{text}" if text else asked.query


def _keep(_tool_caller: ToolCaller, asked: KeepArguments) -> str:
    return (
        "Keep this in memory: `record` it as my words, unchanged, then `remember` each fact in it under a key such as "
        "`user.city`, with the id of that event as its source and the decisive words as its quote.\n\n"
        f"{asked.text}"
    )


def _catch_up(tool_caller: ToolCaller, asked: CatchUpArguments) -> str:
    session_id = asked.session_id or _latest_session(tool_caller)
    if session_id is None:
        return "There is no earlier session: ask me what to begin with."
    told = tell_session(tool_caller, session_id)
    return f"Tell me in a few lines where we stood, what is open, and what to do next.\n\n{NOTICE}\n\n{told}"


def _latest_session(tool_caller: ToolCaller) -> str | None:
    """The session of the latest turn that is not in this one."""
    entries = tool_caller.memory.ledger.entries(
        user_id=tool_caller.user, tenant_id=tool_caller.tenant, order="desc", limit=LOOKED_AT_MAX
    )
    own = tool_caller.run.scope.session_id
    said = (each for each in entries if each.kind in ("message", "tool_result") and not each.is_forgotten)
    return next((each.scope.session_id for each in said if each.scope.session_id != own), None)


PROMPTS: Mapping[str, Offered] = {
    "answer": Offered(
        "Answer from memory",
        "A question with what is known for answering it, each piece with a mark that cites its event.",
        QuestionArguments,
        _answer,
    ),
    "keep": Offered("Keep this", "Have the model record some words and remember what they say.", KeepArguments, _keep),
    "catch_up": Offered(
        "Catch up",
        "Where an earlier session stood: its latest turns, to go on from.",
        CatchUpArguments,
        _catch_up,
        access="read",
    ),
}


def list_prompts(tool_caller: ToolCaller) -> list[Prompt]:
    return [_prompt(name, each) for name, each in PROMPTS.items() if each.is_offered(tool_caller)]


def _prompt(name: str, offered: Offered) -> Prompt:
    fields = offered.takes.model_fields
    arguments = [
        PromptArgument(name=each, description=said, required=fields[each].is_required())
        for each, said in offered.arguments.items()
    ]
    return Prompt(name=name, title=offered.title, description=offered.description, arguments=arguments)


def get_prompt(tool_caller: ToolCaller, name: str, arguments: Mapping[str, str] | None) -> GetPromptResult:
    offered = PROMPTS.get(name)
    if offered is None or not offered.is_offered(tool_caller):
        raise InvalidInput(
            f"there is no prompt {name!r:.80}", path="$.name", hint="`prompts/list` says which there are"
        )
    text = offered.say(tool_caller, offered.takes.from_wire(dict(arguments or {})))
    message = PromptMessage(role="user", content=TextContent(text=text))
    return GetPromptResult(description=offered.description, messages=[message])
