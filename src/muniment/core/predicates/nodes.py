"""The tree of a predicate: six kinds of node, plain and frozen. Equal trees are equal values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "Call",
    "Compare",
    "Field",
    "Junction",
    "Listing",
    "Node",
    "Not",
    "Scalar",
    "Value",
    "children",
    "joined",
    "walk",
]

Scalar = str | int | float | bool | None
Comparator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%"]


@dataclass(frozen=True, slots=True)
class Value:
    """A literal: text, a number, true, false or null."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        """1, 1.0 and true are three literals, although Python calls them equal."""
        return isinstance(other, Value) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of literals."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A feature of the run, by its path."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """Two operands and what stands between them: a comparison, `in`, or arithmetic."""

    op: Comparator
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A function; its first argument is what stands before the dot."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class Junction:
    """Two or more parts, all (`&&`) or any (`||`) of which must hold; no part is a junction of the same kind."""

    op: Literal["&&", "||"]
    parts: tuple[Node, ...]


Node = Value | Listing | Field | Compare | Call | Not | Junction


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Listing(items):
            return items
        case Compare(_, left, right):
            return (left, right)
        case Call(_, args):
            return args
        case Not(operand):
            return (operand,)
        case Junction(_, parts):
            return parts
    return ()


def joined(op: str, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes, with the parts of a junction of this kind in its place."""
    return tuple(
        part for node in nodes for part in (node.parts if isinstance(node, Junction) and node.op == op else (node,))
    )


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)
