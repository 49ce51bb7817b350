"""Facts in words: keys stay in the records; a page reads like a sentence, and a query matches one."""

from __future__ import annotations

import re

from muniment.core.scope import origin_note

__all__ = ["in_words", "told_origin"]

_SENTENCES = {
    "user.name": "Is called {}",
    "user.location": "Lives in {}",
    "user.allergy": "Allergic to {}",
    "user.allergies": "Allergic to {}",
    "user.employer": "Works for {}",
    "user.job": "Works as {}",
}
"""The keys that are made here without a caller, and how one says them."""
_NAMES = re.compile(r"\w+(?:[._-]\w+)*")
"""Names with signs between them, as keys mostly are."""


def in_words(key: str, value: str) -> str:
    """`user.location` and `Berlin` as `Lives in Berlin`; any other key as words: `office.opening_hours` as
    `Office opening hours: 9 to 5`."""
    if key in _SENTENCES:
        return _SENTENCES[key].format(value)
    if _NAMES.fullmatch(key):
        key = re.sub(r"[._-]+", " ", key.removeprefix("user.").removeprefix("person.")).strip() or key
    return f"{key[:1].upper()}{key[1:]}: {value}"


def told_origin(notes: str | None) -> str:
    """Where a fact comes from that rests on nothing that was observed here, behind its value."""  # MV-02
    said = origin_note(notes)
    return "" if said is None else f" ({said})"
