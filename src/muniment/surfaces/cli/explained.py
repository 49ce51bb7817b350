"""A build in words: every candidate of its pool with its text, and its fate with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muniment.packets.explain import candidates_of, names_of
from muniment.packets.page import fact_line, insight_line, loop_line, procedure_line, state_line, state_units

if TYPE_CHECKING:
    from muniment.packets.builds import Build
    from muniment.packets.pool import Pool

__all__ = ["REASONS", "SECTION_OF", "Candidate", "Left", "Taken", "candidates", "explained", "left_out", "taken"]

SECTION_OF = {
    "state": "working_state",
    "fact": "facts",
    "procedure": "procedures",
    "summary": "short_term_summary",
    "profile": "short_term_summary",
    "quote": "short_term_summary",
    "loop": "short_term_summary",
    "turn": "short_term_summary",
    "tool": "short_term_summary",
    "episode": "episodes",
    "insight": "insights",
}
"""Kind of candidate → the section whose budget it uses."""

REASONS: Mapping[str, str] = {
    "over_budget": "it did not fit into the budget",
    "duplicate": "the packet has it already",
    "near_duplicate": "the packet has something that says nearly the same",
    "expired": "its time is over",
    "not_yet_valid": "its time has not come",
    "deprecated": "a newer value took its place, or it was taken back",
    "disputed": "it is disputed",
    "overridden": "a nearer level says otherwise",
    "low_confidence": "it is too uncertain",
    "weak_evidence": "it is hardly evidence for what was asked",
    "out_of_window": "outside the time that was asked for, or too long ago with nothing that asked for it",
    "not_cued": "others carry the tag or entity that was named, and it does not",
    "scope": "it belongs to another scope",
    "trust": "its source is not trusted enough",
    "instruction_like": "it came from outside and reads like instructions",
    "superseded": "something newer was said about the same thing",
    "insight_wall": "a supposition, and a responder states only what is known",
    "purpose": "this purpose does not get it",
    "count_limit": "enough of its kind are there",
    "task_type": "it is for another type of task",
    "empty": "it says nothing",
    "excluded": "the caller sends it itself",
    "held_out": "left out of this run to measure it",
}
"""Reasons for leaving something out, in words."""

_RULE_ENDS = re.compile(r",(?=[^ ])")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item that a build could choose: its text, its speaker and its time."""

    name: str
    kind: str
    text: str
    who: str | None = None
    ts: str | None = None
    sources: tuple[str, ...] = ()
    parts: Mapping[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        shape = {"item": self.name, "section": SECTION_OF[self.kind], "text": self.text}
        more = {"who": self.who, "ts": self.ts, "sources": list(self.sources), "parts": dict(self.parts or {})}
        return shape | {name: value for name, value in more.items() if value}


@dataclass(frozen=True, slots=True)
class Taken:
    """A candidate that is in the packet."""

    candidate: Candidate
    score: float
    rules: str
    marks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return self.candidate.to_dict() | {"score": self.score, "why": self.rules, "marks": list(self.marks)}


@dataclass(frozen=True, slots=True)
class Left:
    """A candidate that was left out, why, and more details."""

    candidate: Candidate
    reason: str
    detail: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.candidate.to_dict() | {"reason": self.reason, "detail": dict(self.detail)}


def explained(build: Build) -> dict[str, Any]:
    """The whole explanation as plain data."""
    packet = build.packet.to_wire()
    return {
        "build_id": build.id,
        "query": build.request.query,
        "found": build.found,
        "meta": packet["meta"],
        "budget_report": packet["budget_report"],
        **({} if build.rules is None else {"rules": build.rules.to_wire()}),
        "selected": [each.to_dict() for each in taken(build)],
        "omitted": [each.to_dict() for each in left_out(build)],
        "filters": packet["explain"]["filters"],
        "conflicts": packet["explain"]["conflicts"],
        "determinism": packet["explain"].get("determinism", {}),
    }


def candidates(build: Build) -> dict[str, Candidate]:
    """Every candidate of a build, by its name in the explanation."""
    pool, purpose = build.pool, build.packet.meta.purpose
    found: dict[str, Candidate] = {}
    if pool.working_state is not None:
        for unit in state_units(pool.working_state, purpose):
            found[unit.name] = Candidate(unit.name, "state", state_line(unit, _unmarked))
    by_kind: dict[str, Iterator[Candidate]] = {}
    for name, kind, _ in candidates_of(pool, purpose):
        if kind != "state":
            held = by_kind.setdefault(kind, _of_kind(pool, kind))
            found[name] = next(held)
    return found


def taken(build: Build) -> list[Taken]:
    """The candidates in the packet, in the packet's order."""
    known, marks = candidates(build), _marks(build)
    return [_taken(known, marks, line) for line in build.packet.explain.selected]


def _taken(known: Mapping[str, Candidate], marks: Mapping[str, str], line: str) -> Taken:
    name, _, rest = line.rpartition(" score=")
    score, _, rules = rest.partition(" rules=")
    candidate = known[name]
    words = _RULE_ENDS.sub(", ", rules.replace("_", " ").replace(",  ", ", "))
    return Taken(candidate, float(score), words, tuple(marks[each] for each in candidate.sources if each in marks))


def left_out(build: Build) -> list[Left]:
    """The candidates left out, in the order of the decisions."""
    known = candidates(build)
    return [Left(known[each.item], each.reason, dict(each.model_extra or {})) for each in build.packet.explain.omitted]


def _marks(build: Build) -> dict[str, str]:
    return {evidence: f"[{mark}]" for mark, evidence in build.marks.items()}


def _unmarked(_: str) -> str:
    return ""


def _of_kind(pool: Pool, kind: str) -> Iterator[Candidate]:
    """The candidates of one kind in the pool's order, named as in the explanation."""
    plain = list(_PLAIN[kind](pool))
    for name, candidate in zip(names_of(kind, (each.name for each in plain)), plain, strict=True):
        yield Candidate(
            name, kind, candidate.text.strip("- "), candidate.who, candidate.ts, candidate.sources, candidate.parts
        )


def _facts(pool: Pool) -> Iterator[Candidate]:
    for each in pool.facts:
        fact, said_at = each.fact, each.since or each.recorded_at
        yield Candidate(fact.fact_id, "fact", fact_line(fact, _unmarked), None, said_at, fact.sources)


def _procedures(pool: Pool) -> Iterator[Candidate]:
    for each in pool.procedures:
        shown = procedure_line(each.procedure, _unmarked)
        yield Candidate(
            each.procedure.procedure_id, "procedure", shown, None, each.recorded_at, each.procedure.sources or ()
        )


def _insights(pool: Pool) -> Iterator[Candidate]:
    for each in pool.insights:
        shown = insight_line(each.insight, _unmarked)
        yield Candidate(each.insight.id, "insight", shown, None, each.recorded_at, each.insight.sources or ())


def _hits(pool: Pool) -> Iterator[Candidate]:
    for hit in pool.hits:
        turn = hit.turn
        yield Candidate(turn.id, "quote", turn.text, turn.speaker or turn.role, turn.ts, (turn.id,), hit.parts)


def _profile(pool: Pool) -> Iterator[Candidate]:
    for each in pool.profile:
        turn, scores = each.turn, {"safety": each.safety / 255, "wish": each.wish / 255}
        shown = turn.text[each.start : each.end]
        yield Candidate(turn.id, "profile", shown, turn.speaker or turn.role, turn.ts, (turn.id,), scores)


def _window(pool: Pool) -> Iterator[Candidate]:
    for turn in pool.window:
        yield Candidate(turn.id, "turn", turn.text, turn.speaker or turn.role, turn.ts, (turn.id,))


def _summary(pool: Pool) -> Iterator[Candidate]:
    for line in pool.summary:
        yield Candidate(line.evidence_id, "summary", line.text, None, line.ts, (line.evidence_id,))


def _loops(pool: Pool) -> Iterator[Candidate]:
    for at, loop in enumerate(pool.loops):
        sources = (loop.evidence_id,) if loop.evidence_id else ()
        yield Candidate(str(at), "loop", loop_line(loop, _unmarked), None, None, sources)


def _tools(pool: Pool) -> Iterator[Candidate]:
    for tool in pool.tools:
        yield Candidate(tool.ref, "tool", tool.summary, "tool", tool.ts, (tool.ref,))


def _episodes(pool: Pool) -> Iterator[Candidate]:
    for each in pool.episodes:
        best = each.lines[0].text if each.lines else "nothing to quote"
        sources = tuple(line.evidence_id for line in each.lines)
        yield Candidate(each.episode_id, "episode", f"{each.session_id}: {best}", None, each.start, sources)


_PLAIN = {
    "fact": _facts,
    "procedure": _procedures,
    "insight": _insights,
    "profile": _profile,
    "quote": _hits,
    "turn": _window,
    "summary": _summary,
    "loop": _loops,
    "tool": _tools,
    "episode": _episodes,
}
