"""What the documentation says is true: snippets run, commands exist, figures are measured, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from muniment.surfaces.cli.main import COMMANDS
from muniment.surfaces.settings import NAMES

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def snippets(page: Path) -> str:
    """All Python snippets of a page, as one script: later ones may use what earlier ones made."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=lambda page: page.name)
def test_python_snippets_run(page: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", snippets(page)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_pages_exist(page: Path) -> None:
    named = re.findall(r"^    muniment ([\w-]+)", page.read_text("utf-8"), re.MULTILINE)
    assert set(named) <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "start.md").read_text("utf-8")
    for name in NAMES:
        assert f"MUNIMENT_{name.upper()}" in text


def test_figures_are_the_measured_ones() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "figures.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_readme_fits_on_two_screens() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120
