"""Earlier runs as a fold compares with them, read back from what was kept of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.core.memos import remembered
from muniment.learning.stored_memory import Feature, IntentParts, RunFacts, StateParts

__all__ = ["peer_of"]

_UNSAID = dict(RunFacts(trace_id="unsaid", x_summary="", passed=False, at=""))


def peer_of(kept: Mapping[str, Any]) -> RunFacts:
    """A run as it was kept. It was checked then and is not again: a fold reads two hundred, of a hundred features."""
    said = {key: tuple(value) if isinstance(value, list) else value for key, value in kept.items()}
    said["features"] = tuple(_feature(each["name"], each.get("before", False)) for each in kept.get("features", ()))
    said["intent"] = IntentParts.from_wire(kept.get("intent", {}))
    said["state"] = StateParts.from_wire(kept.get("state", {}))
    return RunFacts.unchecked(_UNSAID | said, set(kept))


@remembered(1 << 14)
def _feature(name: str, before: bool) -> Feature:
    """Runs of one kind share most of theirs."""
    return Feature(name=name, before=before)
