"""Add an argument to every method of the library, then say on which surfaces it is missing. Run as a program.

The methods are wrapped before any surface is imported, so that each of them reads the new signature as it reads all.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from muniment.surfaces.operations.table import HANDLES, SUBHANDLES, class_at

ADDED = "further_argument"
MADE_BY_HAND = frozenset(("memory.import_", "memory.import_memory", "memory.open_research", "corpus.documents"))
"""Proxies with a signature of their own: they send files in parts, find a user first, or split a list of ids."""


def with_argument(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with one argument more, that any caller may give by its name."""

    @functools.wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        named.pop(ADDED, None)
        return method(*args, **named)

    signature = inspect.signature(method)
    added = inspect.Parameter(ADDED, inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None")
    parameters = list(signature.parameters.values())
    at = next((i for i, each in enumerate(parameters) if each.kind is each.VAR_KEYWORD), len(parameters))
    call.__signature__ = signature.replace(parameters=[*parameters[:at], added, *parameters[at:]])  # type: ignore[attr-defined]
    call.__annotations__ = {**method.__annotations__, ADDED: "str | None"}
    return call


def add_everywhere() -> None:
    for cls in map(class_at, (*HANDLES, *SUBHANDLES)):
        for name, member in list(vars(cls).items()):
            if isinstance(member, FunctionType) and not name.startswith("_"):
                setattr(cls, name, with_argument(member))
    parts = importlib.import_module("muniment.surfaces.operations.parts")
    for name in parts.__all__:
        if isinstance(getattr(parts, name), FunctionType):
            setattr(parts, name, with_argument(getattr(parts, name)))


def missing() -> Iterator[str]:
    from muniment import aio
    from muniment.errors import InvalidInput
    from muniment.surfaces.client import proxies, remote
    from muniment.surfaces.http._calls import body_arguments, query_arguments, routes_of
    from muniment.surfaces.operations.openapi import openapi
    from muniment.surfaces.operations.rows import OPERATIONS

    document = openapi()
    schemas = document["components"]["schemas"]
    own = {
        "memory": remote.RemoteMemory, "run": remote.RemoteRun, "corpus": remote.RemoteCorpus,
        "study": remote.RemoteStudy, "bank": remote.RemoteBank, "rulebook": remote.RemoteRulebook,
    }  # fmt: skip
    for operation in OPERATIONS:
        if isinstance(getattr(class_at(operation.place), operation.call, None), property) or operation.body:
            continue
        for route in routes_of([operation]):
            described = document["paths"][route.template][operation.method.lower()]
            content = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            schema = schemas.get(content.get("$ref", "").rpartition("/")[2], content)
            names = {each.get("name") for each in described["parameters"]} | set(schema.get("properties", {}))
            if ADDED not in names:
                yield f"{operation.id} at {route.template}: OpenAPI"
            try:
                if operation.takes_body:
                    body_arguments(route, {ADDED: "x"})
                else:
                    query_arguments(route, [(ADDED, "x")])
            except InvalidInput as error:
                if error.path == f"$.{ADDED}":
                    yield f"{operation.id} at {route.template}: HTTP"
        if operation.function is not None or operation.handle == "works":
            continue
        proxy = own[operation.place] if operation.place in own else proxies.proxy_class(operation.place)
        if ADDED not in taken(getattr(proxy, operation.call)) and operation.id not in MADE_BY_HAND:
            yield f"{operation.id}: connection"
        twin = next((each for each in vars(aio).values() if inspect.isclass(each)
                     and each.__name__ == f"Async{class_at(operation.place).__name__}"), None)  # fmt: skip
        if twin is None or ADDED not in taken(getattr(twin, operation.call)):
            yield f"{operation.id}: async face"


def taken(method: Callable[..., Any]) -> set[str]:
    """The arguments of a method; one that takes any name binds them by the library's own signature."""
    parameters = inspect.signature(method).parameters
    return {ADDED if each.kind is each.VAR_KEYWORD else name for name, each in parameters.items()}


def missing_commands() -> Iterator[str]:
    """Commands that take what their operation takes, and not this."""
    from muniment.surfaces.cli._command import Command
    from muniment.surfaces.cli.main import list_commands, load_command

    for path, entry in list_commands().items():
        module, _, name = entry.home.partition(":")
        command = getattr(importlib.import_module(module), name)
        if not isinstance(command, Command) or command.row is None or command.function is not None:
            continue
        if ADDED not in {each.name for each in load_command(path[-1], entry).params}:
            yield f"{' '.join(path)}: command"


if __name__ == "__main__":
    if "--nothing" not in sys.argv:
        add_everywhere()
    json.dump([*missing(), *missing_commands()], sys.stdout)
