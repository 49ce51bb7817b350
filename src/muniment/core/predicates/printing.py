"""A tree as text: one way to write each, and it reads back as the same tree."""

from __future__ import annotations

from muniment.core.predicates.nodes import Call, Compare, Field, Junction, Listing, Node, Not, Scalar, Value, joined
from muniment.core.predicates.tokens import KEYWORDS
from muniment.core.text.patterns import lazy_pattern

__all__ = ["print_tree", "sorted_tree"]

_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSAFE = lazy_pattern(r'[\\"\x00-\x1f\x7f\u2028\u2029]')
_SHORT = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\t": r"\t", "\r": r"\r"}
_LOOSENESS = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3}
_LOOSENESS |= {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_UNARY, _ATOM = 6, 7


def print_tree(node: Node) -> str:
    return _printed(node)[0]


def sorted_tree(node: Node) -> Node:
    """The same meaning in one order: parts of a junction sorted and said once."""
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
