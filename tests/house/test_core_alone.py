"""The demo runs on the core alone: what `make demo` installs is all that it needs."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from without_packages import called_without

ROOT = Path(__file__).parents[2]


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
    (said,) = called_without(extras, [["demo"]], tmp_path)
    assert (said.code, said.raised) == (0, None), said.stderr
    assert said.stdout.startswith("1 · ")
    assert not said.stderr
