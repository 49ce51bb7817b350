"""`muniment check`: outputs against a constraint file, as a CI job would call it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from muniment.contracts.schemas import validate
from muniment.surfaces.cli.main import cli

FILE = """
- words: {max: 5}
- not_contains: as an AI
  severity: minor
- tool_not_called: delete
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(FILE)
    (tmp_path / "text.yaml").write_text("- words: {max: 5}")
    lines: list[Any] = [
        {"text": "hello there", "tool_calls": []},
        {"text": "I, as an AI, say", "tool_calls": [], "id": "second"},
        {"text": "one two three four five six", "tool_calls": [{"name": "delete"}]},
    ]
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "good.txt").write_text("hello there")
    (tmp_path / "bad.txt").write_text("one two three four five six")
    return tmp_path


def call(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["check", *arguments], input=stdin)


@pytest.mark.req("RC-17")
def test_the_exit_code_tells_whether_everything_holds(folder: Path) -> None:
    assert call("text.yaml", "good.txt").exit_code == 0
    bad = call("text.yaml", "good.txt", "bad.txt")
    assert bad.exit_code == 1
    assert bad.stdout.splitlines() == [
        "good.txt: holds",
        "bad.txt: FAIL",
        "  FORMAT:WORDS: 6 words, at most 5 allowed",
    ]
    assert call("text.yaml", "-", stdin="hello").exit_code == 0


def test_json_lines_carry_what_is_known_of_a_run(folder: Path) -> None:
    result = call("c.yaml", "out.jsonl", "--json")
    assert result.exit_code == 1
    shown = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["output"], each["ok"], each["result"]["verdict"]) for each in shown] == [
        ("out.jsonl:1", True, "PASS"),
        ("out.jsonl:2", False, "PARTIAL"),
        ("out.jsonl:3", False, "FAIL"),
    ]
    assert shown[1]["id"] == "second"
    assert shown[1]["findings"][1]["where"] == [3, 11]
    for each in shown:
        assert validate("VerifierResult", each["result"]) == []


def test_junit_is_written_for_ci(folder: Path) -> None:
    result = call("c.yaml", "out.jsonl", "missing.txt", "--junit", "report.xml")
    assert result.exit_code == 2
    suite = ElementTree.parse(folder / "report.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("10", "3", "1")


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        ("- wrods: {max: 3}", "invalid_record", "$[0].wrods"),
        ("a: &a [x]\nb: *a", "invalid_input", "$.a"),
        ("- [", "invalid_input", "$"),
        ("#" * 300_000, "too_large", None),
    ],
)
def test_a_wrong_constraint_file_is_an_error_and_not_a_violation(folder: Path, text: str, code: str, path: str) -> None:
    (folder / "wrong.yaml").write_text(text)
    result = call("wrong.yaml", "good.txt", "--json")
    assert result.exit_code == 2
    error = json.loads(result.stderr)
    assert error["code"] == code
    assert error.get("path") == path
    assert "hint" in error or "message" in error


def test_an_output_that_cannot_be_read_is_told_of_and_the_others_are_checked(folder: Path) -> None:
    (folder / "odd.jsonl").write_text('{"text": 3}\n"hello"\nnot json\n{"txt": "a"}\n')
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    result = call("text.yaml", "odd.jsonl", "latin.txt", "nowhere.txt", "good.txt", "--json")
    assert result.exit_code == 2
    assert [json.loads(line)["output"] for line in result.stdout.splitlines()] == ["odd.jsonl:2", "good.txt"]
    assert len(result.stderr.splitlines()) == 5


def test_the_command_is_in_the_table() -> None:
    assert "check" in CliRunner().invoke(cli, ["--help"]).stdout
    assert call("--help").exit_code == 0


def test_nothing_checked_is_not_everything_held(folder: Path) -> None:
    (folder / "empty.jsonl").write_text("\n")
    assert call("text.yaml", "empty.jsonl").exit_code == 2
    twice = call("-", "-", stdin="- words: {max: 5}")
    assert (twice.exit_code, "stdin" in twice.stderr) == (2, True)


def test_a_report_that_cannot_be_written_is_an_error(folder: Path) -> None:
    result = call("text.yaml", "good.txt", "--junit", "nowhere/report.xml")
    assert result.exit_code == 2
    assert "cannot write nowhere/report.xml" in result.stderr


def test_an_unreadable_line_is_named(folder: Path) -> None:
    (folder / "mixed.jsonl").write_text('"hello"\n{"text": 5}\n')
    result = call("text.yaml", "mixed.jsonl")
    assert result.exit_code == 2
    assert "mixed.jsonl:2: cannot be read" in result.stderr
