"""What came of reading traces: how much was written, how much was known, what was left out and why."""

from muniment.core.record import Count, Items, Record

__all__ = ["TraceReport", "TracedSession"]


class TracedSession(Record):
    """A session that traces were written to."""

    user_id: str
    agent_id: str
    session_id: str
    written: Count
    """Entries that are new."""


class TraceReport(Record):
    """What became of the spans and logs of an export."""

    spans: Count
    """Spans that were read."""
    logs: Count
    """Log records that were read."""
    messages: Count
    """Messages that were written."""
    results: Count
    """Tools' results that were written."""
    prompts: Count
    """System instructions that were written: kept, and never quoted."""
    known: Count
    """Messages and results that the ledger held already: each call of a model repeats what was said before it."""
    left_out: dict[str, Count]
    """What was not written, by why: `no_conversation` (spans about something else), `without_content` (the emitter did
    not capture it), `no_user` (nobody says whose), `another_user` (not the one that it was sent for), `no_such_user` (a
    name that no user can have), `no_trace`, `refused` (too large, or not text), `reasoning`, `our_own`."""
    rejected_spans: Count
    """Spans that a sender should hear of: nobody says whose they are, they are another user's, or they were refused."""
    rejected_logs: Count
    sessions: Items[TracedSession]
