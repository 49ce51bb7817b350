"""Pools and requests by hand for tests: small defaults, everything overridable."""

from __future__ import annotations

from typing import Any

from muniment.contracts.packet import Cues, Fact, InsightItem, PacketBudget, Procedure, Purpose, WorkingState
from muniment.core.scope import Scope
from muniment.memory.turns import EpisodeCandidate, SessionLine, Turn
from muniment.packets.page import PREAMBLE, SECTIONS
from muniment.packets.pool import (
    ComposeRequest,
    FactCandidate,
    HitCandidate,
    InsightCandidate,
    Pool,
    ProcedureCandidate,
    ToolCandidate,
)
from strategies import NOW

OPENING = "".join(f"{line}\n" for line in PREAMBLE)
TODAY = "Today is Friday, 1 May 2026.\n"
"""What stands on every page, before what seldom changes and behind it."""


def make_request(
    purpose: Purpose = "planner",
    *,
    query: str = "where does Ana live",
    max_tokens: int = 2048,
    cues: dict[str, Any] | None = None,
    task_type: str = "generic",
    **per_section: int,
) -> ComposeRequest:
    """Without caps of its own every section may take the whole budget."""
    caps = {section: per_section.get(section, max_tokens) for section in SECTIONS}
    return ComposeRequest(
        scope=Scope(user_id="ana", agent_id="support", session_id="s1", run_id="r1"),
        purpose=purpose,
        query=query,
        task_type=task_type,
        cues=Cues.from_wire(cues or {}),
        budget=PacketBudget.from_wire({"max_tokens": max_tokens, "per_section": caps}),
        policy_id="default",
        now=NOW,
    )


def make_pool(**lists: Any) -> Pool:
    state = lists.pop("working_state", None)
    needed = {name for name, field in Pool.model_fields.items() if field.is_required() and name != "working_state"}
    held = WorkingState.from_wire({"state_version": 1, **state}) if state is not None else None
    given = {name: tuple(value) if isinstance(value, list | tuple) else value for name, value in lists.items()}
    return Pool(working_state=held, **(dict.fromkeys(needed, ()) | given))


def make_turn(id: str, text: str, **changes: Any) -> Turn:
    given = {
        "session_id": "s0",
        "seq": 0,
        "kind": "message",
        "role": "user",
        "speaker": None,
        "ts": "2026-04-20T10:00:00Z",
        "trust": "user",
        "flags": (),
    }
    return Turn(id=id, text=text, **{**given, **changes})


def make_hit(
    id: str,
    text: str,
    score: float = 1.0,
    **changes: Any,
) -> HitCandidate:
    return HitCandidate(turn=make_turn(id, text, **changes), score=score, parts={}, reasons=("lexical",))


def make_fact(id: str, key: str, value: Any, *, score: float = 0.0, **changes: Any) -> FactCandidate:
    candidate = {
        "trust": "user",
        "recorded_at": "2026-04-01T00:00:00Z",
        "version": 1,
        "is_preference": False,
        "stale_dependency": False,
    }
    given = {name: changes.pop(name) for name in tuple(changes) if name in candidate}
    wire = {"fact_id": id, "fact_key": key, "value": value, "status": "active", "sources": [f"src_{id}"], **changes}
    return FactCandidate(fact=Fact.from_wire(wire), score=score, **{**candidate, **given})


def make_procedure(id: str, content: dict[str, Any], *, usage: int = 0, **changes: Any) -> ProcedureCandidate:
    wire = {"procedure_id": id, "task_type": "generic", "content": content, **changes}
    return ProcedureCandidate(
        procedure=Procedure.from_wire(wire), trust="user", usage=usage, recorded_at="2026-04-01T00:00:00Z"
    )


def make_insight(id: str, statement: str, *, run_is_finished: bool = False, **changes: Any) -> InsightCandidate:
    wire = {"id": id, "type": "hypothesis", "statement": statement, "validation_state": "unvalidated", **changes}
    return InsightCandidate(
        insight=InsightItem.from_wire(wire),
        trust="assistant",
        run_id="r1",
        run_is_finished=run_is_finished,
        recorded_at="2026-04-01T00:00:00Z",
    )


def make_line(
    evidence_id: str, text: str, weight: float = 1.0, ts: str = "2026-04-20T10:00:00Z", **who: Any
) -> SessionLine:
    return SessionLine(evidence_id=evidence_id, text=text, ts=ts, weight=weight, **who)


def make_episode(id: str, start: str, *lines: SessionLine, score: float = 0.0, **changes: Any) -> EpisodeCandidate:
    given: dict[str, Any] = {
        "session_id": "s0",
        "end": start,
        "sources": tuple(line.evidence_id for line in lines),
        "tags": (),
        "entities": (),
        "trust": "user",
    }
    return EpisodeCandidate(episode_id=id, start=start, lines=lines, score=score, **{**given, **changes})


def make_tool(ref: str, summary: str, **changes: Any) -> ToolCandidate:
    given: dict[str, Any] = {"ts": "2026-05-01T11:00:00Z", "trust": "tool", "flags": ()}
    return ToolCandidate(ref=ref, summary=summary, **{**given, **changes})
