"""The commands of the guide on learning, one after the other, as somebody would type them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import muniment
from muniment.surfaces.cli.main import TREE

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "learning.md"


@pytest.mark.soak
@pytest.mark.slow
def test_the_commands_run_as_they_stand(tmp_path: Path, muniment_line: str) -> None:
    (block,) = re.findall(
        r"(?:^    .*\n)+", GUIDE.read_text("utf-8").partition("## On the command line")[2], re.MULTILINE
    )
    with muniment.open(tmp_path / "agent.db") as mem:
        run = mem.run(user_id="ana", agent_id="clerk", run_id="run_7")
        run.observe("user", "Find order 7.")
        run.observe_tool("by_number", content="found")
    muniment_ = f'muniment() {{ {muniment_line} "$@"; }}\nset -eu\n'
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    done = subprocess.run(
        ["bash", "-c", muniment_ + block], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for piece in ("0 hints", "episode:      mem_"):
        assert piece in done.stdout


def test_the_guide_is_one_page_and_names_what_people_type() -> None:
    text = GUIDE.read_text("utf-8")
    assert len(text.splitlines()) <= 190
    assert "muniment learn lessons" in text
    for name in TREE["learn"].entries["lesson"].entries:
        assert f"muniment learn lesson {name}" in text, name
