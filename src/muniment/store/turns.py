"""Which entries are turns, whose they are, and their full text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import by_ids, select
from muniment.core.ports.schema import BLOBS, ENTRIES
from muniment.store.ledger.records import LedgerEntry
from muniment.store.ledger.rows import EntryOwner

__all__ = ["blob_text", "can_be_turn", "is_turn", "speaker_of", "text_of", "users_of"]

_ROLES = ("user", "assistant", "tool")


def can_be_turn(kind: str, role: str) -> bool:
    """Messages and tool results of the roles a packet knows; system messages never are."""
    return kind in ("message", "tool_result") and role in _ROLES


def is_turn(entry: LedgerEntry) -> bool:
    """Can it be recalled?"""
    return entry.body is not None and can_be_turn(entry.kind, entry.role)


def speaker_of(entry: LedgerEntry) -> str:
    """Who speaks: by name where one was given."""
    return entry.speaker or entry.role


def users_of(reader: Reader, ids: Sequence[str]) -> list[str]:
    """Whose turns these are."""
    return sorted(_by_user(reader, ids))


def _by_user(reader: Reader, ids: Sequence[str]) -> dict[str, set[str]]:
    users: dict[str, set[str]] = {}
    for entry in by_ids(reader, ENTRIES, ids, into=EntryOwner):
        users.setdefault(entry.user_id, set()).add(entry.id)
    return users


def text_of(reader: Reader, entry: LedgerEntry) -> str:
    """The full text of a live entry, from its row or its blob."""
    assert entry.body is not None
    return entry.body.content or "" if entry.body.blob is None else blob_text(reader, entry.id)


class _Data(NamedTuple):
    data: bytes | None


def blob_text(reader: Reader, entry_id: str) -> str:
    """The text of an entry that lies in a blob."""
    blobs = select(reader, BLOBS, (("entry_id", "=", entry_id),), into=_Data)
    return blobs[0].data.decode() if blobs and blobs[0].data is not None else ""
