"""JSON Schema: as a reference implementation reads it, and no schema that fetches, loops or explodes."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.errors import InvalidInput, TooLarge
from muniment.verify._json_schema import SCHEMA_NODES_MAX, read_schema
from products import for_each

SCALARS: st.SearchStrategy[Any] = st.sampled_from([None, True, False, 0, 1, 1.0, 2.5, -3, 0.3, "", "a", "ab", "abc"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "integer", "number", "object", "array", "null", "boolean"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    keywords = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        **{
            name: st.sampled_from([0, 1, 2.5])
            for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        },
        "multipleOf": st.sampled_from([1, 0.1, 0.5, 2]),
        **{name: st.integers(0, 2) for name in ("minLength", "maxLength", "minItems", "maxItems", "minProperties")},
        "pattern": st.sampled_from(["^a", "b$", "[bc]"]),
        **dict.fromkeys(
            ("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"), inner
        ),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several),
        **{name: st.integers(0, 2) for name in ("minContains", "maxContains", "maxProperties")},
        "uniqueItems": st.booleans(),
        "required": st.just(["a"]),
        "dependentRequired": st.just({"a": ["b"]}),
        **{
            name: st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
            for name in ("properties", "dependentSchemas")
        },
        "patternProperties": st.dictionaries(st.sampled_from(["[ab]", "^c"]), inner, max_size=2),
        "$ref": st.just("#/$defs/x"),
    }
    return st.sets(st.sampled_from(sorted(keywords)), max_size=4).flatmap(
        lambda names: st.fixed_dictionaries({name: keywords[name] for name in sorted(names)})
    )


SCHEMAS = st.recursive(st.booleans() | st.builds(dict), schemas, max_leaves=5).filter(
    lambda made: isinstance(made, dict)
)


@settings(max_examples=examples(120), deadline=None)
@given(SCHEMAS, VALUES)
def test_it_says_what_the_reference_says(schema: dict[str, Any], data: Any) -> None:
    schema = {**schema, "$defs": {"x": {"type": ["string", "array"], "maxLength": 1}}}
    wanted = jsonschema_rs.Draft202012Validator(schema).is_valid(data)
    assert (not read_schema(schema).issues(data)) == wanted


def test_a_recursive_schema_walks_down_the_document() -> None:
    tree = read_schema({"type": "object", "additionalProperties": {"$ref": "#"}})
    assert not tree.issues({"a": {"b": {}}})
    assert [issue.path for issue in tree.issues({"a": {"b": 1}})] == ["$.a.b"]
    anchored = read_schema({"items": {"$ref": "#n"}, "$defs": {"n": {"$anchor": "n", "type": "integer"}}})
    assert [issue.path for issue in anchored.issues([1, "x"])] == ["$[1]"]


DOUBLING = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)} | {"a60": {"type": "string"}}


@pytest.mark.soak
@for_each(
    ("schema", "data"),
    [
        ({"$ref": "#/$defs/a0", "$defs": DOUBLING}, "x"),
        ({"$ref": "#"}, 1),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1),
        ({"not": {"$ref": "#"}}, 1),
        ({"contains": {"allOf": [{"contains": True}] * 50}}, [[0] * 300] * 300),
    ],
)
def test_a_schema_bomb_ends_in_no_verdict(schema: dict[str, Any], data: Any) -> None:
    with pytest.raises(TooLarge):
        read_schema(schema).issues(data)


@for_each(
    "schema",
    [
        {"$ref": "https://example.org/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"unevaluatedProperties": False},
        {"$dynamicRef": "#x"},
        {"minLenght": 1},
        {"type": "text"},
        {"pattern": "(?=a)"},
        {"pattern": 1},
        {"items": [{}]},
        {"required": "a"},
        {"multipleOf": 0},
        {"properties": []},
        {"properties": {"a": 1}},
        {"enum": []},
        {"allOf": [{"minItems": -1}]},
        {"allOf": [{}] * (SCHEMA_NODES_MAX + 1)},
        {"const": "x" * 300_000},
    ],
)
def test_a_schema_that_is_wrong_or_too_much_is_refused_when_it_is_read(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        read_schema(schema)


def test_remarks_are_not_assertions() -> None:
    schema = read_schema({"title": "T", "format": "email", "x-order": 1, "default": 3, "examples": [1]})
    assert not schema.issues("not an email")
