"""Regression tests: eight assertions, packs, any executor, and whatever an agent does is a result."""

from __future__ import annotations

import json
import threading
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any
from xml.etree import ElementTree

import pytest

from muniment.contracts.rules import RegressionTestSpec, RuleRecord
from muniment.contracts.schemas import validate
from muniment.errors import InvalidInput, InvalidRecord
from muniment.testing.constraint_examples import EXAMPLES
from muniment.verify import constraints
from muniment.verify._constraint import KINDS
from muniment.verify.constraint_files import parse_constraints
from muniment.verify.outputs import Output
from muniment.verify.regression import RegressionReport, constraints_of, grade, make_packs, run_regression
from products import for_each


def spec(kind: str | None = "contains", args: Any = None, test_id: str = "t", **more: Any) -> RegressionTestSpec:
    data: dict[str, Any] = {
        "schema_version": "0.5.15",
        "test_id": test_id,
        "test_type": "regression",
        "x_ref": "x",
        **more,
    }
    if kind is not None:
        data["assert"] = {"type": kind, "args": args if args is not None else {"text": "hello"}}
    return RegressionTestSpec.from_wire(data)


CALLED = {"text": "hello", "tool_calls": [{"name": "search", "args": {"q": "x"}}]}
ASSERTIONS: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("json_schema", {"schema": {"type": "object"}}, "{}", "[]"),
    ("json_schema", {"type": "object"}, "{}", "hello {}"),
    ("regex_present", {"pattern": "h.l+o"}, "hello", "hi"),
    ("regex_absent", {"pattern": "(?i)sorry"}, "hello", "Sorry"),
    ("tool_called", {"tool": "search"}, CALLED, "hello"),
    ("tool_called", {"name": "search", "args": {"q": "x"}}, CALLED, {**CALLED, "tool_calls": [{"name": "search"}]}),
    ("tool_not_called", {"tool": "delete"}, CALLED, {"text": "", "tool_calls": [{"name": "delete"}]}),
    ("length_lte", {"max": 5}, "hello", "hello!"),
    ("length_lte", {"value": 2, "unit": "words"}, "two words", "now three words"),
    ("exact_match", {"value": "hello"}, "hello", "hello!"),
    ("contains", {"text": "ell"}, "hello", "halo"),
    ("contains", {"texts": ["h", "o"]}, "hello", "hell"),
]


def output(given: Any) -> Output:
    return Output.from_wire({"text": given} if isinstance(given, str) else given)


@pytest.mark.req("RC-19")
@for_each(("kind", "args", "holds", "breaks"), ASSERTIONS)
def test_an_assertion_is_graded_without_a_judge(kind: str, args: dict[str, Any], holds: Any, breaks: Any) -> None:
    test = spec(kind, args)
    assert grade(test, output(holds)).status == "passed"
    failed = grade(test, output(breaks))
    assert (failed.status, failed.ok) == ("failed", False)
    assert failed.message


@pytest.mark.req("RC-19")
def test_all_eight_assertions_are_graded() -> None:
    assert len({kind for kind, *_ in ASSERTIONS}) == 8


@pytest.mark.req("RC-19")
def test_a_test_that_must_not_pass_is_right_to_fail() -> None:
    test = spec(args={"text": "secret"}, expected={"must_pass": False})
    assert grade(test, output("nothing here")).ok
    told = grade(test, output("the secret"))
    assert (told.status, told.message) == ("failed", "it holds, and must not")


def test_a_test_that_asserts_nothing_is_not_graded() -> None:
    result = grade(spec(None), output("x"))
    assert (result.status, result.ok) == ("not_graded", False)
    assert not RegressionReport("r", (result,)).ok


