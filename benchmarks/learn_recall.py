"""Learn the weights of `RecallPolicy` from the shared data, and say how they hold on what they were not learned from.

    python -m benchmarks.learn_recall [--data DIR] [--candidates 200] [--seed 1]

Random policies around the default are scored on every question once. Then, for each fold (a LoCoMo conversation and a
third of the LongMemEval questions), the policy is chosen on the other folds and scored on this one. A chosen policy is
the mean of the best candidates, not the single best: that one owes more to luck. The result goes to benchmarks/results
with its provenance; it replaces the defaults of `RecallPolicy` only where it holds on the folds it has not seen.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import RESULTS
from benchmarks.recall import index_of
from benchmarks.reference import estimate_tokens
from muniment.core.policy import RecallPolicy
from muniment.memory.recall.index import MemoryIndex
from muniment.memory.recall.rank import rank

Array = npt.NDArray[np.float64]

TUNED = (
    "before_1", "before_2", "after_1", "after_2", "session_date", "saturation", "length", "kinds", "kinds_damping",
    "speaker", "role", "question", "time", "diversity",
)  # fmt: skip
KEPT = 8
"""How many of the best candidates a chosen policy is the mean of."""
FOLDS = 3


class Task:
    """The questions of both sets, with what a ranking is worth for each."""

    def __init__(self, data: Path) -> None:
        self._asked: list[tuple[MemoryIndex, sets.Question, dict[str, int], list[float], list[str]]] = []
        folds: list[int] = []
        self.kinds: list[str] = []
        for fold, scope in enumerate(sets.locomo(data)):
            wanted = [question for question in scope.questions if question.kind != "5"]
            self._add(scope, wanted)
            folds += [fold % FOLDS] * len(wanted)
            self.kinds += ["locomo"] * len(wanted)
        for number, scope in enumerate(sets.longmemeval(data)):
            wanted = [question for question in scope.questions if question.gold]
            self._add(scope, wanted)
            folds += [number % FOLDS] * len(wanted)
            self.kinds += ["longmemeval"] * len(wanted)
        self.folds = np.array(folds)

    def _add(self, scope: sets.Scope, questions: Sequence[sets.Question]) -> None:
        index = index_of(scope.turns)
        places = {turn.id: place for place, turn in enumerate(scope.turns)}
        tokens = [estimate_tokens(f"{turn.speaker}: {turn.text}\n") for turn in scope.turns]
        sessions = [turn.session for turn in scope.turns]
        self._asked += [(index, question, places, tokens, sessions) for question in questions]

    def worth(self, policy: RecallPolicy) -> Array:
        """For each question the mean of recall@10 and of a second share: gold in 1024 tokens, or sessions all@5."""
        rows = []
        for index, question, places, tokens, sessions in self._asked:
            found = [hit.ordinal for hit in rank(question.text, index, policy, question.now.date(), 60)]
            gold = {places[id_] for id_ in question.gold}
            first = len(gold & set(found[:10])) / len(gold)
            if question.gold_sessions:
                best = list(dict.fromkeys(sessions[place] for place in found))[:5]
                second = float(question.gold_sessions <= set(best))
            else:
                within = np.cumsum([tokens[place] for place in found]) <= 1024
                second = len(gold & set(np.array(found, int)[within].tolist())) / len(gold)
            rows.append((first + second) / 2)
        return np.array(rows)


def propose(random: Random, base: RecallPolicy) -> RecallPolicy:
    """A policy near the base: some weights moved by up to a factor of two, and a few left out."""
    changes: dict[str, Any] = {}
    for name in TUNED:
        if random.random() < 0.5:
            value = getattr(base, name) * 2 ** random.uniform(-1, 1)
            changes[name] = min(value, 1.0) if name in ("length", "kinds_damping") else value
    return base.model_copy(update=changes)


def blend(policies: Sequence[RecallPolicy]) -> RecallPolicy:
    means = {name: round(float(np.mean([getattr(policy, name) for policy in policies])), 3) for name in TUNED}
    return policies[0].model_copy(update=means)


def balance(worth: Array, kinds: Sequence[str], chosen: npt.NDArray[np.bool_]) -> float:
    """Both sets count, LoCoMo twice: it has eight times the questions."""
    named = np.array(kinds)
    locomo, other = (float(worth[chosen & (named == name)].mean()) for name in ("locomo", "longmemeval"))
    return (2 * locomo + other) / 3


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    task, random, base = Task(options.data), Random(options.seed), RecallPolicy()
    candidates = [base, *(propose(random, base) for _ in range(options.candidates))]
    worths = [task.worth(policy) for policy in candidates]

    def choose(among: npt.NDArray[np.bool_]) -> RecallPolicy:
        values = [balance(worth, task.kinds, among) for worth in worths]
        best = sorted(range(len(values)), key=lambda place: -values[place])[:KEPT]
        return blend([candidates[place] for place in best])

    rows = []
    for fold in range(FOLDS):
        held_out = task.folds == fold
        learned = task.worth(choose(~held_out))
        row = {
            "fold": fold,
            "questions": int(held_out.sum()),
            "default": round(balance(worths[0], task.kinds, held_out), 4),
            "learned": round(balance(learned, task.kinds, held_out), 4),
        }
        rows.append(row)
        print("  ".join(f"{name}={value}" for name, value in row.items()))
    final = choose(np.ones(len(task.folds), bool))
    everywhere = np.ones(len(task.folds), bool)
    document = {
        "policy": final.model_dump(mode="json"),
        "digest": final.digest,
        "provenance": {
            "sets": {"locomo_dev3": task.kinds.count("locomo"), "longmemeval_dev50": task.kinds.count("longmemeval")},
            "measure": "mean of recall@10 and gold in 1024 tokens (LoCoMo, twice) or sessions all@5 (LongMemEval)",
            "candidates": options.candidates,
            "seed": options.seed,
            "default_digest": base.digest,
            "held_out": rows,
            "all_default": round(balance(worths[0], task.kinds, everywhere), 4),
            "all_learned": round(balance(task.worth(final), task.kinds, everywhere), 4),
        },
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "recall_policy.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    print(json.dumps({name: getattr(final, name) for name in TUNED}))
    print(f"all: default={document['provenance']['all_default']} learned={document['provenance']['all_learned']}")  # type: ignore[index]


if __name__ == "__main__":
    main()
