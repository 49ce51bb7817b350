"""The figures of learning, as `tools/figures.py` puts them into pages."""

from __future__ import annotations

from typing import Any

__all__ = ["learning_model", "learning_worlds"]

Results = dict[str, dict[str, Any]]
_ARMS = ("none", "last five", "table", "table, seen", "ours")
_NAMES = {
    "none": "nothing",
    "last five": "the last five runs that passed",
    "table": "a discounted Thompson table",
    "table, seen": "the same, with what the agent sees as a key",
    "ours": "muniment",
}


def learning_model(results: Results) -> list[str]:
    """A real model on tool puzzles, in the second half of its tasks."""
    rows = {arm: results[f"second half: {arm}"] for arm in ("none", "last five", "lessons", "written")}
    rate = {arm: f"{row['pass_rate']:.2f}" for arm, row in rows.items()}
    over = {arm: f"{row['over_none_low']:.2f} to {row['over_none_high']:.2f}" for arm, row in rows.items()}
    calls = {arm: f"{row['calls_per_pass']:.1f}" for arm, row in rows.items()}
    return [
        f"The same model on {rows['none']['runs']} tool puzzles whose documentation misleads passes {rate['none']} of"
        f" them when it is told nothing, {rate['last five']} with its last five passes in the prompt,"
        f" {rate['lessons']} with what we hand it ({over['lessons']} above nothing, over 12 desks) and"
        f" {rate['written']} where it writes lessons too; calls for a pass {calls['none']}, {calls['last five']},"
        f" {calls['lessons']} and {calls['written']}"
        " (`python -m benchmarks.learning_model`)."
    ]


def learning_worlds(results: Results) -> list[str]:
    """Every arm before and after a drift, with the truth known."""
    lines = ["| told | before the drift | after it | when it comes back |", "|---|---|---|---|"]
    for arm in _ARMS:
        cells = [_cell(results, arm, name) for name in ("before", "after drift", "back again")]
        lines.append(f"| {_NAMES[arm]} | {' | '.join(cells)} |")
    return lines


def _cell(results: Results, arm: str, when: str) -> str:
    row = results[f"all families, {when}: {arm}"]
    return f"{row['pass_rate']:.2f} ({row['low']:.2f}–{row['high']:.2f}); {row['cost_per_pass']:.1f}"
