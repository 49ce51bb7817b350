"""What a predicate says of a run: three values, absence, arithmetic, functions, explanations."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core import predicates as build
from muniment.core.predicate_nodes import RUN_FEATURES, STEPS_MAX, Truth, evaluate, like
from muniment.core.predicates import all_hold, contradiction, parse, predicate_of
from muniment.errors import InvalidInput
from products import for_each

RUN: dict[str, Any] = {
    "run": {"mode": "main", "cfg": {"temperature": 0.7}},
    "impact_level": "high",
    "domain_tag": "Coding",
    "task_family": "code.fix.python",
    "required_tools": ["read", "search"],
    "tools": ["search", "read", "搜索"],
    "tags": ["needs_json"],
    "cost": {"tokens_in": 1200, "tool_calls": 3, "latency_ms": None},
    "sandbox": {"enabled": False},
    "reason_codes": [],
    "x_features": {"n": 2, "flag": True, "deep": {"list": [1, 2.5, "a", True]}, "名": "值", "s": "x"},
}

TRUE = [
    'run.mode == "main"',
    'run.mode != "sot"',
    'run.mode in ["sot", "main"]',
    "run.cfg.temperature < 0.8",
    "cost.tool_calls >= 3 && cost.tool_calls <= 3",
    "needs_json",
    "!other-tag",
    '"搜索" in tools',
    'tools.contains("read")',
    'task_family.contains("fix")',
    'task_family.startsWith("code.") && task_family.endsWith("python")',
    'task_family.like("code.*.py*n") && task_family.like("c?de*")',
    'domain_tag.lower() == "coding"',
    "size(tools) == 3 && size(domain_tag) == 6 && size(reason_codes) == 0",
    "required_tools.subset_of(tools)",
    '["read"].subset_of(tools) && tools.intersects(["x", "read"])',
    'reason_codes.subset_of([]) && !reason_codes.intersects(["a"])',
    "!sandbox.enabled",
    "sandbox.enabled == false",
    "has(run) && has(x_features.deep) && !has(bucket_key)",
    "cost.latency_ms == null && !has(cost.latency_ms) && run.mode != null",
    "cost.tokens_in / cost.tool_calls == 400 && cost.tokens_in % 7 == 3 && -7 % 3 == -1",
    "cost.tokens_in - 1000 * 2 + 3 < 0",
    "x_features.flag && x_features.n == 2",
    'x_features["名"] == "值"',
    'x_features.deep.list == [1, 2.5, "a", true]',
    "2.5 in x_features.deep.list && true in x_features.deep.list",
    'x_features.n != "2" && x_features.flag != 1',
    '"a" < "b" && "Z" < "a" && "a" < "文"',
    'true || bucket_key == "x"',
    'required_tools == ["read", "search"]',
]
FALSE = [
    'run.mode == "sot"',
    "other_tag",
    "!needs_json",
    'tools.subset_of(["read"])',
    'task_family.like("code") || task_family.like("*.java") || task_family.like("")',
    'required_tools == ["search", "read"]',
    'x_features.n == "2"',
    "x_features.flag == 1",
    '1 in [true, "a"] || true in [1, "a"]',
    'x_features.deep.list.contains("b")',
    'false && bucket_key == "x"',
    "sandbox.enabled",
]
UNKNOWN = [
    'bucket_key == "x"',
    'bucket_key != "x"',
    '!(bucket_key == "x")',
    'bucket_key in ["x"]',
    "cost.latency_ms < 5",
    "cost.tool_calls / 0 > 1",
    "cost.tool_calls % 0 == 0",
    "1e308 * 10 > 1",
    "x_features.missing",
    "x_features.s > 3",
    "x_features.s",
    "x_features.s.t.u == 1",
    "x_features.deep == 1",
    'x_features.n.lower() == "a"',
    "x_features.n + x_features.s == 1",
    'true && bucket_key == "x"',
    'false || bucket_key == "x"',
    '"a" in flow_tags',
    'flow_tags.subset_of(["a"])',
]


@pytest.mark.req("RC-13")
@for_each("text", TRUE)
def test_it_holds(text: str) -> None:
    assert parse(text).holds(RUN) is Truth.TRUE


@pytest.mark.req("RC-13")
@for_each("text", FALSE)
def test_it_does_not(text: str) -> None:
    assert parse(text).holds(RUN) is Truth.FALSE


@pytest.mark.req("RC-13")
@for_each("text", UNKNOWN)
def test_nobody_knows(text: str) -> None:
    assert parse(text).holds(RUN) is Truth.UNKNOWN
    assert not parse(text).holds(RUN)


@for_each("mode", [5, True, ["main"], {"a": 1}, float("nan"), None, 10**400, b"main", object(), {1, 2}, [["main"]]])
def test_data_that_is_not_what_was_declared_is_unknown(mode: Any) -> None:
    run = {"run": {"mode": mode}, "cost": {"tool_calls": "3"}, "tools": [1, "a"], "x_features": {"v": mode}}
    for text in ('run.mode == "main"', 'run.mode != "main"', "cost.tool_calls == 3", '"a" in tools'):
        assert parse(text).holds(run) is Truth.UNKNOWN
    assert parse("x_features.v == 7").holds(run) in (Truth.UNKNOWN, Truth.FALSE)
    assert parse("has(run.mode)").holds(run) is Truth.of(mode is not None)


def test_numbers_beyond_doubles() -> None:
    assert parse("x_features.v > 5").holds({"x_features": {"v": 10**300}}) is Truth.TRUE
    assert parse("x_features.v > 5").holds({"x_features": {"v": 10**400}}) is Truth.UNKNOWN
    big = 2**60
    assert parse(f"x_features.v == {big + 1}").holds({"x_features": {"v": big}}) is Truth.FALSE


def test_a_run_is_a_group_even_where_it_is_not() -> None:
    for run in ({}, {"run": "main"}, {"run": ["mode"]}, {"run": None}):
        assert parse('run.mode == "main"').holds(run) is Truth.UNKNOWN


def test_steps_are_bounded() -> None:
    text = parse('x_features.s.like("*a?b*c?d*")')
    assert text.holds({"x_features": {"s": "a" * 10_000}}) is Truth.FALSE
    assert text.holds({"x_features": {"s": "a" * (STEPS_MAX + 1)}}) is Truth.UNKNOWN
    many = parse('"z" in x_features.l')
    assert many.holds({"x_features": {"l": ["a"] * (STEPS_MAX // 2 - 10)}}) is Truth.FALSE
    assert many.holds({"x_features": {"l": ["a"] * STEPS_MAX}}) is Truth.UNKNOWN
    quadratic = parse('x_features.s.like("*' + "a?" * 200 + 'b*")')
    assert quadratic.holds({"x_features": {"s": "a" * 20_000}}) is Truth.UNKNOWN
    assert evaluate(parse("true && true").tree, {}, {}, steps=2) is Truth.UNKNOWN


@for_each(
    ("text", "pattern", "fits"),
    [
        ("", "", True),
        ("", "*", True),
        ("", "?", False),
        ("abc", "abc", True),
        ("abc", "a*", True),
        ("abc", "*c", True),
        ("abc", "a*b", False),
        ("abc", "*b*", True),
        ("aab", "*ab", True),
        ("ab", "ab*ab", False),
        ("abab", "ab*ab", True),
        ("aba", "ab*ba", False),
        ("a文b", "a?b", True),
        ("abxbcd", "*b?d", True),
        ("abxbyc", "a*b?c", True),
        ("x.y", "x?y", True),
        ("aXbXc", "*X*X*", True),
        ("aXbc", "*X*X*", False),
    ],
)
def test_patterns(text: str, pattern: str, fits: bool) -> None:
    assert like(lambda _: None, text, pattern) is fits


def test_explanations_name_the_leaves() -> None:
    predicate = parse('run.mode == "main" && (tools.subset_of(["a"]) || cost.tool_calls < 3) && needs == 1', _schema())
    truth, leaves = predicate.explain(RUN)
    assert truth is Truth.FALSE
    assert [leaf.text for leaf in leaves] == ['tools.subset_of(["a"])', "cost.tool_calls < 3"]
    assert leaves[1].found == (("cost.tool_calls", "3"),)
    truth, leaves = parse('run.mode == "main" && bucket_key == "x" && !(state_key == "y" || sandbox.enabled)').explain(
        RUN
    )
    assert truth is Truth.UNKNOWN
    assert [(leaf.text, leaf.found) for leaf in leaves] == [
        ('bucket_key == "x"', (("bucket_key", "nothing"),)),
        ('state_key == "y"', (("state_key", "nothing"),)),
    ]
    assert [leaf.text for leaf in parse("sandbox.enabled && other == 1 && false", _other()).explain(RUN).leaves] == [
        "sandbox.enabled"
    ]
    truth, leaves = parse('run.mode == "sot" || !(run.mode == "tree")').explain(RUN)
    assert (truth, [leaf.text for leaf in leaves]) == (Truth.TRUE, ['!(run.mode == "tree")'])


def _other() -> Any:
    return RUN_FEATURES.with_fields({"other": "number"})


def _schema() -> Any:
    return RUN_FEATURES.with_fields({"needs": "number"})


@for_each("value", ["x" * 500, 10**4000, [[1], {"a": 2}] * 20, {"a": 1}, float("nan"), b"x", True])
def test_explanations_stay_short(value: Any) -> None:
    (leaf,) = parse("x_features.v == 1").explain({"x_features": {"v": value}}).leaves
    assert len(leaf.found[0][1]) <= 125


def test_all_predicates_of_a_record_must_hold() -> None:
    yes, no, who_knows = parse("needs_json"), parse('run.mode == "sot"'), parse('bucket_key == "x"')
    assert all_hold([], RUN) is Truth.TRUE
    assert all_hold([yes, yes], RUN) is Truth.TRUE
    assert all_hold([yes, who_knows], RUN) is Truth.UNKNOWN
    assert all_hold([who_knows, no, yes], RUN) is Truth.FALSE


def test_digests_forget_order_and_repetition() -> None:
    first = parse('needs == 1 && (tools.contains("a") || has(run)) && has(run)', _schema())
    second = parse('(has(run) || has(run) || tools.contains("a")) && has(run) && needs == 1 && needs == 1', _schema())
    assert first != second
    assert first.digest == second.digest
    assert parse("has(run) && (has(run) || has(run))").digest == parse("has(run)").digest
    assert parse("has(run)").digest != parse("!has(run)").digest
    assert first.fields == ("needs", "run", "tools")


def test_implication_by_parts() -> None:
    narrow, wide = (
        parse("needs == 1 && has(run) && has(tools)", _schema()),
        parse("has(tools) && needs == 1", _schema()),
    )
    assert narrow.implies_by_parts(wide)
    assert not wide.implies_by_parts(narrow)


def test_conditions_are_built_from_data() -> None:
    made = build.conjunction(
        [
            build.equal("run.mode", "main"),
            build.one_of("task_family", ["b", "a", "a"]),
            build.one_of("domain_tag", ["only"]),
            build.within("tools", ["z", 'quo"ted']),
            build.holds_all("required_tools", ["y", "x"]),
            build.holds_all("required_tools", ["w"]),
            build.at_most("cost.tool_calls", 3.0),
            build.at_least("cost.tokens_in", 0.5),
            build.denied(build.tagged("slow")),
            build.equal("run.mode", "main"),
        ]
    )
    assert made.text == (
        '!("slow" in tags) && "w" in required_tools && ["x", "y"].subset_of(required_tools) && '
        'cost.tokens_in >= 0.5 && cost.tool_calls <= 3 && domain_tag == "only" && run.mode == "main" && '
        'task_family in ["a", "b"] && tools.subset_of(["quo\\"ted", "z"])'
    )
    assert parse(made.text) == made
    assert build.conjunction([]).text == "true"
    assert build.conjunction([build.tagged("x")]) == parse("x")
    assert build.conjunction(made.conjuncts) == made


@for_each(
    "condition",
    [
        build.equal("run.mood", "main"),
        build.equal("run.mode", "mian"),
        build.equal("run.mode", 3),
        build.at_most("tools", 3),
        build.at_most("cost.tool_calls", float("nan")),
        build.at_most("cost.tool_calls", float("inf")),
        build.equal("domain_tag", "\ud800"),
        build.equal('x") || true || ("', "main"),
    ],
)
def test_built_conditions_are_checked_like_written_ones(condition: Any) -> None:
    with pytest.raises(InvalidInput):
        predicate_of(condition)


@for_each(
    ("text", "about"),
    [
        ('run.mode == "main" && run.mode == "sot"', "run.mode"),
        ('run.mode == "main" && run.mode != "main"', "run.mode"),
        ('run.mode in ["main", "sot"] && run.mode in ["tree"]', "run.mode"),
        ("cost.tool_calls > 3 && cost.tool_calls <= 3", "cost.tool_calls"),
        ("cost.tool_calls == 3 && 3 > cost.tool_calls", "cost.tool_calls"),
        ("cost.tool_calls < 5 && cost.tool_calls <= 5 && cost.tool_calls >= 5", "cost.tool_calls"),
        ('!has(run.mode) && run.mode == "main"', "run.mode"),
        ('run.mode == null && run.mode == "main"', "run.mode"),
        ("false && has(run)", "false"),
        ("cost.tool_calls >= 3 && 3 >= cost.tool_calls", None),
        ('has(run.mode) && run.mode == "main"', None),
        ('run.mode == "main" || run.mode == "sot"', None),
        ('run.mode != "main" && run.mode != "sot"', None),
        ("x_features.a == 1 && x_features.a != true", None),
    ],
)
def test_contradictions_are_seen(text: str, about: str | None) -> None:
    assert contradiction(parse(text)) == about
