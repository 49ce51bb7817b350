"""Rooms and names on `docs/architecture.md` exist, in the order that the linter enforces."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import muniment

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(muniment.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROOMS = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)


def test_the_rooms_are_those_of_the_page_in_the_linters_order() -> None:
    there = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert set(ROOMS) == there
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (order,) = (each["layers"] for each in linter["contracts"] if each["type"] == "layers")
    lowest_first = [name.removeprefix("muniment.") for layer in reversed(order) for name in layer.split(" | ")]
    ranks = {name: rank for rank, name in enumerate(lowest_first)}
    inner = [room for room in ROOMS if room not in ("surfaces", "testing")]  # those two stand side by side
    assert inner == sorted(inner, key=ranks.__getitem__)


def test_what_the_page_names_is_there() -> None:
    named = set(re.findall(r"`((?:" + "|".join(ROOMS) + r")(?:\.\w+)+)`", PAGE))
    assert len(named) > 40
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
