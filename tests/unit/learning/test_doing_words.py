"""What a run did is told whole or said to be cut: looks too, in their order, and what came again counted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from run_makers import call, clean, run, say
from tests.unit.learning.test_ways import episode, told

from muniment.learning.fold.doing_words import in_order, step_texts, with_counts, without_counts
from muniment.learning.fold.transcripts import WORDING_LOOKS_ONCE, doings
from muniment.learning.hinting.episode_words import episode_of, hint_text, line_of_many, line_to_try
from muniment.learning.lessons.ways import speaks_against
from products import for_each

LINES = (
    ("get_order get_order ship", "get_order 2 times, then ship"),
    ("look act look act", "(look, then act) 2 times"),
    ("get_box ship get_box ship get_box ship report", "(get_box, then ship) 3 times, then report"),
    ("login read_file edit run_tests read_file edit run_tests",
     "login, then (read_file, then edit, then run_tests) 2 times"),
    ("get_user list_orders get_user cancel", "get_user, then list_orders, then get_user, then cancel"),
    ("look look act look look act", "look 2 times, then act, then look 2 times, then act"),
    ("a b c d e f g", "a, then b, then c, then d, then e, then f, then g"),
    ("a b c d e f g h", "a, then b … f, then g, then h"),
    ("poll poll poll poll", "poll 4 times"),
    ("one", "one"),
)  # fmt: skip


@for_each(("calls", "line"), LINES)
def test_every_call_is_told_in_its_order(calls: str, line: str) -> None:
    assert in_order(calls.split()) == line
    assert doings(run("t", True, calls.split()), clean).partition(": ")[2] == line


@for_each(("calls", "line"), [each for each in LINES if " … " not in each[1]])
def test_a_line_is_read_as_the_steps_it_was_made_of(calls: str, line: str) -> None:
    steps = calls.split()
    read = step_texts(f"Did: {line}")
    assert {*pairwise(read)} == {*pairwise(steps)}
    assert (read[0], read[-1]) == (steps[0], steps[-1])


def test_steps_with_notes_and_counts_are_read_back() -> None:
    edit = "edit (path=a.py; wrote `x = f(1)`)"
    line = f"Did: get 2 times, then (open, then {edit}) 3 times … ship (way=air; an error) 4 times"
    assert step_texts(line) == ("get", "get", "open", edit, "open", edit, *["ship (way=air; an error)"] * 2)


def test_lines_that_differ_in_counts_are_one_that_says_from_how_many_to_how_many() -> None:
    dids = ["Did: get 2 times, then ship 3 times", "Did: get 5 times, then ship 3 times"]
    (one, other) = map(without_counts, dids)
    assert one == other == "Did: get several times, then ship several times"
    assert with_counts(one, dids) == "Did: get 2 to 5 times, then ship 3 times"
    assert with_counts(one, dids[:1]) == dids[0]


def ways(*dids: str) -> list[Any]:
    return [episode(n, dids[n % len(dids)], n % len(dids) == 0) for n in range(16)]


@pytest.mark.parametrize(
    ("good", "bad", "line"),
    [
        ("get_order 2 times, then ship", "get_order, then ship", "Try get_order 2 times, then ship: passed 8 of 8"),
        ("(look, then act) 2 times", "look, then act", "Try (look, then act) 2 times: passed 8 of 8"),
        ("get_a, then act, then get_a, then act (way=air)", "get_a, then act, then act (way=air)",
         "Try get_a, then act, then get_a, then act (way=air): passed 8 of 8"),
        ("read, then list_all, then read, then send", "list_all, then read, then send",
         "Try read, then list_all, then read, then send: passed 8 of 8"),
    ],
)  # fmt: skip
def test_a_way_to_try_is_what_was_done(good: str, bad: str, line: str) -> None:
    lines, _ = told(ways(good, bad))
    assert lines[0].startswith(f"- {line}")
    assert any(f"passed 0 of 8. Did: {bad}." in each for each in lines)


def test_looks_that_were_made_more_or_less_often_are_one_way_that_says_so() -> None:
    made = [episode(n, f"get_order {2 + n % 3} times, then ship", True) for n in range(6)]
    assert line_to_try(made) == 'Try get_order 2 to 4 times, then ship: passed 6 of 6 in runs like "Find order …".'
    assert line_of_many(made[::3]) == ('2 runs like "Find order …": passed 2 of 2. Did: get_order 2 times, then ship.')


def test_what_an_earlier_version_abridged_is_no_way_and_says_that_it_is_abridged() -> None:
    one = episode(1, "get_box, then ship", True)
    old = one.model_copy(update={"record": one.record | {"wording": WORDING_LOOKS_ONCE}})
    assert episode_of(old).way == ""  # type: ignore[union-attr]
    assert line_to_try([old]) == ""
    assert hint_text(old) == "Asked: Find order 1. Passed. Did: get_box, then ship (each look is told once)."
    acts = one.model_copy(
        update={"record": episode(1, "pack, then ship", True).record | {"wording": WORDING_LOOKS_ONCE}}
    )
    assert episode_of(acts).way == "Did: pack, then ship", "nothing but looks was left out"  # type: ignore[union-attr]


def test_what_a_whole_line_does_not_say_was_not_done() -> None:
    lesson = {"feature": "order:look>seal", "advice": "do"}
    assert speaks_against(lesson, "Did: look, then weigh, then seal")
    assert not speaks_against(lesson, "Did: (look, then seal) 2 times")
    assert not speaks_against(lesson, "Did: look … weigh, then seal")
    assert speaks_against({"feature": "order:seal>look", "advice": "avoid"}, "Did: (look, then seal) 2 times")


@pytest.mark.soak
def test_through_the_library_a_look_that_was_made_again_is_told(mem: Any) -> None:
    from tests.unit.learning.test_transcript_recall import FAIL, PASS

    work = {"domain_tag": "shop", "task_family": "shipping"}
    for number in range(16):
        again = number % 2 == 0
        one = mem.run(user_id="ana", agent_id="a")
        one.observe("user", f"Ship box {number}.")
        for tool in ("get_box", "seal", *(["get_box"] if again else []), "ship"):
            one.observe_tool(tool, content="done", args={"box": number}, ok=True)
        one.finish(verifier_result=PASS if again else FAIL, intent=work)
    found = mem.run(user_id="ana", agent_id="a").learning.recall("Ship box 99.", keep=False, intent=work)
    assert found.text.startswith("- Try get_box, then seal, then get_box, then ship: passed 8 of 8 in runs like")


def test_calls_with_other_arguments_are_other_steps() -> None:
    steps = [call("ship", n, detail=f'{{"way":"{way}"}}') for n, way in enumerate(("air", "air", "sea"))]
    assert doings(run("t", True, steps=steps), clean) == "Did: ship (way=air) 2 times, then ship (way=sea)"


def test_what_a_tool_answered_is_told_as_such_in_a_way_to_try() -> None:
    made = [
        episode(n, "run_tests (path=tests; KeyError 'b' in a.py), then mend (an error), then mend", True)
        for n in range(3)
    ]
    assert line_to_try(made).startswith(
        "Try run_tests (path=tests; answered KeyError 'b' in a.py), then mend (answered an error), then mend: passed 3"
    )


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (40, '- Try get_order 2 times, then ship: passed 8 of 8 in runs like "Find order …".'),
        (12, "- Try get_order 2 times, then ship: passed 8 of 8."),
        (8, None),
    ],
)
def test_a_way_to_try_is_told_whole_or_not_at_all(room: int, text: str | None) -> None:
    lines, _ = told(ways("get_order 2 times, then ship", "get_order, then ship"), room=room)
    tried = [line for line in lines if line.startswith("- Try")]
    assert tried == ([] if text is None else [text])


def test_a_way_that_names_a_file_is_tried_on_its_own_task_alone() -> None:
    """What mended one file is no way to mend another, however often it did."""
    cart, dates = ("edit (path=src/cart.py; wrote `a = 1`)", "edit (path=src/dates.py; wrote `b = 2`)")
    made = [episode(n, cart, n % 5 > 0, "The cart breaks since") for n in range(12)]
    made += [
        episode(20 + n, (dates, "edit (path=src/dates.py; wrote `b = 3`)")[n % 2], n % 2 == 0, "Dates are off since")
        for n in range(8)
    ]
    lines, _ = told(made, query="Dates are off since 99.")
    assert lines[0].startswith(f"- Try {dates}: passed 4 of 4 in runs like")
    others, _ = told(made, query="The menu is empty since 7.")
    assert not any(line.startswith("- Try") for line in others)
    plain = [
        episode(n, f"open, then {('mend', 'skip')[n % 2]}", n % 2 == 0, "The cart breaks since") for n in range(12)
    ]
    assert told(plain, query="The menu is empty since 7.")[0][0].startswith("- Try open, then mend")


def test_a_run_that_called_nothing_is_told_by_an_answer_that_says_something() -> None:
    for last in ("You're welcome! Have a safe trip.", "Thank you for flying with us.", "De rien !", "Gern geschehen."):
        steps = [say("Basic tickets cannot be changed.", 0), say(last, 1)]
        assert doings(run("t", True, steps=steps), clean) == 'Answered: "Basic tickets cannot be changed"'
    opened = [say("Great! Your trip ends in Oslo. It is late.", 0), say("Sure.", 1)]
    assert doings(run("t", True, steps=opened), clean) == 'Answered: "Your trip ends in Oslo"'
    assert doings(run("t", True, steps=[say("You're welcome!", 0)]), clean) == 'Answered: "You\'re welcome"'


@pytest.mark.parametrize(("one", "other"), [("x = f(1)", "x = f(2)"), ("tz = UTC", "tz = None"), ("a/b", "a/c")])
def test_what_was_written_is_the_same_only_word_for_word(one: str, other: str) -> None:
    made = [episode(n, f"edit (path=a.py; wrote `{(one, other)[n % 2]}`)", True) for n in range(4)]
    lines, _ = told(made)
    assert sorted(line.partition("Did: ")[2] for line in lines) == [
        f"edit (path=a.py; wrote `{each}`)." for each in sorted((one, other))
    ]


@for_each(
    ("dids", "line"),
    [
        (["Did: retry several times"], "Did: retry several times"),
        (["Did: retry several times, then ship"], "Did: retry several times, then ship"),
        (["Did: retry several times, then get 3 times"], "Did: retry several times, then get several times"),
        (["Did: look several times … ship", "Did: look 3 times … ship"], "Did: look several times … ship"),
        (["Did: look 3 times", "Did: look several times"], "Did: look several times"),
        (["Did: say (a=1, several times), then ship 2 times"], "Did: say (a=1, several times), then ship 2 times"),
    ],
)  # fmt: skip
def test_several_times_in_a_name_stays_as_it_stands(dids: list[str], line: str) -> None:
    assert with_counts(without_counts(dids[0]), dids) == line


def test_a_tool_that_is_called_several_times_is_told_by_its_name() -> None:
    made = [episode(n, "retry several times, then ship", True) for n in range(3)]
    assert line_to_try(made).startswith("Try retry several times, then ship: passed 3 of 3")
    assert "Did: retry several times, then ship" in line_of_many(made)
