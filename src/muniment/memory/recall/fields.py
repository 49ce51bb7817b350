"""Fields of turns: short words such as `topic="food"` by which a turn can be told from others exactly.

An event lists them under `FIELDS_KEY` of its metadata. They stand in the index as terms that no text has, in a range of
hashes of their own, so that who compares what turns say can leave them out. They weigh nothing in a ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.core.canonical import digest

__all__ = ["FIELDS_KEY", "FIELDS_MAX", "FIELD_CHARS_MAX", "field_term", "field_terms", "without_fields"]

FIELDS_KEY = "muniment:fields"
"""Under this key of an event's metadata stands the list of its fields."""
FIELDS_MAX, FIELD_CHARS_MAX = 256, 256
"""What of the list is indexed: so many of them, none longer than this."""
_OWN_RANGE = 0xFFFFFF << 40
"""The highest range of the hashes of terms: of sixteen million words that somebody says, about one falls into it."""


def field_terms(metadata: Mapping[str, Any]) -> list[int]:
    """The terms of the fields that an event lists; what is no list of short words has none."""
    listed = metadata.get(FIELDS_KEY)
    if not isinstance(listed, list | tuple):
        return []
    fields = [each for each in listed if isinstance(each, str) and 0 < len(each) <= FIELD_CHARS_MAX]
    return [field_term(field) for field in dict.fromkeys(fields[:FIELDS_MAX])]


def field_term(field: str) -> int:
    """The term of a field."""
    return _OWN_RANGE | int.from_bytes(digest(field.encode())[:5], "big")


def without_fields(terms: frozenset[int]) -> frozenset[int]:
    """What is left of the terms of a turn without those of its fields."""
    return frozenset([term for term in terms if term < _OWN_RANGE]) if max(terms, default=0) >= _OWN_RANGE else terms
