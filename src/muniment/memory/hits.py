"""What a search answers."""

from typing import Literal

from muniment.core.record import Items, Number, Record, Timestamp
from muniment.core.scope import Trust

__all__ = ["Hit"]


class Hit(Record):
    """Something that was found: what it says, where it comes from, and why it is here."""

    id: str
    kind: Literal["event", "fact", "episode", "chunk"]
    text: str
    score: Number
    """How likely it is evidence for the query, from 0 to 1: it means the same for every query and every scope."""
    ts: Timestamp
    sources: Items[str]
    """The events it rests on; for an event, itself."""
    why: Items[str]
    parts: dict[str, float]
    """What its place is decided by, feature by feature; of a fact, its match."""
    session_id: str | None = None
    speaker: str | None = None
    role: str | None = None
    trust: Trust
    """That of the least trusted event it rests on; `external` where one is not this user's to see."""
    flags: Items[str] = ()
    """Flags of the events it rests on: `instruction_like` where one reads like orders from outside."""
