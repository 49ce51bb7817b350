"""Tools of the full profile only: reading on in an event, the user's profile, claims of a run, earlier lessons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muniment.errors import InvalidInput
from muniment.surfaces.mcp import words
from muniment.surfaces.mcp.answers import NOTICE, Known, Lesson, Lessons, Read
from muniment.surfaces.mcp.arguments import (
    CHARS_MAX,
    HINTS_MAX,
    READ_CHARS_MAX,
    TOKENS_MAX,
    TOKENS_MIN,
    ClaimArguments,
    LessonsArguments,
    ProfileArguments,
    ReadArguments,
    check_count,
)
from muniment.surfaces.mcp.tool import Answered

if TYPE_CHECKING:
    from muniment.runs.records import RunClaim
    from muniment.surfaces.mcp.callers import ToolCaller

__all__ = ["claim", "get_lessons", "get_profile", "read"]


def read(tool_caller: ToolCaller, asked: ReadArguments) -> Answered:
    start = check_count(asked.start, 0, CHARS_MAX, "start")
    length = check_count(asked.length, 1, READ_CHARS_MAX, "length")
    entry = tool_caller.run.ledger.get(asked.event_id)
    whole = tool_caller.run.ledger.content(asked.event_id)
    text = whole[start : start + length]
    flags: dict[str, Any] = {"flags": entry.flags} if entry.flags else {}
    part = Read(
        notice=NOTICE,
        event_id=entry.id,
        text=text,
        start=start,
        end=start + len(text),
        chars=len(whole),
        trust=entry.trust,
        **flags,
    )
    return Answered(part, words.say_read(part))


def get_profile(tool_caller: ToolCaller, asked: ProfileArguments) -> Answered:
    found = tool_caller.run.profile(max_tokens=check_count(asked.max_tokens, TOKENS_MIN, TOKENS_MAX, "max_tokens"))
    marks = {str(number): line.event_id for number, line in enumerate(found.lines, 1)}
    known = Known(notice=NOTICE, text=found.text, tokens=found.tokens, marks=marks)
    return Answered(known, words.say_known(known))


def get_lessons(tool_caller: ToolCaller, asked: LessonsArguments) -> Answered:
    most = None if asked.top_k is None else check_count(asked.top_k, 1, HINTS_MAX, "top_k")
    found = tool_caller.run.learning.recall(asked.query, intent=asked.intent, state=asked.state, top_k=most)
    lessons = Lessons(
        notice=NOTICE,
        text=found.text,
        lessons=tuple(
            Lesson(
                memory_id=each.memory_id,
                source=each.source,
                **({} if each.score is None else {"score": round(each.score, 3)}),
            )
            for each in found.response.items
        ),
        tokens=found.injection.tokens,
    )
    return Answered(lessons, words.say_lessons(lessons))


def claim(tool_caller: ToolCaller, asked: ClaimArguments) -> Answered:
    evidence = [each.to_wire() for each in asked.evidence]
    if (asked.statement is None) == (asked.claim_id is None):
        raise InvalidInput("give either a statement or a claim_id", path="$.statement")
    if (asked.reason is not None) != (asked.status == "retracted"):
        raise InvalidInput("a reason goes with a claim that is retracted", path="$.reason")
    if asked.statement is not None:
        if asked.status == "retracted":
            raise InvalidInput("what is retracted is named by claim_id", path="$.claim_id")
        made = tool_caller.run.log.claim(asked.statement, evidence=evidence, status=asked.status)
    else:
        made = _change_claim(tool_caller, str(asked.claim_id), asked, evidence)
    return Answered(made, words.say_claim(made))


def _change_claim(
    tool_caller: ToolCaller, claim_id: str, asked: ClaimArguments, evidence: list[dict[str, Any]]
) -> RunClaim:
    if asked.status == "retracted":
        return tool_caller.run.log.retract_claim(claim_id, reason=str(asked.reason), evidence=evidence)
    if asked.status == "verified":
        return tool_caller.run.log.verify_claim(claim_id, evidence=evidence)
    raise InvalidInput("a claim that was made is verified or retracted", path="$.status")
