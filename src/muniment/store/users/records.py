"""Users, as the ledger knows them."""

from __future__ import annotations

from muniment.core.record import Count, Record
from muniment.core.scope import IdText

__all__ = ["UserState"]


class UserState(Record):
    """A user of a tenant: what of theirs is there, and since when. Sessions that were forgotten do not count."""

    user_id: IdText
    sessions: Count
    runs: Count
    events: Count
    """As many as were written to these sessions, each one that was forgotten by itself too."""
    first_seen_at: str
    last_seen_at: str
