"""Rules made ready for selection, kept in memory between calls."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from muniment.core.limits import drop_tenant

if TYPE_CHECKING:
    from muniment.rules.rulebook.selection import Candidate

__all__ = ["RULE_NAMES_MAX", "RuleCache"]

RULE_NAMES_MAX = 1024


class RuleCache:
    """Rules made ready for selection, by bank and where they apply; each with the revision it was read at."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str, str], tuple[int, tuple[Candidate, ...]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str, str]) -> tuple[int, tuple[Candidate, ...]] | None:
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            return found

    def put(self, key: tuple[str, str, str], revision: int, candidates: tuple[Candidate, ...]) -> None:
        with self._lock:
            self._held[key] = (revision, candidates)
            self._held.move_to_end(key)
            while len(self._held) > RULE_NAMES_MAX:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)
