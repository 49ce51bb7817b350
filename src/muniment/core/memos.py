"""What a process remembers of the texts that users gave it: answers of pure functions, by the text.

They belong to no store, so a forget in any store empties them all: nothing that was forgotten stays in memory, and what
is still asked for is read again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar, cast

__all__ = ["MEMOS", "memo", "remembered"]

P = ParamSpec("P")
T = TypeVar("T")
Table = TypeVar("Table", bound=dict[Any, Any])

MEMOS: list[Callable[[], None]] = []
"""What empties each of them."""


def remembered(size_max: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function that remembers its last answers."""

    def remember(function: Callable[P, T]) -> Callable[P, T]:
        found = lru_cache(maxsize=size_max)(function)
        MEMOS.append(found.cache_clear)
        return cast("Callable[P, T]", found)

    return remember


def memo(table: Table) -> Table:
    """A table of answers that bounds itself; it lives as long as the process."""
    MEMOS.append(table.clear)
    return table
