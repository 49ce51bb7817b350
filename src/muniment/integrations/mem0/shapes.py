"""Events as memories in the shapes of mem0, and what is kept of a memory beside its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import short_id
from muniment.core.instants import parse_instant
from muniment.integrations.messages import content_text

if TYPE_CHECKING:
    from muniment.store.ledger.records import LedgerEntry

__all__ = [
    "OWN",
    "OWNERLESS",
    "added",
    "change",
    "date_of",
    "events_of",
    "memory_id_of",
    "metadata_of",
    "own_data",
    "owner_of",
    "split_filters",
    "updates_of",
]

OWN = "mem0"
"""Under this key of an event's metadata stands what is not the caller's: whose place it takes, when it expires."""
OWNERLESS = "mem0:"
"""How the ledger of an agent or a run without a user is named."""
ENTITIES = ("user_id", "agent_id", "run_id")


def owner_of(entities: Mapping[str, str | None]) -> str:
    """Whose ledger it is: the user's; of an agent or a run without a user, a ledger of its own."""
    for name in ENTITIES:
        value = entities.get(name)
        if value:
            return value if name == "user_id" else f"{OWNERLESS}{name}:{value}"
    raise ValueError("At least one of user_id, agent_id, run_id must be given, such as filters={'user_id': 'u1'}")


def split_filters(
    filters: Mapping[str, Any] | None, named: Mapping[str, str | None]
) -> tuple[dict[str, str | None], dict[str, Any]]:
    """Whose memories, and what else is asked of them."""
    given = dict(filters or {})
    entities = {name: given.pop(name, None) or named[name] for name in ENTITIES}
    return entities, given


def events_of(messages: Any, said: dict[str, Any], timestamp: Any) -> list[dict[str, Any]]:
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, Mapping):
        messages = [messages]
    shared = ({"metadata": said} if said else {}) | ({"ts": timestamp} if timestamp is not None else {})
    return [
        {"role": each["role"], "content": content_text(each["content"]), "speaker": each.get("name"), **shared}
        for each in messages
        if each.get("content") is not None and each.get("role") in ("user", "assistant")
    ]


def added(entry: LedgerEntry) -> dict[str, Any]:
    return {"id": entry.id, "memory": entry.content, "event": "ADD", "actor_id": entry.speaker, "role": entry.role}


def change(
    memory_id: str, entry: LedgerEntry, event: str, before: str | None, after: str | None, created_at: str
) -> dict[str, Any]:
    return {
        "id": entry.id,
        "memory_id": memory_id,
        "old_memory": before,
        "new_memory": after,
        "event": event,
        "created_at": created_at,
        "updated_at": entry.recorded_at,
        "is_deleted": event == "DELETE",
        "actor_id": entry.speaker,
        "role": entry.role,
    }


def own_data(entry: LedgerEntry) -> dict[str, Any]:
    own = entry.metadata.get(OWN)
    return dict(own) if isinstance(own, dict) else {}


def metadata_of(entry: LedgerEntry) -> dict[str, Any]:
    return {key: value for key, value in entry.metadata.items() if key != OWN}


def memory_id_of(entry: LedgerEntry) -> str:
    return str(own_data(entry).get("memory_id", entry.id))


def updates_of(memory_id: str) -> str:
    return short_id("mem0", memory_id)


def date_of(given: Any) -> str:
    return (
        parse_instant(given if isinstance(given, str) else given.isoformat(), path="$.expiration_date")
        .date()
        .isoformat()
    )
