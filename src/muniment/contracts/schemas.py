"""The JSON Schema (draft 2020-12) of every kind, generated from its record, and validation of documents.

The committed files in `schemas/` are the `schema_text` of each kind; a test compares them with the code.
"""

from __future__ import annotations

import json
from copy import deepcopy
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from muniment.contracts.kinds import record_of
from muniment.core.canonical import child_path
from muniment.core.record import issues_of
from muniment.errors import Issue

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class RecordSchema(GenerateJsonSchema):
    """pydantic's generator without titles and defaults, as defaults are never filled in (X-03)."""

    schema_dialect = DIALECT

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        made.pop("title", None)
        made["additionalProperties"] = schema["cls"].model_config.get("extra") == "allow"
        order = ("description", "type", "additionalProperties", "required", "properties")
        return {key: made[key] for key in order if key in made}

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:  # noqa: ARG002
        return value  # declaration order is the documents' order, and as deterministic


def schema_id(kind: str) -> str:
    return f"urn:muniment:schema:{kind}"


@cache
def schema_text(kind: str) -> str:
    """Return the JSON Schema of a kind as the text of its committed file."""
    made = record_of(kind).model_json_schema(schema_generator=RecordSchema, by_alias=True, mode="validation")
    made = without_json_values(made)
    definitions = made.pop("$defs", {})
    definitions.pop("JsonValue", None)
    body: dict[str, Any] = {"$schema": DIALECT, "$id": schema_id(kind), **made}
    if definitions:
        body["$defs"] = {name: definitions[name] for name in sorted(definitions)}
    return json.dumps(body, ensure_ascii=False, indent=2) + "\n"


def without_json_values(node: Any) -> Any:
    """Replace references to "any JSON value" by the equivalent empty schema."""
    if isinstance(node, dict):
        if str(node.get("$ref")).endswith("/JsonValue"):
            return {key: value for key, value in node.items() if key != "$ref"} or True
        return {key: without_json_values(value) for key, value in node.items()}
    if isinstance(node, list):
        return [without_json_values(item) for item in node]
    return node


@cache
def _parsed_schema(kind: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(schema_text(kind))
    return made


def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind, as plain data that the caller may change."""
    return deepcopy(_parsed_schema(kind))


# -- validation -----------------------------------------------------------------------------------------


# Keys that no document lists and that we write ourselves into open objects, by schema definition.
_OWN_KEYS: dict[str, frozenset[str]] = {
    "CompactionSnapshot": frozenset({"budgets", "previous_snapshot_id", "deltas", "cursor"}),  # CS-11, CS-12
    "SnapshotState": frozenset({"next_actions", "open_question_refs"}),  # CS-11, CS-12
    "Claim": frozenset({"made_by", "between", "changed_by", "depends_on", "reason", "refuted_by"}),  # CS-02
    "ClaimConflict": frozenset({"status", "claim_ids", "made_by", "changed_by", "resolution"}),  # CS-02
    "RunFailure": frozenset({"fingerprint", "count", "first_by", "last_by"}),
    "EvidencePointer": frozenset({"corpus_id", "quote_hash"}),  # CS-06
    "RunBlock": frozenset({"attempt"}),  # RC-20: 1 and how many attempts at the task had failed before
    "RunConfig": frozenset({"seed"}),  # RC-20: for samplers
    "ExperimentBlock": frozenset({"arms"}),  # RC-16: rules that the run tried or left out
    "WorkingState": frozenset({"memory_hints", "claims"}),  # RC-09: the place of hints in a packet; claims of the run
}


def validate(kind: str, data: Any) -> list[Issue]:
    """Return all faults of plain data as a document of this kind; empty when it is valid."""
    try:
        record_of(kind).model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        return issues_of(error, data)
    return []


def unknown_keys(kind: str, data: Any) -> list[Issue]:
    """Return keys that an open object keeps but its contract does not list: usually typos.

    Free-form objects (slots, content, args, …) have no listed keys, so nothing in them is unknown. Unknown keys of
    closed objects are refused by `validate`.
    """
    schema = _parsed_schema(kind)
    found: list[Issue] = []
    _walk(schema, data, "$", kind, schema.get("$defs", {}), found)
    return found


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
