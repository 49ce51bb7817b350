"""What vectors count for, by who made them and what is asked."""

from __future__ import annotations

from muniment.core.policy import RecallPolicy

__all__ = ["weigh_dense"]

_LATIN_END = "\u024f"
"""The last letter of the Latin blocks."""


def weigh_dense(policy: RecallPolicy, identity: str, query: str) -> RecallPolicy:
    """The policy with the weight that this embedder's vectors deserve for this query; none, where it cannot read it."""
    name = identity.partition("@")[0]
    share = policy.dense_light.get(name, 1.0)
    if name in policy.dense_english and _is_foreign(query):
        share = 0.0
    if share == 1.0:
        return policy
    lighter = {"dense_turn": policy.dense_turn * share, "dense_window": policy.dense_window * share}
    return policy.model_copy(update=lighter)


def _is_foreign(query: str) -> bool:
    """Is most of it written in letters that are not Latin?"""
    if query.isascii():
        return False
    letters = [char for char in query if char.isalpha()]
    return 2 * sum(char > _LATIN_END for char in letters) > len(letters)
