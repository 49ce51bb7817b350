"""A packet as one page of text, for one purpose: blocks in the fixed order, marks numbered as they appear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from muniment.prompts.lines import (
    Mark,
    day_heading,
    day_of,
    episode_text,
    fact_line,
    insight_line,
    loop_line,
    procedure_line,
    quote_line,
    state_line,
    state_units,
    summary_text,
    tool_line,
)
from muniment.prompts.matrix import BLOCKS, SECTIONS, STATE_PARTS, BlockName, Section, may_show
from muniment.records.packet import KeyQuote, MemoryPacket, Purpose

__all__ = ["PREAMBLE", "SUPERSEDED", "Page", "lay_out"]

PREAMBLE = "Cite evidence as [n]."
SUPERSEDED = "superseded_evidence"
"""The type of the conflict note that says which quote a newer one supersedes."""


@dataclass(frozen=True, slots=True)
class Page:
    """The text, what each mark on it refers to, and the text of each section (headings included)."""

    text: str
    marks: dict[str, str]
    sections: dict[Section, str]


@dataclass(slots=True)
class _Marks:
    """Numbers evidence ids in the order they are first shown."""

    numbers: dict[str, int] = field(default_factory=dict)

    def __call__(self, evidence_id: str) -> str:
        return f"[{self.numbers.setdefault(evidence_id, len(self.numbers) + 1)}]"


def lay_out(packet: MemoryPacket, purpose: Purpose | None = None) -> Page:
    """The page; nothing on it that the matrix keeps from the purpose. An empty packet makes an empty page."""
    purpose = purpose or packet.meta.purpose
    marks, names = _Marks(), _speakers(packet)
    sections: dict[Section, str] = dict.fromkeys(SECTIONS, "")
    for block in BLOCKS:
        if not may_show(block.name, purpose):
            continue
        lines = list(_lines(block.name, packet, purpose, marks, names))
        if lines:
            sections[block.section] += "".join(f"{line}\n" for line in (block.heading, *lines))
    text = "".join(sections.values())
    if marks.numbers:
        text = f"{PREAMBLE}\n{text}"
    return Page(text, {str(number): name for name, number in marks.numbers.items()}, sections)


def _lines(
    name: BlockName, packet: MemoryPacket, purpose: Purpose, mark: Mark, names: Mapping[str, str]
) -> Iterator[str]:
    short, long = packet.short_term, packet.long_term
    if name == "state":
        units = state_units(short.working_state, purpose)
        yield from (state_line(unit, mark) for unit in units if purpose in STATE_PARTS[unit.part])
    elif name == "facts":
        yield from (fact_line(fact, mark) for fact in long.facts)
    elif name == "procedures":
        yield from (procedure_line(procedure, mark) for procedure in long.procedures)
    elif name == "summary":
        if short.rolling_summary:
            yield summary_text(short.rolling_summary, {citation.id: None for citation in packet.citations}, mark)
    elif name == "quotes":
        yield from _quotes(packet, mark, names)
    elif name == "loops":
        yield from (loop_line(loop, mark) for loop in short.open_loops or () if loop.status == "open")
    elif name == "window":
        for turn in short.conversation_window or ():
            yield quote_line(mark(turn.evidence_id), names.get(turn.evidence_id, turn.role), turn.content)
    elif name == "tools":
        yield from (tool_line(tool, mark) for tool in short.last_tool_evidence or ())
    elif name == "episodes":
        yield from (episode_text(episode, names.get, mark) for episode in long.episodes)
    elif purpose == "planner" or packet.insight.usage_policy.allow_in_responder:
        yield from _insights(packet, purpose, mark)


def _quotes(packet: MemoryPacket, mark: Mark, names: Mapping[str, str]) -> Iterator[str]:
    """Quotes under the day they were said on, written once."""
    quotes: tuple[KeyQuote, ...] = packet.short_term.key_quotes or ()
    present = {quote.evidence_id for quote in quotes}
    newer = {
        str(extra.get("evidence_id")): str(extra.get("superseded_by"))
        for note in packet.explain.conflicts
        if note.type == SUPERSEDED and (extra := note.model_extra)
    }
    day = year = None
    for quote in quotes:
        if day_of(quote.ts) != day:
            day = day_of(quote.ts)
            yield day_heading(day, year)
            year = day[:4]
        note = ""
        own = mark(quote.evidence_id)  # numbered before the one it refers to
        if (by := newer.get(quote.evidence_id)) is not None:
            note = f" (superseded by {mark(by)})" if by in present else " (superseded)"
        yield quote_line(own, names.get(quote.evidence_id, quote.role or "user"), quote.quote, note)


def _insights(packet: MemoryPacket, purpose: Purpose, mark: Mark) -> Iterator[str]:
    insight = packet.insight
    for item in (*insight.hypotheses, *insight.strategy_sketches, *insight.patterns):
        if item.validation_state == "rejected" or (purpose == "responder" and item.validation_state != "validated"):
            continue  # MP-12: not even a packet that nobody checked gets one through here
        yield insight_line(item, mark)


def _speakers(packet: MemoryPacket) -> dict[str, str]:
    """Who said what is cited: the summary of a message's or tool result's citation is the speaker's name."""
    said = ("message", "tool_result")
    return {each.id: each.summary for each in packet.citations if each.summary and each.type in said}
