"""Keys of facts, and where facts come from, as a page tells them."""

from __future__ import annotations

from muniment.core.scope import origin_note

__all__ = ["told_key", "told_origin"]


_THINGS_OF_USER = {"person": "", "pet": "pet ", "trip": "trip to ", "thing": ""}


def told_key(key: str) -> str:
    """`person.brother.location` as one says it: `brother, location`. Keys of the user stay as callers know them."""
    first, _, rest = key.partition(".")
    whose, _, what = rest.partition(".")
    if first not in _THINGS_OF_USER or not whose or not what:
        return key
    return f"{_THINGS_OF_USER[first]}{whose.replace('_', ' ')}, {what.replace('_', ' ').replace('.', ' ')}"


def told_origin(notes: str | None) -> str:
    """Where a fact comes from that rests on nothing that was observed here, behind its value."""  # MV-02
    said = origin_note(notes)
    return "" if said is None else f" ({said})"
