"""JSON Schema (2020-12) over plain data, bounded: no schema can make it fetch, loop or explode.

All assertions are supported except `unevaluated*` and dynamic references. `$ref` only resolves within the same schema;
`format` is an annotation, as in the standard. Unknown keywords, and likely misspellings, are refused when the schema is
read. Work is counted in steps: beyond `STEPS_MAX` the verdict is `TooLarge`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from fractions import Fraction
from typing import Any
from urllib.parse import unquote

from muniment.core.canonical import canonical_text, child_path
from muniment.core.regex import compile_pattern
from muniment.errors import InvalidInput, Issue, TooLarge

__all__ = ["ISSUES_MAX", "SCHEMA_NODES_MAX", "STEPS_MAX", "Schema", "read_schema"]

SCHEMA_NODES_MAX = 5000
SCHEMA_DEPTH_MAX = 64
SCHEMA_CHARS_MAX = 256 * 1024
STEPS_MAX = 200_000
WALK_DEPTH_MAX = 250
"""Maximum depth of nested schemas on the way to one value, references included."""
ISSUES_MAX = 20

_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_ONE = ("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else", "additionalItems")
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_PLAIN = ("type", "enum", "const", "pattern", "uniqueItems", "required", "dependentRequired", "maxContains", "$ref")
_REMARKS = (
    *("$schema", "$id", "$comment", "$anchor", "$vocabulary", "title", "description", "default", "examples"),
    *("deprecated", "readOnly", "writeOnly", "format", "contentEncoding", "contentMediaType", "contentSchema"),
    "discriminator",
)
_REFUSED = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$dynamicAnchor", "$recursiveRef")
_KNOWN = frozenset((*_ONE, *_MANY, *_NAMED, *_COUNTS, *_NUMBERS, *_PLAIN, *_REMARKS))


# -- reading a schema ---------------------------------------------------------------------------------


class Schema:
    """A schema that has been checked."""

    def __init__(self, root: Any, anchors: dict[str, Any], allowed: dict[int, frozenset[str]]) -> None:
        self.root = root
        self.anchors = anchors
        self.allowed = allowed

    def issues(self, data: Any) -> list[Issue]:
        """Return at most `ISSUES_MAX` errors in the data; raise `TooLarge` if that takes too many steps."""
        found: list[Issue] = []
        for issue in _Check(self).walk(self.root, data, "$", 0):
            found.append(issue)
            if len(found) >= ISSUES_MAX:
                break
        return found


def read_schema(root: Any) -> Schema:
    """Check a whole schema once; raise `InvalidInput` with the place of an error."""
    if len(canonical_text(root)) > SCHEMA_CHARS_MAX:
        raise TooLarge(f"a schema of more than {SCHEMA_CHARS_MAX} characters", path="$", hint="a smaller schema")
    reader = _SchemaReader(root)
    reader.read(root, "$", 0)
    for path, reference in reader.references:
        if not _is_schema(reader.resolve(reference)):
            hint = "#/$defs/NAME: a schema refers to its own places only"
            raise InvalidInput(f"a reference to {reference!r} that leads nowhere", path=path, hint=hint)
    return Schema(root, reader.anchors, reader.allowed)


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


class _SchemaReader:
    def __init__(self, root: Any) -> None:
        self.root = root
        self.nodes = 0
        self.anchors: dict[str, Any] = {}
        self.allowed: dict[int, frozenset[str]] = {}
        self.references: list[tuple[str, str]] = []

    def read(self, schema: Any, path: str, depth: int) -> None:
        self.nodes += 1
        if self.nodes > SCHEMA_NODES_MAX or depth > SCHEMA_DEPTH_MAX:
            raise TooLarge("a schema with too many parts, or too deep", path=path, hint="a smaller schema")
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise InvalidInput("a schema is an object, true or false", path=path)
        for key, value in schema.items():
            here = child_path(path, key)
            _check_keyword(key, here)
            self.read_parts(key, value, here, depth)
        self.note(schema, path)

    def read_parts(self, key: str, value: Any, path: str, depth: int) -> None:
        if key == "items" and isinstance(value, list):
            raise InvalidInput("a list of item schemas", path=path, hint="prefixItems, as 2020-12 calls it")
        if key in _ONE:
            self.read(value, path, depth + 1)
        elif key in _MANY:
            if not isinstance(value, list) or not value:
                raise InvalidInput("a list of schemas is wanted", path=path)
            for index, part in enumerate(value):
                self.read(part, child_path(path, index), depth + 1)
        elif key in _NAMED:
            if not isinstance(value, dict):
                raise InvalidInput("an object of schemas is wanted", path=path)
            for name, part in value.items():
                if key == "patternProperties":
                    compile_pattern(name)
                self.read(part, child_path(path, name), depth + 1)
        else:
            _check_value(key, value, path)

    def note(self, schema: dict[str, Any], path: str) -> None:
        if "enum" in schema or "const" in schema:
            lists = [schema["enum"]] if "enum" in schema else []
            lists += [[schema["const"]]] if "const" in schema else []
            kept = [frozenset(canonical_text(value) for value in values) for values in lists]
            self.allowed[id(schema)] = frozenset.intersection(*kept)
        if isinstance(schema.get("$anchor"), str):
            self.anchors[schema["$anchor"]] = schema
        if isinstance(schema.get("$ref"), str):
            self.references.append((child_path(path, "$ref"), schema["$ref"]))

    def resolve(self, reference: str) -> Any:
        return _resolve(self.root, self.anchors, reference)


def _resolve(root: Any, anchors: dict[str, Any], reference: str) -> Any:
    if not reference.startswith("#"):
        return None
    if not reference.startswith("#/"):
        return root if reference == "#" else anchors.get(reference[1:])
    here = root
    for part in reference[2:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict):
            here = here.get(name)
        elif isinstance(here, list) and name.isdecimal() and int(name) < len(here):
            here = here[int(name)]
        else:
            return None
    return here


def _check_keyword(key: str, path: str) -> None:
    if key in _REFUSED:
        raise InvalidInput(f"the keyword {key!r} is not supported", path=path)
    if key in _KNOWN:
        return
    close = get_close_matches(key, _KNOWN, n=1, cutoff=0.8)
    if close:
        raise InvalidInput(f"unknown keyword {key!r}", path=path, hint=f"did you mean {close[0]!r}?")


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _check_value(key: str, value: Any, path: str) -> None:
    wanted = None
    if key in (*_COUNTS, "maxContains"):
        wanted = None if _is_count(value) else "a count"
    elif key in _NUMBERS:
        wanted = None if _is_number(value) and (key != "multipleOf" or value > 0) else "a number"
    elif key == "type":
        names = value if isinstance(value, list) else [value]
        wanted = None if names and all(name in _TYPES for name in names) else f"one of {', '.join(_TYPES)}"
    elif key == "enum":
        wanted = None if isinstance(value, list) and value else "a list of values"
    elif key == "required":
        wanted = None if _is_strings(value) else "a list of names"
    elif key == "dependentRequired":
        wanted = None if isinstance(value, dict) and all(map(_is_strings, value.values())) else "lists of names"
    elif key == "uniqueItems":
        wanted = None if isinstance(value, bool) else "true or false"
    elif key in ("pattern", "$ref"):
        wanted = None if isinstance(value, str) else "a string"
        if key == "pattern" and wanted is None:
            compile_pattern(value)
    if wanted is not None:
        raise InvalidInput(f"{key}: {wanted} is wanted", path=path)


# -- checking data ------------------------------------------------------------------------------------


def type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


_Found = Iterator[Issue]


class _Check:
    """One traversal of a document by a schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.steps = 0
        self.references = 0
        self.by_type: dict[str, Callable[[dict[str, Any], Any, str, int], _Found]] = {
            "integer": self.number,
            "number": self.number,
            "string": self.string,
            "array": self.array,
            "object": self.object,
        }

    def spend(self, steps: int = 1) -> None:
        self.steps += steps
        if self.steps > STEPS_MAX:
            raise TooLarge("checking this document against the schema takes too many steps", hint="a smaller schema")

    def fits(self, schema: Any, data: Any, depth: int) -> bool:
        return next(self.walk(schema, data, "$", depth), None) is None

    def walk(self, schema: Any, data: Any, path: str, depth: int) -> _Found:
        self.spend()
        if depth > WALK_DEPTH_MAX:
            raise TooLarge("the schema refers to itself without end, or the document is too deep", path=path)
        if isinstance(schema, bool):
            if not schema:
                yield Issue(path, "nothing is allowed here", "false")
            return
        if "$ref" in schema:
            target = _resolve(self.schema.root, self.schema.anchors, schema["$ref"])
            yield from self.walk(target, data, path, depth + 1)
        yield from self.values(schema, data, path)
        check = self.by_type.get(type_of(data))
        if check is not None:
            yield from check(schema, data, path, depth + 1)
        yield from self.combined(schema, data, path, depth + 1)

    def values(self, schema: dict[str, Any], data: Any, path: str) -> _Found:
        if "type" in schema:
            names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            kind = type_of(data)
            if kind not in names and not (kind == "integer" and "number" in names):
                yield Issue(path, f"{' or '.join(names)} is wanted, found {kind}", "type")
        allowed = self.schema.allowed.get(id(schema))
        if allowed is not None:
            text = canonical_text(data)  # `1` and `1.0` are equal, `true` is neither
            self.spend(len(text) // 256)
            if text not in allowed:
                yield Issue(path, "not an allowed value", "const" if "const" in schema else "enum")

    def number(self, schema: dict[str, Any], data: float, path: str, _: int) -> _Found:
        if "minimum" in schema and data < schema["minimum"]:
            yield Issue(path, f"less than {schema['minimum']}", "minimum")
        if "maximum" in schema and data > schema["maximum"]:
            yield Issue(path, f"more than {schema['maximum']}", "maximum")
        if "exclusiveMinimum" in schema and data <= schema["exclusiveMinimum"]:
            yield Issue(path, f"not more than {schema['exclusiveMinimum']}", "exclusiveMinimum")
        if "exclusiveMaximum" in schema and data >= schema["exclusiveMaximum"]:
            yield Issue(path, f"not less than {schema['exclusiveMaximum']}", "exclusiveMaximum")
        if "multipleOf" in schema and (_exact(data) / _exact(schema["multipleOf"])).denominator != 1:
            yield Issue(path, f"not a multiple of {schema['multipleOf']}", "multipleOf")

    def string(self, schema: dict[str, Any], data: str, path: str, _: int) -> _Found:
        yield from _sizes(schema, len(data), path, "Length", "characters")
        if "pattern" in schema and compile_pattern(schema["pattern"]).search(data) is None:
            yield Issue(path, f"does not match {schema['pattern']!r}", "pattern")

    def array(self, schema: dict[str, Any], data: list[Any], path: str, depth: int) -> _Found:
        yield from _sizes(schema, len(data), path, "Items", "items")
        first = schema.get("prefixItems", [])
        for index, (part, item) in enumerate(zip(first, data, strict=False)):
            yield from self.walk(part, item, child_path(path, index), depth)
        if "items" in schema:
            for index, item in enumerate(data[len(first) :], len(first)):
                yield from self.walk(schema["items"], item, child_path(path, index), depth)
        if "contains" in schema:
            count = sum(self.fits(schema["contains"], item, depth) for item in data)
            if not schema.get("minContains", 1) <= count <= schema.get("maxContains", count):
                yield Issue(path, f"{count} items of the wanted kind", "contains")
        if schema.get("uniqueItems"):
            texts = [canonical_text(item) for item in data]
            self.spend(sum(map(len, texts)) // 256)
            if len(set(texts)) < len(texts):
                yield Issue(path, "items that stand twice", "uniqueItems")

    def object(self, schema: dict[str, Any], data: dict[str, Any], path: str, depth: int) -> _Found:
        yield from _sizes(schema, len(data), path, "Properties", "properties")
        for name in schema.get("required", ()):
            if name not in data:
                yield Issue(child_path(path, name), "missing", "required")
        for name, others in schema.get("dependentRequired", {}).items():
            for other in others if name in data else ():
                if other not in data:
                    yield Issue(child_path(path, other), f"missing beside {name!r}", "dependentRequired")
        for name, part in schema.get("dependentSchemas", {}).items():
            if name in data:
                yield from self.walk(part, data, path, depth)
        for name, value in data.items():
            here = child_path(path, name)
            if "propertyNames" in schema and not self.fits(schema["propertyNames"], name, depth):
                yield Issue(here, "a name that is not allowed", "propertyNames")
            for part in self.parts_for(schema, name):
                yield from self.walk(part, value, here, depth)

    def parts_for(self, schema: dict[str, Any], name: str) -> Iterator[Any]:
        """The schemas that apply to a property."""
        known = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        self.spend(len(patterns))
        matching = [part for pattern, part in patterns.items() if compile_pattern(pattern).search(name) is not None]
        if name in known:
            yield known[name]
        yield from matching
        if name not in known and not matching and "additionalProperties" in schema:
            yield schema["additionalProperties"]

    def combined(self, schema: dict[str, Any], data: Any, path: str, depth: int) -> _Found:
        for part in schema.get("allOf", ()):
            yield from self.walk(part, data, path, depth)
        if "anyOf" in schema and not any(self.fits(part, data, depth) for part in schema["anyOf"]):
            yield Issue(path, "fits none of the alternatives", "anyOf")
        if "oneOf" in schema:
            count = sum(self.fits(part, data, depth) for part in schema["oneOf"])
            if count != 1:
                yield Issue(path, f"fits {count} of the alternatives, not one", "oneOf")
        if "not" in schema and self.fits(schema["not"], data, depth):
            yield Issue(path, "fits what it must not fit", "not")
        if "if" in schema:
            branch = "then" if self.fits(schema["if"], data, depth) else "else"
            if branch in schema:
                yield from self.walk(schema[branch], data, path, depth)


def _sizes(schema: dict[str, Any], size: int, path: str, noun: str, unit: str) -> _Found:
    least, most = schema.get(f"min{noun}"), schema.get(f"max{noun}")
    if least is not None and size < least:
        yield Issue(path, f"{size} {unit}, fewer than {least}", f"min{noun}")
    if most is not None and size > most:
        yield Issue(path, f"{size} {unit}, more than {most}", f"max{noun}")


def _exact(number: float) -> Fraction:
    """The number as written, so that 0.3 is a multiple of 0.1."""
    return Fraction(json.dumps(number)) if isinstance(number, float) else Fraction(number)
