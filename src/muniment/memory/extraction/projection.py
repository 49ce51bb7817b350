"""Which turns were read by which model, as items made from `state_patch` entries: no word of any turn. Pure.

A batch is claimed before the model is asked and said to be read once its proposals are written, in one transaction
with them. From these items it follows what is pending, for any process and after any crash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from muniment.core.record import Count, Items, Record
from muniment.core.scope import IdText
from muniment.errors import InvalidRecord
from muniment.memory.facts.projection import left_of
from muniment.store.items import Change, Item, Rewritten, digest_name
from muniment.store.ledger import TURNS_CLAIMED, TURNS_READ, LedgerEntry

__all__ = ["EXTRACTION", "StoredExtraction", "extraction_name", "extraction_without", "project_extraction"]

EXTRACTION = "extraction"
"""The kind of item."""


class StoredExtraction(Record):
    """A batch of turns of one session, and who reads or has read it."""

    extraction_id: IdText
    extractor: IdText
    """`model:<name>`, or `patterns`."""
    version: Count
    """Which way of asking and checking."""
    session_id: IdText
    turns: Items[IdText]
    unreadable: Items[IdText]
    """Those of them that the model could not be brought to answer for. They count as read."""
    status: Literal["claimed", "read", "released"]
    since: Count
    """Up to which entry of its session everything was read before."""
    through: Count
    """Up to which it is read with this batch; 0 where the turns were named one by one and nothing follows."""
    until: str
    """Until when the claim holds."""
    patch: IdText


def extraction_name(extractor: str, version: int, session_id: str, *, is_sweep: bool = True) -> str:
    """What the batches of one session by one extractor have in common; those that go on from one another apart."""
    return digest_name(f"{extractor}\n{version}\n{'sweep' if is_sweep else 'named'}\n{session_id}")


def project_extraction(entry: LedgerEntry, lookup: Callable[[str], Item | None]) -> list[Change]:
    """Claimed; then read, or given back."""
    said = entry.metadata
    id_ = said.get("id")
    before = lookup(id_) if isinstance(id_, str) else None
    try:
        if said.get("event") == TURNS_CLAIMED and before is None:
            names = ("extractor", "version", "session_id", "since", "through", "until")
            plain = {name: said.get(name) for name in names}
            here = {"extraction_id": id_, "turns": said.get("sources"), "patch": entry.id}
            stored = StoredExtraction.from_wire(plain | here | {"status": "claimed", "unreadable": []})
        elif said.get("event") == TURNS_READ and _is_open(before):
            assert before is not None  # it is open
            fate = {"status": said.get("status"), "unreadable": said.get("unreadable"), "turns": said.get("sources")}
            stored = StoredExtraction.from_wire(before.plain() | fate)
        else:
            return []
    except InvalidRecord:  # not written by a run of ours: it says nothing about what was read
        return []
    return [_change(stored, entry)]


def _is_open(before: Item | None) -> bool:
    return before is not None and before.kind == EXTRACTION and before.body is not None


def _change(stored: StoredExtraction, entry: LedgerEntry) -> Change:
    is_sweep = stored.through > 0
    return Change(
        id=stored.extraction_id,
        kind=EXTRACTION,
        status=stored.status,
        body=stored.to_wire(),
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=(*stored.turns, entry.id),
        name=extraction_name(stored.extractor, stored.version, stored.session_id, is_sweep=is_sweep),
        user_id=entry.scope.user_id,
        session_id=stored.session_id,
    )


def extraction_without(item: Item, lost: frozenset[str]) -> Rewritten | None:
    """A batch without turns that were forgotten. One that has none left goes, as does one whose own entry is lost."""
    stored = StoredExtraction.from_wire(item.plain())
    left = left_of(stored.turns, lost)
    if stored.patch in lost or (stored.turns and not left):
        return None
    kept = stored.model_copy(update={"turns": left, "unreadable": left_of(stored.unreadable, lost)})
    return Rewritten(kept.to_wire(), item.status, item.trust)
