"""Which operation an address means. Addresses are read segment by segment before they are decoded, so that an id may
hold a slash (`docs%2Fsetup.md`) and no id can reach into another part of the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from muniment.errors import InvalidInput, UnknownRoute, WrongMethod
from muniment.surfaces.operations.table import Level, Operation, owner_named

__all__ = ["MatchedRoute", "Route", "Router", "routes_of", "segments_of"]

SEGMENTS_MAX = 32


@dataclass(frozen=True, eq=False)
class Route:
    """One address of an operation. Made once, so that what follows from it can be kept by it."""

    operation: Operation
    level: Level
    template: str

    @cached_property
    def names_run(self) -> bool:
        return "{run_id}" in self.template


class MatchedRoute(NamedTuple):
    route: Route
    names: Mapping[str, str]
    """What the path says of its parameters, decoded."""


@dataclass
class _Node:
    literals: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    named: tuple[str, ...] = ()
    """The parameters on the way here."""
    routes: dict[str, dict[Level, Route]] = field(default_factory=dict)
    """By method and, where the address names an owner, by the owner's level."""

    def route_of(self, method: str, names: dict[str, str]) -> Route | None:
        """The route of a method for these names. What an owner is named adds an id to them."""
        routes = self.routes.get(method)
        if routes is None:
            return None
        if "owner" not in names:
            return next(iter(routes.values()))
        found = owner_named(names["owner"])
        if found is None:
            raise InvalidInput("an owner is user:ID, agent:ID or tenant", path="$.owner")
        level, ids = found
        names |= ids
        return routes.get(level)


def routes_of(operations: Iterable[Operation]) -> Iterator[Route]:
    """Every address of every operation."""
    for operation in operations:
        for level, template in operation.routes.items():
            yield Route(operation, level, template)
        if operation.free_route is not None:
            yield Route(operation, "user", operation.free_route)


def segments_of(raw_path: bytes) -> tuple[str, ...]:
    """The parts of a path as they were sent, decoded one by one."""
    parts = raw_path.split(b"/")[1:]
    if len(parts) > SEGMENTS_MAX:
        raise UnknownRoute("the path has too many parts")
    try:
        return tuple(unquote_to_bytes(part).decode() for part in parts)
    except UnicodeDecodeError:
        raise InvalidInput("the path is not percent-encoded UTF-8", path="$") from None


class Router:
    """A tree of segments; what is named literally comes before what is a parameter."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for part in route.template.split("/")[1:]:
                if part.startswith("{"):
                    node.parameter = node.parameter or _Node()
                    node = node.parameter
                else:
                    node = node.literals.setdefault(part, _Node())
            node.named = route.operation.named_in(route.template)
            node.routes.setdefault(route.operation.method, {})[route.level] = route

    def find(self, method: str, segments: tuple[str, ...]) -> MatchedRoute:
        """The route and its parameters; raises where there is none, or none with this method."""
        allowed: set[str] = set()
        for node, values in _matches(self._root, segments, ()):
            asked = "GET" if method == "HEAD" else method
            names = dict(zip(node.named, values, strict=True))
            route = node.route_of(asked, names)
            if route is not None:
                return MatchedRoute(route, names)
            allowed |= node.routes.keys()
        if allowed:
            allowed |= {"HEAD"} if "GET" in allowed else set()
            raise WrongMethod(f"{method:.20} is not taken there", details={"allowed": sorted(allowed)})
        raise UnknownRoute("nothing answers at that address")


def _matches(node: _Node, rest: tuple[str, ...], values: tuple[str, ...]) -> Iterator[tuple[_Node, tuple[str, ...]]]:
    if not rest:
        if node.routes:
            yield node, values
        return
    part, others = rest[0], rest[1:]
    if part in node.literals:
        yield from _matches(node.literals[part], others, values)
    if node.parameter is not None and part:
        yield from _matches(node.parameter, others, (*values, part))
