"""What tools answered, what was written into files, how failed calls were mended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from run_makers import call, run

from muniment.learning.fold.corrections import corrections_of
from muniment.learning.fold.edits import edit_parts, edits_in
from muniment.learning.fold.features import features_of, steps_with
from muniment.learning.fold.results import condition_words, met
from muniment.learning.fold.signals import failure_sign
from muniment.learning.stored_memory import RunFacts, StepFacts
from products import for_each

TRACE = "Traceback (most recent call last): File \"/repo/src/cart.py\", line 7, in total KeyError: 'discount'"


def names(facts: RunFacts) -> set[str]:
    return {feature.name for feature in features_of(facts)}


@for_each(
    ("answer", "found"),
    [
        ('{"cabin": "basic_economy", "paid": false, "bags": 2}', ["bags=2", "cabin=basic_economy", "paid=false"]),
        ('{"id": "XJ-2211", "price": 512.5, "day": "2024-05-20", "state": "open"}', ["state=open"]),
        ('[{"state": "open"}, {"state": "shipped"}]', []),
        ('{"state": "open", "note": "' + "x" * 300, ["state=open"]),
        ("{}", []),
    ],
)  # fmt: skip
def test_short_values_of_fields_are_met_and_ids_prices_and_lists_are_not(answer: str, found: list[str]) -> None:
    assert met(call("get", text=answer)) == [f"get.{each}" for each in found]


@pytest.mark.parametrize(
    ("answer", "found"),
    [("nothing", ["get=nothing"]), ("Not found.", ["get=not found"]), ("3 matches in 2 files", []), ("", [])],
)
def test_a_short_answer_is_met_as_a_whole(answer: str, found: list[str]) -> None:
    assert met(call("get", text=answer)) == found


@for_each(
    ("step", "words"),
    [
        (call("run", text=TRACE, ok=False), "run fails with KeyError 'discount' in repo/src/cart.py"),
        (
            call("run_tests", text="FAILED tests/test_cart.py::test_total src/cart.py:7: KeyError: 'discount'"),
            "test_total fails with KeyError 'discount' in src/cart.py",
        ),
        (
            call("run_tests", text="FAILED test_a FAILED test_b ImportError: cannot import name 'x' a.py:3", ok=False),
            "run_tests fails with ImportError 'x' in a.py",
        ),
        (call("pay", text="Error: the moon is full", ok=False, detail='{"amount": 512}'), "pay fails"),
        (call("sh", text="requests.exceptions.ReadTimeoutError occurred", ok=False), "sh fails with ReadTimeoutError"),
        (
            call("sh", text='File "/site-packages/lib.py", line 3 File "app/main.py", line 9 ValueError: 7', ok=False),
            "sh fails with ValueError in app/main.py",
        ),
    ],
)  # fmt: skip
def test_errors_are_named_with_what_they_name_and_where(step: StepFacts, words: str) -> None:
    assert condition_words(max(met(step), key=len)) == words


def test_a_page_that_speaks_of_errors_is_none() -> None:
    assert not [
        each for each in met(call("read", text="class KeyError is raised when", ok=True)) if "KeyError(" in each
    ]
    assert met(call("read", text="The ValueError() class", ok=True)) == []


def test_a_failure_is_named_by_its_class_and_not_by_its_trace() -> None:
    assert (
        failure_sign([call("run", text=TRACE, ok=False)], None)
        == "run fails with KeyError 'discount' in repo/src/cart.py"
    )


@for_each(
    ("arguments", "found"),
    [
        (
            {"path": "./src/cart.py", "old_str": "a = item['x']", "new_str": "a = item.get('x')\nb = 1"},
            ["src/cart.py", "src/cart.py+a = item.get('x')", "src/cart.py+b = 1", "src/cart.py~get"],
        ),
        ({"file_path": "a/b.ts", "content": "x"}, ["a/b.ts"]),
        (
            {"patch": "--- a/x.py\n+++ b/x.py\n@@\n-old()\n+new(1)\n same()"},
            ["x.py", "x.py+new(1)", "x.py~new"],
        ),
        ({"path": "src/cart.py"}, []),
        ({"query": "text"}, []),
        ({"path": "no file", "content": "x = 1"}, []),
        ({"path": 7, "content": "x = 1"}, []),
    ],
)  # fmt: skip
def test_what_a_call_puts_into_a_file(arguments: dict[str, Any], found: list[str]) -> None:
    assert [each.removeprefix("edit:") for each in edits_in(arguments)] == found


def test_the_parts_of_an_edit_come_back() -> None:
    assert edit_parts("src/a.py+x = f(1) + 2") == ("src/a.py", "x = f(1) + 2", "")
    assert edit_parts("src/a.py~get") == ("src/a.py", "", "get")
    assert edit_parts("src/a.py") == ("src/a.py", "", "")


@pytest.mark.parametrize("lines", [40, 41, 43, 60])
def test_a_long_edit_is_read_as_far_as_it_was_kept(lines: int) -> None:
    new = "\n".join(f"value_{place} = make({place})" for place in range(lines))
    whole = json.dumps({"new_str": new, "path": "src/cart.py"}, separators=(",", ":"))
    found = names(run("t", True, steps=(call("edit", detail=f"{whole[:300]} … {whole[-300:]}"),)))
    assert "edit:src/cart.py+value_0 = make(0)" in found
    assert not [name for name in found if "…" in name]


def test_arguments_cut_within_an_escape_are_passed_over() -> None:
    cut = '{"new":"a\\ … b","path":"a.py"}'
    assert "args:edit(path)" in names(run("t", True, steps=(call("edit", detail=cut),)))


def test_which_call_came_after_an_answer_is_told_with_the_answer() -> None:
    steps = (call("get", 0, text='{"state": "open"}'), call("refund", 1, text="nothing"), call("end", 2))
    assert {"met:get.state=open", "then:get.state=open>refund", "then:refund=nothing>end"} <= names(
        run("t", True, steps=steps)
    )


@pytest.mark.parametrize("said", ["done", "OK", "Success!", "true"])
def test_that_a_call_was_made_is_no_condition(said: str) -> None:
    assert met(call("refund", text=said)) == []


def mended(*steps: StepFacts) -> list[str]:
    return list(corrections_of(steps, lambda line: json.loads(line) if line else {}))


def test_what_was_changed_before_a_failed_call_held_is_its_correction() -> None:
    fails = call("pay", text="Error: amount does not add up", ok=False, detail='{"amount": 1, "to": "x"}')
    holds = call("pay", text="paid", ok=True, detail='{"amount": 2, "to": "x"}')
    (error,) = met(fails)
    assert mended(fails, holds) == [f"retried:{error}", f"mended:{error}", f"mend:{error}>arg:amount"]
    assert mended(fails, fails, holds) == mended(fails, holds), "what did not help is not counted with what did"
    assert mended(fails, fails) == [f"retried:{error}"]
    assert mended(fails) == []
    assert mended(holds, holds) == []


def test_an_edit_between_two_runs_of_the_tests_is_a_correction() -> None:
    fails, holds = call("run_tests", text=TRACE, ok=False), call("run_tests", text="12 passed", ok=True)
    edit = call("edit", text="done", detail='{"path": "src/cart.py", "new_str": "a = b.get(1)"}')
    found = mended(fails, edit, holds)
    assert [each.partition(">")[2] for each in found if each.startswith("mend:")] == [
        "edit:src/cart.py",
        "edit:src/cart.py+a = b.get(1)",
        "edit:src/cart.py~get",
    ]
    assert mended(fails, call("look"), holds)[-1].endswith(">tool:look")


def test_a_check_that_fails_is_no_call_that_went_wrong() -> None:
    """Else a run would be told to make its tests pass."""
    found = names(run("t", False, steps=(call("run_tests", text=TRACE, ok=False), call("pay", ok=False))))
    assert {"error:pay", "error:left"} <= found
    assert "error:run_tests" not in found
    assert "error:left" not in names(run("t", False, steps=(call("run_tests", text=TRACE, ok=False),)))


@for_each(
    ("feature", "cited"),
    [
        ("tool:get", ["e0"]),
        ("first:get", ["e0"]),
        ("order:get>edit", ["e1"]),
        ("then:get.state=open>edit", ["e1"]),
        ("edit:a.py+x = 1", ["e1"]),
        ("arg:edit.path=a.py", []),
        ("args:edit(new,path)", ["e1"]),
        ("own:way=a", []),
    ],
)
def test_the_calls_by_which_a_run_has_a_feature_can_be_cited(feature: str, cited: list[str]) -> None:
    steps = (call("get", 0, text='{"state": "open"}'), call("edit", 1, detail='{"path": "a.py", "new": "x = 1"}'))
    assert [step.evidence_id for step in steps_with(feature, steps)] == cited


def test_nothing_of_a_result_is_kept_above_the_user() -> None:
    from muniment.learning.fold.run_logs import without_words

    steps = (call("pay", text="Error: amount does not add up", ok=False, detail='{"user": "mia_li_3668"}'),
             call("pay", text='{"state": "secret"}', detail='{"user": "mia_li_3669"}'),
             call("edit", detail='{"path": "a.py", "new": "x = 1"}'))  # fmt: skip
    facts = run("t", True, steps=steps, task="0123")
    kept = without_words(facts.model_copy(update={"features": features_of(facts)}))
    assert not [
        each.name for each in kept.features if each.name.startswith(("met", "then", "mend", "retried", "about", "edit"))
    ]
    assert kept.task is None
