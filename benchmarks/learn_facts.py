"""Learn the weights of `FactCheckPolicy` from the shared data, and say how they hold on what they did not learn from.

    python -m benchmarks.learn_facts [--data DIR]

Two small models that are added up. Doubts: logistic regression on single outputs (BUMP, SummEdits; every set and label
counts alike) and on BUMP's pairs, drawn towards one weight for all kinds, so that a kind too rare to learn keeps it.
Nearness: on BUMP's pairs alone, then scaled down, since it may decide between equals only. No weight is negative.
Folds: a fifth of BUMP's articles, or one whole domain of SummEdits, learned from everything else; the threshold of a
domain is the one that is best on the other domains. The result goes to benchmarks/results with its provenance.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import RESULTS
from benchmarks.verify_facts import (
    DOMAINS,
    Judgement,
    auc,
    balanced_accuracy,
    best_threshold,
    bump,
    folds_of,
    summedits,
)
from muniment.core.policy.verify import DoubtWeights, FactCheckPolicy, NearnessWeights
from muniment.verify.facts.checking import judge_units
from muniment.verify.facts.nearness import Nearness
from muniment.verify.facts.scoring import features
from muniment.verify.facts.source import Source, SourceText

Array = npt.NDArray[np.float64]

DOUBTS = tuple(DoubtWeights.model_fields)
NEARNESS = Nearness._fields
PRIOR = 1.0
"""The weight that every kind of doubt is drawn to."""
STRENGTH = 10.0
SIZE = 300.0
"""Every set counts as much as so many outputs."""
SETS = {"single": 1.0, "domains": 0.3, "pairs": 0.5}
"""What BUMP's single outputs, each domain of SummEdits and BUMP's pairs count."""
NEARNESS_SHARE = 0.15
"""The deviation of nearness over all outputs, in deviations of the doubts' part."""


@dataclass(frozen=True)
class Table:
    """One row an output: doubts, nearness, is it consistent, which set, which document."""

    doubts: Array
    nearness: Array
    good: npt.NDArray[np.bool_]
    sets: npt.NDArray[np.str_]
    folds: npt.NDArray[np.int_]
    """The fold of a document of BUMP; -1 elsewhere."""

    def pairs(self, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.int_]:
        """Places of BUMP's references; the edited one stands behind each."""
        return np.flatnonzero(rows & (self.sets == "bump") & self.good)


def tabulate(judgements: Sequence[Judgement]) -> Table:
    policy = FactCheckPolicy()
    sources: dict[str, Source] = {}
    doubts, nearness = [], []
    for one in judgements:
        source = sources.setdefault(one.document, None) or Source([SourceText("document", one.document)])  # type: ignore[arg-type]
        sources[one.document] = source
        judged = judge_units(one.output, source, policy)
        found = features(
            [doubt for unit in judged for doubt in unit.doubts], [unit.nearness for unit in judged], policy.doubts_max
        )
        doubts.append([found.get(name, 0.0) for name in DOUBTS])
        nearness.append([found[name] * (-1 if name == "pronouns" else 1) for name in NEARNESS])
    return Table(
        np.array(doubts),
        np.array(nearness),
        np.array([one.good for one in judgements]),
        np.array([one.set for one in judgements]),
        np.array([folds_of(judgements).get(one.document, -1) if one.set == "bump" else -1 for one in judgements]),
    )


def solve(inputs: Array, wanted: Array, counts: Array, prior: Array, strength: Array) -> Array:
    """Logistic regression by Newton's method, drawn to a prior; weights that would be negative are held at 0."""
    free = np.ones(inputs.shape[1], bool)
    weights = prior.copy()
    while True:
        weights[~free] = 0
        for _ in range(50):
            expected = 1 / (1 + np.exp(-inputs @ weights))
            slope = inputs.T @ (counts * (expected - wanted)) + strength * (weights - prior)
            bend = (inputs * (counts * expected * (1 - expected))[:, None]).T @ inputs + np.diag(strength)
            step = np.linalg.solve(bend[np.ix_(free, free)], slope[free])
            weights[free] -= step
            if np.abs(step).max() < 1e-8:
                break
        negative = free & (weights < 0)
        negative[-1] = False  # the last one is the constant
        if not negative.any():
            return weights
        free &= ~negative


