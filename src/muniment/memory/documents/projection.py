"""Documents from `state_patch` entries, and what is left of one without some of its sources. Pure: entries say all.

A revision of a document is a session of its corpus, and an item of the same name as the session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muniment.core.scope import is_corpus
from muniment.errors import InvalidRecord
from muniment.memory.documents.records import StoredDocument
from muniment.store.items import Change, Item, digest_name
from muniment.store.ledger import DOCUMENT_ADDED, DOCUMENT_RETRACTED, LedgerEntry

__all__ = ["document_without", "project_document"]

_SAID = ("document_id", "revision", "title", "source", "media_type", "digest", "bytes", "metadata", "is_anonymous")

Lookup = Callable[[str], Item | None]


def project_document(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """The new revision and the end of the one before it; or the end of one that was retracted."""
    event = entry.metadata.get("event")
    if event not in (DOCUMENT_ADDED, DOCUMENT_RETRACTED) or not is_corpus(entry.scope.user_id):
        return []
    try:
        return _added(entry, lookup) if event == DOCUMENT_ADDED else _retracted(entry, lookup)
    except InvalidRecord:  # not written by a corpus of ours: it says nothing about a document
        return []


def _added(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    said = entry.metadata
    here = {"added_at": entry.ts, "patch": entry.id}
    document = StoredDocument.from_wire({key: said[key] for key in _SAID if key in said} | here)
    before = _of_corpus(entry, said.get("supersedes"), lookup)
    ended = [] if before is None else [_change(entry, before, "superseded", StoredDocument.from_wire(before.plain()))]
    return [*ended, _change(entry, None, "live", document)]


def _retracted(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    item = _of_corpus(entry, entry.metadata.get("id"), lookup)
    if item is None or item.id != entry.scope.session_id:
        return []
    document = StoredDocument.from_wire(item.plain() | {"reason": entry.metadata.get("reason")})
    return [_change(entry, item, "retracted", document)]


def _of_corpus(entry: LedgerEntry, item_id: Any, lookup: Lookup) -> Item | None:
    """The live document of this name in the entry's own corpus."""
    item = lookup(item_id) if isinstance(item_id, str) else None
    is_theirs = item is not None and item.kind == "document" and item.user_id == entry.scope.user_id
    return item if is_theirs and item is not None and item.body is not None else None


def _change(entry: LedgerEntry, item: Item | None, status: str, document: StoredDocument) -> Change:
    session_id = entry.scope.session_id if item is None else item.session_id
    assert session_id is not None
    return Change(
        id=session_id,
        kind="document",
        status=status,
        body=document.to_wire(),
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=(entry.id,),
        name=digest_name(document.digest if document.is_anonymous else document.document_id),
        user_id=entry.scope.user_id,
        agent_id=entry.scope.agent_id,
        session_id=session_id,
        run_id=entry.scope.run_id if item is None else item.run_id,
    )


def document_without(item: Item, lost: frozenset[str]) -> dict[str, Any] | None:
    """What is left of a document without some entries. It stands while the entry that added it does: a later revision
    that is lost leaves nothing here.
    """
    plain = item.plain()
    return None if plain["patch"] in lost else plain
