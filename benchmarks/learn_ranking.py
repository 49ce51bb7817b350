"""What the traits of a candidate are worth in ranking: fitted on the permitted sets, judged on the one left out.

    python -m benchmarks.learn_ranking [--data DIR] [--embedder e5-small] [--scopes qmsum=20] [--vectors-only] [--write]

For every question of the sets whose licence permits it (`benchmarks.data.PERMITTED`), the best candidates as they are
ranked without traits, their traits (`muniment.memory.ranking`) and which are gold. What each trait is worth is fitted
so that gold stands above the rest (the likelihood of the gold turns under a softmax over the candidates, with a ridge),
on every set but one, and measured on that one, before and after, at 5, 10 and 20. Every set counts the same, but those
that are easy, which count a third. Nothing is drawn at random: the same data gives the same numbers. `--write` fits on
all of these sets and writes the data file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import muniment
from benchmarks.data import PERMITTED, Scope, default_data
from benchmarks.embedders import KeptVectors
from benchmarks.harness import report
from benchmarks.learn_evidence import EASY
from benchmarks.recall import Near, index_of
from benchmarks.recall_pool_side import counts_of, drawn
from muniment.core.policy import RecallPolicy
from muniment.memory.ranking import TRAITS, traits_of
from muniment.memory.scoring import Dense, weigh_dense

Array = npt.NDArray[np.float64]

RIDGE = 0.1
"""Of the ridge that keeps what a trait is worth small; the base score is free of it."""
DEPTHS = (5, 10, 20)


class Sample(NamedTuple):
    """A question: its candidates' base scores and traits, which are gold, and how many gold turns there are."""

    base: Array
    traits: Array
    gold: Array
    golds: int


def samples(scopes: Sequence[Scope], vectors: KeptVectors | None) -> list[Sample]:
    found = []
    policy = RecallPolicy(ranking="")
    for scope in scopes:
        index = index_of(scope.turns)
        near = None if vectors is None else Near(scope.turns, vectors)
        places = {turn.id: place for place, turn in enumerate(scope.turns)}
        for question in scope.questions:
            gold = {places[each] for each in question.gold if each in places}
            if not gold:
                continue
            weighed, dense = policy, None
            if vectors is not None and near is not None:
                weighed = weigh_dense(policy, vectors.identity, question.text)
                dense = Dense(*near.to(question.text)) if weighed.dense_turn else None
            order, base, traits = traits_of(question.text, index, weighed, question.now.date(), dense)
            is_gold = np.array([each in gold for each in order.tolist()], np.float64)
            found.append(Sample(base, traits, is_gold, len(gold)))
    return found


def fit(pool: dict[str, list[Sample]]) -> Array:
    """What each trait is worth in the unit of the base score, by Newton's method."""
    sizes: dict[str, int] = {}
    for name, held in pool.items():
        sizes[name] = len(held)
    rows, gold, weights, starts, place = [], [], [], [], 0
    for name, held in pool.items():
        share = (1 / 3 if name in EASY else 1.0) / sizes[name]
        for sample in held:
            if sample.gold.any():
                columns = np.column_stack((sample.base, sample.traits))
                rows.append(columns - columns.mean(axis=0))
                gold.append(sample.gold / sample.gold.sum())
                weights.append(share)
                starts.append(place)
                place += len(sample.gold)
    every, target, first = np.concatenate(rows), np.concatenate(gold), np.array(starts)
    lasting = np.diff(first, append=len(every))
    weight = (np.array(weights) / np.sum(weights)).repeat(lasting)
    spread = every.std(axis=0)
    spread[spread == 0] = 1.0
    every = every / spread
    ridge = np.full(every.shape[1], 2 * RIDGE)
    ridge[0] = 1e-9
    found = np.zeros(every.shape[1])
    found[0] = 1.0
    for _ in range(60):
        score = every @ found
        score -= np.maximum.reduceat(score, first).repeat(lasting)
        chance = np.exp(score)
        chance /= np.add.reduceat(chance, first).repeat(lasting)
        slope = every.T @ (weight * (chance - target)) + ridge * found
        mean = np.add.reduceat(every * chance[:, np.newaxis], first, axis=0)
        single = np.add.reduceat(weight, first) / lasting
        bend = (every * (weight * chance)[:, np.newaxis]).T @ every - (mean * single[:, np.newaxis]).T @ mean
        step = np.linalg.solve(bend + np.diag(ridge), slope)
        found -= step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if float(np.abs(step).max()) < 1e-9:
            break
    plain = found / spread
    return np.asarray(plain[1:] / plain[0])


