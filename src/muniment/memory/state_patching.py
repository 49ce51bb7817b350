"""A run's working state (MP-04): patched under an optimistic lock, read as it stands."""

from __future__ import annotations

from typing import Any, cast

from muniment.contracts.packet import WorkingState
from muniment.core.ports.engine import Reader, Transaction
from muniment.core.record import ValidationError, issues_of
from muniment.core.scope import Scope
from muniment.errors import InvalidInput, InvalidRecord, StaleState
from muniment.memory.facts.records import StoredState
from muniment.memory.facts.state_projection import state_id
from muniment.memory.patches import Decided, Writer, draft_patch, read_evidence, write_patches
from muniment.store.items import latest
from muniment.store.ledger import STATE_PATCHED, named_events

__all__ = ["patch_state", "read_state"]


def patch_state(writer: Writer, given: dict[str, Any], expected_version: int | None) -> WorkingState:
    """Merge a patch into the state; where a version is expected, only into that one."""
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
    """The patch as plain data, of the right types; null stands only where it takes a key away."""
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
    """The run's state, or None while nothing was patched. One that was forgotten is empty at its version."""
    item = latest(reader, state_id(scope.run_id))
    if item is None or item.user_id != scope.user_id:
        return None
    state = {} if item.body is None else StoredState.from_wire(item.plain()).state
    return WorkingState.from_wire(state | {"state_version": item.version})
