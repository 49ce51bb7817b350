"""The tree of a predicate: its words and nodes, plain and frozen, and how it is written as text in one way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput

__all__ = [
    "KEYWORDS",
    "Call",
    "Compare",
    "Field",
    "Junction",
    "Kind",
    "Listing",
    "Node",
    "Not",
    "Scalar",
    "Token",
    "Value",
    "children",
    "complain",
    "joined",
    "print_tree",
    "sorted_tree",
    "tokenize",
    "walk",
]

Kind = Literal["name", "string", "number", "sign", "end"]

KEYWORDS = ("true", "false", "null", "in")

_TOKEN = lazy_pattern(
    r"""(?x)
    (?P<space>[ \t\r\n]+)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
    | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!().,\[\]])
    """
)
_ESCAPE = lazy_pattern(r"\\(?:u([0-9A-Fa-f]{4})|(.))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_SURROGATE = lazy_pattern("[\ud800-\udfff]")


class Token(NamedTuple):
    kind: Kind
    text: str  # of a string, what it says
    at: int


def complain(message: str, source: str, at: int, hint: str | None = None, path: str | None = None) -> InvalidInput:
    """An error that says where: line and column count characters from 1."""
    line, column = source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at)
    where = f"{message}, at line {line}, column {column}"
    return InvalidInput(where, path=path, hint=hint, details={"line": line, "column": column, "text": source})


def tokenize(source: str, path: str | None = None) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        if found is None:
            raise complain(_strange(source, at), source, at, _hint(source, at), path)
        kind, text = found.lastgroup, found[0]
        if kind == "string":
            tokens.append(Token("string", _unescape(text, source, at, path), at))
        elif kind in ("name", "number", "sign"):
            tokens.append(Token(cast("Kind", kind), text, at))
        at = found.end()
        if kind == "number" and at < len(source) and (source[at].isalnum() or source[at] == "_"):
            raise complain(f"{text + source[at]!r} is not a number", source, at, None, path)
    tokens.append(Token("end", "", len(source)))
    return tokens


def _unescape(quoted: str, source: str, at: int, path: str | None) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1] is not None:
            return chr(int(found[1], 16))
        plain = _ESCAPES.get(found[2])
        if plain is None:
            place = at + 1 + found.start()
            raise complain(f"unknown escape \\{found[2]}", source, place, r"one of \n \t \r \\ \" \' \u4e2d", path)
        return plain

    said = _ESCAPE.sub(one, quoted[1:-1])
    if _SURROGATE.search(said):
        raise complain("half of a surrogate pair", source, at, "write the character itself", path)
    return said


def _strange(source: str, at: int) -> str:
    return "a string that does not end" if source[at] in "\"'" else f"{source[at]!r} has no place in a predicate"


def _hint(source: str, at: int) -> str | None:
    if source[at] in "\"'":
        return "close it on the same line with the same quotation mark"
    if source[at] in "=&|~":
        return {"=": "equality is ==", "&": "and is &&", "|": "or is ||", "~": 'patterns: x.like("a*")'}[source[at]]
    if not source[at].isascii():
        return 'text of any language stands between quotation marks, a name as ["名"] after its parent'
    return None


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


_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSAFE = lazy_pattern(r'[\\"\x00-\x1f\x7f\u2028\u2029]')
_SHORT = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\t": r"\t", "\r": r"\r"}
_LOOSENESS = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3}
_LOOSENESS |= {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_UNARY, _ATOM = 6, 7


def print_tree(node: Node) -> str:
    return _printed(node)[0]


def sorted_tree(node: Node) -> Node:
    """A tree of the same meaning in which the parts of every junction are sorted, and none stands twice."""
    match node:
        case Junction(op, parts):
            flat = joined(op, map(sorted_tree, parts))
            ordered = {print_tree(part): part for part in flat}
            return Junction(op, tuple(ordered[text] for text in sorted(ordered))) if len(ordered) > 1 else flat[0]
        case Not(operand):
            return Not(sorted_tree(operand))
    return node


def _printed(node: Node) -> tuple[str, int]:
    """The text and how tightly it binds."""
    match node:
        case Value(value):
            return _literal(value), _UNARY if isinstance(value, int | float) and value < 0 else _ATOM
        case Listing(items):
            return f"[{', '.join(_literal(item.value) for item in items)}]", _ATOM
        case Field(path):
            return _path(path), _ATOM
        case Not(operand):
            return "!" + _within(operand, _UNARY), _UNARY
        case Call("has" | "size" as name, (only,)):
            return f"{name}({print_tree(only)})", _ATOM
        case Call(name, args):
            target, *rest = args
            return f"{_within(target, _ATOM)}.{name}({', '.join(map(print_tree, rest))})", _ATOM
        case Junction(op, parts):
            own = _LOOSENESS[op]
            return f" {op} ".join(_within(part, own + 1) for part in parts), own
        case Compare(op, left, right):
            own = _LOOSENESS[op]
            both = own + 1 if own == 3 else own  # comparisons do not chain, arithmetic does to the left
            return f"{_within(left, both)} {op} {_within(right, own + 1)}", own


def _within(node: Node, least: int) -> str:
    text, binding = _printed(node)
    return text if binding >= least else f"({text})"


def _path(path: tuple[str, ...]) -> str:
    first, *rest = path
    return first + "".join(f".{part}" if _is_name(part) else f"[{_quoted(part)}]" for part in rest)


def _is_name(part: str) -> bool:
    return _NAME.fullmatch(part) is not None and part not in KEYWORDS


def _literal(value: Scalar) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    return '"' + _UNSAFE.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}", text) + '"'
