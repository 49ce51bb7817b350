"""Numbers that were fitted offline: data files of this room, each named by its digest in the policy."""

from __future__ import annotations

import json
from typing import Any

from muniment.core.canonical import digest
from muniment.core.text.word_lists import read_data
from muniment.errors import InvalidInput

__all__ = ["read_fitted"]


def read_fitted(field: str, name: str) -> dict[str, Any]:
    """The data file of a field of the recall policy, which names it by the first signs of its digest."""
    written = read_data(__package__, f"{field}.json")
    if digest(written).hex()[: len(name)] != name or not name:
        raise InvalidInput(
            f"this version has no {field} that is called {name[:80]!r}",
            path=f"$.recall.{field}",
            hint="leave it out: the default names the one that this version has",
        )
    held: dict[str, Any] = json.loads(written)
    return held
