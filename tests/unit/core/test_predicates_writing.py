"""What may be written: the grammar, the types, and what is said of everything else."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core.predicate_nodes import RUN_FEATURES, Compare, Feature, Field, Junction, Schema, Value
from muniment.core.predicates import LENGTH_MAX, parse
from muniment.errors import InvalidInput, TooLarge
from products import for_each

CANONICAL = [
    ('run.mode=="main"', 'run.mode == "main"'),
    ("run.mode == 'main'", 'run.mode == "main"'),
    ('( (run.mode) == ("main") )', 'run.mode == "main"'),
    (
        'run.mode=="main"&&(cost.tool_calls<3||!has(tools))',
        'run.mode == "main" && (cost.tool_calls < 3 || !has(tools))',
    ),
    ("a_tag", '"a_tag" in tags'),
    ("  planner-heavy\n", '"planner-heavy" in tags'),
    ("!needs_json", '!("needs_json" in tags)'),
    ("需要_json", '"需要_json" in tags'),
    ("sandbox.enabled", "sandbox.enabled"),
    ("x_features.flag", "x_features.flag"),
    ("x_features['my key'].in == 1.0", 'x_features["my key"]["in"] == 1'),
    ("cost.tokens_in + 1 * 2 - (3 - 4) > 1e3", "cost.tokens_in + 1 * 2 - (3 - 4) > 1000"),
    ("(cost.tokens_in + 1) * 2 % 7 >= -2.50", "(cost.tokens_in + 1) * 2 % 7 >= -2.5"),
    ("-cost.tokens_in < 0", "0 - cost.tokens_in < 0"),
    ("tools.size() > 1", "size(tools) > 1"),
    ('contains(tools, "a")', 'tools.contains("a")'),
    ('["b", "a"].subset_of(tools)', '["b", "a"].subset_of(tools)'),
    ('domain_tag.lower().startsWith("数学")', 'domain_tag.lower().startsWith("数学")'),
    (r'domain_tag == "a\"b\\\n\u4e2d"', r'domain_tag == "a\"b\\\n中"'),
    ("run.mode == null || null != tools", "run.mode == null || null != tools"),
    ("(true && false) && (true || (false || true))", "true && false && (true || false || true)"),
    ('!(run.mode == "main")', '!(run.mode == "main")'),
    ("true == (1 < 2)", "true == (1 < 2)"),
    ("(1 < 2) == true", "(1 < 2) == true"),
    ('run.mode in ["main", "sot"]', 'run.mode in ["main", "sot"]'),
    ("x_features.n in [1, -2.5, true]", "x_features.n in [1, -2.5, true]"),
]


@pytest.mark.req("RC-13")
@for_each(("written", "canonical"), CANONICAL)
def test_there_is_one_way_to_write_it(written: str, canonical: str) -> None:
    predicate = parse(written)
    assert predicate.text == str(predicate) == canonical
    assert parse(canonical) == predicate
    assert parse(canonical).text == canonical


REFUSED = [
    ("", 0, "an empty predicate", "leave it out"),
    ("   \n", 0, "an empty predicate", "leave it out"),
    ("run.mode", 1, "this is a string", "compare it"),
    ("tools", 1, "this is a list[string]", "ask about its items"),
    ("cost.tool_calls", 1, "this is a number", "compare it"),
    ("run", 1, "a group of features", "has(x)"),
    ("null", 1, "this is null", "has(x)"),
    ('rum.mode == "main"', 1, "no feature 'rum.mode'", "did you mean run.mode?"),
    ('run.mdoe == "main"', 1, "no feature 'run.mdoe'", "did you mean run.mode?"),
    ('impact == "high"', 1, "no feature 'impact'", "did you mean impact_level?"),
    ('true && tokens_in > 3', 9, "no feature 'tokens_in'", "did you mean cost.tokens_in?"),
    ("true && needs_json", 9, "no feature 'needs_json'", "x_features"),
    ('run.mode == "mian"', 13, "it is never 'mian'", "did you mean 'main'?"),
    ('run.mode in ["main", "deep"]', 22, "it is never 'deep'", "main, sot"),
    ('"loud" == impact_level', 1, "it is never 'loud'", "low"),
    ("tools == 3", 1, "== between a list[string] and a number", "never of one type"),
    ("run.mode > 3", 1, "> between a string and a number", "never of one type"),
    ("tools > tools", 1, "> does not work on a list[string]", "number or a string"),
    ("sandbox == sandbox", 1, "== does not work on a group of features", "wants"),
    ('run.mode + "x" == "y"', 1, "+ does not work on a string", "number"),
    ("3 in tools", 1, "`in` between a number and a string", "never"),
    ('task_family in "abc"', 16, "`in` looks into a list", "contains"),
    ("tools in tools", 1, "`in` asks about one item", "subset_of"),
    ("tools.subset_of([1, 2])", 1, "subset_of() of a string and a number", "never"),
    ("tools.contains(3)", 1, "contains() of a string and a number", "never"),
    ("tools.lower() == \"a\"", 1, "lower() of a list[string]", "domain_tag.lower()"),
    ('domain_tag.like("a", "b")', 1, "like() with 3 arguments instead of 2", "like"),
    ("size(tools, 1) > 2", 1, "size() with 2 arguments instead of 1", "size(tools)"),
    ('tools.subsetof(["a"])', 7, "no function subsetof()", "did you mean subset_of?"),
    ('domain_tag.matches("(a+)+$")', 12, "no function matches()", "like"),
    ("eval(1)", 1, "no function eval()", "there are"),
    ("has(1)", 1, "has() asks for one feature", "has(run.mode)"),
    ("run.mode == null == true", 18, "comparisons do not chain", "&&"),
    ("1 + null > 2", 1, "null is compared with a feature", "has"),
    ("null == null", 1, "null is compared with a feature", "has"),
    ("!tools", 2, "a condition is true or false", "items"),
    ("a = b", 3, "'=' has no place", "=="),
    ("true & false", 6, "'&' has no place", "&&"),
    ("true and false", 6, "'and' is out of place", "write &&"),
    ("not true", 5, "'true' is out of place", ""),
    ("true &&", 8, "it ends too early", "a condition"),
    ("(true", 6, "wanted ')'", ""),
    ("true)", 5, "')' is out of place", ""),
    ('domain_tag == "abc', 15, "a string that does not end", "close it"),
    ('domain_tag == "a\nb"', 15, "a string that does not end", "close it"),
    (r'domain_tag == "\q"', 16, r"unknown escape \q", r"\n"),
    (r'domain_tag == "\ud800"', 15, "half of a surrogate pair", "character"),
    ("domain_tag == 中", 15, "'中' has no place", "quotation marks"),
    ("1e999 > 2", 1, "a number out of range", "1.8e308"),
    ("1abc > 2", 2, "is not a number", ""),
    ("tools[0] == \"a\"", 7, "only a name in quotation marks", "x_features"),
    ("tools in [tools]", 11, "a list holds text, numbers", '["a"'),
    ("tags.contains([\"a\"])", 15, "contains() of a list[string]", "contains"),
    ("x_features.a in [null]", 22, "null is no item", "has"),
    ("(1).foo == 2", 1, "is asked of what is not a feature", ""),
    ("__import__('os').system('x')", 1, "no function __import__()", "there are"),
]  # fmt: skip


@pytest.mark.req("RC-13")
@for_each(("text", "column", "message", "hint"), REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_place(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(text, path="$.predicates[0]")
    assert message in refused.value.message
    assert hint in refused.value.hint
    assert refused.value.path == "$.predicates[0]"
    if column:
        assert refused.value.details["column"] == column


def test_the_line_is_counted() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse('run.mode == "main"\n  && tols.size() > 1')
    assert (refused.value.details["line"], refused.value.details["column"]) == (2, 6)
    assert refused.value.hint == "did you mean tools?"


@for_each("text", [None, 3, b"true", ["true"], True])
def test_only_text_is_parsed(text: Any) -> None:
    with pytest.raises(InvalidInput):
        parse(text)


@for_each(
    "text",
    [
        "true" + " " * LENGTH_MAX,
        "(" * 41 + "true" + ")" * 41,
        "!" * 2000 + "true",
        "-" * 2000 + "1 > 0",
        "1" + " + 1" * 40 + " > 0",
        " && ".join(["true"] * 600),
        "x_features.a in [" + ",".join(["1"] * 600) + "]",
        "((" * 900,
    ],
)
def test_what_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(TooLarge):
        parse(text)


def test_as_large_as_allowed() -> None:
    parse(" && ".join(["true"] * 500))
    parse("(" * 40 + "true" + ")" * 40)
    parse("!" * 31 + "true")
    parse("domain_tag == '" + "文" * (LENGTH_MAX - 16) + "'")


def test_canonical_text_is_held_to_the_same_length() -> None:
    text = "||".join(["1<2"] * 165)
    assert len(text) < LENGTH_MAX
    assert parse(parse(text).text) == parse(text)
    with pytest.raises(TooLarge):
        parse("domain_tag=='" + "\t" * 2100 + "'")


def test_the_tree_is_plain() -> None:
    assert parse('true && run.mode == "main"').tree == Junction(
        "&&", (Value(True), Compare("==", Field(("run", "mode")), Value("main")))
    )
    assert Value(1) != Value(True)
    assert Value(1) != Value(1.0)
    assert len({Value(1), Value(True), Value(1)}) == 2


def test_every_feature_of_the_contract_is_readable() -> None:
    for path, feature in RUN_FEATURES.features.items():
        assert parse(f"has({path})").fields == (path,)
        assert feature.type in ("string", "number", "bool", "list[string]")


def test_own_features() -> None:
    schema = RUN_FEATURES.with_fields(
        {"shop.total": "number", "shop.kind": Feature("string", ("a", "b"))}, open=["raw"]
    )
    assert parse('shop.total > 3 && shop.kind == "a" && raw.any.thing == 2', schema).fields == (
        "raw.any.thing",
        "shop.kind",
        "shop.total",
    )
    with pytest.raises(InvalidInput):
        parse("shop.total > 3")
    with pytest.raises(InvalidInput):
        parse('shop.kind == "c"', schema)
    with pytest.raises(InvalidInput):
        Schema({"a": Feature("date")})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        parse('run["cfg.temperature"] > 1')
