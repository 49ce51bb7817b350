"""Data that comes with the package: lists are read as they are written, and every file says where it comes from."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import muniment
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList, forms_in, read_data
from muniment.errors import IntegrityFailure, NotFound
from products import for_each

PACKAGE = Path(muniment.__file__).parent
FOLDERS = sorted(path for path in PACKAGE.rglob("data") if path.is_dir())
LISTS = sorted(path for folder in FOLDERS for path in folder.glob("*.txt"))

LISTED = """
# Where from: this test.

first one
[words]
# a comment
a b
c
[pairs]
pet, animal: dog cat
  hamster
time: at (?:noon|10:30)
time: later
[forms]
\\bnew york\\b  rome
paris
"""


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WordList]:
    package = tmp_path / "word_list_room"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    (package / "data" / "list.txt").write_text(LISTED, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("word_list_room")
    yield WordList("word_list_room", "list.txt")
    del sys.modules["word_list_room"]


def test_a_list_is_read_by_section(listed: WordList) -> None:
    assert listed.entries() == ("first one",)
    assert listed.words("words") == ("a", "b", "c")
    assert listed.pairs("pairs") == (
        ("pet, animal", "dog cat\nhamster"),
        ("time", "at (?:noon|10:30)"),
        ("time", "later"),
    )
    assert listed.either("forms") == r"\bnew york\b|rome|paris"
    assert forms_in("a b  c\nd") == ["a b", "c", "d"]


def test_a_pattern_may_be_made_of_a_list_when_it_is_first_used(listed: WordList) -> None:
    made: list[str] = []

    def source() -> str:
        made.append("made")
        return f"(?:{listed.either('forms')})!"

    pattern = lazy_pattern(source)
    assert not made
    assert pattern.search("off to rome!")
    assert pattern.pattern == r"(?:\bnew york\b|rome|paris)!"


def test_a_file_that_is_missing_or_another_is_told(listed: WordList) -> None:
    with pytest.raises(NotFound) as missing:
        read_data("word_list_room", "nothing.txt")
    assert missing.value.hint == "install muniment again"
    with pytest.raises(IntegrityFailure) as other:
        read_data("word_list_room", "list.txt", "0" * 64)
    assert other.value.hint == "install muniment again"
    assert listed.entries()


@for_each("path", LISTS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_list_says_where_it_comes_from_and_holds_something(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith("# Where from: ")
    assert text.endswith("\n")
    names = re.findall(r"(?m)^\[([^\]]*)\]$", text)
    assert len(names) == len(set(names))
    package = ".".join(("muniment", *path.parent.parent.relative_to(PACKAGE).parts))
    importlib.import_module(package)
    listed = WordList(package, path.name)
    assert all(listed.entries(name) for name in names or [""])


@for_each("folder", FOLDERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_folder_of_data_lists_its_files_and_their_readers(folder: Path) -> None:
    rows = re.findall(r"(?m)^\| `([\w.]+)` \|.*\| ([^|]+) \|$", (folder / "README.md").read_text("utf-8"))
    held = sorted(path.name for path in folder.iterdir() if path.name != "README.md")
    assert [name for name, _ in rows] == held
    for name, readers in rows:
        for reader in re.findall(r"`(\w+\.py)`", readers):
            text = (folder.parent / reader).read_text("utf-8")
            is_named = name in text or '}.txt"' in text  # a language's file goes by its name
            assert is_named or "attribute_table import WORDS" in text, f"{reader} does not read {name}"
