"""JSON Schemas of tools, generated from the records of their arguments and answers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from muniment.contracts.schemas import RecordSchema, without_json_values

if TYPE_CHECKING:
    from muniment.core.record import Record

__all__ = ["lean_schema", "schema_of"]


@cache
def schema_of(record: type[Record]) -> dict[str, Any]:
    """The schema of a record, with all its references inlined. Callers must not change it."""
    made: dict[str, Any] = without_json_values(record.model_json_schema(schema_generator=RecordSchema, by_alias=True))
    parts = made.pop("$defs", {})
    parts.pop("JsonValue", None)
    whole = _spelled(made | ({"$defs": parts} if parts else {}))
    assert isinstance(whole, dict)
    return whole


def _spelled(node: Any) -> Any:
    """Normalize a schema for all clients: "anything" is an empty object, and an array's length is not a string's."""
    if node is True:
        return {}
    if isinstance(node, list):
        return [_spelled(each) for each in node]
    if not isinstance(node, dict):
        return node
    renamed = {"maxLength": "maxItems"} if node.get("type") == "array" else {}
    return {renamed.get(key, key): _spelled(each) for key, each in node.items()}


_CHECKED = ("pattern", "minLength", "maxLength", "minItems", "maxItems", "title")
"""Constraints that the server checks and reports, and that a model does not need for its choices."""


def lean_schema(record: type[Record], shown: tuple[str, ...]) -> dict[str, Any]:
    """A compact schema of a record with only these of its properties."""
    whole = schema_of(record)
    properties = {name: _bare(whole["properties"][name]) for name in shown}
    required = [name for name in whole.get("required", ()) if name in shown]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _bare(node: Any) -> Any:
    if isinstance(node, list):
        return [_bare(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: _bare(each) for key, each in node.items() if key not in _CHECKED}
