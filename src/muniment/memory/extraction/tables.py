"""Tables of words, written as text."""

from __future__ import annotations

__all__ = ["word_set"]


def word_set(table: str) -> frozenset[str]:
    """The entries of a table, separated by bars where they may hold blanks, else by blanks."""
    found = table.split("|") if "|" in table else table.split()
    return frozenset(entry.strip() for entry in found if entry.strip())
