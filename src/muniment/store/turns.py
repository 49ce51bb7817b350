"""Turns among the entries: their speaker and full text, checked as it is read, and the names that own a user's data.

A private corpus is `corpus:<corpus_id>:<user_id>`. The names of all corpora are read in one query, whose cost grows
with them. Skipping over those of others would read fewer rows, but its duration would reveal how many others have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muniment.core.canonical import salted_digest
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import by_ids, first, get, select, stream_texts
from muniment.core.ports.schema import BLOBS, ENTRIES, SESSIONS, Table
from muniment.core.scope import CORPUS_PREFIX, corpus_holder, is_reserved, user_bank
from muniment.errors import BlobCorrupt
from muniment.store.chain import damaged_entry
from muniment.store.ledger import EntryOwner, LedgerEntry

__all__ = [
    "blob_text",
    "can_be_turn",
    "is_turn",
    "names_of",
    "speaker_of",
    "text_of",
    "users_of",
]

_ROLES = ("user", "assistant", "tool")
_CORPORA_END = CORPUS_PREFIX[:-1] + chr(ord(":") + 1)
"""Sorts after every name of a corpus."""


class _Owner(NamedTuple):
    user_id: str


def can_be_turn(kind: str, role: str) -> bool:
    """Return whether this is a message or tool result of a role a packet knows; system messages never are."""
    return kind in ("message", "tool_result") and role in _ROLES


def is_turn(entry: LedgerEntry) -> bool:
    """Return whether the entry can be recalled."""
    return entry.body is not None and can_be_turn(entry.kind, entry.role)


def speaker_of(entry: LedgerEntry) -> str:
    """Return the speaker, by name where one was given."""
    return entry.speaker or entry.role


def users_of(reader: Reader, ids: Sequence[str]) -> list[str]:
    """Return the users who own these turns."""
    return sorted(_by_user(reader, ids))


def _by_user(reader: Reader, ids: Sequence[str]) -> dict[str, set[str]]:
    users: dict[str, set[str]] = {}
    for entry in by_ids(reader, ENTRIES, ids, into=EntryOwner):
        users.setdefault(entry.user_id, set()).add(entry.id)
    return users


def text_of(reader: Reader, entry: LedgerEntry) -> str:
    """Return the full text of a live entry, from its row or its blob."""
    assert entry.body is not None
    if entry.body.blob is None:
        return entry.body.content or ""
    salts = select(reader, ENTRIES, (("id", "=", entry.id),), into=_Salt)
    return blob_text(reader, entry.id, entry.body.blob, salts[0].salt if salts else None)


class _Salt(NamedTuple):
    salt: bytes | None


def blob_text(reader: Reader, entry_id: str, name: str, salt: bytes | None) -> str:
    """Return the text in the blob of this name, rejecting one that does not hash to it."""
    try:
        key = bytes.fromhex(name)
    except ValueError:
        raise damaged_entry(entry_id, "its blob has no name") from None
    blob = get(reader, BLOBS, (key,))
    data = None if blob is None else blob.data
    if data is None or salted_digest(salt or b"", data) != key:
        what = "missing" if data is None else "not what it was"
        raise BlobCorrupt(f"the blob of event {entry_id} is {what}", details={"id": entry_id, "blob": name})
    return data.decode()


# -- names --------------------------------------------------------------------------------------------


def names_of(reader: Reader, user_id: str) -> tuple[str, ...]:
    """Return the names that own a user's data: the user's, and those of the user's private corpora and bank."""
    if is_reserved(user_id):
        return (user_id,)
    bank = user_bank(user_id)
    owners = {bank} if _stands(reader, ENTRIES, bank) or _stands(reader, SESSIONS, bank) else set()
    corpora: tuple[Condition, ...] = (("user_id", ">", CORPUS_PREFIX), ("user_id", "<", _CORPORA_END))
    owners.update(
        owner for owner in stream_texts(reader, SESSIONS, "user_id", corpora) if corpus_holder(owner) == user_id
    )
    return (user_id, *sorted(owners))


def _stands(reader: Reader, spec: Table[Any], owner: str) -> bool:
    order = ("user_id", "session_id", "seq") if spec is ENTRIES else spec.key
    return first(reader, spec, (("user_id", "=", owner),), into=_Owner, order=order) is not None
