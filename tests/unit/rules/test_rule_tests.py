"""Tests of a rule, made from runs: they fail on what was bad, and none of them says nothing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from promotion_makers import AWAY, CONSTRAINTS, HOME, advice, draft, example, failing, passing, rule

from muniment.contracts.rules import DistillDraft, RegressionTestSpec
from muniment.rules._tests import (
    Example,
    MadeTests,
    bad_outputs,
    find_clashes,
    is_micro,
    is_vacuous,
    make_tests,
    task_of,
    with_tests,
)
from muniment.verify.outputs import Output
from muniment.verify.regression import grade
from products import for_each


def made(
    proposed: DistillDraft | None = None, bad: list[Example] | None = None, good: list[Example] | None = None
) -> MadeTests:
    asked = proposed or draft()
    return make_tests(
        rule(asked),
        failing=failing() if bad is None else bad,
        passing=passing() if good is None else good,
        grade=grade,
        draft=asked,
    )


def by_kind(tests: MadeTests) -> dict[str, list[RegressionTestSpec]]:
    kinds: dict[str, list[RegressionTestSpec]] = {"regression": [], "cluster": [], "boundary": [], "micro": []}
    for spec in tests.specs:
        kinds["micro" if is_micro(spec) else spec.kind or "regression"].append(spec)
    return kinds


def asserted(spec: RegressionTestSpec) -> tuple[Any, Any]:
    assert spec.assertion is not None
    return spec.assertion.type, spec.assertion.args


@pytest.mark.req("RC-18", "RC-19")
def test_a_guardrail_gets_every_kind_of_test_from_its_runs() -> None:
    tests = made()
    kinds = by_kind(tests)
    assert {name: len(several) for name, several in kinds.items()} == {
        "regression": 1,
        "cluster": 1,
        "boundary": 2,
        "micro": 12,
    }
    assert tests.notes == ()
    (regression,), (cluster,) = kinds["regression"], kinds["cluster"]
    assert (regression.test_id, regression.prompt, regression.x_ref) == ("d1-regression", "The task of f0", "x-f0")
    assert asserted(regression)[0] == "json_schema"
    assert (cluster.test_id, cluster.prompt, cluster.test_type) == ("d1-cluster", "The task of f1", "counterexample")
    assert kinds["boundary"][0].test_id == "d1-boundary"
    assert [task_of(spec) for spec in kinds["boundary"]] == ["The task of away"] * 2
    assert all(spec.linked_rule_ids == ("rule-d1",) for spec in tests.specs)


@pytest.mark.req("RC-18")
def test_every_test_fails_on_something_bad_and_the_first_two_on_the_runs_they_came_from() -> None:
    bad = bad_outputs(rule(draft()), (*failing(), *passing()))
    tests = made()
    assert not any(is_vacuous(spec, grade, bad) for spec in tests.specs)
    outputs = {one.prompt: one.output for one in failing()}
    kinds = by_kind(tests)
    for spec in (*kinds["regression"], *kinds["cluster"]):
        assert not grade(spec, outputs[task_of(spec)]).ok
    for spec in kinds["boundary"]:
        assert grade(spec, passing()[1].output).ok, "what passed before still passes"


@pytest.mark.req("RC-18")
def test_the_rule_recited_outside_its_place_fails_the_boundary() -> None:
    kept, leak = by_kind(made())["boundary"]
    assert asserted(kept)[0] == "contains"
    assert asserted(leak)[0] == "regex_absent"
    said = Output.from_wire(
        {
            "text": "Dear customer, I shall keep  FORMAT:JSON_ONLY: one JSON\ndocument and nothing else.",
            "tool_calls": [],
        }
    )
    assert not grade(leak, said).ok
    assert grade(kept, said).ok


def strategy_runs() -> tuple[list[Example], list[Example]]:
    bad = [example(f"f{place}", False, "no idea", ("book",), reason_codes=("tool_misroute",)) for place in range(3)]
    good = [
        example("p0", True, "booked", ("search", "book")),
        example("away", True, "done", ("refund",), features=AWAY),
    ]
    return bad, good


def test_a_strategy_is_tested_by_what_told_runs_apart_and_must_not_act_elsewhere() -> None:
    bad, good = strategy_runs()
    kinds = by_kind(made(advice("d1", "tool:search"), bad, good))
    assert [asserted(spec) for spec in kinds["regression"]] == [("tool_called", {"tool": "search"})]
    assert [asserted(spec) for spec in kinds["cluster"]] == [("tool_called", {"tool": "search"})]
    assert asserted(kinds["boundary"][0]) == ("tool_not_called", {"tool": "search"})


def test_a_tool_that_is_warned_of_is_still_called_where_the_warning_does_not_apply() -> None:
    bad = [example(f"f{place}", False, "paid", ("pay",), cluster_id="fc") for place in range(2)]
    good = [example("away", True, "done", ("pay",), features=AWAY)]
    kinds = by_kind(
        made(advice("d1", "tool:pay", do=False, evidence={"feature": "tool:pay", "cluster_id": "fc"}), bad, good)
    )
    assert [asserted(spec) for spec in (*kinds["regression"], *kinds["cluster"])] == [
        ("tool_not_called", {"tool": "pay"})
    ] * 2
    assert asserted(kinds["boundary"][0]) == ("tool_called", {"tool": "pay"})


@pytest.mark.parametrize(
    ("violated", "tools", "wanted"),
    [
        ("FORMAT:JSON_ONLY", (), ("json_schema", {"schema": {}})),
        ("TOOL:CALL_REQUIRED:search", ("book",), ("tool_called", {"tool": "search"})),
        ("TOOL:CALL_FORBIDDEN:pay", ("pay",), ("tool_not_called", {"tool": "pay"})),
    ],
)
def test_a_broken_key_is_an_assertion_where_it_says_enough(
    violated: str, tools: tuple[str, ...], wanted: tuple[str, Any]
) -> None:
    bad = [example("f0", False, "words", tools, violated=(violated,))]
    assert [asserted(spec) for spec in by_kind(made(None, bad))["regression"]] == [wanted]


def test_a_constraint_whose_key_says_too_little_is_taken_from_the_runs_own_tests() -> None:
    long = example("f0", False, "word " * 100, violated=("FORMAT:WORDS",), constraints=({"words": {"max": 90}},))
    (spec,) = by_kind(made(None, [long]))["regression"]
    assert asserted(spec) == ("length_lte", {"max": 90, "unit": "words"})
    silent = example("f0", False, "word " * 100, violated=("FORMAT:WORDS",))
    assert by_kind(made(None, [silent]))["regression"] == []


@pytest.mark.req("RC-18")
def test_what_cannot_be_made_is_told() -> None:
    tests = made(None, [], [])
    assert tests.specs == ()
    assert [note.partition(":")[0] for note in tests.notes] == [
        "0 of 1 regressions",
        "0 of 1 cluster counterexamples",
        "0 of 1 boundary counterexamples",
        "0 of 5 micro-regressions",
    ]


def test_a_run_that_did_not_break_what_the_test_asks_makes_none() -> None:
    """The verifier said JSON_ONLY, and the output is JSON: such a test could not fail where it should."""
    odd = example("f0", False, "{}", violated=("FORMAT:JSON_ONLY",))
    assert by_kind(made(None, [odd]))["regression"] == []


def test_the_cluster_is_another_task_that_failed_alike() -> None:
    first, other = failing(2)
    same_task = first._replace(trace_id="again")
    unlike = example("f1", False, "{}", violated=("TOOL:ORDER",), cluster_id="fc_2", constraints=CONSTRAINTS)
    assert by_kind(made(None, [first, same_task, unlike]))["cluster"] == []
    alike = other._replace(cluster_id=None)
    assert len(by_kind(made(None, [first, alike]))["cluster"]) == 1


def test_the_boundary_is_outside_the_place_and_regressions_inside() -> None:
    inside = [one._replace(features=HOME) for one in passing()]
    assert by_kind(made(None, None, inside))["boundary"] == []
    outside = [one._replace(features=AWAY) for one in failing()]
    assert by_kind(made(None, outside))["regression"] == []
    failed_outside = [one._replace(passed=False) for one in passing()]
    assert by_kind(made(None, None, failed_outside))["boundary"] == []


@pytest.mark.req("RC-18")
def test_vacuous_micro_tests_are_refused_by_name() -> None:
    never = example(
        "p9", True, "{}", constraints=({"tool_not_called": {"tool": "unheard_of"}}, {"words": {"max": 10**6}})
    )
    tests = made(None, None, [never, *passing()])
    refused = [spec.test_id for spec in never.packs]
    assert [note for note in tests.notes if "vacuous" in note] == [
        f"{name} is vacuous: it passes on every bad output" for name in refused
    ]
    assert not {spec.test_id for spec in tests.specs} & set(refused)


def test_the_same_assertion_of_a_task_is_one_micro_test() -> None:
    twice = [*passing(), passing()[0]._replace(trace_id="again")]
    assert len(by_kind(made(None, [], twice))["micro"]) == len(CONSTRAINTS) - 1, "nobody ever called pay"


def test_the_same_runs_make_the_same_tests_in_the_same_bytes() -> None:
    assert [spec.to_bytes() for spec in made().specs] == [spec.to_bytes() for spec in made().specs]


def test_a_rule_names_its_tests() -> None:
    tests = made()
    named = with_tests(rule(draft()), tests.specs)
    assert set(named.tests.regression_tests) == {one.test_id for one in tests.specs if one.test_type == "regression"}
    assert named.tests.counterexample_tests[:2] == ("d1-cluster", "d1-boundary")


# -- tests that no answer passes together -------------------------------------------------------------


def spec_of(name: str, type_: str, args: dict[str, Any], **fields: Any) -> RegressionTestSpec:
    plain = {
        "schema_version": "0.5.15",
        "test_id": name,
        "test_type": "regression",
        "x_ref": "x",
        "assert": {"type": type_, "args": args},
    }
    return RegressionTestSpec.from_wire(plain | fields)


NOT = {"expected": {"must_pass": False}}


@pytest.mark.req("RC-18")
@for_each(
    ("one", "other"),
    [
        (("contains", {"text": "total"}, {}), ("regex_absent", {"pattern": "tot.l"}, {})),
        (("contains", {"text": "total"}, {}), ("contains", {"text": "total"}, NOT)),
        (("contains", {"text": "a long sentence"}, {}), ("length_lte", {"max": 5}, {})),
        (("tool_called", {"tool": "pay"}, {}), ("tool_not_called", {"tool": "pay"}, {})),
        (("tool_called", {"tool": "pay"}, {}), ("tool_called", {"tool": "pay"}, NOT)),
        (("exact_match", {"text": "yes"}, {}), ("exact_match", {"text": "no"}, {})),
        (("exact_match", {"text": "yes"}, {}), ("json_schema", {"schema": {}}, {})),
        (("exact_match", {"text": "yes"}, {}), ("contains", {"text": "no"}, {})),
    ],
)
def test_tests_that_contradict_each_other_are_found(one: Any, other: Any) -> None:
    first, second = (spec_of(name, each[0], each[1], **each[2]) for name, each in (("a", one), ("b", other)))
    for pair in itertools.permutations((first, second)):
        (clash,) = find_clashes(pair, grade)
        assert {clash.one, clash.other} == {"a", "b"}
        assert "must" in clash.why


@for_each(
    ("one", "other"),
    [
        (("contains", {"text": "total"}), ("contains", {"text": "sum"})),
        (("contains", {"text": "total"}), ("regex_absent", {"pattern": "^total$"})),
        (("contains", {"text": "total"}), ("length_lte", {"max": 5})),
        (("contains", {"text": "total"}), ("regex_present", {"pattern": "sum"})),
        (("tool_called", {"tool": "pay"}), ("tool_not_called", {"tool": "book"})),
        (("tool_called", {"tool": "pay"}), ("tool_called", {"tool": "book"})),
        (("exact_match", {"text": "{}"}), ("json_schema", {"schema": {}})),
    ],
)
def test_tests_that_can_stand_together_are_left_alone(one: Any, other: Any) -> None:
    first, second = spec_of("a", *one), spec_of("b", *other)
    assert find_clashes((first, second), grade) == ()
    assert find_clashes((second, first), grade) == ()


def test_other_tasks_may_ask_for_the_opposite() -> None:
    one = spec_of("a", "contains", {"text": "total"})
    other = spec_of("b", "regex_absent", {"pattern": "total"}, x_ref="y")
    assert find_clashes((one, other), grade) == ()


# -- what a run was asked, where the verifier named nothing --------------------------------------------


def test_a_run_whose_own_constraints_fail_is_tested_by_them() -> None:
    wrong = [example(f"f{place}", False, "41", constraints=({"exact_match": {"text": "42"}},)) for place in range(2)]
    kinds = by_kind(made(draft(evidence={"cluster_id": "fc"}), [one._replace(cluster_id="fc") for one in wrong]))
    assert [asserted(spec) for spec in (*kinds["regression"], *kinds["cluster"])] == [
        ("exact_match", {"text": "42"})
    ] * 2
    assert by_kind(made(draft(), wrong))["cluster"] == [], "another wrong answer is not the same failure"


def test_runs_that_lack_what_the_rule_asks_failed_alike() -> None:
    bad = [example(f"f{place}", False, "no", ("book",)) for place in range(2)]
    assert len(by_kind(made(advice("d1", "tool:search"), bad))["cluster"]) == 1
