"""The way in: place section by section in the fixed order, lay the page out, count it, give back what is too much.

WM → facts → procedures → summary and quotes → episodes → insights (MP-18). Lines are priced one by one while placing;
the page is counted as a whole before it leaves, and whatever the counter says, what leaves is within the budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from muniment.contracts.memory_packet import MemoryPacket
from muniment.core.policy.compose import ComposePolicy
from muniment.core.ports.tokens import TokenCounter
from muniment.packets.compose.assembly import assemble, determinism_of, meta_of, page_of
from muniment.packets.compose.budget import Usage, measure
from muniment.packets.compose.episodes import place_episodes
from muniment.packets.compose.facts import place_facts
from muniment.packets.compose.insights import place_insights
from muniment.packets.compose.placing import Desk
from muniment.packets.compose.procedures import place_procedures
from muniment.packets.compose.quotes import Quotes
from muniment.packets.compose.short_term import place_short_term
from muniment.packets.compose.state import place_state
from muniment.packets.page.layout import Page
from muniment.packets.page.matrix import BLOCK_NAMES, Section
from muniment.packets.pool import ComposeRequest, Pool

__all__ = ["Composed", "compose"]


@dataclass(frozen=True, slots=True)
class Composed:
    """A packet, the page it makes for its purpose, the tokens counted on it, and what its marks refer to."""

    wire: dict[str, Any] = field(repr=False)
    """The packet as plain data."""
    text: str
    tokens: int
    marks: dict[str, str]

    @property
    def packet(self) -> MemoryPacket:
        """The packet as a record: held to its contract each time it is asked for."""
        return MemoryPacket.from_wire(self.wire)


def compose(
    request: ComposeRequest, pool: Pool, policy: ComposePolicy, counter: TokenCounter, policy_digest: str
) -> Composed:
    """The same arguments give the same bytes."""
    meta = meta_of(request).to_wire()
    determinism = determinism_of(request, policy_digest, counter)
    desk = Desk(request, pool, policy, counter)
    place_state(desk)
    place_facts(desk)
    place_procedures(desk)
    quotes = place_short_term(desk)
    place_episodes(desk)
    place_insights(desk)

    page, usage = _trim(desk, counter)
    if _top_up(desk, quotes, usage):
        page, usage = _trim(desk, counter)
    wire = assemble(desk, meta, _report(desk, usage), determinism)
    return Composed(wire, page.text, usage.total, page.marks)


def _trim(desk: Desk, counter: TokenCounter) -> tuple[Page, Usage]:
    """Lay out and count until it fits. What was placed last goes first: goal, constraints, slots go last (MP-04)."""
    while True:
        page = page_of(desk)
        usage = measure(page, counter)
        section, excess = desk.purse.overspent(usage)
        if not excess:
            return page, usage
        _give_back(desk, section, excess)


def _give_back(desk: Desk, section: Section | None, excess: int) -> None:
    """At least one item, and as many as were priced at the excess."""
    for placed in reversed(list(desk.placed)):
        if section is None or BLOCK_NAMES[placed.block].section == section:
            desk.take_back(placed, "over_budget", detail="the page as a whole was too long")
            excess -= placed.tokens
            if excess <= 0:
                return


def _top_up(desk: Desk, quotes: Quotes, usage: Usage) -> bool:
    """Lines counted together can cost less than one by one: was there room for another quote?"""
    desk.purse.settle(usage)
    return quotes.retry()


def _report(desk: Desk, usage: Usage) -> dict[str, Any]:
    omissions = desk.tally.omissions
    return {
        "max_tokens": desk.purse.tokens_max,
        "used_tokens_est": usage.total,
        "section_usage": usage.to_report(),
        "degradations": desk.tally.degradations,
        **({"omissions": omissions} if omissions else {}),
    }
