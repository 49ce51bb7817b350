"""Trust: where words come from, and what a caller may claim of it (LG-08)."""

from __future__ import annotations

from muniment.core.trust import TRUST_RANK
from muniment.core.vocabulary import TRUST_ORDER, Trust
from muniment.errors import InvalidInput
from muniment.store.ledger.records import Role

__all__ = ["trust_of"]

_BY_ROLE: dict[Role, Trust] = {
    "user": "user",
    "system": "user",
    "developer": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def trust_of(role: Role, claimed: Trust | None) -> Trust:
    """The trust the role gives, or a lower one that the caller claims."""
    given = _BY_ROLE[role]
    if claimed is None:
        return given
    if TRUST_RANK[claimed] < TRUST_RANK[given]:
        raise InvalidInput(
            f"the role {role!r} has trust {given!r}; a caller can lower it, not raise it to {claimed!r}",
            path="$.trust",
            hint=f"leave trust out, or give one of {', '.join(TRUST_ORDER[TRUST_RANK[given] :])}",
        )
    return claimed
