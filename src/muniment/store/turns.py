"""Which entries are turns, whose they are, and their full text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from muniment.core.ports.engine import Condition, Reader, Select
from muniment.store.ledger.records import LedgerEntry

__all__ = ["CHUNK", "blob_text", "can_be_turn", "is_turn", "speaker_of", "text_of", "users_of"]

CHUNK = 500


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
    for at in range(0, len(ids), CHUNK):
        where: tuple[Condition, ...] = (("id", "in", tuple(ids[at : at + CHUNK])),)
        for id_, user_id in reader.do(Select("entries", where=where, columns=("id", "user_id"))):
            users.setdefault(cast("str", user_id), set()).add(cast("str", id_))
    return users


def text_of(reader: Reader, entry: LedgerEntry) -> str:
    """The full text of a live entry, from its row or its blob."""
    assert entry.body is not None
    return entry.body.content or "" if entry.body.blob is None else blob_text(reader, entry.id)


def blob_text(reader: Reader, entry_id: str) -> str:
    """The text of an entry that lies in a blob."""
    rows = reader.do(Select("blobs", where=(("entry_id", "=", entry_id),), columns=("data",)))
    return cast("bytes", rows[0][0]).decode() if rows and rows[0][0] is not None else ""
