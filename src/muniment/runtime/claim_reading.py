"""What a run has verified so far, as a packet shows it: those that match the question first, then the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muniment.ports.engine import Condition, Select
from muniment.recall.matching import match_text
from muniment.runtime.items import Item

if TYPE_CHECKING:
    from muniment.ports.engine import Reader
    from muniment.recall.matching import Wanted
    from muniment.records.scope import Scope

__all__ = ["verified_claims"]


def verified_claims(reader: Reader, scope: Scope, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
    """At most `limit` verified claims of the run, each with the evidence it names first."""
    where: tuple[Condition, ...] = (("kind", "=", "claim"), ("run_id", "=", scope.run_id))
    rows = reader.do(Select("items", where=where, order=("id", "version")))
    newest = {item.id: item for item in (Item._make(cast("Any", row)) for row in rows)}
    found: list[tuple[float, str, dict[str, Any]]] = []
    for item in newest.values():
        if item.status != "verified" or item.body is None or item.user_id != scope.user_id:
            continue
        claim = item.plain()
        shown = {
            "claim_id": item.id,
            "statement": claim["statement"],
            "evidence_id": claim["evidence_refs"][0]["chunk_id"],
            "trust": item.trust,
        }
        found.append((match_text(wanted, claim["statement"]).score, item.created_at, shown))
    found.sort(key=lambda each: each[2]["claim_id"])
    found.sort(key=lambda each: each[:2], reverse=True)
    return [shown for _, _, shown in found[:limit]]
