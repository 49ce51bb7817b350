"""Learn the weights of `LearnPolicy.weights` from real runs, and say how they hold on tasks they did not learn from.

    python -m benchmarks.learn_recall_weights [--data DIR]

The questions of `benchmarks.learning_tau`: failing runs that ask a bank of all other tasks, and for each of its records
the parts of its score. A record is right that comes from a passing run of the asker's family, the exact set of gold
actions or that of the changing ones; both count. Random weights are scored by how many right records stand first, at
several depths; what is learnt is the mean of the best tenth, since the single best owes more to luck. Weights are
scaled to the sum of what stood there before, as only their shares count. All runs were in one state, so nothing can be
learnt of `state`: its weight stays what it was.

Held out: one task at a time; the weights of the others order its questions' records, and the share of right ones among
the first five is told beside that of the prior's. The result goes to benchmarks/results with its provenance.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import RESULTS
from benchmarks.learning_tau import FAMILIES, TOP, Asked, ask_all, load
from muniment.core.policy.learning import RecallWeights

Array = npt.NDArray[np.float64]

PARTS = ("sem", "intent", "quality")
PRIOR = RecallWeights(sem=1.0, intent=1.0, state=0.3, quality=0.8)
"""What stood there before anything was learnt."""
CANDIDATES, KEPT, SEED = 400, 40, 1
DEPTHS = (3, 5, 10, 20)


class Choice(NamedTuple):
    """A question: the parts of every record's score, and which records are right."""

    task: int
    parts: Array
    right: npt.NDArray[np.bool_]


def parts_of(one: Asked) -> Array:
    """A row for each record of the bank; nought for one that was not recalled at all."""
    parts = np.zeros((len(one.bank), len(PARTS)))
    for place, scored in one.hints:
        parts[place] = [scored[name] for name in PARTS]
    return parts


def choices(asked: Sequence[Asked], kinds: Sequence[str] = FAMILIES) -> list[Choice]:
    return [
        Choice(one.trial.task, parts_of(one), right)
        for one in asked
        for kind in kinds
        if (right := one.right(kind)).any()
    ]


def held_out_orders(asked: Sequence[Asked]) -> list[list[int]]:
    """The records of each question's bank, ordered by weights that were learnt from all other tasks."""
    given = choices(asked)
    tasks = {one.trial.task for one in asked}
    learned = {task: learn([one for one in given if one.task != task]) for task in sorted(tasks)}
    return [np.argsort(-(parts_of(one) @ learned[one.trial.task]), kind="stable").tolist() for one in asked]


def prior() -> Array:
    return np.array([getattr(PRIOR, name) for name in PARTS])


def learn(given: Sequence[Choice]) -> Array:
    """The mean of the best candidates, scaled to the sum of the prior's."""
    drawn = np.random.default_rng(SEED).dirichlet(np.ones(len(PARTS)), CANDIDATES)
    worths = [float(np.mean([worth(one, weights) for one in given])) for weights in drawn]
    best = np.argsort(-np.array(worths), kind="stable")[:KEPT]
    return np.asarray(drawn[best].mean(axis=0) * prior().sum())


def worth(one: Choice, weights: Array) -> float:
    """How many of the right records stand among the first, at several depths: the mean of the shares that could."""
    right = one.right[np.argsort(-(one.parts @ weights), kind="stable")]
    return float(np.mean([right[:depth].sum() / min(depth, right.sum()) for depth in DEPTHS]))


def share_right(given: Sequence[Choice], weights: Array) -> list[float]:
    """Of the first five records of each question, the share that is right."""
    orders = [np.argsort(-(one.parts @ weights), kind="stable")[:TOP] for one in given]
    return [float(one.right[order].mean()) for one, order in zip(given, orders, strict=True)]


def held_out(given: Sequence[Choice]) -> dict[str, Any]:
    """Each task's questions by weights that were learnt from the other tasks."""
    rows, learned = [], []
    for task in sorted({one.task for one in given}):
        own = [one for one in given if one.task == task]
        weights = learn([one for one in given if one.task != task])
        found = share_right(own, weights)
        learned += found
        rows.append(
            {
                "task": task,
                "questions": len(own),
                "before": float(np.mean(share_right(own, prior()))),
                "learned": float(np.mean(found)),
                "weights": dict(zip(PARTS, weights.round(3).tolist(), strict=True)),
            }
        )
    return {
        "before": float(np.mean(share_right(given, prior()))),
        "learned": float(np.mean(learned)),
        "tasks": rows,
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    options = parser.parse_args(argv)
    given = choices(ask_all(load(options.data)))
    weights = learn(given)
    held = held_out(given)
    policy = PRIOR.model_copy(update={name: round(float(value), 2) for name, value in zip(PARTS, weights, strict=True)})
    document = {
        "command": "python -m benchmarks.learn_recall_weights",
        "weights": policy.model_dump(mode="json"),
        "provenance": {
            "set": "taubench_gpt4o_airline_tasks0-24",
            "questions": len(given),
            "prior": PRIOR.model_dump(mode="json"),
            "candidates": CANDIDATES,
            "kept": KEPT,
            "seed": SEED,
            "seen": float(np.mean(share_right(given, weights))),
            "held_out": held,
        },
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "learn_recall_weights.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    for row in held["tasks"]:
        print("  ".join(f"{name}={value}" for name, value in row.items()))
    print(f"held out: before={held['before']:.3f} learned={held['learned']:.3f}")
    print(json.dumps(document["weights"]))


if __name__ == "__main__":
    main()
