"""What a reader is told of changes in a user's scope: which ids to look at, never what was said."""

from typing import Literal

from muniment.core.record import Count, Items, Record

__all__ = ["Appended", "Built", "Changes"]


class Appended(Record):
    """Entries that follow one another in a session, all of one run."""

    ledger: Literal["user", "bank"]
    """The user's own ledger, or that of the user's bank: what was learnt, and rules."""
    session_id: str
    run_id: str
    first_seq: Count
    last_seq: Count
    events: Items[str]
    """What kinds there are among them: `message`, `tool_result`, `step`, or the name of what a run said of itself, such
    as `run_finished`."""


class Built(Record):
    """A packet that was composed."""

    build_id: str
    session_id: str
    run_id: str


class Changes(Record):
    """What was committed after a position, oldest first within each session. One moment: all of it, or nothing yet."""

    position: str
    """Where this ends: ask for what comes `after` it."""
    reset: bool = False
    """What happened since the position cannot be told exactly: look at everything again."""
    more: bool = False
    """There is more already: ask again at once."""
    entries: Items[Appended] = ()
    builds: Items[Built] = ()
    receipts: Items[str] = ()
    """Of what was forgotten in this scope."""

    @property
    def is_empty(self) -> bool:
        return not (self.reset or self.entries or self.builds or self.receipts)
