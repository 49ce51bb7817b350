"""Conditions over a run's features, as text: parsed and type-checked when written, total and bounded when evaluated.

No eval, no attribute access, no loops, no clock: a predicate is true, false or unknown for plain data, the same
everywhere, and it holds only where it is true.

    parse('run.mode == "main" && tools.subset_of(["search", "read"]) && cost.tool_calls <= 3')
    parse("needs_json")     # a tag alone: "needs_json" in tags

The syntax is CEL's where both have a construct; there are no macros, no regular expressions and no functions of your
own. `predicate_nodes` holds the nodes and their evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import Any, Literal, NamedTuple, TypeVar, cast

from muniment.core.canonical import digest
from muniment.core.predicate_nodes import (
    FUNCTIONS,
    KEYWORDS,
    RUN_FEATURES,
    Call,
    Comparator,
    Compare,
    Field,
    Junction,
    Listing,
    Node,
    Not,
    Scalar,
    Schema,
    Token,
    Truth,
    Type,
    Types,
    Value,
    children,
    complain,
    evaluate,
    joined,
    nearest,
    print_tree,
    sorted_tree,
    tokenize,
    value_at,
    walk,
)
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput, TooLarge

# -- parsing --------------------------------------------------------------------------------------------


LENGTH_MAX = 4096
DEPTH_MAX = 32
NODES_MAX = 512
_NESTING_MAX = 40  # of brackets and signs in the text; a little more than the depth, as brackets may be superfluous
TAGS = Field(("tags",))


Places = dict[int, int]
"""Position of each node in the text, by the node's `id`."""
_N = TypeVar("_N", bound=Node)
_TAG = lazy_pattern(r"(!?)\s*([^\W\d][\w\-:/]{0,127})")
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=", "in")


def parse_tree(source: str, schema: Schema, path: str | None = None) -> tuple[Node, Places]:
    """Return the tree and the positions of its nodes; raises `InvalidInput` for any other text."""
    if not isinstance(source, str):
        raise InvalidInput(f"a predicate is text, not {type(source).__name__}", path=path)
    if len(source) > LENGTH_MAX:
        raise TooLarge(f"a predicate of {len(source)} characters", path=path, hint=f"at most {LENGTH_MAX}")
    if not source.strip():
        raise InvalidInput("an empty predicate", path=path, hint="leave it out; nothing to ask always holds")
    tag = _TAG.fullmatch(source.strip())
    if tag is not None and tag[2] not in KEYWORDS and schema.find((tag[2],)) is None:
        plain: Node = Compare("in", Value(tag[2]), TAGS)
        return (Not(plain) if tag[1] else plain), {}
    parser = _Parser(source, path)
    node = parser.whole()
    if _depth(node) > DEPTH_MAX:
        raise parser.too_large(f"deeper than {DEPTH_MAX}")
    return node, parser.places


