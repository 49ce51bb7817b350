"""Lessons by hand: listed, shown, signed, dropped, taken back; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_room import Commands, in_folder

import muniment
from muniment.learning.records import Lesson, LessonDecision, LessonStory

COMMANDS = Commands()
call, text, document, failure = COMMANDS.call, COMMANDS.text, COMMANDS.document, COMMANDS.failure
ANA = ("--user", "ana")
TEXT = "Look it up by its number."


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "200")
    tactic = {
        "schema_version": "0.5.15", "tactic_id": "tac_1", "created_at": "2026-01-01T00:00:00Z", "status": "active",
        "ttl": "days:60", "summary": TEXT, "injection": {"mode": "inline", "content": TEXT},
        "intent_key": "intent|domain=shop|family=lookup", "predicates": ['task_family == "lookup"'],
    }  # fmt: skip
    with muniment.open("muniment.db") as mem:
        bank = mem.bank(user_id="ana")
        bank.apply(bank.plan([{"op": "WRITE", "target_store": "ReuseBuffer", "payload": tactic}]).plan_id)
    return tmp_path


def test_lessons_are_listed_with_what_came_of_them(store: Path) -> None:
    shown = text("learn", "lessons", *ANA)
    assert all(word in shown for word in ("tac_1", "active", TEXT, "lookup tasks", "passed with", "without"))
    (lesson,) = (Lesson.from_wire(each) for each in document("learn", "lessons", *ANA)["lessons"])
    assert (lesson.lesson_id, lesson.text) == ("tac_1", TEXT)
    assert document("learn", "lessons", *ANA, "--stage", "retired")["lessons"] == []
    assert "no retired lessons in the bank of user ana" in text("learn", "lessons", *ANA, "--stage", "retired")
    assert "no lessons in the tenant's bank" in text("learn", "lessons")


def test_a_lesson_is_shown_signed_and_dropped_and_each_is_taken_back(store: Path) -> None:
    told = text("learn", "lesson", "show", "tac_1")
    assert all(word in told for word in (TEXT, "when:", "kept as:", "tactic", "the bank of user ana"))
    LessonStory.from_wire(document("learn", "lesson", "show", "tac_1", *ANA))
    signed = LessonDecision.from_wire(document("learn", "lesson", "sign", "tac_1", "--signed-by", "rosa"))
    assert signed.plan_id is not None
    assert "active, signed" in text("learn", "lessons", *ANA)
    assert "it was so already" in text("learn", "lesson", "sign", "tac_1", "--signed-by", "rosa")
    text("learn", "undo", signed.plan_id)
    assert "active, signed" not in text("learn", "lessons", *ANA)
    gone = text("learn", "lesson", "drop", "tac_1", "--reason", "the shop has changed")
    assert "dropped: the shop has changed" in gone
    (plan,) = (word for word in gone.split() if word.startswith("plan_"))
    assert "retired" in text("learn", "lesson", "show", "tac_1")
    text("learn", "undo", plan)
    history = document("learn", "lesson", "show", "tac_1")["history"]
    assert [each["stage"] for each in history] == ["active", "active", "active", "retired", "active"]


@pytest.mark.parametrize(
    ("typed", "code", "path"),
    [
        (("show", "nobody"), "not_found", "$.record_id"),
        (("show", "nobody", *ANA), "not_found", "$.lesson_id"),
        (("show", "tac_1", "--user", "bo"), "not_found", "$.lesson_id"),
        (("sign", "tac_1", "--signed-by", ""), "invalid_input", "$.signed_by"),
        (("drop", "tac_1", "--reason", " "), "invalid_input", "$.reason"),
        (("drop", "tac_1", "--reason", "x", *ANA, "--agent", "a"), "invalid_input", "$.agent"),
    ],
)
def test_what_cannot_be_done_says_so_and_changes_nothing(
    store: Path, typed: tuple[str, ...], code: str, path: str
) -> None:
    before = json.dumps(document("learn", "lessons", *ANA))
    failed = failure("learn", "lesson", *typed, code=2 if code == "invalid_input" else 1)
    assert (failed["code"], failed["path"]) == (code, path)
    assert json.dumps(document("learn", "lessons", *ANA)) == before


def test_an_unknown_stage_is_a_slip_of_the_command_line(store: Path) -> None:
    assert call("learn", "lessons", "--stage", "good").exit_code == 2
