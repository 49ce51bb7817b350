"""The map is true: rooms, modules and walks are as `docs/architecture.md` and the rooms themselves say."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import muniment
from products import for_each

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(muniment.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROOMS = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
WALKS = {
    "observe": "observe",
    "compose": "compose",
    "forget": "forget",
    "an HTTP request": "HTTP request",
    "a promotion": "promotion",
}
"""Headings of the page, and what the tool calls the walk."""


@pytest.fixture(scope="module")
def walks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("walks", ROOT / "tools" / "walks.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["walks"] = made
    spec.loader.exec_module(made)
    return made


def folders(room: str) -> list[Path]:
    return [path for path in (PACKAGE / room).rglob("*") if path.is_dir() and any(path.glob("*.py"))]


def test_the_rooms_are_those_of_the_page_in_the_linters_order() -> None:
    there = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert set(ROOMS) == there
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (order,) = (each["layers"] for each in linter["contracts"] if each["type"] == "layers")
    lowest_first = [name.removeprefix("muniment.") for layer in reversed(order) for name in layer.split(" | ")]
    ranks = {name: rank for rank, name in enumerate(lowest_first)}
    inner = [room for room in ROOMS if room not in ("surfaces", "testing")]  # those two stand side by side
    assert inner == sorted(inner, key=ranks.__getitem__)


@for_each("room", ROOMS)
def test_no_folder_is_crowded_or_deep(room: str) -> None:
    for path in [PACKAGE / room, *folders(room)]:
        assert len(list(path.glob("*.py"))) <= 25, f"{path.relative_to(PACKAGE)} has too many modules"
        assert len(path.relative_to(PACKAGE).parts) <= 3, f"{path.relative_to(PACKAGE)} is too deep"


@for_each("room", [room for room in ROOMS if room not in ("integrations", "testing")])
def test_a_room_says_what_it_does_and_where_to_begin(room: str) -> None:
    said = importlib.import_module(f"muniment.{room}").__doc__ or ""
    assert "never" in said or "Nothing" in said or "nothing" in said or "none" in said, "what the room never does"
    read = said.partition("\n\nRead ")[2]
    assert read, "in which order to read it"
    for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", read):
        if not name.startswith(("run.", "mem")) and name != "run":  # what a caller writes
            place = PACKAGE.joinpath(room, *name.split("."))
            assert place.with_suffix(".py").exists() or place.is_dir(), f"{room} names {name}"


def test_what_the_page_names_is_there() -> None:
    named = set(re.findall(r"`((?:" + "|".join(ROOMS) + r")(?:\.\w+)+)`", PAGE))
    assert len(named) > 60
    for name in sorted(named):
        assert is_there(name), f"{name} is not there"
    for path in re.findall(r"`((?:" + "|".join(ROOMS) + r")/[\w/.]+)`", PAGE):
        assert (PACKAGE / path).exists(), f"{path} is not there"


def is_there(name: str) -> bool:
    """Whether a dotted name of the package is a module or something in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        place = PACKAGE.joinpath(*parts[:end])
        if place.with_suffix(".py").exists() or place.is_dir():
            if end == len(parts):
                return True
            found: object = importlib.import_module(".".join(("muniment", *parts[:end])))
            for part in parts[end:]:
                found = getattr(found, part, None)
            return found is not None
    return False


@pytest.mark.slow
@for_each("heading", WALKS)
def test_a_walk_is_as_the_page_tells_it(walks: ModuleType, heading: str) -> None:
    """Every function of the walk is entered, and for the first time in this order."""
    (told,) = re.findall(rf"^### {re.escape(heading)}\b.*?\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    names = re.findall(r"`((?:" + "|".join(ROOMS) + r")(?:\.\w+){2,})`", told)
    walk = walks.take(WALKS[heading])
    entered = walk.functions
    functions = [name for name in names if name in entered or callable_there(name)]
    assert len(functions) >= 6
    missing = [name for name in functions if name not in entered]
    assert not missing, f"never entered: {missing}"
    places = [entered.index(name) for name in functions]
    assert places == sorted(places), f"entered in another order: {sorted(functions, key=entered.index)}"


def callable_there(name: str) -> bool:
    room, module, *rest = name.split(".")
    deeper = PACKAGE.joinpath(room, module)
    return bool(rest) and not (deeper.is_dir() and len(rest) == 1)


@pytest.mark.slow
def test_walks_are_no_longer_than_they_were(walks: ModuleType) -> None:
    """A stop more is a stop more for everybody who reads: bring the figure down elsewhere, or say why in 0012."""
    most = {"observe": 39, "compose": 116, "forget": 40, "HTTP request": 80, "promotion": 50}
    for name, stops in most.items():
        assert len(walks.take(name).modules) <= stops, name
