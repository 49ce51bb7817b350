"""Signals are read off the runs: which failures are alike, and which bucket a run belongs to, where nobody says so."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.learning._features import error_shape
from muniment.learning.event_logs import derived_bucket, derived_cluster, failure_sign
from muniment.learning.records import IntentParts, StepFacts
from products import for_each

FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
SHOP = IntentParts(domain_tag="shop", task_family="lookup")


def call(name: str, ok: bool, text: str) -> StepFacts:
    return StepFacts(evidence_id="evt_1", action=name, ok=ok, text=text)


@for_each(
    ("one", "other"),
    [
        ("Order 17 not found", "Order 98213 not found"),
        ("KeyError: 'ana'", "KeyError: 'ben'"),
        ('File "/srv/a1/main.py", line 3', 'File "/srv/b2/main.py", line 99'),
        ("timed out after 2.5s at 12:03:44", "timed out after 31s at 23:59:01"),
        ("no such id 0f1e2d3c-9a8b at https://x.example/a/1", "no such id 77aa-11 at https://x.example/b/22"),
        ("  \n\nConnection refused (111)", "Connection refused (61)\nand a trace below"),
    ],
)
def test_errors_that_differ_in_names_and_numbers_alone_have_one_shape(one: str, other: str) -> None:
    assert error_shape(one) == error_shape(other) != ""


@for_each("text", ["", "   ", "\n\n", "12345", "''"])
def test_what_says_nothing_has_little_shape(text: str) -> None:
    assert error_shape(text) in ("", "#", "…")


def test_other_errors_have_other_shapes() -> None:
    shapes = {error_shape(each) for each in ("Order 17 not found", "Order 17 was cancelled", "permission denied")}
    assert len(shapes) == 3


def test_a_shape_is_short_whatever_the_error() -> None:
    assert len(error_shape("word " * 10_000).split()) == 12
    assert error_shape("'" * 100_000) == error_shape("'" * 50_000)


@pytest.mark.req("RC-02")
def test_a_failure_is_named_by_the_call_that_broke_then_by_the_note_then_by_the_last_call() -> None:
    broken, fine = call("get_order", False, "Order 7 not found"), call("say_so", True, "fine")
    assert failure_sign([broken, fine], "wrong total") == "get_order failed: order # not found"
    assert failure_sign([fine], "Expected 12, got 13") == "expected # got #"
    assert failure_sign([fine], None) == "wrong after say_so"
    assert failure_sign([], None) == "wrong answer"


def test_codes_and_constraints_come_first_and_their_order_does_not_matter() -> None:
    one = derived_cluster(("B", "A"), ("x",), SHOP, "anything")
    assert one == derived_cluster(("A", "B"), ("x", "x"), SHOP, "something else")
    assert one != derived_cluster(("A",), ("x",), SHOP, "anything")


@pytest.mark.req("RC-03")
@for_each(
    ("intent", "asked", "bucket"),
    [
        (SHOP, "Find the order of last week.", "I2|shop|clarity_med"),
        (IntentParts(task_family="sudoku"), "Solve this grid for me", "I2|sudoku|clarity_med"),
        (IntentParts(), "Fix it.", "I2|general|clarity_low"),
        (IntentParts(domain_tag="a|b c", output_format="json"), "Go.", "I2|a%7Cb%20c|clarity_high"),
        (IntentParts(domain_tag="shop"), "请帮我找到上周的订单", "I2|shop|clarity_med"),
    ],
)
def test_a_bucket_is_what_kind_of_work_it_is_and_how_much_was_said(
    intent: IntentParts, asked: str, bucket: str
) -> None:
    assert derived_bucket(intent, asked) == bucket


# -- through a store --------------------------------------------------------------------------------------


def finished(mem: Memory, number: int, result: dict[str, Any], error: str | None = None, **more: Any) -> Any:
    run = mem.run(user_id="ana", agent_id="clerk", task_type="lookup")
    run.observe("user", f"Find order {number} for me.")
    if error is not None:
        run.observe_tool("get_order", args={"id": number}, content=error, ok=False)
    run.observe("assistant", "I cannot find it.")
    return run.finish(verifier_result=result, intent={"domain_tag": "shop", "task_family": "lookup"}, **more)


@pytest.mark.req("RC-02", "RC-04")
def test_equal_failures_are_one_cluster_though_nobody_named_it(any_mem: Memory) -> None:
    for number in range(8):
        fold = finished(any_mem, number, FAIL, f"Order {number} not found")
    assert fold.trigger.kind == "fail_cluster"
    finished(any_mem, 9, FAIL, "permission denied")
    finished(any_mem, 10, PASS)
    report = any_mem.learning.observe_rates(user_id="ana")
    first, second = report.observables.cluster_recurrence
    assert (first.count, first.recurs, first.sign) == (8, True, "get_order fails")
    assert (second.count, second.recurs, second.sign) == (1, False, "get_order fails")
    assert "cluster_recurs" in [each.code for each in report.advice]
    assert [each.bucket_key for each in report.buckets] == ["I2|shop|clarity_med"]


@pytest.mark.soak
def test_a_draft_against_it_says_how_it_shows(mem: Memory) -> None:
    for number in range(8):
        finished(mem, number, FAIL, f"Order {number} not found")
    titles = [each.proposed_rule.title for each in mem.bank(user_id="ana").drafts()]
    assert "Against: get_order fails" in titles


def test_that_something_was_wrong_is_no_rule(mem: Memory) -> None:
    for number in range(8):
        finished(mem, number, FAIL)
    assert not [each for each in mem.bank(user_id="ana").drafts() if "wrong" in each.proposed_rule.title]


def test_what_the_caller_says_stands(mem: Memory) -> None:
    finished(mem, 1, FAIL | {"failure_cluster_id": "fc_own"}, "boom", bucket_key="I3|law|clarity_low")
    (log,) = mem.bank(user_id="ana").event_logs()
    assert log.bucket_key == "I3|law|clarity_low"
    (cluster,) = mem.learning.observe_rates(user_id="ana").observables.cluster_recurrence
    assert (cluster.cluster_id, cluster.sign) == ("fc_own", None)


def test_runs_that_nobody_judged_are_told_and_not_counted(mem: Memory) -> None:
    finished(mem, 1, PASS)
    finished(mem, 2, {"verifier_id": "none", "verdict": "PARTIAL", "outcome": "UNKNOWN"})
    seen = mem.learning.observe_rates(user_id="ana").observables
    assert seen.n + seen.unjudged == 2
