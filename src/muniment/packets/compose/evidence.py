"""How much evidence a packet shows: what is too weak to stand in it, what comes first, was anything found.

Pure functions of what was gathered and placed: replay decides the same again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from muniment.memory.recall.query import gathers
from muniment.memory.recall.reasons import match_text, read_wanted
from muniment.packets.page.lines import CLAIMS, StateUnit

if TYPE_CHECKING:
    from muniment.core.policy.compose import ComposePolicy
    from muniment.packets.compose.draft import PacketDraft
    from muniment.packets.pool import HitCandidate

__all__ = ["is_asked", "is_found", "strong_ids", "worth_of"]

_USUAL_TOKENS = 1024
"""The budget that the cut-off was chosen at."""
_CHARS_A_TOKEN = 4
"""About: the tokens of a hundred turns are not counted only to put them in order."""


def is_asked(draft: PacketDraft) -> bool:
    """Is there anything that evidence is sought for: a query, or keywords?"""
    return bool(draft.request.query.strip() or any(word.strip() for word in draft.request.cues.keywords or ()))


def strong_ids(draft: PacketDraft, worths: Sequence[float]) -> frozenset[str]:
    """The turns that are worth their room, and whatever supersedes one of them: an outdated turn never stands without
    what it was outdated by, where that was found. Where nothing is asked nothing is weak.

    `worths` is what each hit is worth.
    """
    policy, hits = draft.policy, draft.pool.hits
    if not is_asked(draft):
        return frozenset([hit.turn.id for hit in hits])
    by_id = {hit.turn.id: hit for hit in hits}
    strong: set[str] = set()
    least = max(worths, default=0.0) * _share(draft)
    waiting = [
        hit for hit, worth in zip(hits, worths, strict=True) if worth >= least and hit.score >= policy.evidence_min
    ]
    while waiting:
        hit = waiting.pop()
        if hit.turn.id not in strong:
            strong.add(hit.turn.id)
            waiting += [by_id[each.by] for each in hit.superseded if each.by in by_id]
    return frozenset(strong)


def worth_of(hit: HitCandidate, policy: ComposePolicy) -> float:
    """What a quote is worth for the room it takes: how likely it is evidence, and of a long one less than that.

    Room is what the others go without: two short turns of a chance each tell more than a long one of the same chance.
    """
    tokens = len(hit.turn.text) / _CHARS_A_TOKEN
    if tokens <= policy.short_tokens:
        return hit.score
    return hit.score * math.pow(policy.short_tokens / tokens, policy.length_discount)


def _share(draft: PacketDraft) -> float:
    """What a quote is worth at least, measured by the best one, so that a question whose evidence is hard to tell keeps
    more. Half as much is enough where several things are asked for, each of which holds; and the less, the more room
    the caller gives beyond what is usual: that much they are willing to read.
    """
    share = draft.policy.evidence_share / (2 if gathers(draft.request.query) else 1)
    return share * math.pow(min(1.0, _USUAL_TOKENS / draft.purse.tokens_max), 2)


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
