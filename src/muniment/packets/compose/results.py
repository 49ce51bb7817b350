"""Tools' results in a packet: how a long one is cut, and that each stands once (TM-03).

A result can be told in four places: by the caller (`working_state.tool_evidence`), as a recent result, as a quote or
one of the last turns, in an episode. What one of them says in full the others do not say again; where a quote says more
than the line about a recent result, the line goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from muniment.contracts.packet import ToolEvidence
from muniment.core.text.sentences import with_marks
from muniment.memory.results.excerpts import cut_excerpt
from muniment.memory.results.tool_text import call_of_line, call_without_failure
from muniment.memory.turns import Turn
from muniment.packets.compose.budget import TYPICAL_MARK, cut_text, typical_mark
from muniment.packets.compose.draft import PacketDraft, Placed, Said
from muniment.packets.page.lines import StateUnit, excerpt_line, quote_line
from muniment.packets.page.superseded import superseded_note
from muniment.packets.pool import ToolCandidate

__all__ = ["cut_turn", "drop_repeated", "results_made_good", "said_line", "told_of", "whole_turn"]


def whole_turn(draft: PacketDraft, turn: Turn) -> Said:
    """The turn as it stands where there is room for it: whole, or what there is to be shown of a very long result."""
    if turn.excerpt is None:
        return Said(turn, turn.text)
    known = draft.excerpts.get(turn.text)
    if known is None:
        known = draft.excerpts[turn.text] = cut_turn(turn, lambda _: True, draft.terms) or Said(turn, turn.text)
    return known


def said_line(draft: PacketDraft, said: Said) -> str:
    """The line of the page that shows it, with a typical mark: what it is priced at.

    That of a whole turn is looked at several times, and written once.
    """
    turn, text, _ = said
    if text is not turn.text:
        return _said_line(draft, said)
    known = draft.turn_lines.get((turn.id, text))
    if known is None:
        known = draft.turn_lines[turn.id, text] = _said_line(draft, said)
    return known


def _said_line(draft: PacketDraft, said: Said) -> str:
    turn, text, excerpt = said
    note = superseded_note(TYPICAL_MARK) if turn.id in draft.superseded else ""
    who = draft.who(turn.id) or turn.role
    if excerpt is not None:
        return excerpt_line(TYPICAL_MARK, who, turn.id, excerpt, note)
    is_result, said_at = turn.kind == "tool_result", draft.counted_from(turn)
    text = text if turn.cited is None else with_marks(text, turn.cited, typical_mark)
    return quote_line(TYPICAL_MARK, who, text, note, is_result=is_result, said_at=said_at)


def cut_turn(turn: Turn, fits: Callable[[Said], bool], terms: Collection[str]) -> Said | None:
    """A turn made shorter: a message to a stretch of sentences, a tool's result to the lines that matter."""
    if turn.kind == "tool_result":
        excerpt = cut_excerpt(turn.text, turn.excerpt, lambda part: fits(Said(turn, part.text, part)), terms)
        return None if excerpt is None else Said(turn, excerpt.text, excerpt)
    text = cut_text(turn.text, lambda part: fits(Said(turn, part)), terms)
    return None if text is None else Said(turn, text)


def told_of(draft: PacketDraft, evidence_id: str, text: str | None = None) -> Placed | None:
    """What already tells of a result: by itself, or, given a text, in these words."""
    for placed in (*draft.items("state"), *draft.items("tools")):
        evidence = _evidence_in(placed)
        if evidence is not None and evidence.ref == evidence_id and (text is None or text.strip() in evidence.summary):
            return placed
    return None


def results_made_good(tools: Sequence[ToolCandidate]) -> set[str]:
    """Of recent results, the newest first: those of calls that failed, and were made again and answered since."""
    made_good: set[str] = set()
    newer: set[str] = set()
    for tool in tools:
        call = call_of_line(tool.summary)
        if call_without_failure(call) in newer:
            made_good.add(tool.ref)
        newer.add(call)
    return made_good


def _evidence_in(placed: Placed) -> ToolEvidence | None:
    value = placed.item.value if isinstance(placed.item, StateUnit) else placed.item
    return value if isinstance(value, ToolEvidence) else None


def drop_repeated(draft: PacketDraft) -> bool:
    """Take out the lines about recent results that stand on the page as quotes or turns. Was there any?

    Only once it is settled what has room: a line is not given up for a quote that goes after all.
    """
    quoted = {placed.item.turn.id: placed.name for placed in draft.placed if isinstance(placed.item, Said)}
    repeated = [placed for placed in draft.items("tools") if placed.item.ref in quoted]
    for placed in repeated:
        draft.take_back(placed, "duplicate", of=quoted[placed.item.ref])
    return bool(repeated)
