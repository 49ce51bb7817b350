"""Whatever is written and whatever it is asked of: an answer or a named refusal, the same each time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.predicate_nodes import (
    FUNCTIONS,
    RUN_FEATURES,
    Call,
    Compare,
    Field,
    Junction,
    Listing,
    Node,
    Not,
    Truth,
    Value,
    joined,
    like,
    print_tree,
)
from muniment.core.predicates import Predicate, contradiction, parse, parse_tree, predicate_of
from muniment.errors import InvalidInput, TooLarge

PATHS = [tuple(path.split(".")) for path in RUN_FEATURES.features] + [("x_features", "a"), ("x_features", "b c", "名")]
WORDS = ["main", "sot", "a", "文", '"', "\\", "\n", "*", ""]

scalars = st.sampled_from(WORDS) | st.integers(-5, 5) | st.floats(-3, 3).map(lambda x: x + 0.25) | st.booleans()
literals = scalars.map(Value)
leaves: st.SearchStrategy[Node] = (
    literals
    | st.lists(literals, max_size=4).map(lambda items: Listing(tuple(items)))
    | st.sampled_from(PATHS).map(Field)
)


def _grown(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    ops = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%"])
    calls = st.sampled_from(sorted(FUNCTIONS)).flatmap(
        lambda name: st.tuples(*[inner] * len(FUNCTIONS[name].args)).map(lambda args: Call(name, args))
    )
    return (
        st.builds(Compare, ops, inner, inner)  # type: ignore[arg-type]
        | calls
        | st.builds(Not, inner)
        | st.sampled_from(PATHS).map(lambda path: Call("has", (Field(path),)))
        | st.tuples(st.sampled_from(["&&", "||"]), st.lists(inner, min_size=2, max_size=4)).map(
            lambda made: Junction(made[0], joined(*made))
        )
    )


trees = st.recursive(leaves, _grown, max_leaves=12)


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    """Well-typed ones: any tree that passes the check."""
    parts = []
    for tree in draw(st.lists(trees, min_size=1, max_size=6)):
        try:
            parts.append(predicate_of(tree).tree)
        except InvalidInput:
            parts.append(draw(st.sampled_from(SOUND)))
    return predicate_of(parts[0] if len(parts) == 1 else Junction("||", joined("||", parts)))


SOUND: list[Node] = [
    parse(text).tree
    for text in (
        'run.mode == "main"',
        "cost.tool_calls + x_features.a > cost.tokens_in / 2",
        'tools.subset_of(["a", "文"]) && !sandbox.enabled',
        'x_features.a.like("*a?*")',
        "size(x_features.a) > 1 || x_features.a in x_features.b",
        "x_features.a == x_features.b",
        'domain_tag.lower().contains("a")',
    )
]

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([10**400, "main"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b c", "名", "mode"]), inner, max_size=4)
    ),
    max_leaves=12,
)
runs = st.dictionaries(st.sampled_from([path[0] for path in PATHS]), anything, max_size=8)

PIECES = [
    *("run.mode", "tools", "x_features", ".", "(", ")", "[", "]", '"', "'", "&&", "||", "!", "-", "==", "in", "<", "1"),
    *("0.5", "1e9", "\\", "has(", "size(", "like", "null", "true", "a", "文", ",", '"a"', "e", "_"),
]
fragments = st.lists(st.sampled_from([*PIECES, " ", "\n", "\ud800"]), max_size=30).map("".join)


@settings(max_examples=examples(120))
@given(fragments | st.text(max_size=60) | st.text(alphabet="()[]!-.&|\"'a1 ", max_size=300))
@example("!" * 4096)
@example("(" * 4096)
@example("a" * 4096)
@example("." * 4096)
@example("1" * 4096 + " > 1")
@example('"' + "\\" * 4094)
@example("a.b" * 1000)
@example("\ud800")
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        predicate = parse(text)
    except InvalidInput:
        return
    assert parse(predicate.text) == predicate
    assert isinstance(predicate.holds({}), Truth)


@settings(max_examples=examples(100))
@given(trees)
def test_what_is_printed_reads_back_as_the_same_tree(tree: Node) -> None:
    text = print_tree(tree)
    try:
        again, _ = parse_tree(text, RUN_FEATURES)
    except TooLarge:
        return
    assert again == tree
    assert print_tree(again) == text


@pytest.mark.soak
@settings(max_examples=examples(100))
@given(predicates(), runs)
def test_any_predicate_of_any_run_has_one_truth(predicate: Predicate, run: dict[str, Any]) -> None:
    truth = predicate.holds(run)
    assert isinstance(truth, Truth)
    assert parse(predicate.text).holds(run) is truth
    assert predicate.explain(run).truth is truth
    assert predicate.explain(run).leaves
    denied = {Truth.TRUE: Truth.FALSE, Truth.FALSE: Truth.TRUE, Truth.UNKNOWN: Truth.UNKNOWN}[truth]
    assert Predicate(Not(predicate.tree), RUN_FEATURES).holds(run) is denied
    if contradiction(predicate) is not None:
        assert truth is not Truth.TRUE


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(SOUND), min_size=1, max_size=5), runs)
def test_sorting_does_not_change_the_meaning(parts: list[Node], run: dict[str, Any]) -> None:
    forward = predicate_of(parts[0] if len(parts) == 1 else Junction("&&", joined("&&", parts)))
    backward = predicate_of(parts[0] if len(parts) == 1 else Junction("&&", joined("&&", parts[::-1])))
    assert forward.digest == backward.digest
    assert forward.holds(run) is backward.holds(run)
    assert forward.implies_by_parts(backward)


def _like_by_table(text: str, pattern: str) -> bool:
    """The textbook's quadratic table, as an oracle."""
    row = [True] + [False] * len(text)
    for sign in pattern:
        if sign == "*":
            row = [any(row[: end + 1]) for end in range(len(text) + 1)]
        else:
            row = [False] + [row[end] and sign in ("?", text[end]) for end in range(len(text))]
    return row[-1]


@settings(max_examples=examples(120))
@given(st.text(alphabet="ab文", max_size=12), st.text(alphabet="ab文*?", max_size=8))
def test_patterns_agree_with_the_textbook(text: str, pattern: str) -> None:
    assert like(lambda _: None, text, pattern) is _like_by_table(text, pattern)
