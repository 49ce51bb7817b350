"""The TypeScript client as it is published: what is packed, that it compiles, and what it does with a real server in
Node."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from client_tools import run
from typescript_room import PACKAGE, Installed, installed, serving

HERE = Path(__file__).parent / "typescript"
TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made = installed(tmp_path_factory.mktemp("package"))
    for each in HERE.iterdir():
        shutil.copy(each, made.folder)
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with serving(tmp_path_factory.mktemp("server")) as told:
        yield told


def test_what_is_made_from_the_library_is_current() -> None:
    run(sys.executable, TOOLS / "make_typescript.py", "--check")


@pytest.mark.parametrize("name", ["client", "faults"])
def test_it_does_what_it_says_with_a_real_server(program: Installed, server: dict[str, str], name: str) -> None:
    program.node("--test", f"{name}.test.mjs", **server)
