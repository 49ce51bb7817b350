"""The commands of the guide on research, one after the other, as somebody would type them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from muniment.surfaces.cli.main import TREE

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "research.md"


def python_text(name: str) -> str:
    """A text that the guide's own snippets give this name."""
    found = re.search(rf'^{name} = """(.*?)"""', GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.soak
@pytest.mark.slow
def test_the_commands_run_as_they_stand(tmp_path: Path, muniment_line: str) -> None:
    (block,) = re.findall(
        r"(?:^    .*\n)+", GUIDE.read_text("utf-8").partition("## On the command line")[2], re.MULTILINE
    )
    page = re.search(r'"text": "(.*)"', GUIDE.read_text("utf-8"))
    assert page is not None
    (tmp_path / "output.md").write_text(python_text("OUTPUT"), "utf-8")
    (tmp_path / "trial.txt").write_text(page[1], "utf-8")
    (tmp_path / "report.md").write_text(
        python_text("DRAFT").replace(" Over 25 years that saves 40 million euros.", ""), "utf-8"
    )
    muniment = f'muniment() {{ {muniment_line} "$@"; }}\nset -eu\n'
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    done = subprocess.run(
        ["bash", "-c", muniment + block],
        cwd=tmp_path,
        env=environ | {"XDG_CONFIG_HOME": str(tmp_path / "config")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the report holds" in done.stdout
    assert "[cid_" in (tmp_path / "input.md").read_text("utf-8")
    assert (tmp_path / "prompt.md").read_text("utf-8").startswith("# Research task p1")


def test_every_command_of_research_is_in_the_guide() -> None:
    text = GUIDE.read_text("utf-8")
    for name in TREE["research"].entries:
        assert f"muniment research {name} " in text or f"`{name}`" in text or f"`{name} " in text, name
