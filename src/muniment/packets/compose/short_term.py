"""The run of the conversation in a packet: open loops, tool results, summary and quotes, last turns (MP-05)."""

from __future__ import annotations

from muniment.contracts.memory_packet import ToolEvidence
from muniment.memory.turn import SummaryLine, Turn
from muniment.packets.compose.budget import TYPICAL_MARK, typical_mark
from muniment.packets.compose.degrade import cut_text
from muniment.packets.compose.explain import names_of
from muniment.packets.compose.placing import Desk, Placed, Said
from muniment.packets.compose.quotes import Quotes
from muniment.packets.page.lines import loop_line, quote_line, summary_line, summary_text, tool_line
from muniment.packets.page.matrix import may_show
from muniment.packets.pool import ToolCandidate

__all__ = ["place_short_term"]


def place_short_term(desk: Desk) -> Quotes:
    """Loops and tool results are short and come first; a share is kept for summary and turns; quotes get the rest."""
    if desk.purpose == "tool":
        _place_tools(desk)
        _place_loops(desk)
    else:
        _place_loops(desk)
        _place_tools(desk)
    summary_max = desk.share_beside_hits(desk.policy.summary_share)
    window_max = desk.share_beside_hits(desk.policy.unmatched_share)
    quotes = Quotes(desk)
    quotes.fill(reserve=_wanted(desk, summary_max, window_max))
    _place_summary(desk, summary_max)
    _place_window(desk, window_max)
    quotes.fill()
    quotes.finish()
    return quotes


def _wanted(desk: Desk, summary_max: int, window_max: int) -> int:
    """Tokens that summary and window could use, each within its share."""
    summary = sum(desk.purse.price(_summary_shown(desk, line)) for line in desk.pool.summary)
    window = 0
    if may_show("window", desk.purpose) and desk.policy.window_turns:
        window = sum(desk.purse.price(_turn_line(turn, turn.text)) for turn in desk.pool.window)
    heads = desk.purse.opening("summary") * bool(summary) + desk.purse.opening("window") * bool(window)
    return min(summary, summary_max) + min(window, window_max) + heads


# -- open loops and tool results ----------------------------------------------------------------------


def _place_loops(desk: Desk) -> None:
    names = names_of("loop", (str(at) for at in range(len(desk.pool.loops))))
    for at, (name, loop) in enumerate(zip(names, desk.pool.loops, strict=True)):
        price = desk.purse.price(loop_line(loop, typical_mark))
        if loop.status != "open":
            desk.tally.omit(name, "superseded", detail="closed")
        elif not loop.question.strip():
            desk.tally.omit(name, "empty")
        elif (reason := desk.bars_sentence(loop.evidence_id, loop.question)) is not None:
            desk.tally.omit(name, reason)
        elif price > desk.purse.room("loops"):
            desk.tally.omit(name, "over_budget", tokens=price)
        else:
            desk.place(Placed(name, "loops", price, loop, (at,)), 0.0, ("open",))


def _place_tools(desk: Desk) -> None:
    """Newest first, as the pool has them; whole, else by reference alone."""
    names = names_of("tool", (tool.ref for tool in desk.pool.tools))
    taken: set[str] = set()
    for at, (name, tool) in enumerate(zip(names, desk.pool.tools, strict=True)):
        if not may_show("tools", desk.purpose):
            desk.tally.omit(name, "purpose")
        elif (reason := desk.bars(tool.trust, tool.flags)) is not None:
            desk.tally.omit(name, reason)
        elif tool.ref in taken:
            desk.tally.omit(name, "duplicate")
        elif len(taken) >= desk.policy.tool_evidence_max:
            desk.tally.omit(name, "count_limit", limit=desk.policy.tool_evidence_max)
        elif _place_tool(desk, name, tool, at):
            taken.add(tool.ref)


def _place_tool(desk: Desk, name: str, tool: ToolCandidate, at: int) -> bool:
    whole = ToolEvidence(ref=tool.ref, summary=tool.summary.strip())
    price = desk.purse.price(tool_line(whole, typical_mark))
    for evidence in (whole, ToolEvidence(ref=tool.ref, summary="")):
        kept = desk.purse.price(tool_line(evidence, typical_mark))
        if kept <= desk.purse.room("tools"):
            desk.place(Placed(name, "tools", kept, evidence, (at,)), 0.0, ("recent",))
            if evidence is not whole:
                desk.tally.step_down(name, "short_term_summary", "raw→ref", f"{kept} of {price} tokens kept")
            return True
    desk.tally.omit(name, "over_budget", tokens=price)
    return False


