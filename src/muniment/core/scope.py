"""Where something belongs: tenant > user > session > run, with the agent beside them."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError, ValidationError

from muniment.core.record import Record, issues_of
from muniment.errors import InvalidRecord

__all__ = ["DEFAULT_TENANT", "ID_MAX_BYTES", "ID_MAX_CHARS", "IdText", "Scope", "UserScope", "scope_given", "scope_of"]

DEFAULT_TENANT = "default"
ID_MAX_CHARS = 256
ID_MAX_BYTES = 768
"""Three names and a number must fit into one index entry of a PostgreSQL server, which holds 2704 bytes."""


def _fits(name: str) -> str:
    if not name.isascii() and len(name.encode()) > ID_MAX_BYTES:
        raise PydanticCustomError(
            "string_too_long", f"Input should be a string of at most {ID_MAX_BYTES} bytes of UTF-8"
        )
    return name


IdText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=ID_MAX_CHARS, pattern=r"^[^\x00-\x1f\x7f]+$"),
    AfterValidator(_fits),
]
"""A name or id: 1 to 256 characters, none of them a control character, in no more than 768 bytes of UTF-8."""


class Scope(Record):  # LG-02
    """The full address of an entry. Reads see one tenant and one user; nothing crosses either."""

    tenant_id: IdText = Field(default=DEFAULT_TENANT)
    user_id: IdText
    agent_id: IdText
    session_id: IdText
    run_id: IdText


class UserScope(Record):
    """The address of a user, whatever agent, session and run something of theirs belongs to."""

    tenant_id: IdText
    user_id: IdText


def scope_of(names: dict[str, Any]) -> Scope:
    """The scope of these five names, validated; a validator is needed only for names beyond plain ASCII."""
    if all(map(_is_plain, names.values())):
        return Scope.unchecked(names)
    return Scope.model_validate(names)


def scope_given(names: dict[str, Any]) -> Scope:
    """The scope of five names that a caller gave; raises `InvalidRecord` where one of them is no id."""
    try:
        return scope_of(names)
    except ValidationError as error:
        raise InvalidRecord("not a valid scope", issues_of(error, names)) from None


def _is_plain(name: Any) -> bool:
    """Printable ASCII of a fitting length, which `IdText` admits whatever it is."""
    return type(name) is str and name.isascii() and name.isprintable() and 1 <= len(name) <= ID_MAX_CHARS
