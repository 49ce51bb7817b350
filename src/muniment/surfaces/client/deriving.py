"""Methods that ask a server: derived from the rows of the operations, with the signatures of the library's own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from muniment.errors import Forbidden
from muniment.surfaces.operations.rows import OPERATIONS, REFUSED
from muniment.surfaces.operations.table import Handle, class_at

__all__ = ["Asks", "derived"]


class Asks(Protocol):
    """What a derived method is a method of."""

    def _ask(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Any:
        """What the server answers to an operation."""


def derived(place: str) -> Callable[[type], type]:
    """Class decorator: ask the server for every method at this place that has a row, unless the class has its own."""

    def fill(cls: type) -> type:
        for operation in OPERATIONS:
            if operation.place != place or operation.call in vars(cls):
                continue
            member = inspect.getattr_static(class_at(place), operation.call, None)
            name = operation.id.partition(".")[2]
            if isinstance(member, property):
                setattr(cls, operation.call, property(_reading(operation.handle, name), doc=member.__doc__))
            elif member is not None:
                setattr(cls, operation.call, _asking(operation.handle, name, member))
        for call in (name.removeprefix(f"{place}.") for name in REFUSED if name.rpartition(".")[0] == place):
            setattr(cls, call, _refusing(call, inspect.getattr_static(class_at(place), call)))
        return cls

    return fill


def _refusing(call: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def refuse(*_given: Any, **_named: Any) -> Any:
        raise Forbidden(f"{call} is not for a connection", hint="call it where the store is opened")

    return refuse


def _reading(handle: Handle, name: str) -> Callable[[Asks], Any]:
    return lambda self: self._ask(handle, name, {})


def _asking(handle: Handle, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    extra = next((each.name for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD), None)

    @functools.wraps(method)
    def ask(self: Asks, *args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        given.pop("self")
        if extra is not None:
            given |= given.pop(extra, {})
        return self._ask(handle, name, given)

    return ask