def recalls(held: Sequence[Sample], worth: Array | None) -> list[float]:
    """The share of gold among the first 5, 10 and 20."""
    found = []
    for sample in held:
        score = sample.base if worth is None else sample.base + sample.traits @ worth
        ranked = sample.gold[np.argsort(-score, kind="stable")]
        found.append([float(ranked[:depth].sum()) / sample.golds for depth in DEPTHS])
    return [round(float(each), 4) for each in np.mean(found, axis=0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--embedder", default="e5-small", help="whose vectors the second ranking is fitted with")
    parser.add_argument("--scopes", default="", help="of some sets so many scopes, drawn with a fixed seed: qmsum=20")
    parser.add_argument("--vectors-only", action="store_true", help="leave what is fitted by words as it is")
    parser.add_argument("--write", action="store_true", help="write the data file of the package")
    arguments = parser.parse_args()
    if not (arguments.data / "retrieval").exists():
        sys.exit(f"no data at {arguments.data}: nothing was fitted")
    scopes = {name: drawn(arguments.data, name, counts_of(arguments.scopes)) for name in PERMITTED}
    rows: dict[str, dict[str, Any]] = {}
    worths: dict[str, Array] = {}
    kinds: dict[str, KeptVectors | None] = {} if arguments.vectors_only else {"words": None}
    for kind, vectors in (kinds | {"vectors": KeptVectors(arguments.embedder)}).items():
        pool = {name: samples(each, vectors) for name, each in scopes.items()}
        for name, held in pool.items():
            worth = fit({other: each for other, each in pool.items() if other != name})
            before, after = recalls(held, None), recalls(held, worth)
            rows[f"{kind}, {name} left out"] = {
                "questions": len(held),
                **{f"R@{depth}_before": before[place] for place, depth in enumerate(DEPTHS)},
                **{f"R@{depth}": after[place] for place, depth in enumerate(DEPTHS)},
            }
        worths[kind] = fit(pool)
        rows[f"{kind}, worth"] = {name: round(float(each), 5) for name, each in zip(TRAITS, worths[kind], strict=True)}
    told = {"embedder": arguments.embedder, "scopes": arguments.scopes}
    report("learn_ranking", rows, told, f"learn_ranking_{arguments.embedder}" if arguments.vectors_only else "")
    if arguments.write:
        _write(worths, arguments.embedder)


def _write(worths: dict[str, Array], embedder: str) -> None:
    where = Path(muniment.__file__).parent / "memory" / "data" / "ranking.json"
    held = json.loads(where.read_bytes())
    told = {
        **held,
        "about": "What the traits of a candidate are worth, in the unit of the best match in words. Fitted by "
        f"benchmarks.learn_ranking on the development parts of {', '.join(PERMITTED)}, "
        f"each counting the same; `vectors` with those of {embedder}. No text of a set is in it.",
        **{
            kind: {name: round(float(each), 5) for name, each in zip(TRAITS, worth, strict=True)}
            for kind, worth in worths.items()
        },
    }
    where.write_text(json.dumps(told, indent=1) + "\n")
    print(f"digest {sha256(where.read_bytes()).hexdigest()[:16]}: name it in core/policy.py")


if __name__ == "__main__":
    main()
