"""Where a failing run went wrong."""

from __future__ import annotations

import pytest
from benchmarks import data
from hypothesis import given, settings
from run_makers import any_runs, call, run, say

from effort import examples
from muniment.learning.fold.blame import blame, is_error, signals_of
from muniment.learning.stored_memory import RunFacts, StepFacts


def answer(text: str) -> StepFacts:
    return StepFacts(evidence_id="e", action="terminal", kind="answer", text=text)


def test_the_code_that_failed_is_blamed_and_not_its_answer() -> None:
    steps = (
        say("We should look at the population figures that the task asks for, one after the other."),
        say("Here is code to read the table and add up the rows that we need. ```python\nread()```"),
        answer("exitcode: 1 Traceback (most recent call last): KeyError: 'rows'"),
        say("TERMINATE"),
    )
    found = blame(run("t", False, steps=steps))
    assert found[0].step == 1
    assert {"acts_first", "failed"} <= set(found[0].why)
    assert found[-1].step in (2, 3)


def test_claims_from_nowhere_are_suspect() -> None:
    quiet = "we go on with what the search has shown us and add nothing of our own to it here"
    steps = (say(quiet), say("The tower in the picture is the Eiffel Tower, 330 metres, near Trocadero."), say(quiet))
    (first, *_) = blame(run("t", False, steps=steps))
    assert first.step == 1
    assert first.why[0] == "new"


def test_what_the_task_or_a_tool_said_is_no_claim_from_nowhere() -> None:
    steps = (
        call("search", text="Oslo Airport, code OSL, terminal 2"),
        say("You land at Oslo Airport, OSL, terminal 2."),
    )
    assert signals_of(steps, "Which airport?")[1].new == pytest.approx(1 / 5)  # "You"
    assert signals_of((say("A flight to Oslo"),), "A flight to Oslo")[0].new == 0


def test_guesses_and_what_is_missing_are_counted_up_to_a_few() -> None:
    guess = signals_of((say("I assume it is probably so, perhaps; we might guess."),))[0]
    assert guess.guess == 1
    assert signals_of((say("Unfortunately I cannot open it."),))[0].lack == pytest.approx(2 / 3)
    assert signals_of((say("很可能是这样"),))[0].guess == pytest.approx(1 / 3)


def test_a_tool_that_only_looks_does_not_act() -> None:
    acting = [signals.acts for signals in signals_of((call("get_user"), call("book"), call("search"), call("getaway")))]
    assert acting == [0, 1, 0, 1]
    assert [signals.acts_first for signals in signals_of((call("list_all"), call("book"), call("pay")))] == [0, 1, 0]


def test_a_tool_that_the_verifier_names_comes_first() -> None:
    steps = (call("book", 0, detail='{"to": "Oslo"}'), call("delete_user", 1), call("pay", 2, ok=False))
    found = blame(run("t", False, steps=steps, violated=("TOOL:CALL_FORBIDDEN:delete_user",)))
    assert found[0].step == 1
    assert found[0].why[0] == "named_by_verifier"
    assert found[0].score > 0.5


def test_an_error_is_what_is_known_and_else_what_reads_like_one() -> None:
    assert is_error(call("pay", ok=False))
    assert not is_error(call("pay", ok=True, text="ValueError in the log"))
    assert is_error(call("pay", text="ValueError: no such card"))
    assert is_error(call("pay", detail="查询失败"))
    assert not is_error(call("pay", text="paid"))


@pytest.mark.soak
@settings(max_examples=examples(50), deadline=None)
@given(any_runs())
def test_every_step_has_its_share_and_the_order_is_one(facts: RunFacts) -> None:
    found = blame(facts)
    assert sorted(one.step for one in found) == list(range(len(facts.steps)))
    assert found == sorted(blame(facts.model_copy()), key=lambda one: (-one.score, one.step))
    assert not found or sum(one.score for one in found) == pytest.approx(1)
    assert all(one.evidence_id == facts.steps[one.step].evidence_id for one in found)


@pytest.mark.soak
def test_it_beats_chance_and_the_last_step_on_marked_failures() -> None:
    directory = data.default_data()
    if not (directory / "whowhen_algorithm_generated").is_dir():
        pytest.skip("the shared data is not here")
    from benchmarks.learn_blame import at_random, load

    runs, marked = load(directory, 600)
    hits = sum(blame(one)[0].step == place for one, place in zip(runs, marked, strict=True)) / len(runs)
    last = sum(place == len(one.steps) - 1 for one, place in zip(runs, marked, strict=True)) / len(runs)
    assert hits > 3 * at_random([len(one.steps) for one in runs], marked)["hit"]
    assert hits > last + 0.3
