"""Other people's runs: which step a drafted guardrail points at, and how often trial after trial passed.

    python -m benchmarks.learning_traces [--data DIR]

`whowhen`: 126 failed runs of several agents, each with the step that people held responsible. Each goes in through the
library and is folded as a failure that came back; the draft's evidence names steps of the run. Beside it, as many steps
drawn by chance (exactly), and as many from the end. The weights of the blame have seen these labels
(`benchmarks.learn_blame` tells how they hold on runs they have not: `held_out`).

`reflexion`: 134 household tasks, tried again and again without and with reflections: pass rates with Wilson bounds, and
in which of them nothing ever changed. Statistics alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import muniment
from benchmarks import data as sets
from benchmarks.harness import RESULTS, report
from benchmarks.learn_blame import interval
from muniment.core.stats import wilson_bounds

FAIL = {"verifier_id": "people", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
TERMINAL = "Computer_terminal"


def whowhen(data: Path) -> dict[str, dict[str, Any]]:
    covered, by_chance, at_the_end = [], [], []
    with muniment.open(":memory:", embedder="none") as mem:
        for path in sorted((data / "whowhen_algorithm_generated").glob("*.json"), key=lambda path: int(path.stem)):
            told = json.loads(path.read_text("utf-8"))
            pointed, steps = _pointed_at(mem, path.stem, told), len(told["history"])
            marked = int(told["mistake_step"])
            covered.append(marked in pointed)
            by_chance.append(min(1.0, len(pointed) / steps))
            at_the_end.append(marked >= steps - len(pointed))
    low, high = interval(covered)
    held = json.loads((RESULTS / "learn_blame.json").read_text())["results"]["signals"]["hit"]
    return {
        "whowhen: the guardrail's evidence": {
            "covers": float(np.mean(covered)),
            "low": low,
            "high": high,
            "held_out": held,
            "runs": len(covered),
        },
        "whowhen: as many by chance": {"covers": float(np.mean(by_chance))},
        "whowhen: as many from the end": {"covers": float(np.mean(at_the_end))},
    }


def _pointed_at(mem: muniment.Memory, name: str, told: dict[str, Any]) -> set[int]:
    """The steps, by their place in the history, that the draft of this run's failure names."""
    run = mem.run(user_id=f"u{name}", agent_id="agents")
    run.observe("user", told["question"])
    entries = run.observe_many([_event(turn) for turn in told["history"]])
    places = {entry.id: place for place, entry in enumerate(entries)}
    run.learning.fold("fail_cluster", verifier_result=FAIL | {"failure_cluster_id": f"fc_{name}"})
    drafts = [draft for draft in mem.bank(user_id=f"u{name}").drafts() if draft.proposed_rule.type == "GuardrailRule"]
    named = [id_ for draft in drafts for id_ in (draft.to_wire()["evidence"].get("evidence_ids") or ())]
    return {places[id_] for id_ in named if id_ in places}


def _event(turn: dict[str, Any]) -> dict[str, Any]:
    content = turn["content"] or "(nothing)"
    if turn["name"] == TERMINAL:
        return {"role": "tool", "content": content, "tool": {"name": TERMINAL, "ok": "exitcode: 1" not in content}}
    return {"role": "assistant", "content": content, "speaker": turn["name"]}


def reflexion(data: Path) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for name in ("base", "reflexion"):
        folder = data / "reflexion_alfworld" / "root" / f"{name}_run_logs"
        paths = sorted(folder.glob("env_results_trial_*.json"), key=lambda path: int(path.stem.rpartition("_")[2]))
        trials = [{one["name"]: bool(one["is_success"]) for one in json.loads(path.read_text())} for path in paths]
        first, last = trials[0], trials[-1]
        rows[f"reflexion: {name}"] = {
            "tasks": len(first),
            "trials": len(trials),
            "first": _rate(first),
            "last": _rate(last),
            "rates": " ".join(f"{np.mean(list(trial.values())):.3f}" for trial in trials),
            "never_passed": sum(not any(trial[task] for trial in trials) for task in first),
            "always_passed": sum(all(trial[task] for trial in trials) for task in first),
        }
    return rows


def _rate(trial: dict[str, bool]) -> str:
    bounds = wilson_bounds(sum(trial.values()), len(trial), 0.95)
    return f"{np.mean(list(trial.values())):.3f} ({bounds.lower:.3f}-{bounds.upper:.3f})"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    given = parser.parse_args(argv)
    report("learning_traces", whowhen(given.data) | reflexion(given.data), {})


if __name__ == "__main__":
    main()
