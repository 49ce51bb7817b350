"""The figures of learning, as `tools/figures.py` puts them into pages."""

from __future__ import annotations

from typing import Any

__all__ = ["learning_fresh", "learning_model", "rules_advance"]

Results = dict[str, dict[str, Any]]
_NAMES = {
    "none": "nothing",
    "last five": "the last five runs that passed",
    "overlap": "passed first, then overlap of tools",
    "table": "a discounted Thompson table of options",
    "ours": "muniment as it was: ways compared, lessons by contrast",
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
        f" {rate['lessons']} with what we handed it before that decision ({over['lessons']} above nothing, over 12"
        " desks) and"
        f" {rate['written']} where it writes lessons too; calls for a pass {calls['none']}, {calls['last five']},"
        f" {calls['lessons']} and {calls['written']}"
        " (`python -m benchmarks.learning_model`)."
    ]


def learning_fresh(results: Results, after: Results) -> list[str]:
    """Every arm on families of work that were run once, and the arm that ships since."""
    arms = [(name, results[f"fresh: {arm}"]) for arm, name in _NAMES.items()]
    arms.append(("muniment now: the last passes as episodes", after["fresh: ours"]))
    lines = ["| in the prompt | pass rate | over the last five |", "|---|---|---|"]
    for name, row in arms:
        over = row.get("over last five")
        gain = f"{over[0]:.3f} ({over[1]:.3f} to {over[2]:.3f})" if over else ""
        lines.append(f"| {name} | {row['rate']:.3f} ({row['low']:.3f}–{row['high']:.3f}) | {gain} |")
    return lines


def rules_advance(results: Results) -> list[str]:
    """What became of drafts in the small world, and what they were worth."""
    people, folds = results["share .5: planted, useful"], results["folds alone: fold, useful"]
    every, alone, harmful = results["share .5: all"], results["folds alone: all"], results["share .5: planted, harmful"]
    calls, calls_alone = (each["calls_of_the_agent_per_world"] for each in (every, alone))
    bad = results["asked"]["harmful_or_ordered_promoted"]
    return [
        f"Measured in a small world of five kinds of work: {every['worlds']} seeds of 300 runs, half of them on trial."
        " One verdict in ten is wrong, and one more in ten is turned in favour of the worst tool."
        f" Of {people['rules']} useful drafts that people submitted, {people['promoted']} were promoted, after"
        f" {people['runs_when_promoted_mean']:.0f} runs on average. Of {folds['rules']} useful ones that folds drafted"
        f" by themselves, {folds['promoted']} were ({folds['share']:.2f}, {folds['low']:.2f} to {folds['high']:.2f})."
        f" Of {harmful['rules']} harmful drafts and {every['orders']} orders, {bad} were."
        f" Solved tasks rose from {every['solved_first_third']:.2f} in the first third of the runs to"
        f" {every['solved_last_third']:.2f} in the last. With the drafts of folds alone they rose to"
        f" {alone['solved_last_third']:.2f}: those served {alone['families_with_a_useful_rule']} of {alone['families']}"
        f" kinds of work. `advance` called the agent {calls:,.0f} times in a world with drafts of people,"
        f" {calls_alone:,.0f} times without (`python -m benchmarks.rules_advance`)."
    ]
