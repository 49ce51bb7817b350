"""The base of all records: frozen, strict, exact about absence (X-03) and about unknown keys (X-08).

The states of a field are kept apart:

- `field: T`                      required
- `field: Absent[T] = None`       may be absent; a null on the wire is refused. None in Python means absent.
- `field: T | None = None`        may be absent or null; `model_fields_set` distinguishes the two
- `field: T | None`               required, may be null

`to_wire` writes exactly the fields that were set, under their wire names, so a parsed record is emitted with the same
keys and, numbers included, the same values.
"""

import json
import threading
from collections.abc import Mapping
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, ValidationError, core_schema

from muniment.core.canonical import canonical_bytes, child_path
from muniment.errors import InvalidRecord, Issue

__all__ = [
    "RULECRAFT_VERSION",
    "Absent",
    "Confidence",
    "Confidence100",
    "Count",
    "Integer",
    "Items",
    "JsonObject",
    "JsonValue",
    "NonEmpty",
    "Number",
    "Numeric",
    "ObjectArrayOrText",
    "ObjectOrText",
    "OpenRecord",
    "Record",
    "RulecraftRecord",
    "Timestamp",
    "ValidationError",
    "issues_of",
]

T = TypeVar("T")

RULECRAFT_VERSION: Literal["0.5.15"] = "0.5.15"

_WANTED = "wanted"  # the code of our own errors; their message is the wanted thing, such as "an integer"


# -- field types --------------------------------------------------------------------------------------


class _RefuseNull:
    """Annotation of `Absent`: validate as the inner type alone, so that an explicit null is an error."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if get_origin(source) in (Union, UnionType):
            kept = tuple(arg for arg in get_args(source) if arg is not NoneType)
            source = Union[kept]  # noqa: UP007 - built from a tuple
        return handler.generate_schema(source)


class _AsTuple:
    """Annotation of `Items`: JSON arrays arrive as lists; strings, sets, mappings and generators stay refused."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (item, _) = get_args(source)
        items = core_schema.tuple_variable_schema(handler.generate_schema(item), strict=False)
        return core_schema.no_info_before_validator_function(_check_array, items)


def _check_array(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return value
    raise PydanticCustomError(_WANTED, "an array")


class Numeric:
    """A JSON number: ints keep all their digits; strings and booleans are refused.

    With `integral`, JSON Schema's integer: `256.0` is 256.
    """

    def __init__(self, *, integral: bool = False, minimum: int | None = None, maximum: int | None = None) -> None:
        self.integral = integral
        self.minimum = minimum
        self.maximum = maximum

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "integer" if self.integral else "number"}
        if self.minimum is not None:
            made["minimum"] = self.minimum
        if self.maximum is not None:
            made["maximum"] = self.maximum
        return made

    def check(self, value: Any) -> int | float:
        if isinstance(value, int) and not isinstance(value, bool):
            number: int | float = int(value)
        elif isinstance(value, float) and value - value == 0:  # neither NaN nor infinite
            number = int(value) if self.integral and value.is_integer() else float(value)
        else:
            raise self._refusal()
        if (
            (self.integral and isinstance(number, float))
            or (self.minimum is not None and number < self.minimum)
            or (self.maximum is not None and number > self.maximum)
        ):
            raise self._refusal()
        return number

    def _refusal(self) -> PydanticCustomError:
        noun = "an integer" if self.integral else "a number"
        if self.minimum is not None and self.maximum is not None:
            noun += f" from {self.minimum} to {self.maximum}"
        elif self.minimum is not None:
            noun += f" of at least {self.minimum}"
        return PydanticCustomError(_WANTED, "{noun}", {"noun": noun})


class _JsonOf:
    """Any JSON value of one of the named types; raises one issue for a mismatch, not one for each type."""

    def __init__(self, *types: str) -> None:
        self.types = types

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler.generate_schema(JsonValue))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": list(self.types)}

    def check(self, value: Any) -> Any:
        if _json_type(value) in self.types:
            return value
        raise PydanticCustomError(_WANTED, "{noun}", {"noun": " or ".join(_NOUNS[name] for name in self.types)})


def _json_type(value: Any) -> str:
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else "other"


_NOUNS = {"object": "an object", "array": "an array", "string": "a string"}

