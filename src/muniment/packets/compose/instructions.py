"""What the user asked for once and for all: before every other fact, whole, in every packet, whatever is asked."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.packets.compose.budget import typical_mark
from muniment.packets.compose.draft import PacketDraft, Placed, instant_order
from muniment.packets.page.lines import instruction_line, value_text
from muniment.packets.pool import FactCandidate

__all__ = ["place_instructions"]


def place_instructions(draft: PacketDraft, named: Sequence[tuple[str, FactCandidate]]) -> None:
    """The latest while their share lasts; on the page the oldest stands first. None is cut: half of one is another."""
    left = draft.share(draft.policy.instruction_share)
    latest = sorted(named, key=lambda each: (-instant_order(each[1].recorded_at).seconds, each[1].fact.fact_id))
    for at, (name, each) in enumerate(latest):
        price = draft.purse.price(instruction_line(each.fact, typical_mark))
        cost = price + draft.purse.opening("instructions")
        if at >= draft.policy.instructions_max:
            draft.tally.omit(name, "count_limit", limit=draft.policy.instructions_max)
        elif cost > left or price > draft.purse.room("instructions"):
            draft.tally.omit(name, "over_budget", tokens=price)
        else:
            left -= cost
            order = (instant_order(each.recorded_at), name)
            rules = ("active", "valid_now", "instruction")
            draft.place(Placed(name, "instructions", price, each, order), max(each.score, 0.0), rules)
            for source in each.fact.sources:
                draft.instructed.setdefault(source, []).append((value_text(each.fact.value), name))
