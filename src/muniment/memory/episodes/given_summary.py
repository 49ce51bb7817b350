"""A summary of a session that the caller gave: on evidence, and told as theirs. Pure."""

from __future__ import annotations

from collections.abc import Callable

from muniment.core.record import Items, Record
from muniment.core.scope import IdText, Trust
from muniment.errors import InvalidRecord
from muniment.store.items import Change, Item, digest_name
from muniment.store.ledger import LedgerEntry

__all__ = ["GIVEN_SUMMARY", "GivenSummary", "project_given_summary"]

GIVEN_SUMMARY = "summary"
"""The kind of item."""


class GivenSummary(Record):
    """What the caller says a session comes to, the evidence it rests on, and no more trust than that has."""

    summary_id: IdText
    session_id: IdText
    text: str
    sources: Items[IdText]
    given_at: str
    trust: Trust
    flags: Items[str] = ()
    """`instruction_like` where it, or something it rests on, reads like orders from outside."""


def project_given_summary(entry: LedgerEntry, _lookup: Callable[[str], Item | None]) -> list[Change]:
    """An item of its own for each: the newest of a session stands, and the one before it where that is forgotten."""
    said = entry.metadata
    scope = entry.scope
    try:
        given = GivenSummary.from_wire(
            {
                "summary_id": said.get("id"),
                "session_id": scope.session_id,
                "text": said.get("text"),
                "sources": said.get("sources"),
                "given_at": entry.recorded_at,
                "trust": entry.trust,
                "flags": said.get("flags", []),
            }
        )
    except InvalidRecord:  # not written by a run of ours: it says nothing about a session
        return []
    return [
        Change(
            id=given.summary_id,
            kind=GIVEN_SUMMARY,
            status="given",
            body=given.to_wire(),
            created_at=entry.recorded_at,
            trust=entry.trust,
            sources=(*given.sources, entry.id),
            name=digest_name(scope.session_id),
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            run_id=scope.run_id,
        )
    ]
