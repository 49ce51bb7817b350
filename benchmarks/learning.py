"""Learning memory: every figure, and whether it is what was asked for.

    python -m benchmarks.learning              everything (an hour on two busy cores)
    python -m benchmarks.learning --quick      small sizes, for a look
    python -m benchmarks.learning --gather     nothing is run; what the parts wrote last is put together

The parts are programs of their own, each with a result file: `learning_tau` (what worked, recalled for real runs that
failed), `learning_traces` (the step to blame; trial after trial), `learning_loop` (a loop that learns),
`learning_worlds` (generated worlds with drift, false feedback and attacks), and `learning_speed`; `learning_memory`
takes hours and is run by itself, and so is `learning_model`, which asks a real model. The weights of recall come from
`learn_recall_weights`. Beside these, every row of a result file `learning_*` or `lessons_*` that says what was asked
and whether it is met is taken over as it is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import learning_loop, learning_speed, learning_tau, learning_traces, learning_worlds
from benchmarks.harness import RESULTS, report
from benchmarks.worlds_figures import LATER, SEGMENT_NAMES, SOON

Results = dict[str, dict[str, Any]]


def read(name: str) -> Results:
    return dict(json.loads((RESULTS / f"{name}.json").read_text())["results"])


def _row(asked: str, found: float, met: bool, **more: Any) -> dict[str, Any]:
    return {"asked": asked, "found": round(found, 4), "met": met} | more


def real_runs() -> Results:
    """Ahead of every keyword search and every vector search, by the lower end of the interval over tasks."""
    rows = read("learning_tau")
    ours = rows["family: recall"]["share"]
    others = {key: row for key, row in rows.items() if key.startswith("family: ") and " over " in key}
    found: Results = {}
    for name, belongs in (("keyword search", True), ("vector search", False)):
        group = {key: row for key, row in others.items() if ("keywords" in key) == belongs}
        best = max(group, key=lambda key: group[key]["share"])
        row = group[best]
        interval = f"{row['ahead_low']:.3f} to {row['ahead_high']:.3f}"
        found[f"hints of passing runs of the family, against {name}"] = _row(
            "ahead", ours, row["ahead"] > 0, best_other=row["share"], other=best, ahead_95=interval,
            is_beyond_chance=row["ahead_low"] > 0,
        )  # fmt: skip
    traces = read("learning_traces")
    covers = traces["whowhen: the guardrail's evidence"]
    least = max(row["covers"] for key, row in traces.items() if "as many" in key)
    found["guardrail's evidence covers the marked step"] = _row(
        "more than a random or last step", covers["covers"], covers["low"] > least, others=round(least, 4)
    )
    return found


def the_loop() -> Results:
    rows = read("learning_loop")
    late = next(row for key, row in rows.items() if key.startswith("poisoned, runs after") and "alone" in key)
    seen, unseen = rows["seen families, with memory"], rows["unseen families, with memory"]
    shuffled, tactics = rows["seen families, shuffled hints"], rows["tactics"]
    return {
        "cost per pass, seen families": _within("at most 0.6", seen, seen["high"] <= 0.6),
        "cost per pass, unseen families": _within("at most 1.02", unseen, unseen["high"] <= 1.02),
        "cost per pass, shuffled hints": _within("the gain is lost", shuffled, shuffled["low"] >= 0.95),
        "poisoned tactics that are out of force": _row("the harmful ones", tactics["share"], tactics["share"] > 0.9),
        "cost per pass 50 runs after poison": _within(
            "as without poison (interval holds 1, or below)", late, late["low"] <= 1.0
        ),
    }


def _within(asked: str, row: dict[str, Any], met: bool) -> dict[str, Any]:
    return _row(asked, row["ratio"], met, interval_95=f"{row['low']:.3f} to {row['high']:.3f}")


def the_speed() -> Results:
    rows = read("learning_speed")
    recalls = {key: row for key, row in rows.items() if key.startswith("recall of")}
    largest = max(recalls, key=lambda key: int(key.split()[2].replace(",", "")))
    fold = next(key for key in rows if key.startswith("fold of"))
    found = {
        f"{largest}, over a bare search": _row(
            "at most 5 times", recalls[largest]["times"], recalls[largest]["times"] <= 5
        ),
        f"{fold}, over a bare append": _row("at most 50 times", rows[fold]["times"], rows[fold]["times"] <= 50),
    }
    return found | (the_memory() if (RESULTS / "learning_memory.json").exists() else {})


def the_memory() -> Results:
    """Caches fill first: what is judged is the last reading against that at a quarter; the first one is told too."""
    rows = read("learning_memory")
    flat, filled = rows["memory, last over a quarter"], rows["memory, last over first"]["ratio"]
    is_met = flat["ratio"] <= 1.1 and flat["runs"] >= 100_000
    asked = "flat over 100,000 runs"
    return {
        "resident memory, last over a quarter": _row(asked, flat["ratio"], is_met, runs=flat["runs"], over_first=filled)
    }


def the_worlds(file: str = "learning_worlds") -> Results:
    """After a drift as good as without memory, then better; what is handed out is not against the solution."""
    rows = read(file)
    found: Results = {}
    for key, row in rows.items():
        if not (key.startswith(("drift, ", "drift back, ")) and key.endswith(": ours")):
            continue
        title, _, kind = key.removesuffix(": ours").partition(", ")
        for asked, name in ((SOON, "back_after"), (LATER, "above_after")):
            if name == "above_after" and kind == "even":
                continue  # where nothing can be learnt nothing can be better
            words = "as good as without memory" if name == "back_after" else "better than without"
            run = row[name]
            found[f"worlds, {title}, {kind}: {words}"] = _row(
                f"within {asked} runs of the family", -1 if run is None else run, run is not None and run <= asked,
                over=row.get(f"over_{SOON}_{LATER}" if name == "back_after" else f"over_{LATER}_on"),
            )  # fmt: skip
    for part in SEGMENT_NAMES:
        ours = rows[f"all families, {part}: ours"]
        interval = f"{ours['over_low']:.3f} to {ours['over_high']:.3f}"
        others = {arm: rows[f"all families, {part}: {arm}"]["pass_rate"] for arm in ("none", "last five", "table")}
        found[f"worlds, {part}: pass rate over no memory"] = _row(
            "above 0", ours["over_none"], ours["over_low"] > 0, over_95=interval, pass_rate=ours["pass_rate"], **others
        )
        handed = rows[f"handed out, {part}: ours"]
        share = handed["recalls_with_lesson_against"] or 0.0
        found[f"worlds, {part}: recalls with a lesson against the solution"] = _row(
            "at most 0.1", share, share <= 0.1, of_all_lines=handed["recalls_against"]
        )
    return found | the_attacks(rows)


def the_attacks(rows: Results) -> Results:
    counted = ("harmful_active_ever", "active_for_attacker_ever", "active_with_injected_words_ever")
    names = [*counted, "lines_with_injected_words"]
    return {
        f"worlds, {attack}: {name.replace('_', ' ')}": _row(
            "0", rows[f"attack: {attack}"][name], not rows[f"attack: {attack}"][name]
        )
        for attack in ("poisoned", "injected")
        for name in names
    }


def the_model(file: str = "learning_model") -> Results:
    """A real model in the second half of the rounds, with lessons and without."""
    rows = read(file)
    found: Results = {}
    for arm in ("lessons", "written"):
        row = rows.get(f"second half: {arm}")
        if row is None:
            continue
        for name, words in (("over_none", "pass rate"), ("first_over_none", "first call right")):
            interval = f"{row[f'{name}_low']:.3f} to {row[f'{name}_high']:.3f}"
            title = f"real model, {arm}: {words} over no memory"
            found[title] = _row("above 0", row[name], row[f"{name}_low"] > 0, interval_95=interval)
    return found


def the_gold(file: str = "learning_contradictions") -> Results:
    """Of recalls for recorded tasks that had no part in the bank, how many speak against the gold actions."""
    row = read(file)["airline: recalls that speak against the solution"]
    interval = f"{row['low']:.3f} to {row['high']:.3f}"
    title = "airline, other tasks: recalls against the gold actions"
    return {title: _row("at most 0.1", row["share"], row["share"] <= 0.1, interval_95=interval)}


def the_others(taken: Sequence[str]) -> Results:
    """Rows of other result files that say themselves what was asked."""
    found: Results = {}
    for path in sorted([*RESULTS.glob("learning_*.json"), *RESULTS.glob("lessons_*.json")]):
        if path.stem in taken or path.stem.endswith(("_before", "_quick")):
            continue
        rows = json.loads(path.read_text())["results"]
        found |= {f"{path.stem}: {key}": row for key, row in rows.items() if {"asked", "found", "met"} <= set(row)}
    return found


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look")
    parser.add_argument("--gather", action="store_true", help="run nothing")
    given = parser.parse_args(argv)
    quick = ["--quick"] if given.quick else []
    parts: list[tuple[Callable[[Sequence[str]], None], list[str]]] = [
        (learning_tau.main, ["--embedders", "wordllama"] if given.quick else []),
        (learning_traces.main, []),
        (learning_loop.main, quick),
        (learning_worlds.main, [*quick, "--judged"]),
        (learning_speed.main, quick),
    ]
    for run, arguments in [] if given.gather else parts:
        run(arguments)
    rows = real_runs() | the_loop() | the_speed() | the_others(("learning",))
    worlds = "learning_worlds_quick" if given.quick else "learning_worlds"
    for gather, file in ((the_worlds, worlds), (the_model, "learning_model"), (the_gold, "learning_contradictions")):
        rows |= gather(file) if (RESULTS / f"{file}.json").exists() else {}
    report("learning", rows, {"quick": given.quick, "gather": given.gather})


if __name__ == "__main__":
    main()
