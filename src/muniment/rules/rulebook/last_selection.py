"""The rules that a run was given last, as it was told."""

from __future__ import annotations

from typing import Any, cast

from muniment.core.ports.engine import Condition, Reader, Select
from muniment.store.items.versions import Item

__all__ = ["latest_selection"]


def latest_selection(reader: Reader, user_id: str, run_id: str) -> Item | None:
    """The newest selection of a run; None where it has none, or it was forgotten."""
    where: tuple[Condition, ...] = (("kind", "=", "rule_selection"), ("run_id", "=", run_id))
    rows = reader.do(Select("items", where=where, order=("created_at", "id", "version"), descending=True, limit=1))
    item = Item._make(cast("Any", rows[0])) if rows else None
    return None if item is None or item.body is None or item.user_id != user_id else item