def learn_doubts(table: Table, rows: npt.NDArray[np.bool_]) -> tuple[Array, float]:
    """Weights of the doubts, and the constant."""
    inputs, wanted, counts = [], [], []
    for name in ("bump", *DOMAINS):
        for good in (True, False):
            chosen = rows & (table.sets == name) & (table.good == good)
            size = int(chosen.sum())
            if size:
                inputs.append(np.hstack([-table.doubts[chosen], np.ones((size, 1))]))
                wanted.append(np.full(size, float(good)))
                share = SETS["single"] if name == "bump" else SETS["domains"]
                counts.append(np.full(size, SIZE * share / 2 / size))
    first = table.pairs(rows)
    if len(first):
        gap = table.doubts[first + 1] - table.doubts[first]
        inputs.append(np.hstack([gap, np.zeros((len(first), 1))]))
        wanted.append(np.ones(len(first)))
        counts.append(np.full(len(first), SIZE * SETS["pairs"] / len(first)))
    prior = np.array([*np.full(len(DOUBTS), PRIOR), 0.0])
    strength = np.array([*np.full(len(DOUBTS), STRENGTH), 1e-6])
    found = solve(np.vstack(inputs), np.concatenate(wanted), np.concatenate(counts), prior, strength)
    return found[:-1], float(found[-1])


def learn_nearness(table: Table, rows: npt.NDArray[np.bool_]) -> Array:
    first = table.pairs(rows)
    scale = table.nearness[rows].std(axis=0) + 1e-9
    gap = np.hstack([(table.nearness[first] - table.nearness[first + 1]) / scale, np.zeros((len(first), 1))])
    width = gap.shape[1]
    strength = np.full(width, STRENGTH)
    found = solve(gap, np.ones(len(first)), np.full(len(first), SIZE / len(first)), np.zeros(width), strength)[:-1]
    return np.asarray(found / scale)


def learn(table: Table, rows: npt.NDArray[np.bool_]) -> FactCheckPolicy:
    """The policy learned from some rows."""
    doubts, base = learn_doubts(table, rows)
    near = learn_nearness(table, rows)
    wide = float((table.doubts[rows] @ doubts).std())
    near *= NEARNESS_SHARE * wide / float((table.nearness[rows] @ near).std())
    base -= float((table.nearness[rows] @ near).mean())
    return FactCheckPolicy(
        base=round(base, 4),
        doubts=DoubtWeights(**{name: round(float(value), 3) for name, value in zip(DOUBTS, doubts, strict=True)}),
        nearness=NearnessWeights(**{name: round(float(value), 4) for name, value in zip(NEARNESS, near, strict=True)}),
    )


def scores(table: Table, policy: FactCheckPolicy) -> Array:
    doubts = np.array([getattr(policy.doubts, name) for name in DOUBTS])
    near = np.array([getattr(policy.nearness, name) for name in NEARNESS])
    return np.asarray(policy.base - table.doubts @ doubts + table.nearness @ near)


def validate(table: Table) -> dict[str, Any]:
    """Every fold scored by what was learned from the rest."""
    held: dict[str, Any] = {"bump": [], "summedits": []}
    every = np.full(len(table.good), np.nan)
    for fold in range(int(table.folds.max()) + 1):
        out = table.folds == fold
        every[out] = found = scores(table, learn(table, ~out))[out]
        held["bump"].append(_bump_row(found, table.good[out]) | {"fold": fold})
    held["bump_all"] = _bump_row(every[table.sets == "bump"], table.good[table.sets == "bump"])
    for name in DOMAINS:
        out = table.sets == name
        found = scores(table, learn(table, ~out))
        others = [(found[table.sets == other], table.good[table.sets == other]) for other in DOMAINS if other != name]
        threshold = best_threshold(others)
        held["summedits"].append(
            {
                "domain": name,
                "balanced_accuracy": round(balanced_accuracy(found[out], table.good[out], threshold), 4),
                "auc": round(auc(found[out], table.good[out]), 4),
            }
        )
    held["summedits_mean"] = round(float(np.mean([row["balanced_accuracy"] for row in held["summedits"]])), 4)
    return held


def _bump_row(found: Array, good: npt.NDArray[np.bool_]) -> dict[str, Any]:
    return {
        "pairs": len(found) // 2,
        "consistency": round(float(np.mean(found[::2] > found[1::2])), 4),
        "auc": round(auc(found, good), 4),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    options = parser.parse_args(argv)
    judgements = [*bump(options.data), *summedits(options.data)]
    table = tabulate(judgements)
    held = validate(table)
    for key, rows in held.items():
        for row in rows if isinstance(rows, list) else [rows]:
            print(key, row)
    policy = learn(table, np.ones(len(table.good), bool))
    document = {
        "policy": policy.model_dump(mode="json"),
        "digest": policy.digest,
        "provenance": {
            "sets": {name: int((table.sets == name).sum()) for name in ("bump", *DOMAINS)},
            "prior": PRIOR,
            "strength": STRENGTH,
            "shares": SETS,
            "nearness_share": NEARNESS_SHARE,
            "held_out": held,
        },
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "fact_check_policy.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    print(json.dumps(document["policy"]))
    seen = {name: int((table.doubts[:, at] > 0).sum()) for at, name in enumerate(DOUBTS)}
    print("outputs with each doubt:", json.dumps(seen))


if __name__ == "__main__":
    main()
