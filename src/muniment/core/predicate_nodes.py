"""The nodes of a condition, the features it may name, and its evaluation: true, false or unknown.

Total and bounded: evaluating a condition never raises and never loops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from math import fmod, isfinite
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast, get_args

from muniment.core.scope import Level, Network, Outcome, Verdict
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput

# -- features and their types ---------------------------------------------------------------------------


_MODES = ("main", "sot", "matts", "kroll", "synth", "tree")


def _all(type: Type, prefix: str, names: str) -> dict[str, Feature]:
    return {prefix + name: Feature(type) for name in names.split()}


Type = Literal["string", "number", "bool", "null", "list[string]", "list[number]", "list[any]", "map", "any"]

_DECLARABLE = ("string", "number", "bool", "list[string]", "list[number]", "list[any]", "map", "any")


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature's type and, where the contract closes it, its possible words."""

    type: Type
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schema:
    """Dotted paths and their features; `open` names the paths below which any field is allowed."""

    features: Mapping[str, Feature]
    open: frozenset[str] = frozenset()
    _inner: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for path, feature in self.features.items():
            if feature.type not in _DECLARABLE:
                raise InvalidInput(f"{path!r} is of no known type: {feature.type!r}", hint=", ".join(_DECLARABLE))
        inner = {".".join(path.split(".")[:end]) for path in self.features for end in range(1, path.count(".") + 1)}
        object.__setattr__(self, "_inner", frozenset(inner - self.features.keys()))

    def with_fields(self, features: Mapping[str, Feature | Type], open: Iterable[str] = ()) -> Schema:
        """Return this schema with additional features."""
        made = {path: found if isinstance(found, Feature) else Feature(found) for path, found in features.items()}
        return replace(self, features=MappingProxyType({**self.features, **made}), open=self.open | set(open))

    def find(self, path: tuple[str, ...]) -> Feature | None:
        """Return the feature at a path; None where there is none."""
        dotted = ".".join(path)
        if all("." not in part for part in path):
            if (found := self.features.get(dotted)) is not None:
                return found
            if dotted in self._inner or dotted in self.open:
                return _MAP
        return _ANY if any(".".join(path[:end]) in self.open for end in range(1, len(path))) else None

    def hint_for(self, path: tuple[str, ...]) -> str:
        """Return a hint for an unknown path."""
        opened = f"; what has no name here goes below {', '.join(sorted(self.open))}" if self.open else ""
        close = nearest(".".join(path), self.features) or nearest(path[-1], self._by_last_part())
        if close:
            return f"did you mean {self._by_last_part().get(close, close)}?"
        return f"predicates.features names them all{opened}"

    def _by_last_part(self) -> dict[str, str]:
        return {path.rpartition(".")[2]: path for path in reversed(list(self.features))}


_MAP, _ANY = Feature("map"), Feature("any")


def nearest(word: str, known: Iterable[str]) -> str | None:
    close = get_close_matches(word[:64], list(known), n=1, cutoff=0.6)
    return close[0] if close else None


