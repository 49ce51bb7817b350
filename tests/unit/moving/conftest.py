"""Files of each system: made by the real package where it is installed, in this environment or in the one apart."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import muniment
from muniment.handles.memory import Memory

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
DATA = HERE / "data"
APART = ROOT / ".venv-apart" / "bin" / "python"
sys.path.insert(0, str(HERE))  # for `exports`

Make = Callable[[str, str], Path]


@pytest.fixture
def mem() -> Iterator[Memory]:
    with muniment.open(":memory:") as memory:
        yield memory


def interpreter_with(module: str) -> str | None:
    """A Python that has the module: this one, or the environment apart."""
    if importlib.util.find_spec(module) is not None:
        return sys.executable
    looks = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    if APART.exists() and not subprocess.run([APART, "-c", looks], check=False).returncode:
        return str(APART)
    return None


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A folder of files of a kind, made by the package that has this module; those that are kept where none has it."""
    made: dict[str, Path] = {}

    def make_kind(kind: str, module: str) -> Path:
        if kind not in made:
            python = interpreter_with(module)
            if python is None:
                if not (DATA / kind).is_dir():
                    pytest.skip(f"{module} is not installed here, and no files of it are kept")
                return DATA / kind
            made[kind] = tmp_path_factory.mktemp(kind)
            subprocess.run([python, HERE / "make_files.py", kind, made[kind]], check=True, capture_output=True)
        return made[kind]

    return make_kind
