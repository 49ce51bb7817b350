"""The map is true: rooms, modules and walks are as `docs/architecture.md` and the rooms themselves say."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest

import muniment
from muniment.testing.rule_story import RuleStory

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import size

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(muniment.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROOMS = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
WALKS = {"observe": "observe", "compose": "compose", "forget": "forget", "an HTTP request": "http search"}
"""Headings of the page, and what the tool calls the walk."""


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


@pytest.mark.parametrize("room", ROOMS)
def test_no_folder_is_crowded_or_deep(room: str) -> None:
    for path in [PACKAGE / room, *folders(room)]:
        assert len(list(path.glob("*.py"))) <= 25, f"{path.relative_to(PACKAGE)} has too many modules"
        assert len(path.relative_to(PACKAGE).parts) <= 3, f"{path.relative_to(PACKAGE)} is too deep"


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in ("integrations", "testing")])
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
@pytest.mark.parametrize("heading", [*WALKS, "a promotion"])
def test_functions_of_a_walk_are_entered_in_the_order_of_the_page(heading: str) -> None:
    (steps,) = re.findall(rf"^### {re.escape(heading)}\b.*?\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    named = re.findall(r"`((?:" + "|".join(ROOMS) + r")(?:\.\w+){2,})`", steps)
    walked = size.walk(WALKS[heading]) if heading in WALKS else promote()
    entered = [f"{each.module}.{each.name}".removeprefix("muniment.") for each in walked]
    functions = [name for name in named if name in entered or callable_there(name)]
    assert len(functions) >= 6
    missing = [name for name in functions if name not in entered]
    assert not missing, f"never entered: {missing}"
    places = [entered.index(name) for name in functions]
    assert places == sorted(places), f"entered in another order: {sorted(functions, key=entered.index)}"


def promote() -> list[size.Function]:
    """The functions that are entered as a rule is promoted after its trial."""
    with muniment.open(":memory:") as mem:
        story = RuleStory(mem)
        rule_id = story.canary()
        for _ in range(400):
            story.run()
            if story.number % 20 == 0 and story.book.watch()[rule_id].decision == "promote":
                with size.watch() as entered:
                    story.book.promote(rule_id, signed_by="rosa")
                return list(entered)
    raise AssertionError("the trial never ended")


def callable_there(name: str) -> bool:
    room, module, *rest = name.split(".")
    deeper = PACKAGE.joinpath(room, module)
    return bool(rest) and not (deeper.is_dir() and len(rest) == 1)