def _depth(root: Node) -> int:
    deepest, waiting = 0, [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend((child, depth + 1) for child in children(node))
    return deepest


class _Parser:
    def __init__(self, source: str, path: str | None) -> None:
        self.source = source
        self.path = path
        self.tokens = tokenize(source, path)
        self.at = 0
        self.nesting = 0
        self.places: Places = {}
        self.kept: list[Node] = []  # nodes whose place is noted live as long as the parser, so that no id returns

    # -- the grammar ----------------------------------------------------------------------------------

    def whole(self) -> Node:
        node = self.any()
        if self.next.kind != "end":
            raise self.unexpected()
        return node

    def any(self) -> Node:
        return self.junction("||", self.all)

    def all(self) -> Node:
        return self.junction("&&", self.relation)

    def junction(self, op: Literal["&&", "||"], part: Callable[[], Node]) -> Node:
        start, node = self.next.at, part()
        parts = [node]
        while self.take(op):
            parts.append(part())
        if len(parts) == 1:
            return node
        return self.made(Junction(op, joined(op, parts)), start)

    def relation(self) -> Node:
        start, left = self.next.at, self.sum()
        op = self.take(*_RELATIONS)
        if op is None:
            return left
        node = self.made(Compare(cast("Comparator", op), left, self.sum()), start)
        if self.next.text in _RELATIONS and self.next.kind in ("sign", "name"):
            raise self.wrong("comparisons do not chain", "a < b && b < c")
        return node

    def sum(self) -> Node:
        return self.chain(("+", "-"), self.product)

    def product(self) -> Node:
        return self.chain(("*", "/", "%"), self.unary)

    def chain(self, ops: tuple[str, ...], part: Callable[[], Node]) -> Node:
        start, node = self.next.at, part()
        while op := self.take(*ops):
            node = self.made(Compare(cast("Comparator", op), node, part()), start)
        return node

    def unary(self) -> Node:
        start = self.next.at
        if self.take("!"):
            return self.made(Not(self.inside(self.unary)), start)
        if self.take("-"):
            node = self.inside(self.unary)
            if isinstance(node, Value) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
                return self.made(Value(-node.value), start)
            return self.made(Compare("-", self.made(Value(0), start), node), start)
        return self.postfix()

    def postfix(self) -> Node:
        start, node = self.next.at, self.primary()
        while True:
            if self.take("."):
                name = self.name("a name after the dot")
                if self.take("("):
                    node = self.call(name, start, node)
                    continue
                key = name.text
            elif self.next.text == "[" and self.next.kind == "sign":
                self.take("[")
                key = self.key()
            else:
                return node
            if not isinstance(node, Field):
                raise complain(f"{key!r} is asked of what is not a feature", self.source, start, None, self.path)
            node = self.made(Field((*node.path, key)), start)

    def primary(self) -> Node:
        token = self.next
        if token.kind == "sign" and self.take("("):
            node = self.inside(self.any)
            self.need(")")
            return node
        if token.kind == "sign" and self.take("["):
            return self.listing(token.at)
        if token.kind in ("string", "number") or (token.kind == "name" and token.text in ("true", "false", "null")):
            return self.literal()
        if token.kind != "name" or token.text in KEYWORDS:
            raise self.unexpected()
        self.at += 1
        if self.take("("):
            return self.call(token, token.at)
        return self.made(Field((token.text,)), token.at)

    # -- its parts ------------------------------------------------------------------------------------

    def call(self, name: Token, start: int, *target: Node) -> Node:
        args = list(target)
        if not self.take(")"):
            args.append(self.inside(self.any))
            while self.take(","):
                args.append(self.inside(self.any))
            self.need(")")
        if name.text == "has":
            if len(args) != 1 or not isinstance(args[0], Field):
                raise complain("has() asks for one feature", self.source, name.at, "has(run.mode)", self.path)
        elif name.text not in FUNCTIONS:
            close = nearest(name.text, (*FUNCTIONS, "has"))
            hint = f"did you mean {close}?" if close else f"there are {', '.join((*FUNCTIONS, 'has'))}"
            if name.text in ("matches", "regex", "match"):
                hint = 'there are no regular expressions here; patterns are x.like("a*b?")'
            raise complain(f"no function {name.text}()", self.source, name.at, hint, self.path)
        return self.made(Call(name.text, tuple(args)), start)

    def listing(self, start: int) -> Node:
        items: list[Value] = []
        while not self.take("]"):
            if items:
                self.need(",")
            items.append(self.literal())
            if items[-1].value is None:
                raise self.wrong("null is no item of a list", "has(x) asks whether something is there")
        return self.made(Listing(tuple(items)), start)

    def literal(self) -> Value:
        start, minus, token = self.next.at, self.take("-"), self.next
        self.at += 1
        if token.kind == "number":
            number = _number(token.text)
            if number is None:
                raise complain("a number out of range", self.source, token.at, "at most about 1.8e308", self.path)
            return self.made(Value(-number if minus else number), start)
        if not minus and token.kind == "string":
            return self.made(Value(token.text), start)
        if not minus and token.kind == "name" and token.text in _WORDS:
            return self.made(Value(_WORDS[token.text]), start)
        self.at -= 1
        raise self.wrong("a list holds text, numbers, true and false", '["a", "b"]')

    def key(self) -> str:
        token = self.next
        if token.kind != "string":
            raise self.wrong("only a name in quotation marks stands in [ ]", 'x_features["my name"]')
        self.at += 1
        self.need("]")
        return token.text

    def name(self, wanted: str) -> Token:
        token = self.next
        if token.kind != "name":
            raise self.wrong(f"wanted {wanted}", None)
        self.at += 1
        return token

    # -- tokens ---------------------------------------------------------------------------------------

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self, *texts: str) -> str | None:
        token = self.next
        if token.text not in texts or token.kind not in ("sign", "name"):
            return None
        self.at += 1
        return token.text

    def need(self, text: str) -> None:
        if not self.take(text):
            raise self.wrong(f"wanted {text!r}", None)

    def inside(self, part: Callable[[], Node]) -> Node:
        self.nesting += 1
        if self.nesting > _NESTING_MAX:
            raise self.too_large(f"deeper than {DEPTH_MAX}")
        node = part()
        self.nesting -= 1
        return node

    def made(self, node: _N, start: int) -> _N:
        self.places[id(node)] = start
        self.kept.append(node)
        if len(self.kept) > NODES_MAX:
            raise self.too_large(f"of more than {NODES_MAX} parts")
        return node

    def wrong(self, message: str, hint: str | None) -> InvalidInput:
        return complain(message, self.source, self.next.at, hint, self.path)

    def unexpected(self) -> InvalidInput:
        token = self.next
        if token.kind == "end":
            return self.wrong("it ends too early", 'a condition such as run.mode == "main"')
        word = _SPELLED.get(token.text.lower()) if token.kind == "name" else None
        return self.wrong(f"{token.text[:40]!r} is out of place", word and f"write {word}")

    def too_large(self, what: str) -> TooLarge:
        return TooLarge(f"a predicate {what}", path=self.path, hint="split it: all predicates of a record must hold")


