"""Stores in which a rule has come so far, and the commands of `muniment rules` called as somebody would type them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cli_room import in_folder
from click.testing import CliRunner, Result

import muniment
from muniment.surfaces.cli.main import cli
from muniment.testing.stories import RuleStory

ANA = ("--user", "ana")
AS_INTENT = ("--intent", "domain=count", "--intent", "family=apples")
AGENT = """
import json

def agent(task):
    if "weather" in task.prompt:
        return "Sunny, twelve degrees."
    return '{"count": 1}' if "Keep FORMAT:JSON_ONLY" in task.prompt else "There is one apple."

def stubborn(task):
    return "There is one apple."

def crashing(task):
    raise RuntimeError("out of apples")

def verifier(output, task):
    try:
        return "weather" in task or json.loads(output.text) is not None
    except ValueError:
        return False

number = 3
"""


class Stages(NamedTuple):
    """Stores in which the same rule has come so far."""

    folder: Path
    rule: str
    draft: str


@pytest.fixture(scope="session", name="stages")
def make_stages(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    return _grown(tmp_path_factory.getbasetemp())


@cache
def _grown(base: Path) -> Stages:
    """Once in a process, for all the modules that ask."""
    folder = base / "stages"
    folder.mkdir()
    path = folder / "now.db"

    def keep(name: str) -> None:
        for file in folder.glob("now.db*"):
            shutil.copy(file, folder / file.name.replace("now", name))

    with muniment.open(path) as mem:
        story = RuleStory(mem)
        draft = story.teach()
    keep("taught")
    rule = ""
    for name, step in STEPS.items():
        with muniment.open(path) as mem:
            story = RuleStory(mem, seed=4, with_rule=1.0, without=0.1)
            rule = step(story, rule or draft)
        keep(name)
    return Stages(folder, rule, draft)


def _submit(story: RuleStory, draft: str) -> str:
    return story.book.submit(draft).id


def _gate(story: RuleStory, rule: str) -> str:
    story.book.make_tests(rule)
    assert story.book.gate(rule, story.agent).passed
    return rule


def _canary(story: RuleStory, rule: str) -> str:
    assert story.book.replay(rule, story.agent, story.verifier).passed
    story.book.canary(rule, share=0.5)
    return rule


def _shown(story: RuleStory, rule: str) -> str:
    """Until it may be promoted, and the trial's own runs show it too: figures tell them apart from the replay."""
    while True:
        for _ in range(10):
            story.run()
        trial = story.book.stats(rule).trial
        if story.book.watch(act=False)[rule].decision == "promote" and trial.decision == "better":
            return rule


def _promote(story: RuleStory, rule: str) -> str:
    story.book.promote(rule, signed_by="rosa")
    return rule


STEPS: dict[str, Callable[[RuleStory, str], str]] = {
    "submitted": _submit,
    "gated": _gate,
    "canary": _canary,
    "shown": _shown,
    "active": _promote,
}


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "rule_counter", raising=False)
    (tmp_path / "rule_counter.py").write_text(AGENT, "utf-8")
    return tmp_path


@pytest.fixture(name="at")
def make_at(folder: Path, stages: Stages) -> Callable[[str], str]:
    """A store of one's own in which the rule has come so far; answers its id."""

    def place(stage: str) -> str:
        for file in stages.folder.glob(f"{stage}.db*"):
            shutil.copy(file, folder / file.name.replace(stage, "muniment"))
        return stages.rule

    return place


def call(*args: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(cli, ["rules", *args], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def text(*args: str, code: int = 0, stdin: str | None = None) -> str:
    result = call(*args, stdin=stdin)
    assert (result.exit_code, result.stderr) == (code, ""), result.output
    assert_narrow(result.stdout)
    return result.stdout


def assert_narrow(shown: str) -> None:
    """Readable at 80 columns: nothing is wider but a command, which stands on one line to be copied."""
    assert all(len(line) <= 80 or "muniment rules " in line for line in shown.splitlines()), shown


def document(*args: str, code: int = 0, stdin: str | None = None) -> Any:
    result = call(*args, "--json", stdin=stdin)
    assert (result.exit_code, result.stderr) == (code, ""), result.output
    (line,) = result.stdout.splitlines()
    return json.loads(line)


def failure(*args: str, code: int = 1, stdin: str | None = None) -> dict[str, Any]:
    """The one JSON document a failing command writes to stderr; in text, the same in words."""
    result = call(*args, "--json", stdin=stdin)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    (line,) = result.stderr.splitlines()
    error: dict[str, Any] = json.loads(line)
    said = call(*args, stdin=stdin).stderr
    assert said.startswith(f"error[{error['code']}]: {error['message']}")
    assert f"hint: {error['hint']}" in said
    assert "book." not in error["hint"]
    return error
