"""JSON Schema (draft 2020-12) of every kind, generated from its record (X-02).

The committed files in `schemas/` are `schema_text` of each kind; a test compares them with the code.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from muniment.contracts.kinds import record_of

__all__ = ["DIALECT", "RecordSchema", "schema_id", "schema_of", "schema_text", "without_json_values"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class RecordSchema(GenerateJsonSchema):
    """pydantic's generator without titles and defaults: a default fills nothing in (X-03)."""

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
def _generated(kind: str) -> str:
    made = record_of(kind).model_json_schema(schema_generator=RecordSchema, by_alias=True, mode="validation")
    made = without_json_values(made)
    definitions = made.pop("$defs", {})
    definitions.pop("JsonValue", None)
    body: dict[str, Any] = {"$schema": DIALECT, "$id": schema_id(kind), **made}
    if definitions:
        body["$defs"] = {name: definitions[name] for name in sorted(definitions)}
    return json.dumps(body, ensure_ascii=False, indent=2) + "\n"


def without_json_values(node: Any) -> Any:
    """Replace references to "any JSON value" by the empty schema, which says the same."""
    if isinstance(node, dict):
        if str(node.get("$ref")).endswith("/JsonValue"):
            return {key: value for key, value in node.items() if key != "$ref"} or True
        return {key: without_json_values(value) for key, value in node.items()}
    if isinstance(node, list):
        return [without_json_values(item) for item in node]
    return node


def schema_of(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind, as plain data of the caller's own."""
    made: dict[str, Any] = json.loads(_generated(kind))
    return made


def schema_text(kind: str) -> str:
    """The JSON Schema of a kind as the text of its committed file."""
    return _generated(kind)
