"""The newest recall of a run, as it was told, and its hints as a packet shows them."""

from __future__ import annotations

from typing import Any, cast

from muniment.core.ports.engine import Condition, Reader, Select
from muniment.core.scope import Scope
from muniment.store.items.versions import Item

__all__ = ["latest_recall", "recalled_hints"]

_SHOWN = ("memory_id", "source", "score", "reason", "summary")


def latest_recall(reader: Reader, scope: Scope) -> dict[str, Any] | None:
    where: tuple[Condition, ...] = (("kind", "=", "recall"), ("run_id", "=", scope.run_id))
    rows = reader.do(Select("items", where=where, order=("created_at", "id", "version"), descending=True, limit=1))
    if not rows:
        return None
    item = Item._make(cast("Any", rows[0]))
    return None if item.body is None or item.user_id != scope.user_id else item.plain()


def recalled_hints(reader: Reader, scope: Scope) -> list[dict[str, Any]]:
    """The hints that were within the injection budget, best first."""
    held = latest_recall(reader, scope)
    if held is None:
        return []
    return [
        {key: hint[key] for key in _SHOWN if hint.get(key) is not None}
        for hint in held["response"]["items"]
        if hint.get("injected")
    ]
