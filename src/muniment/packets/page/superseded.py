"""What of a quote is outdated, as a note beside it; and read back from the conflicts that a packet explains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.contracts.packet import ConflictNote
from muniment.packets.page.lines import flat

__all__ = [
    "SUPERSEDED",
    "SUPERSEDED_FACT",
    "Outdated",
    "facts_in",
    "note_text",
    "outdated_in",
    "shown_words",
    "superseded_note",
]

SUPERSEDED = "superseded_evidence"
"""The type of the conflict note that says what of a quote a newer turn says otherwise."""
SUPERSEDED_FACT = "superseded_fact"
"""The type of the one that says the same of a fact: its own key was stated otherwise since."""
_WORDS_MAX = 40


class Outdated(NamedTuple):
    """A part of a quote that is outdated, and by which event, where that stands on the page too."""

    about: str | None
    """The key of the statement, or its words; None where nothing of the quote stands."""
    by: str | None


def shown_words(quote: str) -> str:
    """Words of a statement, as short as still tells which."""
    words = flat(quote).replace("”", '"').replace("“", '"')
    return f"“{words}”" if len(words) <= _WORDS_MAX else f"“{words[: _WORDS_MAX - 1].rstrip()}…”"


def superseded_note(by: str | None) -> str:
    """What follows on outdated evidence: by which mark it is outdated, where that stands on the page."""
    return f" (superseded by {by})" if by else " (superseded)"


def note_text(parts: Sequence[Outdated], mark: Callable[[str], str]) -> str:
    """` (superseded by [1])` of a whole quote, ` (home: superseded by [1])` of a part of one; nothing of none."""
    if not parts:
        return ""
    whole = next((part for part in reversed(parts) if part.about is None), None)
    if whole is not None:
        return superseded_note(mark(whole.by) if whole.by else None)
    by_event: dict[str | None, list[str]] = {}
    for part in parts:
        by_event.setdefault(part.by, []).append(part.about or "")
    told = [
        f"{', '.join(dict.fromkeys(about))}: superseded{f' by {mark(by)}' if by else ''}"
        for by, about in by_event.items()
    ]
    return f" ({'; '.join(told)})"


def outdated_in(notes: Iterable[ConflictNote]) -> dict[str, list[Outdated]]:
    """What the conflicts of a packet say of its quotes, by evidence id."""
    found: dict[str, list[Outdated]] = {}
    for note in notes:
        extra = note.model_extra or {}
        if note.type != SUPERSEDED or not isinstance(extra.get("evidence_id"), str):
            continue
        about = None if extra.get("is_whole", True) else extra.get("key") or shown_words(str(extra.get("quote", "")))
        found.setdefault(extra["evidence_id"], []).append(Outdated(about, _by(extra)))
    return found


def facts_in(notes: Iterable[ConflictNote]) -> dict[str, str | None]:
    """What they say of its facts, by fact id: the event that says otherwise, where that is named."""
    return {
        fact_id: _by(note.model_extra or {})
        for note in notes
        if note.type == SUPERSEDED_FACT
        for fact_id in note.fact_ids or ()
    }


def _by(extra: Mapping[str, Any]) -> str | None:
    by = extra.get("superseded_by")
    return by if isinstance(by, str) else None
