"""Shapes: the wire form of a Python type, in both directions, and its JSON Schema.

Records keep their own form (`to_wire`, `from_wire`, their own schemas). Named tuples and data classes are objects of
their fields. `shape_of` finds a shape from the annotation of a method, so nothing is described twice.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache, cached_property, partial
from os import PathLike
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter
from pydantic.json_schema import DefsRef, JsonSchemaValue
from pydantic_core import core_schema

from muniment.contracts.schemas import RecordSchema
from muniment.core.listing import Listing
from muniment.core.record import JsonValue, Record
from muniment.errors import InvalidInput, InvalidRecord
from muniment.surfaces.operations.signatures import field_words, fields_of

__all__ = [
    "Components",
    "Fields",
    "Listed",
    "Plain",
    "Shape",
    "generated",
    "named_row",
    "register",
    "shape_of",
    "wire_shape",
]

Components = dict[str, Any]
"""Named schemas, collected as schemas are requested; references point into `#/components/schemas/`."""

REF = "#/components/schemas/{model}"


class Shape:
    """A plain JSON value of some schema, sent unchanged."""

    def encode(self, value: Any) -> Any:
        return value

    def decode(self, plain: Any) -> Any:
        return plain

    def schema(self, components: Components) -> dict[str, Any]:  # noqa: ARG002
        return {}


class Plain(Shape):
    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = dict(schema)

    def schema(self, components: Components) -> dict[str, Any]:  # noqa: ARG002
        return dict(self._schema)


class OfRecord(Shape):
    def __init__(self, cls: type[Record]) -> None:
        self._cls = cls

    def encode(self, value: Any) -> Any:
        return value.to_wire()

    def decode(self, plain: Any) -> Any:
        return self._cls.from_wire(plain)

    def schema(self, components: Components) -> dict[str, Any]:
        return generated(self._cls, components)


class Listed(Shape):
    """A list, a tuple of any length or an iterator; `make` builds the local type."""

    def __init__(self, inner: Shape, make: Callable[[Iterable[Any]], Any]) -> None:
        self.inner = inner
        self._make = make

    def encode(self, value: Any) -> Any:
        return [self.inner.encode(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]

    def decode(self, plain: Any) -> Any:
        return self._make(self.inner.decode(each) for each in plain)

    def schema(self, components: Components) -> dict[str, Any]:
        return {"type": "array", "items": self.inner.schema(components)}


class Row(Shape):
    """A tuple of some parts, each with its own type."""

    def __init__(self, parts: Sequence[Shape]) -> None:
        self._parts = parts

    def encode(self, value: Any) -> Any:
        return [part.encode(each) for part, each in zip(self._parts, value, strict=True)]

    def decode(self, plain: Any) -> Any:
        return tuple(part.decode(each) for part, each in zip(self._parts, plain, strict=True))

    def schema(self, components: Components) -> dict[str, Any]:
        count = len(self._parts)
        prefix = [part.schema(components) for part in self._parts]
        return {"type": "array", "prefixItems": prefix, "items": {}, "minItems": count, "maxItems": count}


class NamedRow(Row):
    """A tuple sent as an object, its parts under names."""

    def __init__(self, names: Sequence[str], parts: Sequence[Shape]) -> None:
        super().__init__(parts)
        self._names = names

    def encode(self, value: Any) -> Any:
        return dict(zip(self._names, super().encode(value), strict=True))

    def decode(self, plain: Any) -> Any:
        return super().decode([plain[name] for name in self._names])

    def schema(self, components: Components) -> dict[str, Any]:
        parts = [part.schema(components) for part in self._parts]
        named = dict(zip(self._names, parts, strict=True))
        return {"type": "object", "required": list(self._names), "properties": named}


def named_row(names: Sequence[str], hint: Any) -> NamedRow:
    return NamedRow(names, [shape_of(each) for each in get_args(hint)])


class Fields(Shape):
    """An object of named parts: a named tuple, a data class, or what `make` builds from the parts."""

    def __init__(
        self,
        name: str,
        parts: Mapping[str, Shape] | Callable[[], Mapping[str, Shape]],
        make: Callable[..., Any],
        doc: str = "",
    ) -> None:
        self._name, self._given, self._make, self._doc = name, parts, make, doc

    @cached_property
    def _parts(self) -> Mapping[str, Shape]:
        """Resolve the parts on first use: a type may contain itself."""
        return self._given() if callable(self._given) else self._given

    def encode(self, value: Any) -> Any:
        return {name: part.encode(getattr(value, name)) for name, part in self._parts.items()}

    def decode(self, plain: Any) -> Any:
        if not isinstance(plain, dict):
            raise InvalidInput(f"wanted an object for {self._name}")
        return self._make(**{name: part.decode(plain.get(name)) for name, part in self._parts.items()})

    def schema(self, components: Components) -> dict[str, Any]:
        if self._name not in components:
            components[self._name] = {}  # so that it may refer to itself
            described = {"description": self._doc} if self._doc else {}
            components[self._name] = {
                **described,
                "type": "object",
                "required": list(self._parts),
                "properties": {name: part.schema(components) for name, part in self._parts.items()},
            }
        return {"$ref": REF.format(model=self._name)}


class OneOf(Shape):
    """A value of one of several types: the first that fits, in the order given."""

    def __init__(self, choices: Sequence[tuple[Any, Shape]]) -> None:
        self._choices = choices

    def encode(self, value: Any) -> Any:
        if value is None:
            return None
        found = next((shape for hint, shape in self._choices if _is_of(value, hint)), None)
        return value if found is None else found.encode(value)

    def decode(self, plain: Any) -> Any:
        if plain is None:
            return None
        *first, last = [shape for _, shape in self._choices]
        for shape in first:
            try:
                return shape.decode(plain)
            except InvalidRecord:
                continue
        return last.decode(plain)

    def schema(self, components: Components) -> dict[str, Any]:
        made = [shape.schema(components) for _, shape in self._choices]
        if any(each == {} for each in made):
            return {}
        return made[0] if len(made) == 1 else _told_apart(made, components)


class Mapped(Shape):
    """An object with names as keys and values of one type."""

    def __init__(self, inner: Shape) -> None:
        self._inner = inner

    def encode(self, value: Any) -> Any:
        return {name: self._inner.encode(each) for name, each in value.items()}

    def decode(self, plain: Any) -> Any:
        return {name: self._inner.decode(each) for name, each in plain.items()}

    def schema(self, components: Components) -> dict[str, Any]:
        inner = self._inner.schema(components)
        return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}


class Paired(Shape):
    """A mapping whose keys are not names: a list of pairs, in the order of the keys."""

    def __init__(self, key: Shape, inner: Shape) -> None:
        self._pairs = Listed(Row((key, inner)), dict)

    def encode(self, value: Any) -> Any:
        return self._pairs.encode(sorted(value.items()))

    def decode(self, plain: Any) -> Any:
        return self._pairs.decode(plain)

    def schema(self, components: Components) -> dict[str, Any]:
        return self._pairs.schema(components)


_NOT_SENT = (PathLike, Callable)
"""Types that a caller may pass locally but not over the wire, if there is an alternative."""
_SPECIAL: dict[Any, Shape] = {}
_PLAIN: dict[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    types.NoneType: {"type": "null"},
    dict: {"type": "object"},
    list: {"type": "array", "items": {}},
    datetime: {"type": "string", "format": "date-time"},
}
_MAKERS: dict[Any, Callable[[Iterable[Any]], Any]] = {list: list, Iterator: iter, frozenset: frozenset}


def register(cls: Any, shape: Shape) -> None:
    """Register a shape for a type."""
    _SPECIAL[cls] = shape


@cache
def shape_of(hint: Any) -> Shape:
    """The shape of an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SPECIAL or origin in _SPECIAL:
        return _SPECIAL[hint if hint in _SPECIAL else origin]
    if hint in _PLAIN:
        return Plain(_PLAIN[hint])
    if hint is Any or hint is JsonValue:
        return Shape()
    if origin is Annotated:
        return _annotated(hint, arguments[0])
    if origin is Literal:
        return Plain(enum_of(arguments))
    if origin in (Union, types.UnionType):
        return OneOf([(each, shape_of(each)) for each in arguments if get_origin(each) not in _NOT_SENT])
    if isinstance(hint, type) and issubclass(hint, Record):
        return OfRecord(hint)
    if isinstance(hint, type) and (hasattr(hint, "_fields") or is_dataclass(hint)):
        parts = partial(_parts_of, hint)
        return Fields(hint.__name__, parts, hint, (hint.__doc__ or "").partition("\n")[0])
    return _container(hint, origin, arguments)


