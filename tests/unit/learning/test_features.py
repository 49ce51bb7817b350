"""A run as a bag of features."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from run_makers import any_runs, call, run, say

from effort import examples
from muniment.learning._features import features_of, group_of, scalar_text, with_features
from muniment.learning.records import Feature, RunFacts, StateParts
from products import for_each


def names(facts: RunFacts) -> set[str]:
    return {feature.name for feature in features_of(facts)}


@pytest.mark.req("RC-10")
def test_tools_and_their_order() -> None:
    found = names(run("t", True, ("search", "search", "book")))
    assert {"tool:search", "tool:book", "first:search", "order:search>book", "steps:3-5"} <= found
    assert "order:search>search" not in found
    assert "first:book" not in found


@for_each(
    ("count", "band"),
    [(0, "0"), (1, "1"), (2, "2"), (3, "3-5"), (5, "3-5"), (6, "6-10"), (21, "21-50"), (200, "101-200"), (201, "201+")],
)
def test_steps_are_banded(count: int, band: str) -> None:
    assert f"steps:{band}" in names(run("t", True, ["search"] * count))


def test_arguments_that_come_again_are_told_and_ids_are_not() -> None:
    step = call("book", detail='{"cabin": "economy", "user": "mia_li_3668", "bags": 2, "insured": true, "to": ["OSL"]}')
    found = names(run("t", True, steps=(step,)))
    assert {"args:book(bags,cabin,insured,to,user)", "arg:book.cabin=economy", "arg:book.bags=2"} <= found
    assert "arg:book.insured=true" in found
    assert not [name for name in found if "mia" in name or name.startswith("arg:book.to")]


def test_arguments_written_as_pairs_are_read_too() -> None:
    assert "arg:book.cabin=economy" in names(run("t", True, steps=(call("book", detail="cabin='economy', n=20251"),)))


def test_arguments_cut_in_the_middle_are_passed_over() -> None:
    assert not [
        name for name in names(run("t", True, steps=(call("book", detail='{"cabin": "eco'),))) if name.startswith("arg")
    ]


def test_a_check_is_known_by_a_tool_or_by_words_and_its_place_is_told() -> None:
    assert {"check:made", "check:last"} <= names(run("t", True, ("search", "book", "verify_booking")))
    early = names(run("t", True, ("verify_booking", "search", "book")))
    assert "check:made" in early
    assert "check:last" not in early
    assert "check:none" in names(run("t", True, ("search", "book")))
    assert "check:made" in names(run("t", True, steps=(say("Let me check the total again."),)))
    assert "check:none" in names(run("t", True, ("contest", "checkout")))


def test_errors_are_met_recovered_or_left() -> None:
    fails, holds = call("pay", ok=False), call("pay", ok=True)
    assert {"error:pay", "recovered:pay"} <= names(run("t", True, steps=(fails, holds)))
    assert "error:left" not in names(run("t", True, steps=(fails, holds)))
    assert {"error:pay", "error:left"} <= names(run("t", False, steps=(holds, fails)))


def test_the_same_call_three_times_in_a_row_is_a_loop() -> None:
    assert "repeat:search" in names(run("t", False, ["search"] * 3))
    apart = (call("search", detail="a"), call("search", detail="b"), call("search", detail="a"))
    assert "repeat:search" not in names(run("t", False, steps=apart))


def test_what_the_verifier_said() -> None:
    found = names(run("t", False, violated=("FORMAT:JSON_ONLY",), kept=("TOOL:ORDER",), reason_codes=("test_fail",)))
    assert {"broken:FORMAT:JSON_ONLY", "kept:TOOL:ORDER", "reason:test_fail"} <= found


def test_what_is_known_before_the_run_acts_is_marked() -> None:
    facts = run(
        "t",
        True,
        own_features={"strategy": "greedy"},
        given_features={"size": "large"},
        state=StateParts(mode="main", tool_availability=("search", "book")),
    )
    before = {feature.name for feature in features_of(facts) if feature.before}
    assert before == {
        "given:size=large",
        "intent:domain_tag=travel",
        "intent:task_family=booking",
        "state:mode=main",
        "state:tool_availability=search",
        "state:tool_availability=book",
    }
    assert "own:strategy=greedy" in names(facts) - before


def test_values_have_one_form() -> None:
    shown = [scalar_text(value) for value in (True, 3, 0.123456, " a  b ", "x" * 49, "", None, [1], 10**15)]
    assert shown == ["true", "3", "0.12", "a b", None, None, None, None, "1.00e+15"]


def test_features_once_read_are_taken_as_they_are() -> None:
    facts = run("t", True, features=(Feature(name="own:x=1"),))
    assert features_of(facts) == facts.features
    assert with_features(run("t", True)).features == features_of(run("t", True))


@pytest.mark.soak
@settings(max_examples=examples(50), deadline=None)
@given(any_runs())
def test_they_are_sorted_bounded_and_stable(facts: RunFacts) -> None:
    found = features_of(facts)
    assert found == features_of(facts.model_copy())
    assert len({feature.name for feature in found}) == len(found) <= 192
    assert all(len(feature.name) <= 160 and group_of(feature.name) for feature in found)
    for is_before in (True, False):
        part = [feature.name for feature in found if feature.before is is_before]
        assert part == sorted(part)


def test_a_run_of_very_many_calls_stays_bounded_and_keeps_what_tells_most() -> None:
    steps = tuple(call(f"tool{place}", detail=f'{{"a{place}": "word"}}') for place in range(120))
    facts = run("t", True, steps=steps, own_features={"strategy": "greedy"}, given_features={"size": "large"})
    assert len(features_of(facts)) == 192
    assert {"own:strategy=greedy", "check:none", "first:tool0", "given:size=large"} <= names(facts)
