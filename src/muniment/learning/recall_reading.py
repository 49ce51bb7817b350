"""The newest recall of a run, as it was told."""

from __future__ import annotations

from typing import Any

from muniment.core.ports.engine import Reader
from muniment.core.scope import Scope
from muniment.store.items import latest_of_run

__all__ = ["latest_recall"]


def latest_recall(reader: Reader, scope: Scope) -> dict[str, Any] | None:
    item = latest_of_run(reader, "recall", scope.user_id, scope.run_id)
    return None if item is None else item.plain()