_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_SPELLED = {"and": "&&", "or": "||", "not": "!", "is": "=="}


def _number(text: str) -> int | float | None:
    """Parse a number in any spelling; `1.0` is 1, as in canonical JSON. None if it is not a double."""
    value = float(text)
    if not isfinite(value):
        return None
    if text.isdigit():
        return int(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


_ITEM: dict[str, Type] = {"list[string]": "string", "list[number]": "number", "list[any]": "any", "any": "any"}


_COMPARABLE: tuple[Type, ...] = ("string", "number", "bool", "list[string]", "list[number]", "list[any]", "any")


def check_condition(node: Node, schema: Schema, source: str, places: Places, path: str | None = None) -> None:
    """Check that the tree is a condition over these features. `source` and `places` locate errors."""
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
        """Check that an enumerated feature is compared only with its words."""
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


# -- predicates -----------------------------------------------------------------------------------------


_SHOWN_MAX = 120


class Leaf(NamedTuple):
    """One condition inside a predicate, its result, and the values of the features it reads."""

    text: str
    truth: Truth
    found: tuple[tuple[str, str], ...]


class Explanation(NamedTuple):
    """The result of a predicate, and the leaves that decided it."""

    truth: Truth
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class Predicate:
    """Made by `parse` or `predicate_of`, which check it. Two are equal if their trees and features are."""

    tree: Node
    schema: Schema

    @cached_property
    def text(self) -> str:
        """Return the canonical text."""
        return print_tree(self.tree)

    @cached_property
    def digest(self) -> str:
        """Return a hash, equal for predicates that differ only in the order or repetition of `&&` and `||` parts."""
        return digest(print_tree(sorted_tree(self.tree)).encode()).hex()

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Return the features it uses, sorted."""
        return tuple(sorted({".".join(node.path) for node in walk(self.tree) if isinstance(node, Field)}))

    @cached_property
    def conjuncts(self) -> tuple[Node, ...]:
        """Return the parts that must all hold."""
        return joined("&&", (self.tree,))

    @cached_property
    def _types(self) -> Types:
        paths = {node.path for node in walk(self.tree) if isinstance(node, Field)}
        return {path: found.type for path in paths if (found := self.schema.find(path)) is not None}

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.tree)

    def holds(self, features: Mapping[str, Any]) -> Truth:
        """Evaluate. Never raises, whatever the data; truthy only where it is TRUE."""
        return evaluate(self.tree, features, self._types)

    def explain(self, features: Mapping[str, Any]) -> Explanation:
        """Return the deciding leaves: of a conjunction the first false one, of an alternative all of them."""
        truth = self.holds(features)
        return Explanation(truth, tuple(self._leaves(self.tree, features)))

    def implies_by_parts(self, other: Predicate) -> bool:
        """Return whether every part of `other` is among the parts of this one, so that this implies it."""
        return set(other.conjuncts) <= set(self.conjuncts)

    def _leaves(self, node: Node, features: Mapping[str, Any]) -> list[Leaf]:
        if isinstance(node, Not) and isinstance(node.operand, Junction | Not):
            return self._leaves(node.operand, features)
        truth = evaluate(node, features, self._types)
        if not isinstance(node, Junction):
            paths = dict.fromkeys(part.path for part in walk(node) if isinstance(part, Field))
            found = tuple((".".join(path), _short(value_at(path, features))) for path in paths)
            return [Leaf(print_tree(node), truth, found)]
        alike = [part for part in node.parts if evaluate(part, features, self._types) is truth]
        decisive = Truth.FALSE if node.op == "&&" else Truth.TRUE
        chosen = alike[:1] if truth is decisive else alike
        return [leaf for part in chosen for leaf in self._leaves(part, features)]


def parse(text: str, schema: Schema = RUN_FEATURES, *, path: str | None = None) -> Predicate:
    """Parse text into a predicate; raises `InvalidInput` with line, column and a hint. `path` locates the text."""
    tree, places = parse_tree(text, schema, path)
    return _checked(tree, schema, text, places, path)


def predicate_of(tree: Node, schema: Schema = RUN_FEATURES) -> Predicate:
    """Check a tree that was built rather than parsed, and make it a predicate."""
    text = print_tree(tree)
    return parse(text, schema)


def all_hold(predicates: Iterable[Predicate], features: Mapping[str, Any]) -> Truth:
    """Evaluate a record's predicates together: all must hold; an empty list holds."""
    truths = {predicate.holds(features) for predicate in predicates}
    return next((truth for truth in (Truth.FALSE, Truth.UNKNOWN) if truth in truths), Truth.TRUE)


def _checked(tree: Node, schema: Schema, source: str, places: Places, path: str | None) -> Predicate:
    check_condition(tree, schema, source, places, path)
    predicate = Predicate(tree, schema)
    if len(predicate.text) > LENGTH_MAX:
        raise TooLarge(f"a predicate of {len(predicate.text)} characters", path=path, hint=f"at most {LENGTH_MAX}")
    return predicate


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, int) and value.bit_length() > 1024:
        return "a very large number"
    if isinstance(value, Mapping):
        return "a group of features"
    if isinstance(value, list | tuple):
        return _cut(
            f"[{', '.join(_short(item) if not isinstance(item, list | tuple) else '[…]' for item in value[:8])}"
            f"{', …' if len(value) > 8 else ''}]"
        )
    return _cut(repr(value[:_SHOWN_MAX]) if isinstance(value, str) else str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"


def equal(path: str, value: Scalar) -> Node:
    """`run.mode == "main"`."""
    return Compare("==", _field(path), Value(value))


def one_of(path: str, values: Iterable[Scalar]) -> Node:
    """`task_family in ["a", "b"]`; of a single value, `==`."""
    several = _listing(values)
    return Compare("in", _field(path), several) if len(several.items) != 1 else equal(path, several.items[0].value)


def within(path: str, values: Iterable[Scalar]) -> Node:
    """`tools.subset_of(["a", "b"])`: nothing but these."""
    return Call("subset_of", (_field(path), _listing(values)))


def holds_all(path: str, values: Iterable[Scalar]) -> Node:
    """`["a", "b"].subset_of(tools)`: all of these, and perhaps others; of a single value, `in`."""
    several = _listing(values)
    if len(several.items) == 1:
        return Compare("in", several.items[0], _field(path))
    return Call("subset_of", (several, _field(path)))


def at_most(path: str, number: float) -> Node:
    return Compare("<=", _field(path), Value(_whole(number)))


def at_least(path: str, number: float) -> Node:
    return Compare(">=", _field(path), Value(_whole(number)))


def tagged(tag: str) -> Node:
    return Compare("in", Value(tag), Field(("tags",)))


def denied(condition: Node) -> Node:
    return Not(condition)


def conjunction(conditions: Iterable[Node], schema: Schema = RUN_FEATURES) -> Predicate:
    """Return the conjunction of conditions, sorted and unique, so that the same conditions make the same predicate."""
    parts = [part for _, part in sorted({print_tree(part): part for part in joined("&&", conditions)}.items())]
    if len(parts) == 1:
        return predicate_of(parts[0], schema)
    return predicate_of(Junction("&&", tuple(parts)) if parts else Value(True), schema)


def _field(path: str) -> Field:
    return Field(tuple(path.split(".")))


def _listing(values: Iterable[Scalar]) -> Listing:
    """Return the values in a fixed order: text sorted, numbers after it."""
    items = {Value(_whole(value)) for value in values}
    return Listing(tuple(sorted(items, key=lambda item: (type(item.value).__name__, item.value))))


def _whole(value: Scalar) -> Scalar:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


_Key = tuple[bool, Scalar]
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass
class _Known:
    """Constraints on one feature collected so far. None: no constraint."""

    allowed: set[_Key] | None = None
    refused: set[_Key] = field(default_factory=set)
    low: tuple[float, bool] = (-inf, False)  # the bound, and whether it is excluded itself
    high: tuple[float, bool] = (inf, False)
    absent: bool = False
    present: bool = False

    @property
    def is_empty(self) -> bool:
        if self.absent and self.present:
            return True
        if self.low[0] > self.high[0] or (self.low[0] == self.high[0] and (self.low[1] or self.high[1])):
            return True
        return self.allowed is not None and not any(
            key not in self.refused and self._in_bounds(key) for key in self.allowed
        )

    def _in_bounds(self, key: _Key) -> bool:
        value = key[1]
        if isinstance(value, bool) or not isinstance(value, int | float):
            return (self.low, self.high) == ((-inf, False), (inf, False))
        above = value > self.low[0] or (value == self.low[0] and not self.low[1])
        return above and (value < self.high[0] or (value == self.high[0] and not self.high[1]))


def contradiction(predicate: Predicate) -> str | None:
    """Return a feature about which the parts contradict each other; None where none is found."""
    known: dict[tuple[str, ...], _Known] = {}
    for part in predicate.conjuncts:
        if isinstance(part, Value) and part.value is False:
            return "false"
        subject = _note(part, known)
        if subject is not None and known[subject].is_empty:
            return ".".join(subject)
    return None


def _note(part: Node, known: dict[tuple[str, ...], _Known]) -> tuple[str, ...] | None:
    """Record the constraint of a part, and return its feature."""
    match part:
        case Compare("in", Field(path), Listing(items)):
            _allow(known.setdefault(path, _Known()), {_key(item) for item in items})
        case Compare(op, Field(path), Value() as value) if op in _MIRRORED:
            _compare(known.setdefault(path, _Known()), op, value)
        case Compare(op, Value() as value, Field(path)) if op in _MIRRORED:
            _compare(known.setdefault(path, _Known()), _MIRRORED[op], value)
        case Call("has", (Field(path),)):
            known.setdefault(path, _Known()).present = True
        case Not(Call("has", (Field(path),))):
            known.setdefault(path, _Known()).absent = True
        case _:
            return None
    return path


def _compare(about: _Known, op: str, literal: Value) -> None:
    value = literal.value
    if value is None:
        about.absent, about.present = about.absent or op == "==", about.present or op == "!="
        return
    about.present = True  # no comparison with an absent value is true
    if op == "==":
        _allow(about, {_key(literal)})
    elif op == "!=":
        about.refused.add(_key(literal))
    elif isinstance(value, int | float):
        if op in (">", ">="):
            about.low = max(about.low, (value, op == ">"))
        else:
            about.high = min(about.high, (value, op == "<"), key=lambda bound: (bound[0], not bound[1]))


def _allow(about: _Known, keys: set[_Key]) -> None:
    about.present = True
    about.allowed = keys if about.allowed is None else about.allowed & keys


def _key(literal: Value) -> _Key:
    return isinstance(literal.value, bool), literal.value
