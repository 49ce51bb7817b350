"""A step is named as where a run went wrong only where no run like it that passed took it too."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.learning.test_hint_groups import memory
from tests.unit.learning.test_ways import episode, told

from muniment.learning.hinting.culprits import passing_like, rest_told, words_beside
from products import for_each

GUESS = "It may have gone wrong at {}."


def failed(did: str, rest: str, task: str = "Ship box 7", *tools: str, **more: Any) -> Any:
    summary = f"Asked: {task}. Failed. Did: {did}. {rest}"
    how = {"ending": rest.removeprefix("It ").removesuffix(".")} if "failed after" in rest else {"ending": ""}
    named = tools or ("get_box", "ship")
    return memory("f", task, *named, passed=False, did=f"Did: {did}", summary=summary, **how, **more)


def passed(did: str, task: str = "Ship box 9", *tools: str, **more: Any) -> Any:
    return memory(f"p_{did}", task, *(tools or ("get_box", "ship")), did=f"Did: {did}", **more)


@for_each(
    ("step", "did", "other", "is_told"),
    [
        ("ship", "get_box, then ship", "get_box, then ship", False),
        ("ship (way=sea)", "get_box, then ship (way=sea)", "get_box, then ship (way=air)", True),
        ("ship (way=sea)", "get_box, then ship (way=sea)", "ship (way=sea) 2 times", False),
        ("ship (way=sea)", "get_box, then ship (way=sea)", "(get_box, then ship (way=sea)) 3 times", False),
        ("book (to=OSL)", "book (to=OSL)", "book (to=SEA)", False),
        ("ship (copies=3)", "ship (copies=3)", "ship (copies=12)", False),
        ("ship (way=sea)", "ship (way=sea)", "open, then get_box … ship (way=air)", False),
        ("weigh", "weigh, then ship", "get_box, then ship", True),
        ("edit_file (path=a.py; wrote `x = 0`)", "edit_file (path=a.py; wrote `x = 0`)",
         "edit_file (path=a.py; wrote `x = 1`)", True),
    ],
)  # fmt: skip
def test_a_guess_is_told_where_no_passing_run_like_it_did_so(step: str, did: str, other: str, is_told: bool) -> None:
    ours = failed(did, GUESS.format(step))
    like = passing_like(ours, [passed(other)])
    assert like, "it was asked the same"
    assert rest_told(ours, like) == (GUESS.format(step) if is_told else "")


def test_what_was_asked_for_is_no_argument_of_its_own() -> None:
    ours = failed("paint (colour=red)", GUESS.format("paint (colour=red)"), "Paint door 7 red", "paint")
    like = [passed("paint (colour=green)", "Paint door 8 green", "paint")]
    assert rest_told(ours, like) == ""


def test_one_passing_run_of_many_is_enough_and_other_work_clears_nothing() -> None:
    ours = failed("get_box, then ship", GUESS.format("ship"))
    assert rest_told(ours, [passed("pack"), passed("ship"), passed("hold")]) == ""
    far = passed("post, then ship", "Write to the mayor of Oslo", "post", "ship", "stamp", "sign", intent_key="x")
    assert passing_like(ours, [far]) == ()
    assert rest_told(ours, ()) == GUESS.format("ship"), "where nobody passed it is a guess, and worded as one"


def test_an_error_that_a_passing_run_met_too_decided_nothing() -> None:
    ours = failed("ship (an error)", "It failed after ship (an error).")
    assert rest_told(ours, [passed("ship (an error), then ship")]) == ""
    assert rest_told(ours, [passed("ship")]) == "It failed after ship (an error)."


def test_what_stands_beside_names_no_step_that_any_passing_run_took() -> None:
    shown, other = passed("get_box, then ship (way=air)"), passed("get_box, then ship (way=sea)")
    ours = failed("get_box (an error), then ship (way=sea)", "It failed after get_box (an error).")
    assert words_beside(shown, ours) == "A run like it failed after get_box (an error)."
    met = passed("get_box (an error), then ship (way=air)")
    assert words_beside(met, ours) == "A run like it called ship (way=sea) instead, and failed."
    assert words_beside(met, ours, [other]) == "", "another that did so passed"


def test_a_way_that_fails_names_no_step_that_the_way_to_try_has() -> None:
    made = []
    for number in range(24):
        good = number % 2 == 0
        did = "open, then seal, then ship" if good else "open, then ship"
        one = episode(number, did, good)
        if not good:
            more = {
                "summary": f"{one.record['summary']} It may have gone wrong at {('open', 'ship')[number % 4 == 1]}."
            }
            one = one.model_copy(update={"record": one.record | more})
        made.append(one)
    lines, _ = told(made)
    assert lines[0].startswith("- Try open, then seal, then ship: passed 8 of 8")
    assert any("passed 0 of 8. Did: open, then ship." in line for line in lines)
    assert "gone wrong" not in "\n".join(lines)


@pytest.mark.parametrize(("step", "is_told"), [("ship (way=sea)", True), ("get_box", False)])
def test_of_many_that_failed_it_is_said_of_all(step: str, is_told: bool) -> None:
    made = []
    for number in range(24):
        good = number % 2 == 0
        one = episode(number, f"get_box, then ship (way={'air' if good else 'sea'})", good)
        if not good:
            one = one.model_copy(
                update={"record": one.record | {"summary": f"{one.record['summary']} {GUESS.format(step)}"}}
            )
        made.append(one)
    lines, _ = told(made)
    (line,) = [each for each in lines if "passed 0 of 8" in each]
    assert line.endswith(f"They may have gone wrong at {step}." if is_told else "Did: get_box, then ship (way=sea).")
