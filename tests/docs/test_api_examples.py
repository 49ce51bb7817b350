"""Every method of the Python API has an example, and what an example says that it prints is what it prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))

from reference.api import OTHERS, _shown
from reference.examples import FILES, examples, play, read

from muniment.surfaces.operations.signatures import public_members
from muniment.surfaces.operations.table import class_at

ROOT = Path(__file__).parents[2]
METHODS = [
    *(f"{name}.{member}" for place, name in _shown() for member in public_members(class_at(place))),
    *(f"{name}.{member}" for cls, name in OTHERS.items() for member in public_members(cls)),
]


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_examples_print_what_they_say(file: Path) -> None:
    """`python tools/play_examples.py --write` writes down what they print."""
    for example, printed in play(file):
        assert printed == example.printed, example.name


def test_every_method_has_an_example() -> None:
    assert [name for name in METHODS if name not in examples()] == []


def test_every_example_is_of_a_method_and_shows_it() -> None:
    every = [example for file in FILES for example in read(file)]
    assert len({example.name for example in every}) == len(every)
    assert {example.name for example in every} - {*METHODS, "muniment.open"} == set()
    for example in every:
        calls = example.name.rpartition(".")[2]
        assert f".{calls}" in example.code, example.name


def test_examples_stand_below_their_methods() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    for name, code in examples().items():
        part = page.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
        assert f"```py\n{code}\n```" in part, name


def test_what_an_example_prints_is_told_from_what_it_does(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text('"""Some."""\n\n# -- a.b\nx = 1\nprint(x)\n# → 1\n\n# -- a.c\nprint(x + 1)\n# → 3\n', "utf-8")
    assert [(each.name, each.code, each.printed) for each in read(file)] == [
        ("a.b", "x = 1\nprint(x)", "1"),
        ("a.c", "print(x + 1)", "3"),
    ]
    assert [(each.printed, printed) for each, printed in play(file)] == [("1", "1"), ("3", "2")]
