"""The insight wall (MP-12): what a responder must not hear, whatever way it comes.

An insight that is not validated is kept out as itself, as a fact or sentence that rests on it, as a value that carries
its state, and as its own words in anything that the user did not say. What the user said is evidence and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muniment.contracts.memory_packet import Purpose
from muniment.core.text.duplicates import words_of
from muniment.packets.pool import InsightCandidate

__all__ = ["Wall"]

_STATEMENT_WORDS_MIN = 3
"""A shorter statement is only recognised as a whole text, not inside one."""


class Wall:
    """Stands before a responder only."""

    def __init__(self, insights: Iterable[InsightCandidate], purpose: Purpose) -> None:
        held = [each.insight for each in insights if each.insight.validation_state != "validated"]
        self._stands = purpose == "responder"
        self._ids = frozenset(item.id for item in held) if self._stands else frozenset()
        statements = [words_of(item.statement) for item in held] if self._stands else []
        self._whole = frozenset(_joined(words) for words in statements if words)
        self._parts = tuple(_joined(words) for words in statements if len(words) >= _STATEMENT_WORDS_MIN)

    @property
    def hides_words(self) -> bool:
        """Is there a statement behind the wall?"""
        return bool(self._whole)

    def bars_id(self, *evidence_ids: str) -> bool:
        """Is one of them an insight behind the wall?"""
        return not self._ids.isdisjoint(evidence_ids)

    def bars_text(self, text: str) -> bool:
        """Does the text repeat a statement from behind the wall?"""
        if not self._whole:
            return False
        said = _joined(words_of(text))
        return said in self._whole or any(part in said for part in self._parts)

    def bars_value(self, value: Any) -> bool:
        """The same for any JSON value: its texts and keys, and objects that say of themselves they are unvalidated."""
        if not self._stands:
            return False
        if isinstance(value, str):
            return self.bars_text(value) or self.bars_id(value)
        if isinstance(value, Mapping):
            if "validation_state" in value and value["validation_state"] != "validated":
                return True
            return any(self.bars_value(part) for pair in value.items() for part in pair)
        if isinstance(value, list | tuple):
            return any(self.bars_value(each) for each in value)
        return False


def _joined(words: list[str]) -> str:
    return f" {' '.join(words)} "
