"""How much evidence a packet shows: what is too weak to stand in it, the room a quote deserves, was anything found.

Pure functions of what was gathered and placed: replay decides the same again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from muniment.memory.recall.reasons import match_text, read_wanted
from muniment.packets.page.lines import CLAIMS, StateUnit

if TYPE_CHECKING:
    from muniment.core.policy.compose import ComposePolicy
    from muniment.packets.compose.draft import PacketDraft
    from muniment.packets.pool import HitCandidate

__all__ = ["is_asked", "is_found", "quote_tokens_max", "strong_ids"]


def is_asked(draft: PacketDraft) -> bool:
    """Is there anything that evidence is sought for: a query, or keywords?"""
    return bool(draft.request.query.strip() or any(word.strip() for word in draft.request.cues.keywords or ()))


def strong_ids(hits: Sequence[HitCandidate], least: float) -> frozenset[str]:
    """The turns that are likely enough evidence, and whatever supersedes one of them: an outdated turn never stands
    without what it was outdated by, where that was found.
    """
    by_id = {hit.turn.id: hit for hit in hits}
    strong: set[str] = set()
    waiting = [hit for hit in hits if hit.score >= least]
    while waiting:
        hit = waiting.pop()
        if hit.turn.id not in strong:
            strong.add(hit.turn.id)
            waiting += [by_id[each.by] for each in hit.superseded if each.by in by_id]
    return frozenset(strong)


def quote_tokens_max(score: float, policy: ComposePolicy, share: int) -> int:
    """The room of one quote: in proportion to how likely it is evidence, and never more than the share of one quote."""
    return min(share, max(policy.evidence_tokens_min, int(score * policy.evidence_tokens)))


def is_found(draft: PacketDraft, hits: Iterable[HitCandidate]) -> bool:
    """Does memory hold something on what is asked?

    True where one of the hits that may be quoted is evidence with `found_min` or more, or a fact that was placed, or a
    verified claim of the run, holds `match_min` of what is asked for.
    """
    policy = draft.policy
    if any(hit.score >= policy.found_min for hit in hits):
        return True
    if any(placed.item.score >= policy.match_min for placed in draft.items("facts")):
        return True
    stated = [_statement(placed.item) for placed in draft.items("state")]
    if not any(stated):
        return False
    wanted = read_wanted(draft.request.query)
    return any(match_text(wanted, statement).score >= policy.match_min for statement in stated if statement)


def _statement(unit: object) -> str:
    if isinstance(unit, StateUnit) and unit.part == CLAIMS and isinstance(unit.value, Mapping):
        return str(unit.value.get("statement") or "")
    return ""