RUN_FEATURES = Schema(
    MappingProxyType(
        {
            # the subject of the run: the intent and its bucket
            "impact_level": Feature("string", get_args(Level)),
            "user_clarity": Feature("string", get_args(Level)),
            **_all("string", "", "bucket_key intent_key state_key domain_tag task_family task_type"),
            **_all("string", "", "output_format constraint_profile"),
            **_all("list[string]", "", "required_tools tags flow_tags"),
            # the state it is in
            "run.mode": Feature("string", _MODES),
            **_all("string", "run.cfg.", "seed_prompt tool_order plan_style"),
            **_all("number", "run.cfg.", "temperature self_refine_steps"),
            **_all("string", "", "budget_tier policy_profile verifier_profile sot_profile"),
            **_all("list[string]", "", "tool_availability sandbox_flags"),
            **_all("number", "", "sot_max_turns"),
            **_all("number", "policy_signals.", "risk_score opp_score efficiency"),
            # its actions
            **_all("list[string]", "", "tools selected_rule_ids"),
            **_all("number", "cost.", "latency_ms tokens_in tokens_out tool_calls"),
            "sandbox.network": Feature("string", get_args(Network)),
            **_all("bool", "sandbox.", "enabled"),
            **_all("string", "sandbox.", "image_id"),
            **_all("list[string]", "sandbox.", "allowlist"),
            **_all("number", "sandbox.", "turns actions_n files_read_n files_written_n external_fetch_n exec_fail_n"),
            **_all("bool", "experiment.", "exec_ok"),
            **_all("string", "experiment.", "kind harness_id idea_id population_id exec_failure_class"),
            **_all("number", "experiment.", "search_epoch"),
            **_all("number", "experiment.reward.", "total pass cost diversity consistency"),
            **_all("bool", "", "reuse_select.enabled tree_search.enabled praxis.enabled memory_recall.enabled"),
            **_all("string", "", "reuse_select.selected_state_id tree_search.algo memory_fold.trigger_kind"),
            **_all("number", "tree_search.", "node_expanded depth_max frontier_max"),
            **_all("list[string]", "", "praxis.retrieved_tactic_ids praxis.used_tactic_ids"),
            **_all("list[string]", "", "memory_recall.sources memory_recall.retrieved_ids memory_recall.used_ids"),
            **_all("number", "rollout_select.", "rollouts_n top_m diversity_score"),
            # how it was judged
            "verifier.verdict": Feature("string", get_args(Verdict)),
            "verifier.outcome": Feature("string", get_args(Outcome)),
            **_all("string", "", "verifier.verifier_id failure_cluster_id"),
            **_all("number", "verifier.", "score"),
            **_all("list[string]", "", "reason_codes violated_constraints"),
        }
    ),
    open=frozenset({"x_features"}),
)


# -- nodes ----------------------------------------------------------------------------------------------


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
    text: str  # the value of a string
    at: int


def complain(message: str, source: str, at: int, hint: str | None = None, path: str | None = None) -> InvalidInput:
    """Return an error with its location: line and column count characters from 1."""
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
        """Distinguish 1, 1.0 and true, which Python calls equal."""
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
    """Two operands and the operator between them: a comparison, `in`, or arithmetic."""

    op: Comparator
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A function call; its first argument precedes the dot."""

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
    """Return the nodes, with junctions of this kind replaced by their parts."""
    return tuple(
        part for node in nodes for part in (node.parts if isinstance(node, Junction) and node.op == op else (node,))
    )


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and all below it."""
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
    """Return an equivalent tree with the parts of every junction sorted and unique."""
    match node:
        case Junction(op, parts):
            flat = joined(op, map(sorted_tree, parts))
            ordered = {print_tree(part): part for part in flat}
            return Junction(op, tuple(ordered[text] for text in sorted(ordered))) if len(ordered) > 1 else flat[0]
        case Not(operand):
            return Not(sorted_tree(operand))
    return node


def _printed(node: Node) -> tuple[str, int]:
    """Return the text and its binding strength."""
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


# -- evaluation -----------------------------------------------------------------------------------------


Spend = Callable[[int], None]
"""Takes steps from the budget of the evaluation, and ends it when they are used up."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function's accepted types for each argument, the first of which precedes the dot, and its result."""

    args: tuple[tuple[Type, ...], ...]
    result: Type
    apply: Callable[..., Any]
    usage: str


_LISTS: tuple[Type, ...] = ("list[string]", "list[number]", "list[any]", "any")
_TEXT: tuple[Type, ...] = ("string", "any")


def _contains(spend: Spend, whole: Any, part: Any) -> bool | None:
    if isinstance(whole, str):
        spend(len(whole))
        return part in whole if isinstance(part, str) else None
    return member(spend, part, whole)


def member(spend: Spend, item: Any, items: Any) -> bool | None:
    """Return whether an item is in a list. A boolean is not a number, so the types are compared as well."""
    if not isinstance(items, tuple) or isinstance(item, tuple):
        return None
    spend(len(items))
    return any(same(item, other) for other in items)


def same(mine: Any, other: Any) -> bool:
    return isinstance(mine, bool) == isinstance(other, bool) and mine == other


def _starts(spend: Spend, whole: Any, part: Any) -> bool | None:
    spend(len(part) if isinstance(part, str) else 1)
    return whole.startswith(part) if isinstance(whole, str) and isinstance(part, str) else None


def _ends(spend: Spend, whole: Any, part: Any) -> bool | None:
    spend(len(part) if isinstance(part, str) else 1)
    return whole.endswith(part) if isinstance(whole, str) and isinstance(part, str) else None


