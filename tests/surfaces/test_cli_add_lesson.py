"""`muniment learn lesson add | reports`: a person's lesson, what a model proposed, and the setting that names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_room import Commands, in_folder

import muniment
from model_server import Chat, serving

LESSON = Commands("learn", "lesson")
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with muniment.open(tmp_path / "muniment.db") as mem:
        run = mem.run(user_id="ana", session_id="s1", run_id="run_1")
        run.observe("user", "Fix the rounding bug in cart.py")
        run.observe_tool("edit", args={"file": "cart.py"}, content="done")
        run.observe_tool("run_tests", args={"path": "tests/test_cart.py"}, content="3 passed")
    return in_folder(tmp_path, monkeypatch)


def test_a_person_adds_a_lesson(folder: Path) -> None:
    typed = ("add", "Call run_tests on tests/test_cart.py", "--user", "ana", "--evidence", "run_1")
    shown = LESSON.text(*typed, "--when", "cart.py was edited")
    assert "on trial once there is a place, in the bank of user ana" in shown
    assert "When cart.py was edited: Call run_tests on tests/test_cart.py." in shown
    assert "rests on 3 events" in shown
    assert "take it back: muniment learn undo plan_" in shown
    told: dict[str, Any] = LESSON.document(*typed, "--when", "cart.py was edited")
    assert told["fate"] == "known"
    assert "is there already" in LESSON.text(*typed, "--when", "cart.py was edited")


def test_what_does_not_hold_says_why(folder: Path) -> None:
    wrong = LESSON.failure("add", "Read settings.py first", "--user", "ana", "--evidence", "run_1", "--when", "x")
    assert (wrong["code"], wrong["path"], wrong["details"]["reason"]) == ("lesson_refused", "$.text", "not_in_evidence")
    assert LESSON.failure("add", "Ask first, then act", "--user", "ana")["path"] == "$.when"
    assert (
        LESSON.failure("add", "Ask first, then act", "--user", "ana", "--evidence", "none")["path"] == "$.evidence[0]"
    )


def test_the_setting_names_who_writes_and_reports_tell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no model has written lessons" in LESSON.text("reports", "--user", "ana")
    said = {"text": "Call run_tests on tests/test_cart.py", "when": "cart.py was edited", "events": ["e2", "e3"]}
    answer = Chat().says(json.dumps({"lessons": [said, said | {"text": "Read settings.py first"}]}))
    result = folder / "result.json"
    result.write_text(json.dumps(PASS), encoding="utf-8")
    with serving() as server:
        monkeypatch.setenv("MUNIMENT_LESSONS", f"{server.url}/v1#small")
        server.answers.append(answer | {"usage": {"prompt_tokens": 400, "completion_tokens": 60}})
        Commands("learn", "fold").text("run_1", "--result", str(result), "--intent", "task_family=coding")
    shown = LESSON.text("reports", "--user", "ana")
    assert "model:small, 1 call, 400 + 60 tokens" in shown
    assert "written  tac_" in shown
    assert "settings.py" in shown
    assert LESSON.document("reports", "--user", "ana")["reports"][0]["proposals"][1]["code"] == "not_in_evidence"
    monkeypatch.setenv("MUNIMENT_LESSONS", "gpt")
    assert LESSON.failure("reports", "--user", "ana", code=2)["path"] == "$.lessons"
