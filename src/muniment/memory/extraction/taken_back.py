"""What follows from a statement for another: who likes something no longer dislikes it."""

from __future__ import annotations

from muniment.memory.extraction.grammar import TakenBack
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["TakenBack", "opposite_of"]

_OPPOSITE = {"user.likes": "user.dislikes", "user.dislikes": "user.likes"}


def opposite_of(proposal: Proposal) -> TakenBack | None:
    """Who says that they like something no longer dislikes it, and the other way round."""
    key = _OPPOSITE.get(proposal.key)
    if key is None or not isinstance(proposal.value, str):
        return None
    return TakenBack(key, proposal.value, proposal.quote, f"{proposal.why}, and not the contrary", proposal.confidence)
