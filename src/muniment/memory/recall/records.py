"""What a search answers."""

from collections.abc import Iterable
from typing import Literal

from muniment.core.record import Absent, Count, Items, Number, Record, Timestamp

__all__ = ["Hit", "SupersededStatement", "outdated_by", "reasons_of"]


class SupersededStatement(Record):
    """A part of what a turn says that a newer turn says otherwise; the rest of it stands."""

    key: Absent[str] = None
    """What it is about: `home`, or `sister.home` where it is somebody else's. Absent where only the words tell."""
    quote: str
    """Its words."""
    start: Count
    end: Count
    """Where they stand in the text of the turn: half-open, in bytes of UTF-8."""
    by: str
    """The event that says otherwise, and where in its text."""
    by_start: Count
    by_end: Count
    is_whole: bool
    """With the others of its turn it is all that the turn says."""


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
    superseded: Items[SupersededStatement] = ()
    """What of it something newer says otherwise."""
    superseded_by: str | None = None
    """The id of the newer one, where nothing of it stands."""


def outdated_by(superseded: Iterable[SupersededStatement]) -> str | None:
    """The event that says otherwise, where nothing of the turn stands; of several, the last named."""
    found = tuple(superseded)
    return next((each.by for each in reversed(found) if each.is_whole), None) if found else None


def reasons_of(superseded: Iterable[SupersededStatement]) -> tuple[str, ...]:
    """The same in words, for whoever asks why a turn was found."""
    found = tuple(superseded)
    if not found:
        return ()
    if found[0].is_whole:
        return ("superseded by a later statement",)
    return tuple(f"{each.key or each.quote}: superseded by a later statement" for each in found)
