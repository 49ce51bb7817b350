"""Runs of the simulator that were kept in files of their own are told as one, and never the same seed twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.simulator import rows_of, summed

from muniment.testing.simulator.simulating import Tally

ENGINES = ("memory", "sqlite")


def run(folder: Path, first: int, seeds: int, failed: int = 0, **more: Any) -> Path:
    tally = Tally()
    tally.stories = seeds - failed
    tally.steps.update(observe=3 * seeds)
    tally.checks.update({"nothing altered is told": first})
    arguments = {"engines": list(ENGINES), "first": first, "seeds": seeds, "steps": 14} | more
    path = folder / f"{first}.json"
    path.write_text(json.dumps({"arguments": arguments, "results": rows_of(tally, failed, ENGINES, 2.0 * seeds)}))
    return path


def test_counts_are_added_and_the_cost_is_of_one_story(tmp_path: Path) -> None:
    rows, arguments = summed([run(tmp_path, 500, 20), run(tmp_path, 100, 10, failed=1)])
    assert arguments == {"engines": list(ENGINES), "first": 100, "seeds": 30, "steps": 14}
    assert rows["stories"] == {
        "held": 29, "failed": 1, "stores": 2, "steps": 90, "cpu_seconds_per_story": pytest.approx(2.0)
    }  # fmt: skip
    assert rows["steps"] == {"observe": 90}
    assert rows["checks"] == {"nothing altered is told": 600}


@pytest.mark.parametrize(("first", "more"), [(200, {"engines": ["memory"]}), (200, {"steps": 3}), (105, {})])
def test_runs_that_differ_or_overlap_are_not_told_as_one(tmp_path: Path, first: int, more: dict[str, Any]) -> None:
    files = [run(tmp_path, 100, 10), run(tmp_path, first, 10, **more)]
    with pytest.raises(SystemExit):
        summed(files)
