"""The table of learning: what was asked of a result and whether it is met, read off the files of the parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import learning


def write(folder: Path, name: str, rows: dict[str, dict[str, Any]]) -> None:
    (folder / f"{name}.json").write_text(json.dumps({"results": rows}))


def worlds(**changed: Any) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {
        "drift, tool: ours": {"back_after": 12, "above_after": 40, "over_30_80": 0.1, "over_80_on": 0.2},
        "drift, even: ours": {"back_after": 0, "above_after": None},
        "drift, tool: table": {"back_after": 90, "above_after": None},
    }
    for part in ("before", "after drift", "back again"):
        arm = {"pass_rate": 0.5, "over_none": 0.1, "over_low": 0.05, "over_high": 0.15}
        rows |= {f"all families, {part}: {name}": dict(arm) for name in ("none", "last five", "table", "ours")}
        rows[f"handed out, {part}: ours"] = {"recalls_with_lesson_against": 0.05, "recalls_against": 0.2}
    counts = dict.fromkeys(
        (
            "harmful_active_ever",
            "active_for_attacker_ever",
            "active_with_injected_words_ever",
            "lines_with_injected_words",
        ),
        0,
    )
    rows |= {f"attack: {name}": dict(counts) for name in ("poisoned", "injected")}
    for key, row in changed.items():
        rows[key.replace("__", ": ").replace("_", " ")] |= row
    return rows


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(learning, "RESULTS", tmp_path)
    return tmp_path


def test_all_that_was_asked_of_the_worlds_is_met(results: Path) -> None:
    write(results, "learning_worlds", worlds())
    table = learning.the_worlds()
    assert all(row["met"] for row in table.values())
    assert "worlds, drift, tool: as good as without memory" in table
    assert not any("table" in key or "even: better" in key for key in table)


@pytest.mark.parametrize(
    ("changed", "unmet"),
    [
        ({"drift,_tool__ours": {"back_after": 31}}, "worlds, drift, tool: as good as without memory"),
        ({"drift,_tool__ours": {"above_after": None}}, "worlds, drift, tool: better than without"),
        (
            {"all_families,_after_drift__ours": {"over_low": -0.01}},
            "worlds, after drift: pass rate over no memory",
        ),
        (
            {"handed_out,_before__ours": {"recalls_with_lesson_against": 0.11}},
            "worlds, before: recalls with a lesson against the solution",
        ),
        ({"attack__poisoned": {"harmful_active_ever": 1}}, "worlds, poisoned: harmful active ever"),
    ],
)
def test_what_falls_short_is_told(results: Path, changed: dict[str, Any], unmet: str) -> None:
    write(results, "learning_worlds", worlds(**changed))
    assert [key for key, row in learning.the_worlds().items() if not row["met"]] == [unmet]


def test_the_model_is_met_where_the_lower_end_is_above_nothing(results: Path) -> None:
    row = {"over_none": 0.2, "over_none_low": 0.01, "over_none_high": 0.4}
    row |= {"first_over_none": 0.2, "first_over_none_low": -0.01, "first_over_none_high": 0.4}
    write(results, "learning_model", {"second half: lessons": row})
    assert [each["met"] for each in learning.the_model().values()] == [True, False]


def test_rows_that_say_what_was_asked_are_taken_over_and_others_are_not(results: Path) -> None:
    told = {"asked": "at most 2", "found": 1.5, "met": True}
    write(results, "lessons_cost", {"fold": told, "bytes": {"kb": 80}})
    write(results, "learning_worlds_before", {"old": told})
    assert learning.the_others(()) == {"lessons_cost: fold": told}
