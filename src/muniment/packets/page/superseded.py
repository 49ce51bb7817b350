"""The note beside the result of a call that failed and was made again, as a packet explains it."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.contracts.packet import ConflictNote

__all__ = ["SUPERSEDED", "find_superseded", "superseded_note"]

SUPERSEDED = "superseded_evidence"
"""The type of the conflict note that says that a newer result replaces a piece of evidence."""


def superseded_note(by: str | None) -> str:
    """` (superseded by [2])`, where `by` is the mark of the newer result if it is on the page too."""
    return f" (superseded by {by})" if by else " (superseded)"


def find_superseded(notes: Iterable[ConflictNote]) -> dict[str, str | None]:
    """The superseded evidence that the conflict notes of a packet name, with what supersedes it."""
    found: dict[str, str | None] = {}
    for note in notes:
        extra = note.model_extra or {}
        evidence_id, by = extra.get("evidence_id"), extra.get("superseded_by")
        if note.type == SUPERSEDED and isinstance(evidence_id, str) and extra.get("is_whole", True):
            found[evidence_id] = by if isinstance(by, str) else None
    return found
