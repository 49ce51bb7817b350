"""What a process remembers of the texts that users gave it: answers of pure functions, by the text.

They belong to no store, so a forget in any store empties them all: nothing that was forgotten stays in memory, and what
is still asked for is read again.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar, cast
from weakref import WeakValueDictionary

__all__ = ["REMEMBERED", "TABLES", "Memo", "drop_tenant", "remembered"]

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

REMEMBERED: list[Callable[[], None]] = []
"""What empties the memos of functions."""
TABLES: WeakValueDictionary[int, dict[Any, Any]] = WeakValueDictionary()
"""The tables that live, by nothing but what they are."""


class Memo(dict[K, V]):
    """A table of answers. Whoever fills it bounds it."""

    def __init__(self) -> None:
        super().__init__()
        TABLES[id(self)] = self


def drop_tenant(held: MutableMapping[Any, Any], tenant_id: str | None) -> None:
    """Take out of a table what lies under keys that begin with this tenant; everything, where none is named."""
    for key in [key for key in held if tenant_id in (None, key[0])]:
        del held[key]


def remembered(size_max: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function that remembers its last answers."""

    def remember(function: Callable[P, T]) -> Callable[P, T]:
        found = lru_cache(maxsize=size_max)(function)
        REMEMBERED.append(found.cache_clear)
        return cast("Callable[P, T]", found)

    return remember
