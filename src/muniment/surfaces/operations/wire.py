"""How any type of the library crosses the wire: shapes, and those of handles where one may be among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from muniment.core.record import Record
from muniment.surfaces.operations.shapes import Shape, shape_of

__all__ = ["wire_shape"]

_PLAIN_HOMES = ("builtins", "collections.abc", "datetime", "types")


def wire_shape(hint: Any) -> Shape:
    """How what is annotated so crosses the wire. The classes of handles are loaded where one may be meant."""
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