# -- rolling summary ----------------------------------------------------------------------------------


def _summary_shown(desk: Desk, line: SummaryLine) -> str:
    text = summary_line(line.evidence_id, line.text.strip(), desk.who(line.evidence_id))
    return summary_text(text, (line.evidence_id,), typical_mark)


def _place_summary(desk: Desk, tokens_max: int) -> None:
    """The weightiest sentences within the share, read in the order they were said; not what is quoted already."""
    names = names_of("summary", (line.evidence_id for line in desk.pool.summary))
    numbered = list(enumerate(zip(names, desk.pool.summary, strict=True)))
    spent = 0
    for at, (name, line) in sorted(numbered, key=lambda each: (-each[1][1].weight, each[0])):
        text = line.text.strip()
        price = desk.purse.price(_summary_shown(desk, line))
        if not text:
            desk.tally.omit(name, "empty")
        elif (reason := desk.bars_sentence(line.evidence_id, text)) is not None:
            desk.tally.omit(name, reason)
        elif text in desk.shown.get(line.evidence_id, ""):
            desk.tally.omit(name, "duplicate", of=f"quote:{line.evidence_id}")
        elif (other := desk.said.find(text)) is not None:
            desk.tally.omit(name, "near_duplicate", of=other)
        elif spent + price > tokens_max or price > desk.purse.room("summary"):
            desk.tally.omit(name, "over_budget", tokens=price)
        else:
            spent += price
            said = summary_line(line.evidence_id, text, desk.who(line.evidence_id))
            desk.place(Placed(name, "summary", price, (line, said), (at,)), line.weight, ("weight",))
            desk.said.add(text, name)


# -- last turns ---------------------------------------------------------------------------------------


def _turn_line(turn: Turn, text: str) -> str:
    return quote_line(TYPICAL_MARK, turn.speaker or turn.role, text)


def _place_window(desk: Desk, tokens_max: int) -> None:
    """The newest first, so that the oldest go when the room does. Off for a responder (MP-05)."""
    names = names_of("turn", (turn.id for turn in desk.pool.window))
    numbered = list(enumerate(zip(names, desk.pool.window, strict=True)))
    left, count = tokens_max, 0
    for at, (name, turn) in reversed(numbered):
        if not may_show("window", desk.purpose):
            desk.tally.omit(name, "purpose")
        elif (reason := desk.bars(turn.trust, turn.flags) or desk.bars_sentence(turn.id, turn.text)) is not None:
            desk.tally.omit(name, reason)
        elif not turn.text.strip():
            desk.tally.omit(name, "empty")
        elif turn.id in desk.shown:
            desk.tally.omit(name, "duplicate", of=f"quote:{turn.id}")
        elif count >= desk.policy.window_turns:
            desk.tally.omit(name, "count_limit", limit=desk.policy.window_turns)
        else:
            spent = _place_turn(desk, name, turn, at, left)
            left -= spent
            count += spent > 0


def _place_turn(desk: Desk, name: str, turn: Turn, at: int, left: int) -> int:
    """Tokens spent; 0 where it was left out."""
    room = min(left, desk.purse.room("window"))
    price = desk.purse.price(_turn_line(turn, turn.text))
    text: str | None = turn.text
    if price > room:
        text = None
        if room >= desk.policy.cut_tokens_min:
            text = cut_text(turn.text, lambda part: desk.purse.price(_turn_line(turn, part)) <= room, desk.terms)
        if text is None:
            desk.tally.omit(name, "over_budget", tokens=price)
            return 0
    kept = desk.purse.price(_turn_line(turn, text or ""))
    desk.place(Placed(name, "window", kept, Said(turn, text or ""), (at,)), 0.0, ("recent",))
    if kept < price:
        desk.tally.step_down(name, "short_term_summary", "raw→quote", f"{kept} of {price} tokens kept")
    return kept
