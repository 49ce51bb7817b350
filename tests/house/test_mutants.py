"""`tools/mutants.py` changes code that runs, and only that."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = '''
import os

LIMIT = 3


class Each:
    """The docstring of a class."""

    @property
    def size(self) -> int:
        """The docstring of a function."""
        wide: "int" = 1
        if wide and self.limit >= LIMIT or not os.sep:
            self.grow("é")
            return wide + 1
        for part in (True,):
            wide += 1
            break
        raise ValueError("no")
'''


@pytest.fixture(scope="module")
def mutants() -> Any:
    specification = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["mutants"] = module  # its records look their module up
    specification.loader.exec_module(module)
    return module


def test_each_mutant_is_a_program_that_differs_in_one_place(
    mutants: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "each.py"
    path.write_text(SOURCE, "utf-8")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    made = list(mutants.mutants_of(path))
    programs = {ast.unparse(ast.parse(each.applied(SOURCE))) for each in made}
    assert len(programs) == len(made)
    assert ast.unparse(ast.parse(SOURCE)) not in programs
    changed = {(each.was, each.now) for each in made}
    assert {
        ("self.limit >= LIMIT", "(self.limit > LIMIT)"),
        ("not os.sep", "(os.sep)"),
        ('self.grow("é")', "pass"),
        ('"é"', "'éx'"),
        ("wide += 1", "wide = 1"),
        ("True", "False"),
        ("break", "continue"),
        ("return wide + 1", "return None"),
        ("wide + 1", "(wide - 1)"),
    } <= changed
    assert not any("docstring" in each.was or each.was in ("3", '"int"', '"no"') for each in made)
    assert {each.function_key for each in made} == {"each.py:10"}, "the line of its decorator, as a profiler sees it"


def test_a_sample_is_the_same_for_a_seed_and_every_room_has_tests(mutants: Any) -> None:
    for room in (path.name for path in mutants.PACKAGE.iterdir() if (path / "__init__.py").exists()):
        for place in mutants.tests_of(room):
            assert (ROOT / place).exists(), f"{room} is tested nowhere: say where in TESTS"
