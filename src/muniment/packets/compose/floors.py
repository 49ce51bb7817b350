"""Floors: what a composition keeps for each section until it had its turn, and how much of it a section can use.

A floor is a share of the budget by purpose (`policy.compose.floors`). It is kept from the sections that are served
before, so that none of them takes it all; what the section has no lines for is not kept, and what is left of a floor
after the section's turn goes to the quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from muniment.contracts.packet import PacketBudget, Purpose
from muniment.core.policy import ComposePolicy
from muniment.core.record import JsonObject
from muniment.packets.compose.conversation import short_term_prices
from muniment.packets.compose.draft import PacketDraft
from muniment.packets.compose.episodes import episode_prices
from muniment.packets.compose.items import fact_prices, insight_prices, procedure_prices
from muniment.packets.page.lines import SECTIONS, BlockName, Section

__all__ = ["Floors", "floors_of", "keep_floors"]

_PRICES: Mapping[Section, Callable[[PacketDraft], Iterator[tuple[BlockName, int]]]] = {
    "facts": fact_prices,
    "procedures": procedure_prices,
    "short_term_summary": short_term_prices,
    "episodes": episode_prices,
    "insights": insight_prices,
}
"""What the lines cost that each section could show. The working state is served first: nothing is kept for it."""


class Floors(NamedTuple):
    """The floors of one composition, in tokens, and why others are not kept."""

    kept: dict[Section, int]
    dropped: dict[Section, str]
    scaled: float
    """1, or by how much all were made smaller to fit into the budget."""

    def to_report(self) -> JsonObject:
        """As `explain.filters` has it."""
        report: JsonObject = {"tokens": {str(section): tokens for section, tokens in self.kept.items()}}
        if self.dropped:
            report["not_kept"] = {str(section): why for section, why in self.dropped.items()}
        if self.scaled < 1:
            report["scaled"] = round(self.scaled, 4)
        return report


def floors_of(policy: ComposePolicy, purpose: Purpose, budget: PacketBudget, tokens_free: int) -> Floors:
    """The floors that fit a budget of which `tokens_free` can be spent on sections, and its caps."""
    shares = getattr(policy.floors, purpose)
    wanted: dict[Section, int] = {
        section: int(share * budget.max_tokens) for section in SECTIONS if (share := getattr(shares, section))
    }
    whole = sum(wanted.values())
    scaled = min(1.0, max(0, tokens_free) / whole) if whole else 1.0
    kept: dict[Section, int] = {}
    dropped: dict[Section, str] = {}
    for section, tokens in wanted.items():
        floor = min(int(tokens * scaled), getattr(budget.per_section, section))
        if floor >= policy.floor_tokens_min and floor:
            kept[section] = floor
        else:
            dropped[section] = f"{floor} tokens are fewer than floor_tokens_min"
    return Floors(kept, dropped, scaled)


def keep_floors(draft: PacketDraft) -> None:
    """Have the purse of a draft keep the floors of its purpose, and note which."""
    floors = floors_of(draft.policy, draft.purpose, draft.request.budget, draft.purse.left)

    def needed(section: Section, tokens_max: int) -> int:
        return _needed(draft, section, tokens_max)

    draft.purse.keep(floors.kept, needed)
    draft.notes["floors"] = floors.to_report()


def _needed(draft: PacketDraft, section: Section, tokens_max: int) -> int:
    """What the section could spend, as far as it matters: up to `tokens_max`."""
    prices_of = _PRICES.get(section)
    if prices_of is None:
        return 0
    total = 0
    opened: set[BlockName] = set()
    for block, tokens in prices_of(draft):
        total += tokens + (0 if block in opened else draft.purse.opening(block))
        opened.add(block)
        if total >= tokens_max:
            return tokens_max
    return total