Absent = Annotated[T | None, _RefuseNull()]
Items = Annotated[tuple[T, ...], _AsTuple()]
Integer = Annotated[int, Numeric(integral=True)]
Count = Annotated[int, Numeric(integral=True, minimum=0)]
Number = Annotated[float, Numeric()]
Confidence = Annotated[float, Numeric(minimum=0, maximum=1)]  # everywhere but in summary packs
Confidence100 = Annotated[float, Numeric(minimum=0, maximum=100)]  # summary packs
NonEmpty = Annotated[str, Field(min_length=1)]
Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A date-time by name; any string when read. Emitted values are checked where they are made."""
JsonObject = dict[str, JsonValue]
ObjectOrText = Annotated[JsonObject | str, _JsonOf("object", "string")]
ObjectArrayOrText = Annotated[JsonObject | list[JsonValue] | str, _JsonOf("object", "array", "string")]


# -- records ------------------------------------------------------------------------------------------


_BUILDING = threading.RLock()


class Record(BaseModel):
    """A closed record: unknown keys are refused. Its validator is built on first use."""

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        strict=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        protected_namespaces=(),
        allow_inf_nan=False,
    )

    @classmethod
    def model_rebuild(
        cls,
        *,
        force: bool = False,
        raise_errors: bool = True,
        _parent_namespace_depth: int = 2,
        _types_namespace: Mapping[str, Any] | None = None,
    ) -> bool | None:
        """Serialize builds: before 2.14 pydantic lets the first users of a record build it over each other."""
        with _BUILDING:
            return super().model_rebuild(
                force=force,
                raise_errors=raise_errors,
                _parent_namespace_depth=_parent_namespace_depth and _parent_namespace_depth + 1,
                _types_namespace=_types_namespace,
            )

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Validate plain JSON data under its wire names; raises `InvalidRecord` with every issue found."""
        try:
            return cls.model_validate(value, by_alias=True, by_name=False)
        except ValidationError as error:
            raise InvalidRecord(f"not a valid {cls.__name__}", issues_of(error, value)) from None

    @classmethod
    def of_given(cls, value: Any, words: str, *, path: str = "$", hint: str | None = None) -> Self:
        """Validate caller input at `path`; raises `InvalidRecord` in caller terms, with every issue found."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise InvalidRecord(words, issues_of(error, value), hint=hint).within(path) from None

    @classmethod
    def unchecked(cls, fields: dict[str, Any], present: set[str] | None = None) -> Self:
        """Make a record of already validated values: like `model_construct`, at a tenth of the cost.

        `fields` holds all of them in order, `present` names those that were set (default: all) and may be shared, since
        the set of a frozen record never grows.
        """
        record = cls.__new__(cls)
        put = object.__setattr__
        put(record, "__dict__", fields)
        put(record, "__pydantic_fields_set__", set(fields) if present is None else present)
        put(record, "__pydantic_extra__", None)
        put(record, "__pydantic_private__", None)
        return record

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy without values cached from the fields: the copy computes them again."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            if isinstance(getattr(type(self), name), cached_property):
                del copied.__dict__[name]
        return copied

    def to_wire(self) -> dict[str, Any]:
        """Return plain JSON data with exactly the fields that were set."""
        return self.model_dump(mode="json", exclude_unset=True, by_alias=True)

    def to_bytes(self) -> bytes:
        """Return the canonical JSON of `to_wire`."""
        return canonical_bytes(self.to_wire())


class OpenRecord(Record):
    """A record that the contract leaves open: unknown keys are kept and written back."""

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)


class RulecraftRecord(OpenRecord):
    """A record of the Rulecraft contracts (001 §3.0): open, with its version."""

    schema_version: Literal["0.5.15"]


# -- issues -------------------------------------------------------------------------------------------


def issues_of(error: ValidationError, data: Any = None) -> list[Issue]:
    """Convert pydantic's error list to ours: a JSONPath, the expected value and the actual one.

    With `data`, the validated input, the path holds only keys and indexes that occur in it: pydantic also includes the
    names of union branches and validators.
    """
    issues: dict[tuple[str, str], Issue] = {}
    for item in error.errors(include_url=False, include_context=True):
        path = _path(item["loc"], data, missing=item["type"] == "missing")
        issue = Issue(path=path, message=_describe(item), code=str(item["type"]))
        issues.setdefault((path, issue.message), issue)
    return list(issues.values())


def _path(loc: tuple[int | str, ...], data: Any, *, missing: bool) -> str:
    path, here = "$", data
    for depth, part in enumerate(loc):
        if missing and depth == len(loc) - 1:
            return child_path(path, part)
        if data is None:
            found = part != "[key]"
        elif isinstance(here, Mapping):
            found = part in here
            here = here[part] if found else here
        elif isinstance(here, list | tuple):
            found = isinstance(part, int) and part < len(here)
            here = here[part] if isinstance(part, int) and found else here
        else:
            found = False
        if found:
            path = child_path(path, part)
    return path


_WANTED_BY_TYPE = {
    "string_type": "a string",
    "bool_type": "true or false",
    "model_type": "an object",
    "dict_type": "an object",
    "none_required": "null",
    "invalid-json-value": "a JSON value",
    "string_unicode": "text without lone surrogates",
}


def _describe(item: Any) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "missing":
        return "a required key is missing"
    if kind == "extra_forbidden":
        return "an unknown key; this object is closed"
    if kind == "value_error":
        return str(context["error"])
    if kind == _WANTED:
        wanted = item["msg"]
    elif kind == "literal_error":
        wanted = context["expected"]
    elif kind == "string_too_short":
        least = context["min_length"]
        wanted = f"a string of at least {least} character{'s' if least > 1 else ''}"
    elif kind in _WANTED_BY_TYPE:
        wanted = _WANTED_BY_TYPE[kind]
    else:
        wanted = item["msg"].removeprefix("Input should be ")
        wanted = wanted[0].lower() + wanted[1:]
    return f"wanted {wanted}, found {_short_text(item['input'])}"


def _short_text(value: Any) -> str:
    """Shorten any value for an error message."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, int) and value.bit_length() > 256:  # Python refuses to print one of thousands of digits
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | str):
        text = json.dumps(value[:100] if isinstance(value, str) else value, ensure_ascii=False)
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
