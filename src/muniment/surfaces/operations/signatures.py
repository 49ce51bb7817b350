"""The signatures of the library's public methods, with their annotations resolved to types.

The library imports annotation-only names under `TYPE_CHECKING`, so that a process loads no more than it needs; here
those imports are made, once, for describing the methods.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from itertools import pairwise
from types import FunctionType
from typing import Any, NamedTuple, get_type_hints

__all__ = ["Parameter", "Signature", "field_words", "fields_of", "hints_of", "public_members", "signature_of"]

_EMPTY = inspect.Parameter.empty


class Parameter(NamedTuple):
    """One argument of a method, as callers name it."""

    name: str
    hint: Any
    is_required: bool
    default: Any = None
    is_keyword: bool = False
    """True if it can be given by name only."""


class Signature(NamedTuple):
    parameters: tuple[Parameter, ...]
    extra: Any
    """The type of further keywords; None if there are none."""
    returns: Any
    doc: str


@cache
def signature_of(method: Callable[..., Any]) -> Signature:
    """The signature of a method, without `self`."""
    hints = _hints(method, method.__module__)
    taken = list(inspect.signature(method).parameters.values())[1:]
    plain = [each for each in taken if each.kind is not each.VAR_KEYWORD]
    return Signature(
        parameters=tuple(
            Parameter(
                each.name,
                hints.get(each.name, Any),
                each.default is _EMPTY,
                None if each.default is _EMPTY else each.default,
                each.kind is each.KEYWORD_ONLY,
            )
            for each in plain
        ),
        extra=next((hints.get(each.name, Any) for each in taken if each.kind is each.VAR_KEYWORD), None),
        returns=hints.get("return"),
        doc=inspect.getdoc(method) or "",
    )


@cache
def hints_of(cls: type) -> dict[str, Any]:
    """The annotations of a class and its bases, resolved."""
    return _hints(cls, cls.__module__)


@cache
def fields_of(cls: type) -> dict[str, Any]:
    """The fields of a named tuple or data class and their types, in order."""
    names = getattr(cls, "_fields", None) or tuple(getattr(cls, "__dataclass_fields__", ()))
    hints = hints_of(cls)
    return {name: hints[name] for name in names}


@cache
def field_words(cls: type[Any]) -> dict[str, str]:
    """The docstrings of the fields of a class and its bases."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("muniment."):
            found |= _words_in(base.__module__).get(base.__name__, {})
    return found


@cache
def _words_in(module_name: str) -> dict[str, dict[str, str]]:
    """By class of a module: its fields and their docstrings."""
    classes = [
        each for each in ast.parse(inspect.getsource(sys.modules[module_name])).body if isinstance(each, ast.ClassDef)
    ]
    return {each.name: dict(_words_under(each)) for each in classes}


def _words_under(cls: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for line, text in pairwise(cls.body):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(text, ast.Expr):
            said = text.value.value if isinstance(text.value, ast.Constant) else None
            if isinstance(said, str):
                yield line.target.id, " ".join(said.split())


def public_members(cls: type) -> dict[str, Any]:
    """The public methods, properties and further handles of a class and its bases, in definition order."""
    found = {name: member for base in reversed(cls.__mro__[:-1]) for name, member in vars(base).items()}
    wanted = {name: each for name, each in found.items() if not name.startswith("_")}
    kinds = (FunctionType, property, cached_property)
    return {name: each for name, each in wanted.items() if isinstance(each, kinds)}


@cache
def _homes_in(module_name: str) -> dict[str, str]:
    """The annotation-only names of a module, and their origins."""
    found: dict[str, str] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module_name])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            lines = [line for line in node.body if isinstance(line, ast.ImportFrom) and line.module]
            found |= {alias.name: str(line.module) for line in lines for alias in line.names}
    return found


def _imported(home: str, name: str) -> Any:
    module = importlib.import_module(home)
    return getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{home}.{name}")


def _hints(holder: Any, module_name: str) -> dict[str, Any]:
    """Resolve the annotations of a method or a class. Annotation-only names are imported on demand, one for each
    resolution failure.
    """
    homes = _homes_in(module_name)
    known: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(holder, vars(sys.modules[module_name]), known, include_extras=True)
        except NameError as missing:
            if missing.name not in homes or missing.name in known:
                raise
            known[missing.name] = _imported(homes[missing.name], missing.name)
