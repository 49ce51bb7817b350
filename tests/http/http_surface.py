"""What clients rely on of an OpenAPI document, as lines: addresses with what they take, schemas with their fields.

`tests/golden/http_surface.txt` is what `lines_of` made of the document when decision 0060 had taken away the operations
that serve no task of a remote caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Surface", "lines_of", "read_lines"]

Surface = dict[str, dict[str, str]]
"""By address or schema: its fields, each with its type; a `!` behind the name of one that must be given."""


def lines_of(document: dict[str, Any]) -> Iterator[str]:
    for name, fields in sorted(surface_of(document).items()):
        yield f"{name}: {'; '.join(f'{field} {kind}' for field, kind in sorted(fields.items()))}"


def read_lines(text: str) -> Surface:
    found = {}
    for line in text.splitlines():
        name, _, held = line.partition(": ")
        pairs = [each.partition(" ") for each in held.split("; ") if each]
        found[name] = {field: kind for field, _, kind in pairs}
    return found


def surface_of(document: dict[str, Any]) -> Surface:
    schemas, shared = document["components"]["schemas"], document["components"]["parameters"]
    found: Surface = {}
    for path, item in document["paths"].items():
        for method, told in item.items():
            fields: dict[str, str] = {}
            for given in told.get("parameters", ()):
                each = shared[given["$ref"].rpartition("/")[2]] if "$ref" in given else given
                fields[_field(f"{each['in']}.{each['name']}", each["required"])] = "given"
            fields |= _body(told, schemas)
            for status, answer in told["responses"].items():
                content = answer.get("content", {}).get("application/json")
                if content is not None:
                    fields[f"answer.{status}"] = _kind(_unpaged(content["schema"], schemas))
            found[f"{method.upper()} {path}"] = fields
    for name, schema in schemas.items():
        required = schema.get("required", ())
        fields = {_field(each, each in required): _kind(part) for each, part in schema.get("properties", {}).items()}
        found[f"schema {name}"] = fields
    return found


def _field(name: str, is_required: bool) -> str:
    return f"{name}!" if is_required else name


def _body(told: dict[str, Any], schemas: dict[str, Any]) -> dict[str, str]:
    """The names of what a body takes: how each is described may become more exact."""
    content = told.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return {}
    schema = content["schema"]
    schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    required = schema.get("required", ())
    return {_field(f"body.{each}", each in required): "given" for each in schema.get("properties", {})}


def _unpaged(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """A page stands for its items, whether it has a name or not."""
    name = schema.get("$ref", "").rpartition("/")[2]
    held = schemas.get(name, schema)
    if set(held.get("properties", ())) in ({"items"}, {"items", "next", "count"}):
        items: dict[str, Any] = held["properties"]["items"]
        return items
    return schema


_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _kind(schema: Any) -> str:
    """The type of a value, without its words, bounds and choices."""
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return "|".join(sorted({_kind(each) for each in schema[key]}))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    types = schema.get("type") or sorted({_KINDS[type(each)] for each in values})
    if types == "array":
        parts = schema.get("prefixItems") or [schema.get("items", {})]
        return f"[{','.join(_kind(each) for each in parts)}]"
    if types == "object" and isinstance(schema.get("additionalProperties"), dict):
        inner = _kind(schema["additionalProperties"])
        return "object" if inner == "any" else f"{{{inner}}}"
    return types if isinstance(types, str) else "|".join(sorted(types)) or "any"
