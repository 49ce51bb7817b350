"""The arguments of an operation, from a query or a JSON body. What they hold is judged by the library itself."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from muniment.errors import InvalidInput, InvalidRecord
from muniment.records.base import Record
from muniment.surfaces.http.routing import Route

__all__ = ["PAGE", "RUN_CONTEXT", "body_arguments", "query_arguments"]

RUN_CONTEXT: Mapping[str, Any] = {
    "agent_id": str,
    "session_id": str,
    "task_type": str,
    "grants": list[str],
    "repair": bool,
}
"""What says, in the query, under which scope a run that has not started yet begins, and what its handle may do."""
PAGE: Mapping[str, Any] = {"limit": int, "cursor": str}
_SEQUENCES = (list, tuple, Iterable, Sequence)


def query_arguments(route: Route, pairs: Sequence[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """What the query gives, under `own`, `run` and `page`; a name that is not known is refused, so is a doubled one."""
    operation = route.operation
    known: dict[str, dict[str, Any]] = {"own": {}, "run": {}, "page": {}}
    if not operation.takes_body:
        known["own"] = {each.name: each.hint for each in operation.parameters(route.template)}
    if operation.handle == "run":
        known["run"] = dict(RUN_CONTEXT) | ({} if route.names_run else {"run_id": str})
    if operation.is_listed and not operation.takes_body:
        known["page"] = dict(PAGE)
    kinds = {name: part for part, names in known.items() for name in names}
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in kinds:
            hint = f"there are {', '.join(sorted(kinds))}" if kinds else "it takes none"
            raise InvalidInput(f"no parameter {name!r:.40} here", path=f"$.{name:.40}", hint=hint)
        given.setdefault(name, []).append(value)
    found: dict[str, dict[str, Any]] = {"own": {}, "run": {}, "page": {}}
    for name, values in given.items():
        found[kinds[name]][name] = _read(name, known[kinds[name]][name], values)
    if not operation.takes_body:
        _check_required(route, found["own"])
    return found


def body_arguments(route: Route, body: Any) -> dict[str, Any]:
    """What the body gives: an object whose keys are arguments, or one argument as a whole."""
    operation = route.operation
    if operation.body is not None:
        return {operation.body: body}
    if not isinstance(body, dict):
        raise InvalidInput("the body should be a JSON object", path="$")
    known = {each.name for each in operation.parameters(route.template)}
    for name in body:
        if name in operation.left_out:
            raise InvalidInput(f"{name} is not taken here", path=f"$.{name}", hint=operation.left_out[name])
        is_free = operation.signature.extra is not None and name not in operation.named_in(route.template)
        if name not in known and (not is_free or name in ("tenant_id", "user_id", "self")):
            raise InvalidInput(
                f"an unknown key {name!r:.40}", path=f"$.{name:.40}", hint=f"there are {', '.join(sorted(known))}"
            )
    _check_required(route, body)
    hints = {each.name: each.hint for each in operation.parameters(route.template)}
    return {name: _record(name, hints.get(name, Any), value) for name, value in body.items()}


def _record(name: str, hint: Any, value: Any) -> Any:
    """An object that the method wants as a record and would not take as it is."""
    kinds = _alternatives(hint)
    if not isinstance(value, dict) or any(get_origin(each) in (dict, Mapping) or each is Any for each in kinds):
        return value
    record = next((each for each in kinds if isinstance(each, type) and issubclass(each, Record)), None)
    if record is None:
        return value
    try:
        return record.from_wire(value)
    except InvalidRecord as error:
        issues = [issue._replace(path=f"$.{name}{issue.path[1:]}") for issue in error.issues]
        raise InvalidRecord(error.message, issues) from None


def _check_required(route: Route, given: Mapping[str, Any]) -> None:
    for each in route.operation.parameters(route.template):
        if each.is_required and each.name not in given and each.name != route.operation.body:
            raise InvalidInput(f"{each.name} is missing", path=f"$.{each.name}")


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
