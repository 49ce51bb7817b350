"""What a run has verified so far, as a packet shows it: those that match the question first, then the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.ports.engine import Condition
from muniment.core.scope import LEDGER_CORPUS
from muniment.memory.reasons import match_text
from muniment.store.items import newest_items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.memory.reasons import Wanted

__all__ = ["verified_claims"]

_STANDS = ("live", "superseded")
"""A newer revision takes nothing from what the older one says."""


class _MatchedClaim(NamedTuple):
    score: float
    created_at: str
    shown: dict[str, Any]
    chunk_ids: tuple[str, ...]
    """Of the documents it cites."""


def verified_claims(
    reader: Reader, scope: Scope, wanted: Wanted, limit: int, is_meant: Callable[[str], bool] | None = None
) -> tuple[list[dict[str, Any]], int]:
    """At most `limit` verified claims of the run that rest on what stands, each with the evidence it names first; and
    how many more there are. `is_meant` says of the moment at which a claim was made whether it is asked for.
    """
    where: tuple[Condition, ...] = (("kind", "=", "claim"), ("run_id", "=", scope.run_id))
    found: list[_MatchedClaim] = []
    for item in newest_items(reader, where):
        if item.status != "verified" or item.user_id != scope.user_id:
            continue
        if is_meant is not None and not is_meant(item.created_at):
            continue
        claim = item.plain()
        refs = claim["evidence_refs"]
        if not refs:  # brought from elsewhere: nothing shows it (CS-06)
            continue
        shown = {
            "claim_id": item.id,
            "statement": claim["statement"],
            "evidence_id": refs[0]["chunk_id"],
            "trust": item.trust,
        }
        chunk_ids = tuple(ref["chunk_id"] for ref in refs if ref.get("corpus_id", LEDGER_CORPUS) != LEDGER_CORPUS)
        score = match_text(wanted, claim["statement"]).score
        found.append(_MatchedClaim(score, item.created_at, shown, chunk_ids))
    found.sort(key=lambda each: each.shown["claim_id"])
    found.sort(key=lambda each: each[:2], reverse=True)
    return _standing(reader, scope, found, limit)


def _standing(
    reader: Reader, scope: Scope, found: Sequence[_MatchedClaim], limit: int
) -> tuple[list[dict[str, Any]], int]:
    """The first of them that cite no document that was retracted, or is not here: such a one verifies nothing."""
    from muniment.memory.corpus import standing_of

    shown: list[dict[str, Any]] = []
    at = 0
    while at < len(found) and len(shown) < limit:
        page = found[at : at + limit]
        standing = standing_of(reader, scope.tenant_id, [id_ for each in page for id_ in each.chunk_ids])
        shown += [each.shown for each in page if all(standing.get(id_) in _STANDS for id_ in each.chunk_ids)]
        at += limit
    return shown[:limit], len(shown[limit:]) + len(found[at:])
