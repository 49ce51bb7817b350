"""Working states from `state_patch` entries (MP-04), and what is left of one without some of them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muniment.contracts.packet import WorkingState
from muniment.core.canonical import short_id
from muniment.errors import InvalidRecord
from muniment.memory.facts.records import StoredState
from muniment.store.items import Change, Item, Rewritten
from muniment.store.ledger import CITING, STATE_PATCHED, LedgerEntry, named_events

__all__ = ["project_state", "state_id", "state_without"]

Lookup = Callable[[str], Item | None]

MERGED = ("slots", "constraints")
"""Objects, merged key by key; everything else is replaced."""


def state_id(run_id: str) -> str:
    return short_id("ws", run_id)


def project_state(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """The state with the patch merged in: null takes a key away, lists and texts replace."""
    if entry.metadata.get("event") != STATE_PATCHED:
        return []
    given = entry.metadata.get("patch")
    before = lookup(state_id(entry.scope.run_id))
    version = before.version + 1 if before else 1
    try:
        known = StoredState(state={}, origins={})
        if before is not None and before.body is not None:
            known = StoredState.from_wire(before.plain())
        state, origins = _merged(known, given if isinstance(given, dict) else {}, entry.id)
        WorkingState.from_wire(state | {"state_version": version})
    except InvalidRecord:  # not written by a run of ours: it says nothing about a state
        return []
    return [
        Change(
            id=state_id(entry.scope.run_id),
            kind="working_state",
            status="open",
            body={"state": state, "origins": origins},
            created_at=entry.recorded_at,
            trust=entry.trust,
            sources=(entry.id, *named_events(given)),
            user_id=entry.scope.user_id,
            agent_id=entry.scope.agent_id,
            session_id=entry.scope.session_id,
            run_id=entry.scope.run_id,
        )
    ]


def _merged(known: StoredState, patch: dict[str, Any], origin: str) -> tuple[dict[str, Any], dict[str, str]]:
    state, origins = dict(known.state), dict(known.origins)
    for name, value in patch.items():
        if name in MERGED and isinstance(value, dict):
            inner = state.get(name)
            merged = dict(inner) if isinstance(inner, dict) else {}
            for key, part in value.items():
                merged.pop(key, None)
                origins.pop(f"{name}.{key}", None)
                if part is not None:
                    merged[key] = part
                    origins[f"{name}.{key}"] = origin
            state[name] = merged
        elif value is None:
            state.pop(name, None)
            origins.pop(name, None)
        else:
            state[name] = value
            origins[name] = origin
    return state, origins


def state_without(item: Item, lost: frozenset[str]) -> Rewritten | None:
    """The run goes on: what lost patches set is gone, and each decision or tool result that named a lost event."""
    known = StoredState.from_wire(item.plain())
    state: dict[str, Any] = {}
    for name, value in known.state.items():
        if name in MERGED and isinstance(value, dict):
            state[name] = {key: part for key, part in value.items() if known.origins.get(f"{name}.{key}") not in lost}
        elif name in CITING and isinstance(value, list):
            kept = [part for part in value if not (isinstance(part, dict) and part.get(CITING[name]) in lost)]
            state |= {name: kept} if known.origins.get(name) not in lost else {}
        elif known.origins.get(name) not in lost:
            state[name] = value
    origins = {place: origin for place, origin in known.origins.items() if origin not in lost}
    return Rewritten({"state": state, "origins": origins}, item.status, item.trust)
