"""Files of each system: made by the real package where it is installed, in this environment or in the one apart."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from moving_room import DATA, HERE, Make, interpreter_with

import muniment
from muniment.handles.memory import Memory


@pytest.fixture
def mem() -> Iterator[Memory]:
    with muniment.open(":memory:") as memory:
        yield memory


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
