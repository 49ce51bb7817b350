"""What every record shares: frozen, strict, exact about absence (X-03) and about unknown keys (X-08).

Three states of a field are kept apart:

- `field: T`                      required
- `field: Absent[T] = None`       may be absent; a null on the wire is refused. None in Python means absent.
- `field: T | None = None`        may be absent or null; `model_fields_set` tells the two apart
- `field: T | None`               required, may be null

`to_wire` writes exactly the fields that were set, under their wire names, so whatever parses is emitted
again with the same keys.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema, ValidationError, core_schema

from muniment.errors import InvalidRecord, Issue
from muniment.text.canonical import canonical_bytes, child_path

__all__ = [
    "Absent",
    "Confidence",
    "Confidence100",
    "Count",
    "Integer",
    "Items",
    "JsonObject",
    "NonEmpty",
    "Number",
    "OpenRecord",
    "Record",
    "ValidationError",
    "issues_of",
]

T = TypeVar("T")


class _RefuseNull:
    """Annotation of `Absent`: validate as the inner type alone, so that an explicit null is an error."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if get_origin(source) in (Union, UnionType):
            kept = tuple(arg for arg in get_args(source) if arg is not NoneType)
            source = Union[kept]  # noqa: UP007 - built from a tuple
        return handler.generate_schema(source)


class _AsTuple:
    """Annotation of `Items`: JSON arrays arrive as lists; strings, sets and mappings stay refused."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (item, _) = get_args(source)
        items = handler.generate_schema(item)
        return core_schema.chain_schema([_sequence_schema(), core_schema.tuple_variable_schema(items, strict=False)])


def _sequence_schema() -> CoreSchema:
    return core_schema.union_schema(
        [core_schema.is_instance_schema(list), core_schema.is_instance_schema(tuple)], mode="left_to_right"
    )


def _integral(value: Any) -> Any:
    """JSON Schema's integer: `256.0` is 256; `true` and `"256"` are not."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value


Absent = Annotated[T | None, _RefuseNull()]
Items = Annotated[tuple[T, ...], _AsTuple()]
Integer = Annotated[int, BeforeValidator(_integral, json_schema_input_type=int)]
Count = Annotated[Integer, Field(ge=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Confidence = Annotated[float, Field(ge=0, le=1)]  # everywhere but in summary packs
Confidence100 = Annotated[float, Field(ge=0, le=100)]  # summary packs
NonEmpty = Annotated[str, Field(min_length=1)]
JsonObject = dict[str, JsonValue]


class Record(BaseModel):
    """A closed record: unknown keys are refused."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        protected_namespaces=(),
        ser_json_inf_nan="constants",
        use_attribute_docstrings=True,
    )

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Validate plain JSON data under its wire names; raises `InvalidRecord` with every issue found."""
        try:
            return cls.model_validate(value, by_alias=True, by_name=False)
        except ValidationError as error:
            raise InvalidRecord(f"not a valid {cls.__name__}", issues_of(error)) from None

    def to_wire(self) -> dict[str, Any]:
        """Plain JSON data with exactly the fields that were set."""
        return self.model_dump(mode="json", exclude_unset=True, by_alias=True)

    def to_bytes(self) -> bytes:
        """Canonical JSON of `to_wire`."""
        return canonical_bytes(self.to_wire())


class OpenRecord(Record):
    """A record whose contract leaves it open: unknown keys are kept and written back."""

    model_config = ConfigDict(extra="allow")


def issues_of(error: ValidationError) -> list[Issue]:
    """pydantic's error list as ours: a JSONPath, what was found and what was wanted."""
    issues: list[Issue] = []
    for item in error.errors(include_url=False, include_context=True):
        path = "$"
        for part in item["loc"]:
            path = child_path(path, part)
        issues.append(Issue(path=path, message=_describe(item), code=str(item["type"])))
    return issues


def _describe(item: Any) -> str:
    kind = item["type"]
    if kind == "missing":
        return "a required key is missing"
    if kind == "extra_forbidden":
        return "an unknown key; this object is closed"
    message = item["msg"][0].lower() + item["msg"][1:]
    return f"{message}; found {_shown(item['input'])}"


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, dict | list) else type(value).__name__
    names = {"dict": "an object", "list": "an array", "None": "null", "True": "true", "False": "false"}
    text = names.get(text, text)
    return text if len(text) <= 60 else text[:57] + "..."
