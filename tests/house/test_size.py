"""`tools/size.py` counts what it says."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import size

FACE = '''"""What a face is."""
from toy.parts import helper
'''
WORK = '''"""Work."""
from . import parts
from .parts import helper


class Job:
    """A job."""

    step = helper(0)

    @property
    def name(self):
        return "job"

    def run(self):
        return [helper(n) for n in range(2)], sum(helper(n) for n in range(2)), (lambda: helper(3))()


def outer():
    """What is outside."""

    def inner():
        return 1

    return inner() + inner()


def work():
    return Job().run(), Job().name, outer(), parts.helper(4)


def never():
    return outer
'''
PARTS = '''"""Parts."""


class Job:
    """The same name again."""


class _Hidden:
    """So many."""


def helper(number):
    return number
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "toy"
    (package / "data").mkdir(parents=True)
    for name, text in (("__init__", FACE), ("work", WORK), ("parts", PARTS)):
        (package / f"{name}.py").write_text(text, "utf-8")
    (package / "other.py").write_text("from .work import work\n", "utf-8")
    (package / "data" / "words.txt").write_bytes(b"12345")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
        monkeypatch.delitem(sys.modules, name)
    return package


def test_tree_figures(toy: Path) -> None:
    tree = size.Tree(toy)
    assert tree.count() == {
        "modules": 4,
        "lines": sum(len(text.splitlines()) for text in (FACE, WORK, PARTS)) + 1,
        "lines in functions": 2 + 2 + 7 + 2 + 2 + 2,
        "functions": 7,
        "lines per function": round((2 + 2 + 7 + 2 + 2 + 2 + 2) / 7, 1),
        "bytes under data/": 5,
        "docstrings that begin with What": 2,
        "docstrings in dialect": 4,
        "class names used more than once": 1,
        "modules with one importer": 1,
    }
    assert tree.repeated_classes() == {"Job": 2}
    assert tree.single_importers() == {"toy.work": "toy.other"}
    assert tree.rooms() == {"(face)": {"modules": 4, "lines": tree.count()["lines"]}}


def test_functions_entered(toy: Path) -> None:
    """A function counts once, whoever calls it; comprehensions, lambdas and class bodies do not count."""
    with size.watch(toy) as entered:
        work = importlib.import_module("toy.work").work
        entered.clear()
        work()
        first = [(each.module, each.name) for each in entered]
        thread = threading.Thread(target=importlib.import_module("toy.work").never)
        thread.start()
        thread.join()
    assert first == [
        ("toy.work", "work"),
        ("toy.work", "Job.run"),
        ("toy.parts", "helper"),
        ("toy.work", "Job.name"),
        ("toy.work", "outer"),
        ("toy.work", "outer.<locals>.inner"),
    ]
    assert [each.name for each in entered][len(first) :] == ["never"], "other threads are watched as well"
    work()
    assert len(entered) == len(first) + 1, "nothing is watched after the block"


def test_a_watched_call_is_the_second_of_its_kind() -> None:
    """Every walk has a target, and what only a first call enters is not in it."""
    assert list(size.TARGETS) == list(size.WALKS)
    entered = {f"{each.module}.{each.name}" for each in size.walk("observe")}
    assert "muniment.handles.run.Run.observe" in entered
    assert "muniment.handles.memory.Memory.run" not in entered