def _parts_of(cls: type) -> dict[str, Shape]:
    return {name: shape_of(hint) for name, hint in fields_of(cls).items()}


def _container(hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Shape:
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is ...):
        return Row([shape_of(each) for each in arguments])
    if origin in (list, tuple, frozenset, Iterator, Iterable, Sequence, Listing):
        return Listed(shape_of(arguments[0]), _MAKERS.get(origin, tuple))
    if origin in (dict, Mapping) and get_origin(arguments[0]) is tuple:
        return Paired(shape_of(arguments[0]), shape_of(arguments[1]))
    if origin in (dict, Mapping):
        return Mapped(shape_of(arguments[1]))
    if hint is Mapping:
        return Plain({"type": "object"})
    raise TypeError(f"no shape for {hint!r}")


def _annotated(hint: Any, inner: Any) -> Shape:
    """A constrained plain value, or a choice of records."""
    if get_origin(inner) in (Union, types.UnionType):
        return OneOf([(each, shape_of(each)) for each in get_args(inner)])
    return Plain(generated(hint, {}))


def enum_of(values: Sequence[Any]) -> dict[str, Any]:
    """One of these values, of their common type."""
    kinds = {_PLAIN[type(each)]["type"] for each in values}
    return ({"type": kinds.pop()} if len(kinds) == 1 else {}) | {"enum": list(values)}


