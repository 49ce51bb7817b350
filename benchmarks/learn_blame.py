"""Learn the weights by which `learning.fold.blame` points at the step where a run went wrong; say how they hold.

    python -m benchmarks.learn_blame [--data DIR] [--text-chars 600]

126 failed runs of several agents (`whowhen_algorithm_generated`), each with the step that people held responsible. The
labels fit one weight for each of the few signals and nothing else: a conditional logit, one choice among the steps of
each run, drawn to nought. `signals` and `position` are held out: ten folds, ten shuffles, the weights of a fold learned
from the other nine. The signals themselves were written with these runs in sight, so two checks stand beside: `half`,
learned from one half of the runs and told for the other, and `position`, the best that places alone can do. `shipped`
are the weights as they stand in the code, which have seen every label.

`taubench` asks the shipped weights about runs of another kind: 47 failed airline tasks, where the step to find is the
first call that changes the booking and is none of those the task calls for. No weight was learned from them, but the
words by which a tool that only looks is known were written after a first try on these runs, so `first_change` stands
beside: the first call that changes anything.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import report
from muniment.learning.fold.blame import WEIGHTS, Signals, blame, signals_of
from muniment.learning.stored_memory import RunFacts, StepFacts

Array = npt.NDArray[np.float64]

STRENGTH = 2.0
FOLDS = 10
SHUFFLES = 10
LENGTHS = (240, 600, 2_000)
"""How much of a step's text is kept, in characters: what the figure would be."""
CHANGING = (
    "book_reservation",
    "cancel_reservation",
    "send_certificate",
    "transfer_to_human_agents",
    "update_reservation_baggages",
    "update_reservation_flights",
    "update_reservation_passengers",
)


def load(directory: Path, text_chars: int) -> tuple[list[RunFacts], list[int]]:
    """The runs as the fold reads them, and the marked step of each."""
    runs, marked = [], []
    for path in sorted((directory / "whowhen_algorithm_generated").glob("*.json"), key=lambda path: int(path.stem)):
        told = json.loads(path.read_text())
        steps = tuple(
            StepFacts(
                evidence_id=f"{path.stem}:{place}",
                action=turn["name"],
                kind="answer" if turn["name"] == "Computer_terminal" else "say",
                text=_short(turn["content"], text_chars),
            )
            for place, turn in enumerate(told["history"])
        )
        runs.append(RunFacts(trace_id=path.stem, x_summary=told["question"], passed=False, steps=steps, at=""))
        marked.append(int(told["mistake_step"]))
    return runs, marked


def load_calls(directory: Path, text_chars: int) -> tuple[list[RunFacts], list[int]]:
    """Failed runs that call tools, and the first call of each that changes something it should not."""
    runs, wrong = [], []
    for told in json.loads((directory / "taubench_gpt4o_airline_tasks0-24.json").read_text()):
        wanted = [(one["name"], one["kwargs"]) for one in told["info"]["task"]["actions"]]
        steps = list(_steps(told["traj"], text_chars))
        places = [
            place
            for place, (step, arguments) in enumerate(steps)
            if step.action in CHANGING and (step.action, arguments) not in wanted
        ]
        if told["reward"] == 1 or not places:
            continue
        name, asked = f"{told['task_id']}:{told['trial']}", told["traj"][1]["content"]
        own = tuple(step for step, _ in steps)
        runs.append(RunFacts(trace_id=name, x_summary=_short(asked, text_chars), passed=False, steps=own, at=""))
        wrong.append(places[0])
    return runs, wrong


def _steps(turns: Sequence[dict[str, Any]], text_chars: int) -> Iterator[tuple[StepFacts, Any]]:
    """What was said, asked and called, a call together with its answer; and the arguments of a call."""
    called: dict[str, str] = {}
    for place, turn in enumerate(turns):
        called |= {one["id"]: one["function"]["arguments"] for one in turn.get("tool_calls") or ()}
        name, text = f"e{place}", _short(turn["content"] or "", text_chars)
        if turn["role"] == "tool":
            line = called[turn["tool_call_id"]]
            step = StepFacts(
                evidence_id=name,
                action=turn["name"],
                ok=not turn["content"].startswith("Error"),
                text=text,
                detail=_short(line, text_chars),
            )
            yield step, json.loads(line)
        elif turn["role"] == "user":
            yield StepFacts(evidence_id=name, action="ask", kind="ask", text=text), None
        elif text and turn["role"] == "assistant":
            yield StepFacts(evidence_id=name, action="say", kind="say", text=text), None


def _short(text: str, chars: int) -> str:
    """The beginning and the end of a long text."""
    return text if len(text) <= chars else f"{text[: chars // 2]} … {text[-chars // 2 :]}"