def _lower(spend: Spend, text: Any) -> str | None:
    if not isinstance(text, str):
        return None
    spend(len(text))
    return text.lower()


def _size(spend: Spend, value: Any) -> int | None:
    spend(1)
    return len(value) if isinstance(value, str | tuple) else None


def _keyed(items: Any) -> set[tuple[bool, Any]]:
    return {(isinstance(item, bool), item) for item in items}


def _subset_of(spend: Spend, mine: Any, other: Any) -> bool | None:
    if not isinstance(mine, tuple) or not isinstance(other, tuple):
        return None
    spend(len(mine) + len(other))
    return _keyed(mine) <= _keyed(other)


def _intersects(spend: Spend, mine: Any, other: Any) -> bool | None:
    if not isinstance(mine, tuple) or not isinstance(other, tuple):
        return None
    spend(len(mine) + len(other))
    return not _keyed(mine).isdisjoint(_keyed(other))


def _like(spend: Spend, text: Any, pattern: Any) -> bool | None:
    return like(spend, text, pattern) if isinstance(text, str) and isinstance(pattern, str) else None


def like(spend: Spend, text: str, pattern: str) -> bool:
    """Match the whole text against a pattern in which `*` is any run of characters and `?` any one.

    The pieces between stars are searched from left to right, the last one at the end; the first match is as good as any
    later one, so nothing is tried twice.
    """
    spend(len(text) + len(pattern))
    first, *rest = pattern.split("*")
    if not _fits(text, 0, first) or (not rest and len(text) != len(first)):
        return False
    if not rest:
        return True
    *middle, last = rest
    at = len(first)
    for piece in middle:
        at = _find(spend, text, at, piece)
        if at < 0:
            return False
        at += len(piece)
    return len(text) - len(last) >= at and _fits(text, len(text) - len(last), last)


def _fits(text: str, at: int, piece: str) -> bool:
    part = text[at : at + len(piece)]
    return len(part) == len(piece) and all(wanted in ("?", found) for wanted, found in zip(piece, part, strict=True))


def _find(spend: Spend, text: str, at: int, piece: str) -> int:
    if "?" not in piece:
        return text.find(piece, at)
    ends = len(text) - len(piece) + 1
    for place in range(at, ends):
        spend(len(piece))
        if _fits(text, place, piece):
            return place
    return -1


FUNCTIONS: dict[str, Function] = {
    "contains": Function(
        (("string", *_LISTS), ("string", "number", "bool", "any")), "bool", _contains, 'tools.contains("search")'
    ),
    "startsWith": Function((_TEXT, _TEXT), "bool", _starts, 'task_family.startsWith("code.")'),
    "endsWith": Function((_TEXT, _TEXT), "bool", _ends, 'task_family.endsWith(".fix")'),
    "like": Function((_TEXT, _TEXT), "bool", _like, 'task_family.like("code.*")'),
    "lower": Function((_TEXT,), "string", _lower, 'domain_tag.lower() == "math"'),
    "size": Function((("string", *_LISTS),), "number", _size, "size(tools) <= 3"),
    "subset_of": Function((_LISTS, _LISTS), "bool", _subset_of, 'tools.subset_of(["search", "read"])'),
    "intersects": Function((_LISTS, _LISTS), "bool", _intersects, 'tools.intersects(["search", "read"])'),
}
"""`has(path)` is handled separately: it asks about a field, not about its value."""


STEPS_MAX = 100_000
"""Step budget of one evaluation: one for each part, and one for each item or character that a part reads."""

Types = Mapping[tuple[str, ...], Type]
"""The declared type of each feature that a tree reads."""

_BITS_MAX = 1023  # the range of a double


