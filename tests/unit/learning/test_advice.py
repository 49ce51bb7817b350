"""Features as advice, and the conditions under which they were seen."""

from __future__ import annotations

import pytest
from run_makers import run, runs_with

from muniment.core.policy.learning import FoldPolicy
from muniment.core.predicates.predicate import parse
from muniment.learning.fold.advice import advice_line, conditions_of, intent_conditions
from muniment.learning.fold.contrast import contrast
from muniment.learning.stored_memory import IntentParts


@pytest.mark.parametrize(
    ("feature", "do", "avoid"),
    [
        ("own:strategy=greedy", "Use strategy=greedy", "Avoid strategy=greedy"),
        ("tool:book", "Call book", "Do not call book"),
        ("order:search>book", "Call search right before book", "Do not call book right after search"),
        ("first:search", "Start with search", "Do not start with search"),
        ("arg:book.cabin=economy", "Call book with cabin=economy", "Do not call book with cabin=economy"),
        (
            "args:book(cabin,to)",
            "Call book with cabin, to",
            "Do not call book with cabin, to with these arguments alone",
        ),
        ("check:made", "Verify the result before finishing", "Finish without a check of its own"),
        ("steps:3-5", "Plan for 3-5 steps", "Do not plan for 3-5 steps"),
    ],
)
def test_each_kind_of_feature_has_its_line(feature: str, do: str, avoid: str) -> None:
    assert advice_line(feature, helps=True) == do
    assert advice_line(feature, helps=False) == avoid


@pytest.mark.parametrize("feature", ["given:size=large", "state:mode=main", "reason:test_fail", "tool:", "strange"])
def test_what_nobody_can_act_on_has_none(feature: str) -> None:
    assert advice_line(feature, helps=True) is None


def test_braces_in_a_name_are_only_a_name() -> None:
    assert advice_line("own:x={0}{1}", helps=True) == "Use x={0}{1}"


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