@pytest.mark.parametrize(
    ("kind", "args", "path"),
    [
        ("contains", {}, "$.assert.args"),
        ("regex_present", {"pattern": "("}, "$.assert.args.regex_present.pattern"),
        ("length_lte", {"max": "many"}, "$.assert.args.length.max"),
        ("json_schema", {"typ": "object"}, "$.assert.args.json_schema"),
    ],
)
def test_args_that_do_not_fit_are_named(kind: str, args: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        constraints_of(spec(kind, args))
    assert caught.value.path == path


# -- running ------------------------------------------------------------------------------------------


def agent(test: RegressionTestSpec) -> Any:
    if test.test_id == "crash":
        raise RuntimeError("boom")
    if test.test_id == "odd":
        return 3
    return f"hello from {test.test_id}"


SPECS = [*(spec(test_id=f"t{number}") for number in range(6)), spec(test_id="crash"), spec(test_id="odd"), spec(None)]
WANTED = ["passed"] * 6 + ["error", "error", "not_graded"]


@pytest.mark.req("RC-19")
def test_every_executor_gives_the_same_report() -> None:
    alone = run_regression(SPECS, agent)
    with ThreadPoolExecutor(3) as threads:
        threaded = run_regression(SPECS, agent, executor=threads)
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        apart = run_regression(SPECS, agent, executor=processes)
    assert [result.status for result in alone.results] == WANTED
    assert alone.to_json() == threaded.to_json() == apart.to_json()
    assert alone.to_junit() == threaded.to_junit() == apart.to_junit()
    assert "RuntimeError: boom" in alone.results[6].message
    assert "not int" in alone.results[7].message
    assert not alone.ok


def test_outputs_that_are_there_already_are_graded_as_they_are() -> None:
    report = run_regression(
        [spec(test_id="a"), spec(test_id="b"), spec(test_id="c")], {"a": "hello", "b": output("no")}
    )
    assert [result.status for result in report.results] == ["passed", "failed", "error"]
    assert run_regression([spec(test_id="a")], {"a": "hello"}).ok


def test_a_case_that_takes_too_long_is_a_timeout_and_the_others_go_on() -> None:
    release = threading.Event()

    def slow(test: RegressionTestSpec) -> str:
        if test.test_id == "slow":
            release.wait(30)
        return "hello"

    specs = [spec(test_id="slow"), *(spec(test_id=f"t{number}") for number in range(4))]
    with ThreadPoolExecutor(2) as threads:
        report = run_regression(specs, slow, executor=threads, timeout_s=0.3)
        release.set()
    assert [result.status for result in report.results] == ["timeout", *["passed"] * 4]


def test_where_every_worker_hangs_the_queue_is_given_up() -> None:
    release = threading.Event()

    def hangs(_: RegressionTestSpec) -> str:
        release.wait(30)
        return "hello"

    report = run_regression([spec(test_id="a"), spec(test_id="b")], hangs, timeout_s=0.2)
    release.set()
    assert [result.status for result in report.results] == ["timeout", "timeout"]
    assert "never started" in report.results[1].message


def test_a_spec_that_cannot_be_read_is_one_error_among_results() -> None:
    report = run_regression([spec("regex_present", {"pattern": "("}), spec(test_id="ok")], agent)
    assert [result.status for result in report.results] == ["error", "passed"]
    assert "pattern" in report.results[0].message


@pytest.mark.req("RC-19")
def test_reports_are_json_and_junit() -> None:
    report = run_regression(
        [spec(test_id="a\x00<&"), spec(test_id="b"), spec(None)], {"a\x00<&": "hello", "b": "x", "t": ""}, name="n"
    )
    told = json.loads(report.to_json())
    assert told["counts"] == {"passed": 1, "failed": 1, "error": 0, "timeout": 0, "not_graded": 1}
    assert told["results"][1]["violated_constraints"] == ["CONTENT:CONTAINS"]
    suite = ElementTree.fromstring(report.to_junit()).find("testsuite")
    assert suite is not None
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    assert [case.get("name") for case in suite] == ["a\ufffd<&", "b", "t"]
    timed = run_regression([spec()], agent)
    assert "duration_ms" in json.loads(timed.to_json(timings=True))["results"][0]
    assert b' time="' in timed.to_junit(timings=True)


# -- packs --------------------------------------------------------------------------------------------

ASKED = (
    constraints.json_schema(schema={"type": "object"}),
    constraints.regex_absent(pattern="TODO", severity="minor"),
    constraints.tool_called(tool="search"),
    constraints.tool_not_called(tool="delete"),
    constraints.words(max=50),
    constraints.length(less_than=10),
    constraints.words(min=3),
    constraints.language(code="en"),
)


@pytest.mark.req("RC-19")
def test_packs_are_made_from_constraints() -> None:
    packs = make_packs(ASKED, x_ref="x1", prompt="Do it.")
    assert {pack: [test.assertion.type for test in tests] for pack, tests in packs.items()} == {  # type: ignore[union-attr]
        "FORMAT": ["json_schema", "regex_absent", None],
        "TOOL": ["tool_called", "tool_not_called"],
        "BUDGET": ["length_lte", "length_lte", None],
    }
    for test in (test for tests in packs.values() for test in tests):
        assert validate("RegressionTestSpec", test.to_wire()) == []
        assert constraints_of(test)
    assert packs == make_packs(ASKED, x_ref="x1", prompt="Do it.")
    assert [test.severity for test in packs["FORMAT"]] == ["critical", "normal", "critical"]
    assert packs["BUDGET"][1].assertion.args == {"max": 9, "unit": "characters"}  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match="no pack"):
        make_packs(ASKED, x_ref="x1", packs=["STYLE"])  # type: ignore[list-item]


