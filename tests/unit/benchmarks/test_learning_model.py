"""The bench of tool puzzles: round by round with a fake model, from prompts to the table, resumable at every step."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.learning.reading import Slot, read_text
from benchmarks.learning_model import Bench, main, read_answers
from benchmarks.model_figures import judged_lesson
from benchmarks.model_puzzles import asked_of, calls_in, make_desks, play, user_text

from products import for_each

SETTINGS = {"seed": "look", "desks": 3, "rounds": 3, "tasks": 4}


def answer(prompt: dict[str, Any]) -> dict[str, Any]:
    """A model that takes the first tools listed, unless its prompt says something for another."""
    listed = [
        line[2:].partition("(")[0] for line in prompt["user"].splitlines() if line.startswith("- ") and "(ref" in line
    ]
    if not listed:
        return {"key": prompt["key"], "model": "fake", "answer": "[]", "prompt_tokens": 9, "new_tokens": 1}
    told = prompt["user"].partition("\n\n")[2]
    said = {each.option: each.log_odds for each in read_text(told, (Slot("t", "tool", tuple(listed), (1.0,) * 4),))}
    best = sorted(listed, key=lambda tool: -said.get(tool, 0.0))
    grade = prompt["user"].partition("grade is one of ")[2].split(",")[1].strip()
    text = json.dumps({"first": {"tool": best[0], "grade": grade}, "second": {"tool": best[1], "grade": grade}})
    return {"key": prompt["key"], "model": "fake", "answer": text, "prompt_tokens": 100, "new_tokens": 20}


def test_what_is_hidden_is_never_the_usual_and_decides() -> None:
    for desk in make_desks("look", 12):
        assert set(desk.rights.values()) <= {*desk.tools[1:], *desk.grades[1:]}
        accepted = 0
        for number in range(40):
            asked = asked_of(desk, f"x {number}")
            right = desk.rights[asked.form]
            call = (desk.tools[0], right) if desk.kind == "grade" else (right, desk.grades[0])
            accepted += play(desk, asked, [call])[-1].accepted
            assert not play(desk, asked, [(desk.tools[0], desk.grades[0])])[-1].accepted
            assert right not in asked.text
        assert accepted >= 32
    assert make_desks("look", 3) == make_desks("look", 3)
    assert make_desks("look", 3) != make_desks("judged", 3)


@for_each(
    ("said", "count"),
    [
        ('{"first": {"tool": "T", "grade": "G"}, "second": {"tool": "T", "grade": "G"}}', 2),
        ('```json\n{"first": {"tool": "T"}, "second": {"tool": "other"}}\n```', 1),
        ("I would call T.", 0),
        ('{"first": "T"}', 0),
        ("", 0),
    ],
)
def test_the_calls_of_an_answer_are_read_or_none_are(said: str, count: int) -> None:
    desk = make_desks("look", 1)[0]
    text = said.replace("T", desk.tools[2]).replace("G", desk.grades[1])
    assert len(calls_in(text, desk)) == count


def test_the_second_call_is_made_only_where_the_first_is_not_accepted() -> None:
    desk = make_desks("look", 1)[0]
    asked = next(
        each
        for each in (asked_of(desk, f"x {n}") for n in range(9))
        if play(desk, each, [(desk.rights[""], "")])[0].accepted
    )
    right, wrong = (desk.rights[""], ""), (desk.tools[0], "")
    assert [each.accepted for each in play(desk, asked, [right, wrong])] == [True]
    assert [each.accepted for each in play(desk, asked, [wrong, right])] == [False, True]
    assert [each.accepted for each in play(desk, asked, [wrong, wrong])] == [False, False]


def test_a_lesson_is_judged_by_what_is_hidden() -> None:
    desk = next(each for each in make_desks("look", 3) if each.kind == "form")
    form, right = next(iter(desk.rights.items()))
    assert judged_lesson(desk, f"When it is {form}, call {right}.") == "right"
    assert judged_lesson(desk, f"When it is {form}, call {desk.tools[0]}.") == "wrong"
    assert judged_lesson(desk, f"Do not call {desk.tools[0]}.") == "right"
    assert judged_lesson(desk, "Look twice.") == "idle"


@pytest.mark.soak
def test_rounds_go_from_prompts_to_the_table_and_each_step_can_be_another_process(tmp_path: Path) -> None:
    answers: dict[str, dict[str, Any]] = {}
    prompts = Bench(tmp_path, SETTINGS).step(answers)
    rounds, told = 0, 0
    while prompts:
        rounds += 1
        told += sum("What earlier runs taught" in prompt["user"] for prompt in prompts)
        with pytest.raises(SystemExit, match="no answer yet"):
            Bench(tmp_path).step(answers)
        answers |= {prompt["key"]: answer(prompt) for prompt in prompts}
        prompts = Bench(tmp_path).step(answers)
    assert rounds == 3
    assert told
    table = Bench(tmp_path).table()
    assert table["second half: none"]["runs"] == table["second half: lessons"]["runs"] == 24
    assert table["second half: none"]["over_none"] == 0
    assert table["second half: lessons"]["answers_read"] == 1.0
    assert "lessons: lessons at the end" in table


@pytest.mark.soak
def test_a_step_that_fails_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = Bench(tmp_path, SETTINGS).step({})
    answers = {prompt["key"]: answer(prompt) for prompt in prompts}
    before = (tmp_path / "state.json").read_text()

    def fail(*_given: Any) -> None:
        raise RuntimeError("the machine went away")

    with monkeypatch.context() as patched:
        patched.setattr(Bench, "_task_prompts", fail)
        with pytest.raises(RuntimeError):
            Bench(tmp_path).step(answers)
    assert (tmp_path / "state.json").read_text() == before
    assert Bench(tmp_path).step(answers)


@pytest.mark.soak
def test_the_command_writes_prompts_as_the_answering_program_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, answered = tmp_path / "p.jsonl.gz", tmp_path / "a.jsonl"
    main(["step", "--state", str(tmp_path / "s"), "--out", str(out), "--quick"])
    with gzip.open(out, "rt") as lines:
        prompts = [json.loads(line) for line in lines]
    assert set(prompts[0]) == {"key", "system", "user", "max_new_tokens", "stage"}
    assert len({prompt["key"] for prompt in prompts}) == len(prompts)
    answered.write_text("".join(json.dumps(answer(prompt)) + "\n" for prompt in prompts))
    assert set(read_answers([answered])) == {prompt["key"] for prompt in prompts}
    main(["step", "--state", str(tmp_path / "s"), "--out", str(out), "--answers", str(answered)])
    assert "round 2 of 3" in capsys.readouterr().out


def test_a_prompt_holds_the_documentation_and_not_what_is_hidden() -> None:
    desk = make_desks("look", 1)[0]
    text = user_text(desk, asked_of(desk, "x"), "")
    assert all(tool in text for tool in desk.tools)
    assert "usual way" in text
