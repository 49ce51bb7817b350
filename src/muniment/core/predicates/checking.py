"""Types, when a predicate is written: what cannot be meant is refused with its place and what would do."""

from __future__ import annotations

from muniment.core.predicates.functions import FUNCTIONS
from muniment.core.predicates.nodes import Call, Compare, Field, Junction, Listing, Node, Not, Value
from muniment.core.predicates.parser import Places
from muniment.core.predicates.schema import Schema, Type, nearest
from muniment.core.predicates.tokens import complain
from muniment.errors import InvalidInput

__all__ = ["check_condition"]

_ITEM: dict[str, Type] = {"list[string]": "string", "list[number]": "number", "list[any]": "any", "any": "any"}

_COMPARABLE: tuple[Type, ...] = ("string", "number", "bool", "list[string]", "list[number]", "list[any]", "any")


def check_condition(node: Node, schema: Schema, source: str, places: Places, path: str | None = None) -> None:
    """Is the tree a condition over these features? `source` and `places` say where, in the complaint."""
    _Checker(schema, source, places, path).condition(node)


class _Checker:
    def __init__(self, schema: Schema, source: str, places: Places, path: str | None) -> None:
        self.schema = schema
        self.source = source
        self.places = places
        self.path = path

    def condition(self, node: Node) -> None:
        found = self.type_of(node)
        if found not in ("bool", "any"):
            raise self.wrong(node, f"a condition is true or false, this is {_a(found)}", _as_condition(found))

    def type_of(self, node: Node) -> Type:
        match node:
            case Value(value):
                return _type_of_value(value)
            case Listing(items):
                kinds = {_type_of_value(item.value) for item in items}
                return {frozenset({"string"}): "list[string]", frozenset({"number"}): "list[number]"}.get(  # type: ignore[return-value]
                    frozenset(kinds), "list[any]"
                )
            case Field(path):
                return self.field(node, path)
            case Not(operand):
                self.condition(operand)
                return "bool"
            case Junction(_, parts):
                for part in parts:
                    self.condition(part)
                return "bool"
            case Call(name, args):
                return self.call(node, name, args)
            case Compare(op, left, right):
                return self.compare(node, op, left, right)

    def field(self, node: Node, path: tuple[str, ...]) -> Type:
        feature = self.schema.find(path)
        if feature is None:
            raise self.wrong(node, f"no feature {'.'.join(path)[:80]!r}", self.schema.hint_for(path))
        return feature.type

    def call(self, node: Node, name: str, args: tuple[Node, ...]) -> Type:
        if name == "has":
            self.type_of(args[0])
            return "bool"
        function = FUNCTIONS[name]
        if len(args) != len(function.args):
            raise self.wrong(
                node, f"{name}() with {len(args)} arguments instead of {len(function.args)}", function.usage
            )
        types = [self.type_of(arg) for arg in args]
        for arg, found, wanted in zip(args, types, function.args, strict=True):
            if found not in wanted:
                raise self.wrong(arg, f"{name}() of {_a(found)}, it wants {_either(wanted)}", function.usage)
        if name in ("subset_of", "intersects"):
            self.agree(node, _ITEM[types[0]], _ITEM[types[1]], f"{name}() of")
        if name == "contains":
            self.agree(node, _ITEM.get(types[0], types[0]), types[1], "contains() of")
        return function.result

    def compare(self, node: Node, op: str, left: Node, right: Node) -> Type:
        mine, other = self.type_of(left), self.type_of(right)
        if "null" in (mine, other):
            return self.null(node, op, left, right)
        if op in ("+", "-", "*", "/", "%"):
            self.each_in(node, op, (mine, other), ("number", "any"))
            return "number"
        if op == "in":
            if other not in _ITEM:
                hint = "text in text is x.contains(y)" if other == "string" else 'x in ["a", "b"]'
                raise self.wrong(right, f"`in` looks into a list, not into {_a(other)}", hint)
            if mine not in ("string", "number", "bool", "any"):
                raise self.wrong(
                    left, f"`in` asks about one item, not about {_a(mine)}", "x.subset_of(y), x.intersects(y)"
                )
            self.agree(node, mine, _ITEM[other], "`in` between")
        else:
            if op not in ("==", "!="):
                self.each_in(node, op, (mine, other), ("number", "string", "any"))
            self.each_in(node, op, (mine, other), _COMPARABLE)
            self.agree(node, mine, other, f"{op} between")
        self.words(left, right)
        self.words(right, left)
        return "bool"

    def null(self, node: Node, op: str, left: Node, right: Node) -> Type:
        if op not in ("==", "!=") or isinstance(left, Field) == isinstance(right, Field):
            raise self.wrong(node, "null is compared with a feature, by == or !=", "has(run.mode)")
        return "bool"

    def each_in(self, node: Node, op: str, found: tuple[Type, ...], wanted: tuple[Type, ...]) -> None:
        for each in found:
            if each not in wanted:
                raise self.wrong(node, f"{op} does not work on {_a(each)}", f"it wants {_either(wanted)}")

    def agree(self, node: Node, mine: Type, other: Type, what: str) -> None:
        if mine == other or "any" in (mine, other) or ({mine, other} <= _ITEM.keys() and "list[any]" in (mine, other)):
            return
        raise self.wrong(node, f"{what} {_a(mine)} and {_a(other)}", "the two are never of one type")

    def words(self, field: Node, against: Node) -> None:
        """A feature of few words is compared only with those."""
        feature = self.schema.find(field.path) if isinstance(field, Field) else None
        if feature is None or not feature.choices:
            return
        values = against.items if isinstance(against, Listing) else (against,) if isinstance(against, Value) else ()
        for value in values:
            if value.value not in feature.choices:
                close = nearest(str(value.value), feature.choices)
                hint = f"did you mean {close!r}?" if close else f"one of {', '.join(feature.choices)}"
                raise self.wrong(value, f"it is never {value.value!r}", hint)

    def wrong(self, node: Node, message: str, hint: str | None) -> InvalidInput:
        return complain(message, self.source, self.places.get(id(node), 0), hint, self.path)


def _type_of_value(value: object) -> Type:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    return "string" if isinstance(value, str) else "number"


def _a(found: str) -> str:
    return {"bool": "true or false", "map": "a group of features", "null": "null"}.get(found, f"a {found}")


def _either(wanted: tuple[Type, ...]) -> str:
    return " or ".join(_a(each) for each in wanted if each != "any")


def _as_condition(found: Type) -> str:
    return {
        "string": 'compare it: x == "main"',
        "number": "compare it: x > 0",
        "map": "name one of its features, or ask has(x)",
        "null": "ask has(x)",
    }.get(found, 'ask about its items: "a" in x, size(x) > 0')