TWELVE: list[dict[str, Any]] = [
    {"bullets": {"min": 2}},
    {"words": {"min": 3, "max": 9}},
    {"language": "en"},
    {"not_contains": ["as an AI"]},
    {"tool_order": ["search", "open"]},
    {"tools_allowed": ["search", "open"]},
    {"tool_arguments": {"tool": "search", "equals": {"n": 1}}},
    {"budget": {"of": "cost_usd", "max": 0.5}},
    {"network": []},
    {"any_of": [{"ends_with": "Bye."}, {"none_of": [{"contains": "x"}]}]},
    {"similar": {"to": ["a"], "least": 0.2}},
    {"personal_data": ["email"]},
]


@pytest.mark.req("RC-19")
@for_each("asked", TWELVE, ids=lambda each: next(iter(each)))
def test_every_kind_is_tested_as_it_stands(asked: dict[str, Any]) -> None:
    parsed = parse_constraints([asked]).constraints
    (test,) = [test for tests in make_packs(parsed, x_ref="x").values() for test in tests]
    assert validate("RegressionTestSpec", test.to_wire()) == []
    assert constraints_of(RegressionTestSpec.from_wire(test.to_wire())) == parsed


@for_each("name", sorted(EXAMPLES.keys() - {"any_of", "none_of"}))
def test_no_kind_is_left_out_of_the_packs(name: str) -> None:
    packs = make_packs([KINDS[name](**EXAMPLES[name][0])], x_ref="x")
    assert sum(map(len, packs.values())) == 1


def test_what_is_no_kind_is_an_error_that_names_it() -> None:
    data = {"schema_version": "0.5.15", "test_id": "t", "test_type": "regression", "x_ref": "x"}
    wrong = RegressionTestSpec.from_wire({**data, "assert": {"constraints": [{"words": {"max": 3}}, {"wrods": 3}]}})
    with pytest.raises(InvalidRecord) as caught:
        constraints_of(wrong)
    assert caught.value.path == "$.assert.constraints[1].wrods"
    assert caught.value.issues[0].code == "unknown_constraint"
    assert "did you mean 'words'" in caught.value.issues[0].message
    asks = RegressionTestSpec.from_wire({**data, "assert": {"constraints": [{"rubric": "Is it polite?"}]}})
    with pytest.raises(InvalidRecord) as caught:
        grade(asks, Output(text="Hello."))
    assert (caught.value.path, caught.value.issues[0].code) == (
        "$.assert.constraints[0].rubric",
        "unsupported_constraint",
    )


@pytest.mark.req("RC-19")
def test_packs_are_made_from_a_rule_and_say_so() -> None:
    rule = RuleRecord.from_wire(
        {
            "schema_version": "0.5.15",
            "rule_id": "r1",
            "version": "1",
            "type": "GuardrailRule",
            "status": "temporary",
            "body": "Answer in JSON.",
            "evidence": {},
            "metrics": {},
            "applicability": {"constraints": ["json_only", {"tool_called": "search"}, {"words": {"max": 9}}]},
            "tests": {"regression_tests": [], "counterexample_tests": []},
        }
    )
    packs = make_packs(rule, [constraints.tool_not_called(tool="delete")], x_ref="x1", packs=["FORMAT", "TOOL"])
    assert {pack: len(tests) for pack, tests in packs.items()} == {"FORMAT": 1, "TOOL": 2}
    assert all(test.linked_rule_ids == ("r1",) for tests in packs.values() for test in tests)
    passing = Output.from_wire({"text": "{}", "tool_calls": [{"name": "search"}]})
    tests = [test for pack in packs.values() for test in pack]
    assert run_regression(tests, dict.fromkeys((test.test_id for test in tests), passing)).ok


class _Broken(Executor):
    """An executor that takes one case and then no more, as a process pool whose worker died."""

    def __init__(self) -> None:
        self.taken = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.taken += 1
        if self.taken > 1:
            raise BrokenExecutor("a child process terminated abruptly")
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@pytest.mark.req("RC-19")
def test_an_executor_that_breaks_is_a_result() -> None:
    specs = (spec("contains", {"text": "a"}, test_id=f"t{number}") for number in range(3))  # any iterable will do
    report = run_regression(specs, lambda _: "a", executor=_Broken())
    assert [result.status for result in report.results] == ["passed", "error", "error"]
    assert "terminated abruptly" in report.results[1].message


def test_a_crash_may_say_anything() -> None:
    def crash(_: RegressionTestSpec) -> str:
        raise ValueError("bad \ud800 \x00 <text>")

    report = run_regression([spec("contains", {"text": "a"})], crash)
    assert b"ud800" in report.to_json()
    assert b"ud800" in report.to_junit()
