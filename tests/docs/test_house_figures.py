"""The figures of decision 0012 are those of its result file."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "decisions" / "0012-rooms.md").read_text("utf-8")
RESULT = json.loads((ROOT / "benchmarks" / "results" / "house.json").read_text("utf-8"))


def row(name: str) -> list[str]:
    """The cells behind a name, as the page has them."""
    (found,) = re.findall(rf"^\| {re.escape(name)} \| (.*) \|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in found.split("|")]


def test_the_totals_are_those_that_were_counted() -> None:
    sides = RESULT["before"]["rooms"], RESULT["after"]["rooms"]
    assert row("top-level packages") == [str(len(side) - 1) for side in sides]
    for name, key in (("modules", "modules"), ("lines of code", "lines")):
        assert row(name) == [f"{sum(room[key] for room in side.values()):,}" for side in sides]


def test_the_walks_are_those_that_were_taken() -> None:
    before, after = RESULT["before"]["walks"], RESULT["after"]["walks"]
    for name in before:
        assert row(f"{name}: modules, depth") == [
            f"{side[name]['modules']}, {side[name]['depth']}" for side in (before, after)
        ]


def test_the_rooms_are_those_that_were_counted() -> None:
    for name, room in RESULT["after"]["rooms"].items():
        assert row(name) == [str(room["modules"]), f"{room['lines']:,}", str(room["fan_in"]), str(room["fan_out"])]
