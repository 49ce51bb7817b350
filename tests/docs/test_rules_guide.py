"""The commands of the guide on rules, one after the other, as somebody would type them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import muniment
from muniment.core.canonical import short_id
from muniment.surfaces.cli.main import TREE
from muniment.testing.stories import RuleStory

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "rules.md"
COUNTER = """
import json

def agent(task):
    if "weather" in task.prompt:
        return "Sunny, twelve degrees."
    return '{"count": 1}' if "Keep FORMAT:JSON_ONLY" in task.prompt else "There is one apple."

def verify(output, task):
    return "weather" in task or output.text.startswith("{")
"""
WORK = """
import muniment
from muniment.testing.stories import RuleStory

with muniment.open("agent.db") as mem:
    story = RuleStory(mem, with_rule=1.0, without=0.1)
    for number in range(60):
        story.run()
"""


@pytest.mark.soak
@pytest.mark.slow
def test_the_commands_run_as_they_stand(tmp_path: Path, muniment_line: str) -> None:
    (block,) = re.findall(
        r"(?:^    .*\n)+", GUIDE.read_text("utf-8").partition("## On the command line")[2], re.MULTILINE
    )
    with muniment.open(tmp_path / "agent.db") as mem:
        draft = RuleStory(mem).teach()
    (tmp_path / "counter.py").write_text(COUNTER, "utf-8")
    (tmp_path / "work.py").write_text(WORK, "utf-8")
    python = shlex.quote(sys.executable)
    head = f'muniment() {{ {muniment_line} "$@"; }}\npython() {{ {python} "$@"; }}\nset -eu\n'
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    ids = {"DRAFT": draft, "RULE": short_id("rule", ["default", "bank:user:ana", draft])}
    done = subprocess.run(
        ["bash", "-c", head + block], cwd=tmp_path, env=environ | ids, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for piece in (
        "draft",
        "to promote:",
        "signed by:    rosa",
        "revision 7 would be put in force again",
        "revision 7 is in force again",
        "GuardrailRule, active",
    ):
        assert piece in done.stdout


def test_every_command_is_in_the_guide() -> None:
    text = GUIDE.read_text("utf-8")
    for name in TREE["rules"].entries:
        assert f"muniment rules {name} " in text, name