def _told_apart(choices: list[dict[str, Any]], components: Components) -> dict[str, Any]:
    """A choice among schemas; if all are records with a constant of one name, that is the discriminator."""
    flat = [part for each in choices for part in (each["oneOf"] if "discriminator" in each else (each,))]
    names = [each["$ref"].rpartition("/")[2] for each in flat if "$ref" in each]
    if len(names) < 2:
        return {"anyOf": flat}
    constants = [
        {
            key: field["const"]
            for key, field in components.get(name, {}).get("properties", {}).items()
            if "const" in field
        }
        for name in names
    ]
    for key in constants[0]:
        values = [each.get(key) for each in constants]
        if None not in values and len(set(values)) == len(values):
            mapping = {value: REF.format(model=name) for value, name in zip(values, names, strict=True)}
            union = {
                "oneOf": [each for each in flat if "$ref" in each],
                "discriminator": {"propertyName": key, "mapping": mapping},
            }
            others = [each for each in flat if "$ref" not in each]
            return {"anyOf": [union, *others]} if others else union
    return {"anyOf": flat}


def _is_of(value: Any, hint: Any) -> bool:
    cls = get_origin(hint) or hint
    if cls is Annotated or cls is Literal:
        return not isinstance(value, Record)
    return isinstance(cls, type) and isinstance(value, cls)


_RENAMED = {
    "muniment.research.records.Citation": "ResearchCitation",
    "muniment.contracts.runs.CompactionPolicy": "RolloutCompactionPolicy",
    "muniment.verify.outputs.ToolCall": "OutputToolCall",
}
"""Renamed schemas: records of two modules may share a name, but not in one document."""


class _UniqueNames(RecordSchema):
    """The records' own schema generator, with names that are unique among all of them."""

    def get_defs_ref(self, core_mode_ref: Any) -> Any:
        made = super().get_defs_ref(core_mode_ref)
        name = _RENAMED.get(core_mode_ref[0].rpartition(":")[0])
        if name is not None:
            self._prioritized_defsref_choices[made].insert(0, DefsRef(name))
        return made

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Add the field docstrings."""
        made = super().model_schema(schema)
        cls: Any = schema["cls"]
        said = field_words(cls)
        for name, field in cls.model_fields.items():
            told = made.get("properties", {}).get(field.alias or name)
            if told is not None and name in said and "$ref" not in told:
                told.setdefault("description", said[name])
        return made


def generated(hint: Any, components: Components) -> dict[str, Any]:
    """pydantic's schema of a record, with its parts among the components."""
    made, parts = _made(hint)
    for name, part in parts.items():
        if components.setdefault(name, part) != part:
            raise TypeError(f"two types are named {name}")
    return dict(made)


@cache
def _made(hint: Any) -> tuple[dict[str, Any], Components]:
    made = TypeAdapter(hint).json_schema(schema_generator=_UniqueNames, by_alias=True, ref_template=REF)
    made = _spelled(made)
    parts = made.pop("$defs", {})
    parts.pop("JsonValue", None)
    if isinstance(hint, type) and "$ref" not in made:
        name = _RENAMED.get(f"{hint.__module__}.{hint.__name__}", hint.__name__)
        parts[name] = made
        made = {"$ref": REF.format(model=name)}
    return made, parts


def _spelled(node: Any, *, is_named: bool = False) -> Any:
    """Normalize a schema for client generators: "anything" is the empty schema and never `true`, an array declares its
    items and its own length, a choice of values has their type. `is_named` means that the keys are field names.
    """
    if isinstance(node, list):
        return [_spelled(each) for each in node]
    if not isinstance(node, dict):
        return node
    if is_named:
        return {name: _spelled(each) for name, each in node.items()}
    if str(node.get("$ref")).endswith("/JsonValue"):
        return {key: each for key, each in node.items() if key != "$ref"}
    made = {key: _spelled(each, is_named=key in ("properties", "$defs", "mapping")) for key, each in node.items()}
    for key in ("enum", "const"):
        if key in made and "type" not in made:
            values = made[key] if key == "enum" else [made[key]]
            made = enum_of(values) | made
    if "array" in made.get("type", ()) and made["type"] != "array":
        made.setdefault("items", {})
    if made.get("type") == "array":
        renamed = {"maxLength": "maxItems", "minLength": "minItems"}
        made = {renamed.get(key, key): each for key, each in made.items()}
        made.setdefault("items", {})
    return made


# -- the wire form of any type of the library -------------------------------------------------------------


_PLAIN_HOMES = ("builtins", "collections.abc", "datetime", "types")


def wire_shape(hint: Any) -> Shape:
    """The shape of an annotation. The classes of handles are loaded if one may be meant."""
    if any(_may_be_handle(cls) for cls in _classes_in(hint)):
        from muniment.surfaces.operations import handles  # noqa: F401  # registers the shapes of its classes
    return shape_of(hint)


def _classes_in(hint: Any) -> Iterator[type]:
    cls = get_origin(hint) or hint
    if isinstance(cls, type):
        yield cls
    for argument in get_args(hint):
        yield from _classes_in(argument)


def _may_be_handle(cls: type) -> bool:
    return cls.__module__ not in _PLAIN_HOMES and not issubclass(cls, Record)