def learn(inputs: Sequence[Array], wanted: Sequence[int]) -> Array:
    """One weight a column by Newton's method: which of a run's steps is the wanted one."""
    width = inputs[0].shape[1]
    weights = np.zeros(width)
    for _ in range(100):
        slope, bend = STRENGTH * weights, STRENGTH * np.eye(width)
        for rows, place in zip(inputs, wanted, strict=True):
            shares = np.exp(rows @ weights - (rows @ weights).max())
            shares /= shares.sum()
            mean = shares @ rows
            slope = slope - rows[place] + mean
            bend = bend + (rows * shares[:, None]).T @ rows - np.outer(mean, mean)
        step = np.linalg.solve(bend, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(weights)


def held_out(inputs: Sequence[Array], wanted: Sequence[int], folds: int = FOLDS) -> dict[str, float]:
    """The mean over shuffles of what weights learned elsewhere find."""
    found: list[tuple[Array, int]] = []
    for shuffle in range(SHUFFLES):
        places = np.random.default_rng(shuffle).permutation(len(inputs))
        for fold in np.array_split(places, folds):
            rest = sorted(set(places.tolist()) - set(fold.tolist()))
            weights = learn([inputs[at] for at in rest], [wanted[at] for at in rest])
            found += [(inputs[at] @ weights, wanted[at]) for at in fold]
    return scored(found)


def scored(found: Sequence[tuple[Array, int]]) -> dict[str, float]:
    """How often the first step named is the marked one, is within one of it, and is among the first three."""
    orders = [(np.argsort(-scores, kind="stable"), place) for scores, place in found]
    return {
        "hit": float(np.mean([order[0] == place for order, place in orders])),
        "within_1": float(np.mean([abs(int(order[0]) - place) <= 1 for order, place in orders])),
        "in_3": float(np.mean([place in order[:3] for order, place in orders])),
    }


def at_random(sizes: Sequence[int], wanted: Sequence[int]) -> dict[str, float]:
    """What a step drawn by chance finds, exactly."""
    return {
        "hit": float(np.mean([1 / size for size in sizes])),
        "within_1": float(np.mean([_near(size, place) / size for size, place in zip(sizes, wanted, strict=True)])),
        "in_3": float(np.mean([min(1.0, 3 / size) for size in sizes])),
    }


def _near(size: int, place: int) -> int:
    """How many steps are the marked one or next to it."""
    return sum(0 <= place + by < size for by in (-1, 0, 1))


def by_place(run: RunFacts) -> Array:
    """What a place alone says: whose step, whether it is among the agent's first three, and how late it is."""
    own = [step.kind != "answer" for step in run.steps]
    rank = np.cumsum(own) - 1
    return np.array(
        [
            [float(not mine), *(float(mine and at == wanted) for wanted in (0, 1, 2)), float(np.log1p(at))]
            for mine, at in zip(own, rank, strict=True)
        ]
    )


def interval(run_hits: Sequence[bool]) -> tuple[float, float]:
    """The middle 95 % of 2,000 resamples of the runs."""
    draws = np.random.default_rng(0).choice(np.array(run_hits, float), (2_000, len(run_hits))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def calls(directory: Path, text_chars: int) -> dict[str, dict[str, Any]]:
    """The runs that call tools: the shipped weights, beside a step by chance, a call by chance and the last call."""
    runs, wrong = load_calls(directory, text_chars)
    own = [[place for place, step in enumerate(run.steps) if step.kind == "call"] for run in runs]
    found = [blame(run) for run in runs]
    return {
        "taubench": {
            "runs": len(runs),
            "hit": float(np.mean([one[0].step == place for one, place in zip(found, wrong, strict=True)])),
            "in_3": float(
                np.mean([place in [two.step for two in one[:3]] for one, place in zip(found, wrong, strict=True)])
            ),
            "random_step": float(np.mean([1 / len(run.steps) for run in runs])),
            "random_call": float(np.mean([1 / len(places) for places in own])),
            "first_change": float(
                np.mean([_first_change(run) == place for run, place in zip(runs, wrong, strict=True)])
            ),
            "last_call": float(np.mean([places[-1] == place for places, place in zip(own, wrong, strict=True)])),
        }
    }


def _first_change(run: RunFacts) -> int:
    return next(place for place, step in enumerate(run.steps) if step.action in CHANGING)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--text-chars", type=int, default=600)
    options = parser.parse_args(argv)
    runs, wanted = load(options.data, options.text_chars)
    inputs = [np.array(signals_of(run.steps, run.x_summary)) for run in runs]
    sizes = [len(run.steps) for run in runs]
    shipped = [blame(run) for run in runs]
    hits = [found[0].step == place for found, place in zip(shipped, wanted, strict=True)]
    learned = learn(inputs, wanted)
    rows: dict[str, dict[str, Any]] = {
        "random": at_random(sizes, wanted),
        "last": scored([(np.arange(size, dtype=float), place) for size, place in zip(sizes, wanted, strict=True)]),
        "first": scored([(-np.arange(size, dtype=float), place) for size, place in zip(sizes, wanted, strict=True)]),
        "position": held_out([by_place(run) for run in runs], wanted),
        "signals": held_out(inputs, wanted),
        "half": held_out(inputs, wanted, folds=2),
        "shipped": {
            **scored([(rows_ @ np.array(WEIGHTS), place) for rows_, place in zip(inputs, wanted, strict=True)]),
            "hit_95": "-".join(f"{end:.3f}" for end in interval(hits)),
        },
        "learned": {name: round(float(value), 3) for name, value in zip(Signals._fields, learned, strict=True)},
    }
    for left_out, name in enumerate(Signals._fields):
        rows[f"without_{name}"] = held_out([np.delete(one, left_out, axis=1) for one in inputs], wanted)
    for chars in LENGTHS:
        same, _ = load(options.data, chars)
        rows[f"text_{chars}"] = held_out([np.array(signals_of(run.steps, run.x_summary)) for run in same], wanted)
    rows |= calls(options.data, options.text_chars)
    arguments = {"runs": len(runs), "text_chars": options.text_chars, "folds": FOLDS, "shuffles": SHUFFLES}
    report("learn_blame", rows, arguments | {"strength": STRENGTH})


if __name__ == "__main__":
    main()
