"""Items written by an earlier version: a corpus per namespace, a document per item. They are migrated once.

The old entries stay in the ledger unchanged: they are history, and are erased with their item or user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import short_id
from muniment.core.instants import parse_instant
from muniment.integrations.keyed_documents import Kept, KeyedDocuments
from muniment.memory.kept.values import NewValue, micros

if TYPE_CHECKING:
    from muniment.handles.memory import Memory

__all__ = ["EarlierItems"]

Namespace = tuple[str, ...]


class EarlierItems:
    """Items stored under this name before namespaces were a column."""

    def __init__(self, mem: Memory, name: str, tenant_id: str, user_at: int | None) -> None:
        self._mem, self._name, self._tenant_id = mem, name, tenant_id
        self._user_at = user_at
        self._corpus = mem.corpus(short_id("lgn", name), tenant_id=tenant_id)
        self._namespaces = KeyedDocuments(mem, short_id("lgn", name), tenant_id=tenant_id)
        self._is_there: bool | None = None

    @property
    def is_there(self) -> bool:
        """True if there ever were any."""
        if self._is_there is None:
            self._is_there = bool(self._corpus.documents(include_all=True))
        return self._is_there

    def take_over(self, put: Callable[[list[NewValue]], None]) -> None:
        """Migrate current items namespace by namespace; a migrated one is not read again."""
        for kept in self._namespaces.all():
            labels = kept.value["namespace"]
            assert isinstance(labels, list)
            namespace = tuple(map(str, labels))
            put([_value(namespace, each) for each in self._documents(namespace).all()])
            self._namespaces.take(kept.key)

    def history(self, namespace: Namespace, key: str) -> list[tuple[dict[str, Any], str, str]]:
        """Values of an item before its migration: each value, when it was put, its state."""
        found = self._documents(namespace).history(key) if self.is_there else []
        return [
            (_value(namespace, kept).value, kept.written_at, status)  # type: ignore[misc]
            for kept, status in found
            if status != "live"
        ]

    def erase(self, namespace: Namespace, key: str) -> None:
        if self.is_there:
            self._documents(namespace).take(key, erase=True)

    def _documents(self, namespace: Namespace) -> KeyedDocuments:
        corpus_id = short_id("lg", [self._name, *namespace])
        at = self._user_at
        holder = namespace[at] if at is not None and at < len(namespace) else None
        return KeyedDocuments(self._mem, corpus_id, user_id=holder, tenant_id=self._tenant_id)


def _value(namespace: Namespace, kept: Kept) -> NewValue:
    said: dict[str, Any] = kept.value
    times = tuple(micros(parse_instant(str(said[name]))) for name in ("created_at", "updated_at"))
    return NewValue(namespace, kept.key, said["item"], said["index"], said["ttl_minutes"], (times[0], times[1]))
