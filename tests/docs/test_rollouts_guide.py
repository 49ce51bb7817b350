"""The commands of the guide on rollouts, one after the other, as somebody would type them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "rollouts.md"
SOLVER = """
def agent(task):
    return "Answer: 24"

def verifier(output, task):
    return output.text.endswith("24")
"""


@pytest.mark.slow
def test_the_commands_run_as_they_stand(tmp_path: Path, muniment_line: str) -> None:
    (block,) = re.findall(
        r"(?:^    .*\n)+", GUIDE.read_text("utf-8").partition("## On the command line")[2], re.MULTILINE
    )
    (tmp_path / "solver.py").write_text(SOLVER, "utf-8")
    muniment = f'muniment() {{ {muniment_line} "$@"; }}\nset -eu\n'
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    done = subprocess.run(
        ["bash", "-c", muniment + block], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("passed, after 1 attempt; run") == 2
    assert '"decision":{' in done.stdout.splitlines()[-1]
