"""The answers of `why`: the choices of a context, and the contexts with some words; both within the answer limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muniment.errors import InvalidInput
from muniment.surfaces.mcp import words
from muniment.surfaces.mcp.answers import ANSWER_CHARS_MAX, NOTICE, Choice, Explained, Explanation, ToldLine
from muniment.surfaces.mcp.arguments import WhyArguments
from muniment.surfaces.mcp.excerpts import fitting, shortened
from muniment.surfaces.mcp.tool import Answered

if TYPE_CHECKING:
    from muniment.packets.why import Telling
    from muniment.surfaces.mcp.callers import ToolCaller

__all__ = ["why"]

CHOICE_CHARS_MAX = 160
"""The most characters of one choice of a build; the packet has the whole text."""
LINE_CHARS_MAX = 300
SOURCES_MAX = 20
QUERY_CHARS_MAX = 500
_TAKEN_CHARS_MAX, _LEFT_CHARS_MAX = 5_000, 2_500
"""The most characters of the two lists of a build; with its query, less than an answer may have."""


def why(tool_caller: ToolCaller, asked: WhyArguments) -> Answered:
    if (asked.build_id is None) == (asked.text is None):
        raise InvalidInput("name a build or give a text", path="$.build_id")
    if asked.text is not None:
        explanation = _told(tool_caller, asked.text)
    else:
        explanation = _explained(tool_caller, str(asked.build_id))
    return Answered(explanation, words.say_explanation(explanation))


def _told(tool_caller: ToolCaller, text: str) -> Explanation:
    found = tool_caller.memory.why(text, user_id=tool_caller.user, tenant_id=tool_caller.tenant)
    shown = fitting([_line(each) for each in found], ANSWER_CHARS_MAX - 1_000)
    left_out = len(found) - len(shown)
    more: dict[str, Any] = {"left_out": left_out, "more": "ask for more of the words"} if left_out else {}
    return Explanation(notice=NOTICE, tellings=shown, **more)


def _line(telling: Telling) -> ToldLine:
    answer: dict[str, Any] = {} if telling.answer_id is None else {"answer_id": telling.answer_id}
    return ToldLine(
        build_id=telling.build_id,
        at=telling.at,
        purpose=telling.purpose,
        line=shortened(telling.line, LINE_CHARS_MAX),
        sources=telling.evidence_ids[:SOURCES_MAX],
        **answer,
    )


def _explained(tool_caller: ToolCaller, build_id: str) -> Explanation:
    from muniment.surfaces.cli.explained import left_out, taken

    build = tool_caller.build(build_id)
    selected = [_choice(each.candidate.to_dict(), each.rules) for each in taken(build)]
    omitted = [_choice(each.candidate.to_dict(), each.reason) for each in left_out(build)]
    explained = Explained(
        build_id=build.id,
        purpose=build.packet.meta.purpose,
        query=shortened(build.request.query, QUERY_CHARS_MAX),
        tokens=build.tokens,
        max_tokens=build.request.budget.max_tokens,
        selected=fitting(selected, _TAKEN_CHARS_MAX),
        omitted=fitting(omitted, _LEFT_CHARS_MAX),
        selected_count=len(selected),
        omitted_count=len(omitted),
    )
    left = len(selected) - len(explained.selected) + len(omitted) - len(explained.omitted)
    more: dict[str, Any] = {}
    if left:
        more = {"left_out": left, "more": "all of it stands in the resource of the build"}
    return Explanation(notice=NOTICE, build=explained, **more)


def _choice(candidate: Mapping[str, Any], reason: str) -> Choice:
    sources = tuple(candidate.get("sources", ()))[:SOURCES_MAX]
    return Choice(
        section=candidate["section"],
        text=shortened(candidate["text"], CHOICE_CHARS_MAX),
        why=shortened(reason, CHOICE_CHARS_MAX),
        **({"sources": sources} if sources else {}),
    )
