"""The demo runs on the core alone: what `make demo` installs is all that it needs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WITHOUT = """
import json, sys

names = frozenset(json.loads(sys.argv.pop(1)))

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in names else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
from muniment.surfaces.cli.main import main
main()
"""
"""The command line in a process where these modules are not installed."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def core_distributions() -> set[str]:
    """What is installed with the package where no extra is asked for."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    waiting, found = list(declared), {"muniment"}
    while waiting:
        needed = waiting.pop()
        name = normal(re.match(r"[\w.-]+", needed)[0])  # type: ignore[index]
        if name not in found and "extra ==" not in needed:
            found.add(name)
            try:
                waiting += metadata.requires(name) or ()
            except metadata.PackageNotFoundError:  # of another system or an older Python
                continue
    return found


@pytest.mark.slow
def test_the_demo_needs_no_extra(tmp_path: Path) -> None:
    core = core_distributions()
    extras = [
        module for module, owners in metadata.packages_distributions().items() if not {normal(o) for o in owners} & core
    ]
    assert {"starlette", "mcp", "psycopg", "wordllama", "pytest"} <= set(extras)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, json.dumps(extras), "demo"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 · ")
    assert not done.stderr
