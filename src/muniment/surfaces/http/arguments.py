"""The arguments of an operation, from a query or a JSON body. What they hold is judged by the library itself."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Union, get_args, get_origin

from muniment.core.record import Record
from muniment.errors import InvalidInput, InvalidRecord
from muniment.surfaces.http.routing import Route

__all__ = ["RUN_CONTEXT", "VALUES_CONTEXT", "body_arguments", "query_arguments"]

RUN_CONTEXT: Mapping[str, Any] = {
    "agent_id": str,
    "session_id": str,
    "task_type": str,
    "grants": list[str],
    "repair": bool,
}
"""What says, in the query, under which scope a run that has not started yet begins, and what its handle may do."""
VALUES_CONTEXT: Mapping[str, Any] = {"user_at": int}
"""What says, in the query, which label of a namespace names the user whose a value is."""
_SEQUENCES = (list, tuple, Iterable, Sequence)


@cache
def _kinds_of(route: Route) -> Mapping[str, tuple[str, Any]]:
    """What a query may name: which part of the request it is of, and its type."""
    operation = route.operation
    known: dict[str, Mapping[str, Any]] = {}
    if not operation.takes_body:
        known["own"] = {each.name: each.hint for each in operation.parameters(route.template)}
    if operation.handle == "run":
        known["run"] = dict(RUN_CONTEXT) | ({} if route.names_run else {"run_id": str})
    if operation.handle == "values":
        known["run"] = VALUES_CONTEXT
    return {name: (part, hint) for part, names in known.items() for name, hint in names.items()}


@cache
def _records_of(route: Route) -> Mapping[str, type[Record] | None]:
    """What a body may name, and the record that an object of that name is made into."""
    return {each.name: _record_of(each.hint) for each in route.operation.parameters(route.template)}


@cache
def _required_of(route: Route) -> tuple[str, ...]:
    parameters = route.operation.parameters(route.template)
    return tuple(each.name for each in parameters if each.is_required and each.name != route.operation.body)


def query_arguments(route: Route, pairs: Sequence[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """What the query gives, under `own` and `run`; a name that is not known is refused, so is a doubled one."""
    kinds = _kinds_of(route)
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in kinds:
            hint = f"there are {', '.join(sorted(kinds))}" if kinds else "it takes none"
            raise InvalidInput(f"no parameter {name!r:.40} here", path=f"$.{name:.40}", hint=hint)
        given.setdefault(name, []).append(value)
    found: dict[str, dict[str, Any]] = {"own": {}, "run": {}}
    for name, values in given.items():
        part, hint = kinds[name]
        found[part][name] = _read(name, hint, values)
    if not route.operation.takes_body:
        _check_required(route, found["own"])
    return found


def body_arguments(route: Route, body: Any) -> dict[str, Any]:
    """What the body gives: an object whose keys are arguments, or one argument as a whole."""
    operation = route.operation
    if operation.body is not None:
        return {operation.body: body}
    if not isinstance(body, dict):
        raise InvalidInput("the body should be a JSON object", path="$")
    records = _records_of(route)
    for name in body:
        if name in records:
            continue
        if name in operation.left_out:
            raise InvalidInput(f"{name} is not taken here", path=f"$.{name}", hint=operation.left_out[name])
        is_free = operation.signature.extra is not None and name not in operation.named_in(route.template)
        if not is_free or name in ("tenant_id", "user_id", "self"):
            raise InvalidInput(
                f"an unknown key {name!r:.40}", path=f"$.{name:.40}", hint=f"there are {', '.join(sorted(records))}"
            )
    _check_required(route, body)
    return {name: _as_record(name, records.get(name), value) for name, value in body.items()}


def _record_of(hint: Any) -> type[Record] | None:
    """The record that a method wants where it would not take an object as it is."""
    kinds = _alternatives(hint)
    if any(get_origin(each) in (dict, Mapping) or each is Any for each in kinds):
        return None
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, Record)), None)


def _as_record(name: str, record: type[Record] | None, value: Any) -> Any:
    if record is None or not isinstance(value, dict):
        return value
    try:
        return record.from_wire(value)
    except InvalidRecord as error:
        raise error.within(f"$.{name}") from None


def _check_required(route: Route, given: Mapping[str, Any]) -> None:
    for name in _required_of(route):
        if name not in given:
            raise InvalidInput(f"{name} is missing", path=f"$.{name}")


def _read(name: str, hint: Any, values: list[str]) -> Any:
    kinds = [each for each in _alternatives(hint) if each is not types.NoneType]
    kind = kinds[0] if kinds else str
    if get_origin(kind) in _SEQUENCES:
        return values
    if len(values) > 1:
        raise InvalidInput(f"{name} stands twice", path=f"$.{name}")
    (value,) = values
    if bool in kinds:
        if value not in ("true", "false"):
            raise InvalidInput(f"{name} should be true or false", path=f"$.{name}")
        return value == "true"
    if int in kinds:
        if not value.removeprefix("-").isascii() or not value.removeprefix("-").isdigit() or len(value) > 18:
            raise InvalidInput(f"{name} should be a whole number", path=f"$.{name}")
        return int(value)
    return value


def _alternatives(hint: Any) -> Sequence[Any]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
