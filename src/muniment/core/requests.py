"""Validation of callers' arguments, and counts found by bisection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import reduce
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, InstanceOf
from pydantic_core import CoreSchema, PydanticCustomError, ValidationError, core_schema

from muniment.core.canonical import child_path
from muniment.core.record import Numeric, Record, issues_of
from muniment.errors import InvalidInput, InvalidRecord, MunimentError

# -- requests -------------------------------------------------------------------------------------------


class Request(Record):
    """The arguments of one call."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


R = TypeVar("R", bound=Request)
_REFUSED = "refused"  # the code of an error that carries ours


def checked(request: type[R], /, **values: Any) -> R:
    """Return the arguments as a record; raises the error of the first invalid field."""
    try:
        return request.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] != _REFUSED:  # a field without an error message of its own
            raise InvalidRecord(f"not a valid {request.__name__}", issues_of(error, values)) from None
        refusal: MunimentError = first["ctx"]["refusal"]
    if refusal.path is None:
        refusal.path = reduce(child_path, first["loc"], "$")
    raise refusal


# -- requirements of a field --------------------------------------------------------------------------


class Expect:
    """Error message for an argument that has the wrong type or fails `holds`.

    None is not checked where the type allows it. A part of the argument with its own error keeps it. The message may
    use the field's `{name}`, the `{given}` value, and its type as `{kind}`.
    """

    def __init__(
        self,
        message: str,
        holds: Callable[[Any], object] | None = None,
        *,
        hint: str | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        """`schema` is the JSON Schema equivalent of `holds`."""
        self.message = message
        self.holds = holds
        self.hint = hint
        self.schema = schema or {}

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._validated, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        made = handler(schema)
        if not self.schema:
            return made
        choices = made.get("anyOf")
        if not choices:
            return made | dict(self.schema)
        told = [each if each.get("type") == "null" else each | dict(self.schema) for each in choices]
        return made | {"anyOf": told}

    def _validated(
        self, given: Any, validate: core_schema.ValidatorFunctionWrapHandler, info: core_schema.ValidationInfo[Any]
    ) -> Any:
        try:
            value = validate(given)
        except ValidationError as error:
            if error.errors(include_url=False)[0]["type"] == _REFUSED:
                raise
        else:
            if value is None or self.holds is None or self.holds(value):
                return value
        said = self.message.format(name=info.field_name, given=given, kind=type(given).__name__)
        raise _carried(InvalidInput(said, hint=self.hint))


class ByRule:
    """An argument parsed by a function, which takes the input and the path for errors."""

    def __init__(self, read: Callable[[Any, str], Any]) -> None:
        self.read = read

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self._read)

    def _read(self, given: Any, info: core_schema.ValidationInfo[Any]) -> Any:
        try:
            return self.read(given, f"$.{info.field_name}")
        except MunimentError as error:
            raise _carried(error) from None


def _carried(refusal: MunimentError) -> PydanticCustomError:
    return PydanticCustomError(_REFUSED, "{refusal}", {"refusal": refusal})


def one_of(values: Collection[Any], message: str, *, hint: str | None = None) -> Expect:
    """Require one of these values; the default hint lists them all."""
    known = tuple(values)
    named = f"one of {', '.join(known)}" if hint is None else hint
    return Expect(message, known.__contains__, hint=named, schema={"enum": list(known)})


def within(message: str, *, above: float, below: float | None = None, at_most: float | None = None) -> Expect:
    """Require a number above one bound, and either below another or at most that."""
    told = {"exclusiveMinimum": above, "exclusiveMaximum": below, "maximum": at_most}
    schema = {name: bound for name, bound in told.items() if bound is not None}

    def holds(given: float) -> bool:
        return above < given and (below is None or given < below) and (at_most is None or given <= at_most)

    hint = f"more than {above} and " + (f"less than {below}" if at_most is None else f"at most {at_most}")
    return Expect(message, holds, hint=hint, schema=schema)


def is_listing(given: Any) -> bool:
    """Return whether this is an ordered collection: neither text nor an object."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)


Words = Annotated[str, Expect("wanted a non-empty string", str.strip)]
TextOrNone = Annotated[str | None, Expect("{name} should be a string")]
ObjectOrNone = Annotated[InstanceOf[Mapping[str, Any]] | None, Expect("{name} should be an object, found {kind}")]
FromOne = Annotated[int, Numeric(integral=True, minimum=1)]


# -- numbers --------------------------------------------------------------------------------------------


def whole(value: Any) -> Any:
    """Convert an integral float to an integer, as JSON Schema does: `256.0` is 256. Anything else is left for
    validation.
    """
    return int(value) if type(value) is float and value.is_integer() else value


def furthest(most: int, holds: Callable[[int], bool]) -> int:
    """Return the largest count up to `most` found to hold by bisection; a nonzero result was seen to hold."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
