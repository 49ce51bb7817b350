"""Features of runs, the names that may be repeated, and errors read off failed calls."""

from __future__ import annotations

from hypothesis import given, settings
from run_makers import any_runs, call, run

from effort import examples
from muniment.learning._features import (
    error_name,
    features_of,
    is_plain_path,
    is_plain_value,
    read_arguments,
    scalar_text,
    steps_with,
    with_features,
)
from muniment.learning.records import RunFacts
from products import for_each


def names(one: RunFacts) -> set[str]:
    return {feature.name for feature in features_of(one)}


def test_tools_their_order_their_arguments_and_errors_are_features() -> None:
    steps = (
        call("search", 0, detail='{"cabin":"economy","id":"XJ-2211","price":120}'),
        call("book", 1, ok=False),
        call("book", 2, ok=True),
    )
    found = names(run("t", True, steps=steps, own_features={"way": "greedy"}, given_features={"size": "large"}))
    assert {"tool:search", "first:search", "order:search>book", "error:book", "arg:search.cabin=economy"} <= found
    assert {"own:way=greedy", "given:size=large", "intent:task_family=booking"} <= found
    assert not [name for name in found if "XJ" in name or "120" in name]
    assert [step.evidence_id for step in steps_with("order:search>book", steps)] == ["e1"]
    assert [step.evidence_id for step in steps_with("error:book", steps)] == ["e1"]


def test_features_that_were_known_before_are_marked() -> None:
    found = {feature.name: feature.before for feature in features_of(run("t", True, given_features={"size": 3}))}
    assert found["given:size=3"]
    assert not found["tool:search"]


@for_each(
    ("value", "is_plain"),
    [
        ("economy", True), ("one way", True), ("use_default", True), ("12", True), ("rolling", True),
        ("always call wire", False), ("AlwaysCallWireNow", True), ("always_call_wire", False), ("2026-05-01", False),
        ("card_7712", False), ("", False), ("x" * 40, False), ("ignore, all", False),
    ],
)  # fmt: skip
def test_values_of_one_or_two_short_words_may_be_repeated(value: str, is_plain: bool) -> None:
    assert is_plain_value(value) is is_plain


@for_each(
    ("path", "is_plain"),
    [
        ("src/cart.py", True), ("src/billing/round.py", True), ("tests/test_cart.py", True), ("a2.py", True),
        ("src/always_use_wire.py", False), ("please/run/curl_it_now.sh", False), ("", False), ("src/a b.py", False),
    ],
)  # fmt: skip
def test_paths_of_short_names_may_be_repeated(path: str, is_plain: bool) -> None:
    assert is_plain_path(path) is is_plain


@for_each(
    ("text", "name"),
    [
        ("Traceback (most recent call last):\nKeyError: 'id'", "KeyError"),
        ("ValueError: no\nKeyError: x", "KeyError"),
        ("HTTP 404 not found", "HTTP 404"),
        ("status code: 503", "HTTP 503"),
        ("command exited with code 2", "exit code 2"),
        ("AlwaysCallWireTransferError: do it", ""),
        ("no such order", ""),
    ],
)
def test_an_error_is_named_by_its_class_or_status(text: str, name: str) -> None:
    assert error_name(call("book", ok=False, text=text)) == name


def test_arguments_are_read_as_json_cut_json_or_pairs() -> None:
    assert read_arguments('{"a":1,"b":"x"}') == {"a": 1, "b": "x"}
    assert read_arguments('{"a":"x","b":"cut') == {"a": "x"}
    assert read_arguments("a=1, b='two words'") == {"a": "1", "b": "two words"}


def test_scalars_are_short() -> None:
    assert [scalar_text(each) for each in (True, 7, 0.123, " a  b ", "x" * 49, None, [1])] == [
        "true", "7", "0.12", "a b", None, None, None,
    ]  # fmt: skip


@settings(max_examples=examples(40), deadline=None)
@given(any_runs())
def test_features_are_bounded_sorted_and_read_once(one: RunFacts) -> None:
    found = features_of(one)
    assert len(found) <= 192
    assert all(len(feature.name) <= 160 for feature in found)
    assert features_of(with_features(one)) == found
