"""What callers hand in: a record for each call that says what every argument should be, and how it is refused.

    class DecisionRequest(Request):
        accept: Annotated[bool, Expect("accept should be true or false")]
        reason: TextOrNone

    asked = checked(DecisionRequest, accept=accept, reason=reason)

A field is refused in the words of its `Expect`, at its own path. Whether what is named exists, or may be done now, is
not the request's to say: that is asked of the store.

What a process does first (`open`, `mem.run`, `observe`, `search`) checks its arguments by hand instead: a validator
takes longer to build than such a call takes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import reduce
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, GetCoreSchemaHandler, InstanceOf
from pydantic_core import CoreSchema, PydanticCustomError, ValidationError, core_schema

from muniment.core.canonical import child_path
from muniment.core.record import Numeric, Record, issues_of
from muniment.errors import InvalidInput, InvalidRecord, MunimentError

__all__ = [
    "ByRule",
    "Expect",
    "FromOne",
    "ObjectOrNone",
    "Request",
    "TextOrNone",
    "Words",
    "checked",
    "is_listing",
    "one_of",
]


class Request(Record):
    """The arguments of one call."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


R = TypeVar("R", bound=Request)
_REFUSED = "refused"  # the code of an error that carries ours


def checked(request: type[R], /, **values: Any) -> R:
    """The arguments as a record; raises what the first field that does not hold has to say."""
    try:
        return request.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] != _REFUSED:  # a field that has no words of its own
            raise InvalidRecord(f"not a valid {request.__name__}", issues_of(error, values)) from None
        refusal: MunimentError = first["ctx"]["refusal"]
    if refusal.path is None:
        refusal.path = reduce(child_path, first["loc"], "$")
    raise refusal


# -- what a field should be ---------------------------------------------------------------------------


class Expect:
    """How an argument is refused that is not of its field's type or, being of it, that `holds` says no to.

    None is not asked about where the type allows it. A part of the argument that is refused in words of its own keeps
    them. The message may name `{name}` of the field, what was `{given}`, and its type as `{kind}`.
    """

    def __init__(self, message: str, holds: Callable[[Any], object] | None = None, *, hint: str | None = None) -> None:
        self.message = message
        self.holds = holds
        self.hint = hint

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._validated, handler(source))

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
    """An argument that a function reads, which takes what was given and the path to name in errors."""

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
    """One of these values; the hint names them all, where it is not given."""
    known = tuple(values)
    return Expect(message, known.__contains__, hint=f"one of {', '.join(known)}" if hint is None else hint)


def is_listing(given: Any) -> bool:
    """Several things in an order: neither one text nor an object."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)


Words = Annotated[str, Expect("wanted a non-empty string", str.strip)]
TextOrNone = Annotated[str | None, Expect("{name} should be a string")]
ObjectOrNone = Annotated[InstanceOf[Mapping[str, Any]] | None, Expect("{name} should be an object, found {kind}")]
FromOne = Annotated[int, Numeric(integral=True, minimum=1)]
