"""Where something comes from that was not observed here, and the note that facts on it carry. Pure words."""

from typing import Annotated, Literal

from pydantic import Field

from muniment.core.record import Absent, NonEmpty, Record, Timestamp
from muniment.core.scope import IdText

__all__ = ["Origin", "SystemName", "imported_note", "origin_note"]

SystemName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,39}$")]
"""The name of a system that holds memory, as it may stand in a flag and on a page."""
_IMPORTED_FROM = "imported from "


def imported_note(system: str) -> str:
    """What the notes of a fact begin with that rests on nothing but what was imported from a system."""
    return f"{_IMPORTED_FROM}{system}"


def origin_note(notes: str | None) -> str | None:
    """The part of a fact's notes that says where it was imported from."""
    return notes.partition(";")[0] if notes is not None and notes.startswith(_IMPORTED_FROM) else None


class Origin(Record):  # MV-02
    """Where something comes from that was not observed here: which system held it, and what that said of it."""

    system: SystemName
    kind: Literal["message", "memory"]
    """Said in a conversation there; or worded by that system, or kept by it as a note."""
    id: Absent[NonEmpty] = None
    """The id it had there."""
    version: Absent[NonEmpty] = None
    """The version of that system, or of its file."""
    model: Absent[NonEmpty] = None
    """The model that worded it, where that is known."""
    created_at: Absent[Timestamp] = None
    updated_at: Absent[Timestamp] = None
    valid_from: Absent[Timestamp] = None
    """From when that system held it to be so."""
    valid_to: Absent[Timestamp] = None
    """Until when."""
    replaces: Absent[IdText] = None
    """The event that holds the version before."""
