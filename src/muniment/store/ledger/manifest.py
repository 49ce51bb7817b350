"""Context manifests: what was in a run's window at a step, and what was kept out and why (CS-04)."""

from muniment.core.record import Absent, Count, Items, JsonObject, Record
from muniment.core.scope import IdText

__all__ = ["ContextManifest", "Excluded"]


class Excluded(Record):
    """What was kept out of a window, and why."""

    id: IdText
    reason: str


class ContextManifest(Record):  # CS-04
    """What was in the window at a step, and what was kept out and why. Ids and reasons, no content."""

    manifest_id: IdText
    builds: Items[IdText]
    """The builds the window was made of; empty where the caller put it together."""
    selected: Items[IdText]
    """Evidence ids: events, chunks of documents."""
    excluded: Items[Excluded]
    filters: JsonObject
    """Which filters ran, and with what."""
    tokens: Absent[Count] = None
