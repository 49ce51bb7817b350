"""A run's working state (MP-04): patched under an optimistic lock, and read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from muniment.contracts.packet import WorkingState
from muniment.core.canonical import short_id
from muniment.core.ports.engine import Reader, Transaction
from muniment.core.record import ValidationError, issues_of
from muniment.core.scope import Scope
from muniment.errors import InvalidInput, InvalidRecord, StaleState
from muniment.memory._fact_records import StoredState
from muniment.memory.patches import Decided, Writer, draft_patch, read_evidence, write_patches
from muniment.store.items import Change, Item, Rewritten, latest
from muniment.store.ledger import CITING, STATE_PATCHED, LedgerEntry, named_events

__all__ = ["patch_state", "project_state", "read_state", "state_id", "state_without"]

Lookup = Callable[[str], Item | None]
MERGED = ("slots", "constraints")
"""Objects merged key by key; everything else is replaced."""


def patch_state(writer: Writer, given: dict[str, Any], expected_version: int | None) -> WorkingState:
    """Merge a patch into the state, optionally only into an expected version."""
    if expected_version is not None and (isinstance(expected_version, bool) or not isinstance(expected_version, int)):
        raise InvalidInput("expected_version should be an integer", path="$.expected_version")
    patch = _checked(given)
    named = named_events(patch)

    def decide(tx: Transaction) -> Decided:
        current = read_state(tx, writer.scope)
        version = 0 if current is None else current.state_version
        if expected_version is not None and expected_version != version:
            raise StaleState(
                f"the state is at version {version}, not {expected_version}",
                path="$.expected_version",
                hint="read working_state() and patch again",
                details={"current_version": version, "expected_version": expected_version},
            )
        read_evidence(tx, writer.scope, named, "$.evidence")
        return Decided([draft_patch(STATE_PATCHED, "assistant", {"patch": patch})])

    return write_patches(writer, decide, lambda reader: cast("WorkingState", read_state(reader, writer.scope)))


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """The patch as plain data, with types checked; null is allowed only to remove a key."""
    if not given:
        raise InvalidInput("nothing to patch", path="$", hint="name at least one part of the state")
    if "state_version" in given:
        raise InvalidInput("state_version is counted, not set", path="$.state_version", hint="use expected_version")
    removed = {name: None for name, value in given.items() if value is None}
    kept = {name: value for name, value in given.items() if value is not None}
    try:
        state = WorkingState.model_validate(kept | {"state_version": 0})
    except ValidationError as error:
        raise InvalidRecord("not a valid working state", issues_of(error, given)) from None
    plain = state.to_wire()
    del plain["state_version"]
    return plain | removed


def read_state(reader: Reader, scope: Scope) -> WorkingState | None:
    """The run's state, or None if nothing was patched. A forgotten one is empty at its version."""
    item = latest(reader, state_id(scope.run_id))
    if item is None or item.user_id != scope.user_id:
        return None
    state = {} if item.body is None else StoredState.from_wire(item.plain()).state
    return WorkingState.from_wire(state | {"state_version": item.version})


# -- from the ledger ----------------------------------------------------------------------------------


def state_id(run_id: str) -> str:
    return short_id("ws", run_id)


def project_state(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """The state with the patch merged in: null removes a key, lists and texts replace."""
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
    except InvalidRecord:  # not written by one of our runs, so no state
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
    """The state without lost patches, and without decisions or tool results that named a lost event."""
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
