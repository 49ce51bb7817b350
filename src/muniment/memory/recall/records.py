"""What a search answers."""

from typing import Literal

from muniment.core.record import Items, Number, Record

__all__ = ["Hit"]


class Hit(Record):
    """Something that was found: what it says, where it comes from, and why it is here."""

    id: str
    kind: Literal["event", "fact", "episode", "chunk"]
    text: str
    score: Number
    """Comparable within one answer, best first."""
    ts: str
    sources: Items[str]
    """The events it rests on; for an event, itself."""
    why: Items[str]
    parts: dict[str, float]
    """What the score is the sum of."""
    session_id: str | None = None
    speaker: str | None = None
    role: str | None = None
    superseded_by: str | None = None
    """The id of something newer about the same thing."""
