"""Methods that ask a server: derived from the rows of the operations, with the signatures of the library's own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from muniment.surfaces.operations.rows import OPERATIONS
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
        return cls

    return fill


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
