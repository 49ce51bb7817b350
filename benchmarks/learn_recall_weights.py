"""Learn the weights of `LearnPolicy.weights` from runs of three sets, and say how they hold where they did not learn.

    python -m benchmarks.learn_recall_weights [--data DIR]

The questions of `benchmarks.recall_sets`: failing runs that ask a bank without their task, and for each hint the parts
of its score. A hint is right that comes from a passing run of the asker's family; of the airline, by the exact set of
gold actions and by that of the changing ones. Random weights are scored by how many right hints stand first, at several
depths; each set counts the same, however many questions it has. What is learnt is the mean of the best tenth, since the
single best owes more to luck. Weights are scaled to the sum of the prior's, as only their shares count. All runs were
in one state, so nothing can be learnt of `state`: its weight stays what it was.

Held out: one family of a set at a time, by the weights of all other families of all sets; and one set at a time, by the
weights of the other sets. The share of right ones among the first five is told beside that of the prior's.
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
from benchmarks.learning_tau import FAMILIES, TOP, Asked
from benchmarks.recall_sets import SETS, ask_set
from muniment.core.policy import RecallWeights

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

PARTS = ("sem", "tools", "intent", "quality")
PRIOR = RecallWeights(sem=1.0, tools=1.0, intent=1.0, state=0.3, quality=0.8)
"""What stood there before anything was learnt."""
CANDIDATES, KEPT, SEED = 400, 40, 1
DEPTHS = (3, 5, 10, 20)


class Choice(NamedTuple):
    """A question: its set, its family, the parts of every record's score, and which records are right."""

    set_name: str
    family: frozenset[str]
    parts: Array
    right: Mask


def parts_of(one: Asked) -> Array:
    """A row for each record of the bank; nought for one that was not recalled at all."""
    parts = np.zeros((len(one.bank), len(PARTS)))
    for place, scored in one.hints:
        parts[place] = [scored[name] for name in PARTS]
    return parts


def choices(asked: Sequence[Asked], set_name: str) -> list[Choice]:
    kinds = FAMILIES if set_name == "airline" else FAMILIES[:1]
    return [
        Choice(set_name, one.trial.family, parts_of(one), right)
        for one in asked
        for kind in kinds
        if (right := one.right(kind)).any()
    ]


class Learner:
    """Random weights and what each is worth on each question, so that any part of them can be learnt from."""

    def __init__(self, given: Sequence[Choice]) -> None:
        self.given = given
        self.drawn = np.random.default_rng(SEED).dirichlet(np.ones(len(PARTS)), CANDIDATES)
        self._worths = np.array([[worth(one, weights) for one in given] for weights in self.drawn])
        self._sets = np.array([one.set_name for one in given])

    def learn(self, used: Mask) -> Array:
        """The mean of the best candidates on these questions, scaled to the sum of the prior's."""
        by_set = [self._worths[:, used & (self._sets == name)] for name in SETS]
        total = np.sum([worths.mean(axis=1) for worths in by_set if worths.size], axis=0)
        best = np.argsort(-total, kind="stable")[:KEPT]
        return np.asarray(self.drawn[best].mean(axis=0) * prior().sum())

    def without_family(self, set_name: str, family: frozenset[str]) -> Array:
        return self.learn(np.array([one.set_name != set_name or one.family != family for one in self.given]))

    def without_set(self, set_name: str) -> Array:
        return self.learn(self._sets != set_name)


def prior() -> Array:
    return np.array([getattr(PRIOR, name) for name in PARTS])


def worth(one: Choice, weights: Array) -> float:
    """How many of the right records stand among the first, at several depths: the mean of the shares that could."""
    right = one.right[order_by(one.parts, weights)]
    return float(np.mean([right[:depth].sum() / min(depth, right.sum()) for depth in DEPTHS]))


def order_by(parts: Array, weights: Array) -> npt.NDArray[np.int_]:
    return np.argsort(-(parts @ weights), kind="stable")


def share_right(one: Choice, weights: Array) -> float:
    """Of the first five records, the share that is right."""
    return float(one.right[order_by(one.parts, weights)[:TOP]].mean())


def held_out_orders(learner: Learner, asked: Sequence[Asked], set_name: str) -> dict[str, list[list[int]]]:
    """The records of each question's bank, by weights of all other families, and by those of all other sets."""
    families = {family: learner.without_family(set_name, family) for family in {one.trial.family for one in asked}}
    other = learner.without_set(set_name)
    return {
        "recall": [order_by(parts_of(one), families[one.trial.family]).tolist() for one in asked],
        "recall, weights of the other sets": [order_by(parts_of(one), other).tolist() for one in asked],
    }


def held_out(learner: Learner) -> dict[str, Any]:
    """Each set, by weights of its other families and all other sets, and by those of the other sets alone."""
    rows: dict[str, Any] = {}
    for name in SETS:
        own = [one for one in learner.given if one.set_name == name]
        families = {family: learner.without_family(name, family) for family in {one.family for one in own}}
        other = learner.without_set(name)
        rows[name] = {
            "questions": len(own),
            "families": len(families),
            "prior": float(np.mean([share_right(one, prior()) for one in own])),
            "family_out": float(np.mean([share_right(one, families[one.family]) for one in own])),
            "set_out": float(np.mean([share_right(one, other) for one in own])),
            "weights_set_out": dict(zip(PARTS, other.round(3).tolist(), strict=True)),
        }
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    options = parser.parse_args(argv)
    learner = Learner([one for name in SETS for one in choices(ask_set(name, options.data), name)])
    write(learner)


def write(learner: Learner) -> None:
    """The weights of everything, and how they hold, into benchmarks/results."""
    weights, held = learner.learn(np.ones(len(learner.given), np.bool_)), held_out(learner)
    policy = PRIOR.model_copy(update={name: round(float(value), 2) for name, value in zip(PARTS, weights, strict=True)})
    document = {
        "command": "python -m benchmarks.learn_recall_weights",
        "weights": policy.model_dump(mode="json"),
        "provenance": {
            "sets": list(SETS),
            "questions": len(learner.given),
            "prior": PRIOR.model_dump(mode="json"),
            "candidates": CANDIDATES,
            "kept": KEPT,
            "seed": SEED,
            "seen": float(np.mean([share_right(one, weights) for one in learner.given])),
            "held_out": held,
        },
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "learn_recall_weights.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    for name, row in held.items():
        print(name, "  ".join(f"{key}={value}" for key, value in row.items()))
    print(json.dumps(document["weights"]))


if __name__ == "__main__":
    main()