class Truth(Enum):
    """Three values; only TRUE is true in an `if`."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        return self is Truth.TRUE

    @classmethod
    def of(cls, value: object) -> Truth:
        return cls.TRUE if value is True else cls.FALSE if value is False else cls.UNKNOWN


class _Spent(Exception):
    """The step budget is used up."""


def evaluate(node: Node, features: Mapping[str, Any], types: Types, steps: int = STEPS_MAX) -> Truth:
    try:
        return Truth.of(_Evaluation(features, types, steps).value(node))
    except _Spent:
        return Truth.UNKNOWN


def value_at(path: tuple[str, ...], features: Mapping[str, Any]) -> Any:
    """Return the value at a path; None where there is none."""
    here: Any = features
    for key in path:
        if type(here) is not dict and not isinstance(here, Mapping):
            return None
        here = here.get(key)
    return here


class _Evaluation:
    """An evaluation. None means unknown throughout: null is not a value here."""

    def __init__(self, features: Mapping[str, Any], types: Types, steps: int) -> None:
        self.features = features
        self.types = types
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _Spent

    def value(self, node: Node) -> Any:
        self.left -= 1
        if self.left < 0:
            raise _Spent
        if isinstance(node, Compare):
            return self.compare(node.op, node.left, node.right)
        if isinstance(node, Field):
            return self.read(node.path)
        if isinstance(node, Value):
            return node.value
        if isinstance(node, Junction):
            return self.junction(node.parts, decided_by=node.op == "||")
        if isinstance(node, Call):
            return self.call(node.name, node.args)
        if isinstance(node, Not):
            held = self.value(node.operand)
            return not held if isinstance(held, bool) else None
        return tuple([item.value for item in node.items])

    def call(self, name: str, args: tuple[Node, ...]) -> Any:
        if name == "has":
            return self.is_there(args[0])
        values = [self.value(arg) for arg in args]
        return None if None in values else FUNCTIONS[name].apply(self.spend, *values)

    def junction(self, parts: tuple[Node, ...], decided_by: bool) -> bool | None:
        result: bool | None = not decided_by
        for part in parts:
            held: object = self.value(part)
            if held is decided_by:
                return decided_by
            if not isinstance(held, bool):
                result = None
        return result

    def compare(self, op: str, left: Node, right: Node) -> Any:
        if op in ("==", "!=") and _NULL in (left, right):
            return self.is_there(left if right == _NULL else right) == (op == "!=")
        mine, other = self.value(left), self.value(right)
        if mine is None or other is None:
            return None
        if op == "in":
            return member(self.spend, mine, other)
        if op in ("==", "!="):
            return self.equal(mine, other) == (op == "==")
        return _ordered(op, mine, other) if op in _ORDERS else _computed(op, mine, other)

    def is_there(self, field: Node) -> bool:
        return isinstance(field, Field) and value_at(field.path, self.features) is not None

    def equal(self, mine: Any, other: Any) -> bool:
        if isinstance(mine, tuple) and isinstance(other, tuple):
            self.spend(min(len(mine), len(other)))
            return len(mine) == len(other) and all(map(same, mine, other))
        return same(mine, other)

    def read(self, path: tuple[str, ...]) -> Any:
        value = self.plain(value_at(path, self.features))
        return value if value is not None and _is(value, self.types[path]) else None

    def plain(self, value: Any) -> Any:
        """Convert data to a value of the language; None if impossible."""
        if isinstance(value, list | tuple):
            self.spend(len(value))
            items = tuple([None if isinstance(item, list | tuple) else self.plain(item) for item in value])
            return None if None in items else items
        if isinstance(value, str | bool):
            return value
        if isinstance(value, int):
            return value if value.bit_length() <= _BITS_MAX else None
        return value if isinstance(value, float) and isfinite(value) else None


_NULL = Value(None)
_ORDERS = ("<", "<=", ">", ">=")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is(value: Any, type: Type) -> bool:
    if type == "string":
        return isinstance(value, str)
    if type == "number":
        return _is_number(value)
    if type == "bool":
        return isinstance(value, bool)
    if type == "list[string]":
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    if type == "list[number]":
        return isinstance(value, tuple) and all(map(_is_number, value))
    return type == "any" or (type == "list[any]" and isinstance(value, tuple))


def _ordered(op: str, mine: Any, other: Any) -> bool | None:
    if not (isinstance(mine, str) and isinstance(other, str)) and not (_is_number(mine) and _is_number(other)):
        return None
    if op in ("<", ">="):
        return bool(mine < other) == (op == "<")
    return bool(mine > other) == (op == ">")


def _computed(op: str, mine: Any, other: Any) -> float | None:
    if not _is_number(mine) or not _is_number(other):
        return None
    a, b = float(mine), float(other)
    if op in ("/", "%") and b == 0:
        return None
    result = a + b if op == "+" else a - b if op == "-" else a * b if op == "*" else a / b if op == "/" else fmod(a, b)
    return result if isfinite(result) else None
