"""What hosts and editors read of the project is well-formed, and agrees with what the project itself says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DOCUMENT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = DOCUMENT["project"]
HOST = ROOT / ".github"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def test_ci_runs_everything_on_the_oldest_and_the_newest_python() -> None:
    (job,) = read(HOST / "workflows" / "ci.yml")["jobs"].values()
    runs = [step["run"] for step in job["steps"] if "run" in step]
    assert any(run.startswith("make test") for run in runs)
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    ordered = sorted(named, key=lambda version: int(version.partition(".")[2]))
    assert PROJECT["requires-python"] == f">={ordered[0]}"
    assert job["strategy"]["matrix"]["python"] == [ordered[0], ordered[-1]]


def test_hooks_run_the_tools_that_are_installed_here() -> None:
    (repo,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repo["repo"] == "local", "a hook fetches nothing"
    tools = {re.split(r"[<>=\[; ]", each)[0] for each in DOCUMENT["dependency-groups"]["lint"]}
    for hook in repo["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")
        assert hook["entry"].split()[0].removeprefix(".venv/bin/") in tools


def test_issue_templates_say_what_they_are_for() -> None:
    templates = sorted((HOST / "ISSUE_TEMPLATE").glob("*.md"))
    assert [path.stem for path in templates] == ["bug", "feature"]
    for path in templates:
        _, head, body = path.read_text("utf-8").split("---\n", 2)
        assert {"name", "about"} <= yaml.safe_load(head).keys()
        assert body.count("**") >= 6
