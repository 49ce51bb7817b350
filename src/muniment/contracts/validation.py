"""Does a document fit its contract, and which of its keys does the contract not know? (X-04, X-08)"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import ValidationError

from muniment.contracts.kinds import record_of
from muniment.contracts.schemas import schema_of
from muniment.core.canonical import child_path
from muniment.core.record import issues_of
from muniment.errors import Issue

__all__ = ["unknown_keys", "validate"]

# Keys that no document lists and that we write ourselves into open objects, by schema definition.
_OWN_KEYS: dict[str, frozenset[str]] = {
    "CompactionSnapshot": frozenset({"budgets", "previous_snapshot_id", "deltas", "cursor"}),  # CS-11, CS-12
    "SnapshotState": frozenset({"next_actions", "open_question_refs"}),  # CS-11, CS-12
    "Claim": frozenset({"made_by", "between", "changed_by", "depends_on", "reason", "refuted_by"}),  # CS-02
    "ClaimConflict": frozenset({"status", "claim_ids", "made_by", "changed_by", "resolution"}),  # CS-02
    "RunFailure": frozenset({"fingerprint", "count", "first_by", "last_by"}),
    "EvidencePointer": frozenset({"corpus_id", "quote_hash"}),  # CS-06
    "RunBlock": frozenset({"attempt"}),  # RC-20: 1 and how many attempts at the task had failed before
    "RunConfig": frozenset({"seed"}),  # RC-20: for whoever samples
    "ExperimentBlock": frozenset({"arms"}),  # RC-16: rules that the run tried or left out
    "WorkingState": frozenset({"memory_hints", "claims"}),  # RC-09: where hints stand in a packet; claims of the run
}


def validate(kind: str, data: Any) -> list[Issue]:
    """Everything that is wrong with plain data as a document of this kind; empty when it is valid."""
    try:
        record_of(kind).model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        return issues_of(error, data)
    return []


def unknown_keys(kind: str, data: Any) -> list[Issue]:
    """Keys that an open object keeps but its contract does not list: most often a slip of the pen.

    Free-form objects (slots, content, args, …) know no keys, so nothing in them is unknown. Keys of closed objects
    are `validate`'s to refuse.
    """
    schema = _schema(kind)
    found: list[Issue] = []
    _walk(schema, data, "$", kind, schema.get("$defs", {}), found)
    return found


@cache
def _schema(kind: str) -> dict[str, Any]:
    return schema_of(kind)  # read, never changed


def _walk(schema: Any, data: Any, path: str, name: str, definitions: dict[str, Any], found: list[Issue]) -> None:
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = definitions[name]
    for branch in schema.get("anyOf", ()):
        _walk(branch, data, path, name, definitions, found)
    if isinstance(data, dict):
        _walk_object(schema, data, path, name, definitions, found)
    elif isinstance(data, list):
        for index, item in enumerate(data):
            _walk(schema.get("items"), item, child_path(path, index), name, definitions, found)


def _walk_object(
    schema: dict[str, Any], data: dict[str, Any], path: str, name: str, definitions: dict[str, Any], found: list[Issue]
) -> None:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for key, value in data.items():
        here = child_path(path, key)
        if key in known:
            _walk(known[key], value, here, name, definitions, found)
        elif isinstance(others, dict):
            _walk(others, value, here, name, definitions, found)
        elif known and others is True and key not in _OWN_KEYS.get(name, ()):
            close = get_close_matches(key, [other for other in known if other not in data], n=1, cutoff=0.7)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            found.append(Issue(here, f"a key the contract does not know{hint}", "unknown_key"))
