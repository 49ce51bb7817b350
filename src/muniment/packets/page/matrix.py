"""What may be put before whom (MP-03): §9's matrix and the P/T/R columns of the tables, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muniment.contracts.memory_packet import Purpose

__all__ = ["BLOCKS", "BLOCK_NAMES", "SECTIONS", "STATE_PARTS", "Block", "BlockName", "Section", "StatePart", "may_show"]

Section = Literal["working_state", "facts", "procedures", "short_term_summary", "episodes", "insights"]
BlockName = Literal[
    "state", "facts", "procedures", "summary", "quotes", "loops", "window", "tools", "episodes", "insights"
]
StatePart = Literal[
    "goal", "constraints", "slots", "decisions", "claims", "plan", "tool_evidence", "risks", "hints", "extra"
]

SECTIONS: tuple[Section, ...] = (
    "working_state",
    "facts",
    "procedures",
    "short_term_summary",
    "episodes",
    "insights",
)
"""The fixed order (MP-18), and the keys of `meta.budget.per_section`."""

_ALL: frozenset[Purpose] = frozenset(("planner", "tool", "responder"))
_ACTING: frozenset[Purpose] = frozenset(("planner", "tool"))


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of the page under one heading; several blocks may share a section's budget."""

    name: BlockName
    section: Section
    heading: str
    purposes: frozenset[Purpose]


BLOCKS: tuple[Block, ...] = (
    Block("state", "working_state", "## State", _ALL),
    Block("facts", "facts", "## Facts", _ALL),
    Block("procedures", "procedures", "## Procedures", _ACTING),
    Block("summary", "short_term_summary", "## So far", _ALL),
    Block("quotes", "short_term_summary", "## Said", _ALL),
    Block("loops", "short_term_summary", "## Open questions", _ALL),
    Block("window", "short_term_summary", "## Last turns", _ACTING),
    Block("tools", "short_term_summary", "## Tool results", _ACTING),
    Block("episodes", "episodes", "## Episodes", _ALL),
    # A responder sees insights only where the packet allows it and the item is validated: checked item by item (MP-12).
    Block("insights", "insights", "## Hypotheses, not facts", frozenset(("planner", "responder"))),
)
BLOCK_NAMES: dict[BlockName, Block] = {block.name: block for block in BLOCKS}

STATE_PARTS: dict[StatePart, frozenset[Purpose]] = {
    "goal": _ALL,
    "constraints": _ALL,
    "slots": _ALL,
    "decisions": _ALL,
    # What the run has verified so far, each claim on its evidence (CS-06).
    "claims": _ALL,
    "plan": _ACTING,
    "tool_evidence": _ACTING,
    "risks": _ACTING,
    "hints": _ACTING,
    # Keys of the caller's own have no column in the tables: never before a responder.
    "extra": _ACTING,
}
"""The parts of a working state, those that go last under pressure first (MP-04)."""


def may_show(name: BlockName, purpose: Purpose) -> bool:
    """Does the matrix let this block stand before this purpose?"""
    return purpose in BLOCK_NAMES[name].purposes
