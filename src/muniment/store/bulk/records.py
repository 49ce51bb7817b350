"""What is loaded in bulk, event by event, and what a load reports."""

from __future__ import annotations

from typing import NamedTuple

from muniment.core.record import Count, Record
from muniment.store.ledger.records import EntryDraft

__all__ = ["LoadEvent", "LoadReport"]


class LoadEvent(NamedTuple):
    """An event with the names it goes under."""

    user_id: str
    agent_id: str
    session_id: str
    run_id: str | None
    """None for a run of the load's own, one for each session and agent."""
    draft: EntryDraft
    where: str
    """Where it stands in what was given, for errors."""


class LoadReport(Record):
    """What a load wrote, and what was there already."""

    events: Count
    """As many as were given."""
    written: Count
    already_present: Count
    """Were written earlier under the same key."""
    forgotten: Count
    """Were written earlier under the same key and forgotten since: they are not written again."""
    sessions: Count
    """Sessions that events were written to."""
    indexed: Count
    """Turns that were put into the index, of this load or of one before that was broken off."""
    waiting: Count
    """Events of the tenant that are not in the index yet."""
