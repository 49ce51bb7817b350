"""Where files of other systems come from: a Python that has their package, here or in the environment apart."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["DATA", "HERE", "Make", "interpreter_with"]

HERE = Path(__file__).parent
DATA = HERE / "data"
APART = HERE.parent.parent.parent / ".venv-apart" / "bin" / "python"

Make = Callable[[str, str], Path]
"""A folder of files of a kind, made by the package that has a module."""


def interpreter_with(module: str) -> str | None:
    """A Python that has the module: this one, or the environment apart."""
    if importlib.util.find_spec(module) is not None:
        return sys.executable
    looks = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    if APART.exists() and not subprocess.run([APART, "-c", looks], check=False).returncode:
        return str(APART)
    return None
