"""Features as advice, and the conditions under which they were seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from run_makers import call, run, runs_with

from muniment.core.policy import FoldPolicy
from muniment.core.predicates import parse
from muniment.learning.fold.advice import Advice, advice_of, conditions_of, intent_conditions, support_words
from muniment.learning.fold.contrast import Separation, contrast
from muniment.learning.stored_memory import IntentParts, RunFacts, Tally
from products import for_each


def told(feature: str, *, helps: bool = True, runs: Sequence[RunFacts] = (), **fields: Any) -> Advice | None:
    """The advice of a feature that separates nine runs from nine."""
    sides = Tally(n=9, passes=8 if helps else 0), Tally(n=9, passes=1 if helps else 8)
    plain: dict[str, Any] = {"compared": frozenset(run.trace_id for run in runs)}
    return advice_of(Separation(feature, False, *sides, 0.7 if helps else -0.8, 0.999, 0.01, **plain | fields), runs)


@pytest.mark.parametrize(
    ("feature", "do", "leave"),
    [
        ("own:strategy=greedy", "Use strategy=greedy", "Avoid strategy=greedy"),
        ("tool:book", "Call book", "Do not call book"),
        ("order:search>book", "Call search right before book", "Do not call book right after search"),
        ("first:search", "Start with search", "Do not start with search"),
        ("arg:sql.book.cabin=economy", "Call sql.book with cabin=economy", "Do not call sql.book with cabin=economy"),
        ("args:book(cabin,to)", "Give book the arguments cabin, to", "Do not call book with cabin, to alone"),
        ("check:made", "Verify the result before finishing", None),
        ("check:none", None, "Verify the result before finishing"),
        ("check:last", "Make a check the last thing before finishing", None),
        ("error:left", None, "Correct a call that failed, or go another way, before finishing"),
        ("error:pay", None, "Check what pay is given before calling it"),
        ("recovered:pay", "When pay fails, correct the call and try again", None),
        ("repeat:pay", None, "When pay answers the same again, change the call instead of repeating it"),
        ("steps:3-5", None, None),
        (
            "then:get_order.state=shipped>refund",
            "When get_order says state is shipped, call refund next",
            "When get_order says state is shipped, do not call refund next",
        ),
        (
            "then:search=nothing>ask_user",
            "When search answers nothing, call ask_user next",
            "When search answers nothing, do not call ask_user next",
        ),
        (
            "then:run_tests!KeyError 'discount'@src/cart.py>open_file",
            "When run_tests fails with KeyError 'discount' in src/cart.py, call open_file next",
            "When run_tests fails with KeyError 'discount' in src/cart.py, do not call open_file next",
        ),
        (
            "edit:src/cart.py+return item.get('discount', 0)",
            "In src/cart.py, write `return item.get('discount', 0)`",
            "In src/cart.py, do not write `return item.get('discount', 0)`",
        ),
        ("edit:src/cart.py~get", "In src/cart.py, use get()", "In src/cart.py, do not use get()"),
        ("edit:src/cart.py", "Make the change in src/cart.py", "Do not change src/cart.py"),
    ],
)
def test_each_kind_of_feature_has_its_line(feature: str, do: str | None, leave: str | None) -> None:
    for helps, line in ((True, do), (False, leave)):
        found = told(feature, helps=helps)
        assert (None if found is None else found.line) == line


@pytest.mark.parametrize(
    "feature",
    ["given:size=large", "state:mode=main", "reason:test_fail", "met:search=nothing", "about:0f", "tool:", "strange"],
)
def test_what_nobody_can_act_on_has_none(feature: str) -> None:
    assert told(feature) is None
    assert told(feature, helps=False) is None


@for_each(
    "feature",
    ["tool:book", "first:book", "order:search>book", "arg:book.cabin=economy", "args:book(to)", "edit:src/cart.py",
     "edit:src/cart.py~get", "then:search=nothing>book"],
)  # fmt: skip
def test_what_a_solution_may_need_is_never_forbidden(feature: str) -> None:
    assert told(feature, helps=False) is not None
    assert told(feature, helps=False, is_needed=True) is None
    assert told(feature, is_needed=True) is not None


def test_a_warning_that_forbids_no_action_may_be_given_of_what_passing_runs_do_too() -> None:
    for feature in ("own:a=x", "error:pay", "error:left", "repeat:pay", "check:none"):
        assert told(feature, helps=False, is_needed=True) is not None


def test_braces_in_a_name_are_only_a_name() -> None:
    found = told("own:x={0}{1}")
    assert found is not None
    assert found.line == "Use x={0}{1}"


def test_what_passing_runs_did_instead_is_said_after_it() -> None:
    runs = [
        *(run(f"p{n}", True, ("search", "book")) for n in range(8)),
        *(run(f"f{n}", False, ("book",)) for n in range(9)),
    ]
    found = told("first:book", helps=False, runs=runs)
    assert found is not None
    assert (found.line, found.passing) == ("Do not start with book", "Those that passed started with search")


def test_the_tool_that_passing_runs_check_by_is_named() -> None:
    runs = [
        *(run(f"p{n}", True, ("edit", "run_tests")) for n in range(8)),
        *(run(f"f{n}", False, ("edit",)) for n in range(9)),
    ]
    found = told("check:made", runs=runs)
    assert found is not None
    assert found.line == "Verify the result with run_tests before finishing"


def test_what_all_comparable_runs_met_and_others_did_not_is_the_condition() -> None:
    answers = {"a": '{"cabin": "basic_economy", "status": "open"}', "b": '{"cabin": "business", "status": "open"}'}
    runs = [
        run(
            f"{kind}{n}",
            n % 2 == 0,
            steps=(call("get_booking", 0, text=text), call("refund" if n % 2 == 0 else "pay", 1)),
        )
        for kind, text in answers.items()
        for n in range(6)
    ]
    found = told("tool:refund", runs=runs, compared=frozenset(f"a{n}" for n in range(6)))
    assert found is not None
    assert found.line == "When get_booking says cabin is basic_economy, call refund"


def test_a_single_task_that_tells_it_is_named_or_nothing_is_said() -> None:
    one = Separation("tool:book", False, Tally(n=9, passes=9), Tally(n=9), 1.0, 0.999, 0.01, only_task="Fly to Oslo")
    found = advice_of(one, ())
    assert found is not None
    assert found.line == 'When asked "Fly to Oslo", call book'
    assert advice_of(one, (), lambda _text, _chars: "") is None


def test_counts_within_several_tasks_say_so() -> None:
    one = Separation("tool:book", False, Tally(n=7, passes=6), Tally(n=6, passes=1), 0.7, 0.999, 0.01)
    assert support_words(one) == "passed 6 of 7 with it, 1 of 6 without"
    assert support_words(one._replace(strata=3)) == "passed 6 of 7 with it, 1 of 6 without, on the same tasks"


@pytest.mark.req("RC-13")
def test_the_condition_is_the_intent_and_what_its_runs_were_given() -> None:
    runs = [
        *runs_with({"s": "a"}, 8, 0, "a", given_features={"size": "large", "n": 6, "ratio": 0.5, "all": True}),
        *runs_with({"s": "a"}, 0, 1, "b", given_features={"size": "small", "n": 4, "all": True}),
        *runs_with({"s": "c"}, 1, 8, "c", given_features={"size": "small", "n": 6, "all": True}),
    ]
    found = next(one for one in contrast(runs, FoldPolicy()) if not one.is_before)
    conditions = conditions_of(found, runs[0], runs)
    assert conditions == [
        'domain_tag == "travel"',
        'task_family == "booking"',
        "x_features.n == 6",
        'x_features.size == "large"',
    ]
    known = {"domain_tag": "travel", "task_family": "booking", "x_features": {"n": 6, "size": "large"}}
    assert all(parse(text).holds(known) for text in conditions)
    assert not parse(conditions[-1]).holds({"x_features": {"size": "small"}})


def test_quotes_in_an_intent_are_escaped() -> None:
    (text,) = intent_conditions(IntentParts(task_family='a "b" \\ c'))
    assert parse(text).holds({"task_family": 'a "b" \\ c'})


def test_a_name_that_no_predicate_can_say_is_left_out() -> None:
    runs = [
        *runs_with({"s": "a"}, 9, 0, "a", given_features={"a b": "x"}),
        *runs_with({"s": "c"}, 0, 9, "c", given_features={"a b": "y"}),
    ]
    found = contrast(runs, FoldPolicy())[0]
    assert conditions_of(found, run("t", True), runs) == ['domain_tag == "travel"', 'task_family == "booking"']
