"""Events as memories in mem0's shapes, and the metadata stored with a memory's text.

A memory is an event or its replacement: an update is a separate event, in a session named after the memory
(`updates_of`), and its metadata name the event it replaces. Nothing here reads a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import canonical_text, short_id
from muniment.integrations.mem0.exceptions import ValidationError
from muniment.integrations.mem0.validation import ENTITIES, OWN
from muniment.memory._index import FIELDS_KEY

if TYPE_CHECKING:
    from muniment.contracts.packet import Fact
    from muniment.store.ledger import LedgerEntry

__all__ = [
    "AGENT",
    "FACT",
    "OWNERLESS",
    "added",
    "change",
    "entities_of_owner",
    "fact_id_of",
    "fact_json",
    "fact_text",
    "memory_id_of",
    "memory_json",
    "metadata_of",
    "own_data",
    "owner_of",
    "updates_of",
]

AGENT = "mem0"
"""Default agent."""
OWNERLESS = "mem0:"
"""Prefix of the ledger name of an agent or a run without a user."""
FACT = "muniment"
"""Metadata key that marks a result as a fact and names it."""
_MINTED = "ses_"
"""Prefix of generated session names."""
_FACT_AT = "@"
"""Separates a fact's id from its evidence event's, by which the owner can be looked up."""


def owner_of(entities: Mapping[str, str]) -> str:
    """The ledger owner: the user or, for an agent or a run without a user, a separate owner."""
    for name in ENTITIES:
        value = entities.get(name)
        if value:
            return value if name == "user_id" else f"{OWNERLESS}{name}:{value}"
    raise ValidationError(
        "At least one of 'user_id', 'agent_id', or 'run_id' must be provided.",
        "VALIDATION_001",
        {"provided_ids": dict.fromkeys(ENTITIES)},
        "Please provide at least one identifier to scope the memory operation.",
    )


def entities_of_owner(owner: str) -> tuple[str, str]:
    """The kind of id a ledger is named by, and the id."""
    if not owner.startswith(OWNERLESS):
        return "user_id", owner
    name, _, value = owner.removeprefix(OWNERLESS).partition(":")
    return name, value


def own_data(entry: LedgerEntry) -> dict[str, Any]:
    own = entry.metadata.get(OWN)
    return dict(own) if isinstance(own, dict) else {}


def metadata_of(entry: LedgerEntry) -> dict[str, Any]:
    return {key: value for key, value in entry.metadata.items() if key not in (OWN, FIELDS_KEY)}


def memory_id_of(entry: LedgerEntry) -> str:
    return str(own_data(entry).get("memory_id", entry.id))


def updates_of(memory_id: str) -> str:
    """The session of a memory's replacement events."""
    return short_id("mem0", memory_id)


def memory_json(entry: LedgerEntry, text: str, first: LedgerEntry | None = None) -> dict[str, Any]:
    """A memory in mem0's shape. `first` is its original event, if the update does not describe it."""
    own = own_data(entry)
    begun = entry if first is None else first
    session = own.get("run_id", begun.scope.session_id)
    user = entry.scope.user_id
    shown: dict[str, Any] = {
        "id": memory_id_of(entry),
        "memory": text,
        "hash": md5(text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": metadata_of(entry) or None,
        "score": None,
        "created_at": own.get("created_at", begun.ts),
        "updated_at": entry.ts if memory_id_of(entry) == entry.id else entry.recorded_at,
        "role": entry.role,
    }
    optional = {
        "user_id": None if user.startswith(OWNERLESS) else user,
        "run_id": None if session.startswith(_MINTED) else session,
        "agent_id": None if entry.scope.agent_id == AGENT else entry.scope.agent_id,
        "actor_id": entry.speaker,
        "expiration_date": own.get("expiration_date"),
    }
    return shown | {name: value for name, value in optional.items() if value is not None}


def added(entry: LedgerEntry, text: str) -> dict[str, Any]:
    return {"id": entry.id, "memory": text, "event": "ADD", "actor_id": entry.speaker, "role": entry.role}


def change(
    memory_id: str, entry: LedgerEntry, event: str, before: str | None, after: str | None, created_at: str
) -> dict[str, Any]:
    """A row of a memory's history."""
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


# -- facts --------------------------------------------------------------------------------------------


def fact_text(fact: Fact) -> str:
    value = fact.value if isinstance(fact.value, str) else canonical_text(fact.value)
    return f"{fact.fact_key}: {value}"


def fact_id_of(memory_id: str) -> tuple[str, str] | None:
    """The fact that an id names, and its evidence event; None if it names no fact."""
    fact_id, found, event_id = memory_id.partition(_FACT_AT)
    return (fact_id, event_id) if found and fact_id.startswith(("fct_", "fct-")) and event_id else None


def fact_json(fact: Fact, source: Mapping[str, Any], event_id: str) -> dict[str, Any]:
    """A fact in the shape of a memory, with all fields but the text taken from its evidence."""
    text = fact_text(fact)
    told = {
        "kind": "fact",
        "key": fact.fact_key,
        "value": fact.value,
        "status": fact.status,
        "confidence": fact.confidence,
        "sources": list(fact.sources),
    }
    return {
        **source,
        "id": f"{fact.fact_id}{_FACT_AT}{event_id}",
        "memory": text,
        "hash": md5(text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": {**(source.get("metadata") or {}), FACT: told},
    }
