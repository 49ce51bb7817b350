"""Text into a tree, within limits. The grammar, loosest first:

    any      = all ("||" all)*                    relation = sum (("==" | "!=" | "<" | "<=" | ">" | ">=" | "in") sum)?
    all      = relation ("&&" relation)*          sum      = product (("+" | "-") product)*
    unary    = ("!" | "-") unary | postfix        product  = unary (("*" | "/" | "%") unary)*
    postfix  = primary ("." name ["(" args ")"] | "[" string "]")*
    primary  = string | number | "true" | "false" | "null" | "[" literals "]" | "(" any ")" | name ["(" args ")"]

A whole text that is one word and no feature is a tag: `needs_json` reads `"needs_json" in tags`, and `!needs_json`
denies it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Literal, TypeVar, cast

from muniment.core.predicates.functions import FUNCTIONS
from muniment.core.predicates.nodes import (
    Call,
    Comparator,
    Compare,
    Field,
    Junction,
    Listing,
    Node,
    Not,
    Value,
    children,
    joined,
)
from muniment.core.predicates.schema import Schema, nearest
from muniment.core.predicates.tokens import KEYWORDS, Token, complain, tokenize
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput, TooLarge

__all__ = ["DEPTH_MAX", "LENGTH_MAX", "NODES_MAX", "TAGS", "Places", "parse_tree"]

LENGTH_MAX = 4096
DEPTH_MAX = 32
NODES_MAX = 512
_NESTING_MAX = 40  # of brackets and signs in the text; a little more than the depth, as brackets may be superfluous

TAGS = Field(("tags",))

Places = dict[int, int]
"""Where in the text a node began, by the node's `id`."""

_N = TypeVar("_N", bound=Node)

_TAG = lazy_pattern(r"(!?)\s*([^\W\d][\w\-:/]{0,127})")
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=", "in")


def parse_tree(source: str, schema: Schema, path: str | None = None) -> tuple[Node, Places]:
    """The tree and where its nodes stood; raises `InvalidInput` for any other text."""
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
    """A literal of any spelling; `1.0` is 1, as in canonical JSON. None where it is no double."""
    value = float(text)
    if not isfinite(value):
        return None
    if text.isdigit():
        return int(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
